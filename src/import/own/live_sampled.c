/*
 * live_sampled.c: places slices that stand for several calls in time. Calls that come too fast are counted, and one in
 * N is timed (ring.h): the estimate for all of them is N times its duration. Several slices of a thread are placed one
 * after the other, between the thread's previous and next slices. live_read.c calls it for each record of a thread. A
 * long call may stand for more time than fits there; the rest is added to later slices of the same name, so that the
 * sums of a name stay right.
 */
#include "import/own/own_int.h"

/* Larger times and estimates are damage. */
#define MOMENT_MAX (INT64_MAX / 2)
#define LENGTH_MAX (MOMENT_MAX / LIVE_BLOCK)

static struct live_slice *slice_at(struct live_data *d, const struct live_lane *lane, size_t at)
{
	return &d->slices[lane->block[at]];
}

/* Stores time that did not fit, for later slices of the same name. If the small table is full the time is lost. */
static void carry(struct live_lane *lane, uint32_t name, int64_t ns)
{
	for (size_t i = 0; i < LIVE_CARRIES; i++) {
		struct live_carry *c = &lane->carries[i];

		if (c->ns && c->name != name)
			continue;
		c->name = name;
		c->ns = MIN(c->ns + ns, (int64_t)LENGTH_MAX);
		return;
	}
}

/* Shortens the longest slices by the excess. */
static void shorten(struct live_data *d, struct live_lane *lane, size_t count, int64_t excess)
{
	while (excess > 0) {
		struct live_slice *longest = slice_at(d, lane, 0);
		int64_t less;

		for (size_t i = 1; i < count; i++)
			if (slice_at(d, lane, i)->dur_ns > longest->dur_ns)
				longest = slice_at(d, lane, i);
		less = MIN(excess, longest->dur_ns);
		if (less <= 0)
			return;
		carry(lane, longest->name, less);
		longest->dur_ns -= less;
		excess -= less;
	}
}

/* Adds stored time to the slices, as far as there is room; returns how much was added. */
static int64_t lengthen(struct live_data *d, struct live_lane *lane, size_t count, int64_t room)
{
	int64_t before = room;

	for (size_t k = 0; k < LIVE_CARRIES; k++)
		for (size_t i = 0; i < count && lane->carries[k].ns && room > 0; i++) {
			struct live_slice *s = slice_at(d, lane, i);
			int64_t more = MIN(room, lane->carries[k].ns);

			if (s->name != lane->carries[k].name)
				continue;
			s->dur_ns += more;
			lane->carries[k].ns -= more;
			room -= more;
		}
	return before - room;
}

/* Places the first slices of the block, not before `from`. Until now their ts_ns is the time at which they ended. */
static void lay(struct live_data *d, struct live_lane *lane, size_t count, int64_t from)
{
	int64_t until = count ? slice_at(d, lane, count - 1)->ts_ns : 0, total = 0, at = until;

	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		total += slice_at(d, lane, i)->dur_ns;
	from = from ? MAX(MIN(from, until), -MOMENT_MAX) : until - total;
	if (total > until - from) {
		shorten(d, lane, count, total - (until - from));
		total = until - from;
	} else {
		total += lengthen(d, lane, count, until - from - total);
	}
	for (size_t i = count; i-- > 0;) { /* `total` is the sum of this item and all before it */
		struct live_slice *s = slice_at(d, lane, i);

		total -= s->dur_ns;
		s->ts_ns = MAX(MIN(at, s->ts_ns) - s->dur_ns, from + total);
		at = s->ts_ns;
	}
	lane->end_ns = MAX(lane->end_ns, until);
	lane->block_count -= (uint32_t)count;
	d->unplaced -= count;
	memmove(lane->block, lane->block + count, lane->block_count * sizeof(*lane->block));
}

void live_sampled_add(struct live_data *d, struct live_lane *lane, size_t slice)
{
	struct live_slice *s = &d->slices[slice];
	struct live_job *job = &d->jobs[lane->job];
	int64_t all;

	if (__builtin_mul_overflow(s->dur_ns, (int64_t)s->calls, &all) || all > LENGTH_MAX ||
	    s->ts_ns > MOMENT_MAX - LENGTH_MAX || s->ts_ns < -MOMENT_MAX || slice > UINT32_MAX) {
		s->calls = 0; /* the count is damaged */
		return;
	}
	job->sampled++;
	job->sampled_of += s->calls;
	s->ts_ns += s->dur_ns;
	s->dur_ns = all;
	lane->block[lane->block_count++] = (uint32_t)slice;
	d->unplaced++;
	if (lane->block_count == LIVE_BLOCK)
		lay(d, lane, LIVE_BLOCK, lane->end_ns);
}

void live_sampled_before(struct live_data *d, struct live_lane *lane, int64_t start_ns)
{
	size_t before = 0;

	if (!lane->block_count)
		return;
	while (before < lane->block_count && slice_at(d, lane, before)->ts_ns <= start_ns)
		before++;
	lay(d, lane, before, lane->end_ns);
	/* inside the enclosing slice */
	lay(d, lane, lane->block_count, MAX(lane->end_ns, start_ns));
}

void live_sampled_finish(struct live_data *d)
{
	for (size_t i = 0; i < d->lane_count && d->unplaced; i++)
		lay(d, &d->lanes[i], d->lanes[i].block_count, d->lanes[i].end_ns);
}
