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
#include <time.h>

#define TRACED_STATE_BYTES 16384
#define TRACED_SIGNALS 32

struct traced_thread {
	pid_t pid, tid;
	char registers[512]; /* saved general registers */
	size_t registers_len;
	char state[TRACED_STATE_BYTES]
		__attribute__((aligned(64))); /* saved floating point and vector registers */
	size_t state_len;
	uint64_t stack, instruction;
	uint64_t mask; /* saved signal mask */
	uint64_t sigreturn,
		/* addresses of the frame: where the call returns to, and what restores the
		 * thread */
		frame;
	int64_t call; /* number of the interrupted system call, or -1 */
	uint64_t call_argument;
	int kept[TRACED_SIGNALS]; /* signals that were kept for later */
	size_t kept_count;
	bool gone;
	timer_t waker; /* interrupts a wait for it */
	bool has_waker;
};

ow_status traced_thread_stop(struct traced_thread *r, pid_t pid, pid_t tid, struct ow_error *err);
void traced_thread_resume(struct traced_thread *r);
/* Returns whether the thread was stopped in a system call. */
bool traced_thread_in_call(const struct traced_thread *r);
/* Returns whether a system call with this second argument waits for no lock of the C library. */
bool remote_call_is_harmless(int64_t call, uint64_t argument);
/* Returns the offset of the rt_sigreturn call in code of the C library; SIZE_MAX if it is not
 * there. */
size_t remote_call_find_sigreturn(const void *code, size_t len);
/* Makes the stopped thread call function(text, second), with a copy of the text, and stops it again where it was, its
 * registers restored. `sigreturn` is the address of the code above. When this process is killed meanwhile, the thread
 * makes the call and goes on. The function's result is not known. */
ow_status remote_call(struct traced_thread *r, uint64_t sigreturn, uint64_t function,
		      const char *text, uint64_t second, struct ow_error *err) OW_MUST_CHECK;

struct sched_boost {
	int policy, priority; /* scheduling settings before the boost */
	bool first;	      /* this boost is the first of all */
	bool short_slices;
};

void sched_boost_begin(struct sched_boost *boost);
void sched_boost_end(struct sched_boost *boost);

/* Runs `work` in a separate process with a session of its own, which ends with it. Its `result`, which must not hold
 * pointers, is copied back. False when that process could not be started or ended early: then there is no result. */
bool sched_boost_apart(void (*work)(void *arg, void *result), void *arg, void *result, size_t size);

#endif
