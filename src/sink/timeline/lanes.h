/*
 * lanes.h: assigns slices that may overlap to lanes, for step_timeline.c and sink_timeline.c: each slice takes the
 * first lane whose last slice has ended when it starts. A tree with the least end of each group of lanes finds that
 * lane in a few steps, however many lanes there are.
 */
#ifndef SINK_LANES_H
#define SINK_LANES_H

#include "base/mem.h"

/* The two original programs differ in how they treat a slice that begins exactly when another ends, and times before
 * 0. */
enum lanes_rule {
	/* a lane is free only after its last slice's end; the first lane is in use until time 0 */
	LANES_APART,
	LANES_TOUCHING /* a lane is free from its last slice's end on */
};

struct lanes {
	struct mem *mem;
	enum lanes_rule rule;
	int64_t *least; /* binary tree in an array, over `size` leaves; leaf i is at size + i */
	size_t size;	/* number of leaves, a power of two; 0 before the first slice */
	size_t used;	/* number of lanes that exist; all others are free */
};

void lanes_init(struct lanes *lanes, struct mem *mem, enum lanes_rule rule);
void lanes_release(struct lanes *lanes);
/* Empties all lanes; lanes are created again when needed. */
void lanes_clear(struct lanes *lanes);
/* Finds the lane of a slice; false if memory runs out. */
bool lanes_take(struct lanes *lanes, int64_t start, int64_t end, uint32_t *lane) OW_MUST_CHECK;

#endif
