/*
 * tfprof_numbers.h: prints numbers as tfprof does: 1.20k, 999us, 1000.00ms, 30.46KB. The bytes are those that printf
 * makes of the original's expressions, but printf is called only in the rare cases where rounding needs it: a scope
 * view prints millions of numbers.
 */
#ifndef SINK_TFPROF_NUMBERS_H
#define SINK_TFPROF_NUMBERS_H

#include "base/base.h"

#define TFPROF_NUMBER_BYTES 40

/* Each function writes at most TFPROF_NUMBER_BYTES without NUL and returns the length. */
size_t tfprof_count(char *to, int64_t n);
size_t tfprof_micros(char *to, int64_t micros);
size_t tfprof_memory(char *to, int64_t bytes);

#endif
