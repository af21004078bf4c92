/* remote_call.h: a thread of another process, stopped by ptrace, is made to call a function and then goes on where it
 * was, with all its registers. Signals that come meanwhile are kept and sent again. */
#ifndef LIVE_REMOTE_CALL_H
#define LIVE_REMOTE_CALL_H

#include "base/error.h"

#include <sys/types.h>

#define REMOTE_STATE 16384
#define REMOTE_SIGNALS 32

struct remote {
	pid_t pid, tid;
	char registers[512]; /* as they were */
	size_t registers_len;
	char state[REMOTE_STATE] __attribute__((aligned(64))); /* floating point and vectors */
	size_t state_len;
	uint64_t stack, instruction;
	int64_t call; /* the system call it is in, or -1 */
	uint64_t call_argument;
	int kept[REMOTE_SIGNALS]; /* signals */
	size_t kept_count;
	bool gone;
};

ow_status remote_stop(struct remote *r, pid_t pid, pid_t tid, struct error *err);
void remote_resume(struct remote *r);
/* Whether it was stopped in a system call. */
bool remote_in_call(const struct remote *r);
/* A system call, and its second argument: whether it waits for no lock of the C library. */
bool remote_call_is_harmless(int64_t call, uint64_t argument);
/* function(text, arguments[1]): the first argument becomes the text's address. */
ow_status remote_call(struct remote *r, uint64_t function, const char *text,
		      const uint64_t arguments[2], uint64_t *result, struct error *err);

#endif
