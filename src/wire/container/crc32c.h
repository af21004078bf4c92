/*
 * crc32c.h: CRC-32C (Castagnoli) and the masked form in which TensorFlow stores it: in table blocks, in bundle entries
 * and in the frames of event files. It uses the processor's instruction if there is one, with the same results.
 */
#ifndef WIRE_CRC32C_H
#define WIRE_CRC32C_H

#include "base/base.h"

/* Extends `crc` by `len` more bytes; the CRC of no bytes is 0. */
uint32_t crc32c_extend(uint32_t crc, const void *data, size_t len);

/* Computes the same value with tables only; public for a test that compares both ways. */
uint32_t crc32c_extend_portable(uint32_t crc, const void *data, size_t len);

static inline uint32_t crc32c(const void *data, size_t len)
{
	return crc32c_extend(0, data, len);
}

/* Masks a stored CRC by rotating and adding, so that the CRC of data that contains CRCs remains
 * a good check. */
#define CRC32C_MASK_DELTA 0xa282ead8u

static inline uint32_t crc32c_mask(uint32_t crc)
{
	return ((crc >> 15) | (crc << 17)) + CRC32C_MASK_DELTA;
}

static inline uint32_t crc32c_unmask(uint32_t masked)
{
	uint32_t rotated = masked - CRC32C_MASK_DELTA;

	return (rotated >> 17) | (rotated << 15);
}

#endif
