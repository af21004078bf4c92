/*
 * tf_rules_math.c: shape rules of elementwise ops, matrix products, reductions and Einsum. Each rule is a line of
 * tf_rules.def.
 */
#include "import/tensorflow/shapes/tf_rule.h"

/* Every output has the shape of input number arg, not its value. */
void tf_rule_like(struct tf_infer *c)
{
	struct tf_shape shape = tf_in(c, (uint32_t)c->arg);

	tf_out_all(c, &shape);
}

void tf_rule_scalar(struct tf_infer *c)
{
	struct tf_shape scalar = tf_shape_scalar();

	tf_out_all(c, &scalar);
}

/* All inputs, or the first arg of them, have one shape, which is also the output's. */
void tf_rule_agree(struct tf_infer *c)
{
	uint32_t count = c->arg ? MIN(c->inputs, (uint32_t)c->arg) : c->inputs;
	struct tf_shape out = tf_shape_unknown();

	for (uint32_t i = 0; i < count && !tf_shape_full(&out); i++) {
		struct tf_shape in = tf_in(c, i);

		if (!tf_shape_merge(&out, &in))
			return;
	}
	tf_out(c, 0, &out);
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Folds two constants; TF_VALUE_UNKNOWN when the result is unknown. */
static int64_t fold(int kind, int64_t a, int64_t b)
{
	int64_t result = TF_VALUE_UNKNOWN;
	bool failed = false;

	if (a == TF_VALUE_UNKNOWN || b == TF_VALUE_UNKNOWN)
		return TF_VALUE_UNKNOWN;
	switch (kind) {
	case '+':
		failed = __builtin_add_overflow(a, b, &result);
		break;
	case '-':
		failed = __builtin_sub_overflow(a, b, &result);
		break;
	case '*':
		failed = __builtin_mul_overflow(a, b, &result);
		break;
	case '>':
		return MAX(a, b);
	case '<':
		return MIN(a, b);
	case '/':
		return b ? floor_div(a, b) : TF_VALUE_UNKNOWN;
	case '%':
		/* a - b·floor(a/b); never overflows since |result| < |b| */
		return b && b != -1 ? a - b * floor_div(a, b) : b ? 0 : TF_VALUE_UNKNOWN;
	default:
		break;
	}
	return failed ? TF_VALUE_UNKNOWN : result;
}

static void fold_binary(struct tf_infer *c)
{
	struct tf_value a, b, out = { 0 };

	if (!tf_in_value(c, 0, &a) || !tf_in_value(c, 1, &b))
		return;
	if (!a.count || !b.count || (a.count != b.count && a.count != 1 && b.count != 1))
		return;
	for (uint32_t i = 0; i < MAX(a.count, b.count); i++)
		out.item[out.count++] =
			fold(c->arg, a.item[MIN(i, a.count - 1)], b.item[MIN(i, b.count - 1)]);
	tf_out_value(c, 0, &out);
}

void tf_rule_binary(struct tf_infer *c)
{
	struct tf_shape a = tf_in(c, 0), b = tf_in(c, 1), out = tf_shape_broadcast(&a, &b);

	tf_out(c, 0, &out);
	if (c->arg)
		fold_binary(c);
}

/* Select: three inputs; SelectV2 broadcasts, Select takes the shape of its branches. */
void tf_rule_select(struct tf_infer *c)
{
	struct tf_shape on = tf_in(c, 0), then = tf_in(c, 1), other = tf_in(c, 2), out;

	if (c->arg == 2) {
		out = tf_shape_broadcast(&then, &other);
		out = tf_shape_broadcast(&on, &out);
	} else {
		out = then;
		if (!tf_shape_merge(&out, &other))
			return;
	}
	tf_out(c, 0, &out);
}

/* Appends the last two dimensions of a product to `out`, which has the dimensions before. */
static void push_product(struct tf_shape *out, const struct tf_shape *a, bool turn_a,
			 const struct tf_shape *b, bool turn_b)
{
	tf_shape_push(out, a->dim[turn_a ? a->rank - 1 : a->rank - 2]);
	tf_shape_push(out, b->dim[turn_b ? b->rank - 2 : b->rank - 1]);
}

void tf_rule_mat_mul(struct tf_infer *c)
{
	const struct tf_node *node = tf_attrs(c);
	struct tf_shape a = tf_in(c, 0), b = tf_in(c, 1), out = tf_shape_scalar();

	if (!node->found)
		return;
	if (a.rank == TF_UNKNOWN)
		a = tf_shape_of_rank(2);
	if (b.rank == TF_UNKNOWN)
		b = tf_shape_of_rank(2);
	if (a.rank != 2 || b.rank != 2)
		return;
	push_product(&out, &a, tf_attr_bool(node, "transpose_a"), &b,
		     tf_attr_bool(node, "transpose_b"));
	tf_out(c, 0, &out);
}

/* BatchMatMul and its later versions, which broadcast the dimensions before the matrices. */
void tf_rule_batch_mat_mul(struct tf_infer *c)
{
	const struct tf_node *node = tf_attrs(c);
	struct tf_shape a = tf_in(c, 0), b = tf_in(c, 1), left = a, right = b, out;

	if (!node->found || a.rank < 2 || b.rank < 2)
		return;
	left.rank -= 2;
	right.rank -= 2;
	out = tf_shape_broadcast(&left, &right);
	if (out.rank == TF_UNKNOWN)
		return;
	push_product(&out, &a, tf_attr_bool(node, "adj_x"), &b, tf_attr_bool(node, "adj_y"));
	tf_out(c, 0, &out);
}

/* Folds a constant vector that is reduced to one number. */
static void fold_reduction(struct tf_infer *c)
{
	struct tf_slot *slot = tf_flow_output(c->flow, c->op, 0);
	struct tf_shape out = tf_shape_load(c->flow->m, slot->shape);
	struct tf_value in, value;
	int64_t count;

	if (!tf_shape_elements(&out, &count) || count != 1 || !tf_in_value(c, 0, &in) || !in.count)
		return;
	value = (struct tf_value){ .count = 1, .item = { in.item[0] } };
	for (uint32_t i = 1; i < in.count; i++)
		value.item[0] = fold(c->arg, value.item[0], in.item[i]);
	tf_out_value(c, 0, &value);
}

/* Marks the axes that are reduced; false when they are unknown. */
static bool reduced_axes(struct tf_infer *c, int32_t rank, bool *reduced)
{
	struct tf_value axes;

	if (!tf_in_value(c, 1, &axes))
		return false;
	for (uint32_t i = 0; i < axes.count; i++) {
		int64_t axis = axes.item[i];

		if (axis == TF_VALUE_UNKNOWN || !tf_axis(&axis, rank))
			return false;
		reduced[axis] = true;
	}
	return true;
}

/* The shape of a reduction; input 1 has the axes. If their values are unknown, their number still gives the rank. */
static struct tf_shape reduced_shape(struct tf_infer *c, const struct tf_shape *in, bool keep)
{
	bool reduced[TF_RANK_MAX] = { false };
	struct tf_shape out = tf_shape_scalar(), axes;
	int64_t count;

	if (in->rank == TF_UNKNOWN)
		return tf_shape_unknown();
	if (!reduced_axes(c, in->rank, reduced)) {
		axes = tf_in(c, 1);
		if (keep)
			return tf_shape_of_rank(in->rank);
		return tf_shape_elements(&axes, &count) && axes.rank <= 1
			       ? tf_shape_of_rank(in->rank - count)
			       : tf_shape_unknown();
	}
	for (int32_t i = 0; i < in->rank; i++) {
		if (!reduced[i])
			tf_shape_push(&out, in->dim[i]);
		else if (keep)
			tf_shape_push(&out, 1);
	}
	return out;
}

/* Reductions; arg: how constants are folded. */
void tf_rule_reduce(struct tf_infer *c)
{
	const struct tf_node *node = tf_attrs(c);
	struct tf_shape in = tf_in(c, 0), out;

	if (!node->found)
		return;
	out = reduced_shape(c, &in, tf_attr_bool(node, "keep_dims"));
	tf_out(c, 0, &out);
	if (c->arg)
		fold_reduction(c);
}

/* ArgMax, ArgMin: one axis is removed. */
void tf_rule_arg_reduce(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), out = reduced_shape(c, &in, false);

	tf_out(c, 0, &out);
}

/* SegmentSum and similar ops: the first dimension becomes the number of segments, which input arg gives. */
void tf_rule_segment(struct tf_infer *c)
{
	struct tf_shape data = tf_in(c, 0), ids = tf_in(c, 1), out = tf_shape_scalar();
	int64_t count = TF_UNKNOWN;

	if (data.rank == TF_UNKNOWN || ids.rank == TF_UNKNOWN || ids.rank > data.rank)
		return;
	if (c->arg && !tf_in_scalar(c, (uint32_t)c->arg, &count))
		count = TF_UNKNOWN;
	tf_shape_push(&out, count);
	for (int32_t i = ids.rank; i < data.rank; i++)
		tf_shape_push(&out, data.dim[i]);
	tf_out(c, 0, &out);
}

static bool same_items(const struct tf_value *a, const struct tf_value *b)
{
	for (uint32_t i = 0; i < a->count; i++)
		if (i >= b->count || a->item[i] != b->item[i] || a->item[i] == TF_VALUE_UNKNOWN)
			return false;
	return a->count == b->count;
}

/* The axes along which each side of a broadcast has to be summed, from the two shapes. As in TensorFlow: none at all
 * when the shapes are equal, otherwise also those where both sides are 1. */
void tf_rule_broadcast_gradient(struct tf_infer *c)
{
	struct tf_value side[2], axes[2] = { { 0 }, { 0 } };
	struct tf_shape vector = tf_shape_of_rank(1);
	uint32_t rank;

	tf_out_all(c, &vector);
	if (!tf_in_value(c, 0, &side[0]) || !tf_in_value(c, 1, &side[1]))
		return;
	rank = same_items(&side[0], &side[1]) ? 0 : MAX(side[0].count, side[1].count);
	for (uint32_t i = 0; i < rank; i++) {
		int64_t size[2];

		for (int s = 0; s < 2; s++)
			size[s] = i < rank - side[s].count
					  ? 1
					  : side[s].item[i - (rank - side[s].count)];
		if (size[0] == TF_VALUE_UNKNOWN || size[1] == TF_VALUE_UNKNOWN)
			return;
		for (int s = 0; s < 2; s++)
			if (size[s] == 1)
				axes[s].item[axes[s].count++] = i;
	}
	for (int32_t s = 0; s < 2; s++) {
		vector.dim[0] = axes[s].count;
		tf_out(c, s, &vector);
		tf_out_value(c, s, &axes[s]);
	}
}

/* Einsum: letters are dimensions; "..." stands for any number of dimensions that are broadcast. TensorFlow's Python
 * side always writes "->": an equation without it is not read.
 */

#define LETTERS 256

struct letters {
	bool seen[LETTERS];
	int64_t size[LETTERS];
	struct tf_shape rest; /* dimensions of "..." */
};

static size_t dots_at(struct str term)
{
	for (size_t i = 0; i + 3 <= term.len; i++)
		if (memcmp(term.ptr + i, "...", 3) == 0)
			return i;
	return STR_NONE;
}

static bool set_letter(struct letters *l, char letter, int64_t size)
{
	unsigned char at = (unsigned char)letter;

	if (!l->seen[at])
		l->size[at] = TF_UNKNOWN;
	l->seen[at] = true;
	if (size < 0)
		return true;
	if (l->size[at] >= 0 && l->size[at] != size && l->size[at] != 1 && size != 1)
		return false;
	l->size[at] = MAX(l->size[at], size);
	return true;
}

/* Reads the dimensions of one input. */
static bool read_term(struct letters *l, struct str term, const struct tf_shape *in)
{
	size_t dots = dots_at(term), named = dots == STR_NONE ? term.len : term.len - 3;
	size_t before = dots == STR_NONE ? term.len : dots;
	struct tf_shape rest = tf_shape_scalar();
	int32_t under;

	if (in->rank == TF_UNKNOWN) {
		for (size_t i = 0; i < term.len; i++)
			if (term.ptr[i] != '.')
				(void)set_letter(l, term.ptr[i], TF_UNKNOWN);
		if (dots != STR_NONE)
			l->rest = tf_shape_unknown();
		return true;
	}
	if (named > (size_t)in->rank || (dots == STR_NONE && named != (size_t)in->rank))
		return false;
	under = in->rank - (int32_t)named;
	for (size_t i = 0; i < before; i++)
		if (!set_letter(l, term.ptr[i], in->dim[i]))
			return false;
	for (int32_t i = 0; i < under; i++)
		tf_shape_push(&rest, in->dim[before + (size_t)i]);
	for (size_t i = before; i < named; i++)
		if (!set_letter(l, term.ptr[i + 3], in->dim[i + (size_t)under]))
			return false;
	if (dots != STR_NONE)
		l->rest = tf_shape_broadcast(&l->rest, &rest);
	return true;
}

static void push_all(struct tf_shape *to, const struct tf_shape *from)
{
	if (from->rank == TF_UNKNOWN)
		*to = tf_shape_unknown();
	for (int32_t i = 0; i < from->rank && to->rank != TF_UNKNOWN; i++)
		tf_shape_push(to, from->dim[i]);
}

static bool read_result(const struct letters *l, struct str term, struct tf_shape *out)
{
	*out = tf_shape_scalar();
	for (size_t i = 0; i < term.len && out->rank != TF_UNKNOWN; i++) {
		unsigned char letter = (unsigned char)term.ptr[i];

		if (letter == '.') {
			if (dots_at(str_skip(term, i)) != 0)
				return false;
			push_all(out, &l->rest);
			i += 2;
		} else if (l->seen[letter]) {
			tf_shape_push(out, l->size[letter]);
		} else {
			return false;
		}
	}
	return true;
}

bool tf_einsum(struct tf_infer *c, struct tf_einsum *e)
{
	struct str equation = tf_attr_str(tf_attrs(c), "equation"), inputs, term;
	struct letters l = { .rest = tf_shape_scalar() };
	size_t arrow = STR_NONE;

	for (size_t i = 0; i + 2 <= equation.len && arrow == STR_NONE; i++)
		if (memcmp(equation.ptr + i, "->", 2) == 0)
			arrow = i;
	if (arrow == STR_NONE)
		return false;
	inputs = str_first(equation, arrow);
	for (e->terms = 0; str_split(&inputs, ',', &term); e->terms++) {
		struct tf_shape in = tf_in(c, e->terms);

		if (e->terms >= c->inputs || !read_term(&l, term, &in))
			return false;
	}
	e->all = tf_shape_scalar();
	for (int i = 0; i < LETTERS && e->all.rank != TF_UNKNOWN; i++)
		if (l.seen[i])
			tf_shape_push(&e->all, l.size[i]);
	push_all(&e->all, &l.rest);
	return read_result(&l, str_skip(equation, arrow + 2), &e->out);
}

void tf_rule_einsum(struct tf_infer *c)
{
	struct tf_einsum e;

	if (tf_einsum(c, &e))
		tf_out(c, 0, &e.out);
}
