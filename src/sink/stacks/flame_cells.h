/*
 * flame_cells.h: the boxes of a flame graph before layout: the displayed tree as it is, with the largest child first, or inverted (callers
 * below their callees). Used by sink_flamegraph.c, which draws them.
 */
#ifndef SINK_FLAME_CELLS_H
#define SINK_FLAME_CELLS_H

#include "sink/tree_out.h"

struct flame_cell {
	uint32_t node; /* node of the tree that gives the box its name and kind */
	uint32_t parent, depth;
	int64_t total, own;
};

struct flame_cells {
	struct mem *mem;
	struct flame_cell *items; /* in pre-order, the root first */
	size_t count, cap;
};

enum flame_style { FLAME_UP = 1 << 0, FLAME_INVERTED = 1 << 1, FLAME_LEFT_HEAVY = 1 << 2 };

/* The caller calls flame_cells_release, also after a failure. */
ow_status flame_cells_make(struct flame_cells *c, const struct tree *tree, enum metric metric,
			   unsigned style, struct mem *mem, struct ow_error *err);
bool flame_cells_add(struct flame_cells *c, const struct flame_cell *cell);
void flame_cells_release(struct flame_cells *c);
/* The sum a + b, limited to INT64_MAX. */
int64_t flame_add(int64_t a, int64_t b);

#endif
