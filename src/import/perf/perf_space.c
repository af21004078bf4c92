/*
 * perf_space.c: mappings and threads of recorded processes. A new mapping replaces what it covers, as in the process
 * itself. It finds modules, not names in them: perf_names.c does.
 */
#include "import/perf/perf_space.h"

#include "base/vec.h"

void perf_space_init(struct perf_space *s, struct builder *b)
{
	*s = (struct perf_space){ .b = b, .mem = b->m->mem };
	map_init(&s->by_pid, s->mem);
	map_init(&s->by_tid, s->mem);
}

void perf_space_release(struct perf_space *s)
{
	for (size_t i = 0; i < s->process_count; i++)
		mem_free(s->mem, s->processes[i].maps,
			 s->processes[i].cap * sizeof(*s->processes[i].maps));
	mem_free(s->mem, s->processes, s->process_cap * sizeof(*s->processes));
	mem_free(s->mem, s->threads, s->thread_cap * sizeof(*s->threads));
	mem_free(s->mem, s->symbols, s->symbol_cap * sizeof(*s->symbols));
	map_release(&s->by_pid);
	map_release(&s->by_tid);
}

static struct perf_process *find_process(const struct perf_space *s, int64_t pid)
{
	for (struct map_iter it = map_find(&s->by_pid, map_hash_u64((uint64_t)pid, 21)); it.value;
	     it = map_next(&s->by_pid, it))
		if (s->processes[it.value - 1].pid == pid)
			return &s->processes[it.value - 1];
	return NULL;
}

static struct perf_process *need_process(struct perf_space *s, int64_t pid)
{
	struct perf_process *found = find_process(s, pid);

	if (found)
		return found;
	if (!vec_push(s->mem, s->processes, s->process_count, s->process_cap,
		      (struct perf_process){ .pid = pid }))
		return NULL;
	if (!map_add(&s->by_pid, map_hash_u64((uint64_t)pid, 21), (uint32_t)s->process_count))
		return NULL;
	return &s->processes[s->process_count - 1];
}

/* The first mapping that ends after an address. */
static size_t lower_bound(const struct perf_process *p, uint64_t address)
{
	size_t low = 0, high = p->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->maps[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool insert(struct perf_space *s, struct perf_process *p, size_t at,
		   const struct perf_map *map)
{
	if (!vec_reserve(s->mem, p->maps, p->cap, p->count + 1))
		return false;
	memmove(p->maps + at + 1, p->maps + at, (p->count - at) * sizeof(*p->maps));
	p->maps[at] = *map;
	p->count++;
	return true;
}

bool perf_space_map(struct perf_space *s, int64_t pid, const struct perf_map *map)
{
	struct perf_process *p = need_process(s, pid);
	size_t at, last;

	if (!p)
		return false;
	if (map->start >= map->end)
		return true;
	p->changed = ++s->changes;
	at = lower_bound(p, map->start);
	/* the part before the new mapping is kept */
	if (at < p->count && p->maps[at].start < map->start) {
		struct perf_map rest = p->maps[at];

		p->maps[at].end = map->start;
		at++;
		if (rest.end > map->end) { /* the part after the new mapping is kept */
			rest.pgoff += map->end - rest.start;
			rest.start = map->end;
			if (!insert(s, p, at, &rest))
				return false;
		}
	}
	for (last = at; last < p->count && p->maps[last].end <= map->end; last++)
		;
	if (last > at)
		memmove(p->maps + at, p->maps + last, (p->count - last) * sizeof(*p->maps));
	p->count -= last - at;
	if (at < p->count && p->maps[at].start < map->end) {
		p->maps[at].pgoff += map->end - p->maps[at].start;
		p->maps[at].start = map->end;
	}
	return insert(s, p, at, map);
}

const struct perf_map *perf_space_find(const struct perf_space *s, int64_t pid, uint64_t address)
{
	const struct perf_process *p = find_process(s, pid);
	size_t at = p ? lower_bound(p, address) : 0;

	return p && at < p->count && p->maps[at].start <= address ? &p->maps[at] : NULL;
}

uint32_t perf_space_changed(const struct perf_space *s, int64_t pid)
{
	const struct perf_process *p = find_process(s, pid);
	const struct perf_process *kernel = find_process(s, PERF_KERNEL_PID);

	return MAX(p ? p->changed : 0, kernel ? kernel->changed : 0);
}

static struct perf_thread *find_thread(const struct perf_space *s, int64_t pid, int64_t tid)
{
	for (struct map_iter it = map_find(&s->by_tid, map_hash_u64((uint64_t)pid, (uint64_t)tid));
	     it.value; it = map_next(&s->by_tid, it))
		if (s->threads[it.value - 1].pid == pid && s->threads[it.value - 1].tid == tid)
			return &s->threads[it.value - 1];
	return NULL;
}

struct perf_thread *perf_space_thread(struct perf_space *s, int64_t pid, int64_t tid)
{
	struct perf_thread *found = s->thread_count ? &s->threads[s->last_thread] : NULL;

	if (!found || found->tid != tid || found->pid != pid)
		found = find_thread(s, pid, tid);
	if (found) {
		s->last_thread = (size_t)(found - s->threads);
		return found;
	}
	if (!vec_push(s->mem, s->threads, s->thread_count, s->thread_cap,
		      (struct perf_thread){ .pid = pid, .tid = tid }))
		return NULL;
	if (!map_add(&s->by_tid, map_hash_u64((uint64_t)pid, (uint64_t)tid),
		     (uint32_t)s->thread_count))
		return NULL;
	return &s->threads[s->thread_count - 1];
}

bool perf_space_comm(struct perf_space *s, int64_t pid, int64_t tid, str_id comm)
{
	struct perf_thread *t = perf_space_thread(s, pid, tid);

	if (!t)
		return false;
	t->comm = comm;
	s->names++;
	return true;
}

bool perf_space_fork(struct perf_space *s, int64_t pid, int64_t parent_pid, int64_t tid,
		     int64_t parent_tid)
{
	str_id comm = perf_space_name(s, parent_pid, parent_tid);

	if (comm.v && !perf_space_comm(s, pid, tid, comm))
		return false;
	if (pid == parent_pid || !find_process(s, parent_pid))
		return true;
	if (!need_process(s, pid))
		return false;
	find_process(s, pid)->count = 0;
	find_process(s, pid)->changed = ++s->changes;
	/* looked up each time, because the list of processes may move in memory */
	for (size_t i = 0; i < find_process(s, parent_pid)->count; i++) {
		struct perf_map map = find_process(s, parent_pid)->maps[i];

		if (!insert(s, find_process(s, pid), i, &map))
			return false;
	}
	return true;
}

str_id perf_space_name(const struct perf_space *s, int64_t pid, int64_t tid)
{
	const struct perf_thread *t = find_thread(s, pid, tid);

	if (!t || !t->comm.v)
		t = find_thread(s, pid, pid);
	return t ? t->comm : (str_id){ 0 };
}

bool perf_space_symbol(struct perf_space *s, uint64_t start, uint64_t len, str_id name)
{
	if (!len || start + len < start)
		return true;
	if (!vec_push(s->mem, s->symbols, s->symbol_count, s->symbol_cap,
		      (struct perf_symbol){ start, start + len, name }))
		return false;
	s->sorted = false;
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct perf_symbol *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

str_id perf_space_function(struct perf_space *s, uint64_t address)
{
	size_t low = 0, high = s->symbol_count;

	if (!s->sorted && s->symbol_count)
		qsort(s->symbols, s->symbol_count, sizeof(*s->symbols), by_start);
	s->sorted = true;
	while (low < high) { /* the last that starts at or before the address */
		size_t middle = low + (high - low) / 2;

		if (s->symbols[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || s->symbols[low - 1].end <= address)
		return (str_id){ 0 };
	return s->symbols[low - 1].name;
}
