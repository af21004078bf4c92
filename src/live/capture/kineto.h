/*
 * kineto.h: traces on demand from PyTorch jobs that were started with KINETO_USE_DAEMON=1. These announce themselves at
 * the abstract UNIX socket "dynolog" and ask there, again and again, what to record; whoever has that socket tells them
 * a file to write a trace to. This is that side. One thread; nothing blocks.
 *
 * A datagram: a header of 40 bytes (length of what follows, and a type of 32 characters), then
 *   "ctxt"  gpu (4 bytes), pid (4), job (8): announced; answered with a number of 4 bytes
 *   "req"   kind (4 bytes), count (4), job (8), pids (4 each, own first): answered with a text, empty for nothing to do
 *
 * Only processes of this user are listened to, unless we are root: the kernel says whose a datagram is.
 */
#ifndef LIVE_KINETO_H
#define LIVE_KINETO_H

#include "base/error.h"
#include "base/mem.h"

#include <sys/types.h>
#include <sys/un.h>

enum kineto_state {
	KINETO_IDLE,	/* nothing was asked of it */
	KINETO_WANTED,	/* will be told when it asks next */
	KINETO_TOLD,	/* has been told */
	KINETO_WRITTEN, /* its trace is there */
	KINETO_GONE	/* it ended before that */
};

struct kineto_process {
	pid_t pid;
	int64_t job;
	int32_t gpu;
	enum kineto_state state;
	int64_t seen_ns, told_ns;
	int64_t for_ms;
	char path[512];	  /* what it was told to write; the pid is put in by the job */
	char found[600];  /* what it has written */
	uint64_t size;	  /* of that, when it was looked at last */
	int64_t grown_ns; /* when that changed */
};

struct kineto {
	struct mem *mem;
	int fd;
	struct kineto_process *items;
	size_t count, cap;
	uint64_t refused, damaged; /* datagrams of other users, or that make no sense */
	bool no_memory;
};

#define KINETO_SOCKET "dynolog"

/* Takes the socket of that name; OW_E_LIMIT when another program has it. */
ow_status kineto_open(struct kineto *k, struct mem *mem, const char *name, struct error *err);
void kineto_close(struct kineto *k);

/* Answers what has come; k->fd is readable when something has. Processes that were not heard of for a minute are
 * forgotten. False without memory. */
bool kineto_turn(struct kineto *k, int64_t now_ns);

/* Asks a process for a trace of so long, into `folder` (an absolute path). */
void kineto_want(struct kineto_process *process, const char *folder, int64_t for_ns);
/* Looks whether those that were told have written: a file that has not grown for half a second, and whose end is that
 * of a trace. */
void kineto_look(struct kineto *k, int64_t now_ns);

#endif
