/*
 * ckpt_writer.h: writes TensorFlow checkpoints of both kinds for tests: bundles with several shards,
 * partitioned variables, strings, either byte order; and V1 tables with several slices. Made from the
 * description of the formats; shares nothing with the reader.
 */
#ifndef TESTS_CKPT_WRITER_H
#define TESTS_CKPT_WRITER_H

#include "table_writer.h"

#define CW_MAX 64

struct cw_extent {
	int64_t start, length; /* 0, -1: the whole dimension */
};

static inline void cw_write_file(const char *path, struct str content)
{
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(content.ptr, 1, content.len, file) != content.len || fclose(file) != 0)
		abort();
}

static inline void cw_shape(struct buf *out, unsigned field, const int64_t *dims, int rank)
{
	struct buf shape, dim;

	buf_init(&shape, out->mem);
	buf_init(&dim, out->mem);
	for (int i = 0; i < rank; i++) {
		if (dims[i])
			tw_pb_int(&dim, 1, dims[i]);
		tw_pb_message(&shape, 2, &dim);
	}
	tw_pb_message(out, field, &shape);
	buf_release(&shape);
	buf_release(&dim);
}

static inline void cw_slice(struct buf *out, unsigned field, const struct cw_extent *extents,
			    int rank)
{
	struct buf slice, extent;

	buf_init(&slice, out->mem);
	buf_init(&extent, out->mem);
	for (int i = 0; i < rank; i++) {
		if (extents[i].start)
			tw_pb_int(&extent, 1, extents[i].start);
		if (extents[i].length != -1)
			tw_pb_int(&extent, 2, extents[i].length);
		tw_pb_message(&slice, 1, &extent);
	}
	tw_pb_message(out, field, &slice);
	buf_release(&slice);
	buf_release(&extent);
}

static inline void cw_versions(struct buf *out, unsigned field, int producer, int min_consumer,
			       int bad_consumer)
{
	struct buf versions;

	buf_init(&versions, out->mem);
	if (producer)
		tw_pb_int(&versions, 1, producer);
	if (min_consumer)
		tw_pb_int(&versions, 2, min_consumer);
	if (bad_consumer)
		tw_pb_bytes(&versions, 3, str_make(&(char){ (char)bad_consumer }, 1));
	tw_pb_message(out, field, &versions);
	buf_release(&versions);
}

/* Writes a number in order-preserving form: L ones and a zero, then the number in the rest of L bytes; a negative
 * number is the complement of the code of its complement. */
static inline void cw_ordered_signed(struct buf *out, int64_t value)
{
	uint64_t bits = value < 0 ? ~(uint64_t)value : (uint64_t)value;
	unsigned char flip = value < 0 ? 0xff : 0, code[10] = { 0 };
	int len = 1;

	while (len < 10 && bits >= (uint64_t)1 << (7 * len - 1))
		len++;
	for (int i = len - 1, shift = 0; i >= 0 && shift < 64; i--, shift += 8)
		code[i] = (unsigned char)(bits >> shift);
	for (int i = 0; i < len; i++)
		code[i / 8] |= (unsigned char)(0x80 >> i % 8);
	for (int i = 0; i < len; i++)
		buf_add_char(out, (char)(code[i] ^ flip));
}

static inline void cw_slice_key(struct buf *out, const char *name, const struct cw_extent *extents,
				int rank)
{
	buf_add_char(out, 0);
	for (const char *c = name; *c; c++) {
		buf_add_char(out, *c);
		if (*c == '\xff')
			buf_add_char(out, 0);
	}
	buf_add_char(out, 0);
	buf_add_char(out, 1);
	if (rank)
		buf_add_char(out, 1);
	buf_add_char(out, (char)rank);
	for (int i = 0; i < rank; i++) {
		cw_ordered_signed(out, extents[i].start);
		cw_ordered_signed(out, extents[i].length);
	}
}

struct cw_pair {
	struct buf key, value;
};

static inline int cw_compare(const void *a, const void *b)
{
	const struct cw_pair *x = a, *y = b;

	return str_cmp(buf_str(&x->key), buf_str(&y->key));
}

static inline void cw_write_pairs(struct mem *mem, struct cw_pair *pairs, int count,
				  const char *path, size_t block_bytes, bool snappy)
{
	struct table_writer w;

	qsort(pairs, (size_t)count, sizeof(*pairs), cw_compare);
	table_writer_init(&w, mem, block_bytes, snappy);
	for (int i = 0; i < count; i++)
		table_writer_add(&w, buf_str(&pairs[i].key), buf_str(&pairs[i].value));
	table_writer_finish(&w);
	cw_write_file(path, buf_str(&w.out));
	table_writer_release(&w);
}

struct cw_bundle {
	struct mem *mem;
	struct cw_pair pairs[CW_MAX];
	int count, shards;
	bool big_endian;
	struct buf data[8];
};

static inline struct cw_pair *cw_new_pair(struct mem *mem, struct cw_pair *pairs, int *count)
{
	struct cw_pair *pair = &pairs[(*count)++];

	if (*count > CW_MAX)
		abort();
	buf_init(&pair->key, mem);
	buf_init(&pair->value, mem);
	return pair;
}

static inline void cw_bundle_init(struct cw_bundle *b, struct mem *mem, int shards, bool big_endian)
{
	struct cw_pair *header;

	*b = (struct cw_bundle){ .mem = mem, .shards = shards, .big_endian = big_endian };
	for (int i = 0; i < shards; i++)
		buf_init(&b->data[i], mem);
	header = cw_new_pair(mem, b->pairs, &b->count);
	tw_pb_int(&header->value, 1, shards);
	if (big_endian)
		tw_pb_int(&header->value, 2, 1);
	cw_versions(&header->value, 3, 1, 0, 0);
}

/* Appends bytes to a shard, unit by unit in the bundle's byte order; returns the CRC. */
static inline uint32_t cw_data(struct cw_bundle *b, int shard, struct str bytes, size_t unit)
{
	struct buf *data = &b->data[shard];
	size_t start = data->len;

	for (size_t i = 0; i < bytes.len; i++) {
		size_t within = i % unit;

		buf_add_char(data, bytes.ptr[b->big_endian ? i - within + unit - 1 - within : i]);
	}
	return tw_crc(0, data->ptr + start, bytes.len);
}

static inline void cw_entry(struct cw_pair *pair, int dtype, const int64_t *dims, int rank,
			    int shard, size_t offset, size_t size, uint32_t crc)
{
	tw_pb_int(&pair->value, 1, dtype);
	cw_shape(&pair->value, 2, dims, rank);
	if (shard)
		tw_pb_int(&pair->value, 3, shard);
	if (offset)
		tw_pb_int(&pair->value, 4, (int64_t)offset);
	if (size)
		tw_pb_int(&pair->value, 5, (int64_t)size);
	tw_pb_fixed32(&pair->value, 6, tw_masked_crc(crc));
}

static inline struct cw_pair *cw_bundle_add(struct cw_bundle *b, struct str key, int dtype,
					    const int64_t *dims, int rank, int shard, size_t unit,
					    struct str bytes)
{
	struct cw_pair *pair = cw_new_pair(b->mem, b->pairs, &b->count);
	size_t offset = b->data[shard].len;

	buf_add_str(&pair->key, key);
	cw_entry(pair, dtype, dims, rank, shard, offset, bytes.len, cw_data(b, shard, bytes, unit));
	return pair;
}

static inline void cw_bundle_strings(struct cw_bundle *b, const char *key, const int64_t *dims,
				     int rank, int shard, const char *const *texts, int count)
{
	struct cw_pair *pair = cw_new_pair(b->mem, b->pairs, &b->count);
	struct buf *data = &b->data[shard], fixed;
	size_t offset = data->len;
	uint32_t crc;

	buf_init(&fixed, b->mem);
	for (int i = 0; i < count; i++) {
		uint32_t len = (uint32_t)strlen(texts[i]);

		tw_varint(data, len);
		tw_u32(&fixed, b->big_endian ? __builtin_bswap32(len) : len);
	}
	crc = tw_masked_crc(tw_crc(0, fixed.ptr, fixed.len));
	if (b->big_endian)
		crc = __builtin_bswap32(crc);
	tw_u32(&fixed, crc);
	tw_u32(data, crc);
	for (int i = 0; i < count; i++) {
		buf_puts(&fixed, texts[i]);
		buf_puts(data, texts[i]);
	}
	buf_puts(&pair->key, key);
	cw_entry(pair, 7, dims, rank, shard, offset, data->len - offset,
		 tw_crc(0, fixed.ptr, fixed.len));
	buf_release(&fixed);
}

/* Adds a partitioned variable of floats; slice i goes to shard i % shards. */
static inline void cw_bundle_sliced(struct cw_bundle *b, const char *name, const int64_t *dims,
				    int rank, const float *whole, const struct cw_extent *slices,
				    int slice_count)
{
	struct cw_pair *full = cw_new_pair(b->mem, b->pairs, &b->count);

	buf_puts(&full->key, name);
	tw_pb_int(&full->value, 1, 1);
	cw_shape(&full->value, 2, dims, rank);
	for (int s = 0; s < slice_count; s++) {
		const struct cw_extent *extents = slices + s * rank;
		int64_t part_dims[8], elements = 1;
		struct buf part, key;

		cw_slice(&full->value, 7, extents, rank);
		for (int i = 0; i < rank; i++) {
			part_dims[i] = extents[i].length == -1 ? dims[i] : extents[i].length;
			elements *= part_dims[i];
		}
		buf_init(&part, b->mem);
		buf_init(&key, b->mem);
		for (int64_t e = 0; e < elements; e++) {
			int64_t rest = e, at = 0, stride = 1;

			for (int i = rank - 1; i >= 0; i--) {
				at += (rest % part_dims[i] + extents[i].start) * stride;
				rest /= part_dims[i];
				stride *= dims[i];
			}
			buf_add(&part, &whole[at], sizeof(float));
		}
		cw_slice_key(&key, name, extents, rank);
		cw_bundle_add(b, buf_str(&key), 1, part_dims, rank, s % b->shards, 4,
			      buf_str(&part));
		buf_release(&part);
		buf_release(&key);
	}
}

static inline void cw_bundle_write(struct cw_bundle *b, const char *prefix, size_t block_bytes,
				   bool snappy)
{
	char path[512];

	for (int i = 0; i < b->shards; i++) {
		snprintf(path, sizeof(path), "%s.data-%05d-of-%05d", prefix, i, b->shards);
		cw_write_file(path, buf_str(&b->data[i]));
	}
	snprintf(path, sizeof(path), "%s.index", prefix);
	cw_write_pairs(b->mem, b->pairs, b->count, path, block_bytes, snappy);
}

static inline void cw_bundle_release(struct cw_bundle *b)
{
	for (int i = 0; i < b->count; i++) {
		buf_release(&b->pairs[i].key);
		buf_release(&b->pairs[i].value);
	}
	for (int i = 0; i < b->shards; i++)
		buf_release(&b->data[i]);
}

struct cw_saved {
	struct mem *mem;
	struct cw_pair pairs[CW_MAX];
	int count;
	struct buf meta; /* the encoded SavedTensorSliceMeta */
};

static inline void cw_saved_init(struct cw_saved *s, struct mem *mem)
{
	*s = (struct cw_saved){ .mem = mem };
	buf_init(&s->meta, mem);
}

/* Adds a variable and its slices to the meta data. */
static inline void cw_saved_meta(struct cw_saved *s, const char *name, int dtype,
				 const int64_t *dims, int rank, const struct cw_extent *slices,
				 int slice_count)
{
	struct buf tensor;

	buf_init(&tensor, s->mem);
	tw_pb_bytes(&tensor, 1, str_from(name));
	cw_shape(&tensor, 2, dims, rank);
	tw_pb_int(&tensor, 3, dtype);
	for (int i = 0; i < slice_count; i++)
		cw_slice(&tensor, 4, slices + i * rank, rank);
	tw_pb_message(&s->meta, 1, &tensor);
	buf_release(&tensor);
}

/* Adds the value of a slice: `values` is a TensorProto that has only the typed field. */
static inline void cw_saved_value(struct cw_saved *s, const char *name,
				  const struct cw_extent *extents, int rank, struct buf *values)
{
	struct cw_pair *pair = cw_new_pair(s->mem, s->pairs, &s->count);
	struct buf saved;

	buf_init(&saved, s->mem);
	cw_slice_key(&pair->key, name, extents, rank);
	tw_pb_bytes(&saved, 1, str_from(name));
	cw_slice(&saved, 2, extents, rank);
	tw_pb_message(&saved, 3, values);
	tw_pb_message(&pair->value, 2, &saved);
	buf_release(&saved);
}

static inline void cw_saved_write(struct cw_saved *s, const char *path, size_t block_bytes,
				  bool snappy)
{
	struct cw_pair *head = cw_new_pair(s->mem, s->pairs, &s->count);

	cw_versions(&s->meta, 2, 1, 0, 0);
	tw_pb_message(&head->value, 1, &s->meta);
	cw_write_pairs(s->mem, s->pairs, s->count, path, block_bytes, snappy);
}

static inline void cw_saved_release(struct cw_saved *s)
{
	for (int i = 0; i < s->count; i++) {
		buf_release(&s->pairs[i].key);
		buf_release(&s->pairs[i].value);
	}
	buf_release(&s->meta);
}

#endif
