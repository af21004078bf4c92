/*
 * timeline_memory.c: the memory counters of the graph timeline: per accelerator, what its allocator
 * had in use over time, and which ops held most of it.
 *
 * tfprof asks every op for its live bytes at every sample. Here the samples are swept in time order:
 * all values that any op ever holds are ranked once (largest first, then by name), a set of ranks says
 * which of them hold now, and the largest that still fit are found by walking that set.
 */
#include "sink/timeline/timeline_memory.h"

#include "base/vec.h"

#define TOP_COUNT 10
#define SAMPLE_GAP_NS 100000 /* samples closer than this are not drawn */
#define NONE UINT32_MAX

#define BIT_LEVELS 6 /* levels of a set of 2^32 bits: 64^6 > 2^32 */

struct bits {
	uint64_t *words[BIT_LEVELS]; /* a bit of level n + 1 is set if a word of level n is not 0 */
	size_t counts[BIT_LEVELS];
	unsigned levels;
};

static bool bits_init(struct bits *bits, struct arena *arena, size_t size)
{
	*bits = (struct bits){ 0 };
	do {
		size = (size + 63) / 64;
		bits->counts[bits->levels] = size;
		bits->words[bits->levels] = ARENA_ARRAY(arena, uint64_t, size + 1);
		if (!bits->words[bits->levels])
			return false;
		bits->levels++;
	} while (size > 1);
	return true;
}

static void bits_set(struct bits *bits, uint32_t at)
{
	for (unsigned level = 0; level < bits->levels; level++, at >>= 6)
		bits->words[level][at >> 6] |= 1ull << (at & 63);
}

static void bits_clear(struct bits *bits, uint32_t at)
{
	for (unsigned level = 0; level < bits->levels; level++, at >>= 6) {
		bits->words[level][at >> 6] &= ~(1ull << (at & 63));
		if (bits->words[level][at >> 6])
			return;
	}
}

/* The first number >= `at` in the set, or NONE. */
static uint32_t bits_next(const struct bits *bits, uint32_t at)
{
	for (unsigned level = 0; level < bits->levels; level++) {
		uint64_t rest;

		if (at >> 6 >= bits->counts[level])
			return NONE;
		rest = bits->words[level][at >> 6] >> (at & 63);
		if (rest) {
			at += (uint32_t)__builtin_ctzll(rest);
			while (level--)
				at = at * 64 + (uint32_t)__builtin_ctzll(bits->words[level][at]);
			return at;
		}
		at = (at >> 6) + 1;
	}
	return NONE;
}

struct holder {
	str_id device;
	op_id op;
	uint32_t op_step;
	uint32_t order; /* position of the op in the walk */
};

struct timeline_memory {
	struct timeline *t;
	const struct model *m;
	struct holder *holders; /* sorted by device, then by order */
	uint32_t count;
	size_t cap;
	int64_t first_pid;
};

struct sample {
	int64_t ts, in_use;
	uint32_t order;
};

/* From time ts on, a holder has `value` bytes. */
struct point {
	int64_t ts, value;
	uint32_t holder; /* rank of the holder's name */
	/* index among all points sorted by value; NONE if the value is not positive */
	uint32_t rank;
};

/* State while the counters of one device are made. */
struct sweep {
	struct timeline_memory *memory;
	const struct model *m;
	struct holder *holders; /* sorted by name */
	uint32_t holder_count;
	struct arena arena;

	struct sample *samples;
	size_t sample_count;
	struct point *points;
	size_t point_count;
	/* points with positive values, sorted by value (descending), then by name */
	struct point **ranked;
	uint32_t ranked_count;
	uint32_t *active; /* for each holder: the rank of the point that is valid now, or NONE */
	struct bits live;
};

static int compare_holders(const void *a, const void *b, void *model)
{
	const struct holder *x = a, *y = b;
	int order = x->device.v == y->device.v
			    ? 0
			    : str_cmp(model_str(model, x->device), model_str(model, y->device));

	return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

ow_status timeline_memory_new(struct timeline *t, const struct tracked *tracked, uint32_t count,
			      struct timeline_memory **memory)
{
	const struct model *m = t->tree->model;
	struct timeline_memory *mem = mem_zalloc(t->mem, sizeof(*mem));

	*memory = mem;
	if (!mem)
		return error_no_memory(t->err);
	mem->t = t;
	mem->m = m;
	if (!vec_reserve(t->mem, mem->holders, mem->cap, (size_t)count + 1)) {
		timeline_memory_free(mem);
		return error_no_memory(t->err);
	}
	for (uint32_t i = 0; i < count; i++) {
		str_id device = m->op.device[tracked[i].op.v];

		if (!str_has(model_str(m, device), STR("cpu")))
			mem->holders[mem->count++] =
				(struct holder){ device, tracked[i].op, tracked[i].op_step, i };
	}
	if (mem->count)
		qsort_r(mem->holders, mem->count, sizeof(*mem->holders), compare_holders,
			(void *)(uintptr_t)m);
	return OW_OK;
}

void timeline_memory_free(struct timeline_memory *memory)
{
	if (memory->holders)
		mem_free(memory->t->mem, memory->holders, memory->cap * sizeof(*memory->holders));
	mem_free(memory->t->mem, memory, sizeof(*memory));
}

/* The end of the holders of the same device as holder `first`. */
static uint32_t group_end(const struct timeline_memory *memory, uint32_t first)
{
	uint32_t end = first;

	while (end < memory->count &&
	       memory->holders[end].device.v == memory->holders[first].device.v)
		end++;
	return end;
}

void timeline_memory_names(struct timeline_memory *memory)
{
	struct timeline *t = memory->t;

	memory->first_pid = t->next_pid;
	for (uint32_t i = 0; i < memory->count; i = group_end(memory, i)) {
		struct str device = model_str(memory->m, memory->holders[i].device);

		timeline_process(t, t->next_pid++, "mem usage on:", device, "");
		timeline_process(t, t->next_pid++, "mem usage on:", device, " allocations");
	}
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Collects the samples in time order; of several at one time the last one in the walk is kept. */
static bool gather_samples(struct sweep *s)
{
	const struct model *m = s->m;
	size_t room = 1, kept = 0;
	uint32_t first;

	for (uint32_t i = 0; i < s->holder_count; i++)
		room += model_memory_of(m, s->holders[i].op_step, &first);
	s->samples = ARENA_ARRAY(&s->arena, struct sample, room);
	if (!s->samples)
		return false;
	for (uint32_t i = 0; i < s->holder_count; i++) {
		uint32_t count = model_memory_of(m, s->holders[i].op_step, &first);

		for (uint32_t row = first; row < first + count; row++)
			if (m->memory.ts_ns[row] > 0) {
				s->samples[s->sample_count] =
					(struct sample){ m->memory.ts_ns[row],
							 COLUMN_GET(m->memory.in_use, row),
							 (uint32_t)s->sample_count };
				s->sample_count++;
			}
	}
	qsort(s->samples, s->sample_count, sizeof(*s->samples), compare_samples);
	for (size_t i = 0; i < s->sample_count; i++) {
		if (kept && s->samples[kept - 1].ts == s->samples[i].ts)
			kept--;
		s->samples[kept++] = s->samples[i];
	}
	s->sample_count = kept;
	return true;
}

static int compare_names(const void *a, const void *b, void *model)
{
	const struct model *m = model;
	const struct holder *x = a, *y = b;

	return str_cmp(model_str(m, m->op.name[x->op.v]), model_str(m, m->op.name[y->op.v]));
}

/* The first row of alloc whose op_step is this one or a later one. */
static uint32_t alloc_from(const struct model *m, uint32_t op_step)
{
	uint32_t low = 1, high = MAX(m->alloc.count, 1);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (m->alloc.op_step[middle] < op_step)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int64_t step_persistent(const struct model *m, uint32_t op_step)
{
	uint32_t first, count = model_memory_of(m, op_step, &first);
	int64_t sum = 0;

	for (uint32_t row = first; row < first + count; row++)
		sum = wrap_add(sum, COLUMN_GET(m->memory.accelerator_persistent, row));
	return sum;
}

/* The persistent bytes of an op, over all steps. */
static int64_t persistent(const struct model *m, op_id op)
{
	int64_t most = 0;

	for (uint32_t i = 0; i < m->op.step_count[op.v]; i++)
		most = MAX(most, step_persistent(m, m->op.step_first[op.v] + i));
	return most;
}

static int compare_points(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->holder < y->holder ? -1 : x->holder > y->holder;
}

/* Turns changes of bytes into running sums, one for each time. */
static size_t accumulate(struct point *points, size_t count)
{
	size_t kept = 0;
	int64_t sum = 0;

	qsort(points, count, sizeof(*points), compare_points);
	for (size_t i = 0; i < count; i++) {
		sum = wrap_add(sum, points[i].value);
		if (!kept || points[kept - 1].ts != points[i].ts)
			points[kept++] = points[i];
		points[kept - 1].value = sum;
	}
	return kept;
}

static bool gather_points(struct sweep *s)
{
	const struct model *m = s->m;
	size_t room = 1;

	for (uint32_t i = 0; i < s->holder_count; i++)
		room += 1 + alloc_from(m, s->holders[i].op_step + 1) -
			alloc_from(m, s->holders[i].op_step);
	s->points = ARENA_ARRAY(&s->arena, struct point, room);
	if (!s->points)
		return false;
	for (uint32_t i = 0; i < s->holder_count; i++) {
		struct point *points = s->points + s->point_count;
		uint32_t row = alloc_from(m, s->holders[i].op_step);
		size_t count = 0;

		points[count++] = (struct point){ 0, persistent(m, s->holders[i].op), i, NONE };
		for (; row < m->alloc.count && m->alloc.op_step[row] == s->holders[i].op_step;
		     row++)
			points[count++] =
				(struct point){ m->alloc.ts_ns[row], m->alloc.size[row], i, NONE };
		s->point_count += accumulate(points, count);
	}
	qsort(s->points, s->point_count, sizeof(*s->points), compare_points);
	return true;
}

static int compare_values(const void *a, const void *b)
{
	const struct point *x = *(const struct point *const *)a;
	const struct point *y = *(const struct point *const *)b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->holder < y->holder ? -1 : x->holder > y->holder;
}

static bool rank_points(struct sweep *s)
{
	s->ranked = ARENA_ARRAY(&s->arena, struct point *, s->point_count + 1);
	s->active = ARENA_ARRAY(&s->arena, uint32_t, (size_t)s->holder_count + 1);
	if (!s->ranked || !s->active)
		return false;
	for (size_t i = 0; i < s->point_count; i++)
		if (s->points[i].value > 0)
			s->ranked[s->ranked_count++] = &s->points[i];
	qsort(s->ranked, s->ranked_count, sizeof(*s->ranked), compare_values);
	for (uint32_t i = 0; i < s->ranked_count; i++)
		s->ranked[i]->rank = i;
	for (uint32_t i = 0; i < s->holder_count; i++)
		s->active[i] = NONE;
	return bits_init(&s->live, &s->arena, s->ranked_count);
}

static void apply_point(struct sweep *s, const struct point *point)
{
	uint32_t *active = &s->active[point->holder];

	if (*active != NONE)
		bits_clear(&s->live, *active);
	*active = point->rank;
	if (*active != NONE)
		bits_set(&s->live, *active);
}

static void put_megabytes(struct writer *w, int64_t bytes)
{
	double value = (double)bytes / 1000000.0;
	char text[40];

	snprintf(text, sizeof(text), "%.15g", value);
	if (strtod(text, NULL) != value)
		snprintf(text, sizeof(text), "%.17g", value);
	writer_puts(w, text);
}

/* The first rank whose value is at most `bytes`. */
static uint32_t rank_at_most(const struct sweep *s, int64_t bytes)
{
	uint32_t low = 0, high = s->ranked_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->ranked[middle]->value > bytes)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Finds the largest live values that together fit into `bytes`, at most TOP_COUNT. If a value is too large, equal
 * values are skipped, too; smaller ones may still fit. */
static unsigned find_top(const struct sweep *s, int64_t *bytes, const struct point **top)
{
	unsigned count = 0;
	uint32_t rank = 0;

	while (count < TOP_COUNT) {
		rank = bits_next(&s->live, MAX(rank, rank_at_most(s, *bytes)));
		if (rank == NONE)
			break;
		top[count++] = s->ranked[rank];
		*bytes -= s->ranked[rank]->value;
		rank++;
	}
	return count;
}

static void open_counter(struct timeline *t)
{
	timeline_next(t);
	writer_puts(&t->w, "{\"args\":{");
}

static void close_counter(struct timeline *t, const char *name, int64_t pid, int64_t ts)
{
	writer_printf(&t->w,
		      "},\"cat\":\"Memory\",\"name\":\"%s\",\"ph\":\"C\",\"pid\":%" PRId64
		      ",\"tid\":0,\"ts\":",
		      name, pid);
	writer_micros(&t->w, ts);
	writer_char(&t->w, '}');
}

static void put_top(struct sweep *s, int64_t bytes)
{
	struct writer *w = &s->memory->t->w;
	const struct point *top[TOP_COUNT];
	unsigned count = find_top(s, &bytes, top);

	writer_printf(w, "\"Not Displayed\":\"%.2f MB\"", (double)bytes / 1000000.0);
	for (unsigned i = count ? 0 : 1; i < TOP_COUNT; i++) {
		writer_printf(w, ",\"Top Allocation %02u\":\"", i);
		if (i < count) {
			op_id op = s->holders[top[i]->holder].op;

			put_megabytes(w, top[i]->value);
			writer_puts(w, " MB from ");
			writer_json_ascii(w, model_str(s->m, s->m->op.name[op.v]));
		} else {
			writer_puts(w, "N/A");
		}
		writer_char(w, '"');
	}
}

static void put_sample(struct sweep *s, const struct sample *sample, int64_t pid)
{
	struct timeline *t = s->memory->t;

	open_counter(t);
	writer_puts(&t->w, "\"Allocator Bytes in Use\":");
	writer_int(&t->w, sample->in_use);
	close_counter(t, "Allocated Bytes", pid, sample->ts);
	open_counter(t);
	put_top(s, sample->in_use);
	close_counter(t, "Top Allocations", pid + 1, sample->ts);
}

/* Writes the samples of a device; returns the largest number of bytes in use. */
static int64_t put_samples(struct sweep *s, int64_t pid)
{
	int64_t last = 0, most = 0;
	size_t point = 0;

	for (size_t i = 0; i < s->sample_count && s->memory->t->w.status == OW_OK; i++) {
		const struct sample *sample = &s->samples[i];

		most = MAX(most, sample->in_use);
		if (sample->ts - last < SAMPLE_GAP_NS)
			continue;
		last = sample->ts;
		for (; point < s->point_count && s->points[point].ts < sample->ts; point++)
			apply_point(s, &s->points[point]);
		put_sample(s, sample, pid);
	}
	return most;
}

static void report_peak(struct timeline *t, struct str device, int64_t bytes)
{
	struct buf line;

	if (!str_has(device, STR("gpu")) && !str_has(device, STR("sycl")))
		return;
	buf_init(&line, t->mem);
	buf_add_str(&line, device);
	buf_printf(&line, " peak memory: %.2f MB", (double)bytes / 1000000.0);
	if (line.failed)
		writer_fail(&t->w, error_no_memory(t->err));
	else
		timeline_stdout(t, buf_str(&line));
	buf_release(&line);
}

static void put_device(struct timeline_memory *memory, uint32_t first, uint32_t end, int64_t pid)
{
	struct timeline *t = memory->t;
	struct sweep s = { .memory = memory,
			   .m = memory->m,
			   .holders = memory->holders + first,
			   .holder_count = end - first };
	bool ok;

	arena_init(&s.arena, t->mem);
	/* samples are collected in the order of the walk, so before the sort by name */
	ok = gather_samples(&s);
	qsort_r(s.holders, s.holder_count, sizeof(*s.holders), compare_names,
		(void *)(uintptr_t)memory->m);
	if (ok && gather_points(&s) && rank_points(&s))
		report_peak(t, model_str(memory->m, s.holders[0].device), put_samples(&s, pid));
	else
		writer_fail(&t->w, error_no_memory(t->err));
	arena_release(&s.arena);
}

void timeline_memory_counters(struct timeline_memory *memory)
{
	int64_t pid = memory->first_pid;

	for (uint32_t i = 0; i < memory->count && memory->t->w.status == OW_OK; pid += 2) {
		uint32_t end = group_end(memory, i);

		put_device(memory, i, end, pid);
		i = end;
	}
}
