/*
 * perf_listing.h: functions that are listed as text, one "address type name" or "address size name" per line: the kernel's
 * kallsyms, and /tmp/perf-PID.map. Parts of perf_names.c.
 */
#ifndef IMPORT_PERF_LISTING_H
#define IMPORT_PERF_LISTING_H

#include "import/perf_names.h"

/* Both fail only for lack of memory. */
ow_status perf_listing_kernel(struct perf_names *n);
ow_status perf_listing_jit(struct perf_names *n, struct perf_listing *l);

/* The function at an address, nil when there is none. */
str_id perf_listing_kernel_name(struct perf_names *n, uint64_t address);

/* False without memory. Sort when all are there. */
bool perf_listing_add(struct perf_names *n, struct perf_listing *l, uint64_t start, uint64_t end,
		      str_id name);
void perf_listing_sort(struct perf_listing *l);

/* From text; for tests, too. */
ow_status perf_listing_read_kernel(struct perf_names *n); /* what is in n->kernel.text */
ow_status perf_listing_read_jit(struct perf_names *n, struct perf_listing *l, struct str text);

#endif
