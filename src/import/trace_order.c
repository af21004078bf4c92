/*
 * trace_order.c: finds the place of every slice in the model: grouped by track and sorted by start, longest
 * first, in file order where these are equal. Called by trace_place.c, which moves the columns there.
 */
#include "import/trace_int.h"

/* ---- the place of every slice ---- */

struct cursor {
	size_t next;
	int64_t ts, dur; /* of the last slice placed */
	uint32_t row;
	uint16_t worker;
	bool tied; /* more than one slice of that ts */
	bool unsorted;
};

void trace_count_slices(struct trace *t)
{
	for (uint32_t i = 1; i < t->ordered; i++) {
		struct trace_lane *lane = &t->lanes[t->lane_order[i]];

		lane->first = t->placed;
		t->placed += lane->count;
	}
}

/* Of two slices with one start the longer comes first. True when they could just change places. */
static bool swap_places(struct trace *t, struct cursor *c, uint32_t *place)
{
	uint32_t *other = &t->workers[c->worker].slices.track[c->row], kept = *other;

	if (c->tied)
		return false;
	*other = *place;
	*place = kept;
	c->tied = true;
	return true;
}

/* Slices get the place they have if their track is in order, which tells whether it is. */
static void place_in_file_order(struct trace *t, struct cursor *cursors)
{
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_slices *s = &t->workers[p->worker].slices;

		for (size_t r = p->first.slices; r < p->last.slices; r++) {
			struct cursor *c = &cursors[s->track[r]];
			int64_t ts = s->ts[r], dur = s->dur[r];

			s->track[r] = (uint32_t)c->next++;
			if (OW_UNLIKELY(ts <= c->ts)) {
				if (ts < c->ts ||
				    (dur > c->dur && !swap_places(t, c, &s->track[r]))) {
					c->unsorted = true;
				} else if (dur > c->dur) {
					continue; /* the other one is last still */
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

/* ---- tracks that are not in order ---- */

struct sorting {
	struct trace *t;
	size_t *firsts, *ends; /* places of the tracks to be sorted */
	size_t *starts;	       /* where their rows begin */
	size_t lane_count;
	uint32_t *rows; /* of these tracks, each in file order: bases[worker] + row */
	uint64_t bases[PARALLEL_MAX + 2];
	size_t count, longest;
	atomic_size_t next;
	atomic_bool failed;
};

static int64_t dur_of(const struct trace *t, const struct trace_ref *ref)
{
	return t->workers[ref->worker].slices.dur[ref->row];
}

/* Equal starts: longest first, else as they were. Such runs are short, unless a file is odd. */
static void sort_ties(const struct trace *t, struct trace_ref *refs, size_t count,
		      struct trace_ref *scratch)
{
	for (size_t first = 0, n; first < count; first += n) {
		bool sorted = true;

		for (n = 1; first + n < count && refs[first + n].ts == refs[first].ts; n++)
			sorted &= dur_of(t, &refs[first + n]) <= dur_of(t, &refs[first + n - 1]);
		if (sorted)
			continue;
		/* Durations, turned round, take the place of the times for a moment. */
		for (size_t i = first; i < first + n; i++)
			refs[i].ts = ~dur_of(t, &refs[i]);
		trace_sort(refs + first, n, scratch);
		for (size_t i = first; i < first + n; i++)
			refs[i].ts = refs[i].row; /* any value: times are not needed again */
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
		refs[i].ts = s->t->workers[worker].slices.ts[refs[i].row];
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
		s->t->workers[refs[k].worker].slices.track[refs[k].row] =
			(uint32_t)(s->firsts[lane] + k);
}

static void sort_lanes(void *arg, unsigned thread)
{
	struct sorting *s = arg;
	struct trace_ref *refs = mem_alloc(s->t->mem, 2 * s->longest * sizeof(*refs));

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
	mem_free(s->t->mem, refs, 2 * s->longest * sizeof(*refs));
}

/* Slices of unsorted tracks, found by the place they got: that is in file order per track. `unsorted`
 * tells for every STRIDE places the first unsorted track that ends after them. */
#define STRIDE 256

static void collect_unsorted(struct sorting *s, const uint32_t *unsorted)
{
	struct trace *t = s->t;

	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_slices *rows = &t->workers[p->worker].slices;

		for (size_t r = p->first.slices; r < p->last.slices; r++) {
			size_t place = rows->track[r];
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

static void choose_unsorted(struct sorting *s)
{
	const struct trace *t = s->t;

	for (uint32_t i = 1; i < t->ordered; i++) {
		const struct trace_lane *lane = &t->lanes[t->lane_order[i]];

		if (!lane->unsorted)
			continue;
		s->starts[s->lane_count] = s->count;
		s->firsts[s->lane_count] = lane->first;
		s->ends[s->lane_count++] = lane->first + lane->count;
		s->count += lane->count;
		s->longest = MAX(s->longest, lane->count);
	}
	s->starts[s->lane_count] = s->count;
}

/* Rows of all workers, numbered as one. */
static bool number_rows(struct sorting *s)
{
	const struct trace *t = s->t;

	for (unsigned i = 0; i < t->worker_count; i++)
		s->bases[i + 1] = s->bases[i] + t->workers[i].slices.count;
	return s->bases[t->worker_count] <= UINT32_MAX;
}

static ow_status sort_chosen(struct sorting *s)
{
	struct trace *t = s->t;
	size_t strides = t->placed / STRIDE + 1;
	uint32_t *index = mem_alloc(t->mem, strides * sizeof(*index));
	ow_status status = OW_OK;

	s->rows = index ? mem_alloc(t->mem, s->count * sizeof(*s->rows)) : NULL;
	if (s->rows) {
		index_unsorted(s, index, strides);
		collect_unsorted(s, index);
		parallel_run((unsigned)MIN((size_t)t->options.threads, s->lane_count), sort_lanes,
			     s);
	}
	if (!s->rows || atomic_load(&s->failed))
		status = error_no_memory(t->ctx->err);
	mem_free(t->mem, s->rows, s->count * sizeof(*s->rows));
	mem_free(t->mem, index, strides * sizeof(*index));
	return status;
}

static ow_status sort_unsorted(struct trace *t)
{
	struct sorting s = { .t = t };
	size_t lanes = (size_t)t->lane_count + 1;
	ow_status status = OW_OK;

	if (!number_rows(&s))
		return error_set(t->ctx->err, OW_E_LIMIT, "%s: more than 4 billion slices",
				 t->ctx->in->name);
	s.starts = mem_alloc(t->mem, 3 * lanes * sizeof(*s.starts));
	if (!s.starts)
		return error_no_memory(t->ctx->err);
	s.firsts = s.starts + lanes;
	s.ends = s.firsts + lanes;
	choose_unsorted(&s);
	if (s.lane_count)
		status = sort_chosen(&s);
	mem_free(t->mem, s.starts, 3 * lanes * sizeof(*s.starts));
	return status;
}

ow_status trace_find_places(struct trace *t)
{
	struct cursor *cursors = mem_zalloc(t->mem, t->lane_count * sizeof(*cursors));

	if (!cursors)
		return error_no_memory(t->ctx->err);
	for (uint32_t i = 0; i < t->lane_count; i++)
		cursors[i] = (struct cursor){ .next = t->lanes[i].first, .ts = INT64_MIN };
	place_in_file_order(t, cursors);
	for (uint32_t i = 0; i < t->lane_count; i++)
		t->lanes[i].unsorted = cursors[i].unsorted;
	mem_free(t->mem, cursors, t->lane_count * sizeof(*cursors));
	return sort_unsorted(t);
}
