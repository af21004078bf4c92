/*
 * trace_place.c: puts all rows into the model. Slices have got their place (trace_order.c); each column is
 * moved there on its own, into pages that the one before has left, so that never more than one or two
 * columns exist twice.
 */
#include "import/trace_int.h"

/* ---- columns ---- */

/* For every slice: s and r are its row, `at` its place in the model. */
#define FOR_EACH_SLICE(t, ...)                                                                     \
	for (size_t part_ = 0; part_ < (t)->accepted_count; part_++) {                             \
		const struct trace_part *p_ = &(t)->accepted[part_];                               \
		const struct trace_slices *s = &(t)->workers[p_->worker].slices;                   \
		for (size_t r = p_->first.slices, r_last_ = p_->last.slices; r < r_last_; r++) {   \
			size_t at = first + s->track[r];                                           \
			__VA_ARGS__;                                                               \
		}                                                                                  \
	}

#define DROP_COLUMN(t, column)                                                                     \
	for (unsigned i_ = 0; i_ < (t)->worker_count; i_++) {                                      \
		struct trace_slices *s_ = &(t)->workers[i_].slices;                                \
		mem_free((t)->mem, s_->column, s_->cap * sizeof(*s_->column));                     \
		s_->column = NULL;                                                                 \
	}

static int64_t add_base(int64_t base, int64_t ts)
{
	int64_t sum;

	if (OW_UNLIKELY(__builtin_add_overflow(base, ts, &sum)))
		return base < 0 ? -INT64_MAX : INT64_MAX;
	return sum;
}

/* What threads share out. Points go first, then small columns: what they leave serves the large ones. The rows of
 * other tables are made by one thread, the only one that uses the builder meanwhile. */
enum column_job {
	JOB_ROWS,
	JOB_FLOWS,
	JOB_CATEGORY,
	JOB_ARGS_SIZE,
	JOB_TS,
	JOB_OP,
	JOB_CORRELATION,
	JOB_DUR,
	JOB_PH,
	JOB_TRACK,
	JOB_ARGS_OFFSET,
	JOB_STEP,
	JOB_COUNT
};

static void place_flows(struct trace *t);
static void place_counters(struct trace *t);

static void place_tracks(struct trace *t, track_id *to)
{
	for (uint32_t i = 1; i < t->ordered; i++) {
		const struct trace_lane *lane = &t->lanes[t->lane_order[i]];

		for (size_t k = 0; k < lane->count; k++)
			to[lane->first + k] = lane->id;
	}
}

OW_ALWAYS_INLINE uint32_t op_name(const struct trace *t, uint32_t name)
{
	return name && name != t->string_count ? name : t->unnamed.v;
}

/* The event's own name is kept beside that of its op. */
OW_ALWAYS_INLINE void place_label(const struct trace *t, struct event_table *e, size_t at,
				  uint32_t name, uint32_t label)
{
	name = op_name(t, name);
	e->op[at].v = label ? label : name;
	e->name[at].v = label && label != name ? name : 0;
}

/* Two jobs read them; the last of these makes room for the columns. */
static void done_with_points(struct trace *t)
{
	if (atomic_fetch_sub(&t->point_readers, 1) != 1)
		return;
	for (unsigned i = 0; i < t->worker_count; i++)
		trace_worker_drop_points(&t->workers[i]);
}

/* Of a column that is about to be written. */
#define USE_KEPT(t, column)                                                                        \
	mem_use_kept((t)->mem, column, (t)->b->m->event.cap * sizeof(*(column)),                   \
		     first * sizeof(*(column)), (first + (t)->placed) * sizeof(*(column)))

static void place_column(struct trace *t, enum column_job job)
{
	struct event_table *e = &t->b->m->event;
	size_t first = t->first_event;
	int64_t base = t->base_ns;
	uint32_t empty = t->string_count;

	switch (job) {
	case JOB_ROWS:
		place_flows(t);
		place_counters(t);
		done_with_points(t);
		break;
	case JOB_FLOWS:
		trace_count_flows(t);
		done_with_points(t);
		break;
	case JOB_TS:
		USE_KEPT(t, e->ts_ns);
		FOR_EACH_SLICE(t, e->ts_ns[at] = add_base(base, s->ts[r]));
		DROP_COLUMN(t, ts);
		break;
	case JOB_DUR:
		USE_KEPT(t, e->dur_ns);
		FOR_EACH_SLICE(t, e->dur_ns[at] = s->dur[r]);
		DROP_COLUMN(t, dur);
		break;
	case JOB_OP: /* names, for now: trace_meaning makes ops of them */
		USE_KEPT(t, e->op);
		if (!t->has_labels) {
			FOR_EACH_SLICE(t, e->op[at].v = op_name(t, s->name[r]));
			DROP_COLUMN(t, name);
			break;
		}
		USE_KEPT(t, e->name);
		FOR_EACH_SLICE(t, place_label(t, e, at, s->name[r], s->label ? s->label[r] : 0));
		DROP_COLUMN(t, name);
		DROP_COLUMN(t, label);
		break;
	case JOB_CORRELATION:
		if (t->has_correlations) {
			USE_KEPT(t, e->correlation);
			FOR_EACH_SLICE(t,
				       e->correlation[at] = s->correlation ? s->correlation[r] : 0);
		}
		DROP_COLUMN(t, correlation);
		break;
	case JOB_CATEGORY:
		if (e->category) {
			USE_KEPT(t, e->category);
			FOR_EACH_SLICE(t, e->category[at].v =
						  s->category[r] == empty ? 0 : s->category[r]);
		}
		DROP_COLUMN(t, category);
		break;
	case JOB_ARGS_OFFSET:
		USE_KEPT(t, e->args_offset);
		FOR_EACH_SLICE(t, e->args_offset[at] = s->args_offset[r]);
		DROP_COLUMN(t, args_offset);
		break;
	case JOB_ARGS_SIZE:
		USE_KEPT(t, e->args_size);
		FOR_EACH_SLICE(t, e->args_size[at] = s->args_size[r]);
		DROP_COLUMN(t, args_size);
		break;
	case JOB_PH:
		if (e->ph)
			FOR_EACH_SLICE(t, e->ph[at] = s->ph[r] == 'X' ? 0 : s->ph[r]);
		DROP_COLUMN(t, ph);
		break;
	case JOB_TRACK:
		USE_KEPT(t, e->track);
		place_tracks(t, e->track + first);
		break;
	case JOB_STEP: /* filled in by trace_meaning */
		USE_KEPT(t, e->step);
		memset(e->step + first, 0, t->placed * sizeof(*e->step));
		break;
	case JOB_COUNT:
		break;
	}
}

static void place_columns(void *arg, unsigned thread)
{
	struct trace *t = arg;

	(void)thread;
	for (;;) {
		size_t job = atomic_fetch_add(&t->next_part, 1);

		if (job >= JOB_COUNT)
			return;
		place_column(t, (enum column_job)job);
	}
}

#define NEED(t, column)                                                                            \
	builder_need_column((t)->b, TABLE_event, offsetof(struct event_table, column))

static bool make_columns(struct trace *t)
{
	const struct trace_tally *y = &t->tallies[0];
	bool only_x = y->by_ph['X'] == t->placed;

	if (t->placed && !builder_grow(t->b, TABLE_event, (uint32_t)t->placed))
		return false;
	if (t->has_categories && !NEED(t, category))
		return false;
	if (t->has_labels && !NEED(t, name))
		return false;
	if (t->has_correlations && !NEED(t, correlation))
		return false;
	if (!only_x && !NEED(t, ph))
		return false;
	return NEED(t, args_offset) && NEED(t, args_size);
}

/* ---- rows that few or no slices have ---- */

static uint64_t packed_id(struct trace *t, struct trace_id id)
{
	char text[24];
	int len;

	if (id.kind == ID_NONE)
		return 0;
	if (id.kind == ID_TEXT)
		return MODEL_TEXT_ID | (id.value == t->string_count ? 0 : (uint64_t)id.value);
	if (id.value >= 0 && id.value < INT64_C(1) << 62)
		return (uint64_t)id.value;
	len = snprintf(text, sizeof(text), "%" PRId64, id.value);
	return MODEL_TEXT_ID | builder_str(t->b, str_make(text, (size_t)len)).v;
}

static str_id plain_string(const struct trace *t, uint32_t string)
{
	return (str_id){ string == t->string_count ? 0 : string };
}

struct keyed {
	uint32_t event;
	const struct trace_mark *mark;
};

static int by_event(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return (x->mark > y->mark) - (x->mark < y->mark);
}

static void place_mark(struct trace *t, const struct keyed *k)
{
	const struct trace_mark *mark = k->mark;
	event_id event = { k->event };

	if (mark->flags)
		BUILDER_SET(t->b, event, flags, event,
			    (uint8_t)(COLUMN_GET(t->b->m->event.flags, event.v) | mark->flags));
	if (mark->id.kind || mark->scope)
		builder_add_event_key(
			t->b, &(struct event_key_row){ .event = event,
						       .id = packed_id(t, mark->id),
						       .scope = plain_string(t, mark->scope) });
	if (mark->args_size)
		builder_add_event_args(t->b,
				       &(struct event_args_row){ .event = event,
								 .args_offset = mark->args_offset,
								 .args_size = mark->args_size });
	if (mark->frame.kind) {
		stack_id stack = trace_stack(t, mark->frame);

		if (stack.v)
			BUILDER_SET(t->b, event, stack, event, stack);
	}
}

static ow_status place_marks(struct trace *t)
{
	size_t count = 0;
	struct keyed *keyed;

	for (size_t i = 0; i < t->accepted_count; i++)
		count += t->accepted[i].last.marks - t->accepted[i].first.marks;
	if (!count)
		return OW_OK;
	keyed = mem_alloc(t->mem, count * sizeof(*keyed));
	if (!keyed)
		return error_no_memory(t->ctx->err);
	count = 0;
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_worker *w = &t->workers[p->worker];

		for (size_t r = p->first.marks; r < p->last.marks; r++)
			keyed[count++] =
				(struct keyed){ t->first_event + w->slices.track[w->marks[r].slice],
						&w->marks[r] };
	}
	qsort(keyed, count, sizeof(*keyed), by_event);
	for (size_t i = 0; i < count && builder_status(t->b) == OW_OK; i++)
		place_mark(t, &keyed[i]);
	mem_free(t->mem, keyed, count * sizeof(*keyed));
	return builder_status(t->b);
}

/* Arrows name a thread, not a layer of it: they go where its slices are. */
static uint32_t arrow_lane(const struct trace *t, uint32_t lane)
{
	return t->lanes[lane].count || !t->lanes[lane].proxy ? lane : t->lanes[lane].proxy;
}

static bool is_flow(const struct trace_point *p)
{
	return (p->ph == 's' || p->ph == 't' || p->ph == 'f') && !(p->flags & POINT_NO_TS);
}

static void place_flow(struct trace *t, const struct trace_worker *w, const struct trace_point *p)
{
	builder_add_flow(t->b, &(struct flow_row){
				       .ts_ns = add_base(t->base_ns, p->ts),
				       .id = packed_id(t, (struct trace_id){ p->id, p->id_kind }),
				       .track = t->lanes[arrow_lane(t, p->track)].id,
				       .category = plain_string(t, p->category),
				       .name = plain_string(t, p->name),
				       .event = { p->flags & POINT_OF_SLICE
							  ? t->first_event + w->slices.track[p->at]
							  : 0 },
				       .ph = p->ph,
				       .enclosing = p->flags & POINT_ENCLOSING ? 1 : 0 });
}

static void place_flows(struct trace *t)
{
	const struct trace_tally *y = &t->tallies[0];
	uint64_t flows = y->by_ph['s'] + y->by_ph['t'] + y->by_ph['f'];

	if (flows && flows < UINT32_MAX && !builder_grow(t->b, TABLE_flow, (uint32_t)flows))
		return;
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_worker *w = &t->workers[p->worker];

		for (size_t r = p->first.points; r < p->last.points; r++)
			if (is_flow(&w->points[r]))
				place_flow(t, w, &w->points[r]);
	}
}

static void place_counters(struct trace *t)
{
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_worker *w = &t->workers[p->worker];

		for (size_t r = p->first.counters; r < p->last.counters; r++) {
			const struct trace_counter *c = &w->counters[r];

			if (c->no_ts || c->no_value)
				continue;
			builder_add_counter(
				t->b,
				&(struct counter_row){ .track = t->lanes[c->track].id,
						       .name = plain_string(t, c->name),
						       .series = plain_string(t, c->series),
						       .ts_ns = add_base(t->base_ns, c->ts),
						       .value = c->value,
						       .instance = plain_string(t, c->instance) });
		}
	}
}

/* ---- types and tracks ---- */

/* Types of ops, from all workers; the first in file order counts, and they do not differ. */
static ow_status find_types(struct trace *t)
{
	size_t size = ((size_t)t->string_count + 1) * sizeof(*t->type_of);

	t->type_of = mem_zalloc(t->mem, size);
	if (!t->type_of)
		return error_no_memory(t->ctx->err);
	for (unsigned i = 0; i < t->worker_count; i++) {
		const struct trace_worker *w = &t->workers[i];

		t->has_labels |= w->slices.label != NULL;
		t->has_correlations |= w->slices.correlation != NULL;
		for (uint32_t s = 1; s < w->dict.type_cap && s < w->dict.count; s++) {
			uint32_t type = w->dict.types[s] ? w->strings[w->dict.types[s]] : 0;

			if (type && type != t->string_count && !t->type_of[w->strings[s]])
				t->type_of[w->strings[s]] = type;
		}
	}
	return OW_OK;
}

/* What the slices of a layer are, as long as nobody knows more. */
static uint8_t layer_kind(uint8_t layer)
{
	static const uint8_t kinds[] = {
		[LAYER_THREAD] = TRACK_HOST,   [LAYER_FRAMES] = TRACK_FRAMES,
		[LAYER_DEVICE] = TRACK_STREAM, [LAYER_DERIVED] = TRACK_DERIVED,
		[LAYER_SPAN] = TRACK_SPAN,     [LAYER_ASYNC] = TRACK_ASYNC,
	};

	return kinds[layer];
}

static void find_proxies(struct trace *t)
{
	for (uint32_t i = 1; i < t->lane_count; i++) {
		struct trace_lane *lane = &t->lanes[i], *thread = &t->lanes[lane->thread];

		if (lane->thread == i || !lane->count)
			continue;
		if (!thread->proxy || lane->key.layer == LAYER_DEVICE)
			thread->proxy = i;
	}
}

/* Counters and flows need a track, too, though no slice is on it. */
static void want_tracks(struct trace *t)
{
	find_proxies(t);
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_worker *w = &t->workers[p->worker];

		for (size_t r = p->first.points; r < p->last.points; r++)
			if (is_flow(&w->points[r]))
				t->lanes[arrow_lane(t, w->points[r].track)].wanted = true;
		for (size_t r = p->first.counters; r < p->last.counters; r++)
			t->lanes[w->counters[r].track].wanted = true;
	}
}

static int64_t track_number(const struct trace *t, struct trace_id id)
{
	if (id.kind == ID_NONE)
		return MODEL_NO_ID;
	if (id.kind == ID_TEXT)
		return MODEL_TEXT_NUMBER + (id.value == t->string_count ? 0 : id.value);
	return id.value;
}

/* What a thread is called; text in place of a number is a name itself. */
static str_id lane_name(struct trace *t, const struct trace_lane *lane)
{
	const struct trace_id *tid = &lane->key.tid;
	char text[32];

	if (t->lanes[lane->thread].name.v)
		return t->lanes[lane->thread].name;
	if (tid->kind == ID_TEXT)
		return plain_string(t, (uint32_t)tid->value);
	if (tid->kind == ID_NONE)
		return (str_id){ 0 };
	snprintf(text, sizeof(text), "thread %" PRId64, tid->value);
	return builder_cstr(t->b, text);
}

static str_id process_name(struct trace *t, const struct trace_process *process)
{
	char text[32];

	if (process->name.v)
		return process->name;
	if (process->pid.kind == ID_TEXT)
		return plain_string(t, (uint32_t)process->pid.value);
	if (process->pid.kind == ID_NONE)
		return (str_id){ 0 };
	snprintf(text, sizeof(text), "process %" PRId64, process->pid.value);
	return builder_cstr(t->b, text);
}

static ow_status make_tracks(struct trace *t)
{
	want_tracks(t);
	for (uint32_t i = 1; i < t->ordered; i++) {
		struct trace_lane *lane = &t->lanes[t->lane_order[i]];
		const struct trace_process *process = &t->processes[lane->process];

		if (!lane->count && !lane->wanted)
			continue;
		lane->id = builder_add_track(
			t->b, &(struct track_row){ .name = lane_name(t, lane),
						   .process = process_name(t, process),
						   .pid = track_number(t, lane->key.pid),
						   .tid = track_number(t, lane->key.tid),
						   .kind = layer_kind(lane->key.layer),
						   .source = t->b->source,
						   .flags = TRACK_SLICES,
						   .labels = process->labels,
						   .sort_index = t->lanes[lane->thread].sort,
						   .process_sort_index = process->sort });
	}
	return builder_status(t->b);
}

static ow_status find_meaning(struct trace *t)
{
	const struct trace_tally *y = &t->tallies[0];

	return trace_meaning(t->b,
			     &(struct meaning_input){ .source = t->b->source,
						      .input = t->ctx->in,
						      .options = t->ctx->options,
						      .first_event = t->first_event,
						      .first_track = t->first_track,
						      .first_flow = t->first_flow,
						      .types = t->type_of,
						      .type_count = t->string_count,
						      .members = t->member_bits,
						      .array_form = !t->object_form,
						      .only_slices = y->by_ph['X'] == y->events,
						      .changes = t->changes,
						      .change_count = t->change_count });
}

ow_status trace_place(struct trace *t)
{
	OW_TRY(trace_order_lanes(t));
	trace_count_slices(t);
	t->first_track = t->b->m->track.count;
	t->first_event = t->b->m->event.count;
	t->first_flow = t->b->m->flow.count;
	t->unnamed = builder_cstr(t->b, "[no name]");
	OW_TRY(find_types(t));
	OW_TRY(make_tracks(t));
	/* Before there are kept blocks: those are for columns that are about to be written, not to be cleared. */
	if (!make_columns(t))
		return builder_status(t->b);
	OW_TRY(trace_find_places(t));
	OW_TRY(trace_list(t));
	OW_TRY(trace_place_changes(t));
	atomic_store(&t->next_part, 0);
	atomic_store(&t->point_readers, 2);
	parallel_run(t->options.threads, place_columns, t);
	t->b->m->event.count += (uint32_t)t->placed;
	if (t->flows.failed)
		return error_no_memory(t->ctx->err);
	OW_TRY(builder_status(t->b));
	OW_TRY(place_marks(t));
	OW_TRY(trace_facts(t));
	for (unsigned i = 0; i < t->worker_count; i++)
		trace_worker_drop_rows(&t->workers[i]);
	return find_meaning(t);
}
