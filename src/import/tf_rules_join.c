/*
 * tf_rules_join.c: shape rules of ops that put tensors together and take them apart: Pack, Concat, Split,
 * DynamicStitch and their relatives. They also build the vectors that other ops take as shapes.
 */
#include "import/tf_rule.h"

/* ---- Pack, Unpack ---- */

/* Stacked scalars, or stacked vectors, whose elements may be known one by one. `each`: elements of one input. */
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

/* Profiles do not tell control inputs from others; the attribute N does. */
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
