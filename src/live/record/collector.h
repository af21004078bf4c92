/*
 * collector.h: writes the records of running processes into a recording. Processes connect to a socket and pass
 * the descriptors of their shared memory (wire/own/ring.h); from then on the collector reads it without their
 * help. Records stay in their rings until they are written, so a killed collector loses nothing.
 *
 * One thread. To record one job, open it with its own socket (collector_open) and call collector_turn in a loop.
 * The daemon has one socket for all jobs and a collector per job (collector_init, collector_adopt), and waits for
 * all of them at once (collector_poll, collector_receive, collector_tick).
 *
 * step_meter: the duration of steps, counted while slices pass by. A step ends with the optimizer's, or else
 * begins with the wait for a batch, as import/interpret/producer_own.c finds them in a recording. Only the last
 * steps are kept.
 */
#ifndef LIVE_COLLECTOR_H
#define LIVE_COLLECTOR_H

#include "base/base.h"
#include "base/str.h"
#include "live/record/recording.h"
#include "wire/own/ring.h"

#include <poll.h>
#include <sys/types.h>

/* The memory that a recorded process shares.
 *
 * The process may belong to any user and may write anything there at any time. So values are copied before they are checked
 * and used, sizes are those of the file and not those that the memory claims, and memory that could be cut short is
 * refused. */

struct ring_view {
	struct ring *ring;
	size_t bytes;
	uint32_t capacity; /* number of records */
	uint32_t number;
	uint64_t next; /* number of the first unread record */
};

/* Maps a ring; the caller keeps the descriptor. */
ow_status ring_view_open(struct ring_view *v, int fd, struct ow_error *err);
void ring_view_close(struct ring_view *v);
/* Frees the memory of a ring that no thread writes to, although the job still has it mapped. */
void ring_view_empty(struct ring_view *v);
/* Returns the number of unread records; 0 if the ring claims more than it can hold. */
uint32_t ring_view_pending(const struct ring_view *v);
/* Copies the first `count` unread records. */
void ring_view_copy(const struct ring_view *v, struct ring_record *to, uint32_t count);
/* Marks records as read: the job may overwrite them. */
void ring_view_commit(struct ring_view *v, uint32_t count);

struct process_view {
	struct ring_process *process;
	size_t bytes;
	uint32_t text_bytes;
};

/* Opens the shared memory of a process; OW_E_UNSUPPORTED for another version, of which only
 * `state` may be set. */
ow_status process_view_open(struct process_view *v, int fd, struct ow_error *err);
void process_view_close(struct process_view *v);
/* Copies a text to `to` (RING_TEXT_MAX bytes); empty if the number is invalid. */
struct str process_view_text(const struct process_view *v, uint32_t number, char *to);

/* The collector. */

#define STEP_METER_LAST 32

enum step_mark { STEP_MARK_NONE, STEP_MARK_OPTIMIZER, STEP_MARK_LOADER, STEP_MARKS };

struct step_marks {
	uint64_t count;	 /* number of marks */
	int64_t last_ns; /* time of the last mark */
	int64_t durations[STEP_METER_LAST];
};

struct step_meter {
	struct step_marks marks[STEP_MARKS];
};

enum step_mark step_mark_of(struct str name);
/* Counts a mark: an optimizer where it ends, a loader where it begins. */
void step_meter_see(struct step_meter *m, enum step_mark mark, int64_t start_ns, int64_t dur_ns);
/* Returns the number of finished steps. */
uint64_t step_meter_count(const struct step_meter *m);
/* Returns the median duration of the last steps; 0 if there are none. */
int64_t step_meter_median(const struct step_meter *m);

/* Does not wait. Gives the length (cut to `size`), or 0 when there is none now; *closed: there will be none any more.
 * *fd is the descriptor, the caller's, or -1. */
size_t packet_receive(int socket, void *to, size_t size, int *fd, bool *closed);

struct collected; /* a process (private to the collector) */

/* Resources of the daemon that the processes of one user may use, in all jobs together. */
struct collector_quota {
	uint32_t uid;
	size_t rings, bytes, processes;		       /* current use */
	size_t most_rings, most_bytes, most_processes; /* limits; 0: none */
};

/* A process that has connected; its start time distinguishes it from another process with the same pid. */
struct collector_known {
	uint32_t pid, number;
	uint64_t monotonic_ns;
	uint32_t texts_lost, rings_lost; /* losses that are already in the totals */
};

struct collector_totals {
	uint64_t records, dropped, texts_lost, rings_lost;
	uint32_t processes, refused;
	uint64_t failed_writes;
};

struct collector {
	struct mem *mem;
	struct recording *recording;
	int listener;
	char socket_path[108], folder[96];
	struct collected **processes;
	size_t count, cap;
	struct collector_known *known; /* also ended processes; they may connect again */
	size_t known_count, known_cap;
	struct collector_quota *quota; /* quota of the user; NULL: none */
	uint32_t last_number;
	uint32_t files; /* how often the recording changed to another file */
	int64_t last_flush_ns, last_look_ns, last_schedule_ns, failed_ns;
	int64_t failing_ns;   /* time since which writing fails */
	bool attached;	      /* the processes ran before the recording */
	size_t segment_bytes; /* approximate size of one segment; 0: everything that waits */
	size_t turn;	      /* index of the process whose records are taken first */
	struct collector_totals totals;
	struct ow_error failure; /* error of the last write, until one succeeds */
	/* Called by collector_turn at next_beat_ns of the steady clock; returns the next time. NULL:
	 * never. */
	int64_t (*beat)(void *arg, int64_t now_ns);
	void *beat_arg;
	int64_t next_beat_ns;
	int look_ms;	    /* time until the next look at the rings */
	ow_line_fn message; /* receives messages for people, one line each; or NULL */
	void *message_arg;
};

/* Prepares a collector without a socket. */
void collector_init(struct collector *c, struct mem *mem, struct recording *recording);
/* Creates the socket in a directory that only the user may enter. */
ow_status collector_open(struct collector *c, struct mem *mem, struct recording *recording,
			 struct ow_error *err);
/* For root's collector: lets processes of that user connect, too. */
void collector_allow_user(struct collector *c, uid_t user);
/* Reads the remaining records, asks running processes to stop recording, and removes the socket. */
void collector_close(struct collector *c);
/* Closes the collector while processes continue: another collector will take them over. */
void collector_leave(struct collector *c);

/* Waits until the next action is due, a message arrives, or `fd` (unless -1) is readable; then reads and writes.
 * Returns false when memory runs out. */
bool collector_turn(struct collector *c, int fd);
/* Reads all records and writes them. */
void collector_drain(struct collector *c);
/* Returns the number of a process in the recording; 0 if it is not connected. */
uint32_t collector_number(const struct collector *c, pid_t pid);
/* Returns the number of connected processes. */
size_t collector_live(const struct collector *c);
/* Asks all processes to remove their hooks, and waits until they have, up to the given time. */
bool collector_stop(struct collector *c, int64_t patience_ns);

/* Functions for the daemon. */

/* Takes over a process that has connected and sent hello with its region `memory`, which the caller keeps; the
 * connection is taken over. `number` is the process's earlier number in this recording, or 0. False if memory runs
 * out. */
bool collector_adopt(struct collector *c, int fd, uint32_t pid, uint32_t number, int memory);
/* Reports a process whose recorder records nothing. */
void collector_refuse(struct collector *c, uint32_t pid, const struct ring_message *message);
/* Fills in the descriptors to wait for: c->count of them. */
void collector_poll(const struct collector *c, struct pollfd *fds);
/* Handles the results of poll; `count` is that of collector_poll. */
void collector_receive(struct collector *c, const struct pollfd *fds, size_t count);
/* Writes data that is due. */
void collector_tick(struct collector *c);
/* Returns the fill level of the fullest ring, in parts of 256. */
unsigned collector_fill(const struct collector *c);
/* Returns after how many milliseconds to read the rings again, from their fill level and the last wait. */
int collector_next_look_ms(unsigned fill, int before_ms);
/* Asks a process, or with 0 all, to remove the hooks; a process that has done so disconnects. */
void collector_ask_stop(struct collector *c, uint32_t pid);
/* The recording continues in another file: names and processes are written again. */
void collector_begin_file(struct collector *c);

/* Adds the drops of the rings to the totals once, so that the next collector does not count them
 * again. */
void collector_count_dropped(struct collector *c);

struct collected_info {
	uint32_t number, pid, parent;
	int32_t rank; /* rank of the process; -1: none */
	uint64_t records;
	uint64_t dropped; /* number of dropped records that are not in the totals */
	struct step_meter steps;
	char torch[64]; /* version of PyTorch, if it is loaded */
	char step_marker[RING_MARKER_MAX];
	bool opencl;
};
/* Fills in information on the process with that index, below c->count. False if it has not sent
 * its description. */
bool collector_info(const struct collector *c, size_t index, struct collected_info *info);

#endif
