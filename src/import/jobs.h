/*
 * jobs.h: which of the traces that were opened together belong to one job. import_finish calls it when all inputs are read, before the freeze.
 */
#ifndef IMPORT_JOBS_H
#define IMPORT_JOBS_H

#include "model/builder.h"

/* Sets source.run of traces. */
ow_status import_find_jobs(struct builder *b, struct ow_error *err);

#endif
