/*
 * native_stacks.h: which code the threads of a process run, sampled by the kernel while they are on a processor
 * (perf_event_open with the software clock): registers and the top of the stack of each sample, user code only.
 * The process is neither stopped nor written to.
 *
 * native_unwind turns the registers and stack of a sample into calls, and addresses into names, with libdw:
 * unwinding tables (.eh_frame) and symbol tables of the mapped files. Code without tables is followed by frame
 * pointers. Nothing is downloaded.
 */
#ifndef LIVE_NATIVE_STACKS_H
#define LIVE_NATIVE_STACKS_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <poll.h>
#include <sys/types.h>

#define NATIVE_REGISTERS 33

struct native_sample {
	pid_t pid, tid;
	int64_t ts_ns;			      /* of the steady clock */
	uint64_t registers[NATIVE_REGISTERS]; /* by their DWARF numbers */
	uint32_t register_count;	      /* 0: unknown */
	uint64_t pc, sp;
	const uint64_t
		*chain; /* by frame pointers, innermost first; may hold marks of the kernel */
	size_t chain_count;
	const unsigned char *stack; /* from sp on */
	size_t stack_size;
};

struct native_thread {
	pid_t tid;
	int fd;
	void *ring;
	size_t ring_size;
	bool seen;
	bool ended; /* no more samples come; it is forgotten when it is not seen any more */
};

struct native_events {
	struct mem *mem;
	pid_t pid;
	uint64_t period_ns;
	struct native_thread *threads;
	size_t count, cap;
	bool other_program; /* it has executed one: what is known of its memory is not true any more */
	uint64_t lost;	    /* samples that had no room */
	uint64_t refused;	/* threads, at most at a time */
	unsigned char *scratch; /* one record */
};

/* OW_E_PERMISSION with what to try; OW_E_UNSUPPORTED where the kernel has none of it; OW_E_NOT_FOUND. */
ow_status native_events_open(struct native_events *e, struct mem *mem, pid_t pid, uint32_t hz,
			     struct ow_error *err);
void native_events_close(struct native_events *e);
/* Threads that have come or gone since; all of them again when there is another program. False without memory. */
bool native_events_refresh(struct native_events *e);
/* Fills `fds` with at most `cap` descriptors that become readable with a sample and returns their number; native_events_polled
 * takes poll's result. */
size_t native_events_poll(const struct native_events *e, struct pollfd *fds, size_t cap);
void native_events_polled(struct native_events *e, const struct pollfd *fds, size_t count);
typedef void (*native_take_fn)(void *arg, const struct native_sample *sample);
/* Stops at the end of a program: native_events_refresh goes on with the next one. */
void native_events_read(struct native_events *e, native_take_fn take, void *arg);

/* Makes an event sample what native_sample_take reads, with this many bytes of the stack. */
struct perf_event_attr;
void native_sample_ask(struct perf_event_attr *attr, uint32_t stack_bytes);
/* The body of a sample of such an event; what it points to lies in `bytes`. */
bool native_sample_take(const unsigned char *bytes, size_t len, struct native_sample *sample);

#define NATIVE_DEPTH 256

struct native_unwind;

/* OW_E_UNSUPPORTED: built without libdw. */
ow_status native_unwind_new(struct native_unwind **u, struct mem *mem, pid_t pid,
			    struct ow_error *err);
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
