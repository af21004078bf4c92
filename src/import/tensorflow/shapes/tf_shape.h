/*
 * tf_dims.h: static tensor shapes as shape inference works with them: a rank and sizes, each of which
 * may be unknown. Small, on the stack, no memory of its own. Ranks above TF_RANK_MAX (TensorFlow's own
 * kernels stop at 8) are treated as unknown; sizes are never negative but for TF_UNKNOWN.
 */
#ifndef IMPORT_TF_DIMS_H
#define IMPORT_TF_DIMS_H

#include "model/builder.h"

#define TF_RANK_MAX 32
#define TF_UNKNOWN (-1)

struct tf_shape {
	int32_t rank; /* TF_UNKNOWN: nothing is known */
	int64_t dim[TF_RANK_MAX];
};

static inline struct tf_shape tf_shape_unknown(void)
{
	return (struct tf_shape){ .rank = TF_UNKNOWN };
}

static inline struct tf_shape tf_shape_scalar(void)
{
	return (struct tf_shape){ .rank = 0 };
}

/* Of that rank, with all sizes unknown; unknown when the rank is out of range. */
struct tf_shape tf_shape_of_rank(int64_t rank);

/* One more dimension at the end; any negative size is unknown. The shape becomes unknown when full. */
void tf_shape_push(struct tf_shape *s, int64_t size);

/* Rank and all sizes are known. */
bool tf_shape_full(const struct tf_shape *s);

/* Number of elements; false when the shape is not full or the number does not fit. */
bool tf_shape_elements(const struct tf_shape *s, int64_t *count);

/* Fills what is unknown in `into`; false, and nothing changed, when the two contradict each other. */
bool tf_shape_merge(struct tf_shape *into, const struct tf_shape *from);

/* What both agree on: the rest becomes unknown. */
void tf_shape_weaken(struct tf_shape *into, const struct tf_shape *from);

/* The shape of an elementwise result; unknown when the two do not fit. */
struct tf_shape tf_shape_broadcast(const struct tf_shape *a, const struct tf_shape *b);

/* a / b rounded up, for a >= 0 and b > 0. */
static inline int64_t tf_ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* From a serialized TensorShapeProto. */
struct tf_shape tf_shape_from_proto(struct str message);

/* From and to the model's shapes. The nil shape is unknown. */
struct tf_shape tf_shape_load(const struct model *m, shape_id id);
shape_id tf_shape_store(struct builder *b, const struct tf_shape *s);
bool tf_shape_id_full(const struct model *m, shape_id id);

/* "100x?x3", "scalar" or "unknown". */
const char *tf_shape_text(const struct tf_shape *s, char *text, size_t size);

#endif
