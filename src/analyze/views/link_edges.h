/*
 * link_edges.h: edges of a graph for traces without a graph: an op reads from another if an event of the other caused an event of the
 * first (launches, flows, messages, forward and backward). Used by view_graph.c.
 */
#ifndef ANALYZE_LINK_EDGES_H
#define ANALYZE_LINK_EDGES_H

#include "model/model.h"

struct op_edges {
	const uint32_t *first, *count; /* per op: its inputs, in src */
	const op_id *src;
	uint32_t edges; /* + 1: src[0] is unused */
};

/* Whether the links of a model are all there is of its graph. */
static inline bool link_edges_only(const struct model *m)
{
	return m->op_input.count <= 1 && m->link.count > 1;
}

/* Each pair of ops once, the inputs of an op in the order in which they were first seen. All in `scratch`. */
ow_status link_edges_make(const struct model *m, struct arena *scratch, struct op_edges *out,
			  struct ow_error *err);

#endif
