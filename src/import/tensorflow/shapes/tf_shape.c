/* tf_shape.c: shapes of tensors (tf_shape.h): for inference, and from the messages that importers read. */
#include "import/tensorflow/shapes/tf_shape.h"
#include "base/vec.h"

struct tf_shape tf_shape_of_rank(int64_t rank)
{
	struct tf_shape s = tf_shape_scalar();

	if (rank < 0 || rank > TF_RANK_MAX)
		return tf_shape_unknown();
	while (s.rank < rank)
		s.dim[s.rank++] = TF_UNKNOWN;
	return s;
}

void tf_shape_push(struct tf_shape *s, int64_t size)
{
	if (s->rank == TF_UNKNOWN)
		return;
	if (s->rank == TF_RANK_MAX) {
		s->rank = TF_UNKNOWN;
		return;
	}
	s->dim[s->rank++] = size < 0 ? TF_UNKNOWN : size;
}

bool tf_shape_full(const struct tf_shape *s)
{
	for (int32_t i = 0; i < s->rank; i++)
		if (s->dim[i] < 0)
			return false;
	return s->rank >= 0;
}

bool tf_shape_elements(const struct tf_shape *s, int64_t *count)
{
	bool fits = true;
	int64_t n = 1;

	if (!tf_shape_full(s))
		return false;
	for (int32_t i = 0; i < s->rank; i++) {
		if (s->dim[i] == 0) {
			*count = 0;
			return true;
		}
		fits &= !__builtin_mul_overflow(n, s->dim[i], &n);
	}
	*count = n;
	return fits;
}

bool tf_shape_merge(struct tf_shape *into, const struct tf_shape *from)
{
	if (from->rank == TF_UNKNOWN)
		return true;
	if (into->rank == TF_UNKNOWN) {
		*into = *from;
		return true;
	}
	if (into->rank != from->rank)
		return false;
	for (int32_t i = 0; i < into->rank; i++)
		if (into->dim[i] >= 0 && from->dim[i] >= 0 && into->dim[i] != from->dim[i])
			return false;
	for (int32_t i = 0; i < into->rank; i++)
		if (into->dim[i] < 0)
			into->dim[i] = from->dim[i];
	return true;
}

void tf_shape_weaken(struct tf_shape *into, const struct tf_shape *from)
{
	if (into->rank != from->rank) {
		into->rank = TF_UNKNOWN;
		return;
	}
	for (int32_t i = 0; i < into->rank; i++)
		if (into->dim[i] != from->dim[i])
			into->dim[i] = TF_UNKNOWN;
}

/* One dimension of a broadcast; -2 when the two do not fit. A size of 1 takes the other size; of an unknown size and
 * one above 1, the result is the latter. */
static int64_t broadcast_dim(int64_t a, int64_t b)
{
	if (a == b || b == 1)
		return a;
	if (a == 1)
		return b;
	if (a < 0)
		return b;
	return b < 0 ? a : -2;
}

struct tf_shape tf_shape_broadcast(const struct tf_shape *a, const struct tf_shape *b)
{
	struct tf_shape out = tf_shape_of_rank(MAX(a->rank, b->rank));

	if (a->rank == TF_UNKNOWN || b->rank == TF_UNKNOWN)
		return tf_shape_unknown();
	for (int32_t i = 1; i <= out.rank; i++) {
		int64_t left = i <= a->rank ? a->dim[a->rank - i] : 1;
		int64_t right = i <= b->rank ? b->dim[b->rank - i] : 1;
		int64_t size = broadcast_dim(left, right);

		if (size < TF_UNKNOWN)
			return tf_shape_unknown();
		out.dim[out.rank - i] = size;
	}
	return out;
}

static int64_t dim_from_proto(struct str message)
{
	struct pb r = pb_over(message.ptr, message.len);
	struct pb_field f;
	int64_t size = 0; /* a size of zero is not written */

	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			size = (int64_t)f.value;
	return size;
}

struct tf_shape tf_shape_from_proto(struct str message)
{
	struct pb r = pb_over(message.ptr, message.len);
	struct tf_shape s = tf_shape_scalar();
	bool unknown = false;
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(2, PB_BYTES))
			tf_shape_push(&s, dim_from_proto(pb_str(&f)));
		else if (f.tag == PB_TAG(3, PB_VARINT))
			unknown = f.value != 0;
	}
	return unknown || r.problem ? tf_shape_unknown() : s;
}

struct tf_shape tf_shape_load(const struct model *m, shape_id id)
{
	struct tf_shape s = tf_shape_scalar();
	const int64_t *dims;
	int32_t rank;

	if (!id.v)
		return tf_shape_unknown();
	dims = model_dims(m, id, &rank);
	if (rank < 0 || rank > TF_RANK_MAX)
		return tf_shape_unknown();
	for (int32_t i = 0; i < rank; i++)
		tf_shape_push(&s, dims[i]);
	return s;
}

shape_id tf_shape_store(struct builder *b, const struct tf_shape *s)
{
	if (s->rank == TF_UNKNOWN)
		return (shape_id){ 0 };
	return builder_shape(b, s->dim, s->rank);
}

bool tf_shape_id_full(const struct model *m, shape_id id)
{
	int32_t rank;
	const int64_t *dims = model_dims(m, id, &rank);

	if (!id.v || rank < 0 || rank > TF_RANK_MAX)
		return false;
	for (int32_t i = 0; i < rank; i++)
		if (dims[i] < 0)
			return false;
	return true;
}

const char *tf_shape_text(const struct tf_shape *s, char *text, size_t size)
{
	size_t len = 0;

	if (s->rank <= 0) {
		snprintf(text, size, "%s", s->rank ? "unknown" : "scalar");
		return text;
	}
	for (int32_t i = 0; i < s->rank && len + 24 < size; i++) {
		if (i)
			text[len++] = 'x';
		if (s->dim[i] < 0)
			text[len++] = '?';
		else
			len += (size_t)snprintf(text + len, size - len, "%" PRId64, s->dim[i]);
	}
	text[len] = '\0';
	return text;
}

void tf_dims_push_large(struct tf_dim_list *d, struct builder *b, int64_t size)
{
	if (d->count == INT32_MAX || !vec_reserve(b->m->mem, d->large, d->cap, d->count + 1)) {
		builder_no_memory(b);
		return;
	}
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
	int64_t size = 0; /* a size of zero is not written */

	while (pb_next(&dim, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			size = (int64_t)f.value;
	return size;
}

/* Reads dimensions; true when the rank is marked as unknown. */
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
