/* tf_shape_proto.h: TensorShapeProto to a shape of the model; used by the TensorFlow importers. */
#ifndef IMPORT_TF_SHAPE_PROTO_H
#define IMPORT_TF_SHAPE_PROTO_H

#include "model/builder.h"
#include "wire/pb.h"

/* As tfprof sees static shapes: a scalar becomes [1]; no dimensions and an unknown rank become nil. */
shape_id tf_shape_static(struct builder *b, struct str message);
/* As it is: a scalar has rank 0, an unknown rank is -1. */
shape_id tf_shape_real(struct builder *b, struct str message);

/* A file has few distinct shapes: remembers serialized ones, so that they are not read again. Zeroed
 * to begin with; one memory for one of the two functions. */
#define TF_SHAPE_MEMORY 256 /* a power of two */
#define TF_SHAPE_BYTES 31
struct tf_shape_memory {
	struct {
		uint8_t len; /* of the message, plus one; 0 = empty slot */
		uint8_t bytes[TF_SHAPE_BYTES];
		shape_id id;
	} slots[TF_SHAPE_MEMORY];
};
shape_id tf_shape_recall(struct tf_shape_memory *memory, struct builder *b, struct str message,
			 shape_id (*read)(struct builder *, struct str));

/* Dimensions as they are read; more than a few go to memory of their own. */
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
/* A failure is the builder's. */
void tf_dims_push_large(struct tf_dim_list *d, struct builder *b, int64_t size);
static inline void tf_dims_push(struct tf_dim_list *d, struct builder *b, int64_t size)
{
	if (OW_LIKELY(d->count < TF_DIMS_SMALL))
		d->small[d->count++] = size;
	else
		tf_dims_push_large(d, b, size);
}
/* The shape, or nil when there are no dimensions; the list is empty after it. */
shape_id tf_dims_end(struct tf_dim_list *d, struct builder *b);

#endif
