/*
 * lanes.c: assigns overlapping slices to different lanes (lanes.h), for both timelines of TensorFlow. It knows times,
 * not events.
 */
#include "sink/timeline/lanes.h"

void lanes_init(struct lanes *lanes, struct mem *mem, enum lanes_rule rule)
{
	*lanes = (struct lanes){ .mem = mem, .rule = rule };
}

void lanes_release(struct lanes *lanes)
{
	mem_free(lanes->mem, lanes->least, 2 * lanes->size * sizeof(*lanes->least));
	lanes_init(lanes, lanes->mem, lanes->rule);
}

static void set_end(struct lanes *lanes, size_t lane, int64_t end)
{
	size_t at = lanes->size + lane;

	for (lanes->least[at] = end; at > 1; at /= 2)
		lanes->least[at / 2] = MIN(lanes->least[at], lanes->least[at ^ 1]);
}

void lanes_clear(struct lanes *lanes)
{
	for (size_t i = 0; i < 2 * lanes->size; i++)
		lanes->least[i] = INT64_MAX; /* marks a lane that does not exist */
	lanes->used = 0;
	if (!lanes->size || lanes->rule == LANES_TOUCHING)
		return;
	lanes->used = 1;
	set_end(lanes, 0, 0);
}

static bool grow(struct lanes *lanes)
{
	struct lanes larger;

	lanes_init(&larger, lanes->mem, lanes->rule);
	larger.size = MAX(2 * lanes->size, 8);
	larger.least = mem_alloc(lanes->mem, 2 * larger.size * sizeof(*larger.least));
	if (!larger.least)
		return false;
	lanes_clear(&larger);
	for (size_t i = 0; i < lanes->used; i++)
		set_end(&larger, i, lanes->least[lanes->size + i]);
	larger.used = MAX(lanes->used, larger.used);
	lanes_release(lanes);
	*lanes = larger;
	return true;
}

static bool is_free(const struct lanes *lanes, size_t at, int64_t start)
{
	return lanes->least[at] < start ||
	       (lanes->rule == LANES_TOUCHING && lanes->least[at] == start);
}

bool lanes_take(struct lanes *lanes, int64_t start, int64_t end, uint32_t *lane)
{
	size_t at = 1;

	if (!lanes->size && !grow(lanes))
		return false;
	if (is_free(lanes, 1, start))
		while (at < lanes->size)
			at = is_free(lanes, 2 * at, start) ? 2 * at : 2 * at + 1;
	if (at >= lanes->size && at - lanes->size < lanes->used) {
		*lane = (uint32_t)(at - lanes->size);
	} else { /* no lane is free; at start = INT64_MAX a lane that does not exist was found */
		if (lanes->used == lanes->size && !grow(lanes))
			return false;
		*lane = (uint32_t)lanes->used++;
	}
	set_end(lanes, *lane, end);
	return true;
}
