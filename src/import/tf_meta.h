/* tf_meta.h: MetaGraphDef: a graph with its collections. Used by its own importer and SavedModel's. */
#ifndef IMPORT_TF_META_H
#define IMPORT_TF_META_H

#include "import/importer.h"

/* Reads the MetaGraphDef in bytes [begin, end) of ctx->in; facts go below `facts`. With `count_only`
 * nothing but facts is made of it, and *unknown becomes the number of nodes that are no ops of the
 * model. */
ow_status tf_meta_read(struct import_ctx *ctx, uint64_t begin, uint64_t end, fact_id facts,
		       bool count_only, uint64_t *unknown);

#endif
