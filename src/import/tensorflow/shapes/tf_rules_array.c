/* tf_rules_slice.c: shape rules of ops that take parts of tensors: slices, gathers, the best k. */
#include "import/tf_rule.h"

/* ---- Slice ---- */

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

/* A size of -1 means all from begin on. */
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

/* ---- StridedSlice ---- */

struct strided {
	struct tf_value begin, end, step;
	bool begins, ends, steps;
	int64_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask;
	uint32_t count; /* entries of the three vectors */
};

static bool bit(int64_t mask, uint32_t n)
{
	return n < 63 && (mask >> n & 1);
}

static int64_t item_of(bool known, const struct tf_value *value, uint32_t i)
{
	return known && i < value->count ? value->item[i] : TF_VALUE_UNKNOWN;
}

/* Where an entry begins, ends and steps in a dimension of a known size; false when not constant. */
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

/* Input dimensions that the ellipsis stands for; negative when there are more entries than dimensions. */
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

/* One entry on a vector of constants: x.shape[0], x.shape[1:3], … */
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

/* ---- Gather ---- */

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

/* The indexed dimension is replaced by those of the indices. */
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

/* arg 2: GatherV2, with the axis as input 2. */
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

/* arg 2: k is input 1, otherwise an attribute. Two outputs: the values and their indices. */
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
