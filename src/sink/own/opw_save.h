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
	/* What of an op's definition is to be kept; the bytes are valid until the next call. An empty
	 * text keeps nothing. NULL: all definitions as they are. */
	ow_status (*record)(void *arg, op_id op, struct str *bytes, struct ow_error *err);
	void *record_arg;
	const struct progress *progress; /* in bytes; may be NULL */
};

/* Decodes code traces first; needs all of the sources that arguments are in. Memory: at most 16 bytes
 * per event, and 12 per op. */
ow_status opw_save(struct model *m, const struct opw_save_options *options,
		   const struct opw_out *out, struct ow_error *err);

#endif
