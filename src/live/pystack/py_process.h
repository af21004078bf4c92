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
	bool was_called; /* by C, rather than by the Python code of the next frame */
	uint64_t at;
};

/* A frame as it lies in memory. */
struct py_raw_frame {
	uint64_t at, code, prev, instr;
	uint32_t piece; /* of the batch that it came with; 0: read alone */
	bool runs;
	bool is_entry, is_generator;
	bool is_shim;	       /* of the interpreter itself: no function */
	bool held, held_instr; /* it, and its instruction, were the same when read again at once */
};
struct py_raw_stack {
	struct py_raw_frame *items; /* innermost first */
	size_t count, cap;
	bool too_deep;
};

struct py_thread {
	uint64_t at;	 /* its PyThreadState */
	uint64_t number; /* as Python's threading.get_ident() */
	uint64_t cframe;
	pid_t tid; /* 0 when it could not be found out */
	char name[PROC_NAME];
	int schedstat; /* file, or -1 */
	uint64_t cpu_total_ns;
	struct py_raw_stack raw;
	bool settled; /* raw is a stack that was there */
	/* The last sample. */
	struct py_frame *frames; /* innermost first */
	size_t frame_count, frame_cap;
	int64_t cpu_ns; /* on a processor since the last time; 0 when unknown */
	uint32_t idle;	/* samples in a row without that */
	bool same;	/* as in the sample before */
	bool changed;	/* by a glance since */
	bool seen;
	uint64_t user; /* the caller's */
};

#define PY_INTERPRETERS 4 /* read with the rest; more are read alone */

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
	struct py_raw_stack other;	/* the second reading */
	struct remote_batch all, again; /* of all threads; of one that has changed */
	uint32_t tid_offset; /* of the thread's id in what pthread_self points to; 0 when unknown */
	struct cpu_colocate beside;
	/* What looking may take of our processor: the thread's clock at which a stack that changes is given up; 0: no end. */
	int64_t give_up_ns;
	bool glances; /* between two samples: nothing is counted */
	bool no_memory;
	/* sums */
	uint64_t samples, torn;
	uint64_t lost; /* of torn: what was read makes no sense; it may be another program by now */
};

/* Fails as py_find does. */
ow_status py_process_open(struct py_process *p, struct mem *mem, pid_t pid, struct ow_error *err);
void py_process_close(struct py_process *p);

/* How often the thread was given a processor; false when that is not known. */
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
