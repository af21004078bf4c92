/*
 * tf_op_name.h: what the text of an event of TensorFlow's or JAX's profiler says: which of their operations it
 * is, if any. The rules are XProf's, so that sums over "ops" are sums over the same events. Used by the
 * importers of XSpace and of XProf's traces.
 */
#ifndef IMPORT_TF_OP_NAME_H
#define IMPORT_TF_OP_NAME_H

#include "base/str.h"

enum tf_op_kind {
	TF_OP_NONE, /* an annotation or a call of the runtime */
	TF_OP_TENSORFLOW,
	TF_OP_JAX,
	TF_OP_DATA, /* a stage of tf.data: Iterator::Batch::Map */
	TF_OP_COPY, /* MemcpyHToD and the like */
};

struct tf_op_name {
	enum tf_op_kind kind;
	struct str name, type; /* parts of the text, or constant */
};

/* `hyphen`: whether names may have one, as in newer versions. */
struct tf_op_name tf_op_name_parse(struct str text, bool hyphen);

/* Without metadata that is encoded in the text: "name#key=value,…#" is "name". */
struct str tf_op_name_strip(struct str text);

/* How many bytes a copy moved or a memset set, from its details: "kind:… size:123 dest:0 async:1", or num_bytes:123;
 * 0 when they do not tell. */
int64_t tf_copy_bytes(struct str details);

#endif
