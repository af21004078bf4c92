/*
 * daemon_job.h: one job of the daemon: its collector, its ring on disk, and a file `about` beside the ring. From
 * these a restarted daemon takes the job up again. Processes keep the numbers that they have in the ring, so
 * records that were written twice are recognised.
 *
 * disk_ring: the files of a ring, numbered recordings in a folder. The oldest are removed to stay below a limit.
 * It knows only names and sizes. A removed file stays readable for programs that have it open.
 */
#ifndef LIVE_DAEMON_JOB_H
#define LIVE_DAEMON_JOB_H

#include "base/error.h"
#include "base/mem.h"
#include "live/daemon/job_identity.h"
#include "live/daemon/jobs.h"
#include "live/proc/metrics.h"
#include "live/record/collector.h"

#include <sys/types.h>

#define DISK_RING_FILES 16 /* approximate number of files of a full ring */

struct disk_ring {
	struct mem *mem;
	char folder[JOBS_PATH];
	uint32_t first, last; /* numbers of the first and the last file; 0: no files */
	uint64_t *sizes;      /* sizes of the files from first to last; the growing file has 0 */
	size_t cap;
	uint64_t bytes; /* size of all files except the growing one */
};

/* Opens an existing folder and finds the files in it. */
ow_status disk_ring_open(struct disk_ring *ring, struct mem *mem, const char *folder,
			 struct ow_error *err);
void disk_ring_release(struct disk_ring *ring);
void disk_ring_path(const struct disk_ring *ring, uint32_t number, char *path, size_t size);
/* Starts the next file, which the caller creates; the previous file has `size` bytes and no
 * longer grows. */
ow_status disk_ring_next(struct disk_ring *ring, uint64_t size, char *path, size_t path_size,
			 struct ow_error *err);
/* Marks the last file as complete. */
void disk_ring_rest(struct disk_ring *ring, uint64_t size);
/* Removes the oldest files until all files and `more` bytes are within the limit, but never the last one.
 * Returns the number. */
uint32_t disk_ring_trim(struct disk_ring *ring, uint64_t more, uint64_t limit);
/* Removes all files and the folder. */
void disk_ring_remove(struct disk_ring *ring);

/* A process that was recorded; its start time distinguishes it from another process with the same pid. */
struct known_process {
	uint32_t pid, number;
	int64_t monotonic_ns;
};

struct daemon_job {
	struct mem *mem;
	struct job_info info; /* description of the job, kept up to date by job_describe */
	enum identity_kind kind;
	char key[192];
	bool this_boot;
	struct disk_ring ring;
	/* one recording is written; the other one is begun when that is full */
	struct recording recordings[2];
	unsigned current;
	struct collector_quota *quota; /* memory quota of the job's user */
	struct collector collector;
	bool open; /* the recording and the collector are open */
	uint64_t records_before, dropped_before;
	uint64_t limit; /* largest size on disk */
	uint32_t last_number;
	struct known_process *known;
	size_t known_count, known_cap;
	int64_t quiet_ns; /* monotonic time since which the job has no process; 0: it has one */
	int64_t retry_ns; /* when a new file may be tried again */
	char saved_framework[JOBS_NAME];
	struct job_meter meter;
	struct stack_feed *stacks; /* sampler of stacks while it is active; see daemon_stacks.c */
	uint32_t stacks_hz;
	int64_t stacks_until_ns; /* time of the steady clock until which stacks are sampled */
	const char *writer;
	ow_line_fn message;
	void *message_arg;
};

#define BOOT_ID 40
void boot_id(char to[BOOT_ID]);

/* Creates the job's folder, DIR/ID.NAME. */
ow_status job_make(struct daemon_job *job, struct mem *mem, const char *dir, uint32_t id,
		   const struct job_identity *identity, uint32_t uid, uint32_t pid,
		   struct ow_error *err);
/* Continues a job that an earlier daemon left in the folder. */
ow_status job_load(struct daemon_job *job, struct mem *mem, const char *folder,
		   struct ow_error *err);
/* Writes the remaining data; the processes continue. */
void job_release(struct daemon_job *job);
/* Ends a job and removes its files. */
void job_remove(struct daemon_job *job);

/* Rewrites the file beside the ring that describes the job (job_file.c). */
ow_status job_save_about(struct daemon_job *job, struct ow_error *err);

/* Remembers a process; false if memory runs out. */
bool job_know(struct daemon_job *job, const struct known_process *process);
/* Returns the number of a process; 0 if it is not known. */
uint32_t job_number_of(const struct daemon_job *job, uint32_t pid, int64_t monotonic_ns);
/* Whether a running process with this pid belongs to the job. */
bool job_has_process(const struct daemon_job *job, uint32_t pid);
/* Adds a process to the job; takes over the connection in any case. */
ow_status job_join(struct daemon_job *job, int fd, uint32_t pid, int memory, struct ow_error *err);
/* Writes data that is due, begins new files, removes old ones, and detects the end. */
void job_tick(struct daemon_job *job, int64_t now_ns);
/* Bytes that the job uses on disk, including those that will be written soon. */
uint64_t job_bytes(const struct daemon_job *job);
/* Writes all buffered data to the file. */
void job_flush(struct daemon_job *job);
/* Samples the job's Python stacks until that time. */
void job_want_stacks(struct daemon_job *job, uint32_t hz, int64_t until_ns);
/* Samples stacks if it is time; returns the time of the next sample. */
int64_t job_tick_stacks(struct daemon_job *job, int64_t now_ns);
void job_close_stacks(struct daemon_job *job);
void job_describe(struct daemon_job *job);

#endif
