/*
 * system_record.c: the loop that samples the whole host. Each sample's user stack is unwound by libdw while its process
 * lives, within a part of one processor, else by frame pointers; a thread that leaves its processor and comes back is a
 * wait with the stack that it left with. Called by ow_record_system in src/api. Nothing is loaded into any process.
 */
#include "live/system/system_record.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "live/native/native_stacks.h"
#include "live/system/perf_stream.h"
#include "live/system/system_events.h"

#include "opwatch_config.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TURN_MS 20
#define USES_NS 1000000000
#define UNWINDERS_MOST 256u
#define WAITING_MOST 16384u	/* largest number of threads that wait at a time */
#define LONG_WAIT_NS 100000	/* shorter waits are not unwound with tables */
#define SINGLE_WAIT_NS 10000000 /* shorter waits at the same place are added up */
#define SUMS_MOST 8192u
#define UNWIND_PART 0.25 /* part of one processor that unwinding may use */
#define KERNEL_DEPTH 128
#define LEAST_USE 0.001 /* processes that use less than this part of a processor are not kept */
#define RAW_MOST (sizeof(uint64_t) * KERNEL_DEPTH * 2 + 4096)

/* A process: its unwinder, and the names of its files. */
struct target {
	pid_t pid;
	struct native_unwind *unwind;
	bool tried, elsewhere; /* the process is in another mount namespace */
};

/* A thread that left its processor. */
struct absent {
	pid_t pid, tid;
	int64_t left_ns;
	bool preempted;
	size_t raw_len;
	unsigned char *raw; /* body of its sample; NULL: none */
};

/* Sum of short waits of a thread at one place. */
struct wait_sum {
	pid_t pid, tid;
	uint64_t hash;
	enum perf_stream_event event;
	int64_t last_ns;
	uint64_t ns;
	uint16_t kernel_count, user_count;
	uint64_t *pcs;
};

struct recorder {
	struct mem *mem;
	struct system_recording *r;
	const struct system_options *options;
	struct system_events events;
	struct perf_stream stream;
	struct process_table table;
	struct target *targets; /* processes; item 0 is not used */
	size_t target_count, target_cap;
	struct map target_map;
	struct absent *absents; /* waiting threads; item 0 is not used */
	size_t absent_count, absent_cap;
	struct map absent_map;
	struct wait_sum *sums;
	size_t sum_count, sum_cap;
	struct map sum_map;
	int64_t to_wall_ns, begin_ns, unwind_ns;
	size_t unwinders;
	uint64_t period_ns;
	pid_t self;
	bool no_memory;
};

static bool is_elsewhere(pid_t pid)
{
	char path[64];
	struct stat theirs, ours;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	return stat(path, &theirs) == 0 && stat("/proc/self/ns/mnt", &ours) == 0 &&
	       theirs.st_ino != ours.st_ino;
}

static struct target *target_of(struct recorder *rec, pid_t pid)
{
	uint64_t hash = map_hash_u64((uint64_t)pid, 5);
	struct map_iter it;

	for (it = map_find(&rec->target_map, hash); it.value; it = map_next(&rec->target_map, it))
		if (rec->targets[it.value].pid == pid)
			return &rec->targets[it.value];
	if (!vec_reserve(rec->mem, rec->targets, rec->target_cap, rec->target_count + 2) ||
	    !map_add(&rec->target_map, hash, (uint32_t)rec->target_count + 1)) {
		rec->no_memory = true;
		return NULL;
	}
	rec->targets[++rec->target_count] =
		(struct target){ .pid = pid, .elsewhere = is_elsewhere(pid) };
	rec->r->processes++;
	return &rec->targets[rec->target_count];
}

/* Forgets a process that executed another program, or whose pid was reused. */
static void forget_program(struct recorder *rec, pid_t pid)
{
	struct target *t = target_of(rec, pid);

	if (!t)
		return;
	rec->unwinders -= t->unwind != NULL;
	native_unwind_free(t->unwind);
	t->unwind = NULL;
	t->tried = false;
	t->elsewhere = is_elsewhere(pid);
}

/* Writes a mapping; a file in another mount namespace is found through the process. */
static void put_map(struct recorder *rec, struct target *t, const struct proc_map *m)
{
	char name[4096 + 40];
	struct stat st = { 0 };
	struct stream_map map = { .pid = t->pid,
				  .start = m->start,
				  .len = m->end - m->start,
				  .offset = m->offset,
				  .name = name };

	snprintf(name, sizeof(name), "%.*s", STR_ARG(str_first(m->path, MIN(m->path.len, 4000u))));
	if (!m->path.len)
		snprintf(name, sizeof(name), "//anon");
	else if (name[0] == '/' && t->elsewhere)
		snprintf(name, sizeof(name), "/proc/%d/root%.*s", (int)t->pid,
			 STR_ARG(str_first(m->path, MIN(m->path.len, 4000u))));
	if (name[0] == '/' && name[1] != '/' && stat(name, &st) == 0) {
		map.major = major(st.st_dev);
		map.minor = minor(st.st_dev);
		map.inode = st.st_ino;
	}
	perf_stream_map(&rec->stream, &map);
}

static void put_process(struct recorder *rec, pid_t pid)
{
	struct pid_list tids = { .mem = rec->mem };
	struct target *t = target_of(rec, pid);
	struct proc_map map;
	char path[64], name[PROC_NAME];
	struct buf text;
	struct str rest;

	if (!t)
		return;
	if (!proc_threads(pid, &tids))
		rec->no_memory = true;
	for (size_t i = 0; i < tids.count; i++)
		if (proc_thread_name(pid, tids.items[i], name))
			perf_stream_name(&rec->stream, pid, tids.items[i], name);
	pid_list_release(&tids);
	buf_init(&text, rec->mem);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (proc_read_file(&text, path)) {
		rest = buf_str(&text);
		while (rest.len && proc_next_map(&rest, &map))
			if (map.executable)
				put_map(rec, t, &map);
	}
	buf_release(&text);
}

/* Writes the kernel's mapping, which begins at the symbol _text. */
static void put_kernel(struct recorder *rec)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[256];
	uint64_t text = 0;

	while (f && !text && fgets(line, sizeof(line), f))
		if (strstr(line, " _text\n") || strstr(line, " _stext\n"))
			text = strtoull(line, NULL, 16);
	if (f)
		fclose(f);
	if (!text)
		return; /* the address is hidden from this user */
	perf_stream_map(&rec->stream, &(struct stream_map){ .pid = -1,
							    .start = text,
							    .len = UINT64_MAX - 4096 - text,
							    .offset = text,
							    .name = "[kernel.kallsyms]_text" });
}

static void put_all_processes(struct recorder *rec)
{
	put_kernel(rec);
	rec->no_memory |= !process_table_turn(&rec->table, NULL, 0);
	for (size_t i = 0; i < rec->table.count; i++)
		put_process(rec, rec->table.rows[i].pid);
}

struct stack {
	uint64_t kernel[KERNEL_DEPTH], user[NATIVE_DEPTH];
	size_t kernel_count, user_count;
};

/* Splits a chain at the kernel's marker. Returns the user's part, from frame pointers. */
static void split_chain(const struct native_sample *s, struct stack *to, struct native_sample *user)
{
	uint64_t context = (uint64_t)PERF_CONTEXT_USER, pc;
	size_t i;

	to->kernel_count = to->user_count = 0;
	*user = *s;
	user->chain_count = 0;
	for (i = 0; i < s->chain_count; i++) {
		memcpy(&pc, (const unsigned char *)s->chain + i * 8, 8);
		if (pc >= (uint64_t)-4095)
			context = pc;
		else if (context == (uint64_t)PERF_CONTEXT_KERNEL &&
			 to->kernel_count < KERNEL_DEPTH)
			to->kernel[to->kernel_count++] = pc;
		else if (context == (uint64_t)PERF_CONTEXT_USER && to->user_count < NATIVE_DEPTH)
			to->user[to->user_count++] = pc;
	}
}

static struct native_unwind *unwinder_of(struct recorder *rec, pid_t pid)
{
	struct target *t = target_of(rec, pid);
	struct ow_error why = { 0 };

	if (!t || t->unwind || t->tried || rec->unwinders >= UNWINDERS_MOST)
		return t ? t->unwind : NULL;
	t->tried = true;
	if (native_unwind_new(&t->unwind, rec->mem, pid, &why) == OW_OK)
		rec->unwinders++;
	return t->unwind;
}

/* Returns whether unwinding with tables, which costs tens of microseconds, is within its part of
 * one processor. */
static bool may_unwind(const struct recorder *rec)
{
	int64_t elapsed = steady_ns() - rec->begin_ns + 1000000000;

	return (double)rec->unwind_ns < (double)elapsed * UNWIND_PART;
}

/* Unwinds with tables if that goes further than frame pointers. */
static void unwind(struct recorder *rec, const struct native_sample *s, struct stack *stack,
		   bool by_tables)
{
	struct native_sample user;
	struct native_unwind *u;
	uint64_t pcs[NATIVE_DEPTH];
	int64_t begin;
	size_t count;

	split_chain(s, stack, &user);
	if (!s->register_count || !OPWATCH_HAVE_LIBDW)
		return; /* a kernel thread */
	u = by_tables && may_unwind(rec) ? unwinder_of(rec, s->pid) : NULL;
	if (!u) {
		rec->r->by_pointers += stack->user_count > 0;
		return;
	}
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	count = native_unwind_walk(u, &user, pcs);
	rec->unwind_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	rec->r->unwound++;
	if (count <= stack->user_count)
		return;
	for (size_t i = 0; i < count; i++) /* return addresses, as the kernel reports them */
		stack->user[i] = pcs[i] + (i > 0);
	stack->user_count = count;
}

static void put_sample(struct recorder *rec, enum perf_stream_event event, pid_t pid, pid_t tid,
		       int64_t ts_ns, uint64_t period, const struct stack *stack)
{
	perf_stream_sample(&rec->stream, &(struct stream_sample){
						 .event = event,
						 .pid = pid,
						 .tid = tid,
						 .ts_ns = ts_ns,
						 .period_ns = period,
						 .in_kernel = stack->kernel_count > 0,
						 .kernel = stack->kernel,
						 .kernel_count = stack->kernel_count,
						 .user = stack->user,
						 .user_count = stack->user_count,
					 });
}

static void put_sum(struct recorder *rec, struct wait_sum *sum)
{
	struct stack stack = { .kernel_count = sum->kernel_count, .user_count = sum->user_count };

	if (sum->kernel_count)
		memcpy(stack.kernel, sum->pcs, sum->kernel_count * sizeof(uint64_t));
	if (sum->user_count)
		memcpy(stack.user, sum->pcs + sum->kernel_count,
		       sum->user_count * sizeof(uint64_t));
	put_sample(rec, sum->event, sum->pid, sum->tid, sum->last_ns, sum->ns, &stack);
	mem_free(rec->mem, sum->pcs,
		 (size_t)(sum->kernel_count + sum->user_count) * sizeof(uint64_t));
}

static void put_sums(struct recorder *rec)
{
	for (size_t i = 1; i <= rec->sum_count; i++)
		put_sum(rec, &rec->sums[i]);
	rec->sum_count = 0;
	map_release(&rec->sum_map);
	map_init(&rec->sum_map, rec->mem);
}

static uint64_t hash_stack(const struct absent *a, const struct stack *s)
{
	uint64_t hash = map_hash_u64((uint64_t)a->tid, s->kernel_count * 2 + a->preempted);

	for (size_t i = 0; i < s->kernel_count; i++)
		hash = map_hash_u64(hash, s->kernel[i]);
	for (size_t i = 0; i < s->user_count; i++)
		hash = map_hash_u64(hash, s->user[i]);
	return hash;
}

/* Adds a short wait to its sum, found by a 64-bit hash, which is unique within a second. */
static void add_to_sum(struct recorder *rec, const struct absent *a, const struct stack *s,
		       uint64_t ns)
{
	uint64_t hash = hash_stack(a, s);
	size_t count = s->kernel_count + s->user_count;
	struct wait_sum sum = { .pid = a->pid,
				.tid = a->tid,
				.hash = hash,
				.event = a->preempted ? STREAM_READY : STREAM_WAIT,
				.last_ns = a->left_ns,
				.ns = ns,
				.kernel_count = (uint16_t)s->kernel_count,
				.user_count = (uint16_t)s->user_count };
	struct map_iter it;

	for (it = map_find(&rec->sum_map, hash); it.value; it = map_next(&rec->sum_map, it))
		if (rec->sums[it.value].hash == hash && rec->sums[it.value].tid == a->tid) {
			rec->sums[it.value].ns += ns;
			return;
		}
	if (rec->sum_count >= SUMS_MOST)
		put_sums(rec);
	sum.pcs = count ? mem_alloc(rec->mem, count * sizeof(uint64_t)) : NULL;
	if ((count && !sum.pcs) ||
	    !vec_reserve(rec->mem, rec->sums, rec->sum_cap, rec->sum_count + 2) ||
	    !map_add(&rec->sum_map, hash, (uint32_t)rec->sum_count + 1)) {
		mem_free(rec->mem, sum.pcs, sum.pcs ? count * sizeof(uint64_t) : 0);
		rec->no_memory = true;
		return;
	}
	if (sum.pcs && s->kernel_count)
		memcpy(sum.pcs, s->kernel, s->kernel_count * sizeof(uint64_t));
	if (sum.pcs && s->user_count)
		memcpy(sum.pcs + s->kernel_count, s->user, s->user_count * sizeof(uint64_t));
	rec->sums[++rec->sum_count] = sum;
}

static bool has_ended(const struct absent *a)
{
	return syscall(SYS_tgkill, a->pid, a->tid, 0) != 0 && errno == ESRCH;
}

static void free_raw(struct recorder *rec, struct absent *a)
{
	mem_free(rec->mem, a->raw, a->raw ? RAW_MOST : 0);
	a->raw = NULL;
}

/* Forgets threads that have ended. */
static void forget_ended(struct recorder *rec)
{
	size_t kept = 0;

	map_release(&rec->absent_map);
	map_init(&rec->absent_map, rec->mem);
	for (size_t i = 1; i <= rec->absent_count; i++) {
		struct absent *a = &rec->absents[i];

		if (has_ended(a)) {
			free_raw(rec, a);
			continue;
		}
		rec->absents[++kept] = *a;
		rec->no_memory |= !map_add(&rec->absent_map, map_hash_u64((uint64_t)a->tid, 6),
					   (uint32_t)kept);
	}
	rec->absent_count = kept;
}

static struct absent *absent_of(struct recorder *rec, pid_t tid, bool add)
{
	uint64_t hash = map_hash_u64((uint64_t)tid, 6);
	struct map_iter it;

	for (it = map_find(&rec->absent_map, hash); it.value; it = map_next(&rec->absent_map, it))
		if (rec->absents[it.value].tid == tid)
			return &rec->absents[it.value];
	if (!add)
		return NULL;
	if (rec->absent_count >= WAITING_MOST)
		forget_ended(rec);
	if (rec->absent_count >= WAITING_MOST) {
		rec->r->lost++;
		return NULL;
	}
	if (!vec_reserve(rec->mem, rec->absents, rec->absent_cap, rec->absent_count + 2) ||
	    !map_add(&rec->absent_map, hash, (uint32_t)rec->absent_count + 1)) {
		rec->no_memory = true;
		return NULL;
	}
	rec->absents[++rec->absent_count] = (struct absent){ .tid = tid };
	return &rec->absents[rec->absent_count];
}

static bool has_user_part(const struct native_sample *s)
{
	for (size_t i = 0; i < s->chain_count; i++) {
		uint64_t pc;

		memcpy(&pc, (const unsigned char *)s->chain + i * 8, 8);
		if (pc == (uint64_t)PERF_CONTEXT_USER)
			return true;
	}
	return s->register_count && s->sp;
}

/* Handles a thread that leaves its processor: its stack is unwound when the length of the wait
 * is known. */
static void take_leave(struct recorder *rec, const unsigned char *body, size_t len)
{
	struct native_sample s;
	struct absent *a;

	/* kernel threads wait for work, which is not of interest */
	if (!native_sample_take(body, len, &s) || s.tid == 0 || s.pid == rec->self ||
	    !has_user_part(&s))
		return;
	a = absent_of(rec, s.tid, true);
	if (!a)
		return;
	if (!a->raw)
		a->raw = mem_alloc(rec->mem, RAW_MOST);
	if (!a->raw || len > RAW_MOST) {
		rec->no_memory |= !a->raw;
		a->left_ns = 0;
		return;
	}
	a->pid = s.pid;
	a->left_ns = s.ts_ns;
	a->preempted = false;
	a->raw_len = len;
	memcpy(a->raw, body, len);
}

static void finish_wait(struct recorder *rec, struct absent *a, int64_t until_ns)
{
	int64_t ns = until_ns - a->left_ns;
	struct native_sample s;
	struct stack stack;

	if (a->left_ns && ns > 0 && a->raw && native_sample_take(a->raw, a->raw_len, &s)) {
		unwind(rec, &s, &stack, ns >= LONG_WAIT_NS);
		rec->r->waits++;
		if (ns >= SINGLE_WAIT_NS)
			put_sample(rec, a->preempted ? STREAM_READY : STREAM_WAIT, a->pid, a->tid,
				   a->left_ns, (uint64_t)ns, &stack);
		else
			add_to_sum(rec, a, &stack, (uint64_t)ns);
	}
	a->left_ns = 0;
}

static void take_switch(struct recorder *rec, const struct perf_event_header *h, int64_t ts_ns)
{
	struct absent *a;
	uint32_t ids[2];

	if (h->size < sizeof(*h) + 24)
		return;
	memcpy(ids, (const unsigned char *)h + h->size - 16, sizeof(ids));
	a = absent_of(rec, (pid_t)ids[1], false);
	if (!a || !a->left_ns)
		return;
	if (h->misc & PERF_RECORD_MISC_SWITCH_OUT)
		a->preempted = h->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	else
		finish_wait(rec, a, ts_ns);
}

static void finish_all_waits(struct recorder *rec, int64_t now)
{
	forget_ended(rec);
	for (size_t i = 1; i <= rec->absent_count; i++) {
		finish_wait(rec, &rec->absents[i], now);
		free_raw(rec, &rec->absents[i]);
	}
	put_sums(rec);
}

static void take_clock(struct recorder *rec, const unsigned char *body, size_t len)
{
	struct native_sample s;
	struct stack stack;

	if (!native_sample_take(body, len, &s) || s.tid == 0 || s.pid == rec->self)
		return;
	unwind(rec, &s, &stack, true);
	put_sample(rec, STREAM_CPU, s.pid, s.tid, s.ts_ns, rec->period_ns, &stack);
	rec->r->samples++;
}

/* Handles a new mapping; in another mount namespace it is named through the process. */
static void take_map(struct recorder *rec, const struct perf_event_header *h)
{
	const unsigned char *body = (const unsigned char *)(h + 1);
	size_t fixed = 8 + 24 + 32, len = h->size - sizeof(*h);
	uint32_t pid;
	struct target *t;
	struct proc_map map = { 0 };
	const char *name;

	if (len < fixed + 16) {
		perf_stream_record(&rec->stream, h, h->size);
		return;
	}
	memcpy(&pid, body, 4);
	name = (const char *)body + fixed;
	t = target_of(rec, (pid_t)pid);
	if (!t || !t->elsewhere || name[0] != '/' || name[1] == '/') {
		perf_stream_record(&rec->stream, h, h->size);
		return;
	}
	memcpy(&map.start, body + 8, 8);
	memcpy(&map.end, body + 16, 8);
	map.end += map.start;
	memcpy(&map.offset, body + 24, 8);
	map.path = str_make(name, strnlen(name, len - fixed - 16));
	put_map(rec, t, &map);
}

static void take_record(void *arg, enum system_kind kind, const struct perf_event_header *h,
			int64_t ts_ns)
{
	struct recorder *rec = arg;
	const unsigned char *body = (const unsigned char *)(h + 1);
	size_t len = h->size - sizeof(*h);
	uint64_t lost[2];
	uint32_t pid = 0;

	if (len >= 8)
		memcpy(&pid, body, 4);
	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		if (kind == SYSTEM_CLOCK)
			take_clock(rec, body, len);
		else
			take_leave(rec, body, len);
		break;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		take_switch(rec, h, ts_ns);
		break;
	case PERF_RECORD_LOST:
		if (len >= sizeof(lost)) {
			memcpy(lost, body, sizeof(lost));
			rec->r->lost += lost[1];
		}
		break;
	case PERF_RECORD_THROTTLE:
		rec->r->throttled++;
		break;
	case PERF_RECORD_MMAP2:
		take_map(rec, h);
		break;
	case PERF_RECORD_COMM:
		if (h->misc & PERF_RECORD_MISC_COMM_EXEC)
			forget_program(rec, (pid_t)pid);
		perf_stream_record(&rec->stream, h, h->size);
		break;
	case PERF_RECORD_FORK:
		perf_stream_record(&rec->stream, h, h->size);
		break;
	default:
		break;
	}
}

static bool add_use(struct recorder *rec, const struct process_row *row, int64_t ts_ns)
{
	struct system_use use = { .pid = row->pid,
				  .ts_ns = ts_ns,
				  .cpu = row->cpu,
				  .wait = row->wait,
				  .read_rate = row->read_rate,
				  .write_rate = row->write_rate,
				  .memory = row->memory };

	if (row->cpu < LEAST_USE && row->wait < LEAST_USE && row->read_rate <= 0 &&
	    row->write_rate <= 0)
		return true;
	memcpy(use.name, row->name, sizeof(use.name));
	return vec_push(rec->mem, rec->r->uses, rec->r->use_count, rec->r->use_cap, use);
}

static void read_uses(struct recorder *rec)
{
	struct system_recording *r = rec->r;
	int64_t now = steady_ns() + rec->to_wall_ns;
	bool good = process_table_turn(&rec->table, NULL, 0);

	for (size_t i = 0; good && i < rec->table.count; i++)
		if (rec->table.rows[i].pid != rec->self)
			good = add_use(rec, &rec->table.rows[i], now);
	good = good && vec_reserve(rec->mem, r->hosts, r->host_cap, r->host_count + 1) &&
	       vec_reserve(rec->mem, r->host_ns, r->host_ns_cap, r->host_count + 1);
	rec->no_memory |= !good;
	if (!good)
		return;
	r->hosts[r->host_count] = rec->table.host;
	r->host_ns[r->host_count++] = now;
}

static void record_all(struct recorder *rec)
{
	const struct system_options *o = rec->options;
	int64_t uses_due = rec->begin_ns + USES_NS;

	for (;;) {
		int64_t now;

		system_events_wait(&rec->events, TURN_MS);
		system_events_read(&rec->events, take_record, rec);
		now = steady_ns();
		if (now >= uses_due) {
			read_uses(rec);
			put_sums(rec);
			uses_due = now + USES_NS;
		}
		if (rec->no_memory || rec->stream.failure ||
		    (o->for_ns && now - rec->begin_ns >= o->for_ns) ||
		    (o->keep_going && !o->keep_going(o->arg)))
			break;
	}
	system_events_stop(&rec->events);
	system_events_read(&rec->events, take_record, rec);
	finish_all_waits(rec, steady_ns());
}

static void release(struct recorder *rec)
{
	for (size_t i = 1; i <= rec->absent_count; i++)
		free_raw(rec, &rec->absents[i]);
	for (size_t i = 1; i <= rec->target_count; i++)
		native_unwind_free(rec->targets[i].unwind);
	vec_free(rec->mem, rec->targets, rec->target_cap);
	vec_free(rec->mem, rec->absents, rec->absent_cap);
	vec_free(rec->mem, rec->sums, rec->sum_cap);
	map_release(&rec->target_map);
	map_release(&rec->absent_map);
	map_release(&rec->sum_map);
	process_table_release(&rec->table);
	system_events_close(&rec->events);
}

ow_status system_record(struct system_recording *r, struct mem *mem, int fd,
			const struct system_options *options, struct ow_error *err)
{
	struct recorder rec = { .mem = mem, .r = r, .options = options, .self = getpid() };
	int64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool written;

	*r = (struct system_recording){ .mem = mem, .no_unwind = !OPWATCH_HAVE_LIBDW };
	rec.begin_ns = steady_ns();
	rec.to_wall_ns = clock_ns(CLOCK_REALTIME) - rec.begin_ns;
	rec.period_ns = 1000000000u / options->hz;
	OW_TRY(system_events_open(&rec.events, mem, options->hz, !options->no_waits, err));
	map_init(&rec.target_map, mem);
	map_init(&rec.absent_map, mem);
	map_init(&rec.sum_map, mem);
	process_table_init(&rec.table, mem);
	perf_stream_begin(&rec.stream, mem, fd, options->limit, rec.period_ns,
			  rec.begin_ns + rec.to_wall_ns, rec.begin_ns);
	put_all_processes(&rec);
	record_all(&rec);
	written = perf_stream_end(&rec.stream);
	r->failure = written ? 0 : rec.stream.failure;
	r->cpus = rec.events.cpus;
	r->no_waits = rec.events.no_waits;
	memcpy(r->why, rec.events.why, sizeof(r->why));
	r->elapsed_ns = steady_ns() - rec.begin_ns;
	r->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	release(&rec);
	return rec.no_memory ? error_no_memory(err) : OW_OK;
}

void system_recording_release(struct system_recording *r)
{
	vec_free(r->mem, r->uses, r->use_cap);
	vec_free(r->mem, r->hosts, r->host_cap);
	vec_free(r->mem, r->host_ns, r->host_ns_cap);
}
