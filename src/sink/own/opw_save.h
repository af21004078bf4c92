/*
 * opw_save.h: writes a frozen model as our own file (docs/file-format.md). Not a sink: it writes the
 * whole model, not a result. The reader is src/import/own/import_opw.c.
 */
#ifndef SINK_OPW_SAVE_H
#define SINK_OPW_SAVE_H

#include "model/model.h"
#include "wire/own/opw.h"

struct opw_save_options {
	const char *writer; /* "opwatch 0.1.0" */
	/* Returns the part of an op's definition to keep; the bytes are valid until the next call. An empty text
	 * keeps nothing. NULL: all definitions are kept unchanged. */
	ow_status (*record)(void *arg, op_id op, struct str *bytes, struct ow_error *err);
	void *record_arg;
	const struct progress *progress; /* progress in bytes; may be NULL */
};

/* Writes the model. Decodes code traces first; the source files that arguments are in must still be readable.
 * Memory: at most 16 bytes for each event, and 12 for each op. */
ow_status opw_save(struct model *m, const struct opw_save_options *options,
		   const struct opw_out *out, struct ow_error *err);

#endif
