/*
 * record.h: the definition of an op, as far as it is worth keeping in a file of our own: its name, kind
 * and attributes. Left out are weights, and what a ProfileNode says beside its attributes, which is in
 * the columns already. Called by the API when it saves a profile; sinks do not parse. Also all of the
 * attributes, for those who write them out again.
 */
#ifndef IMPORT_RECORD_H
#define IMPORT_RECORD_H

#include "base/buf.h"
#include "model/model.h"

struct record_reader {
	struct model *m;
	str_id profile_format;
	const struct input *in; /* of the window */
	struct window window;
	struct ow_error problem; /* the window's own */
	struct buf kept;
};

void record_reader_init(struct record_reader *r, struct model *m);
void record_reader_release(struct record_reader *r);

/* Bytes that read like the definition in the source; valid until the next call. Empty when the op has
 * none, or it is damaged. */
ow_status record_keep(struct record_reader *r, op_id op, struct str *bytes, struct ow_error *err);

/* Appends all attributes, weights included, as entries of ProfileNode.attrs. */
ow_status record_attrs(struct record_reader *r, op_id op, struct buf *to, struct ow_error *err);

#endif
