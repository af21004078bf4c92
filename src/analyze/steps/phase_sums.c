/*
 * phase_sums.c: the arithmetic of phases.h: names and order of the classes, the partition of a span of time among the classes that are
 * active in it, sums and means that still add up. Knows lists of spans only, no model. Called by phases.c and view_phases.c.
 */
#include "analyze/steps/phases.h"

const char *const phase_class_names[CLASS_COUNT] = {
	[CLASS_COMPUTE] = "compute",
	[CLASS_COMMUNICATION] = "communication",
	[CLASS_DEVICE_TO_HOST] = "device_to_host",
	[CLASS_HOST_TO_DEVICE] = "host_to_device",
	[CLASS_INPUT] = "input",
	[CLASS_SYNCHRONISATION] = "synchronisation",
	[CLASS_INITIALISATION] = "initialisation",
	[CLASS_ALLOCATION] = "allocation",
	[CLASS_LAUNCH] = "launch",
	[CLASS_HOST] = "host",
	[CLASS_RUN_QUEUE] = "run_queue",
	[CLASS_IDLE] = "idle",
};

const uint8_t phase_class_order[CLASS_COUNT] = {
	CLASS_INPUT,	       CLASS_HOST,	    CLASS_INITIALISATION,
	CLASS_ALLOCATION,      CLASS_LAUNCH,	    CLASS_HOST_TO_DEVICE,
	CLASS_COMPUTE,	       CLASS_COMMUNICATION, CLASS_DEVICE_TO_HOST,
	CLASS_SYNCHRONISATION, CLASS_RUN_QUEUE,	    CLASS_IDLE,
};

const char *const phase_class_places[CLASS_COUNT] = {
	[CLASS_COMPUTE] = "on",
	[CLASS_COMMUNICATION] = "on",
	[CLASS_DEVICE_TO_HOST] = "after",
	[CLASS_HOST_TO_DEVICE] = "before",
	[CLASS_INPUT] = "before",
	[CLASS_SYNCHRONISATION] = "after",
	[CLASS_INITIALISATION] = "before",
	[CLASS_ALLOCATION] = "before",
	[CLASS_LAUNCH] = "before",
	[CLASS_HOST] = "before",
	[CLASS_RUN_QUEUE] = "",
	[CLASS_IDLE] = "",
};

#define BIT(class) (1u << (class))
#define DEVICE_BIT BIT(CLASS_IDLE) /* bit of lists[CLASS_IDLE], which holds all device work */

/* Accounts for a piece of time during which the active classes do not change. */
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

/* Counts work that waits for nothing as hidden while a more important class is active. */
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
	const struct span *at[CLASS_COUNT], *end[CLASS_COUNT];
	uint32_t bits[CLASS_COUNT];
	unsigned count = 0; /* of classes that have spans at all: most recordings have few */

	*out = (struct phase_sums){ 0 };
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		if (!lists[c]->count)
			continue;
		at[count] = lists[c]->items + spans_after(lists[c], from);
		end[count] = lists[c]->items + lists[c]->count;
		bits[count++] = BIT(c);
	}
	for (int64_t next, t = from; t < to; t = next) {
		uint32_t active = 0;

		next = to;
		for (unsigned i = 0; i < count; i++) {
			if (at[i] < end[i] && at[i]->end <= t)
				at[i]++;
			if (at[i] == end[i])
				continue;
			if (at[i]->begin <= t)
				active |= bits[i];
			next = MIN(next, at[i]->begin <= t ? at[i]->end : at[i]->begin);
		}
		account(out, active, span_length(t, next));
	}
	hide_below(out);
}

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

/* Divides the shares by n. Rounds the running sum, not each share, so that the shares still add
 * up. */
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
