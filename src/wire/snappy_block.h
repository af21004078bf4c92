/*
 * snappy_block.h: unpacks the raw block form of snappy, in which old TensorFlow checkpoints compress
 * the blocks of their tables. Bounded on both sides, so hostile bytes end in `false`. It does not
 * pack, and does not know snappy's framed stream form.
 */
#ifndef WIRE_SNAPPY_BLOCK_H
#define WIRE_SNAPPY_BLOCK_H

#include "base/str.h"

/* The unpacked size that the block states; false when it states none, or one that no block of this
 * length can have (so it is safe to allocate). */
bool snappy_block_length(struct str packed, size_t *len) OW_MUST_CHECK;

/* Unpacks into exactly `len` bytes; false when the block is damaged or has another size. */
bool snappy_block_unpack(struct str packed, void *to, size_t len) OW_MUST_CHECK;

#endif
