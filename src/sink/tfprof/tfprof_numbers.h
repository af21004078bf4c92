/*
 * tfprof_numbers.h: tfprof's ways to print a number: 1.20k, 999us, 1000.00ms, 30.46KB. Byte for byte
 * what printf makes of the original's expressions, but without printf in all but the rare cases where
 * rounding needs it: a scope view prints millions of them.
 */
#ifndef SINK_TFPROF_NUMBERS_H
#define SINK_TFPROF_NUMBERS_H

#include "base/base.h"

#define TFPROF_NUMBER_BYTES 40

/* Each writes at most TFPROF_NUMBER_BYTES without NUL and returns the length. */
size_t tfprof_count(char *to, int64_t n);
size_t tfprof_micros(char *to, int64_t micros);
size_t tfprof_memory(char *to, int64_t bytes);

#endif
