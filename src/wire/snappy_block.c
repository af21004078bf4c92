/*
 * snappy_block.c: see snappy_block.h. A block is the unpacked length as a varint, then elements: a
 * tag byte whose low two bits tell literal (0) or copy with a 1, 2 or 4 byte offset.
 */
#include "wire/snappy_block.h"

/* The densest element is a copy: 64 bytes out of 3. */
#define MAX_RATIO 22

struct cursor {
	const unsigned char *at, *end;
};

static bool read_length(struct cursor *in, uint32_t *len)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		if (in->at == in->end)
			return false;
		value |= (uint64_t)(*in->at & 0x7f) << shift;
		if (!(*in->at++ & 0x80)) {
			*len = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

bool snappy_block_length(struct str packed, size_t *len)
{
	struct cursor in = { (const unsigned char *)packed.ptr,
			     (const unsigned char *)packed.ptr + packed.len };
	uint32_t stated;

	if (!read_length(&in, &stated) || stated / MAX_RATIO > packed.len)
		return false;
	*len = stated;
	return true;
}

/* A little-endian number of 1 to 4 bytes. */
static bool read_number(struct cursor *in, unsigned bytes, uint32_t *value)
{
	*value = 0;
	if ((size_t)(in->end - in->at) < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		*value |= (uint32_t)*in->at++ << (8 * i);
	return true;
}

static bool read_literal(struct cursor *in, unsigned tag, unsigned char *to, size_t room,
			 size_t *len)
{
	uint32_t size = tag >> 2;

	if (size >= 60 && !read_number(in, size - 59, &size))
		return false;
	*len = (size_t)size + 1;
	if (*len > room || *len > (size_t)(in->end - in->at))
		return false;
	memcpy(to, in->at, *len);
	in->at += *len;
	return true;
}

/* A copy may overlap what it writes: "a" and a copy of length 5 at offset 1 make "aaaaaa". */
static bool read_copy(struct cursor *in, unsigned tag, unsigned char *to, size_t done, size_t room,
		      size_t *len)
{
	unsigned kind = tag & 3;
	uint32_t offset;

	if (!read_number(in, kind == 3 ? 4 : kind, &offset))
		return false;
	*len = kind == 1 ? (tag >> 2 & 7) + 4 : (tag >> 2) + 1;
	if (kind == 1)
		offset |= (tag >> 5) << 8;
	if (offset == 0 || offset > done || *len > room)
		return false;
	if (offset >= *len) {
		memcpy(to, to - offset, *len);
		return true;
	}
	for (size_t i = 0; i < *len; i++)
		to[i] = *(to + i - offset);
	return true;
}

bool snappy_block_unpack(struct str packed, void *to, size_t len)
{
	struct cursor in = { (const unsigned char *)packed.ptr,
			     (const unsigned char *)packed.ptr + packed.len };
	unsigned char *out = to;
	size_t done = 0, step;
	uint32_t stated;

	if (!read_length(&in, &stated) || stated != len)
		return false;
	while (in.at < in.end) {
		unsigned tag = *in.at++;
		bool ok = tag & 3 ? read_copy(&in, tag, out + done, done, len - done, &step)
				  : read_literal(&in, tag, out + done, len - done, &step);

		if (!ok)
			return false;
		done += step;
	}
	return done == len;
}
