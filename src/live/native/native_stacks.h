/*
 * native_events.h: what the threads of a process run, sampled by the kernel while they are on a processor
 * (perf_event_open with the software clock): registers and the top of the stack of each sample, user code only.
 * Nothing is stopped or written in the process. Each thread has a ring; the caller empties them (native_events_read).
 */
#ifndef LIVE_NATIVE_EVENTS_H
#define LIVE_NATIVE_EVENTS_H

#include "base/error.h"
#include "base/mem.h"

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
			     struct error *err);
void native_events_close(struct native_events *e);
/* Threads that have come or gone since; all of them anew when there is another program. False without memory. */
bool native_events_look(struct native_events *e);
/* Descriptors that are readable when there is a sample: so many, at most `cap`; and what poll said of them. */
size_t native_events_poll(const struct native_events *e, struct pollfd *fds, size_t cap);
void native_events_polled(struct native_events *e, const struct pollfd *fds, size_t count);
typedef void (*native_take_fn)(void *arg, const struct native_sample *sample);
/* Stops at the end of a program: native_events_look goes on with the next one. */
void native_events_read(struct native_events *e, native_take_fn take, void *arg);

#endif
