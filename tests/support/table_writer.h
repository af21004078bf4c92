/*
 * table_writer.h: writes sorted tables, snappy blocks and protobuf fields for tests. Written from the description of
 * the formats alone, without code of the readers, so that misreadings are detected. Memory comes from struct buf; tests
 * are expected to have enough of it.
 */
#ifndef TESTS_TABLE_WRITER_H
#define TESTS_TABLE_WRITER_H

#include "base/buf.h"

static inline uint32_t tw_crc(uint32_t crc, const void *data, size_t len)
{
	const unsigned char *at = data;

	for (crc = ~crc; at && len; len--) {
		crc ^= *at++;
		for (int i = 0; i < 8; i++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
	}
	return ~crc;
}

static inline uint32_t tw_masked_crc(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static inline void tw_u32(struct buf *out, uint32_t value)
{
	for (int i = 0; i < 4; i++, value >>= 8)
		buf_add_char(out, (char)(value & 0xff));
}

static inline void tw_u64(struct buf *out, uint64_t value)
{
	tw_u32(out, (uint32_t)value);
	tw_u32(out, (uint32_t)(value >> 32));
}

static inline void tw_varint(struct buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_add_char(out, (char)(value | 0x80));
	buf_add_char(out, (char)value);
}

static inline void tw_pb_int(struct buf *out, unsigned field, int64_t value)
{
	tw_varint(out, field << 3);
	tw_varint(out, (uint64_t)value);
}

static inline void tw_pb_bytes(struct buf *out, unsigned field, struct str value)
{
	tw_varint(out, field << 3 | 2);
	tw_varint(out, value.len);
	buf_add_str(out, value);
}

static inline void tw_pb_fixed32(struct buf *out, unsigned field, uint32_t value)
{
	tw_varint(out, field << 3 | 5);
	tw_u32(out, value);
}

static inline void tw_pb_double(struct buf *out, unsigned field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	tw_varint(out, field << 3 | 1);
	tw_u64(out, bits);
}

/* Moves `sub` into a field of `out`, and empties it. */
static inline void tw_pb_message(struct buf *out, unsigned field, struct buf *sub)
{
	tw_pb_bytes(out, field, buf_str(sub));
	buf_clear(sub);
}

static inline void tw_snappy_literal(struct buf *out, struct str s)
{
	size_t n = s.len - 1;

	if (!s.len)
		return;
	if (n < 60) {
		buf_add_char(out, (char)(n << 2));
	} else if (n < 256) {
		buf_add_char(out, (char)(60 << 2));
		buf_add_char(out, (char)n);
	} else {
		buf_add_char(out, (char)(62 << 2));
		for (int i = 0; i < 3; i++)
			buf_add_char(out, (char)(n >> 8 * i));
	}
	buf_add_str(out, s);
}

/* Writes a copy; `form` chooses among the three encodings when they fit. */
static inline void tw_snappy_copy(struct buf *out, size_t offset, size_t len, unsigned form)
{
	if (form % 3 == 0 && len >= 4 && len <= 11 && offset < 2048) {
		buf_add_char(out, (char)(1 | (len - 4) << 2 | (offset >> 8) << 5));
		buf_add_char(out, (char)offset);
	} else if (form % 3 != 2 && offset < 65536) {
		buf_add_char(out, (char)(2 | (len - 1) << 2));
		buf_add_char(out, (char)offset);
		buf_add_char(out, (char)(offset >> 8));
	} else {
		buf_add_char(out, (char)(3 | (len - 1) << 2));
		tw_u32(out, (uint32_t)offset);
	}
}

/* Compresses with copies wherever the last 4000 bytes have a match of 4 or more, overlapping ones too. */
static inline void tw_snappy(struct buf *out, struct str in)
{
	size_t literal = 0, at = 0;
	unsigned form = 0;

	tw_varint(out, in.len);
	while (at < in.len) {
		size_t best = 0, best_offset = 0;

		for (size_t offset = 1; offset <= MIN(at, (size_t)4000); offset++) {
			size_t len = 0;

			while (len < 64 && at + len < in.len &&
			       in.ptr[at + len - offset] == in.ptr[at + len])
				len++;
			if (len > best) {
				best = len;
				best_offset = offset;
			}
		}
		if (best < 4) {
			at++;
			continue;
		}
		tw_snappy_literal(out, str_make(in.ptr + literal, at - literal));
		tw_snappy_copy(out, best_offset, best, form++);
		at += best;
		literal = at;
	}
	tw_snappy_literal(out, str_make(in.ptr + literal, at - literal));
}

struct tw_block {
	struct buf bytes, restarts, last_key;
	unsigned count, interval;
};

struct table_writer {
	struct buf out;
	struct tw_block data, index;
	size_t block_bytes; /* a block is closed when it has this many bytes */
	bool snappy;
	/* range of each block without its CRC; the last two are the metaindex and the index */
	struct {
		size_t from, to;
	} blocks[1024];
	size_t block_count;
};

static inline void tw_block_init(struct tw_block *block, struct mem *mem, unsigned interval)
{
	buf_init(&block->bytes, mem);
	buf_init(&block->restarts, mem);
	buf_init(&block->last_key, mem);
	block->count = 0;
	block->interval = interval;
}

static inline void tw_block_release(struct tw_block *block)
{
	buf_release(&block->bytes);
	buf_release(&block->restarts);
	buf_release(&block->last_key);
}

static inline void tw_block_add(struct tw_block *block, struct str key, struct str value)
{
	struct str last = buf_str(&block->last_key);
	size_t shared = 0;

	if (block->count++ % block->interval == 0)
		tw_u32(&block->restarts, (uint32_t)block->bytes.len);
	else
		while (shared < last.len && shared < key.len && last.ptr[shared] == key.ptr[shared])
			shared++;
	tw_varint(&block->bytes, shared);
	tw_varint(&block->bytes, key.len - shared);
	tw_varint(&block->bytes, value.len);
	buf_add(&block->bytes, key.ptr + shared, key.len - shared);
	buf_add_str(&block->bytes, value);
	buf_clear(&block->last_key);
	buf_add_str(&block->last_key, key);
}

/* Writes the block with its trailer and empties it; the handle is added to `handle`. */
static inline void tw_block_write(struct table_writer *w, struct tw_block *block,
				  struct buf *handle)
{
	size_t offset = w->out.len, size;
	struct buf packed;

	if (!block->count)
		tw_u32(&block->restarts, 0);
	buf_add_str(&block->bytes, buf_str(&block->restarts));
	tw_u32(&block->bytes, (uint32_t)(block->restarts.len / 4));
	buf_init(&packed, block->bytes.mem);
	if (w->snappy)
		tw_snappy(&packed, buf_str(&block->bytes));
	else
		buf_add_str(&packed, buf_str(&block->bytes));
	size = packed.len;
	buf_add_char(&packed, w->snappy ? 1 : 0);
	buf_add_str(&w->out, buf_str(&packed));
	if (w->block_count == ARRAY_COUNT(w->blocks))
		abort();
	w->blocks[w->block_count].from = offset;
	w->blocks[w->block_count++].to = w->out.len;
	tw_u32(&w->out, tw_masked_crc(tw_crc(0, packed.ptr, packed.len)));
	buf_release(&packed);
	tw_varint(handle, offset);
	tw_varint(handle, size);
	buf_clear(&block->bytes);
	buf_clear(&block->restarts);
	block->count = 0;
}

static inline void table_writer_init(struct table_writer *w, struct mem *mem, size_t block_bytes,
				     bool snappy)
{
	buf_init(&w->out, mem);
	tw_block_init(&w->data, mem, 16);
	tw_block_init(&w->index, mem, 1);
	w->block_bytes = block_bytes;
	w->snappy = snappy;
	w->block_count = 0;
}

static inline void tw_flush(struct table_writer *w)
{
	struct buf handle;

	if (!w->data.count)
		return;
	buf_init(&handle, w->out.mem);
	tw_block_write(w, &w->data, &handle);
	tw_block_add(&w->index, buf_str(&w->data.last_key), buf_str(&handle));
	buf_release(&handle);
}

/* Adds a pair; keys must ascend. */
static inline void table_writer_add(struct table_writer *w, struct str key, struct str value)
{
	tw_block_add(&w->data, key, value);
	if (w->data.bytes.len >= w->block_bytes)
		tw_flush(w);
}

/* Finishes the file, which is then in w->out. */
static inline void table_writer_finish(struct table_writer *w)
{
	struct buf footer;
	struct tw_block meta;

	tw_flush(w);
	buf_init(&footer, w->out.mem);
	tw_block_init(&meta, w->out.mem, 16);
	tw_block_write(w, &meta, &footer);
	tw_block_write(w, &w->index, &footer);
	tw_block_release(&meta);
	buf_add_repeat(&footer, 0, 40 - footer.len);
	buf_add(&footer, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
	buf_add_str(&w->out, buf_str(&footer));
	buf_release(&footer);
}

/* Updates the CRC of a changed block. */
static inline void table_writer_reseal(struct table_writer *w, size_t block)
{
	size_t from = w->blocks[block].from, to = w->blocks[block].to;
	uint32_t crc = tw_masked_crc(tw_crc(0, w->out.ptr + from, to - from));

	for (size_t i = 0; i < 4; i++, crc >>= 8)
		w->out.ptr[to + i] = (char)(crc & 0xff);
}

static inline void table_writer_release(struct table_writer *w)
{
	buf_release(&w->out);
	tw_block_release(&w->data);
	tw_block_release(&w->index);
}

#endif
