/* ordered_code.c: see ordered_code.h. */
#include "wire/ordered_code.h"

/* A count of bytes, then the number in as many, big-endian. */
void ordered_code_number(struct buf *out, uint64_t value)
{
	unsigned bytes = value ? (unsigned)(71 - __builtin_clzll(value)) / 8 : 0;

	buf_add_char(out, (char)bytes);
	while (bytes--)
		buf_add_char(out, (char)(value >> (8 * bytes) & 0xff));
}

/* 00 and FF are escaped, so that the end mark sorts before every continuation. */
void ordered_code_string(struct buf *out, struct str value)
{
	for (size_t i = 0; i < value.len; i++) {
		char c = value.ptr[i];

		buf_add_char(out, c);
		if (c == '\0')
			buf_add_char(out, '\xff');
		else if (c == '\xff')
			buf_add_char(out, '\0');
	}
	buf_add(out, "\0\1", 2);
}

/* The length is told by leading one bits (zero bits of a negative number), mixed into the first two
 * bytes of the number itself. */
void ordered_code_signed(struct buf *out, int64_t value)
{
	static const unsigned char headers[11][2] = {
		{ 0, 0 },    { 0x80, 0 }, { 0xc0, 0 }, { 0xe0, 0 },    { 0xf0, 0 },    { 0xf8, 0 },
		{ 0xfc, 0 }, { 0xfe, 0 }, { 0xff, 0 }, { 0xff, 0x80 }, { 0xff, 0xc0 },
	};
	uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
	unsigned char bytes[10];
	unsigned len = 1;

	while (len < 10 && magnitude >> (7 * len - 1))
		len++;
	for (unsigned i = 0; i < len; i++) {
		unsigned shift = 8 * (len - 1 - i);

		bytes[i] = (unsigned char)(shift < 64  ? (uint64_t)value >> shift
					   : value < 0 ? 0xff
						       : 0);
	}
	bytes[0] ^= headers[len][0];
	if (len > 1)
		bytes[1] ^= headers[len][1];
	buf_add(out, bytes, len);
}
