/*
 * tf_flow.h: the graph for shape inference: for every output that an op reads, one slot with its shape and value; the
 * producers of every op's inputs; and an order in which producers come first. Made by tf_finish from the model's ops,
 * and freed before the freeze. There is a slot for output 0 of every op, for every output named by an edge and for
 * every output with a static shape, so memory is linear in the graph however many outputs its attributes claim.
 */
#ifndef IMPORT_TF_FLOW_H
#define IMPORT_TF_FLOW_H

#include "import/tensorflow/graph/tf_inline.h"

#define TF_VALUE_MAX 64		   /* limit of elements of a constant that are kept */
#define TF_VALUE_UNKNOWN INT64_MIN /* marks an element that is not constant */

/* The elements of a small integer tensor, in row-major order. */
struct tf_value {
	uint32_t count;
	int64_t item[TF_VALUE_MAX];
};

struct tf_slot {
	int32_t port;
	shape_id shape;	 /* best known static shape; nil when nothing is known */
	shape_id traced; /* seen at run time */
	/* shape of the resource that a handle refers to, or of the elements of a stack */
	shape_id handle;
	uint32_t value; /* index in tf_flow.values of a constant, 0 when not constant */
};

struct tf_flow {
	struct builder *b;
	struct model *m;
	const struct tf_calls *calls;
	uint32_t op_count;    /* number of ops, including the nil op */
	uint32_t *slot_first; /* op_count + 1 entries */
	struct tf_slot *slots;
	size_t slot_count;
	uint32_t *order; /* ops, producers first */
	uint32_t order_count;
	/* for each value its count and its elements, one after the other; [0] is unused */
	int64_t *values;
	size_t value_count, value_cap;
	struct map value_map;
	/* producers: for each source, the graph version that wrote it, 0 when unknown */
	int64_t *producers;
	uint32_t source_count;
	bool again; /* a rule needs something that may be known after another pass */
};

/* Resolves the inputs of the model's ops and lays out slots and order, in which a call comes after its return values;
 * static shapes and traced shapes are filled in. `calls` may be NULL. On failure the builder has the status; the caller
 * releases `flow` in any case.
 */
ow_status tf_flow_init(struct tf_flow *flow, struct builder *b, const struct tf_calls *calls);
void tf_flow_release(struct tf_flow *flow);

/* The slot of an output; NULL when no op reads it. */
struct tf_slot *tf_flow_output(const struct tf_flow *flow, uint32_t op, int32_t port);

/* The row in op_input of the input at position `index`, 0 when there is none. */
uint32_t tf_flow_input_row(const struct tf_flow *flow, uint32_t op, uint32_t index);

/* The producer's slot of an input; NULL when the input is missing, is a control edge or names no op. */
const struct tf_slot *tf_flow_input(const struct tf_flow *flow, uint32_t op, uint32_t index);

/* Reads the value of a slot; false when it is not constant. */
bool tf_flow_value(const struct tf_flow *flow, const struct tf_slot *slot, struct tf_value *value);
void tf_flow_set_value(struct tf_flow *flow, struct tf_slot *slot, const struct tf_value *value);

#endif
