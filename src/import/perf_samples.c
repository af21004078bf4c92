/*
 * perf_samples.c: rows from the samples of perf.data, see perf_data.h. A file has its records by processor. What an
 * address means depends on what was mapped at that time, so samples are taken up again in the order of these
 * changes, when all are known; among themselves they need no order, and the freeze gives them one.
 */
#include "import/perf_data.h"

#include "import/trace_sort.h"

#define MISC_MODE 7
#define AHEAD 12      /* rows whose call chains are fetched */
#define SAMPLE_MIN 24 /* bytes of a short one */
#define GROUP_MAX 256 /* counters that are read together */

/* ---- while reading ---- */

/* How many more samples there will be, if the rest of the file is like what was read of it: rows that do not move are cheaper. */
static uint32_t expected(const struct perf_file *f)
{
	uint64_t done = f->at > f->data_at ? f->at - f->data_at : 0;
	uint64_t left = f->data_end > f->at ? f->data_end - f->at : 0;
	double more = done ? (double)perf_sample_count(f) / (double)done * (double)left : 0;

	if (f->mem->limit) /* then only what is needed for sure */
		return 1;
	return (uint32_t)MAX(MIN(more, (double)left / SAMPLE_MIN), 1);
}

/* As builder_add_sample does, but for the columns only that samples of perf have: there are millions. */
static inline ow_status add_row(struct perf_file *f, const struct sample_row *row, uint32_t event)
{
	struct sample_table *s = &f->b->m->sample;
	uint32_t at = s->count;

	if (OW_UNLIKELY(at == s->cap) && !builder_grow(f->b, TABLE_sample, expected(f)))
		return f->b->status;
	if (OW_UNLIKELY(!s->cpu) && row->cpu &&
	    !builder_need_column(f->b, TABLE_sample, offsetof(struct sample_table, cpu)))
		return f->b->status;
	at = f->later[f->later_count].row = s->count; /* the first of a table is its second row */
	s->ts_ns[at] = row->ts_ns;
	s->weight[at] = row->weight;
	s->metric[at] = (metric_id){ event };
	s->stack[at] = (stack_id){ 0 };
	s->track[at] = row->track;
	if (s->cpu)
		s->cpu[at] = row->cpu;
	s->count = at + 1;
	return perf_chain_later(f) ? OW_OK : builder_fail(f->b, error_no_memory(f->ctx->err));
}

/* What is in a sample by its place; *event is who wrote it, and the layout its. */
static const struct perf_attr *attr_of(const struct perf_file *f, const unsigned char *body,
				       size_t size, uint32_t *event)
{
	const struct perf_attr *attr;

	*event = 0;
	if (!f->event_count)
		return NULL;
	attr = &f->events[0].attr;
	if (attr->layout.size > size)
		return NULL;
	if (f->event_count == 1 || attr->layout.id == PERF_ABSENT)
		return attr;
	*event = perf_event_of(f, perf_u64(body + attr->layout.id, f->swap), 0);
	attr = &f->events[*event].attr;
	return attr->layout.size > size ? NULL : attr;
}

static bool find_thread(struct perf_file *f, const unsigned char *p, uint8_t place, int32_t *pid,
			uint32_t *thread)
{
	const struct perf_thread *t;
	int32_t tid = -1;

	*pid = -1;
	if (place != PERF_ABSENT) {
		*pid = (int32_t)perf_u32(p + place, f->swap);
		tid = (int32_t)perf_u32(p + place + 4, f->swap);
	}
	t = perf_space_thread(&f->space, *pid, tid);
	*thread = t ? (uint32_t)(t - f->space.threads) : 0;
	return t;
}

/* What a counter stood at in the sample before; 0 at first. */
static uint64_t *last_read(struct perf_file *f, uint64_t id)
{
	uint64_t hash = map_hash_u64(id, 37);
	void *reads = f->reads;

	for (struct map_iter it = map_find(&f->read_map, hash); it.value;
	     it = map_next(&f->read_map, it))
		if (f->reads[it.value - 1].id == id)
			return &f->reads[it.value - 1].value;
	if (f->read_count >= UINT32_MAX - 1 ||
	    !mem_grow(f->mem, &reads, &f->read_cap, f->read_count + 1, sizeof(*f->reads)))
		return NULL;
	f->reads = reads;
	f->reads[f->read_count++] = (struct perf_value){ .id = id };
	if (!map_add(&f->read_map, hash, (uint32_t)f->read_count))
		return NULL;
	return &f->reads[f->read_count - 1].value;
}

/* `perf record -e '{a,b}:S'`: a sample of one event tells what each of its group counted since the one before. */
static ow_status add_group(struct perf_file *f, const struct perf_attr *attr,
			   struct perf_bytes rest, struct sample_row *row)
{
	const struct perf_later later = f->later[f->later_count];
	struct perf_value values[GROUP_MAX];
	size_t count = perf_take_values(attr, &rest, values, GROUP_MAX);

	if (!count)
		perf_note_bad(f);
	for (size_t i = 0; i < count; i++) {
		uint32_t event = perf_event_of(f, values[i].id, UINT32_MAX);
		uint64_t *last = last_read(f, values[i].id), more;

		if (!last)
			return builder_fail(f->b, error_no_memory(f->ctx->err));
		more = values[i].value - *last;
		*last = values[i].value;
		row->weight = (int64_t)MIN(more, (uint64_t)INT64_MAX);
		f->later[f->later_count] = later;
		if (more && event != UINT32_MAX)
			OW_TRY(add_row(f, row, event));
	}
	return OW_OK;
}

ow_status perf_sample_read(struct perf_file *f, const unsigned char *record, size_t size)
{
	const unsigned char *p = record + 8, *chain = NULL;
	uint32_t event, thread, cpu;
	struct perf_later *later;
	const struct perf_attr *attr = attr_of(f, p, size - 8, &event);
	const struct perf_layout *l = attr ? &attr->layout : NULL;
	uint64_t count = 0, period, time;
	struct sample_row row;
	int32_t pid;

	if (!attr ||
	    (attr->sample_type & PERF_SAMPLE_REST &&
	     !perf_sample_rest(attr,
			       (struct perf_bytes){ p + l->size, record + size, f->swap, false },
			       &chain, &count))) {
		perf_note_bad(f);
		return OW_OK;
	}
	if (!count && l->ip != PERF_ABSENT) {
		chain = p + l->ip;
		count = 1;
	}
	if (!find_thread(f, p, l->tid, &pid, &thread))
		return builder_fail(f->b, error_no_memory(f->ctx->err));
	later = &f->later[f->later_count];
	later->words = chain;
	later->count = (uint16_t)count;
	later->pid = pid;
	later->mode = (uint8_t)(perf_u16(record + 4, f->swap) & MISC_MODE);
	time = l->time == PERF_ABSENT ? UINT64_MAX : perf_u64(p + l->time, f->swap);
	if (l->period != PERF_ABSENT)
		period = perf_u64(p + l->period, f->swap);
	else
		period = attr->flags & PERF_FLAG_FREQ ? 1 : MAX(attr->sample_period, 1);
	cpu = l->cpu == PERF_ABSENT ? UINT32_MAX : perf_u32(p + l->cpu, f->swap);
	row = (struct sample_row){ .ts_ns = time <= INT64_MAX ? (int64_t)time : TIME_UNKNOWN,
				   .track = { thread },
				   .cpu = cpu < INT32_MAX ? (int32_t)cpu + 1 : 0 };
	row.weight = (int64_t)MIN(period, (uint64_t)INT64_MAX);
	if (OW_LIKELY(!perf_attr_reads(attr)))
		return add_row(f, &row, event);
	return add_group(f, attr, (struct perf_bytes){ p + l->size, record + size, f->swap, false },
			 &row);
}

/* ---- what they mean ---- */

static bool apply(struct perf_file *f, const struct change *c)
{
	switch (c->kind) {
	case CHANGE_MAP:
		return perf_space_map(&f->space, c->pid, &c->map);
	case CHANGE_COMM:
	case CHANGE_EXEC:
		return perf_space_comm(&f->space, c->pid, c->tid, c->map.name,
				       c->kind == CHANGE_EXEC);
	case CHANGE_FORK:
		return perf_space_fork(&f->space, c->pid, c->parent_pid, c->tid, c->parent_tid);
	}
	return true;
}

static metric_id make_metric(struct perf_file *f, struct perf_event *event)
{
	bool clock = event->attr.type == 1 && event->attr.config <= 1;
	struct str name = model_str(f->b->m, event->name);
	char text[40];

	perf_attr_name(&event->attr, text);
	clock = clock || str_eq(name, STR("offcpu-time")); /* perf record --off-cpu */
	event->metric = builder_metric(f->b, name.len ? name : str_from(text),
				       clock ? STR("ns") : STR("count"));
	return event->metric;
}

metric_id perf_event_metric(struct perf_file *f, uint32_t event)
{
	struct perf_event *e = &f->events[event];

	return e->metric.v ? e->metric : make_metric(f, e);
}

/* Found once per thread, until somebody has a new name. */
static track_id make_track(struct perf_file *f, struct perf_thread *t)
{
	str_id comm, process;

	comm = perf_space_name(&f->space, t->pid, t->tid);
	process = perf_space_name(&f->space, t->pid, t->pid);
	if (!comm.v) /* the idle threads never say a name */
		comm = t->pid ? builder_cstr(f->b, ":unknown") : builder_cstr(f->b, "swapper");
	t->track_at = f->space.names;
	t->track = builder_track(f->b, &(struct track_row){ .name = comm,
							    .process = process.v ? process : comm,
							    .pid = t->pid,
							    .tid = t->tid,
							    .kind = TRACK_HOST,
							    .source = f->b->source });
	return t->track;
}

track_id perf_thread_track(struct perf_file *f, uint32_t thread)
{
	struct perf_thread *t = &f->space.threads[thread];

	return t->track.v && t->track_at == f->space.names ? t->track : make_track(f, t);
}

static inline void resolve(struct perf_file *f, uint32_t row)
{
	struct sample_table *s = &f->b->m->sample;
	struct perf_event *event = &f->events[s->metric[row].v];
	struct perf_thread *t = &f->space.threads[s->track[row].v];
	const struct perf_chain *c = perf_chain_at(f, s->stack[row].v);

	s->metric[row] = event->metric.v ? event->metric : make_metric(f, event);
	s->stack[row] = c->at > f->space.changes ? c->stack : perf_chain_stack(f, s->stack[row].v);
	s->track[row] = t->track.v && t->track_at == f->space.names ? t->track : make_track(f, t);
}

/* ---- in which order ---- */

/* The changes in order of time, and how many of them a sample has behind it. */
struct order {
	struct trace_ref *changes;
	size_t count;
	size_t now; /* the number between the last two that were asked for, from … */
	int64_t from, to;
	bool sorted;	 /* that number falls somewhere from row to row */
	size_t most;	 /* then: the number that most rows have … */
	uint32_t *start; /* … where the rows of each number begin … */
	uint32_t *rows;	 /* … and the rows, but for those with that number */
	size_t row_count;
};

static size_t find_change(struct order *o, int64_t ts)
{
	size_t low = 0, high = o->count;

	if (ts == TIME_UNKNOWN)
		return o->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (o->changes[middle].ts <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	o->from = low ? o->changes[low - 1].ts : TIME_UNKNOWN + 1;
	o->to = low < o->count ? o->changes[low].ts : INT64_MAX;
	return o->now = low;
}

static inline size_t changes_before(struct order *o, int64_t ts)
{
	return ts >= o->from && ts < o->to ? o->now : find_change(o, ts);
}

/* Whether rows can be taken as they are. */
static bool is_in_order(const struct perf_file *f, struct order *o)
{
	const struct sample_table *s = &f->b->m->sample;
	size_t last = 0;

	for (uint32_t i = f->first_sample; i < s->count; i++) {
		size_t here = changes_before(o, s->ts_ns[i]);

		if (here < last)
			return false;
		last = here;
	}
	return true;
}

/* How many rows there are of each number; in `start`, one place further on. */
static void count_rows(const struct perf_file *f, struct order *o)
{
	const struct sample_table *s = &f->b->m->sample;

	for (uint32_t i = f->first_sample; i < s->count; i++)
		o->start[changes_before(o, s->ts_ns[i]) + 1]++;
	for (size_t i = 1; i <= o->count; i++)
		o->most = o->start[i + 1] > o->start[o->most + 1] ? i : o->most;
	o->row_count = perf_sample_count(f) - o->start[o->most + 1];
	o->start[o->most + 1] = 0;
	for (size_t i = 1; i <= o->count + 1; i++)
		o->start[i] += o->start[i - 1];
}

/* A recording mostly has long stretches in which nothing changes: the rows of the longest need no list. */
static bool sort_rows(const struct perf_file *f, struct order *o)
{
	const struct sample_table *s = &f->b->m->sample;

	o->start = mem_zalloc(f->mem, (o->count + 2) * sizeof(*o->start));
	if (!o->start)
		return false;
	count_rows(f, o);
	o->rows = mem_alloc(f->mem, o->row_count * sizeof(*o->rows));
	if (!o->rows)
		return false;
	for (uint32_t i = f->first_sample; i < s->count; i++) {
		size_t here = changes_before(o, s->ts_ns[i]);

		if (here != o->most)
			o->rows[o->start[here]++] = i;
	}
	return o->sorted = true;
}

static bool apply_up_to(struct perf_file *f, const struct order *o, size_t *next, size_t end)
{
	for (; *next < end; ++*next)
		if (!apply(f, &f->changes[o->changes[*next].row]))
			return false;
	return true;
}

/* The rows as they are; only: those with this number, SIZE_MAX for all. */
static bool resolve_rows(struct perf_file *f, struct order *o, size_t *next, size_t only)
{
	const struct sample_table *s = &f->b->m->sample;
	uint32_t end = s->count;

	for (uint32_t row = f->first_sample; row < end; row++) {
		size_t behind = changes_before(o, s->ts_ns[row]);

		if (only != SIZE_MAX && behind != only)
			continue;
		if (row + AHEAD < end)
			__builtin_prefetch(perf_chain_at(f, s->stack[row + AHEAD].v));
		if (OW_UNLIKELY(behind > *next) && !apply_up_to(f, o, next, behind))
			return false;
		resolve(f, row);
	}
	return true;
}

/* By number. Where the rows of one begin was moved to where they end. */
static bool resolve_sorted(struct perf_file *f, struct order *o, size_t *next)
{
	size_t at = 0;

	for (size_t number = 0; number <= o->count; number++) {
		size_t end = number == o->most ? at : o->start[number];

		if (end == at && number != o->most)
			continue;
		if (!apply_up_to(f, o, next, number))
			return false;
		for (; at < end; at++)
			resolve(f, o->rows[at]);
		if (number == o->most && !resolve_rows(f, o, next, number))
			return false;
	}
	return true;
}

/* To the wall's clock, when nobody needs perf's any more. */
static void shift_times(struct perf_file *f)
{
	struct sample_table *s = &f->b->m->sample;

	for (uint32_t i = f->first_sample; i < s->count; i++)
		if (s->ts_ns[i] != TIME_UNKNOWN)
			s->ts_ns[i] = wrap_add(s->ts_ns[i], f->clock_offset);
}

static ow_status resolve_all(struct perf_file *f, struct order *o)
{
	size_t next = 0;
	bool ok = o->sorted ? resolve_sorted(f, o, &next) : resolve_rows(f, o, &next, SIZE_MAX);

	/* the rest for names of threads without samples */
	if (!ok || !apply_up_to(f, o, &next, o->count))
		return builder_fail(f->b, error_no_memory(f->ctx->err));
	if (f->has_clock)
		shift_times(f);
	return f->b->status;
}

ow_status perf_samples_resolve(struct perf_file *f)
{
	size_t size = 2 * (f->change_count + 1) * sizeof(struct trace_ref);
	struct order o = {
		.count = f->change_count, .changes = mem_alloc(f->mem, size), .from = 1, .to = 0
	};
	ow_status status;

	if (!o.changes || f->change_count >= UINT32_MAX) {
		mem_free(f->mem, o.changes, size);
		return builder_fail(f->b, error_no_memory(f->ctx->err));
	}
	for (uint32_t i = 0; i < o.count; i++)
		o.changes[i] = (struct trace_ref){
			.ts = (int64_t)MIN(f->changes[i].time, (uint64_t)INT64_MAX), .row = i
		};
	trace_sort(o.changes, o.count, o.changes + o.count);
	if (is_in_order(f, &o) || sort_rows(f, &o))
		status = resolve_all(f, &o);
	else
		status = builder_fail(f->b, error_no_memory(f->ctx->err));
	mem_free(f->mem, o.start, o.start ? (o.count + 2) * sizeof(*o.start) : 0);
	mem_free(f->mem, o.rows, o.rows ? o.row_count * sizeof(*o.rows) : 0);
	mem_free(f->mem, o.changes, size);
	return status;
}
