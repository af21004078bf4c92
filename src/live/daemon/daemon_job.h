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

#define DISK_RING_FILES 16 /* that a full ring has, about */

struct disk_ring {
	struct mem *mem;
	char folder[JOBS_PATH];
	uint32_t first, last; /* numbers; 0: no files */
	uint64_t *sizes;      /* of first to last; what grows has 0 */
	size_t cap;
	uint64_t bytes; /* of all but the one that grows */
};

/* Opens an existing folder and finds the files in it. */
ow_status disk_ring_open(struct disk_ring *ring, struct mem *mem, const char *folder,
			 struct ow_error *err);
void disk_ring_release(struct disk_ring *ring);
void disk_ring_path(const struct disk_ring *ring, uint32_t number, char *path, size_t size);
/* The next file, which is the caller's to make; the one before has `size` bytes and grows no more. */
ow_status disk_ring_next(struct disk_ring *ring, uint64_t size, char *path, size_t path_size,
			 struct ow_error *err);
/* The last one grows no more. */
void disk_ring_rest(struct disk_ring *ring, uint64_t size);
/* Drops the oldest files until all, and `more` bytes, are within the limit; never the last. Returns how many. */
uint32_t disk_ring_trim(struct disk_ring *ring, uint64_t more, uint64_t limit);
/* Removes all files, and the folder. */
void disk_ring_remove(struct disk_ring *ring);

/* A process that was recorded; its start time distinguishes it from another process with the same pid. */
struct known_process {
	uint32_t pid, number;
	int64_t monotonic_ns;
};

struct daemon_job {
	struct mem *mem;
	struct job_info info; /* kept up to date by job_describe */
	enum identity_kind kind;
	char key[192];
	bool this_boot;
	struct disk_ring ring;
	struct recording
		recordings[2]; /* one is written; the other one is begun when that is full */
	unsigned current;
	struct collector_quota *quota; /* of its user */
	struct collector collector;
	bool open; /* the recording and the collector are */
	uint64_t records_before, dropped_before;
	uint64_t limit; /* bytes on disk */
	uint32_t last_number;
	struct known_process *known;
	size_t known_count, known_cap;
	int64_t quiet_ns; /* monotonic: since when it has no process; 0: it has */
	int64_t retry_ns; /* when a new file may be tried again */
	char saved_framework[JOBS_NAME];
	struct job_meter meter;
	struct stack_feed *stacks; /* while they are sampled; see daemon_stacks.c */
	uint32_t stacks_hz;
	int64_t stacks_until_ns; /* steady clock */
	const char *writer;
	ow_line_fn message;
	void *message_arg;
};

#define BOOT_ID 40
void boot_id(char to[BOOT_ID]);

/* Makes the folder, DIR/ID.NAME. */
ow_status job_make(struct daemon_job *job, struct mem *mem, const char *dir, uint32_t id,
		   const struct job_identity *identity, uint32_t uid, uint32_t pid,
		   struct ow_error *err);
/* Takes up what a daemon before left in the folder. */
ow_status job_load(struct daemon_job *job, struct mem *mem, const char *folder,
		   struct ow_error *err);
/* Writes what is left; processes go on. */
void job_release(struct daemon_job *job);
/* Ends it, and removes its files. */
void job_remove(struct daemon_job *job);

/* Rewrites the file beside the ring that describes the job (job_file.c). */
ow_status job_save_about(struct daemon_job *job, struct ow_error *err);

/* False without memory. */
bool job_know(struct daemon_job *job, const struct known_process *process);
/* 0 when it is not known. */
uint32_t job_number_of(const struct daemon_job *job, uint32_t pid, int64_t monotonic_ns);
/* Whether a running process with this pid belongs to the job. */
bool job_has_process(const struct daemon_job *job, uint32_t pid);
/* The connection is taken over in any case. */
ow_status job_join(struct daemon_job *job, int fd, uint32_t pid, int memory, struct ow_error *err);
/* Writes what is due, begins new files, drops old ones, sees the end. */
void job_tick(struct daemon_job *job, int64_t now_ns);
/* Bytes that the job uses on disk, including those that will be written soon. */
uint64_t job_bytes(const struct daemon_job *job);
/* Everything that waits goes to the file. */
void job_flush(struct daemon_job *job);
/* Its Python stacks are sampled until then. */
void job_want_stacks(struct daemon_job *job, uint32_t hz, int64_t until_ns);
/* Samples when it is time; when it is next. */
int64_t job_tick_stacks(struct daemon_job *job, int64_t now_ns);
void job_close_stacks(struct daemon_job *job);
void job_describe(struct daemon_job *job);

#endif
