/*
 * tf_rule.h: shape rules and the functions that they may call. A rule is a function that computes the output shapes of
 * an op from those of its inputs, its attributes and small constants; one line RULE(type, rule, arg) in tf_rules.def
 * applies it to an op type. Rules set only shapes that are certain: an output without one stays unknown. Values of
 * small integer tensors are computed, too (`x.shape[0]`, stacked and multiplied), because Reshape, Slice, Fill and the
 * gradients take their shapes from them.
 */
#ifndef IMPORT_TF_RULE_H
#define IMPORT_TF_RULE_H

#include "import/tensorflow/shapes/tf_flow.h"
#include "import/tensorflow/graph/tf_node.h"

/* The op whose output shapes are computed. */
struct tf_infer {
	struct tf_flow *flow;
	struct tf_reader *reader;
	uint32_t op;
	int arg;	 /* argument of the rule, from the table */
	uint32_t inputs; /* number of inputs without control inputs, which come last */
	bool have_node;
	struct tf_node node;
};

struct tf_rule {
	const char *type;
	void (*run)(struct tf_infer *c);
	int arg;
};

extern const struct tf_rule tf_rules[];
extern const size_t tf_rule_count;

/* The rule of an op type; NULL when there is none. */
const struct tf_rule *tf_rule_find(struct str type);

/* The attributes of the op, read on first use. */
const struct tf_node *tf_attrs(struct tf_infer *c);

/* The shape of an input; unknown when the op does not have the input. */
struct tf_shape tf_in(const struct tf_infer *c, uint32_t index);
/* The elements of a constant input, some of which may be TF_VALUE_UNKNOWN. */
bool tf_in_value(const struct tf_infer *c, uint32_t index, struct tf_value *value);
/* The value of a scalar input, if it is known. */
bool tf_in_scalar(const struct tf_infer *c, uint32_t index, int64_t *value);
/* The shape that the values of an input describe, or at least its rank. */
struct tf_shape tf_in_as_shape(const struct tf_infer *c, uint32_t index);

/* Sets the shape of an output. It adds to known dimensions; a contradiction is ignored, because the source's own
 * shapes are more reliable. */
void tf_out(struct tf_infer *c, int32_t port, const struct tf_shape *shape);
void tf_out_value(struct tf_infer *c, int32_t port, const struct tf_value *value);
/* Copies shape, value and handle of an input to an output. */
void tf_out_same(struct tf_infer *c, int32_t port, uint32_t input);
/* Sets the same shape for every output. */
void tf_out_all(struct tf_infer *c, const struct tf_shape *shape);
/* The number of outputs that other ops read, for ops with any number of outputs. */
uint32_t tf_port_count(const struct tf_infer *c);
int32_t tf_port_at(const struct tf_infer *c, uint32_t n);

/* Converts a negative axis, which counts from the end; false when it is out of range. */
static inline bool tf_axis(int64_t *axis, int32_t rank)
{
	if (*axis < 0)
		*axis += rank;
	return *axis >= 0 && *axis < rank;
}

/* Sets the outputs of a call that was inlined to the return values of its functions. Not in the table, because a
 * call may have any type. */
void tf_call_shapes(struct tf_infer *c);

#define RULE(type, rule, arg) void tf_rule_##rule(struct tf_infer *c);
#include "import/tensorflow/shapes/tf_rules.def"
#undef RULE

/* The equation of an Einsum ("abc,cd->abd", "...ij,...jk->...ik") applied to the shapes of its inputs: the result,
 * and the number of products. Used by its shape rule and by its formula. */
struct tf_einsum {
	struct tf_shape out;
	uint32_t terms;	     /* number of inputs */
	struct tf_shape all; /* one dimension for each letter, and those of "..." */
};

/* False when the equation does not fit the inputs. */
bool tf_einsum(struct tf_infer *c, struct tf_einsum *e);

#endif
