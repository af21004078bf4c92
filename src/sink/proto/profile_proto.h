/*
 * profile_proto.h: a model as TensorFlow's ProfileProto (the file profile_N of ProfileContext) or
 * OpLogProto. Opening a written profile gives the views of the model that it was written from.
 */
#ifndef SINK_PROFILE_PROTO_H
#define SINK_PROFILE_PROTO_H

#include "sink/sink.h"

struct profile_proto_options {
	/* Appends the attributes of an op as entries of ProfileNode.attrs; NULL = none. */
	ow_status (*attrs)(void *arg, op_id op, struct buf *to, struct error *err);
	void *arg;
};

ow_status profile_proto_write(struct model *m, const struct profile_proto_options *options,
			      const struct out *out, struct error *err);

/* Float operations, types that users gave, and source lines. */
ow_status op_log_write(struct model *m, const struct out *out, struct error *err);

/* ---- shared by the two; code_proto.c ---- */

/* Which strings were used, to be written as id_to_string. */
struct code_proto {
	struct model *m;
	uint64_t *used; /* a bit per string */
	size_t words;
	stack_id *path; /* of the stack being written */
	size_t path_cap;
};

/* Decodes the stacks of the model. */
ow_status code_proto_init(struct code_proto *c, struct model *m, struct error *err);
void code_proto_release(struct code_proto *c);
/* Appends a CodeDef as the given field, if the op has one. */
void code_proto_put(struct code_proto *c, op_id op, uint32_t field, struct buf *to);
/* Appends the entry of a used string; false when it was not used. */
bool code_proto_string(const struct code_proto *c, uint32_t string, uint32_t field, struct buf *to);

#endif
