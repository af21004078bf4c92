/*
 * lanes.h: puts slices that may overlap into lanes: each takes the first lane whose last slice has ended
 * before it starts. A tree of the least end per group of lanes finds it in a few steps, however many
 * lanes there are.
 */
#ifndef SINK_LANES_H
#define SINK_LANES_H

#include "base/mem.h"

struct lanes {
	struct mem *mem;
	int64_t *least; /* a heap-shaped tree over `size` leaves; leaf i is size + i */
	size_t size;	/* a power of two, 0 before the first */
	size_t used;	/* lanes that exist; all others are free from the start */
};

void lanes_init(struct lanes *lanes, struct mem *mem);
void lanes_release(struct lanes *lanes);
/* All lanes are free again; the first one since time 0, others appear when they are needed. */
void lanes_clear(struct lanes *lanes);
/* The lane of a slice; false without memory. */
bool lanes_take(struct lanes *lanes, int64_t start, int64_t end, uint32_t *lane) OW_MUST_CHECK;

#endif
