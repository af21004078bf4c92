/*
 * tf_graph.h: a GraphDef becomes ops, edges and static shapes (import_graphdef.c); a MetaGraphDef is a graph with its
 * collections (import_metagraph.c). Used by the importers of both, of SavedModel and of event files.
 */
#ifndef IMPORT_TF_GRAPH_H
#define IMPORT_TF_GRAPH_H

#include "import/importer.h"

/* Reads the GraphDef in bytes [begin, end) of ctx->in. Nodes whose name is known already are skipped. Facts about the
 * graph are added to `facts` (nil: the source's own). `found`, if given, receives the number of nodes in the message;
 * then a graph without nodes is not an error.
 */
ow_status tf_graph_read(struct import_ctx *ctx, uint64_t begin, uint64_t end, fact_id facts,
			uint64_t *found);

/* Counts only: adds facts, and returns the number of nodes that are not ops of the model. */
ow_status tf_graph_count(struct import_ctx *ctx, uint64_t begin, uint64_t end, fact_id facts,
			 uint64_t *unknown);

/* Reads the MetaGraphDef in bytes [begin, end) of ctx->in; facts are added to `facts`. With `count_only` only facts
 * are added, and *unknown receives the number of nodes that are not ops of the model. */
ow_status tf_meta_read(struct import_ctx *ctx, uint64_t begin, uint64_t end, fact_id facts,
		       bool count_only, uint64_t *unknown);

#endif
