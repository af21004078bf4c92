/*
 * record.h: the definition of an op, reduced to what an opwatch file keeps: its name, kind and attributes. Weights are
 * left out, and so are the fields of a ProfileNode besides its attributes, which are in the columns already. Called by
 * the API when it saves a profile; sinks do not parse. It also reads all attributes, for writers of other formats.
 */
#ifndef IMPORT_RECORD_H
#define IMPORT_RECORD_H

#include "base/buf.h"
#include "model/model.h"

struct record_reader {
	struct model *m;
	str_id profile_format;
	const struct input *in; /* input that the window reads */
	struct window window;
	struct ow_error problem; /* error of the window */
	struct buf kept;
};

void record_reader_init(struct record_reader *r, struct model *m);
void record_reader_release(struct record_reader *r);

/* Bytes that can be read like the definition in the source; valid until the next call. Empty when the op has none,
 * or the definition is damaged. */
ow_status record_keep(struct record_reader *r, op_id op, struct str *bytes, struct ow_error *err);

/* Appends all attributes, weights included, as entries of ProfileNode.attrs. */
ow_status record_attrs(struct record_reader *r, op_id op, struct buf *to, struct ow_error *err);

#endif
