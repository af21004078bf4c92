/*
 * tf_shape.h: static tensor shapes for shape inference: a rank and sizes, each of which may be unknown. The struct is
 * small, lives on the stack and owns no memory. Ranks above TF_RANK_MAX (TensorFlow's own kernels stop at 8) are
 * treated as unknown; sizes are never negative except TF_UNKNOWN.
 */
#ifndef IMPORT_TF_SHAPE_H
#define IMPORT_TF_SHAPE_H

#include "model/builder.h"
#include "wire/protobuf/pb.h"

#define TF_RANK_MAX 32
#define TF_UNKNOWN (-1)

struct tf_shape {
	int32_t rank; /* TF_UNKNOWN: nothing is known about the shape */
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

/* A shape of that rank, with all sizes unknown; an unknown shape when the rank is out of range. */
struct tf_shape tf_shape_of_rank(int64_t rank);

/* Appends a dimension; any negative size is unknown. The shape becomes unknown when it is full. */
void tf_shape_push(struct tf_shape *s, int64_t size);

/* Whether the rank and all sizes are known. */
bool tf_shape_full(const struct tf_shape *s);

/* The number of elements; false when a size is unknown or the number does not fit. */
bool tf_shape_elements(const struct tf_shape *s, int64_t *count);

/* Fills unknown parts of `into` from `from`; false, and nothing changed, when the two contradict each other. */
bool tf_shape_merge(struct tf_shape *into, const struct tf_shape *from);

/* Keeps only what both shapes agree on; the rest becomes unknown. */
void tf_shape_weaken(struct tf_shape *into, const struct tf_shape *from);

/* The shape of an elementwise result; unknown when the two do not fit. */
struct tf_shape tf_shape_broadcast(const struct tf_shape *a, const struct tf_shape *b);

/* The quotient a / b rounded up, for a >= 0 and b > 0. */
static inline int64_t tf_ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* Reads a serialized TensorShapeProto. */
struct tf_shape tf_shape_from_proto(struct str message);

/* Convert between tf_shape and the model's shapes. The nil shape is unknown. */
struct tf_shape tf_shape_load(const struct model *m, shape_id id);
shape_id tf_shape_store(struct builder *b, const struct tf_shape *s);
bool tf_shape_id_full(const struct model *m, shape_id id);

/* The shape as text: "100x?x3", "scalar" or "unknown". */
const char *tf_shape_text(const struct tf_shape *s, char *text, size_t size);

/* Reads a TensorShapeProto as tfprof treats static shapes: a scalar becomes [1]; no dimensions and an unknown rank
 * become nil. */
shape_id tf_shape_static(struct builder *b, struct str message);
/* Reads a TensorShapeProto unchanged: a scalar has rank 0, an unknown rank is -1. */
shape_id tf_shape_real(struct builder *b, struct str message);

/* A cache of serialized shapes, so that the few distinct ones of a file are read once. Initially zero; one cache
 * serves one of the two functions only. */
#define TF_SHAPE_MEMORY 256 /* a power of two */
#define TF_SHAPE_BYTES 31
struct tf_shape_memory {
	struct {
		uint8_t len; /* length of the message, plus one; 0 = empty slot */
		uint8_t bytes[TF_SHAPE_BYTES];
		shape_id id;
	} slots[TF_SHAPE_MEMORY];
};
shape_id tf_shape_recall(struct tf_shape_memory *memory, struct builder *b, struct str message,
			 shape_id (*read)(struct builder *, struct str));

/* Dimensions while they are read; long lists use allocated memory. */
#define TF_DIMS_SMALL 16
struct tf_dim_list {
	size_t count, cap;
	int64_t *large;
	int64_t small[TF_DIMS_SMALL]; /* not initialised */
};

static inline void tf_dims_begin(struct tf_dim_list *d)
{
	d->count = d->cap = 0;
	d->large = NULL;
}
/* A failure is reported by the builder. */
void tf_dims_push_large(struct tf_dim_list *d, struct builder *b, int64_t size);
static inline void tf_dims_push(struct tf_dim_list *d, struct builder *b, int64_t size)
{
	if (OW_LIKELY(d->count < TF_DIMS_SMALL))
		d->small[d->count++] = size;
	else
		tf_dims_push_large(d, b, size);
}
/* Makes the shape, or nil when there are no dimensions; the list is empty afterwards. */
shape_id tf_dims_end(struct tf_dim_list *d, struct builder *b);

#endif
