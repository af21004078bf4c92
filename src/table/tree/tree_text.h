/*
 * tree_text.h: the texts of a tree's rows that need more than a number: shapes, input shapes, devices
 * and op types. Shared by tree.c (columns) and tfprof's text. Appends to a buf; failures stay there.
 */
#ifndef MODEL_TREE_TEXT_H
#define MODEL_TREE_TEXT_H

#include "table/tree/tree.h"

/* Buffers for joining sets, kept between rows. */
struct tree_text {
	const struct tree *tree;
	struct mem *mem;
	uint32_t *ids;
	size_t cap;
};

void tree_text_init(struct tree_text *t, const struct tree *tree, struct mem *mem);
void tree_text_release(struct tree_text *t);

/* Writes canonical devices joined with "|"; false when tfprof shows no field at all. An op that never ran has the
 * empty device, which counts as a member in code and op views. */
bool tree_text_devices(struct tree_text *t, const struct tree_node *node, struct buf *to);
/* Writes op types joined with "|". */
void tree_text_types(struct tree_text *t, const struct tree_node *node, struct buf *to);

/* Writes a shape such as "2x3"; nothing for an unknown shape. */
void tree_text_shape(const struct model *m, shape_id shape, struct buf *to);
/* Writes "0:2x3|1:unknown" with the given separator. */
void tree_text_inputs(const struct model *m, op_id op, const char *separator, struct buf *to);

/* Returns the shape that the views show for that row of op_input; nil if unknown. */
shape_id tree_input_shape(const struct model *m, uint32_t row);

/* The op's rows of op_input sorted by index: NULL when they are sorted already (the usual case), else their row
 * numbers in *order, which the caller keeps for reuse and frees. False if memory runs out. */
struct input_order {
	struct mem *mem;
	uint64_t *rows; /* items: index << 32 | row */
	size_t cap;
};
bool tree_input_order(const struct model *m, op_id op, struct input_order *order, bool *sorted);

#endif
