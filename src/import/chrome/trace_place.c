/*
 * trace_place.c: the last stage: moves all rows into the model. First the final position of every slice is computed:
 * slices are grouped by track and sorted by start, longest first, in file order where these are equal. Then each column
 * is moved separately, into pages that the previous column has freed, so that never more than one or two columns exist
 * twice. The meaning of events is not known here: event_draft stores what the interpretation needs besides the model.
 */
#include "import/chrome/trace_int.h"

struct placing {
	const struct trace_stages *made;
	const struct trace_job *job;
	struct trace_raw *rows;	   /* rows; their columns are freed as they are placed */
	struct trace_names *names; /* names; lanes get their row in the model */
	const struct trace_tally *tally;
	uint32_t *lane_order; /* order of lanes by process, thread, layer; [0] is 0 */
	size_t placed;	      /* number of slices that are placed */
	uint32_t first_event; /* row of the first slice in the model */
	uint32_t first_track, first_flow;
	struct event_draft draft;
	str_id unnamed; /* name of events without a name */
	bool has_labels, has_numbers;
	uint32_t *type_of; /* for model strings that are used as a label: type of that op */
	/* for model strings that are used as a category: numbers are sequence numbers */
	uint8_t *is_operator;
	struct memory_change *changes; /* changes of all workers, sorted by event */
	size_t change_count;
	struct trace_flows flows;
	atomic_size_t next_job;
	atomic_uint point_readers; /* number of jobs that still need the points and counters */
};

struct cursor {
	size_t next;
	int64_t ts, dur; /* times of the last slice placed */
	uint32_t row;
	uint16_t worker;
	bool tied; /* several slices have this start */
	bool unsorted;
};

/* Counts the slices, and finds where each lane begins, in t->names->lanes. */
static void count_slices(struct placing *t)
{
	for (uint32_t i = 1; i < t->names->lane_count; i++) {
		struct trace_lane *lane = &t->names->lanes[t->lane_order[i]];

		lane->first = t->placed;
		t->placed += lane->count;
	}
}

/* Orders two slices with one start, the longer first. True if they could simply be exchanged. */
static bool swap_places(struct placing *t, struct cursor *c, union trace_where *place)
{
	union trace_where *other = &t->rows->workers[c->worker].slices.where[c->row], kept = *other;

	if (c->tied)
		return false;
	*other = *place;
	*place = kept;
	c->tied = true;
	return true;
}

/* Gives slices their place in file order if their track is sorted; finds the tracks that are
 * not. */
static void place_in_file_order(struct placing *t, struct cursor *cursors)
{
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		const struct trace_slices *s = &t->rows->workers[p->worker].slices;

		for (size_t r = p->first.slices; r < p->last.slices; r++) {
			struct cursor *c = &cursors[s->where[r].lane];
			int64_t ts = s->ts[r], dur = s->dur[r];

			s->where[r].place = (uint32_t)c->next++;
			if (OW_UNLIKELY(ts <= c->ts)) {
				if (ts < c->ts ||
				    (dur > c->dur && !swap_places(t, c, &s->where[r]))) {
					c->unsorted = true;
				} else if (dur > c->dur) {
					/* the slice before is still the last one of its track */
					continue;
				} else {
					c->tied = true;
				}
			} else {
				c->tied = false;
			}
			c->ts = ts;
			c->dur = dur;
			c->row = (uint32_t)r;
			c->worker = (uint16_t)p->worker;
		}
	}
}

struct sorting {
	struct placing *t;
	size_t *firsts, *ends; /* positions at which the tracks to be sorted begin and end */
	size_t *starts;	       /* indexes at which their rows begin in `rows` */
	size_t lane_count;
	uint32_t *rows; /* rows of these tracks, each in file order: bases[worker] + row */
	uint64_t bases[PARALLEL_MAX + 2];
	size_t count, longest;
	atomic_size_t next;
	atomic_bool failed;
};

static int64_t dur_of(const struct placing *t, const struct trace_ref *ref)
{
	return t->rows->workers[ref->worker].slices.dur[ref->row];
}

/* Sorts slices with equal starts by length, longest first, else in file order. Such runs are
 * usually short. */
static void sort_ties(const struct placing *t, struct trace_ref *refs, size_t count,
		      struct trace_ref *scratch)
{
	for (size_t first = 0, n; first < count; first += n) {
		bool sorted = true;

		for (n = 1; first + n < count && refs[first + n].ts == refs[first].ts; n++)
			sorted &= dur_of(t, &refs[first + n]) <= dur_of(t, &refs[first + n - 1]);
		if (sorted)
			continue;
		/* negated durations temporarily replace the times */
		for (size_t i = first; i < first + n; i++)
			refs[i].ts = ~dur_of(t, &refs[i]);
		trace_sort(refs + first, n, scratch);
		for (size_t i = first; i < first + n; i++)
			refs[i].ts =
				refs[i].row; /* any value, because times are not needed again */
	}
}

static void make_refs(const struct sorting *s, const uint32_t *rows, size_t count,
		      struct trace_ref *refs)
{
	unsigned worker = 0;

	for (size_t i = 0; i < count; i++) {
		while (rows[i] < s->bases[worker])
			worker--;
		while (rows[i] >= s->bases[worker + 1])
			worker++;
		refs[i].row = (uint32_t)(rows[i] - s->bases[worker]);
		refs[i].worker = (uint16_t)worker;
		refs[i].ts = s->t->rows->workers[worker].slices.ts[refs[i].row];
	}
}

static void sort_lane(const struct sorting *s, size_t lane, struct trace_ref *refs,
		      struct trace_ref *scratch)
{
	size_t count = s->starts[lane + 1] - s->starts[lane];

	make_refs(s, s->rows + s->starts[lane], count, refs);
	trace_sort(refs, count, scratch);
	sort_ties(s->t, refs, count, scratch);
	for (size_t k = 0; k < count; k++)
		s->t->rows->workers[refs[k].worker].slices.where[refs[k].row].place =
			(uint32_t)(s->firsts[lane] + k);
}

static void sort_lanes(void *arg, unsigned thread)
{
	struct sorting *s = arg;
	struct trace_ref *refs = mem_alloc(s->t->job->mem, 2 * s->longest * sizeof(*refs));

	(void)thread;
	if (!refs) {
		atomic_store(&s->failed, true);
		return;
	}
	for (;;) {
		size_t lane = atomic_fetch_add(&s->next, 1);

		if (lane >= s->lane_count)
			break;
		sort_lane(s, lane, refs, refs + s->longest);
	}
	mem_free(s->t->job->mem, refs, 2 * s->longest * sizeof(*refs));
}

/* Finds the slices of unsorted tracks by their positions, which are in file order per track. `unsorted` has, for
 * every STRIDE positions, the first unsorted track that ends after them. */
#define STRIDE 256

static void collect_unsorted(struct sorting *s, const uint32_t *unsorted)
{
	struct placing *t = s->t;

	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		const struct trace_slices *rows = &t->rows->workers[p->worker].slices;

		for (size_t r = p->first.slices; r < p->last.slices; r++) {
			size_t place = rows->where[r].place;
			uint32_t k = unsorted[place / STRIDE];

			while (k < s->lane_count && place >= s->ends[k])
				k++;
			if (k == s->lane_count || place < s->firsts[k])
				continue;
			s->rows[s->starts[k] + place - s->firsts[k]] =
				(uint32_t)(s->bases[p->worker] + r);
		}
	}
}

static void index_unsorted(const struct sorting *s, uint32_t *unsorted, size_t count)
{
	uint32_t k = 0;

	for (size_t i = 0; i < count; i++) {
		while (k < s->lane_count && i * STRIDE >= s->ends[k])
			k++;
		unsorted[i] = k;
	}
}

static void choose_unsorted(struct sorting *s, const struct cursor *cursors)
{
	const struct placing *t = s->t;

	for (uint32_t i = 1; i < t->names->lane_count; i++) {
		const struct trace_lane *lane = &t->names->lanes[t->lane_order[i]];

		if (!cursors[t->lane_order[i]].unsorted)
			continue;
		s->starts[s->lane_count] = s->count;
		s->firsts[s->lane_count] = lane->first;
		s->ends[s->lane_count++] = lane->first + lane->count;
		s->count += lane->count;
		s->longest = MAX(s->longest, lane->count);
	}
	s->starts[s->lane_count] = s->count;
}

/* Numbers the rows of all workers consecutively. */
static bool number_rows(struct sorting *s)
{
	const struct placing *t = s->t;

	for (unsigned i = 0; i < t->rows->worker_count; i++)
		s->bases[i + 1] = s->bases[i] + t->rows->workers[i].slices.count;
	return s->bases[t->rows->worker_count] <= UINT32_MAX;
}

static ow_status sort_chosen(struct sorting *s)
{
	struct placing *t = s->t;
	size_t strides = t->placed / STRIDE + 1;
	uint32_t *index = mem_alloc(t->job->mem, strides * sizeof(*index));
	ow_status status = OW_OK;

	s->rows = index ? mem_alloc(t->job->mem, s->count * sizeof(*s->rows)) : NULL;
	if (s->rows) {
		index_unsorted(s, index, strides);
		collect_unsorted(s, index);
		parallel_run((unsigned)MIN((size_t)t->job->options.threads, s->lane_count),
			     sort_lanes, s);
	}
	if (!s->rows || atomic_load(&s->failed))
		status = trace_no_memory(t->job);
	mem_free(t->job->mem, s->rows, s->count * sizeof(*s->rows));
	mem_free(t->job->mem, index, strides * sizeof(*index));
	return status;
}

static ow_status sort_unsorted(struct placing *t, const struct cursor *cursors)
{
	struct sorting s = { .t = t };
	size_t lanes = (size_t)t->names->lane_count + 1;
	ow_status status = OW_OK;

	if (!number_rows(&s))
		return error_set(t->job->ctx->err, OW_E_LIMIT, "%s: more than 4 billion slices",
				 t->job->ctx->in->name);
	s.starts = mem_alloc(t->job->mem, 3 * lanes * sizeof(*s.starts));
	if (!s.starts)
		return trace_no_memory(t->job);
	s.firsts = s.starts + lanes;
	s.ends = s.firsts + lanes;
	choose_unsorted(&s, cursors);
	if (s.lane_count)
		status = sort_chosen(&s);
	mem_free(t->job->mem, s.starts, 3 * lanes * sizeof(*s.starts));
	return status;
}

/* Replaces the lane of each slice by its place in the final order, from 0. */
static ow_status find_places(struct placing *t)
{
	size_t size = t->names->lane_count * sizeof(struct cursor);
	struct cursor *cursors = mem_zalloc(t->job->mem, size);
	ow_status status;

	if (!cursors)
		return trace_no_memory(t->job);
	for (uint32_t i = 0; i < t->names->lane_count; i++)
		cursors[i] = (struct cursor){ .next = t->names->lanes[i].first, .ts = INT64_MIN };
	place_in_file_order(t, cursors);
	status = sort_unsorted(t, cursors);
	mem_free(t->job->mem, cursors, size);
	return status;
}

static size_t count_changes(const struct placing *t)
{
	size_t count = 0;

	for (size_t i = 0; i < t->rows->accepted_count; i++)
		count += t->rows->accepted[i].last.changes - t->rows->accepted[i].first.changes;
	return count;
}

/* Makes one reference per change, in file order; the slice's position replaces the time. */
static void refer(const struct placing *t, struct trace_ref *refs)
{
	size_t count = 0;

	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[p->worker];

		for (size_t r = p->first.changes; r < p->last.changes; r++)
			refs[count++] = (struct trace_ref){
				.ts = w->slices.where[w->changes[r].event].place,
				.row = (uint32_t)r,
				.worker = (uint16_t)p->worker
			};
	}
}

/* Places changes of memory when places are known. */
static ow_status place_changes(struct placing *t)
{
	size_t count = count_changes(t);
	struct trace_ref *refs;

	if (!count)
		return OW_OK;
	refs = mem_alloc(t->job->mem, 2 * count * sizeof(*refs));
	t->changes = refs ? mem_alloc(t->job->mem, count * sizeof(*t->changes)) : NULL;
	if (t->changes) {
		t->change_count = count;
		refer(t, refs);
		trace_sort(refs, count, refs + count);
		for (size_t i = 0; i < count; i++) {
			t->changes[i] = t->rows->workers[refs[i].worker].changes[refs[i].row];
			t->changes[i].event = t->first_event + (uint32_t)refs[i].ts;
		}
	}
	for (unsigned i = 0; i < t->rows->worker_count; i++) {
		struct trace_worker *w = &t->rows->workers[i];

		mem_free(t->job->mem, w->changes, w->change_cap * sizeof(*w->changes));
		w->changes = NULL;
		w->change_count = w->change_cap = 0;
	}
	mem_free(t->job->mem, refs, 2 * count * sizeof(*refs));
	return t->changes ? OW_OK : trace_no_memory(t->job);
}

/* Runs the body for every slice: s and r are its row, `at` its place in the model. */
#define FOR_EACH_SLICE(t, ...)                                                                     \
	for (size_t part_ = 0; part_ < (t)->rows->accepted_count; part_++) {                       \
		const struct trace_part *p_ = &(t)->rows->accepted[part_];                         \
		const struct trace_slices *s = &(t)->rows->workers[p_->worker].slices;             \
		for (size_t r = p_->first.slices, r_last_ = p_->last.slices; r < r_last_; r++) {   \
			size_t at = first + s->where[r].place;                                     \
			__VA_ARGS__;                                                               \
		}                                                                                  \
	}

#define DROP_COLUMN(t, column)                                                                     \
	for (unsigned i_ = 0; i_ < (t)->rows->worker_count; i_++) {                                \
		struct trace_slices *s_ = &(t)->rows->workers[i_].slices;                          \
		mem_free((t)->job->mem, s_->column, s_->cap * sizeof(*s_->column));                \
		s_->column = NULL;                                                                 \
	}

static int64_t add_base(int64_t base, int64_t ts)
{
	int64_t sum;

	if (OW_UNLIKELY(__builtin_add_overflow(base, ts, &sum)))
		return base < 0 ? -INT64_MAX : INT64_MAX;
	return sum;
}

/* The pieces of work that threads take in turn. Points come first, then small columns, so that large columns can use the memory
 * that these free. One thread makes the rows of other tables; no other thread uses the builder meanwhile. */
enum column_job {
	JOB_ROWS,
	JOB_FLOWS,
	/* both together, because the category decides which number it is */
	JOB_CATEGORY_AND_NUMBER,
	JOB_ARGS_SIZE,
	JOB_TS,
	JOB_NAME,
	JOB_DUR,
	JOB_PH,
	JOB_TRACK,
	JOB_ARGS_OFFSET,
	JOB_STEP,
	JOB_COUNT
};

static void place_flows(struct placing *t);
static void place_counters(struct placing *t);

static void place_tracks(struct placing *t, track_id *to)
{
	for (uint32_t i = 1; i < t->names->lane_count; i++) {
		const struct trace_lane *lane = &t->names->lanes[t->lane_order[i]];

		for (size_t k = 0; k < lane->count; k++)
			to[lane->first + k] = lane->id;
	}
}

/* Stores the name of the op in the draft. The event's own name is kept next to it. */
static void place_names(struct placing *t, struct event_table *e, size_t first)
{
	str_id *names = t->draft.op_name;
	uint32_t empty = t->names->string_count, unnamed = t->unnamed.v;

#define NAME_OF(s, r) (s->name[r] && s->name[r] != empty ? s->name[r] : unnamed)
	if (!t->has_labels) {
		FOR_EACH_SLICE(t, names[at - first].v = NAME_OF(s, r));
		return;
	}
	FOR_EACH_SLICE(t, {
		uint32_t name = NAME_OF(s, r), label = s->label ? s->label[r] : 0;

		names[at - first].v = label ? label : name;
		e->name[at].v = label && label != name ? name : 0;
	});
#undef NAME_OF
}

static void place_categories(struct placing *t, str_id *categories, size_t first)
{
	uint32_t empty = t->names->string_count;

	FOR_EACH_SLICE(t, categories[at].v = s->category[r] == empty ? 0 : s->category[r]);
}

/* Stores correlations in the model and sequence numbers in the draft. */
static void place_numbers(struct placing *t, uint32_t *correlations, size_t first)
{
	uint32_t *sequences = t->draft.sequence;
	const uint8_t *is_operator = t->is_operator;

	FOR_EACH_SLICE(t, {
		union trace_number none = { 0 }, number = s->number ? s->number[r] : none;
		bool has_sequence = is_operator[s->category[r]];

		correlations[at] = has_sequence ? 0 : number.correlation;
		if (sequences)
			sequences[at - first] = has_sequence ? number.sequence : 0;
	});
}

/* Counts down the jobs that read points; the last one frees them for the columns. */
static void done_with_points(struct placing *t)
{
	if (atomic_fetch_sub(&t->point_readers, 1) != 1)
		return;
	for (unsigned i = 0; i < t->rows->worker_count; i++)
		trace_worker_drop_points(&t->rows->workers[i]);
}

/* Uses a kept block for a column that is about to be written. */
#define USE_KEPT(t, column)                                                                        \
	mem_use_kept((t)->job->mem, column, (t)->job->b->m->event.cap * sizeof(*(column)),         \
		     first * sizeof(*(column)), (first + (t)->placed) * sizeof(*(column)))

static void place_column(struct placing *t, enum column_job job)
{
	struct event_table *e = &t->job->b->m->event;
	size_t first = t->first_event;
	int64_t base = t->made->header->base_ns;

	switch (job) {
	case JOB_ROWS:
		place_flows(t);
		place_counters(t);
		done_with_points(t);
		break;
	case JOB_FLOWS:
		trace_count_flows(t->job, t->rows, t->names, &t->flows);
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
	case JOB_NAME:
		mem_use_kept(t->job->mem, t->draft.op_name, t->draft.cap * sizeof(str_id), 0,
			     t->placed * sizeof(str_id));
		if (t->has_labels)
			USE_KEPT(t, e->name);
		place_names(t, e, first);
		DROP_COLUMN(t, name);
		DROP_COLUMN(t, label);
		break;
	case JOB_CATEGORY_AND_NUMBER:
		if (e->category) {
			USE_KEPT(t, e->category);
			place_categories(t, e->category, first);
		}
		if (t->has_numbers) {
			USE_KEPT(t, e->correlation);
			place_numbers(t, e->correlation, first);
		}
		DROP_COLUMN(t, category);
		DROP_COLUMN(t, number);
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
	case JOB_STEP: /* interpret_trace fills this column */
		USE_KEPT(t, e->step);
		memset(e->step + first, 0, t->placed * sizeof(*e->step));
		break;
	case JOB_COUNT:
		break;
	}
}

static void place_columns(void *arg, unsigned thread)
{
	struct placing *t = arg;

	(void)thread;
	for (;;) {
		size_t job = atomic_fetch_add(&t->next_job, 1);

		if (job >= JOB_COUNT)
			return;
		place_column(t, (enum column_job)job);
	}
}

#define NEED(t, column)                                                                            \
	builder_need_column((t)->job->b, TABLE_event, offsetof(struct event_table, column))

static bool make_columns(struct placing *t)
{
	const struct trace_tally *y = t->tally;
	bool only_x = y->by_ph['X'] == t->placed;

	if (t->placed && !builder_grow(t->job->b, TABLE_event, (uint32_t)t->placed))
		return false;
	if (y->has_categories && !NEED(t, category))
		return false;
	if (t->has_labels && !NEED(t, name))
		return false;
	if (t->has_numbers && !NEED(t, correlation))
		return false;
	if (!only_x && !NEED(t, ph))
		return false;
	return NEED(t, args_offset) && NEED(t, args_size);
}

static uint64_t packed_id(struct placing *t, struct trace_id id)
{
	char text[24];
	int len;

	if (id.kind == ID_NONE)
		return 0;
	if (id.kind == ID_TEXT)
		return MODEL_TEXT_ID |
		       (id.value == t->names->string_count ? 0 : (uint64_t)id.value);
	if (id.value >= 0 && id.value < INT64_C(1) << 62)
		return (uint64_t)id.value;
	len = snprintf(text, sizeof(text), "%" PRId64, id.value);
	return MODEL_TEXT_ID | builder_str(t->job->b, str_make(text, (size_t)len)).v;
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

static void place_mark(struct placing *t, const struct keyed *k)
{
	const struct trace_mark *mark = k->mark;
	event_id event = { k->event };

	if (mark->flags)
		BUILDER_SET(
			t->job->b, event, flags, event,
			(uint8_t)(COLUMN_GET(t->job->b->m->event.flags, event.v) | mark->flags));
	if (mark->id.kind || mark->scope)
		builder_add_event_key(
			t->job->b,
			&(struct event_key_row){ .event = event,
						 .id = packed_id(t, mark->id),
						 .scope = trace_str_id(t->names, mark->scope) });
	if (mark->args_size)
		builder_add_event_args(t->job->b,
				       &(struct event_args_row){ .event = event,
								 .args_offset = mark->args_offset,
								 .args_size = mark->args_size });
	if (mark->frame.kind) {
		stack_id stack = trace_frames_find(t->made->frames, mark->frame);

		if (stack.v)
			BUILDER_SET(t->job->b, event, stack, event, stack);
	}
}

static ow_status place_marks(struct placing *t)
{
	size_t count = 0;
	struct keyed *keyed;

	for (size_t i = 0; i < t->rows->accepted_count; i++)
		count += t->rows->accepted[i].last.marks - t->rows->accepted[i].first.marks;
	if (!count)
		return OW_OK;
	keyed = mem_alloc(t->job->mem, count * sizeof(*keyed));
	if (!keyed)
		return trace_no_memory(t->job);
	count = 0;
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[p->worker];

		for (size_t r = p->first.marks; r < p->last.marks; r++)
			keyed[count++] =
				(struct keyed){ t->first_event +
							w->slices.where[w->marks[r].slice].place,
						&w->marks[r] };
	}
	qsort(keyed, count, sizeof(*keyed), by_event);
	for (size_t i = 0; i < count && builder_status(t->job->b) == OW_OK; i++)
		place_mark(t, &keyed[i]);
	mem_free(t->job->mem, keyed, count * sizeof(*keyed));
	return builder_status(t->job->b);
}

static void place_flow(struct placing *t, const struct trace_worker *w, const struct trace_point *p)
{
	builder_add_flow(
		t->job->b,
		&(struct flow_row){
			.ts_ns = add_base(t->made->header->base_ns, p->ts),
			.id = packed_id(t, (struct trace_id){ p->id, p->id_kind }),
			.track = t->names->lanes[trace_arrow_lane(t->names, p->where.lane)].id,
			.category = trace_str_id(t->names, p->category),
			.name = trace_str_id(t->names, p->name),
			.event = { p->flags & POINT_OF_SLICE
					   ? t->first_event + w->slices.where[p->at].place
					   : 0 },
			.ph = p->ph,
			.enclosing = p->flags & POINT_ENCLOSING ? 1 : 0 });
}

static void place_flows(struct placing *t)
{
	const struct trace_tally *y = t->tally;
	uint64_t flows = y->by_ph['s'] + y->by_ph['t'] + y->by_ph['f'];

	if (flows && flows < UINT32_MAX && !builder_grow(t->job->b, TABLE_flow, (uint32_t)flows))
		return;
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[p->worker];

		for (size_t r = p->first.points; r < p->last.points; r++)
			if (trace_is_flow(&w->points[r]))
				place_flow(t, w, &w->points[r]);
	}
}

static void place_counters(struct placing *t)
{
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[p->worker];

		for (size_t r = p->first.counters; r < p->last.counters; r++) {
			const struct trace_counter *c = &w->counters[r];

			if (c->no_ts || c->no_value)
				continue;
			builder_add_counter(
				t->job->b,
				&(struct counter_row){
					.track = t->names->lanes[c->where.lane].id,
					.name = trace_str_id(t->names, c->name),
					.series = trace_str_id(t->names, c->series),
					.ts_ns = add_base(t->made->header->base_ns, c->ts),
					.value = c->value,
					.instance = trace_str_id(t->names, c->instance) });
		}
	}
}

/* Finds types of ops and categories of operators, from all workers; the first in file order counts. */
static ow_status find_types(struct placing *t)
{
	size_t count = (size_t)t->names->string_count + 1;

	t->type_of = mem_zalloc(t->job->mem, count * sizeof(*t->type_of));
	t->is_operator = mem_zalloc(t->job->mem, count);
	if (!t->type_of || !t->is_operator)
		return trace_no_memory(t->job);
	for (unsigned i = 0; i < t->rows->worker_count; i++) {
		const struct trace_worker *w = &t->rows->workers[i];
		const struct trace_dict *d = &w->dict;
		const uint32_t *strings = t->names->numbers[i].strings;

		t->has_labels |= w->slices.label != NULL;
		t->has_numbers |= w->slices.number != NULL;
		for (uint32_t s = 1; s < d->type_cap && s < d->count; s++) {
			uint32_t type = d->types[s] ? strings[d->types[s]] : 0;

			if (type && type != t->names->string_count && !t->type_of[strings[s]])
				t->type_of[strings[s]] = type;
		}
		for (uint32_t s = 1; s < d->category_cap && s < d->count; s++)
			t->is_operator[strings[s]] |= d->categories[s].wanted == WANT_SEQUENCE;
	}
	return OW_OK;
}

static bool make_draft(struct placing *t)
{
	bool operators = false;

	for (size_t i = 0; i <= t->names->string_count; i++)
		operators |= t->is_operator[i];
	return event_draft_reserve(&t->draft, t->placed, operators && t->has_numbers);
}

static ow_status interpret(struct placing *t)
{
	const struct trace_header *header = t->made->header;
	struct interpret_input in = { .source = t->job->b->source,
				      .input = t->job->ctx->in,
				      .options = t->job->ctx->options,
				      .draft = &t->draft,
				      .first_track = t->first_track,
				      .first_flow = t->first_flow,
				      .types = t->type_of,
				      .type_count = t->names->string_count,
				      .members = header->member_bits,
				      .array_form = !header->object_form,
				      .only_slices = t->tally->by_ph['X'] == t->tally->events,
				      .changes = t->changes,
				      .change_count = t->change_count };

	return interpret_trace(t->job->b, &in);
}

static ow_status make_room(struct placing *t)
{
	struct model *m = t->job->b->m;

	OW_TRY(trace_order_lanes(t->job, t->names, &t->lane_order));
	count_slices(t);
	t->first_track = m->track.count;
	t->first_event = m->event.count;
	t->first_flow = m->flow.count;
	t->unnamed = builder_cstr(t->job->b, "[no name]");
	event_draft_init(&t->draft, t->job->b);
	OW_TRY(find_types(t));
	OW_TRY(trace_make_tracks(t->job, t->rows, t->names, t->lane_order));
	/* Called before there are kept blocks, which are for columns that are written completely. */
	if (!make_columns(t))
		return builder_status(t->job->b);
	return make_draft(t) ? OW_OK : trace_no_memory(t->job);
}

/* Makes kept blocks available for the interpretation. */
static void use_kept_for_ops(struct placing *t)
{
	struct event_table *e = &t->job->b->m->event;
	size_t first = t->first_event;

	USE_KEPT(t, e->op);
}

static ow_status place_all(struct placing *t)
{
	OW_TRY(make_room(t));
	OW_TRY(find_places(t));
	OW_TRY(trace_list(t->made));
	/* done before the columns are filled */
	for (unsigned i = 0; i < t->rows->worker_count; i++)
		trace_worker_drop_elements(&t->rows->workers[i]);
	OW_TRY(place_changes(t));
	atomic_store(&t->point_readers, 2);
	parallel_run(t->job->options.threads, place_columns, t);
	t->job->b->m->event.count += (uint32_t)t->placed;
	if (t->flows.failed)
		return trace_no_memory(t->job);
	OW_TRY(builder_status(t->job->b));
	OW_TRY(place_marks(t));
	OW_TRY(trace_samples(t->job, &t->draft, t->made->header->base_ns));
	OW_TRY(trace_facts(t->made, &t->flows));
	for (unsigned i = 0; i < t->rows->worker_count; i++)
		trace_worker_drop_rows(&t->rows->workers[i]);
	use_kept_for_ops(t);
	return interpret(t);
}

ow_status trace_place(const struct trace_stages *made, struct trace_raw *rows,
		      struct trace_names *names)
{
	struct placing t = {
		.made = made, .job = made->job, .rows = rows, .names = names, .tally = made->tally
	};
	struct mem *mem = made->job->mem;
	size_t strings = (size_t)names->string_count + 1;
	ow_status status = place_all(&t);

	event_draft_release(&t.draft);
	mem_free(mem, t.lane_order, names->lane_count * sizeof(*t.lane_order));
	mem_free(mem, t.type_of, strings * sizeof(*t.type_of));
	mem_free(mem, t.is_operator, strings);
	mem_free(mem, t.changes, t.change_count * sizeof(*t.changes));
	return status;
}
