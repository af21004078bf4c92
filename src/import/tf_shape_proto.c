/* tf_shape_proto.c: see tf_shape_proto.h. */
#include "import/tf_shape_proto.h"

void tf_dims_push_large(struct tf_dim_list *d, struct builder *b, int64_t size)
{
	void *large = d->large;

	if (d->count == INT32_MAX ||
	    !mem_grow(b->m->mem, &large, &d->cap, d->count + 1, sizeof(*d->large))) {
		builder_no_memory(b);
		return;
	}
	d->large = large;
	if (d->count == TF_DIMS_SMALL)
		memcpy(d->large, d->small, sizeof(d->small));
	d->large[d->count++] = size;
}

static shape_id intern(struct tf_dim_list *d, struct builder *b, int32_t rank)
{
	shape_id id = { 0 };

	if (b->status == OW_OK)
		id = builder_shape(b, d->large ? d->large : d->small, rank);
	mem_free(b->m->mem, d->large, d->cap * sizeof(*d->large));
	tf_dims_begin(d);
	return id;
}

shape_id tf_dims_end(struct tf_dim_list *d, struct builder *b)
{
	return d->count ? intern(d, b, (int32_t)d->count) : (shape_id){ 0 };
}

static int64_t dim_size(struct str message)
{
	struct pb dim = pb_over(message.ptr, message.len);
	struct pb_field f;
	int64_t size = 0; /* a zero is not written */

	while (pb_next(&dim, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			size = (int64_t)f.value;
	return size;
}

/* True when the rank is said to be unknown. */
static bool read_dims(struct tf_dim_list *d, struct builder *b, struct str message)
{
	struct pb shape = pb_over(message.ptr, message.len);
	bool unknown_rank = false;
	struct pb_field f;

	tf_dims_begin(d);
	while (pb_next(&shape, &f))
		if (f.tag == PB_TAG(2, PB_BYTES))
			tf_dims_push(d, b, dim_size(pb_str(&f)));
		else if (f.tag == PB_TAG(3, PB_VARINT))
			unknown_rank = f.value != 0;
	return unknown_rank;
}

shape_id tf_shape_static(struct builder *b, struct str message)
{
	struct tf_dim_list d;
	bool unknown = read_dims(&d, b, message);

	if (!d.count && !unknown)
		tf_dims_push(&d, b, 1);
	return tf_dims_end(&d, b);
}

shape_id tf_shape_real(struct builder *b, struct str message)
{
	struct tf_dim_list d;
	bool unknown = read_dims(&d, b, message);

	return intern(&d, b, !d.count && unknown ? -1 : (int32_t)d.count);
}

shape_id tf_shape_recall(struct tf_shape_memory *memory, struct builder *b, struct str message,
			 shape_id (*read)(struct builder *, struct str))
{
	size_t at;

	if (message.len > TF_SHAPE_BYTES)
		return read(b, message);
	at = (size_t)(str_hash(message) >> 40) & (TF_SHAPE_MEMORY - 1);
	if (memory->slots[at].len == message.len + 1 &&
	    memcmp(memory->slots[at].bytes, message.ptr, message.len) == 0)
		return memory->slots[at].id;
	memory->slots[at].len = (uint8_t)(message.len + 1);
	memcpy(memory->slots[at].bytes, message.ptr, message.len);
	memory->slots[at].id = read(b, message);
	return memory->slots[at].id;
}
