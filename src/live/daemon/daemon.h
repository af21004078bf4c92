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
	const char *socket_path;	 /* path of the socket; NULL: the default */
	const char *folder;		 /* folder of the rings; NULL: the default */
	uint64_t job_limit, total_limit; /* limits in bytes on disk */
	/* for root: other users may connect and see their own jobs */
	bool all_users;
	int32_t metrics_port; /* port on the loopback address; 0: any; -1: none */
	/* show names of jobs to all clients, not only to root and owners */
	bool metrics_names;
	const char *kineto_socket; /* socket for PyTorch jobs; NULL: none */
	uint32_t stacks_hz;	   /* rate of Python stacks of all jobs; 0: only on request */
	const char *version;	   /* text of the version: "opwatch 0.1.0" */
	ow_line_fn message;	   /* receives messages; may be NULL */
	void *message_arg;
	bool (*keep_going)(void *arg); /* called at least once a second; false ends the daemon */
	void *keep_going_arg;
};

/* Serves until keep_going returns false. Returns OW_E_LIMIT if another daemon serves. */
ow_status daemon_run(const struct daemon_options *options, struct mem *mem, struct ow_error *err);

#endif
