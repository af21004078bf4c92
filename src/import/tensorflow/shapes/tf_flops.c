/*
 * tf_flops.c: computes the float operations of one run of an op (tf_flops.h), for tf_finish.c. Where TensorFlow's
 * formulas are odd (BatchMatMul takes the last dimension whatever adj_x says, an AddN counts control inputs, some know
 * NHWC only), so are these, because the results must equal those of an op log. Results that overflow 63 bits are not
 * counted.
 */
#include "import/tensorflow/shapes/tf_flops.h"

#include "import/tensorflow/shapes/tf_rule.h"

#define FLOPS(type, kind, arg) { #type, FLOPS_##kind, arg, false },
#define FLOPS_OURS(type, kind, arg) { #type, FLOPS_##kind, arg, true },
const struct tf_flops tf_flops_table[] = {
#include "import/tensorflow/shapes/tf_flops.def"
};
#undef FLOPS
#undef FLOPS_OURS
const size_t tf_flops_count = ARRAY_COUNT(tf_flops_table);

/* A number with a flag for overflow. */
struct count {
	int64_t n;
	bool lost;
};

static struct count times(struct count a, int64_t b)
{
	a.lost |= __builtin_mul_overflow(a.n, b, &a.n);
	return a;
}

static enum tf_flops_result give(struct count count, int64_t *flops)
{
	*flops = count.n;
	return count.lost ? FLOPS_TOO_LARGE : FLOPS_OK;
}

/* The full shape of an input. TensorFlow looks inputs up by name, so a missing input, a control edge or a dangling
 * one is an error. */
static enum tf_flops_result input_shape(struct tf_infer *c, uint32_t index, struct tf_shape *shape)
{
	const struct tf_slot *slot = tf_flow_input(c->flow, c->op, index);

	if (!slot)
		return FLOPS_NONE;
	*shape = tf_shape_load(c->flow->m, slot->shape);
	return tf_shape_full(shape) ? FLOPS_OK : FLOPS_NO_SHAPE;
}

static enum tf_flops_result output_shape(struct tf_infer *c, struct tf_shape *shape)
{
	*shape = tf_shape_load(c->flow->m, tf_flow_output(c->flow, c->op, 0)->shape);
	return tf_shape_full(shape) ? FLOPS_OK : FLOPS_NO_SHAPE;
}

static struct count elements(const struct tf_shape *shape)
{
	struct count count = { 0 };

	count.lost = !tf_shape_elements(shape, &count.n);
	return count;
}

#define NEED(expr)                                                                                 \
	do {                                                                                       \
		enum tf_flops_result need_result_ = (expr);                                        \
		if (need_result_ != FLOPS_OK)                                                      \
			return need_result_;                                                       \
	} while (0)

static enum tf_flops_result per_input(struct tf_infer *c, int64_t scale, int64_t *flops)
{
	struct tf_shape in;

	NEED(input_shape(c, 0, &in));
	return give(times(elements(&in), scale), flops);
}

static enum tf_flops_result per_output(struct tf_infer *c, int64_t scale, int64_t *flops)
{
	struct tf_shape out;

	NEED(output_shape(c, &out));
	return give(times(elements(&out), scale), flops);
}

static enum tf_flops_result l2_loss(struct tf_infer *c, int64_t *flops)
{
	NEED(per_input(c, 3, flops));
	*flops -= 1;
	return FLOPS_OK;
}

static enum tf_flops_result reduction(struct tf_infer *c, int64_t *flops)
{
	struct tf_shape in, out;
	struct count a, b;

	NEED(input_shape(c, 0, &in));
	NEED(output_shape(c, &out));
	a = elements(&in);
	b = elements(&out);
	*flops = a.n - b.n;
	return a.lost || b.lost ? FLOPS_TOO_LARGE : FLOPS_OK;
}

static enum tf_flops_result add_n(struct tf_infer *c, int64_t *flops)
{
	uint32_t inputs = c->flow->m->op.input_count[c->op]; /* includes control inputs */

	if (!inputs)
		return FLOPS_NONE;
	return per_input(c, (int64_t)inputs - 1, flops);
}

static enum tf_flops_result need_nhwc(struct tf_infer *c)
{
	const struct tf_node *node = tf_attrs(c);
	struct str format;

	if (!node->found)
		return FLOPS_NONE;
	/* the attribute may be missing if it has the default */
	format = tf_attr_str(node, "data_format");
	return !format.len || str_eq(format, STR("NHWC")) ? FLOPS_OK : FLOPS_FORMAT;
}

static struct count window_size(struct tf_infer *c)
{
	int64_t sizes[16];
	size_t count = tf_attr_ints(tf_attrs(c), "ksize", sizes, ARRAY_COUNT(sizes));
	struct count product = { .n = 1, .lost = count > ARRAY_COUNT(sizes) };

	for (size_t i = 0; i < count && !product.lost; i++)
		product = times(product, sizes[i]);
	return product;
}

static enum tf_flops_result pool(struct tf_infer *c, int64_t *flops)
{
	struct count window;
	struct tf_shape out;

	NEED(need_nhwc(c));
	NEED(output_shape(c, &out));
	window = window_size(c);
	if (window.lost)
		return FLOPS_TOO_LARGE;
	return give(times(elements(&out), window.n), flops);
}

/* Counts the gradient of a pool. scale 2: AvgPoolGrad divides and adds; 1: MaxPoolGrad compares within the window
 * and adds once. */
static enum tf_flops_result pool_gradient(struct tf_infer *c, int scale, int64_t *flops)
{
	struct tf_shape back;
	struct count window;

	NEED(need_nhwc(c));
	NEED(input_shape(c, 1, &back));
	window = times(window_size(c), scale);
	if (window.lost || window.n == INT64_MAX)
		return FLOPS_TOO_LARGE;
	return give(times(elements(&back), scale == 1 ? window.n + 1 : window.n), flops);
}

/* Computes 2·n(a)·n(b) / (depth·strides), a real division truncated to an integer. `depth_of` is the tensor whose
 * last dimension divides. */
static enum tf_flops_result conv_gradient(struct tf_infer *c, const struct tf_shape *depth_of,
					  const struct tf_shape *other, int64_t *flops)
{
	struct count a = elements(depth_of), b = elements(other), divisor;
	int64_t strides[16];
	size_t count = tf_attr_ints(tf_attrs(c), "strides", strides, ARRAY_COUNT(strides));
	double result;

	if (count < 3 || depth_of->rank < 1)
		return FLOPS_NONE;
	divisor = (struct count){ .n = depth_of->dim[depth_of->rank - 1] };
	divisor = times(times(divisor, strides[1]), strides[2]);
	if (divisor.n == 0 && !divisor.lost)
		return FLOPS_NO_SHAPE;
	if (a.lost || b.lost || divisor.lost)
		return FLOPS_TOO_LARGE;
	/* TensorFlow divides two integers of any size and rounds to a double. */
	result = (double)((long double)a.n * 2 * (long double)b.n / (long double)divisor.n);
	if (result >= 9223372036854775808.0 || result <= -9223372036854775808.0)
		return FLOPS_TOO_LARGE;
	*flops = (int64_t)result;
	return FLOPS_OK;
}

static enum tf_flops_result conv_input(struct tf_infer *c, int64_t *flops)
{
	struct tf_shape out, filter;

	NEED(need_nhwc(c));
	NEED(output_shape(c, &out));
	NEED(input_shape(c, 1, &filter));
	return conv_gradient(c, &out, &filter, flops);
}

static enum tf_flops_result conv_filter(struct tf_infer *c, int64_t *flops)
{
	struct tf_shape image, out;

	NEED(need_nhwc(c));
	NEED(input_shape(c, 0, &image));
	NEED(output_shape(c, &out));
	return conv_gradient(c, &image, &out, flops);
}

/* Computes 2·k·n(out), where k is one dimension of the first input, counted from the end when negative. */
static enum tf_flops_result product(struct tf_infer *c, int32_t axis, int64_t *flops)
{
	struct tf_shape a, out;

	NEED(input_shape(c, 0, &a));
	if (axis < 0)
		axis += a.rank;
	if (axis < 0 || axis >= a.rank)
		return FLOPS_NONE;
	NEED(output_shape(c, &out));
	return give(times(times(elements(&out), 2), a.dim[axis]), flops);
}

static enum tf_flops_result mat_mul(struct tf_infer *c, int64_t *flops)
{
	const struct tf_node *node = tf_attrs(c);

	if (!node->found)
		return FLOPS_NONE;
	return product(c, tf_attr_bool(node, "transpose_a") ? 0 : 1, flops);
}

static enum tf_flops_result batch_mat_mul(struct tf_infer *c, bool ours, int64_t *flops)
{
	const struct tf_node *node = tf_attrs(c);

	if (!node->found)
		return FLOPS_NONE;
	return product(c, tf_attr_bool(node, ours ? "adj_x" : "transpose_a") ? -2 : -1, flops);
}

static enum tf_flops_result conv(struct tf_infer *c, int32_t dims, int64_t *flops)
{
	struct tf_shape in, filter, out;
	struct count count;

	NEED(input_shape(c, 0, &in));
	NEED(input_shape(c, 1, &filter));
	NEED(output_shape(c, &out));
	if (filter.rank < dims)
		return FLOPS_NONE;
	count = times(elements(&out), 2);
	for (int32_t i = 0; i < dims; i++)
		count = times(count, filter.dim[i]);
	return give(count, flops);
}

/* Counts an Einsum. With one input nothing is multiplied: the input is rearranged and summed. */
static enum tf_flops_result einsum(struct tf_infer *c, int64_t *flops)
{
	struct tf_einsum e;

	if (!tf_attrs(c)->found || !tf_einsum(c, &e) || e.terms > 2)
		return FLOPS_NONE;
	if (!tf_shape_full(&e.all))
		return FLOPS_NO_SHAPE;
	return give(times(elements(&e.all), e.terms == 2 ? 2 : 0), flops);
}

enum tf_flops_result tf_flops(struct tf_infer *c, const struct tf_flops *formula, int64_t *flops)
{
	switch (formula->kind) {
	case FLOPS_INPUT:
		return per_input(c, formula->arg, flops);
	case FLOPS_OUTPUT:
		return per_output(c, formula->arg, flops);
	case FLOPS_L2_LOSS:
		return l2_loss(c, flops);
	case FLOPS_REDUCE:
		return reduction(c, flops);
	case FLOPS_POOL:
		return pool(c, flops);
	case FLOPS_POOL_GRADIENT:
		return pool_gradient(c, formula->arg, flops);
	case FLOPS_CONV_INPUT:
		return conv_input(c, flops);
	case FLOPS_CONV_FILTER:
		return conv_filter(c, flops);
	case FLOPS_ADD_N:
		return add_n(c, flops);
	case FLOPS_MAT_MUL:
		return mat_mul(c, flops);
	case FLOPS_BATCH_MAT_MUL:
		return batch_mat_mul(c, formula->ours, flops);
	case FLOPS_EINSUM:
		return einsum(c, flops);
	case FLOPS_CONV:
		return conv(c, formula->arg, flops);
	}
	return FLOPS_NONE;
}
