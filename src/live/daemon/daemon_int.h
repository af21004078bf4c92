/*
 * daemon_int.h: shared by the files of the daemon: daemon.c (socket, loop, connections), daemon_answer.c
 * (requests), daemon_metrics.c (the metrics page) and daemon_jobs.c (which job a process belongs to, disk limits). Others include
 * daemon.h.
 */
#ifndef LIVE_DAEMON_INT_H
#define LIVE_DAEMON_INT_H

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "live/capture/kineto.h"
#include "live/daemon/daemon.h"
#include "live/daemon/daemon_job.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

/* The server of the metrics page: its threads put requests, the loop answers them. */
struct metrics_server {
	struct server *server; /* HTTP server (serve/server.h) */
	int wake;	       /* readable if there are requests; -1: not open */
	uint32_t port;	       /* port of the server; 0: not open */
	pthread_mutex_t lock;  /* guards the members below */
	pthread_cond_t answered;
	struct metrics_question *first;
	bool closing;
};

struct incident_file {
	uint32_t job; /* id of the job */
	uint32_t uid;
	int64_t modified_ns;
	uint64_t bytes;
	char name[256];
};

struct saved_incidents {
	struct mem *mem;
	struct incident_file *items; /* files, the oldest first */
	size_t count, cap;
	uint64_t bytes; /* size of all files */
};

/* Returns the id of the job in a file's name; 0: the file is not a saved incident. */
uint32_t incident_job_of(const char *name);

/* Finds saved incidents. Fails if memory runs out; a folder that cannot be read counts as empty. */
ow_status incidents_find(struct saved_incidents *saved, struct mem *mem, const char *folder,
			 struct ow_error *err);
void incidents_release(struct saved_incidents *saved);
/* Removes the oldest files until all are within the limit, but never the last one. Returns the
 * number of removed files. */
uint32_t incidents_trim(struct saved_incidents *saved, const char *folder, uint64_t limit);

#define DAEMON_PENDING 256
#define DAEMON_ENDED_JOBS 100 /* number of ended jobs whose rings are kept */
#define DAEMON_EXPECTED 64
#define DAEMON_USERS 256 /* largest number of users whose processes are recorded */
/* Of these slots, some are reserved for root and the daemon's owner; each other user may have this many. */
#define DAEMON_PENDING_KEPT 32
#define DAEMON_PENDING_USER 64
#define DAEMON_EXPECTED_KEPT 16
#define DAEMON_EXPECTED_USER 16

/* A connection of a client, or one whose purpose is not known yet. */
struct pending_client {
	int fd;
	struct ucred peer;
	int64_t since_ns;
	bool spoke;	/* the connection has sent a packet */
	struct buf out; /* packets of the answer, one behind the other */
	size_t sent;
};

/* A process that was announced to join, and its job. */
struct expected {
	uint32_t pid;
	uint32_t uid;
	int64_t until_ns;
	char name[JOBS_NAME];
};

struct daemon {
	const struct daemon_options *options;
	struct mem *mem;
	int64_t since_ns; /* time of day of the announcement */
	char socket_path[JOBS_SOCKET_PATH], folder[JOBS_PATH];
	int listener, socket_lock, folder_lock;
	struct daemon_job **jobs;
	size_t job_count, job_cap;
	uint32_t last_id;
	uint64_t rings_limit; /* largest size of all rings: the total minus saved minutes */
	struct pending_client pending[DAEMON_PENDING];
	size_t pending_count;
	struct expected expected[DAEMON_EXPECTED];
	size_t expected_count;
	struct collector_quota users[DAEMON_USERS];
	size_t user_count;
	char our_cgroup[1024];
	struct kineto kineto;
	bool has_kineto;
	int64_t kineto_look_ns, meter_ns, limit_ns;
	struct host_meter host;
	struct nvml nvml;
	bool has_nvml;
	struct metrics_server metrics;
	int wait_ms;
	int64_t beat_ns; /* time of the next sample of stacks */
	struct pollfd *fds;
	size_t fd_cap;
};

void daemon_report(const struct daemon *d, const char *format, ...) OW_PRINTF(2, 3);

/* Functions of daemon_jobs.c. */
ow_status daemon_load_jobs(struct daemon *d, struct ow_error *err);
void daemon_release_jobs(struct daemon *d);
/* Adds a process that connected with its shared memory to its job, or to a new job. */
void daemon_add_process(struct daemon *d, int fd, const struct ucred *peer, int memory);
/* Returns the job of a process's relatives; or NULL. */
struct daemon_job *daemon_job_of(const struct daemon *d, const struct ucred *peer, uint32_t pid);
/* Enforces the disk limits, and removes jobs that ended long ago. */
void daemon_keep_limits(struct daemon *d);

/* Functions of daemon.c. */
void daemon_accept(struct daemon *d);
void daemon_serve_pending(struct daemon *d, const struct pollfd *fds, size_t count);
/* Returns whether a peer is root or the user who runs the daemon. */
bool daemon_is_owner(const struct ucred *peer);
bool daemon_may_see(const struct ucred *peer, uint32_t uid);

/* daemon_answer.c: writes the answer to client->out. */
void daemon_answer(struct daemon *d, struct pending_client *client,
		   const struct jobs_request *request);

/* daemon_metrics.c: starts the metrics server. Port 0: any free port. */
ow_status daemon_metrics_open(struct daemon *d, uint32_t port, struct ow_error *err);
void daemon_metrics_close(struct daemon *d);
/* Answers all waiting requests; called by the loop if metrics.wake is readable. */
void daemon_metrics_answer(struct daemon *d);
void daemon_measure(struct daemon *d);

#endif
