/*
 * perf_resolve.c: makes rows of the model when all records of perf.data have been read; called by import_perf_data.c. A
 * file has its records by processor. The meaning of an address depends on the mappings at that time, so runs of samples
 * are split where a mapping changes and resolved in the order of these changes. Then they are written by thread and
 * time, which is the order that the frozen model needs. Time off the processors (`perf record --switch-events`) becomes
 * the metric "off-cpu", values of counters (`--stat`) become counters. These records do not say where in the code a
 * thread waited.
 */
#include "import/perf/perf_data.h"

#include "base/vec.h"
#include "import/chrome/trace_sort.h"

#define AHEAD 12 /* call chains are prefetched for this many rows ahead */

static bool apply_change(struct perf_file *f, const struct perf_change *c)
{
	switch (c->kind) {
	case CHANGE_MAP:
		return perf_space_map(&f->space, c->pid, &c->map);
	case CHANGE_COMM:
		return perf_space_comm(&f->space, c->pid, c->tid, c->map.name);
	case CHANGE_FORK:
		return perf_space_fork(&f->space, c->pid, c->parent_pid, c->tid, c->parent_tid);
	}
	return true;
}

/* The metric of an event; it is added when the event's first sample is resolved. */
static metric_id perf_event_metric(struct perf_file *f, uint32_t event)
{
	struct perf_event *e = &f->events[event];
	bool clock = e->attr.type == 1 && e->attr.config <= 1;
	struct str name = model_str(f->b->m, e->name);
	char text[40];

	if (e->metric.v)
		return e->metric;
	perf_attr_name(&e->attr, text);
	clock = clock || str_eq(name, STR("offcpu-time")); /* the event of perf record --off-cpu */
	e->metric = builder_metric(f->b, name.len ? name : str_from(text),
				   clock ? STR("ns") : STR("count"));
	return e->metric;
}

static track_id make_track(struct perf_file *f, struct perf_thread *t)
{
	str_id comm, process;

	comm = perf_space_name(&f->space, t->pid, t->tid);
	process = perf_space_name(&f->space, t->pid, t->pid);
	if (!comm.v) /* the idle threads never report a name */
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

static track_id perf_thread_track(struct perf_file *f, uint32_t thread)
{
	struct perf_thread *t = &f->space.threads[thread];

	return t->track.v && t->track_at == f->space.names ? t->track : make_track(f, t);
}

/* Changes in order of time, and the runs of samples between them. */
struct order {
	struct trace_ref *changes;
	size_t change_count;
	struct perf_run *runs; /* runs, split where something changes */
	struct trace_ref *refs;
	struct trace_ref *scratch; /* memory for sorting the runs */
	size_t count;
	struct perf_run *placed; /* runs in the order of the rows that they become */
	size_t placed_count, placed_cap;
	uint16_t *events; /* for each sample: its event, if there are several */
};

static int64_t start_of(const struct perf_rows *r, const struct perf_run *run)
{
	return wrap_add(run->from, r->items[run->first].after);
}

/* The number of changes up to a time. */
static size_t changes_before(const struct order *o, int64_t ts)
{
	size_t low = 0, high = o->change_count;

	if (ts == TIME_UNKNOWN)
		return o->change_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (o->changes[middle].ts <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The number of a run's samples before a time. */
static uint32_t samples_before(const struct perf_rows *r, const struct perf_run *run, int64_t ts)
{
	uint64_t after = (uint64_t)ts - (uint64_t)run->from;
	uint32_t low = 0, high = run->count;

	if (after > r->items[run->first + high - 1].after)
		return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->items[run->first + middle].after < after)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Splits runs where something changes and returns their number. Without o->runs it only counts. */
static size_t cut_runs(const struct perf_rows *r, struct order *o)
{
	size_t count = 0;

	for (size_t i = 0; i < r->run_count; i++) {
		struct perf_run rest = r->runs[i];

		while (rest.count) {
			size_t number = changes_before(o, start_of(r, &rest));
			uint32_t some = rest.count;

			if (number < o->change_count)
				some = samples_before(r, &rest, o->changes[number].ts);
			if (o->runs) {
				o->runs[count] = rest;
				o->runs[count].count = some;
				o->refs[count] = (struct trace_ref){ .ts = (int64_t)number,
								     .row = (uint32_t)count };
			}
			count++;
			rest.first += some;
			rest.count -= some;
		}
	}
	return count;
}

static ow_status order_changes(struct perf_file *f, struct order *o)
{
	o->change_count = f->change_count;
	o->changes = mem_alloc(f->mem, 2 * (o->change_count + 1) * sizeof(*o->changes));
	if (!o->changes || f->change_count >= UINT32_MAX)
		return import_no_memory(f->ctx);
	for (uint32_t i = 0; i < o->change_count; i++)
		o->changes[i] = (struct trace_ref){
			.ts = (int64_t)MIN(f->changes[i].time, (uint64_t)INT64_MAX), .row = i
		};
	trace_sort(o->changes, o->change_count, o->changes + o->change_count);
	return OW_OK;
}

static ow_status order_runs(struct perf_file *f, struct order *o)
{
	struct perf_rows *r = &f->rows;

	for (size_t i = 0; i < r->run_count; i++)
		r->runs[i].count =
			(uint32_t)(i + 1 < r->run_count ? r->runs[i + 1].first : r->count) -
			r->runs[i].first;
	o->count = cut_runs(r, o);
	o->runs = mem_alloc(f->mem, o->count * sizeof(*o->runs));
	o->refs = mem_alloc(f->mem, o->count * sizeof(*o->refs));
	o->scratch = mem_alloc(f->mem, o->count * sizeof(*o->scratch));
	if (!o->runs || !o->refs || !o->scratch)
		return import_no_memory(f->ctx);
	cut_runs(r, o);
	trace_sort(o->refs, o->count, o->scratch);
	return OW_OK;
}

static void order_release(struct perf_file *f, struct order *o)
{
	mem_free(f->mem, o->changes, 2 * (o->change_count + 1) * sizeof(*o->changes));
	mem_free(f->mem, o->runs, o->count * sizeof(*o->runs));
	mem_free(f->mem, o->refs, o->count * sizeof(*o->refs));
	mem_free(f->mem, o->scratch, o->count * sizeof(*o->scratch));
	mem_free(f->mem, o->placed, o->placed_cap * sizeof(*o->placed));
	mem_free(f->mem, o->events, f->rows.count * sizeof(*o->events));
}

static void resolve_run(struct perf_file *f, struct order *o, struct perf_run *run)
{
	struct perf_row *rows = f->rows.items;
	size_t end = run->first + (size_t)run->count, last = f->rows.count - 1;
	uint32_t changes = f->space.changes;

	run->thread = perf_thread_track(f, run->thread).v;
	for (size_t i = run->first; i < end; i++) {
		const struct perf_chain *c = perf_chain_at(f, rows[i].chain);

		__builtin_prefetch(perf_chain_at(f, rows[MIN(i + AHEAD, last)].chain));
		if (OW_UNLIKELY(o->events != NULL)) {
			o->events[i] = c->event;
			perf_event_metric(f, c->event);
		}
		rows[i].chain = c->at > changes ? c->stack.v : perf_chain_stack(f, rows[i].chain).v;
	}
}

static ow_status apply_up_to(struct perf_file *f, const struct order *o, size_t *next, size_t end)
{
	for (; *next < end; ++*next)
		if (!apply_change(f, &f->changes[o->changes[*next].row]))
			return import_no_memory(f->ctx);
	return OW_OK;
}

static ow_status resolve_runs(struct perf_file *f, struct order *o)
{
	size_t next = 0;

	if (f->event_count > 1) {
		o->events = mem_alloc(f->mem, f->rows.count * sizeof(*o->events));
		if (!o->events)
			return import_no_memory(f->ctx);
	} else if (f->rows.count) {
		perf_event_metric(f, 0);
	}
	for (size_t i = 0; i < o->count && f->b->status == OW_OK; i++) {
		OW_TRY(apply_up_to(f, o, &next, (size_t)o->refs[i].ts));
		resolve_run(f, o, &o->runs[o->refs[i].row]);
	}
	OW_TRY(f->b->status);
	/* the remaining changes name threads without samples */
	return apply_up_to(f, o, &next, o->change_count);
}

/* Sorts the runs by time, and then by track. */
static void sort_runs(struct perf_file *f, struct order *o)
{
	for (size_t i = 0; i < o->count; i++)
		o->refs[i] = (struct trace_ref){ .ts = start_of(&f->rows, &o->runs[i]),
						 .row = (uint32_t)i };
	trace_sort(o->refs, o->count, o->scratch);
	for (size_t i = 0; i < o->count; i++)
		o->refs[i].ts = o->runs[o->refs[i].row].thread;
	trace_sort(o->refs, o->count, o->scratch);
	for (size_t i = 0; i < o->count; i++)
		o->refs[i].ts = start_of(&f->rows, &o->runs[o->refs[i].row]);
}

static bool comes_before(const struct trace_ref *a, const struct trace_ref *b)
{
	return a->ts != b->ts ? a->ts < b->ts : a->row < b->row;
}

/* A heap of runs that have begun and are not completely placed. */
struct open_runs {
	struct trace_ref *items;
	size_t count;
};

static void open_run(struct open_runs *open, struct trace_ref ref)
{
	size_t at = open->count++;

	for (; at && comes_before(&ref, &open->items[(at - 1) / 2]); at = (at - 1) / 2)
		open->items[at] = open->items[(at - 1) / 2];
	open->items[at] = ref;
}

static struct trace_ref take_open(struct open_runs *open)
{
	struct trace_ref first = open->items[0], last = open->items[--open->count];
	size_t at = 0, next;

	while ((next = 2 * at + 1) < open->count) {
		if (next + 1 < open->count &&
		    comes_before(&open->items[next + 1], &open->items[next]))
			next++;
		if (!comes_before(&open->items[next], &last))
			break;
		open->items[at] = open->items[next];
		at = next;
	}
	open->items[at] = last;
	return first;
}

/* The number of a run's samples that come before another run; at least one. */
static uint32_t count_before(const struct perf_rows *r, const struct perf_run *run, uint32_t row,
			     const struct trace_ref *other)
{
	if (row > other->row)
		return samples_before(r, run, other->ts);
	return other->ts == INT64_MAX ? run->count : samples_before(r, run, other->ts + 1);
}

static bool add_placed(struct perf_file *f, struct order *o, const struct perf_run *run)
{
	bool ok = vec_reserve(f->mem, o->placed, o->placed_cap, o->placed_count + 1);

	if (ok)
		o->placed[o->placed_count++] = *run;
	return ok;
}

/* Places the samples that come before the next run, which is not in the heap yet; NULL: all samples. */
static bool place_open(struct perf_file *f, struct order *o, struct open_runs *open,
		       const struct trace_ref *next)
{
	while (open->count && (!next || comes_before(&open->items[0], next))) {
		struct trace_ref ref = take_open(open);
		struct perf_run *run = &o->runs[ref.row], some = *run;

		if (open->count)
			some.count = count_before(&f->rows, run, ref.row, &open->items[0]);
		if (next)
			some.count = MIN(some.count, count_before(&f->rows, run, ref.row, next));
		if (!add_placed(f, o, &some))
			return false;
		run->first += some.count;
		run->count -= some.count;
		if (!run->count)
			continue;
		ref.ts = start_of(&f->rows, run);
		open_run(open, ref);
	}
	return true;
}

/* Orders runs by track and time. A thread is on one processor at a time, but its runs may overlap: the last samples of one
 * processor may come after the first of the next. */
static ow_status place_runs(struct perf_file *f, struct order *o)
{
	struct open_runs open = { .items = o->scratch };

	sort_runs(f, o);
	for (size_t i = 0; i < o->count; i++) {
		const struct trace_ref *next = i + 1 < o->count ? &o->refs[i + 1] : NULL;

		open_run(&open, o->refs[i]);
		if (next && o->runs[next->row].thread != o->runs[o->refs[i].row].thread)
			next = NULL;
		if (!place_open(f, o, &open, next))
			return import_no_memory(f->ctx);
	}
	return OW_OK;
}

/* Writes times (of the wall clock, if it is known), stacks, tracks and processors. */
static void write_rows(struct perf_file *f, const struct order *o)
{
	struct sample_table *s = &f->b->m->sample;
	uint32_t to = s->count;

	for (size_t i = 0; i < o->placed_count; i++) {
		const struct perf_run *run = &o->placed[i];
		const struct perf_row *rows = &f->rows.items[run->first];
		int64_t from = run->from;

		if (f->has_clock && from != TIME_UNKNOWN)
			from = wrap_add(from, f->clock_offset);
		for (uint32_t k = 0; k < run->count; k++) {
			s->ts_ns[to + k] = wrap_add(from, rows[k].after);
			s->stack[to + k].v = rows[k].chain;
			s->track[to + k].v = run->thread;
		}
		for (uint32_t k = 0; s->cpu && k < run->count; k++)
			s->cpu[to + k] = run->cpu;
		to += run->count;
	}
}

/* Writes metrics and weights. */
static void write_weights(struct perf_file *f, const struct order *o)
{
	struct sample_table *s = &f->b->m->sample;
	uint32_t to = s->count;

	for (size_t i = 0; i < o->placed_count; i++) {
		const struct perf_run *run = &o->placed[i];

		for (uint32_t k = run->first; k < run->first + run->count; k++, to++) {
			const struct perf_event *e = &f->events[o->events ? o->events[k] : 0];

			s->metric[to] = e->metric;
			s->weight[to] =
				f->rows.weights ? f->rows.weights[k] : perf_event_weight(&e->attr);
		}
	}
}

/* Writes the same metric and weight for all rows. */
static void write_one_weight(struct perf_file *f, uint32_t count)
{
	struct sample_table *s = &f->b->m->sample;
	metric_id metric = f->events[0].metric;
	int64_t weight = perf_event_weight(&f->events[0].attr);

	for (uint32_t i = s->count; i < s->count + count; i++)
		s->metric[i] = metric;
	for (uint32_t i = s->count; i < s->count + count; i++)
		s->weight[i] = weight;
}

#define USE_KEPT(f, column, count)                                                                 \
	mem_use_kept((f)->mem, (f)->b->m->sample.column,                                           \
		     (f)->b->m->sample.cap * sizeof(*(f)->b->m->sample.column),                    \
		     (f)->b->m->sample.count * sizeof(*(f)->b->m->sample.column),                  \
		     ((f)->b->m->sample.count + (size_t)(count)) *                                 \
			     sizeof(*(f)->b->m->sample.column))

static ow_status write_samples(struct perf_file *f, struct order *o)
{
	struct sample_table *s = &f->b->m->sample;
	uint32_t count = (uint32_t)f->rows.count;
	size_t cap = f->rows.cap;

	if (!builder_grow(f->b, TABLE_sample, count) ||
	    (f->rows.has_cpu &&
	     !builder_need_column(f->b, TABLE_sample, offsetof(struct sample_table, cpu))))
		return f->b->status;
	OW_TRY(place_runs(f, o));
	write_rows(f, o);
	/* The columns that are still to be written reuse the memory of the samples. */
	mem_free(f->mem, f->rows.items, cap * sizeof(*f->rows.items));
	f->rows.items = NULL;
	f->rows.cap = 0;
	USE_KEPT(f, weight, count);
	USE_KEPT(f, metric, count);
	if (o->events || f->rows.weights)
		write_weights(f, o);
	else
		write_one_weight(f, count);
	s->count += count;
	return OW_OK;
}

ow_status perf_samples_resolve(struct perf_file *f)
{
	struct order o = { 0 };
	ow_status status = order_changes(f, &o);

	if (status == OW_OK)
		status = order_runs(f, &o);
	if (status == OW_OK)
		status = resolve_runs(f, &o);
	if (status == OW_OK && f->rows.count)
		status = write_samples(f, &o);
	order_release(f, &o);
	return status;
}

#define MISC_OUT (1 << 13)
#define MISC_PREEMPTED (1 << 14)

ow_status perf_switch_read(struct perf_file *f, const struct perf_trailer *who, uint16_t misc)
{
	struct perf_switches *s = &f->switches;
	const struct perf_thread *t;

	if (!who->time || who->time > INT64_MAX || who->tid < 0)
		return OW_OK; /* thread or time is unknown */
	t = perf_space_thread(&f->space, who->pid, who->tid);
	if (!t || s->count >= UINT32_MAX - 1 ||
	    !vec_push(f->mem, s->items, s->count, s->cap,
		      (struct perf_switch){ .time = (int64_t)who->time,
					    .thread = (uint32_t)(t - f->space.threads),
					    .out = misc & MISC_OUT,
					    .preempted = misc & MISC_PREEMPTED }))
		return import_no_memory(f->ctx);
	return OW_OK;
}

ow_status perf_count_read(struct perf_file *f, struct perf_bytes b, const struct perf_trailer *who)
{
	int32_t pid = (int32_t)perf_take_u32(&b), tid = (int32_t)perf_take_u32(&b);
	struct perf_switches *s = &f->switches;
	const struct perf_attr *attr = f->event_count ? &f->events[0].attr : NULL;
	const struct perf_thread *t;
	struct perf_value value;
	uint32_t event;

	if (!attr || attr->read_format & PERF_READ_GROUP ||
	    !perf_take_values(attr, &b, &value, 1)) {
		perf_note_bad(f);
		return OW_OK;
	}
	event = perf_event_of(f, value.id ? value.id : who->id, 0);
	t = perf_space_thread(&f->space, pid, tid);
	if (!t ||
	    !vec_push(f->mem, s->counts, s->count_count, s->count_cap,
		      (struct perf_count){ .time = who->time <= INT64_MAX ? (int64_t)who->time : 0,
					   .value = value.value,
					   .thread = (uint32_t)(t - f->space.threads),
					   .event = event }))
		return import_no_memory(f->ctx);
	return OW_OK;
}

void perf_switches_release(struct perf_file *f)
{
	mem_free(f->mem, f->switches.items, f->switches.cap * sizeof(*f->switches.items));
	mem_free(f->mem, f->switches.counts, f->switches.count_cap * sizeof(*f->switches.counts));
}

static stack_id stack_named(struct perf_file *f, const char *name)
{
	struct frame_row row = { .function = builder_cstr(f->b, name) };

	return builder_stack(f->b, (stack_id){ 0 }, builder_frame(f->b, &row));
}

static int64_t wall_of(const struct perf_file *f, int64_t time)
{
	return f->has_clock ? wrap_add(time, f->clock_offset) : time;
}

/* Goes through the switches in order of time. out: for each thread, 1 + the last switch away from its processor. */
static ow_status add_waits(struct perf_file *f, const struct trace_ref *order, uint32_t *out)
{
	struct perf_switches *s = &f->switches;
	stack_id waiting = stack_named(f, "[waiting]"), preempted = stack_named(f, "[preempted]");

	for (size_t i = 0; i < s->count; i++) {
		const struct perf_switch *now = &s->items[order[i].row];
		const struct perf_switch *left =
			out[now->thread] ? &s->items[out[now->thread] - 1] : NULL;

		out[now->thread] = now->out ? order[i].row + 1 : 0;
		if (now->out || !left)
			continue;
		if (!s->metric.v)
			s->metric = builder_metric(f->b, STR("off-cpu"), STR("ns"));
		builder_add_sample(
			f->b, &(struct sample_row){ .ts_ns = wall_of(f, left->time),
						    .weight = now->time - left->time,
						    .metric = s->metric,
						    .stack = left->preempted ? preempted : waiting,
						    .track = perf_thread_track(f, now->thread) });
	}
	return f->b->status;
}

static ow_status resolve_switches(struct perf_file *f)
{
	const struct perf_switches *s = &f->switches;
	size_t size = 2 * s->count * sizeof(struct trace_ref);
	size_t out_size = f->space.thread_count * sizeof(uint32_t);
	struct trace_ref *order = mem_alloc(f->mem, size);
	uint32_t *out = mem_zalloc(f->mem, out_size);
	ow_status status;

	if (order && out) {
		for (uint32_t i = 0; i < s->count; i++)
			order[i] = (struct trace_ref){ .ts = s->items[i].time, .row = i };
		trace_sort(order, s->count, order + s->count);
		status = add_waits(f, order, out);
	} else {
		status = import_no_memory(f->ctx);
	}
	mem_free(f->mem, order, order ? size : 0);
	mem_free(f->mem, out, out ? out_size : 0);
	return status;
}

ow_status perf_switches_resolve(struct perf_file *f)
{
	const struct perf_switches *s = &f->switches;

	for (size_t i = 0; i < s->count_count; i++) {
		const struct perf_count *c = &s->counts[i];

		builder_add_counter(
			f->b,
			&(struct counter_row){
				.track = perf_thread_track(f, c->thread),
				.name = f->b->m->metric.name[perf_event_metric(f, c->event).v],
				.ts_ns = wall_of(f, c->time),
				.value = (double)c->value });
	}
	OW_TRY(f->b->status);
	return s->count ? resolve_switches(f) : OW_OK;
}
