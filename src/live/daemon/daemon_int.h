/* daemon_int.h: between the files of the daemon: daemon.c (socket, loop), daemon_guest.c (connections), daemon_answer.c
 * (requests), daemon_jobs.c (which job), metrics_http.c (its page of metrics). */
#ifndef LIVE_DAEMON_INT_H
#define LIVE_DAEMON_INT_H

#include "live/daemon.h"
#include "live/daemon_job.h"
#include "live/kineto.h"
#include "live/metrics_http.h"

#include <poll.h>
#include <sys/socket.h>

#define DAEMON_GUESTS 256
#define DAEMON_ENDED_JOBS 100 /* whose rings are kept */
#define DAEMON_EXPECTED 64

/* A connection that has not said what it is, or a client. */
struct guest {
	int fd;
	struct ucred peer;
	int64_t since_ns;
	struct buf out; /* packets of an answer, one behind the other */
	size_t sent;
};

/* Who was announced to join, and as what. */
struct expected {
	uint32_t pid;
	uint32_t uid;
	int64_t until_ns;
	char name[JOBS_NAME];
};

struct daemon {
	const struct daemon_options *options;
	struct mem *mem;
	int64_t since_ns; /* time of day */
	char socket_path[JOBS_SOCKET_PATH], folder[JOBS_PATH];
	int listener, socket_lock, folder_lock;
	struct daemon_job **jobs;
	size_t job_count, job_cap;
	uint32_t last_id;
	uint64_t rings_limit; /* bytes of all rings: what saved minutes leave */
	struct guest guests[DAEMON_GUESTS];
	size_t guest_count;
	struct expected expected[DAEMON_EXPECTED];
	size_t expected_count;
	char our_cgroup[1024];
	struct kineto kineto;
	bool has_kineto;
	int64_t kineto_look_ns, meter_ns, limit_ns;
	struct host_meter host;
	struct nvml nvml;
	bool has_nvml;
	struct metrics_http http;
	int wait_ms;
	int64_t beat_ns; /* when stacks are to be sampled next */
	struct pollfd *fds;
	size_t fd_cap;
};

void daemon_tell(const struct daemon *d, const char *format, ...) OW_PRINTF(2, 3);

/* daemon_jobs.c */
ow_status daemon_load_jobs(struct daemon *d, struct error *err);
void daemon_release_jobs(struct daemon *d);
/* A process has come with its region: it joins its job, or a new one. */
void daemon_welcome(struct daemon *d, int fd, const struct ucred *peer, int memory);
/* The job that a process is of by its family; or NULL. */
struct daemon_job *daemon_job_of(const struct daemon *d, const struct ucred *peer, uint32_t pid);
/* Shares of the disk, and jobs that have ended long ago. */
void daemon_keep_limits(struct daemon *d);

/* daemon_guest.c */
void daemon_accept(struct daemon *d);
void daemon_hear_guests(struct daemon *d, const struct pollfd *fds, size_t count);
bool daemon_may_see(const struct ucred *peer, uint32_t uid);

/* daemon_answer.c: puts the answer into guest->out. */
void daemon_answer(struct daemon *d, struct guest *guest, const struct jobs_request *request);

/* daemon_metrics.c: the page; false without memory. */
void daemon_measure(struct daemon *d);
bool daemon_metrics_page(void *arg, struct buf *page);

#endif
