/*
 * daemon.h: serves all jobs of a host, or of a user: recorded processes connect to its socket, and what they do goes to
 * a ring on disk per job (daemon_job.h), from which the recent past can be cut out at any time. One thread, which never
 * waits for a job: what comes faster than it can be written is dropped and counted by the job.
 *
 * It may be killed at any moment: the rings that jobs write to are theirs, and a daemon that is started anew takes all up
 * where the other one had written to. Clients ask it with live/jobs.h.
 */
#ifndef LIVE_DAEMON_H
#define LIVE_DAEMON_H

#include "base/error.h"
#include "base/mem.h"

#define DAEMON_LIMIT_LEAST ((uint64_t)1 << 20)

struct daemon_options {
	const char *socket_path;	 /* NULL: the usual one */
	const char *folder;		 /* of the rings; NULL: the usual one */
	uint64_t job_limit, total_limit; /* bytes on disk */
	bool all_users;			 /* root: others may connect, and see their own jobs */
	int32_t metrics_port;		 /* of the loopback address; 0: any; -1: none */
	const char *kineto_socket;	 /* NULL: none */
	uint32_t stacks_hz;		 /* Python stacks of all jobs; 0: only when asked for */
	const char *version;		 /* "opwatch 0.1.0" */
	ow_line_fn message;		 /* may be NULL */
	void *message_arg;
	bool (*cancelled)(void *arg); /* true ends it; asked at least every second */
	void *cancel_arg;
};

/* Serves until it is cancelled. OW_E_LIMIT: another one does. */
ow_status daemon_run(const struct daemon_options *options, struct mem *mem, struct error *err);

#endif
