/*
 * daemon.h: serves all jobs of a host or of one user. Recorded processes connect to its socket, and their records
 * go to one ring on disk per job (daemon_job.h). The recent past can be cut out of a ring at any time. One thread,
 * which never waits for a job: when records come faster than they can be written, the job drops and counts them.
 *
 * The daemon may be killed at any moment. The rings in memory belong to the jobs, and the next daemon continues
 * where the last one had written to. Clients talk to it through live/daemon/jobs.h.
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
	bool metrics_names;	   /* of jobs for all who ask, not for root and owners alone */
	const char *kineto_socket; /* NULL: none */
	uint32_t stacks_hz;	   /* Python stacks of all jobs; 0: only when asked for */
	const char *version;	   /* "opwatch 0.1.0" */
	ow_line_fn message;	   /* may be NULL */
	void *message_arg;
	bool (*keep_going)(void *arg); /* false ends it; called at least once a second */
	void *keep_going_arg;
};

/* Serves until keep_going returns false. OW_E_LIMIT: another one does. */
ow_status daemon_run(const struct daemon_options *options, struct mem *mem, struct ow_error *err);

#endif
