/*
 * phase_sums.c: the arithmetic of phases.h: shares of a span of time, means, and which part of the
 * time is a step. Pure functions on lists of spans; phases.c makes the lists from a model.
 */
#include "analyze/phases.h"

#include "model/model.h"

/* The last step is incomplete with less than this part of the device slices of the one before. */
#define COMPLETE_PERCENT 80
/* With more steps than this the first is left out of means: it warms up. */
#define FEW_STEPS 5

const char *const phase_class_names[CLASS_COUNT] = {
	[CLASS_COMPUTE] = "compute",
	[CLASS_COMMUNICATION] = "communication",
	[CLASS_DEVICE_TO_HOST] = "device_to_host",
	[CLASS_HOST_TO_DEVICE] = "host_to_device",
	[CLASS_INPUT] = "input",
	[CLASS_SYNCHRONISATION] = "synchronisation",
	[CLASS_LAUNCH] = "launch",
	[CLASS_HOST] = "host",
	[CLASS_IDLE] = "idle",
};

const uint8_t phase_class_order[CLASS_COUNT] = {
	CLASS_INPUT,   CLASS_HOST,	    CLASS_LAUNCH,	  CLASS_HOST_TO_DEVICE,
	CLASS_COMPUTE, CLASS_COMMUNICATION, CLASS_DEVICE_TO_HOST, CLASS_SYNCHRONISATION,
	CLASS_IDLE,
};

const char *const phase_class_places[CLASS_COUNT] = {
	[CLASS_COMPUTE] = "on",
	[CLASS_COMMUNICATION] = "on",
	[CLASS_DEVICE_TO_HOST] = "after",
	[CLASS_HOST_TO_DEVICE] = "before",
	[CLASS_INPUT] = "before",
	[CLASS_SYNCHRONISATION] = "after",
	[CLASS_LAUNCH] = "before",
	[CLASS_HOST] = "before",
	[CLASS_IDLE] = "",
};

#define BIT(class) (1u << (class))
#define DEVICE_BIT BIT(CLASS_IDLE) /* of lists[CLASS_IDLE] */

/* ---- partition ---- */

/* A piece of time during which the same classes are active. */
static void account(struct phase_sums *s, uint32_t active, int64_t len)
{
	uint32_t classes = active & ~DEVICE_BIT;
	unsigned owner = classes ? (unsigned)__builtin_ctz(classes) : CLASS_IDLE;

	s->share[owner] = span_add(s->share[owner], len);
	if (active & DEVICE_BIT)
		s->device_busy = span_add(s->device_busy, len);
	for (; classes; classes &= classes - 1) {
		unsigned class = (unsigned)__builtin_ctz(classes);

		s->total[class] = span_add(s->total[class], len);
		if (active & BIT(CLASS_COMPUTE))
			s->overlapped[class] = span_add(s->overlapped[class], len);
	}
}

/* Work that waits for nothing is hidden wherever something more important goes on. */
static void hide_below(struct phase_sums *s)
{
	s->overlapped[CLASS_COMPUTE] = 0;
	for (unsigned c = CLASS_INPUT; c < CLASS_IDLE; c++)
		s->overlapped[c] = s->total[c] - s->share[c];
	s->total[CLASS_IDLE] = s->share[CLASS_IDLE];
}

void phases_measure(const struct span_list *const lists[CLASS_COUNT], int64_t from, int64_t to,
		    struct phase_sums *out)
{
	size_t at[CLASS_COUNT];

	*out = (struct phase_sums){ 0 };
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		at[c] = spans_after(lists[c], from);
	for (int64_t next, t = from; t < to; t = next) {
		uint32_t active = 0;

		next = to;
		for (unsigned c = 0; c < CLASS_COUNT; c++) {
			const struct span *span;

			if (at[c] < lists[c]->count && lists[c]->items[at[c]].end <= t)
				at[c]++;
			if (at[c] == lists[c]->count)
				continue;
			span = &lists[c]->items[at[c]];
			if (span->begin <= t)
				active |= BIT(c);
			next = MIN(next, span->begin <= t ? span->end : span->begin);
		}
		account(out, active, span_length(t, next));
	}
	hide_below(out);
}

/* ---- sums and means ---- */

static void add_each(int64_t *to, const int64_t *from)
{
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		to[c] = span_add(to[c], from[c]);
}

void phases_add(struct phase_sums *to, const struct phase_sums *from)
{
	add_each(to->share, from->share);
	add_each(to->total, from->total);
	add_each(to->overlapped, from->overlapped);
	to->device_busy = span_add(to->device_busy, from->device_busy);
}

/* Rounds the running sum and not each share, so that they still add up. */
static void divide_shares(int64_t *share, int64_t n)
{
	int64_t sum = 0, before = 0;

	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		sum = span_add(sum, share[c]);
		share[c] = sum / n - before;
		before = sum / n;
	}
}

void phases_mean(const struct phase_row *rows, uint32_t count, struct phase_row *out)
{
	struct phase_sums *s = &out->sums;

	*out = (struct phase_row){ 0 };
	if (!count)
		return;
	out->window = rows->window;
	out->lane = rows->lane;
	for (uint32_t i = 0; i < count; i++) {
		phases_add(s, &rows[i].sums);
		out->launch_gap_ns = span_add(out->launch_gap_ns, rows[i].launch_gap_ns);
		out->dependency_gap_ns =
			span_add(out->dependency_gap_ns, rows[i].dependency_gap_ns);
		out->queue_delay_ns = span_add(out->queue_delay_ns, rows[i].queue_delay_ns);
		out->queued += rows[i].queued;
	}
	if (count == 1)
		return;
	divide_shares(s->share, count);
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		s->total[c] = MAX(s->total[c] / count, s->share[c]);
		s->overlapped[c] /= count;
	}
	hide_below(s);
	s->device_busy /= count;
	out->launch_gap_ns /= count;
	out->dependency_gap_ns /= count;
}

/* ---- windows ---- */

void phase_windows_make(const struct phase_marker *markers, uint32_t count, bool extended,
			struct phase_window *out)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct phase_marker *marker = &markers[i];
		struct phase_window *w = &out[i];

		w->step = marker->step;
		w->start_ns = marker->begin_ns;
		w->end_ns = marker->end_ns;
		w->between_ns = TIME_UNKNOWN;
		if (extended) {
			if (i)
				w->start_ns = MAX(out[i - 1].end_ns, w->start_ns);
			if (marker->work_end_ns != TIME_UNKNOWN)
				w->end_ns = MAX(w->end_ns, marker->work_end_ns);
			w->end_ns = MAX(w->end_ns, w->start_ns);
		}
		if (i)
			w->between_ns = span_length(out[i - 1].end_ns, w->start_ns);
	}
}

static bool incomplete(uint64_t slices, uint64_t before)
{
	return (double)slices * 100 < (double)before * COMPLETE_PERCENT;
}

void phase_windows_choose(struct phase_window *windows, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		windows[i].use = WINDOW_COUNTS;
	if (count > FEW_STEPS)
		windows[0].use = WINDOW_FIRST;
	if (count > 1 &&
	    incomplete(windows[count - 1].device_slices, windows[count - 2].device_slices))
		windows[count - 1].use = WINDOW_INCOMPLETE;
}
