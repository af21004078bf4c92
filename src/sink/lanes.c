/* lanes.c: see lanes.h. */
#include "sink/lanes.h"

void lanes_init(struct lanes *lanes, struct mem *mem)
{
	*lanes = (struct lanes){ .mem = mem };
}

void lanes_release(struct lanes *lanes)
{
	mem_free(lanes->mem, lanes->least, 2 * lanes->size * sizeof(*lanes->least));
	*lanes = (struct lanes){ .mem = lanes->mem };
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
		lanes->least[i] = INT64_MAX; /* does not exist */
	lanes->used = 0;
	if (!lanes->size)
		return;
	lanes->used = 1;
	set_end(lanes, 0, 0);
}

static bool grow(struct lanes *lanes)
{
	struct lanes larger = { .mem = lanes->mem, .size = MAX(2 * lanes->size, 8) };

	larger.least = mem_alloc(lanes->mem, 2 * larger.size * sizeof(*larger.least));
	if (!larger.least)
		return false;
	lanes_clear(&larger);
	for (size_t i = 0; i < lanes->used; i++)
		set_end(&larger, i, lanes->least[lanes->size + i]);
	larger.used = MAX(lanes->used, 1);
	lanes_release(lanes);
	*lanes = larger;
	return true;
}

bool lanes_take(struct lanes *lanes, int64_t start, int64_t end, uint32_t *lane)
{
	size_t at = 1;

	if (!lanes->size && !grow(lanes))
		return false;
	if (lanes->least[1] < start) {
		while (at < lanes->size)
			at = lanes->least[2 * at] < start ? 2 * at : 2 * at + 1;
		*lane = (uint32_t)(at - lanes->size);
	} else {
		if (lanes->used == lanes->size && !grow(lanes))
			return false;
		*lane = (uint32_t)lanes->used++;
	}
	set_end(lanes, *lane, end);
	return true;
}
