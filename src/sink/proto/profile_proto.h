/*
 * profile_proto.h: a model as TensorFlow's ProfileProto (the file profile_N of ProfileContext) or
 * OpLogProto. Opening a written profile gives the views of the model that it was written from.
 */
#ifndef SINK_PROFILE_PROTO_H
#define SINK_PROFILE_PROTO_H

#include "sink/sink.h"

struct profile_proto_options {
	/* Appends the attributes of an op as entries of ProfileNode.attrs; NULL = none. */
	ow_status (*attrs)(void *arg, op_id op, struct buf *to, struct ow_error *err);
	void *arg;
};

ow_status profile_proto_write(struct model *m, const struct profile_proto_options *options,
			      const struct out *out, struct ow_error *err);

/* Writes float operations, types that users gave, and source lines as OpLogProto. */
ow_status op_log_write(struct model *m, const struct out *out, struct ow_error *err);

#endif
