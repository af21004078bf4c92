/*
 * py_process.h: the Python stacks of one running process, read from outside while it runs. Nothing is stopped,
 * written or loaded there.
 *
 * A stack that changes while it is read could look like one that never existed. Each stack is therefore read until
 * it is certain to have existed (py_stack_verify in py_process.c). A stack that changes too fast for that is
 * dropped and counted.
 */
#ifndef LIVE_PY_PROCESS_H
#define LIVE_PY_PROCESS_H

#include "live/proc/proc.h"
#include "live/pystack/remote_batch_read.h"
#include "live/pystack/py_code.h"
#include "live/pystack/py_find.h"

struct py_frame {
	const struct py_code *code;
	int32_t line;
	bool was_called; /* called by C, not by the Python code of the next frame */
	uint64_t at;
};

/* A frame as it is in memory. */
struct py_raw_frame {
	uint64_t at, code, prev, instr;
	uint32_t piece; /* piece of the batch that contains the frame; 0: read separately */
	bool runs;
	bool is_entry, is_generator;
	bool is_shim; /* shim frame of the interpreter, which has no function */
	/* the frame, and its instruction, were the same in an immediate second reading */
	bool held, held_instr;
};
struct py_raw_stack {
	struct py_raw_frame *items; /* frames, innermost first */
	size_t count, cap;
	bool too_deep;
};

struct py_thread {
	uint64_t at;	 /* address of its PyThreadState */
	uint64_t number; /* number as in Python's threading.get_ident() */
	uint64_t cframe;
	pid_t tid; /* thread id in the kernel; 0 if unknown */
	char name[PROC_NAME];
	int schedstat; /* descriptor of its schedstat file, or -1 */
	uint64_t cpu_total_ns;
	struct py_raw_stack raw;
	bool settled; /* raw is a stack that certainly existed */
	/* The last sample: */
	struct py_frame *frames; /* frames, innermost first */
	size_t frame_count, frame_cap;
	int64_t cpu_ns; /* processor time since the last sample; 0 if unknown */
	uint32_t idle;	/* number of consecutive samples without processor time */
	bool same;	/* the sample equals the sample before */
	bool changed;	/* a quick look since then found a change */
	bool seen;
	uint64_t user; /* value for the caller's use */
};

/* number of interpreters that are read in the batch; more are read separately */
#define PY_INTERPRETERS 4

struct py_process {
	struct mem *mem;
	pid_t pid;
	char name[PROC_NAME];
	struct remote remote;
	struct py_place place;
	struct py_codes codes;
	struct py_thread *threads;
	size_t thread_count, thread_cap;
	uint64_t interpreters
		[PY_INTERPRETERS];	/* interpreters that the last sample found; 0: none */
	struct py_raw_stack other;	/* stack of the second reading */
	struct remote_batch all, again; /* batches of all threads, and of one thread that changed */
	/* offset of the thread id in the struct that pthread_self points to; 0 if unknown */
	uint32_t tid_offset;
	struct cpu_colocate beside;
	/* CPU clock of this thread at which sampling a changing stack is given up; 0: no limit */
	int64_t give_up_ns;
	bool glances; /* quick looks between two samples: nothing is counted */
	bool no_memory;
	/* Sums over all samples. */
	uint64_t samples, torn;
	/* number of torn samples whose data is implausible; the program may have changed */
	uint64_t lost;
};

/* Opens a process; fails as py_find does. */
ow_status py_process_open(struct py_process *p, struct mem *mem, pid_t pid, struct ow_error *err);
void py_process_close(struct py_process *p);

/* Returns how often the thread got a processor; false if that is unknown. */
bool py_thread_turns(const struct py_thread *thread, uint64_t *turns);

typedef void (*py_take_fn)(void *arg, struct py_process *p, struct py_thread *thread);
/* The stack of one thread as it is now, between two samples, for which it counts nothing; NULL when there is none, or it could
 * not be read. */
const struct py_thread *py_process_glance(struct py_process *p, pid_t tid, int64_t now_ns);
/* One sample of every thread that runs Python code. OW_E_NOT_FOUND: the process has ended; OW_E_PERMISSION: it has
 * got rights that we have not; OW_E_NO_MEMORY. A process that has run another program only gives torn samples. */
ow_status py_process_sample(struct py_process *p, int64_t now_ns, py_take_fn take, void *arg,
			    struct ow_error *err);

#endif
