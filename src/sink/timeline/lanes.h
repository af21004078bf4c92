/*
 * lanes.h: puts slices that may overlap into lanes, for step_timeline.c and sink_timeline.c: each takes the
 * first lane whose last slice has ended when it starts. A tree of the least end per group of lanes finds it
 * in a few steps, however many lanes there are.
 */
#ifndef SINK_LANES_H
#define SINK_LANES_H

#include "base/mem.h"

/* The two originals differ where a slice begins just when another ends, and before time 0. */
enum lanes_rule {
	LANES_APART,   /* the other must have ended before; the first lane is in use until time 0 */
	LANES_TOUCHING /* a slice may begin where another ends */
};

struct lanes {
	struct mem *mem;
	enum lanes_rule rule;
	int64_t *least; /* a heap-shaped tree over `size` leaves; leaf i is size + i */
	size_t size;	/* a power of two, 0 before the first */
	size_t used;	/* lanes that exist; all others are free from the start */
};

void lanes_init(struct lanes *lanes, struct mem *mem, enum lanes_rule rule);
void lanes_release(struct lanes *lanes);
/* All lanes are free again; they appear when they are needed. */
void lanes_clear(struct lanes *lanes);
/* The lane of a slice; false without memory. */
bool lanes_take(struct lanes *lanes, int64_t start, int64_t end, uint32_t *lane) OW_MUST_CHECK;

#endif
