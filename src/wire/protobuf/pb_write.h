/*
 * pb_write.h: appends protobuf fields to a struct buf. Used by the pprof and profile writers, the
 * text format converter and tests. A failure to get memory is remembered in the buf.
 *
 *	size_t node = pb_begin(&out, 1);
 *	pb_put_str(&out, 1, name);
 *	pb_put_varint(&out, 2, (uint64_t)count);
 *	pb_end(&out, node);
 *
 * Every call writes its field, also for zero: whether a default is left out is the caller's choice.
 */
#ifndef WIRE_PB_WRITE_H
#define WIRE_PB_WRITE_H

#include "base/buf.h"
#include "wire/protobuf/pb.h"

/* Writes a varint at `to` (room for PB_VARINT_BYTES) and returns its length. */
OW_ALWAYS_INLINE size_t pb_encode_varint(void *to, uint64_t value)
{
	uint8_t *at = to;
	size_t len = 0;

	while (value >= 0x80) {
		at[len++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	at[len++] = (uint8_t)value;
	return len;
}

/* Returns the length of the varint of a value. */
static inline size_t pb_varint_size(uint64_t value)
{
	return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

/* Adds a varint without a tag: an element of a packed field. */
static inline void pb_add_varint(struct buf *out, uint64_t value)
{
	if (buf_reserve(out, PB_VARINT_BYTES))
		out->len += pb_encode_varint(out->ptr + out->len, value);
}

static inline void pb_add_fixed32(struct buf *out, uint32_t bits)
{
	uint8_t bytes[4] = { (uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
			     (uint8_t)(bits >> 24) };

	buf_add(out, bytes, sizeof(bytes));
}

static inline void pb_add_fixed64(struct buf *out, uint64_t bits)
{
	pb_add_fixed32(out, (uint32_t)bits);
	pb_add_fixed32(out, (uint32_t)(bits >> 32));
}

static inline void pb_put_varint(struct buf *out, uint32_t number, uint64_t value)
{
	if (!buf_reserve(out, 2 * PB_VARINT_BYTES))
		return;
	out->len += pb_encode_varint(out->ptr + out->len, PB_TAG(number, PB_VARINT));
	out->len += pb_encode_varint(out->ptr + out->len, value);
}

/* Adds a signed integer or enum; negative numbers take ten bytes. */
static inline void pb_put_int(struct buf *out, uint32_t number, int64_t value)
{
	pb_put_varint(out, number, (uint64_t)value);
}

static inline void pb_put_fixed32(struct buf *out, uint32_t number, uint32_t bits)
{
	pb_add_varint(out, PB_TAG(number, PB_FIXED32));
	pb_add_fixed32(out, bits);
}

static inline void pb_put_fixed64(struct buf *out, uint32_t number, uint64_t bits)
{
	pb_add_varint(out, PB_TAG(number, PB_FIXED64));
	pb_add_fixed64(out, bits);
}

static inline void pb_put_float(struct buf *out, uint32_t number, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	pb_put_fixed32(out, number, bits);
}

static inline void pb_put_double(struct buf *out, uint32_t number, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	pb_put_fixed64(out, number, bits);
}

static inline void pb_put_bytes(struct buf *out, uint32_t number, const void *bytes, size_t len)
{
	if (!buf_reserve(out, 2 * PB_VARINT_BYTES))
		return;
	out->len += pb_encode_varint(out->ptr + out->len, PB_TAG(number, PB_BYTES));
	out->len += pb_encode_varint(out->ptr + out->len, len);
	buf_add(out, bytes, len);
}

static inline void pb_put_str(struct buf *out, uint32_t number, struct str s)
{
	pb_put_bytes(out, number, s.ptr, s.len);
}

/* Opens a sub-message or a packed field; its content follows until pb_end with the mark. */
static inline size_t pb_begin(struct buf *out, uint32_t number)
{
	pb_add_varint(out, PB_TAG(number, PB_BYTES));
	buf_add_char(out, 0); /* room for the length, which nearly always fits one byte */
	return out->len;
}

/* Writes the length before the content, which is moved if the length needs more than one byte. */
static inline void pb_end(struct buf *out, size_t mark)
{
	size_t len = out->len - mark, size;
	uint8_t bytes[PB_VARINT_BYTES];

	if (out->failed)
		return;
	size = pb_encode_varint(bytes, len);
	if (size > 1) {
		if (!buf_reserve(out, size - 1))
			return;
		memmove(out->ptr + mark + size - 1, out->ptr + mark, len);
		out->len += size - 1;
	}
	memcpy(out->ptr + mark - 1, bytes, size);
}

#endif
