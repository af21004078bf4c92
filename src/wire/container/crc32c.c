/*
 * crc32c.c: the checksum CRC-32C, with the processor's instruction where it has one. The tables are constants: a CRC
 * is linear, so each of the 256 entries of a table is the exclusive-or of the entries of its bits, and 8 numbers per
 * table suffice.
 */
#include "wire/container/crc32c.h"

#define BIT(i, n, value) (((i) >> (n)) & 1 ? (value) : 0u)
#define ENTRY(i, a, b, c, d, e, f, g, h)                                                           \
	(BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^ BIT(i, 5, f) ^ \
	 BIT(i, 6, g) ^ BIT(i, 7, h))
#define ROW4(i, ...)                                                                               \
	ENTRY((i), __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__),         \
		ENTRY((i) + 3, __VA_ARGS__)
#define ROW16(i, ...)                                                                              \
	ROW4(i, __VA_ARGS__), ROW4((i) + 4, __VA_ARGS__), ROW4((i) + 8, __VA_ARGS__),              \
		ROW4((i) + 12, __VA_ARGS__)
#define ROW64(i, ...)                                                                              \
	ROW16(i, __VA_ARGS__), ROW16((i) + 16, __VA_ARGS__), ROW16((i) + 32, __VA_ARGS__),         \
		ROW16((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
	{                                                                                          \
		ROW64(0, __VA_ARGS__), ROW64(64, __VA_ARGS__), ROW64(128, __VA_ARGS__),            \
			ROW64(192, __VA_ARGS__)                                                    \
	}

/* tables[k][b]: the CRC of byte b followed by k zero bytes, for the reflected polynomial 0x82f63b78. */
static const uint32_t tables[8][256] = {
	TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
	      0x82f63b78),
	TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
	      0xfbc3faf9),
	TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
	      0x8b277743),
	TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
	      0x52a0c93f),
	TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
	      0x6ea2d55c),
	TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
	      0x1c08b7d6),
	TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
	      0xf56e0ef4),
	TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
	      0x34019664),
};

static uint32_t load_le32(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

uint32_t crc32c_extend_portable(uint32_t crc, const void *data, size_t len)
{
	const unsigned char *at = data;

	crc = ~crc;
	for (; len >= 8; at += 8, len -= 8) {
		uint32_t low = load_le32(at) ^ crc;

		crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^
		      tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^ tables[3][at[4]] ^
		      tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
	}
	for (; len; len--)
		crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 0xff];
	return ~crc;
}

#if defined(__x86_64__)

#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t extend_sse42(uint32_t crc, const void *data,
							       size_t len)
{
	const unsigned char *at = data;
	uint64_t wide = (uint32_t)~crc;

	for (; len >= 8; at += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		wide = _mm_crc32_u64(wide, word);
	}
	crc = (uint32_t)wide;
	for (; len; len--)
		crc = _mm_crc32_u8(crc, *at++);
	return ~crc;
}

uint32_t crc32c_extend(uint32_t crc, const void *data, size_t len)
{
	if (OW_LIKELY(__builtin_cpu_supports("sse4.2")))
		return extend_sse42(crc, data, len);
	return crc32c_extend_portable(crc, data, len);
}

#else

uint32_t crc32c_extend(uint32_t crc, const void *data, size_t len)
{
	return crc32c_extend_portable(crc, data, len);
}

#endif
