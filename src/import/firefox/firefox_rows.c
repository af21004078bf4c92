/*
 * firefox_rows.c: adds samples, markers and counters of a Firefox profile to the model, for import_firefox.c. Markers are events of
 * their thread; markers of requests overlap, so they get a track of their own beside it.
 */
#include "import/firefox/firefox_profile.h"

#include "base/vec.h"

enum { LANE_THREAD, LANE_REQUESTS };
enum { PHASE_INSTANT, PHASE_INTERVAL, PHASE_START, PHASE_END };

static int64_t add_times(int64_t a, int64_t b)
{
	int64_t sum;

	if (a == FX_NONE || b == FX_NONE || __builtin_add_overflow(a, b, &sum))
		return TIME_UNKNOWN;
	return sum;
}

/* Later or earlier than this from the start of the profile is damage: 31 years. */
#define FAR_NS INT64_C(1000000000000000000)

/* Times of samples: absolute, or differences to the previous sample. */
struct clock {
	const struct fx_column *times, *deltas;
	int64_t sum_ps;
};

static int64_t next_time(struct firefox *f, struct clock *c, size_t i)
{
	int64_t delta, at;

	if (f->untimed)
		return TIME_UNKNOWN;
	if (c->times->count) {
		at = add_times(fx_value(c->times, i), f->base_ns);
	} else {
		delta = fx_value(c->deltas, i);
		if (delta != FX_NONE && c->deltas->scale == 6 &&
		    __builtin_mul_overflow(delta, 1000, &delta))
			delta = FX_NONE;
		if (delta == FX_NONE || __builtin_add_overflow(c->sum_ps, delta, &c->sum_ps)) {
			at = TIME_UNKNOWN;
		} else { /* rounded, because the text has more digits than the clock */
			int64_t half = c->sum_ps < 0 ? -500 : 500, ps;

			at = __builtin_add_overflow(c->sum_ps, half, &ps)
				     ? TIME_UNKNOWN
				     : add_times(ps / 1000, f->base_ns);
		}
	}
	if (at != TIME_UNKNOWN && f->base_ns != FX_NONE &&
	    (at > wrap_add(f->base_ns, FAR_NS) || at < wrap_add(f->base_ns, -FAR_NS)))
		at = TIME_UNKNOWN;
	f->no_time += at == TIME_UNKNOWN;
	return at;
}

static int64_t round_weight(struct firefox *f, int64_t value)
{
	f->rounded += value % FX_MILLION != 0;
	return (value + (value < 0 ? -FX_MILLION / 2 : FX_MILLION / 2)) / FX_MILLION;
}

static int64_t weight_of(struct firefox *f, const struct fx_table *t, size_t i)
{
	const struct fx_column *c = &t->column[SAMPLE_WEIGHT];
	int64_t value;

	if (!c->count)
		c = &t->column[SAMPLE_DURATION];
	value = c->count ? fx_value(c, i) : FX_MILLION;
	if (value == FX_NONE)
		return 0;
	if (t->weight == WEIGHT_MS) /* the column is already in nanoseconds */
		return c->count ? value : f->interval_ns;
	return round_weight(f, value);
}

static metric_id metric_of(struct firefox *f, const char *name, const char *unit)
{
	struct metric_table *metrics = &f->b->m->metric;
	metric_id id = builder_metric(f->b, str_from(name), str_from(unit));

	if (!f->has_default && f->b->status == OW_OK)
		metrics->is_default[id.v] = 1;
	f->has_default = true;
	return id;
}

static metric_id sample_metric(struct firefox *f, enum fx_table_kind kind, const struct fx_table *t)
{
	if (kind == FX_JS_ALLOCATIONS)
		return metric_of(f, "js allocations", "bytes");
	if (kind == FX_NATIVE_ALLOCATIONS)
		return metric_of(f, "native allocations", "bytes");
	if (t->weight == WEIGHT_MS)
		return metric_of(f, "time", "ns");
	return t->weight == WEIGHT_BYTES ? metric_of(f, "bytes", "bytes")
					 : metric_of(f, "samples", "count");
}

/* Returns the processor time since the previous sample. The first sample has none. */
static int64_t cpu_of(const struct firefox *f, const struct fx_table *t, size_t i)
{
	int64_t value = i ? fx_value(&t->column[SAMPLE_CPU], i) : 0;

	if (value <= 0)
		return 0;
	return f->cpu_scale == 3 ? value / 1000 : value / FX_MILLION;
}

static bool any_cpu(const struct firefox *f, const struct fx_table *t)
{
	for (size_t i = 1; i < t->column[SAMPLE_CPU].count; i++)
		if (cpu_of(f, t, i) > 0)
			return true;
	return false;
}

/* Returns whether the thread was idle: Firefox marks frames in which a thread waits for the next
 * event. */
static bool is_idle(const struct firefox *f, size_t category)
{
	return category &&
	       str_eq(model_str(f->b->m, f->categories[category - 1].name), STR("Idle"));
}

static ow_status add_samples(struct firefox *f, enum fx_table_kind kind,
			     const struct fx_stacks *stacks)
{
	const struct fx_table *t = &f->own.table[kind];
	size_t count = t->column[SAMPLE_STACK].count, times;
	struct clock clock = { &t->column[SAMPLE_TIME], &t->column[SAMPLE_DELTA], 0 };
	struct sample_row row = { .track = f->thread.track };
	metric_id metric, cpu = { 0 };
	bool has_cpu;

	if (!count)
		return OW_OK;
	times = MAX(clock.times->count, clock.deltas->count);
	f->unequal += times != count;
	has_cpu = kind == FX_SAMPLES && t->column[SAMPLE_CPU].count;
	if (has_cpu && f->cpu_scale >= 0 &&
	    any_cpu(f, t)) /* the default: waiting threads have no CPU time */
		cpu = metric_of(f, "cpu", "ns");
	metric = sample_metric(f, kind, t);
	if (has_cpu && !cpu.v)
		cpu = f->cpu_scale < 0 ? metric_of(f, "cycles", "count")
				       : metric_of(f, "cpu", "ns");
	OW_TRY(f->b->status);
	for (size_t i = 0; i < count; i++) {
		int64_t stack = fx_index(&t->column[SAMPLE_STACK], i);
		size_t category = 0;

		row.stack = (stack_id){ 0 };
		if (stack >= 0 && (uint64_t)stack < stacks->count) {
			row.stack = stacks->stacks[stack];
			category = stacks->categories[stack];
		}
		f->bad_stacks += stack >= 0 && (uint64_t)stack >= stacks->count;
		row.label = category ? f->categories[category - 1].label : (str_id){ 0 };
		row.ts_ns = next_time(f, &clock, i);
		row.metric = metric;
		row.weight = weight_of(f, t, i);
		f->thread_end = MAX(f->thread_end, row.ts_ns);
		if (category && kind == FX_SAMPLES)
			f->categories[category - 1].sum =
				wrap_add(f->categories[category - 1].sum, row.weight);
		if (kind == FX_SAMPLES && is_idle(f, category)) {
			f->idle++;
			continue;
		}
		builder_add_sample(f->b, &row);
		row.metric = cpu;
		row.weight = cpu.v ? cpu_of(f, t, i) : 0;
		if (row.weight)
			builder_add_sample(f->b, &row);
	}
	f->samples += (int64_t)count;
	return f->b->status;
}

struct marker {
	int64_t start, dur;
	uint32_t row;
	uint32_t payload, end_payload; /* index of the data + 1 */
	uint32_t before;	       /* next outer open marker of the same name, + 1 */
	uint8_t lane, flags, ph;
};

struct marker_reader {
	struct firefox *f;
	const struct fx_table *t;
	const struct fx_stacks *stacks;
	struct marker *list;
	size_t count;
	uint32_t *open; /* for each name: the innermost open marker, + 1 */
	size_t open_count;
};

static struct fx_payload *payload_at(struct firefox *f, uint32_t payload)
{
	return payload ? &f->payloads[payload - 1] : NULL;
}

/* Returns the phase of a marker and its times, in all versions. */
static int phase_of(const struct marker_reader *k, size_t i, const struct fx_payload *p,
		    int64_t *start, int64_t *end)
{
	int64_t phase = fx_index(&k->t->column[MARKER_PHASE], i);

	*start = fx_value(&k->t->column[MARKER_START], i);
	*end = fx_value(&k->t->column[MARKER_END], i);
	if (k->t->column[MARKER_PHASE].count)
		return phase >= 0 && phase <= PHASE_END ? (int)phase : PHASE_INSTANT;
	/* before version 30 a marker has one time; the other one is in its data */
	*start = *end = fx_value(&k->t->column[MARKER_TIME], i);
	if (!p)
		return PHASE_INSTANT;
	if (p->tracing)
		return p->interval == 's'   ? PHASE_START
		       : p->interval == 'e' ? PHASE_END
					    : PHASE_INSTANT;
	if (p->start == FX_NONE || p->end == FX_NONE || p->start == p->end)
		return PHASE_INSTANT;
	*start = p->start;
	*end = p->end;
	return PHASE_INTERVAL;
}

static struct marker *new_marker(struct marker_reader *k, size_t i, uint32_t payload, int64_t start)
{
	const struct fx_payload *p = payload_at(k->f, payload);
	struct marker *m = &k->list[k->count++];

	*m = (struct marker){ .start = start,
			      .dur = TIME_UNKNOWN,
			      .row = (uint32_t)i,
			      .payload = payload,
			      .lane = p && p->request ? LANE_REQUESTS : LANE_THREAD };
	return m;
}

/* Ends the innermost open marker of that name; false if there is none. */
static bool close_marker(struct marker_reader *k, int64_t name, uint32_t payload, int64_t end)
{
	struct marker *m;

	if (name < 0 || (uint64_t)name >= k->open_count || !k->open[name])
		return false;
	m = &k->list[k->open[name] - 1];
	k->open[name] = m->before;
	m->dur = end >= m->start ? end - m->start : 0;
	m->end_payload = payload;
	m->flags = 0;
	return true;
}

static void read_marker(struct marker_reader *k, size_t i)
{
	struct firefox *f = k->f;
	int64_t name = fx_index(&k->t->column[MARKER_NAME], i), start, end;
	int64_t carried = fx_index(&k->t->column[MARKER_DATA], i);
	uint32_t payload =
		carried >= 0 && (uint64_t)carried < f->payload_count ? (uint32_t)carried + 1 : 0;
	int phase = phase_of(k, i, payload_at(f, payload), &start, &end);
	struct marker *m;

	start = add_times(start, f->base_ns);
	end = add_times(end, f->base_ns);
	if ((phase == PHASE_END ? end : start) == TIME_UNKNOWN) {
		f->no_time++;
		return;
	}
	f->thread_end =
		MAX(f->thread_end, phase == PHASE_END || phase == PHASE_INTERVAL ? end : start);
	if (phase == PHASE_END && close_marker(k, name, payload, end))
		return;
	m = new_marker(k, i, payload, phase == PHASE_END ? end : start);
	if (phase == PHASE_END) {
		m->flags = EVENT_UNMATCHED;
		f->unmatched++;
	} else if (phase == PHASE_INTERVAL && end >= start) {
		m->dur = end - start;
	} else if (phase == PHASE_START && name >= 0 && (uint64_t)name < k->open_count) {
		m->flags = EVENT_UNFINISHED;
		m->before = k->open[name];
		k->open[name] = (uint32_t)k->count;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct marker *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->dur != y->dur)
		return x->dur > y->dur ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static str_id category_name(const struct firefox *f, int64_t category)
{
	return category >= 0 && (uint64_t)category < f->category_count
		       ? f->categories[category].name
		       : (str_id){ 0 };
}

static void add_marker(struct marker_reader *k, const struct marker *m, track_id track)
{
	struct firefox *f = k->f;
	const struct fx_payload *p = payload_at(f, m->payload),
				*end = payload_at(f, m->end_payload);
	str_id name = fx_string(f, fx_index(&k->t->column[MARKER_NAME], m->row));
	struct event_row row = {
		.ts_ns = m->start, .dur_ns = m->dur, .track = track, .flags = m->flags
	};
	event_id event;

	row.category = category_name(f, fx_index(&k->t->column[MARKER_CATEGORY], m->row));
	if (m->dur == TIME_UNKNOWN)
		row.ph = 'i';
	if (p && p->size) {
		row.args_offset = p->offset;
		row.args_size = p->size;
	}
	if (p && p->stack >= 0 && (uint64_t)p->stack < k->stacks->count)
		row.stack = k->stacks->stacks[p->stack];
	event = event_draft_add(&f->draft, f->b, &row,
				name.v ? name : builder_cstr(f->b, "(no name)"));
	if (end && end->size)
		builder_add_event_args(f->b, &(struct event_args_row){ .event = event,
								       .args_offset = end->offset,
								       .args_size = end->size });
}

static track_id requests_track(struct firefox *f)
{
	struct track_row row = { .process = f->thread.process,
				 .pid = f->thread.pid,
				 .tid = f->thread.tid,
				 .kind = TRACK_ASYNC,
				 .flags = TRACK_SLICES,
				 .source = f->b->source };

	buf_clear(&f->text);
	buf_add_str(&f->text, model_str(f->b->m, f->thread.name));
	buf_puts(&f->text, " requests");
	if (f->text.failed)
		builder_no_memory(f->b);
	row.name = builder_str(f->b, buf_str(&f->text));
	return builder_add_track(f->b, &row);
}

static ow_status place_markers(struct marker_reader *k)
{
	struct firefox *f = k->f;
	track_id track = f->thread.track;
	bool requests = false;

	for (size_t i = 0; i < k->count; i++) {
		struct marker *m = &k->list[i];

		if (m->flags != EVENT_UNFINISHED)
			continue;
		f->unfinished++;
		m->dur = f->thread_end >= m->start ? f->thread_end - m->start : 0;
	}
	qsort(k->list, k->count, sizeof(*k->list), by_time);
	for (size_t i = 0; i < k->count && f->b->status == OW_OK; i++) {
		if (k->list[i].lane == LANE_REQUESTS && !requests) {
			requests = true;
			track = requests_track(f);
		}
		add_marker(k, &k->list[i], track);
	}
	f->markers += (int64_t)k->count;
	return f->b->status;
}

static ow_status add_markers(struct firefox *f, const struct fx_stacks *stacks)
{
	const struct fx_table *t = &f->own.table[FX_MARKERS];
	size_t count = MIN(t->column[MARKER_NAME].count, (size_t)UINT32_MAX - 1);
	struct marker_reader k = { .f = f, .t = t, .stacks = stacks };
	ow_status status = OW_E_NO_MEMORY;

	if (!count)
		return OW_OK;
	k.open_count = f->own.has_strings ? f->own.string_count : f->shared.string_count;
	k.list = mem_alloc(f->mem, count * sizeof(*k.list));
	k.open = mem_zalloc(f->mem, (k.open_count + 1) * sizeof(*k.open));
	if (k.list && k.open) {
		for (size_t i = 0; i < count; i++)
			read_marker(&k, i);
		status = place_markers(&k);
	} else {
		builder_no_memory(f->b);
	}
	mem_free(f->mem, k.list, count * sizeof(*k.list));
	mem_free(f->mem, k.open, (k.open_count + 1) * sizeof(*k.open));
	return status;
}

ow_status fx_add_thread(struct firefox *f)
{
	const struct fx_table *markers = &f->own.table[FX_MARKERS];
	struct fx_thread *thread = &f->thread;
	const struct fx_stacks *stacks;

	if (!thread->process.v)
		thread->process = thread->process_type;
	thread->track = builder_add_track(
		f->b,
		&(struct track_row){ .name = thread->name,
				     .process = thread->process,
				     .pid = thread->pid,
				     .tid = thread->tid,
				     .kind = TRACK_HOST,
				     .flags = markers->column[MARKER_NAME].count ? TRACK_SLICES : 0,
				     .source = f->b->source });
	if (!vec_push(f->mem, f->tracks, f->track_count, f->track_cap, thread->track))
		return builder_no_memory(f->b);
	f->threads++;
	f->thread_end = INT64_MIN;
	stacks = fx_stacks_of(f);
	if (!stacks)
		return f->b->status;
	OW_TRY(add_samples(f, FX_SAMPLES, stacks));
	OW_TRY(add_samples(f, FX_JS_ALLOCATIONS, stacks));
	OW_TRY(add_samples(f, FX_NATIVE_ALLOCATIONS, stacks));
	return add_markers(f, stacks);
}

struct fx_counter {
	str_id name, category;
	int64_t thread;
	bool summed; /* samples are changes of the value */
	struct fx_table samples;
};

/* Reads samples in groups, as up to version 47; there is one group. */
static ow_status read_groups(struct firefox *f, struct fx_counter *c)
{
	enum json_token token = json_pull_next(f->p);
	uint32_t depth = f->p->depth; /* depth inside the list or object */

	if (token != TOKEN_ARRAY && token != TOKEN_OBJECT)
		return OW_OK;
	while (!f->truncated && f->p->depth >= depth) {
		token = json_pull_next(f->p);
		if (token == TOKEN_DAMAGE || token == TOKEN_END)
			fx_cut(f);
		else if (token == TOKEN_KEY && json_key_is(f->p->text, "samples"))
			OW_TRY(fx_read_columns(f, FX_SAMPLES, &c->samples));
		else if (token == TOKEN_KEY)
			(void)fx_skip(f);
	}
	return OW_OK;
}

static void read_display(struct firefox *f, struct fx_counter *c)
{
	enum json_token token = json_pull_next(f->p);

	if (token == TOKEN_ARRAY)
		(void)fx_skip(f);
	if (token != TOKEN_OBJECT)
		return;
	while (!f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY) {
		if (!json_key_is(f->p->text, "graphType"))
			(void)fx_skip(f);
		else if (json_pull_next(f->p) == TOKEN_STRING)
			c->summed = json_key_is(f->p->text, "line-accumulated");
	}
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
}

static void add_counter(struct firefox *f, const struct fx_counter *c)
{
	const struct fx_table *t = &c->samples;
	struct clock clock = { &t->column[SAMPLE_TIME], &t->column[SAMPLE_DELTA], 0 };
	struct counter_row row = { .name = c->name, .series = c->category };
	double sum = 0;

	if (c->thread >= 0 && (uint64_t)c->thread < f->track_count)
		row.track = f->tracks[c->thread];
	else if (f->track_count)
		row.track = f->tracks[0];
	if (!row.track.v)
		return;
	for (size_t i = 0; i < t->column[SAMPLE_COUNT].count; i++) {
		int64_t value = fx_value(&t->column[SAMPLE_COUNT], i);

		row.ts_ns = next_time(f, &clock, i);
		if (value == FX_NONE || row.ts_ns == TIME_UNKNOWN)
			continue;
		sum = c->summed ? sum + (double)value / 1e6 : (double)value / 1e6;
		row.value = sum;
		builder_add_counter(f->b, &row);
		f->counters++;
	}
}

ow_status fx_read_counter(struct firefox *f)
{
	struct fx_counter c = { .thread = -1 };
	enum json_token token = TOKEN_CLOSE;
	ow_status status = OW_OK;

	while (status == OW_OK && !f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY) {
		if (json_key_is(f->p->text, "name"))
			c.name = json_text_value(f->p, f->b, &f->text);
		else if (json_key_is(f->p->text, "category"))
			c.category = json_text_value(f->p, f->b, &f->text);
		else if (json_key_is(f->p->text, "mainThreadIndex"))
			(void)json_text_number(f->p, 0, &c.thread);
		else if (json_key_is(f->p->text, "display"))
			read_display(f, &c);
		else if (json_key_is(f->p->text, "samples"))
			status = fx_read_columns(f, FX_SAMPLES, &c.samples);
		else if (json_key_is(f->p->text, "sampleGroups") ||
			 json_key_is(f->p->text, "sample_groups"))
			status = read_groups(f, &c);
		else
			(void)fx_skip(f);
	}
	if (status == OW_OK && !f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
	c.summed |= str_eq(model_str(f->b->m, c.category), STR("Memory"));
	if (status == OW_OK && f->b->status == OW_OK)
		add_counter(f, &c);
	fx_table_release(f, &c.samples);
	return status == OW_OK ? f->b->status : status;
}
