/*
 * ordered_code.h: the order-preserving encoding in which TensorFlow checkpoints name a slice of a
 * variable: a number, a string, or a signed number becomes bytes that sort as the values do.
 * Writing only: readers make the key they look for.
 */
#ifndef WIRE_ORDERED_CODE_H
#define WIRE_ORDERED_CODE_H

#include "base/buf.h"

void ordered_code_number(struct buf *out, uint64_t value);
void ordered_code_string(struct buf *out, struct str value);
void ordered_code_signed(struct buf *out, int64_t value);

#endif
