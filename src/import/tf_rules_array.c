/* tf_rules_array.c: shape rules of ops that rearrange, join and repeat tensors. Slices: tf_rules_slice.c. */
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

/* ---- Pack, Unpack ---- */

/* Stacked scalars are a vector whose elements may be known one by one. */
static void pack_values(struct tf_infer *c)
{
	struct tf_value out = { 0 };
	bool any = false;

	if (c->inputs > TF_VALUE_MAX)
		return;
	for (uint32_t i = 0; i < c->inputs; i++) {
		int64_t item;

		if (tf_in_scalar(c, i, &item))
			any = true;
		else
			item = TF_VALUE_UNKNOWN;
		out.item[out.count++] = item;
	}
	if (any)
		tf_out_value(c, 0, &out);
}

/* Profiles do not tell control inputs from others; the attribute N does. */
static void limit_inputs(struct tf_infer *c, int64_t more)
{
	int64_t count = tf_attr_int(tf_attrs(c), "N", INT32_MAX);

	if (count >= 0 && count < INT32_MAX && count + more < c->inputs)
		c->inputs = (uint32_t)(count + more);
}

void tf_rule_pack(struct tf_infer *c)
{
	int64_t axis = tf_attr_int(tf_attrs(c), "axis", 0);
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
	if (in.rank == 0)
		pack_values(c);
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

/* ---- Concat, Split ---- */

/* Vectors, of which some may be known. */
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

/* The gradient of Concat: output i is as long as the rank. Its values are only starting points. */
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

/* One of the sizes may be -1: what the others leave. */
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

	if (tf_in_scalar(c, 0, &start) && tf_in_scalar(c, 1, &limit) && tf_in_scalar(c, 2, &delta))
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

/* ---- DynamicStitch: merges vectors by index; used by TensorFlow to compute shapes ---- */

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
