/*
 * tf_run.h: run metadata. Every record of a StepStats becomes an event; what tfprof accounts for
 * an op (time on its device and streams, memory, runs) goes into op_step, memory and alloc. Used by the
 * importers of RunMetadata and event files.
 */
#ifndef IMPORT_TF_RUN_H
#define IMPORT_TF_RUN_H

#include "import/importer.h"

#define TF_NEXT_STEP INT64_MIN

/* Reads the RunMetadata (or, when `bare`, the StepStats) in bytes [begin, end) of ctx->in as the step
 * with that number; TF_NEXT_STEP is the one after the last. Sets ctx->coverage and
 * ctx->missing_step_stats. Facts go below `facts`. */
ow_status tf_run_read(struct import_ctx *ctx, uint64_t begin, uint64_t end, bool bare, int64_t step,
		      fact_id facts);

#endif
