/*
 * tf_stacks.h: makes the prefix tree of many code traces at once. Adding one frame after the other
 * would look up millions of (caller, frame) pairs; taking all traces level by level shows which of them
 * are alone with their callers, and for those nothing needs to be looked up any more.
 *
 *	tf_stacks_add(&s, op);	for each op whose trace is to be placed
 *	tf_stacks_build(&s);	sets op.stack
 */
#ifndef IMPORT_TF_STACKS_H
#define IMPORT_TF_STACKS_H

#include "model/builder.h"

struct tf_trace {
	op_id op;
	uint32_t parent;    /* the stack it has come to */
	uint32_t next, end; /* its frames still to be placed */
};

struct tf_stacks {
	struct builder *b;
	const struct code_traces *from;
	struct tf_trace *traces;
	size_t trace_count, trace_cap;
};

void tf_stacks_init(struct tf_stacks *s, struct builder *b, const struct code_traces *from);
void tf_stacks_release(struct tf_stacks *s);
/* Failures are the builder's. */
void tf_stacks_add(struct tf_stacks *s, op_id op);
ow_status tf_stacks_build(struct tf_stacks *s);

#endif
