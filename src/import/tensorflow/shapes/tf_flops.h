/*
 * tf_flops.h: float operations of one run of an op, from its shapes and attributes: the formulas of TensorFlow 1.15's
 * own statistics, one line per op type in tf_flops.def. Op types that are not listed have none, as in TensorFlow.
 */
#ifndef IMPORT_TF_FLOPS_H
#define IMPORT_TF_FLOPS_H

#include "import/tensorflow/shapes/tf_rule.h"

/* How the operations of an op type are counted; the argument in the table scales the count. */
enum tf_flops_kind {
	FLOPS_INPUT,	     /* one for each element of the first input */
	FLOPS_OUTPUT,	     /* one for each element of the output */
	FLOPS_L2_LOSS,	     /* 3 n(in0) - 1 */
	FLOPS_REDUCE,	     /* n(in0) - n(out) */
	FLOPS_POOL,	     /* window times n(out) */
	FLOPS_POOL_GRADIENT, /* window times the scale, plus 1 for MaxPoolGrad, times n(in1) */
	FLOPS_CONV_INPUT,    /* Conv2DBackpropInput */
	FLOPS_CONV_FILTER,   /* Conv2DBackpropFilter */
	FLOPS_ADD_N,
	FLOPS_MAT_MUL,
	FLOPS_BATCH_MAT_MUL,
	FLOPS_EINSUM, /* 2 for every product of two elements */
	FLOPS_CONV,   /* 2 n(out) times the first `scale` dimensions of the filter */
};

struct tf_flops {
	const char *type;
	enum tf_flops_kind kind;
	int arg;
	bool ours; /* a later name that TensorFlow 1.15 has no statistics for */
};

extern const struct tf_flops tf_flops_table[];
extern const size_t tf_flops_count;

enum tf_flops_result {
	FLOPS_OK,
	FLOPS_NONE,	 /* the node lacks what the formula reads: no statistics, without a note */
	FLOPS_NO_SHAPE,	 /* a shape is not fully known */
	FLOPS_TOO_LARGE, /* the result does not fit into 63 bits */
	FLOPS_FORMAT,	 /* the formula holds for data_format NHWC only */
	FLOPS_RESULTS,
};

/* Computes the float operations of the op in `c`, whose inputs and outputs must be final. */
enum tf_flops_result tf_flops(struct tf_infer *c, const struct tf_flops *formula, int64_t *flops);

#endif
