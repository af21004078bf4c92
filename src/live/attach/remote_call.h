/*
 * remote_call.h: makes a stopped thread of another process call a function, after which it continues where it was,
 * with all its registers. Signals that arrive meanwhile are kept and sent again. The second part lets the tracer
 * run before other programs during that time. Used only by attach.c.
 */
#ifndef LIVE_REMOTE_CALL_H
#define LIVE_REMOTE_CALL_H

#include "base/base.h"
#include "base/error.h"

#include <sys/types.h>

#define TRACED_STATE_BYTES 16384
#define TRACED_SIGNALS 32

struct traced_thread {
	pid_t pid, tid;
	char registers[512]; /* as they were */
	size_t registers_len;
	char state[TRACED_STATE_BYTES]
		__attribute__((aligned(64))); /* floating point and vectors */
	size_t state_len;
	uint64_t stack, instruction;
	uint64_t mask; /* of signals, as it was */
	uint64_t sigreturn,
		frame; /* of the call: where it returns to, and what restores the thread */
	int64_t call;  /* the system call it is in, or -1 */
	uint64_t call_argument;
	int kept[TRACED_SIGNALS]; /* signals */
	size_t kept_count;
	bool gone;
};

ow_status traced_thread_stop(struct traced_thread *r, pid_t pid, pid_t tid, struct ow_error *err);
void traced_thread_resume(struct traced_thread *r);
/* Whether it was stopped in a system call. */
bool traced_thread_in_call(const struct traced_thread *r);
/* A system call, and its second argument: whether it waits for no lock of the C library. */
bool remote_call_is_harmless(int64_t call, uint64_t argument);
/* Where in a piece of the C library's code rt_sigreturn is called; SIZE_MAX when it is not there. */
size_t remote_call_find_sigreturn(const void *code, size_t len);
/* Makes the stopped thread call function(text, second), with a copy of the text, and stops it again where it was, its
 * registers restored. `sigreturn` is the address of the code above. When this process is killed meanwhile, the thread
 * makes the call and goes on. The function's result is not known. */
ow_status remote_call(struct traced_thread *r, uint64_t sigreturn, uint64_t function,
		      const char *text, uint64_t second, struct ow_error *err) OW_MUST_CHECK;

struct sched_boost {
	int policy, priority; /* as they were */
	bool first;	      /* of all */
	bool short_slices;
};

void sched_boost_begin(struct sched_boost *boost);
void sched_boost_end(struct sched_boost *boost);

/* Does the work in a process with a session of its own, which ends with it. What it leaves in `result`, which holds no pointers that
 * matter, is copied back. False when that process could not be started or ended early: then there is no result. */
bool sched_boost_apart(void (*work)(void *arg, void *result), void *arg, void *result, size_t size);

#endif
