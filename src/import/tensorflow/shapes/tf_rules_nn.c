/*
 * tf_rules_nn.c: shape rules of convolutions, pooling, normalisation, losses and images. The properties that all
 * windows share (strides, padding, dilation, position of the channels) are read once into struct conv_window.
 */
#include "import/tensorflow/shapes/tf_rule.h"

#define WINDOW_RANK 5

enum padding { PADDING_UNKNOWN, PADDING_SAME, PADDING_VALID, PADDING_EXPLICIT };

/* A window, with one entry for each dimension of the tensor, batch and channels included. */
struct conv_window {
	int32_t rank, channel;
	enum padding padding;
	int64_t stride[WINDOW_RANK], dilation[WINDOW_RANK];
	int64_t before[WINDOW_RANK], after[WINDOW_RANK];
};

static enum padding padding_of(struct str text)
{
	if (str_eq(text, STR("SAME")))
		return PADDING_SAME;
	if (str_eq(text, STR("VALID")))
		return PADDING_VALID;
	return str_eq(text, STR("EXPLICIT")) ? PADDING_EXPLICIT : PADDING_UNKNOWN;
}

/* The dimension of the channels: the last or the second; other layouts are unknown. */
static int32_t channel_of(struct str format, int32_t rank)
{
	if (!format.len || str_eq(format, STR("NHWC")) || str_eq(format, STR("NDHWC")))
		return rank - 1;
	if (str_eq(format, STR("NCHW")) || str_eq(format, STR("NCDHW")))
		return 1;
	return -1;
}

static bool read_sizes(const struct tf_node *node, const char *name, int32_t rank, int64_t *sizes)
{
	size_t count = tf_attr_ints(node, name, sizes, WINDOW_RANK);

	if (count == (size_t)rank)
		return true;
	for (int32_t i = 0; i < rank; i++)
		sizes[i] = 1;
	return count == 0;
}

static bool read_explicit(const struct tf_node *node, struct conv_window *w)
{
	int64_t pads[2 * WINDOW_RANK];
	size_t count = tf_attr_ints(node, "explicit_paddings", pads, ARRAY_COUNT(pads));

	if (w->padding != PADDING_EXPLICIT)
		return true;
	if (count != 2 * (size_t)w->rank)
		return false;
	for (int32_t i = 0; i < w->rank; i++) {
		w->before[i] = pads[2 * i];
		w->after[i] = pads[2 * i + 1];
	}
	return true;
}

static bool read_window(struct tf_infer *c, int32_t rank, struct conv_window *w)
{
	const struct tf_node *node = tf_attrs(c);

	*w = (struct conv_window){ .rank = rank };
	if (!node->found)
		return false;
	w->channel = channel_of(tf_attr_str(node, "data_format"), rank);
	w->padding = padding_of(tf_attr_str(node, "padding"));
	return w->channel >= 0 && w->padding && read_sizes(node, "strides", rank, w->stride) &&
	       read_sizes(node, "dilations", rank, w->dilation) && read_explicit(node, w);
}

/* The number of positions of a window along dimension i. */
static int64_t window_count(const struct conv_window *w, int32_t i, int64_t in, int64_t size)
{
	int64_t reach, room;

	if (in < 0 || w->stride[i] <= 0)
		return TF_UNKNOWN;
	if (w->padding == PADDING_SAME)
		return tf_ceil_div(in, w->stride[i]);
	if (size <= 0 || w->dilation[i] <= 0 ||
	    __builtin_mul_overflow(size - 1, w->dilation[i], &reach))
		return TF_UNKNOWN;
	if (__builtin_add_overflow(in, w->before[i], &room) ||
	    __builtin_add_overflow(room, w->after[i], &room) || room < 0 || room <= reach)
		return TF_UNKNOWN;
	return (room - reach - 1) / w->stride[i] + 1;
}

/* The output shape of a convolution of `in` with a filter whose first dimensions are the spatial ones. */
static struct tf_shape convolved(const struct conv_window *w, const struct tf_shape *in,
				 const struct tf_shape *filter, int64_t channels)
{
	struct tf_shape out = *in;
	int32_t spatial = 0;

	for (int32_t i = 1; i < w->rank; i++)
		if (i != w->channel)
			out.dim[i] = window_count(w, i, in->dim[i], filter->dim[spatial++]);
	out.dim[w->channel] = channels;
	return out;
}

static struct tf_shape in_of_rank(struct tf_infer *c, uint32_t index, int32_t rank)
{
	struct tf_shape s = tf_in(c, index);

	return s.rank == TF_UNKNOWN ? tf_shape_of_rank(rank) : s;
}

/* Convolutions; arg: rank of the tensors, 4 for Conv2D and 5 for Conv3D. */
void tf_rule_conv(struct tf_infer *c)
{
	struct tf_shape in = in_of_rank(c, 0, c->arg), filter = in_of_rank(c, 1, c->arg), out;
	struct conv_window w;

	if (in.rank != c->arg || filter.rank != c->arg || !read_window(c, c->arg, &w))
		return;
	out = convolved(&w, &in, &filter, filter.dim[c->arg - 1]);
	tf_out(c, 0, &out);
}

void tf_rule_depthwise_conv(struct tf_infer *c)
{
	struct tf_shape in = in_of_rank(c, 0, 4), filter = in_of_rank(c, 1, 4), out;
	int64_t channels = TF_UNKNOWN, depth;
	struct conv_window w;

	if (in.rank != 4 || filter.rank != 4 || !read_window(c, 4, &w))
		return;
	depth = in.dim[w.channel] >= 0 ? in.dim[w.channel] : filter.dim[2];
	if (depth < 0 || filter.dim[3] < 0 ||
	    __builtin_mul_overflow(depth, filter.dim[3], &channels))
		channels = TF_UNKNOWN;
	out = convolved(&w, &in, &filter, channels);
	tf_out(c, 0, &out);
}

/* Morphological dilation: the filter has no output channels, and "rates" are the dilations. */
void tf_rule_dilation2d(struct tf_infer *c)
{
	struct tf_shape in = in_of_rank(c, 0, 4), filter = in_of_rank(c, 1, 3), out;
	struct conv_window w;

	if (in.rank != 4 || filter.rank != 3 || !read_window(c, 4, &w))
		return;
	if (!read_sizes(&c->node, "rates", 4, w.dilation))
		return;
	out = convolved(&w, &in, &filter, in.dim[3] >= 0 ? in.dim[3] : filter.dim[2]);
	tf_out(c, 0, &out);
}

/* Gradients of a convolution: input number arg is the shape of the result. */
void tf_rule_conv_gradient(struct tf_infer *c)
{
	struct tf_shape out = tf_in_as_shape(c, (uint32_t)c->arg);

	tf_out(c, 0, &out);
}

static void pool(struct tf_infer *c, int32_t rank, const int64_t *size, struct conv_window *w)
{
	struct tf_shape in = in_of_rank(c, 0, rank);

	if (in.rank != rank)
		return;
	for (int32_t i = 0; i < rank; i++)
		if (size[i] != 1 || w->stride[i] != 1)
			in.dim[i] = window_count(w, i, in.dim[i], size[i]);
	tf_out_all(c, &in);
}

/* Pooling; arg: rank of the tensors. */
void tf_rule_pool(struct tf_infer *c)
{
	int64_t size[WINDOW_RANK];
	struct conv_window w;

	if (read_window(c, c->arg, &w) && read_sizes(&c->node, "ksize", c->arg, size))
		pool(c, c->arg, size, &w);
}

/* MaxPoolV2: window and strides are inputs. */
void tf_rule_pool_v2(struct tf_infer *c)
{
	struct tf_shape size = tf_in_as_shape(c, 1), stride = tf_in_as_shape(c, 2);
	struct conv_window w;

	if (!read_window(c, 4, &w) || size.rank != 4 || stride.rank != 4)
		return;
	memcpy(w.stride, stride.dim, 4 * sizeof(*w.stride));
	pool(c, 4, size.dim, &w);
}

static void out_channels(struct tf_infer *c, const struct tf_shape *x, int32_t first, int32_t last)
{
	struct tf_shape vector = tf_shape_of_rank(1);
	int32_t channel;

	if (x->rank < 2)
		return;
	channel = channel_of(tf_attr_str(tf_attrs(c), "data_format"), x->rank);
	if (channel >= 0 && c->node.found)
		vector.dim[0] = x->dim[channel];
	for (int32_t port = first; port <= last; port++)
		tf_out(c, port, &vector);
}

/* Batch normalisation: input arg is the batch; the statistics are per channel. */
void tf_rule_batch_norm(struct tf_infer *c)
{
	struct tf_shape x = tf_in(c, (uint32_t)c->arg);

	tf_out(c, 0, &x);
	/* In the gradient the last two outputs are placeholders. */
	out_channels(c, &x, 1, c->arg ? 2 : 4);
}

void tf_rule_bias_gradient(struct tf_infer *c)
{
	struct tf_shape x = tf_in(c, 0);

	out_channels(c, &x, 0, 0);
}

/* Cross entropy: the loss for each example, and the gradient; the sparse form has labels of rank 1. */
void tf_rule_cross_entropy(struct tf_infer *c)
{
	struct tf_shape logits = in_of_rank(c, 0, 2), labels = tf_in(c, 1),
			loss = tf_shape_of_rank(1);

	if (logits.rank != 2)
		return;
	if (labels.rank == 2)
		(void)tf_shape_merge(&logits, &labels);
	else if (labels.rank == 1 && logits.dim[0] < 0)
		logits.dim[0] = labels.dim[0];
	loss.dim[0] = logits.dim[0];
	tf_out(c, 0, &loss);
	tf_out(c, 1, &logits);
}

/* InTopK: one result for each example. */
void tf_rule_per_example(struct tf_infer *c)
{
	struct tf_shape in = tf_in(c, (uint32_t)c->arg), out = tf_shape_of_rank(1);

	if (in.rank < 1)
		return;
	out.dim[0] = in.dim[0];
	tf_out(c, 0, &out);
}

/* Multinomial: a row of samples for each row of logits. */
void tf_rule_multinomial(struct tf_infer *c)
{
	struct tf_shape in = in_of_rank(c, 0, 2), out = tf_shape_of_rank(2);
	int64_t samples;

	if (in.rank != 2)
		return;
	out.dim[0] = in.dim[0];
	if (tf_in_scalar(c, 1, &samples) && samples >= 0)
		out.dim[1] = samples;
	tf_out(c, 0, &out);
}

/* Resizes images (batch, height, width, channels) to the size in input 1. */
void tf_rule_resize(struct tf_infer *c)
{
	struct tf_shape in = in_of_rank(c, 0, 4), size = tf_in_as_shape(c, 1);

	if (in.rank != 4)
		return;
	in.dim[1] = size.rank == 2 ? size.dim[0] : TF_UNKNOWN;
	in.dim[2] = size.rank == 2 ? size.dim[1] : TF_UNKNOWN;
	tf_out(c, 0, &in);
}

/* CropAndResize: as many crops as boxes (input 1), with the size in input 3. */
void tf_rule_crop(struct tf_infer *c)
{
	struct tf_shape in = in_of_rank(c, 0, 4), boxes = in_of_rank(c, 1, 2);
	struct tf_shape size = tf_in_as_shape(c, 3);

	if (in.rank != 4 || boxes.rank != 2)
		return;
	in.dim[0] = boxes.dim[0];
	in.dim[1] = size.rank == 2 ? size.dim[0] : TF_UNKNOWN;
	in.dim[2] = size.rank == 2 ? size.dim[1] : TF_UNKNOWN;
	tf_out(c, 0, &in);
}

/* Decoded images: height and width are in the data, so they are unknown. */
void tf_rule_decode_image(struct tf_infer *c)
{
	int64_t channels = tf_attr_int(tf_attrs(c), "channels", 0);
	struct tf_shape out = tf_shape_of_rank(3);

	out.dim[2] = channels > 0 ? channels : TF_UNKNOWN;
	tf_out(c, 0, &out);
}

/* A size multiplied or divided by a factor; unknown when it is not divisible. */
static int64_t scale_size(int64_t size, int64_t factor, bool up)
{
	if (size < 0 || factor <= 0)
		return TF_UNKNOWN;
	if (!up)
		return size % factor ? TF_UNKNOWN : size / factor;
	return __builtin_mul_overflow(size, factor, &size) ? TF_UNKNOWN : size;
}

/* arg 1: DepthToSpace, otherwise SpaceToDepth. */
void tf_rule_depth_space(struct tf_infer *c)
{
	int64_t block = tf_attr_int(tf_attrs(c), "block_size", 0);
	struct tf_shape in = in_of_rank(c, 0, 4);
	int32_t channel = channel_of(tf_attr_str(&c->node, "data_format"), 4);
	bool up = c->arg == 1;

	if (in.rank != 4 || channel < 0 || block <= 0 || block > INT32_MAX)
		return;
	for (int32_t i = 1; i < 4; i++)
		in.dim[i] = i == channel ? scale_size(in.dim[i], block * block, !up)
					 : scale_size(in.dim[i], block, up);
	tf_out(c, 0, &in);
}

/* Pads (or crops) a blocked dimension, then moves blocks into (or out of) the batch. */
static bool move_block(struct tf_shape *s, int32_t i, int64_t block, const int64_t *pads,
		       bool to_batch)
{
	int64_t more, size = s->dim[i];

	if (block == TF_VALUE_UNKNOWN || pads[0] < 0 || pads[1] < 0 ||
	    __builtin_add_overflow(pads[0], pads[1], &more))
		return false;
	if (to_batch) {
		s->dim[0] = scale_size(s->dim[0], block, true);
		if (size >= 0 && __builtin_add_overflow(size, more, &size))
			return false;
		s->dim[i] = scale_size(size, block, false);
	} else {
		s->dim[0] = scale_size(s->dim[0], block, false);
		size = scale_size(size, block, true);
		s->dim[i] = size < more ? TF_UNKNOWN : size - more;
	}
	return true;
}

/* SpaceToBatchND (arg 0) and BatchToSpaceND (arg 1): inputs are blocks and pads per dimension. */
void tf_rule_batch_space(struct tf_infer *c)
{
	struct tf_shape out = tf_in(c, 0);
	struct tf_value blocks, pads;

	if (out.rank == TF_UNKNOWN)
		return;
	if (!tf_in_value(c, 1, &blocks) || !tf_in_value(c, 2, &pads) ||
	    (int32_t)blocks.count >= out.rank || pads.count != 2 * blocks.count) {
		out = tf_shape_of_rank(out.rank);
	} else {
		for (uint32_t i = 0; i < blocks.count; i++)
			if (!move_block(&out, (int32_t)i + 1, blocks.item[i], &pads.item[2 * i],
					c->arg == 0))
				return;
	}
	tf_out(c, 0, &out);
}

/* ExtractImagePatches: windows become the depth. */
void tf_rule_patches(struct tf_infer *c)
{
	struct tf_shape in = in_of_rank(c, 0, 4);
	int64_t size[WINDOW_RANK], depth = in.rank == 4 ? in.dim[3] : TF_UNKNOWN;
	struct conv_window w;

	if (in.rank != 4 || !read_window(c, 4, &w) || !read_sizes(&c->node, "ksizes", 4, size) ||
	    !read_sizes(&c->node, "rates", 4, w.dilation))
		return;
	for (int32_t i = 1; i < 3; i++) {
		in.dim[i] = window_count(&w, i, in.dim[i], size[i]);
		depth = scale_size(depth, size[i], true);
	}
	in.dim[3] = depth;
	tf_out(c, 0, &in);
}
