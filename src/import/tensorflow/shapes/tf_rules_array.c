/*
 * tf_rules_array.c: shape rules of ops that reshape, permute, repeat and enlarge tensors, join and split them, or take
 * parts of them. Each rule is a line of tf_rules.def.
 */
#include "import/tensorflow/shapes/tf_rule.h"

static int count_items(const struct tf_value *value, int64_t item)
{
	int count = 0;

	for (uint32_t i = 0; i < value->count; i++)
		count += value->item[i] == item;
	return count;
}

/* The one missing size, computed from the number of elements; TF_UNKNOWN when that is unknown. */
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
	/* A single -1 is the remaining size; a single unknown size is computed in the same way. */
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
			return; /* the size may be 1 or not */
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

/* The number of steps from start to before limit; -1 when that is not a small number. */
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

/* A size plus a positive or negative amount; unknown when the result is not a size. */
static int64_t add_size(int64_t size, int64_t more)
{
	if (size < 0 || more == TF_VALUE_UNKNOWN || __builtin_add_overflow(size, more, &size))
		return TF_UNKNOWN;
	return MAX(size, TF_UNKNOWN);
}

/* Pad: input 1 has a row (before, after) for each dimension; arg -1 removes what Pad added (its gradient). */
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

/* RFFT: the last dimension becomes half of the value of input 1, plus one; arg 1 (the inverse): all of it. */
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

/* Joining and splitting: Pack, Concat, Split, DynamicStitch and similar ops. They also build the vectors that other ops
 * take as shapes.
 */

/* Stacks scalars or vectors, some of whose elements may be known. `each`: elements of one input. */
static void pack_values(struct tf_infer *c, int64_t each)
{
	struct tf_value out = { 0 }, in;
	bool any = false;

	if (c->inputs > TF_VALUE_MAX || each > TF_VALUE_MAX / MAX(c->inputs, 1u))
		return;
	for (uint32_t i = 0; i < c->inputs; i++) {
		bool known = tf_in_value(c, i, &in) && in.count == (uint32_t)each;

		for (uint32_t k = 0; k < (uint32_t)each; k++) {
			out.item[out.count] = known ? in.item[k] : TF_VALUE_UNKNOWN;
			any |= out.item[out.count++] != TF_VALUE_UNKNOWN;
		}
	}
	if (any)
		tf_out_value(c, 0, &out);
}

/* Limits the inputs by the attribute N, because profiles do not mark control inputs. */
static void limit_inputs(struct tf_infer *c, int64_t more)
{
	int64_t count = tf_attr_int(tf_attrs(c), "N", INT32_MAX);

	if (count >= 0 && count < INT32_MAX && count + more < c->inputs)
		c->inputs = (uint32_t)(count + more);
}

void tf_rule_pack(struct tf_infer *c)
{
	int64_t axis = tf_attr_int(tf_attrs(c), "axis", 0), each;
	struct tf_shape in = tf_shape_unknown(), out = tf_shape_scalar();

	limit_inputs(c, 0);
	for (uint32_t i = 0; i < c->inputs && !tf_shape_full(&in); i++) {
		struct tf_shape one = tf_in(c, i);

		if (!tf_shape_merge(&in, &one))
			return;
	}
	if (in.rank == TF_UNKNOWN || !c->node.found || !tf_axis(&axis, in.rank + 1))
		return;
	for (int32_t i = 0; i <= in.rank; i++) {
		if (i == axis)
			tf_shape_push(&out, c->inputs);
		if (i < in.rank)
			tf_shape_push(&out, in.dim[i]);
	}
	tf_out(c, 0, &out);
	if (axis == 0 && tf_shape_elements(&in, &each))
		pack_values(c, each);
}

void tf_rule_unpack(struct tf_infer *c)
{
	int64_t axis = tf_attr_int(tf_attrs(c), "axis", 0);
	struct tf_shape in = tf_in(c, 0), out = tf_shape_scalar();
	struct tf_value value;

	if (in.rank == TF_UNKNOWN || !c->node.found || !tf_axis(&axis, in.rank))
		return;
	for (int32_t i = 0; i < in.rank; i++)
		if (i != axis)
			tf_shape_push(&out, in.dim[i]);
	tf_out_all(c, &out);
	if (in.rank != 1 || !tf_in_value(c, 0, &value))
		return;
	for (uint32_t i = 0; i < tf_port_count(c); i++) {
		int32_t port = tf_port_at(c, i);

		if (port < (int32_t)value.count)
			tf_out_value(
				c, port,
				&(struct tf_value){ .count = 1, .item = { value.item[port] } });
	}
}

/* Concatenates vectors, some of whose elements may be known. */
static void concat_values(struct tf_infer *c, uint32_t first, uint32_t count)
{
	struct tf_value out = { 0 }, part;
	bool any = false;

	for (uint32_t i = first; i < first + count; i++) {
		struct tf_shape shape = tf_in(c, i);
		bool known = tf_in_value(c, i, &part);

		if (shape.rank != 1 || shape.dim[0] < 0 || shape.dim[0] > TF_VALUE_MAX - out.count)
			return;
		if (known && part.count != (uint32_t)shape.dim[0])
			return;
		for (int64_t k = 0; k < shape.dim[0]; k++)
			out.item[out.count++] = known ? part.item[k] : TF_VALUE_UNKNOWN;
		any |= known;
	}
	if (any)
		tf_out_value(c, 0, &out);
}

/* arg 1: the axis is the first input (Concat), else the last (ConcatV2). */
void tf_rule_concat(struct tf_infer *c)
{
	struct tf_shape out = tf_shape_unknown();
	uint32_t first = c->arg == 1, count;
	int64_t axis, total = 0;

	limit_inputs(c, 1);
	count = c->inputs ? c->inputs - 1 : 0;
	for (uint32_t i = first; i < first + count && out.rank == TF_UNKNOWN; i++)
		out = tf_shape_of_rank(tf_in(c, i).rank);
	if (out.rank <= 0)
		return;
	if (!tf_in_scalar(c, c->arg == 1 ? 0 : count, &axis)) {
		tf_out(c, 0, &out);
		return;
	}
	if (!tf_axis(&axis, out.rank))
		return;
	for (uint32_t i = first; i < first + count; i++) {
		struct tf_shape in = tf_in(c, i);

		if (in.rank == TF_UNKNOWN)
			in = tf_shape_of_rank(out.rank);
		if (in.rank != out.rank)
			return;
		if (in.dim[axis] < 0 || total < 0 ||
		    __builtin_add_overflow(total, in.dim[axis], &total))
			total = TF_UNKNOWN;
		in.dim[axis] = TF_UNKNOWN;
		if (!tf_shape_merge(&out, &in))
			return;
	}
	out.dim[axis] = total;
	tf_out(c, 0, &out);
	if (out.rank == 1)
		concat_values(c, first, count);
}

/* The gradient of Concat: each output is a vector as long as the rank; its values are offsets. */
void tf_rule_concat_offset(struct tf_infer *c)
{
	struct tf_shape shape = tf_in(c, 1);

	tf_out_all(c, &shape);
}

void tf_rule_split(struct tf_infer *c)
{
	int64_t parts = tf_attr_int(tf_attrs(c), "num_split", 0), axis;
	struct tf_shape out = tf_in(c, 1);

	if (out.rank == TF_UNKNOWN || parts <= 0)
		return;
	if (!tf_in_scalar(c, 0, &axis)) {
		out = tf_shape_of_rank(out.rank);
	} else {
		if (!tf_axis(&axis, out.rank))
			return;
		if (out.dim[axis] >= 0)
			out.dim[axis] = out.dim[axis] % parts ? TF_UNKNOWN : out.dim[axis] / parts;
	}
	tf_out_all(c, &out);
}

/* The size that the others leave; one of the sizes may be -1. */
static int64_t left_over(int64_t whole, const struct tf_value *sizes)
{
	for (uint32_t i = 0; i < sizes->count; i++) {
		if (sizes->item[i] == -1)
			continue;
		if (sizes->item[i] < 0 || sizes->item[i] > whole)
			return TF_UNKNOWN;
		whole -= sizes->item[i];
	}
	return whole;
}

void tf_rule_split_v(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), out;
	struct tf_value sizes;
	int64_t axis;

	if (in.rank == TF_UNKNOWN)
		return;
	if (!tf_in_value(c, 1, &sizes) || !tf_in_scalar(c, 2, &axis)) {
		out = tf_shape_of_rank(in.rank);
		tf_out_all(c, &out);
		return;
	}
	if (!tf_axis(&axis, in.rank))
		return;
	for (uint32_t i = 0; i < tf_port_count(c); i++) {
		int32_t port = tf_port_at(c, i);
		int64_t size = port < (int32_t)sizes.count ? sizes.item[port] : TF_VALUE_UNKNOWN;

		out = in;
		out.dim[axis] = size == -1 ? left_over(in.dim[axis], &sizes)
				: size < 0 ? TF_UNKNOWN
					   : size;
		tf_out(c, port, &out);
	}
}

struct stitch {
	struct tf_value out;
	bool known;
};

static void stitch_part(struct tf_infer *c, struct stitch *s, uint32_t at, uint32_t parts)
{
	struct tf_value index, data;
	bool known = tf_in_value(c, at + parts, &data);

	if (!tf_in_value(c, at, &index) || (known && data.count != index.count)) {
		s->known = false;
		return;
	}
	for (uint32_t i = 0; i < index.count && s->known; i++) {
		int64_t to = index.item[i];

		if (to < 0 || to >= TF_VALUE_MAX) {
			s->known = false;
			return;
		}
		while ((int64_t)s->out.count <= to)
			s->out.item[s->out.count++] = TF_VALUE_UNKNOWN;
		s->out.item[to] = known ? data.item[i] : TF_VALUE_UNKNOWN;
	}
}

void tf_rule_dynamic_stitch(struct tf_infer *c)
{
	uint32_t parts = c->inputs / 2;
	struct stitch s = { .known = parts > 0 };
	struct tf_shape data = tf_in(c, parts), index = tf_in(c, 0), out = tf_shape_scalar();

	for (uint32_t i = 0; i < parts && s.known; i++)
		stitch_part(c, &s, i, parts);
	if (data.rank == TF_UNKNOWN || index.rank == TF_UNKNOWN || data.rank < index.rank)
		return;
	tf_shape_push(&out, s.known ? (int64_t)s.out.count : TF_UNKNOWN);
	for (int32_t i = index.rank; i < data.rank; i++)
		tf_shape_push(&out, data.dim[i]);
	tf_out(c, 0, &out);
	if (s.known && out.rank == 1)
		tf_out_value(c, 0, &s.out);
}

/* Slices: ops that take parts of tensors: slices, gathers, the best k. */

static void slice_values(struct tf_infer *c)
{
	struct tf_value in, begin, size, out = { 0 };

	if (!tf_in_value(c, 0, &in) || !tf_in_value(c, 1, &begin) || !tf_in_value(c, 2, &size))
		return;
	if (begin.count != 1 || size.count != 1 || begin.item[0] < 0 ||
	    begin.item[0] > (int64_t)in.count)
		return;
	if (size.item[0] == -1)
		size.item[0] = (int64_t)in.count - begin.item[0];
	if (size.item[0] < 0 || size.item[0] > (int64_t)in.count - begin.item[0])
		return;
	while ((int64_t)out.count < size.item[0]) {
		out.item[out.count] = in.item[begin.item[0] + (int64_t)out.count];
		out.count++;
	}
	tf_out_value(c, 0, &out);
}

/* Slice: a size of -1 means everything from begin on. */
void tf_rule_slice(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), out = tf_in_as_shape(c, 2);
	struct tf_value begin, size;
	bool begins = tf_in_value(c, 1, &begin);

	if (out.rank == TF_UNKNOWN)
		out = tf_shape_of_rank(in.rank);
	if (in.rank != TF_UNKNOWN && in.rank != out.rank)
		return;
	if (in.rank != TF_UNKNOWN && begins && tf_in_value(c, 2, &size) &&
	    begin.count == size.count && (int32_t)size.count == in.rank)
		for (int32_t i = 0; i < in.rank; i++)
			if (size.item[i] == -1 && in.dim[i] >= 0 && begin.item[i] >= 0 &&
			    begin.item[i] <= in.dim[i])
				out.dim[i] = in.dim[i] - begin.item[i];
	tf_out(c, 0, &out);
	if (in.rank == 1)
		slice_values(c);
}

struct strided {
	struct tf_value begin, end, step;
	bool begins, ends, steps;
	int64_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask;
	uint32_t count; /* entries of the three vectors begin, end, strides */
};

static bool bit(int64_t mask, uint32_t n)
{
	return n < 63 && (mask >> n & 1);
}

static int64_t item_of(bool known, const struct tf_value *value, uint32_t i)
{
	return known && i < value->count ? value->item[i] : TF_VALUE_UNKNOWN;
}

/* Computes where an entry begins, ends and steps in a dimension of a known size; false when not constant. */
static bool bounds(const struct strided *s, uint32_t i, int64_t size, int64_t *begin, int64_t *end,
		   int64_t *step)
{
	int64_t low, high;

	*step = item_of(s->steps, &s->step, i);
	if (size < 0 || *step == TF_VALUE_UNKNOWN || *step == 0)
		return false;
	low = *step > 0 ? 0 : -1;
	high = *step > 0 ? size : size - 1;
	*begin = item_of(s->begins, &s->begin, i);
	*end = item_of(s->ends, &s->end, i);
	if (bit(s->begin_mask, i))
		*begin = *step > 0 ? 0 : size - 1;
	else if (*begin == TF_VALUE_UNKNOWN)
		return false;
	else
		*begin = MIN(MAX(*begin < 0 ? *begin + size : *begin, low), high);
	if (bit(s->end_mask, i))
		*end = *step > 0 ? size : -1;
	else if (*end == TF_VALUE_UNKNOWN)
		return false;
	else
		*end = MIN(MAX(*end < 0 ? *end + size : *end, low), high);
	return true;
}

static int64_t strided_size(const struct strided *s, uint32_t i, int64_t size)
{
	int64_t begin, end, step;
	__int128 span, stride;

	if (!bounds(s, i, size, &begin, &end, &step))
		return TF_UNKNOWN;
	span = step > 0 ? (__int128)end - begin : (__int128)begin - end;
	stride = step > 0 ? step : -(__int128)step;
	return span <= 0 ? 0 : (int64_t)((span + stride - 1) / stride);
}

/* The number of input dimensions that the ellipsis stands for; negative when there are more entries than dimensions. */
static int32_t ellipsis_length(const struct strided *s, int32_t rank, bool *has_ellipsis)
{
	int32_t taken = 0;

	*has_ellipsis = false;
	for (uint32_t i = 0; i < s->count; i++) {
		if (bit(s->ellipsis_mask, i))
			*has_ellipsis = true;
		else if (!bit(s->new_axis_mask, i))
			taken++;
	}
	return rank - taken;
}

static struct tf_shape strided_shape(const struct strided *s, const struct tf_shape *in)
{
	struct tf_shape out = tf_shape_scalar();
	bool has_ellipsis;
	int32_t skip = ellipsis_length(s, in->rank, &has_ellipsis), at = 0;

	if (skip < 0)
		return tf_shape_unknown();
	for (uint32_t i = 0; i < s->count; i++) {
		if (bit(s->ellipsis_mask, i)) {
			for (; skip; skip--)
				tf_shape_push(&out, in->dim[at++]);
		} else if (bit(s->new_axis_mask, i)) {
			tf_shape_push(&out, 1);
		} else if (bit(s->shrink_mask, i)) {
			at++;
		} else {
			tf_shape_push(&out, strided_size(s, i, in->dim[at]));
			at++;
		}
	}
	while (at < in->rank)
		tf_shape_push(&out, in->dim[at++]);
	return out;
}

/* Applies one entry to a vector of constants: x.shape[0], x.shape[1:3], … */
static void strided_values(struct tf_infer *c, const struct strided *s)
{
	struct tf_value in, out = { 0 };
	int64_t begin, end, step;

	if (s->count != 1 || s->ellipsis_mask || s->new_axis_mask || !tf_in_value(c, 0, &in))
		return;
	if (!bounds(s, 0, in.count, &begin, &end, &step))
		return;
	if (bit(s->shrink_mask, 0)) {
		if (begin < 0 || begin >= (int64_t)in.count)
			return;
		end = begin + 1;
		step = 1;
	}
	step = MIN(MAX(step, -(int64_t)TF_VALUE_MAX - 1), TF_VALUE_MAX + 1);
	for (int64_t i = begin; step > 0 ? i < end : i > end; i += step)
		out.item[out.count++] = in.item[i];
	tf_out_value(c, 0, &out);
}

static bool read_strided(struct tf_infer *c, struct strided *s)
{
	const struct tf_node *node = tf_attrs(c);
	struct tf_shape vector = tf_in(c, 1);

	s->begins = tf_in_value(c, 1, &s->begin);
	s->ends = tf_in_value(c, 2, &s->end);
	s->steps = tf_in_value(c, 3, &s->step);
	s->begin_mask = tf_attr_int(node, "begin_mask", 0);
	s->end_mask = tf_attr_int(node, "end_mask", 0);
	s->ellipsis_mask = tf_attr_int(node, "ellipsis_mask", 0);
	s->new_axis_mask = tf_attr_int(node, "new_axis_mask", 0);
	s->shrink_mask = tf_attr_int(node, "shrink_axis_mask", 0);
	if (s->begins)
		s->count = s->begin.count;
	else if (s->steps)
		s->count = s->step.count;
	else if (vector.rank == 1 && vector.dim[0] >= 0 && vector.dim[0] <= TF_RANK_MAX)
		s->count = (uint32_t)vector.dim[0];
	else
		return false;
	return node->found && s->count <= TF_RANK_MAX;
}

void tf_rule_strided_slice(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), out;
	struct strided s;

	if (!read_strided(c, &s) || in.rank == TF_UNKNOWN)
		return;
	out = strided_shape(&s, &in);
	tf_out(c, 0, &out);
	strided_values(c, &s);
}

static void gather_values(struct tf_infer *c)
{
	struct tf_value in, index, out = { 0 };

	if (!tf_in_value(c, 0, &in) || !tf_in_value(c, 1, &index))
		return;
	for (uint32_t i = 0; i < index.count; i++) {
		int64_t at = index.item[i];

		if (at >= (int64_t)in.count || (at < 0 && at != TF_VALUE_UNKNOWN))
			return;
		out.item[out.count++] = at < 0 ? TF_VALUE_UNKNOWN : in.item[at];
	}
	tf_out_value(c, 0, &out);
}

/* The shape of a gather: the indexed dimension is replaced by those of the indices. */
static struct tf_shape gathered(const struct tf_shape *in, const struct tf_shape *index,
				int64_t axis, int64_t batch)
{
	struct tf_shape out = tf_shape_scalar();

	for (int32_t i = 0; i < axis; i++)
		tf_shape_push(&out, in->dim[i]);
	for (int32_t i = (int32_t)batch; i < index->rank; i++)
		tf_shape_push(&out, index->dim[i]);
	for (int32_t i = (int32_t)axis + 1; i < in->rank; i++)
		tf_shape_push(&out, in->dim[i]);
	return out;
}

static void gather(struct tf_infer *c, const struct tf_shape *in, int64_t axis, int64_t batch)
{
	struct tf_shape index = tf_in(c, 1), out;

	if (in->rank == TF_UNKNOWN || index.rank == TF_UNKNOWN || !tf_axis(&axis, in->rank))
		return;
	if (batch < 0)
		batch += index.rank;
	if (batch < 0 || batch > index.rank || batch > axis)
		return;
	out = gathered(in, &index, axis, batch);
	tf_out(c, 0, &out);
	if (axis == 0 && in->rank == 1)
		gather_values(c);
}

/* Gather; arg 2: GatherV2, with the axis as input 2. */
void tf_rule_gather(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0);
	int64_t axis = 0, batch = 0;

	if (c->arg == 2) {
		if (!tf_in_scalar(c, 2, &axis))
			return;
		batch = tf_attr_int(tf_attrs(c), "batch_dims", 0);
	}
	gather(c, &in, axis, batch);
}

void tf_rule_resource_gather(struct tf_infer *c)
{
	const struct tf_slot *slot = tf_flow_input(c->flow, c->op, 0);
	struct tf_shape in = slot ? tf_shape_load(c->flow->m, slot->handle) : tf_shape_unknown();

	gather(c, &in, 0, 0);
}

void tf_rule_gather_nd(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, 0), index = tf_in(c, 1), out = tf_shape_scalar();
	int64_t depth;

	if (in.rank == TF_UNKNOWN || index.rank < 1)
		return;
	depth = index.dim[index.rank - 1];
	if (depth < 0 || depth > in.rank)
		return;
	for (int32_t i = 0; i + 1 < index.rank; i++)
		tf_shape_push(&out, index.dim[i]);
	for (int64_t i = depth; i < in.rank; i++)
		tf_shape_push(&out, in.dim[i]);
	tf_out(c, 0, &out);
}

/* TopK; arg 2: k is input 1, otherwise an attribute. Two outputs: the values and their indices. */
void tf_rule_top_k(struct tf_infer *c)
{
	struct tf_shape out = tf_in(c, 0);
	int64_t k = TF_UNKNOWN;

	if (out.rank < 1)
		return;
	if (c->arg == 2) {
		if (!tf_in_scalar(c, 1, &k))
			k = TF_UNKNOWN;
	} else {
		k = tf_attr_int(tf_attrs(c), "k", TF_UNKNOWN);
	}
	out.dim[out.rank - 1] = k < 0 ? TF_UNKNOWN : k;
	tf_out_all(c, &out);
}
