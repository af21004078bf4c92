/*
 * run_metadata.h: reads a RunMetadata that is a separate file (import_runmeta.c, which has the body) or a part of a
 * TensorBoard event file (import_tfevents.c). What tfprof counts for an op goes into op_step, memory and alloc; events
 * and tensors are made on first use (tf_rows.h).
 */
#ifndef IMPORT_RUN_METADATA_H
#define IMPORT_RUN_METADATA_H

#include "import/importer.h"

#define TF_NEXT_STEP INT64_MIN

/* Reads the RunMetadata (or, when `bare`, the StepStats) in bytes [begin, end) of ctx->in as the step with that number;
 * TF_NEXT_STEP is the number after the highest. Sets ctx->coverage and ctx->missing_step_stats. Facts are added to
 * `facts`.
 */
ow_status tf_run_read(struct import_ctx *ctx, uint64_t begin, uint64_t end, bool bare, int64_t step,
		      fact_id facts);

#endif
