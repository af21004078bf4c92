/*
 * flame_cells.h: the boxes of a flame graph before they are laid out: the displayed tree as it is, with
 * the largest child first, or upside down (from leaves to callers). Called by sink_flamegraph.c only.
 */
#ifndef SINK_FLAME_CELLS_H
#define SINK_FLAME_CELLS_H

#include "sink/sink.h"

struct flame_cell {
	uint32_t node; /* of the tree: its name and kind */
	uint32_t parent, depth;
	int64_t total, own;
};

struct flame_cells {
	struct mem *mem;
	struct flame_cell *items; /* in pre-order, the root first */
	size_t count, cap;
};

enum flame_style { FLAME_UP = 1 << 0, FLAME_INVERTED = 1 << 1, FLAME_LEFT_HEAVY = 1 << 2 };

/* Words that are no style are left to others. */
unsigned flame_style_parse(const char *words);

/* flame_cells_release is due in any case. */
ow_status flame_cells_make(struct flame_cells *cells, const struct tree *tree, enum metric metric,
			   unsigned style, struct mem *mem, struct error *err);
void flame_cells_release(struct flame_cells *cells);

#endif
