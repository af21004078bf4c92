/*
 * native_unwind.h: from the registers and the stack of a sample to the calls that led there, and from addresses to names,
 * by elfutils' libdw: unwinding tables (.eh_frame) and symbol tables of the files that the process has mapped. Code
 * without tables is followed by frame pointers, as the kernel did. Nothing is fetched from anywhere.
 */
#ifndef LIVE_NATIVE_UNWIND_H
#define LIVE_NATIVE_UNWIND_H

#include "base/str.h"
#include "live/native_events.h"

#define NATIVE_DEPTH 256

struct native_unwind;

/* OW_E_UNSUPPORTED: built without libdw. */
ow_status native_unwind_new(struct native_unwind **u, struct mem *mem, pid_t pid,
			    struct error *err);
void native_unwind_free(struct native_unwind *u);
/* The addresses of the calls, innermost first; how many. */
size_t native_unwind_walk(struct native_unwind *u, const struct native_sample *sample,
			  uint64_t pcs[NATIVE_DEPTH]);

struct native_name {
	struct str function; /* mangled; empty when nothing is known */
	struct str module;   /* path; empty */
	bool is_jit;	     /* by /tmp/perf-PID.map */
};
/* Lives until the next call. `pc` is inside the call. */
struct native_name native_unwind_name(struct native_unwind *u, uint64_t pc);

#endif
