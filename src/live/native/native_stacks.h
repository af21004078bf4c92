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
	int64_t ts_ns;			      /* time of the steady clock */
	uint64_t registers[NATIVE_REGISTERS]; /* registers by their DWARF numbers */
	uint32_t register_count;	      /* number of registers; 0: unknown */
	uint64_t pc, sp;
	/* frame-pointer chain, innermost first; may contain context markers of the kernel */
	const uint64_t *chain;
	size_t chain_count;
	const unsigned char *stack; /* copy of the stack from sp on */
	size_t stack_size;
};

struct native_thread {
	pid_t tid;
	int fd;
	void *ring;
	size_t ring_size;
	bool seen;
	/* the thread sends no more samples; it is removed when it is no longer listed */
	bool ended;
};

struct native_events {
	struct mem *mem;
	pid_t pid;
	uint64_t period_ns;
	struct native_thread *threads;
	size_t count, cap;
	/* the process has executed another program, so its known memory is outdated */
	bool other_program;
	uint64_t lost;		/* number of samples for which the ring had no room */
	uint64_t refused;	/* largest number of threads that were refused at a time */
	unsigned char *scratch; /* buffer for one record */
};

/* Opens events for a process. Returns OW_E_PERMISSION with advice, OW_E_UNSUPPORTED if the kernel lacks
 * them, or OW_E_NOT_FOUND. */
ow_status native_events_open(struct native_events *e, struct mem *mem, pid_t pid, uint32_t hz,
			     struct ow_error *err);
void native_events_close(struct native_events *e);
/* Opens new threads and closes ended ones; all threads again after exec. False if memory runs out. */
bool native_events_refresh(struct native_events *e);
/* Fills `fds` with at most `cap` descriptors that become readable with a sample and returns their number; native_events_polled
 * takes poll's result. */
size_t native_events_poll(const struct native_events *e, struct pollfd *fds, size_t cap);
void native_events_polled(struct native_events *e, const struct pollfd *fds, size_t count);
typedef void (*native_take_fn)(void *arg, const struct native_sample *sample);
/* Reads samples up to an exec; native_events_refresh continues with the next program. */
void native_events_read(struct native_events *e, native_take_fn take, void *arg);

/* Configures an event so that its samples can be read by native_sample_take, with this many
 * bytes of the stack. */
struct perf_event_attr;
void native_sample_ask(struct perf_event_attr *attr, uint32_t stack_bytes);
/* Parses the body of a sample of such an event; its pointers refer to `bytes`. */
bool native_sample_take(const unsigned char *bytes, size_t len, struct native_sample *sample);

#define NATIVE_DEPTH 256

struct native_unwind;

/* Makes an unwinder; OW_E_UNSUPPORTED: built without libdw. */
ow_status native_unwind_new(struct native_unwind **u, struct mem *mem, pid_t pid,
			    struct ow_error *err);
void native_unwind_free(struct native_unwind *u);
/* Returns the addresses of the calls, innermost first, and their number. */
size_t native_unwind_walk(struct native_unwind *u, const struct native_sample *sample,
			  uint64_t pcs[NATIVE_DEPTH]);

struct native_name {
	struct str function; /* mangled name; empty if unknown */
	struct str module;   /* path of the module; may be empty */
	bool is_jit;	     /* the name comes from /tmp/perf-PID.map */
};
/* Returns the name of an address inside a call, valid until the next call. */
struct native_name native_unwind_name(struct native_unwind *u, uint64_t pc);

#endif
