/*
 * steady.c: makes the windows of steps from their markers, and says which steps are steady (steady.h). phases.c calls the first half while
 * it analyses a model; every reader of steps calls steady_find. Durations decide together with the number of device slices; names do not.
 *
 * With more than MANY steps the first and the last are always left out, as XProf does. Of 3 to MANY steps the first and the last stay if they
 * are like the others, in length and in what they spend time on besides compute. Up to WARM_UP_PART of the steps may be warm-up.
 */
#include "analyze/steps/phases.h"

#include "model/model.h"

/* a step is cut off if it has less than this percentage of its neighbour's slices */
#define COMPLETE_PERCENT 80
#define MANY STEADY_FEW /* number of steps that count as many */
/* the first or last of few steps is left out if it takes this many times the median of the
 * others */
#define UNLIKE 1.25
#define MUCH_MORE 2 /* factor by which a cold step must exceed every other step in some class */
/* a step belongs to the warm-up if it takes this many times the median of the following steps */
#define WARMING 1.5
#define WARM_UP_PART 4	/* the warm-up is at most one in this many steps, or WARM_UP_LEAST */
#define WARM_UP_LEAST 3 /* the warm-up may always have this many steps */

const char *const step_use_words[STEP_USES] = {
	[STEP_STEADY] = "",
	[STEP_WARM_UP] = "warm-up",
	[STEP_LAST] = "the last step: the recording ends within it",
	[STEP_INCOMPLETE] = "incomplete: the recording begins or ends within it",
};

void steady_windows_make(const struct phase_marker *markers, uint32_t count, bool extended,
			 int64_t backlog_ns, struct phase_window *out)
{
	int64_t before = extended ? backlog_ns : TIME_UNKNOWN; /* end of the previous step */

	for (uint32_t i = 0; i < count; i++) {
		const struct phase_marker *marker = &markers[i];
		struct phase_window *w = &out[i];

		w->step = marker->step;
		w->known = marker->known;
		w->start_ns = marker->begin_ns;
		w->end_ns = marker->end_ns;
		w->between_ns = TIME_UNKNOWN;
		/* overlapping markers would count time twice */
		if (before != TIME_UNKNOWN)
			w->start_ns = MAX(before, w->start_ns);
		if (extended && marker->work_end_ns != TIME_UNKNOWN)
			w->end_ns = MAX(w->end_ns, marker->work_end_ns);
		w->end_ns = MAX(w->end_ns, w->start_ns);
		if (i)
			w->between_ns = span_length(out[i - 1].end_ns, w->start_ns);
		before = w->end_ns;
	}
}

static int by_length(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t median_of(int64_t *values, uint32_t count)
{
	int64_t low, high;

	if (!count)
		return TIME_UNKNOWN;
	qsort(values, count, sizeof(*values), by_length);
	low = values[(count - 1) / 2];
	high = values[count / 2];
	return low + (high - low) / 2;
}

static int64_t length_of(const struct phase_window *w)
{
	return span_length(w->start_ns, w->end_ns);
}

static bool has_less(uint64_t slices, uint64_t other)
{
	return (double)slices * 100 < (double)other * COMPLETE_PERCENT;
}

/* Finds steps that the begin or the end of the recording cut off: they have less work than their
 * neighbour. */
static void find_incomplete(struct phase_window *const *w, uint32_t count)
{
	if (count > 1 && has_less(w[count - 1]->device_slices, w[count - 2]->device_slices))
		w[count - 1]->use = STEP_INCOMPLETE;
	if (count > 2 && has_less(w[0]->device_slices, w[1]->device_slices) &&
	    length_of(w[0]) < length_of(w[1]))
		w[0]->use = STEP_INCOMPLETE;
}

/* Returns the median length of steps: exact up to a limit, of an even sample above it. */
static double typical(struct phase_window *const *w, uint32_t first, uint32_t last)
{
	int64_t lengths[1024];
	uint32_t stride = (last - first) / ARRAY_COUNT(lengths) + 1, count = 0;

	for (uint32_t i = first; i < last; i += stride)
		lengths[count++] = length_of(w[i]);
	return (double)median_of(lengths, count);
}

static void choose_of_few(struct phase_window *const *w, uint32_t first, uint32_t last)
{
	double middle = typical(w, first + 1, last - 1), end = (double)length_of(w[last - 1]);

	if ((double)length_of(w[first]) > UNLIKE * middle)
		w[first]->use = STEP_WARM_UP;
	if (end > UNLIKE * middle || end * UNLIKE < middle)
		w[last - 1]->use = STEP_LAST;
}

static void choose_of_many(struct phase_window *const *w, uint32_t first, uint32_t last)
{
	uint32_t most = MAX((last - first) / WARM_UP_PART, (uint32_t)WARM_UP_LEAST);
	double middle;

	w[first]->use = STEP_WARM_UP;
	if (w[last - 1]->use == STEP_STEADY)
		w[--last]->use = STEP_LAST;
	middle = typical(w, first + MIN(most, last - first - 1), last);
	for (uint32_t i = first + 1; i < first + most && i + 1 < last; i++) {
		if ((double)length_of(w[i]) <= WARMING * middle)
			break;
		w[i]->use = STEP_WARM_UP;
	}
}

void steady_choose(struct phase_window *const *windows, uint32_t count)
{
	uint32_t first = 0, last = count;

	for (uint32_t i = 0; i < count; i++)
		windows[i]->use = STEP_STEADY;
	find_incomplete(windows, count);
	if (first < last && windows[first]->use == STEP_INCOMPLETE)
		first++;
	if (count > MANY && last - first > MANY)
		choose_of_many(windows, first, last);
	else {
		if (first < last && windows[last - 1]->use == STEP_INCOMPLETE)
			last--;
		if (last - first > 2)
			choose_of_few(windows, first, last);
	}
}

/* Detects a cold first step by its classes: if it computes less than the others, it may be as
 * long as they are. */
bool steady_first_is_cold(struct phase_window *const *windows, const int64_t *shares,
			  uint32_t count)
{
	int64_t others[STEADY_FEW];
	double middle;

	if (count <= 2 || count > STEADY_FEW || windows[0]->use != STEP_STEADY)
		return false;
	middle = typical(windows, 1, count);
	for (unsigned c = CLASS_COMPUTE + 1; c < CLASS_COUNT; c++) {
		int64_t most = 0;

		for (uint32_t i = 1; i < count; i++) {
			others[i - 1] = shares[i * CLASS_COUNT + c];
			most = MAX(most, others[i - 1]);
		}
		if (shares[c] / MUCH_MORE > most &&
		    (double)(shares[c] - median_of(others, count - 1)) > (UNLIKE - 1) * middle)
			return true;
	}
	return false;
}

static bool is_asked(const struct model *m, const struct phase_window *w, uint32_t run,
		     source_id source)
{
	return (!source.v || w->source.v == source.v) &&
	       (!run || m->source.run[w->source.v] == run);
}

static void add_spans(const struct model *m, const struct phases *p, uint32_t run, source_id source,
		      struct steady_steps *out)
{
	for (uint32_t i = 0; i < p->input_count; i++) {
		const struct phase_input *in = &p->inputs[i];

		if ((!source.v || source.v == i) && (!run || m->source.run[i] == run))
			out->span_ns =
				span_add(out->span_ns, span_length(in->first_ns, in->last_ns));
	}
	if (out->span_ns > 0)
		out->coverage = MIN((double)out->covered_ns / (double)out->span_ns, 1.0);
}

static ow_status set_times(const struct phases *p, struct arena *arena, struct steady_steps *out,
			   struct ow_error *err)
{
	int64_t *lengths = ARENA_ARRAY(arena, int64_t, (size_t)out->used_count + 1), sum = 0;

	if (!lengths)
		return error_no_memory(err);
	for (uint32_t i = 0; i < out->used_count; i++) {
		lengths[i] = length_of(&p->windows[out->used[i]]);
		sum = span_add(sum, lengths[i]);
	}
	out->step_ns = median_of(lengths, out->used_count);
	out->mean_ns = out->used_count ? sum / out->used_count : TIME_UNKNOWN;
	return OW_OK;
}

ow_status steady_find(const struct model *m, const struct phases *p, uint32_t run, source_id source,
		      struct arena *arena, struct steady_steps *out, struct ow_error *err)
{
	*out = (struct steady_steps){ 0 };
	out->used = ARENA_ARRAY(arena, uint32_t, (size_t)p->window_count + 1);
	out->left_out = ARENA_ARRAY(arena, uint32_t, (size_t)p->window_count + 1);
	if (!out->used || !out->left_out)
		return error_no_memory(err);
	for (uint32_t i = 0; i < p->window_count; i++)
		if (is_asked(m, &p->windows[i], run, source))
			out->chosen |= p->windows[i].use == STEP_STEADY;
	for (uint32_t i = 0; i < p->window_count; i++) {
		const struct phase_window *w = &p->windows[i];

		if (!is_asked(m, w, run, source))
			continue;
		out->known |= w->known;
		out->covered_ns = span_add(out->covered_ns, length_of(w));
		if (w->use == STEP_STEADY || !out->chosen)
			out->used[out->used_count++] = i;
		else
			out->left_out[out->left_out_count++] = i;
	}
	add_spans(m, p, run, source, out);
	return set_times(p, arena, out, err);
}

ow_status steady_times(const struct model *m, const struct phases *p, struct arena *arena,
		       struct step_times **out, struct ow_error *err)
{
	struct step_times *times = ARENA_ARRAY(arena, struct step_times, (size_t)m->step.count + 1);
	int64_t before = INT64_MIN; /* end of the previous step */
	uint32_t source = 0;

	*out = times;
	if (!times)
		return error_no_memory(err);
	for (uint32_t i = 0; i < m->step.count; i++)
		times[i] = (struct step_times){ TIME_UNKNOWN, TIME_UNKNOWN, STEP_STEADY,
						i && !COLUMN_GET(m->step.whole, i) };
	for (uint32_t i = 0; i < p->window_count; i++) {
		const struct phase_window *w = &p->windows[i];

		if (times[w->step.v].start_ns == TIME_UNKNOWN)
			times[w->step.v] = (struct step_times){ w->start_ns, w->end_ns, w->use,
								times[w->step.v].known };
	}
	/* windows are sorted by time within each source */
	for (uint32_t i = 1; i < m->window.count; i++) {
		struct step_times *to = &times[m->window.step[i].v];

		if (m->window.source[i].v != source)
			before = INT64_MIN;
		source = m->window.source[i].v;
		if (to->start_ns == TIME_UNKNOWN) {
			to->start_ns = MAX(m->window.start_ns[i], before);
			to->end_ns = MAX(m->window.end_ns[i], to->start_ns);
		}
		before = MAX(before, to->end_ns);
	}
	for (uint32_t i = 1; i < m->step.count; i++)
		if (times[i].start_ns == TIME_UNKNOWN || times[i].end_ns == TIME_UNKNOWN) {
			times[i].start_ns = m->step.start_ns[i];
			times[i].end_ns = m->step.end_ns[i];
		}
	return OW_OK;
}
