/*
 * tf_inline.h: inlines calls of functions: every node of the body becomes an op of the model, named as TensorFlow names
 * it when it inlines the call (`call/node`), with the call's arguments as inputs. So the work inside is counted, shown
 * under the call in the scope view, and matched with what a run recorded. tf_finish calls it before shape inference.
 * Inlined are PartitionedCall and similar ops, direct calls, both branches of If, all of Case, body and condition of
 * While. Not inlined are functions that no op of the graph calls, those of datasets, and recursion.
 */
#ifndef IMPORT_TF_INLINE_H
#define IMPORT_TF_INLINE_H

#include "import/tensorflow/graph/tf_node.h"

enum tf_call_kind { TF_CALL_PLAIN, TF_CALL_BRANCHES, TF_CALL_LOOP };

/* A return value of a call: an output of an op; op 0 when unknown. */
struct tf_return {
	uint32_t op;
	int32_t port;
};

struct tf_call {
	uint32_t op;
	enum tf_call_kind kind;
	/* the values are returns[first + branch * outputs + output] */
	uint32_t first, branches, outputs;
};

struct tf_calls {
	struct mem *mem;
	struct tf_call *calls; /* index 0 is unused */
	size_t count, cap;
	struct tf_return *returns;
	size_t return_count, return_cap;
	/* for each op: its call, 0 when it is not a call; NULL if there are no calls */
	uint32_t *of_op;
	size_t op_count;
};

/* Adds the ops of all bodies to the model, and notes. The caller releases `calls` in any case. */
ow_status tf_inline(struct tf_calls *calls, struct builder *b, struct tf_reader *reader);
void tf_calls_release(struct tf_calls *calls);

/* The call of an op; NULL when the op is not a call, or was not inlined. */
static inline const struct tf_call *tf_call_of(const struct tf_calls *calls, uint32_t op)
{
	return calls && calls->of_op && op < calls->op_count && calls->of_op[op]
		       ? &calls->calls[calls->of_op[op]]
		       : NULL;
}

#endif
