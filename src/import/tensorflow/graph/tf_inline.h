/*
 * tf_inline.h: calls of functions are opened: every node of the body becomes an op of the model, named as TensorFlow names
 * it when it inlines the call (`call/node`), and reads what the call was given. So the work inside is counted, shown under the
 * call in the scope view, and met by what a run recorded. Called by tf_finish before shapes flow.
 *
 * Opened are PartitionedCall and its kin, direct calls, both branches of If, all of Case, body and condition of While. Not
 * opened are functions that no op of the graph calls, those of datasets, and recursion.
 */
#ifndef IMPORT_TF_INLINE_H
#define IMPORT_TF_INLINE_H

#include "import/tensorflow/graph/tf_node.h"

enum tf_call_kind { TF_CALL_PLAIN, TF_CALL_BRANCHES, TF_CALL_LOOP };

/* What a call returns: an output of an op; op 0 when unknown. */
struct tf_return {
	uint32_t op;
	int32_t port;
};

struct tf_call {
	uint32_t op;
	enum tf_call_kind kind;
	uint32_t first, branches, outputs; /* returns[first + branch * outputs + output] */
};

struct tf_calls {
	struct mem *mem;
	struct tf_call *calls; /* [0] is unused */
	size_t count, cap;
	struct tf_return *returns;
	size_t return_count, return_cap;
	uint32_t *of_op; /* per op: its call, 0 when it is none; NULL without calls */
	size_t op_count;
};

/* Adds the ops of all bodies to the model, and notes. Release in any case. */
ow_status tf_inline(struct tf_calls *calls, struct builder *b, struct tf_reader *reader);
void tf_calls_release(struct tf_calls *calls);

/* The call that an op is; NULL when it is none, or was not opened. */
static inline const struct tf_call *tf_call_of(const struct tf_calls *calls, uint32_t op)
{
	return calls && calls->of_op && op < calls->op_count && calls->of_op[op]
		       ? &calls->calls[calls->of_op[op]]
		       : NULL;
}

#endif
