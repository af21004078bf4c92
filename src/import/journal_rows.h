/* journal_rows.h: a recording of our own (wire/journal.h) as rows of a model. Called by import_opw.c. */
#ifndef IMPORT_JOURNAL_ROWS_H
#define IMPORT_JOURNAL_ROWS_H

#include "import/importer.h"

ow_status journal_load(struct import_ctx *ctx);

#endif
