/*
 * kineto.h: traces on demand from PyTorch jobs that run with KINETO_USE_DAEMON=1. Such a job announces itself at
 * the abstract UNIX socket "dynolog" and asks there repeatedly what to record. This is the server: it answers with
 * the path of a trace file to write. Used by the daemon and by `opwatch capture`. Nothing blocks: files of jobs are
 * looked at by a side thread.
 *
 * A datagram has a header of 40 bytes (length of the body, type of 32 characters) and a body:
 *
 *    "ctxt"  gpu (4 bytes), pid (4), job (8): the announcement; answered with a number of 4 bytes
 *    "req"   kind (4 bytes), count (4), job (8), pids (4 each, own first): answered with a text, empty when there is nothing to do
 *
 * Datagrams of other users are ignored unless opwatch runs as root; the kernel reports the sender.
 */
#ifndef LIVE_KINETO_H
#define LIVE_KINETO_H

#include "base/error.h"
#include "base/mem.h"
#include "opwatch/record.h"

#include <sys/types.h>
#include <sys/un.h>

enum kineto_state {
	KINETO_IDLE,	  /* no trace was requested from the process */
	KINETO_WANTED,	  /* a request will be sent when the process asks next */
	KINETO_REQUESTED, /* the request was sent */
	KINETO_WRITTEN,	  /* the trace has been written */
	KINETO_GONE	  /* the process ended without a trace */
};

struct kineto_process {
	pid_t pid;
	int64_t job;
	int32_t gpu;
	enum kineto_state state;
	int64_t seen_ns, requested_ns;
	int64_t for_ms;
	char path[512];	  /* path of the trace to write; the job adds its pid */
	char found[600];  /* path of the trace that the job wrote */
	uint64_t size;	  /* size of that trace when it was last examined */
	int64_t grown_ns; /* time of the last change of the size */
};

struct kineto {
	struct mem *mem;
	int fd;
	struct kineto_process *items;
	size_t count, cap;
	uint64_t refused, damaged; /* number of datagrams from other users, and of malformed ones */
	/* examination of files on a side thread; NULL: not started yet */
	struct kineto_look *look;
	bool no_memory;
};

#define KINETO_SOCKET "dynolog"

/* Binds the socket of that name; OW_E_LIMIT if another program uses it. */
ow_status kineto_open(struct kineto *k, struct mem *mem, const char *name, struct ow_error *err);
void kineto_close(struct kineto *k);

/* Answers received datagrams; k->fd is readable if there are some. Processes that were silent for a minute are
 * forgotten. False if memory runs out. */
bool kineto_turn(struct kineto *k, int64_t now_ns);

/* Requests a trace of this duration from a process, into `folder` (an absolute path). */
void kineto_want(struct kineto_process *process, const char *folder, int64_t for_ns);
/* Checks whether the requested traces are written: a file that has not grown for half a second, and whose end is that
 * of a trace. Waits a tenth of a second at most; where a file system does not answer for five, the trace counts as
 * lost. */
void kineto_check_files(struct kineto *k, int64_t now_ns);

/* kineto_capture.c: the jobs to ask, and the receiver of messages about their files. */
struct kineto_choice {
	const int64_t *pids; /* pids of the jobs; none: all jobs that poll the socket */
	size_t pid_count;
	ow_line_fn message; /* receives one line per job; may be NULL */
	void *message_arg;
};
/* Requests traces and waits for them: through the socket, or through the daemon if it owns the socket. */
ow_status kineto_capture(const struct ow_capture_options *options,
			 const struct kineto_choice *choice, struct ow_error *err);

#endif
