/*
 * tf_rules_array.c: shape rules of ops that reshape, permute, repeat and enlarge tensors. Joining and
 * splitting: tf_rules_join.c; parts of tensors: tf_rules_slice.c.
 */
#include "import/tf_rule.h"

/* ---- Reshape ---- */

static int count_items(const struct tf_value *value, int64_t item)
{
	int count = 0;

	for (uint32_t i = 0; i < value->count; i++)
		count += value->item[i] == item;
	return count;
}

/* The one size that makes the elements come out right, TF_UNKNOWN when that cannot be told. */
static int64_t missing_size(const struct tf_shape *in, const struct tf_shape *known)
{
	struct tf_shape rest = *known;
	int64_t have, want;

	for (int32_t i = 0; i < rest.rank; i++)
		if (rest.dim[i] < 0)
			rest.dim[i] = 1;
	if (!tf_shape_elements(in, &want) || !tf_shape_elements(&rest, &have))
		return TF_UNKNOWN;
	return have && want % have == 0 ? want / have : TF_UNKNOWN;
}

static void pass_value(struct tf_infer *c)
{
	struct tf_value value;

	if (tf_in_value(c, 0, &value))
		tf_out_value(c, 0, &value);
}

void tf_rule_reshape(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), out = tf_in_as_shape(c, 1);
	struct tf_value value;

	pass_value(c);
	if (out.rank == TF_UNKNOWN)
		return;
	/* One -1 is the size that is left over; one that we do not know can be found in the same way. */
	if (tf_in_value(c, 1, &value) &&
	    count_items(&value, -1) + count_items(&value, TF_VALUE_UNKNOWN) == 1)
		for (int32_t i = 0; i < out.rank; i++)
			if (out.dim[i] < 0)
				out.dim[i] = missing_size(&in, &out);
	tf_out(c, 0, &out);
}

void tf_rule_squeeze(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), out = tf_shape_scalar();
	int64_t axes[TF_RANK_MAX];
	size_t count = tf_attr_ints(tf_attrs(c), "squeeze_dims", axes, ARRAY_COUNT(axes));
	bool squeezed[TF_RANK_MAX] = { false };

	pass_value(c);
	if (in.rank == TF_UNKNOWN || count > ARRAY_COUNT(axes) || !c->node.found)
		return;
	for (size_t i = 0; i < count; i++) {
		if (!tf_axis(&axes[i], in.rank))
			return;
		squeezed[axes[i]] = true;
	}
	for (int32_t i = 0; i < in.rank; i++) {
		if (!count && in.dim[i] < 0)
			return; /* perhaps 1, perhaps not */
		if (count ? !squeezed[i] : in.dim[i] != 1)
			tf_shape_push(&out, in.dim[i]);
	}
	tf_out(c, 0, &out);
}

void tf_rule_expand_dims(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), out = tf_shape_scalar();
	int64_t axis;

	pass_value(c);
	if (in.rank == TF_UNKNOWN)
		return;
	if (!tf_in_scalar(c, 1, &axis)) {
		out = tf_shape_of_rank((int64_t)in.rank + 1);
		tf_out(c, 0, &out);
		return;
	}
	if (!tf_axis(&axis, in.rank + 1))
		return;
	for (int32_t i = 0; i <= in.rank; i++) {
		if (i == axis)
			tf_shape_push(&out, 1);
		if (i < in.rank)
			tf_shape_push(&out, in.dim[i]);
	}
	tf_out(c, 0, &out);
}

void tf_rule_transpose(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), out = tf_shape_scalar();
	struct tf_value order;

	if (!tf_in_value(c, 1, &order)) {
		out = tf_shape_of_rank(in.rank);
		tf_out(c, 0, &out);
		return;
	}
	if (in.rank == TF_UNKNOWN)
		in = tf_shape_of_rank(order.count);
	if (in.rank != (int32_t)order.count)
		return;
	for (uint32_t i = 0; i < order.count; i++) {
		int64_t axis = order.item[i];

		if (axis == TF_VALUE_UNKNOWN)
			tf_shape_push(&out, TF_UNKNOWN);
		else if (!tf_axis(&axis, in.rank))
			return;
		else
			tf_shape_push(&out, in.dim[axis]);
	}
	tf_out(c, 0, &out);
}

void tf_rule_invert_permutation(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0);
	struct tf_value value, out;

	tf_out(c, 0, &in);
	if (!tf_in_value(c, 0, &value))
		return;
	out.count = value.count;
	for (uint32_t i = 0; i < out.count; i++)
		out.item[i] = TF_VALUE_UNKNOWN;
	for (uint32_t i = 0; i < value.count; i++)
		if (value.item[i] >= 0 && value.item[i] < (int64_t)out.count)
			out.item[value.item[i]] = i;
	tf_out_value(c, 0, &out);
}

/* ---- repeat and enlarge ---- */

void tf_rule_fill(struct tf_infer *c)
{
	struct tf_shape out = tf_in_as_shape(c, 0);
	struct tf_value value;
	int64_t item, count;

	tf_out(c, 0, &out);
	if (!tf_in_scalar(c, 1, &item) || !tf_shape_elements(&out, &count) || count > TF_VALUE_MAX)
		return;
	value.count = (uint32_t)count;
	for (uint32_t i = 0; i < value.count; i++)
		value.item[i] = item;
	tf_out_value(c, 0, &value);
}

/* The output's shape is the value of input number arg: random numbers, Empty, gradients. */
void tf_rule_shape_given(struct tf_infer *c)
{
	struct tf_shape out = tf_in_as_shape(c, (uint32_t)c->arg);

	tf_out(c, 0, &out);
}

/* Steps from start to before limit; -1 when that is not a small number. */
static int64_t range_count(int64_t start, int64_t limit, int64_t delta)
{
	__int128 span = delta > 0 ? (__int128)limit - start : (__int128)start - limit;
	__int128 step = delta > 0 ? delta : -(__int128)delta, count;

	if (!delta)
		return TF_UNKNOWN;
	if (span <= 0)
		return 0;
	count = (span + step - 1) / step;
	return count > INT64_MAX ? TF_UNKNOWN : (int64_t)count;
}

void tf_rule_range(struct tf_infer *c)
{
	struct tf_shape out = tf_shape_of_rank(1);
	struct tf_value value = { 0 };
	int64_t start, limit, delta;

	if (!tf_in_scalar(c, 0, &start) || !tf_in_scalar(c, 1, &limit) ||
	    !tf_in_scalar(c, 2, &delta)) {
		tf_out(c, 0, &out);
		return;
	}
	out.dim[0] = range_count(start, limit, delta);
	tf_out(c, 0, &out);
	if (out.dim[0] < 0 || out.dim[0] > TF_VALUE_MAX)
		return;
	while ((int64_t)value.count < out.dim[0]) {
		value.item[value.count] = (int64_t)(start + (__int128)delta * value.count);
		value.count++;
	}
	tf_out_value(c, 0, &value);
}

void tf_rule_tile(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), times = tf_in_as_shape(c, 1);

	if (in.rank == TF_UNKNOWN)
		in = tf_shape_of_rank(times.rank);
	if (times.rank == TF_UNKNOWN)
		times = tf_shape_of_rank(in.rank);
	if (in.rank == TF_UNKNOWN || in.rank != times.rank)
		return;
	for (int32_t i = 0; i < in.rank; i++)
		if (in.dim[i] < 0 || times.dim[i] < 0 ||
		    __builtin_mul_overflow(in.dim[i], times.dim[i], &in.dim[i]))
			in.dim[i] = TF_UNKNOWN;
	tf_out(c, 0, &in);
}

/* A size and what is added to it, or taken away; unknown when that is no size. */
static int64_t add_size(int64_t size, int64_t more)
{
	if (size < 0 || more == TF_VALUE_UNKNOWN || __builtin_add_overflow(size, more, &size))
		return TF_UNKNOWN;
	return MAX(size, TF_UNKNOWN);
}

/* Input 1 has a row (before, after) per dimension; arg -1 takes away what Pad added (its gradient). */
void tf_rule_pad(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0);
	struct tf_value pads;

	if (in.rank == TF_UNKNOWN)
		return;
	if (!tf_in_value(c, 1, &pads)) {
		in = tf_shape_of_rank(in.rank);
		tf_out(c, 0, &in);
		return;
	}
	if ((int64_t)pads.count != 2 * (int64_t)in.rank)
		return;
	for (int32_t i = 0; i < in.rank; i++)
		for (int32_t side = 0; side < 2; side++) {
			int64_t pad = pads.item[2 * i + side];

			if (pad != TF_VALUE_UNKNOWN && c->arg < 0)
				pad = -pad;
			in.dim[i] = add_size(in.dim[i], pad);
		}
	tf_out(c, 0, &in);
}

void tf_rule_broadcast_to(struct tf_infer *c)
{
	struct tf_shape out = tf_in_as_shape(c, 1);

	tf_out(c, 0, &out);
}

void tf_rule_one_hot(struct tf_infer *c)
{
	int64_t axis = tf_attr_int(tf_attrs(c), "axis", -1), depth;
	struct tf_shape in = tf_in(c, 0), out = tf_shape_scalar();

	if (in.rank == TF_UNKNOWN || !c->node.found || !tf_axis(&axis, in.rank + 1))
		return;
	if (!tf_in_scalar(c, 1, &depth))
		depth = TF_UNKNOWN;
	for (int32_t i = 0; i <= in.rank; i++) {
		if (i == axis)
			tf_shape_push(&out, depth);
		if (i < in.rank)
			tf_shape_push(&out, in.dim[i]);
	}
	tf_out(c, 0, &out);
}

/* Where: the coordinates of an unknown number of elements. */
void tf_rule_where(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), out = tf_shape_of_rank(2);

	out.dim[1] = in.rank;
	tf_out(c, 0, &out);
}

/* The last dimension becomes half of what input 1 says, and one more; arg 1: all of it. */
void tf_rule_rfft(struct tf_infer *c)
{
	struct tf_shape out = tf_in(c, 0);
	int64_t length;

	if (out.rank < 1)
		return;
	out.dim[out.rank - 1] = TF_UNKNOWN;
	if (tf_in_scalar(c, 1, &length) && length >= 0)
		out.dim[out.rank - 1] = c->arg == 1 ? length : length / 2 + 1;
	tf_out(c, 0, &out);
}
