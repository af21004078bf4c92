/*
 * link_edges.h: edges of a graph for traces without a graph: an op reads from another if an event of the other caused an event of the
 * first (launches, flows, messages, forward and backward). Used by view_graph.c.
 */
#ifndef ANALYZE_LINK_EDGES_H
#define ANALYZE_LINK_EDGES_H

#include "model/model.h"

struct op_edges {
	const uint32_t *first, *count; /* for each op: range of its inputs in src */
	const op_id *src;
	uint32_t edges; /* number of edges + 1, because src[0] is unused */
};

/* Returns whether the edges of a model's graph come only from links. */
static inline bool link_edges_only(const struct model *m)
{
	return m->op_input.count <= 1 && m->link.count > 1;
}

/* Makes each pair of ops once; the inputs of an op are in the order in which they were first seen. The
 * result is in `scratch`. */
ow_status link_edges_make(const struct model *m, struct arena *scratch, struct op_edges *out,
			  struct ow_error *err);

#endif
