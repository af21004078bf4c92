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

/* ---- the memory that a recorded process shares ----
 *
 * The process may belong to any user and may write anything there at any time. So values are copied before they are checked
 * and used, sizes are those of the file and not those that the memory claims, and memory that could be cut short is
 * refused. */

struct ring_view {
	struct ring *ring;
	size_t bytes;
	uint32_t capacity; /* records */
	uint32_t number;
	uint64_t next; /* the first record that was not read */
};

/* Maps a ring; the descriptor stays the caller's. */
ow_status ring_view_open(struct ring_view *v, int fd, struct ow_error *err);
void ring_view_close(struct ring_view *v);
/* No thread writes to it any more: its memory is freed, although the job still has it mapped. */
void ring_view_empty(struct ring_view *v);
/* Records that wait; none when the ring claims to hold more than it can. */
uint32_t ring_view_pending(const struct ring_view *v);
/* Copies the first `count` that wait. */
void ring_view_copy(const struct ring_view *v, struct ring_record *to, uint32_t count);
/* They are safe: the job may write over them. */
void ring_view_commit(struct ring_view *v, uint32_t count);

struct process_view {
	struct ring_process *process;
	size_t bytes;
	uint32_t text_bytes;
};

/* OW_E_UNSUPPORTED for memory of another version; then only `state` may be set. */
ow_status process_view_open(struct process_view *v, int fd, struct ow_error *err);
void process_view_close(struct process_view *v);
/* A copy of a text, in `to` of RING_TEXT_MAX bytes; empty when the number is none. */
struct str process_view_text(const struct process_view *v, uint32_t number, char *to);

/* ---- the collector ---- */

#define STEP_METER_LAST 32

enum step_mark { STEP_MARK_NONE, STEP_MARK_OPTIMIZER, STEP_MARK_LOADER, STEP_MARKS };

struct step_marks {
	uint64_t count;	 /* marks */
	int64_t last_ns; /* time of the last one */
	int64_t durations[STEP_METER_LAST];
};

struct step_meter {
	struct step_marks marks[STEP_MARKS];
};

enum step_mark step_mark_of(struct str name);
/* An optimizer counts where it ends, a loader where it begins. */
void step_meter_see(struct step_meter *m, enum step_mark mark, int64_t start_ns, int64_t dur_ns);
/* Steps that are over. */
uint64_t step_meter_count(const struct step_meter *m);
/* Median of the last ones; 0 when there is none. */
int64_t step_meter_median(const struct step_meter *m);

/* Does not wait. Gives the length (cut to `size`), or 0 when there is none now; *closed: there will be none any more.
 * *fd is the descriptor, the caller's, or -1. */
size_t packet_receive(int socket, void *to, size_t size, int *fd, bool *closed);

struct collected; /* a process */

/* What the processes of one user may take of the daemon, in all jobs together. */
struct collector_quota {
	uint32_t uid;
	size_t rings, bytes, processes;		       /* now */
	size_t most_rings, most_bytes, most_processes; /* 0: no limit */
};

/* A process that has connected; its start time distinguishes it from another process with the same pid. */
struct collector_known {
	uint32_t pid, number;
	uint64_t monotonic_ns;
	uint32_t texts_lost, rings_lost; /* that are in the totals */
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
	struct collector_known *known; /* also processes that are gone; they may connect again */
	size_t known_count, known_cap;
	struct collector_quota *quota; /* NULL: none */
	uint32_t last_number;
	uint32_t files; /* how often the recording became another file */
	int64_t last_flush_ns, last_look_ns, last_schedule_ns, failed_ns;
	int64_t failing_ns;   /* since when writing fails */
	bool attached;	      /* processes ran before */
	size_t segment_bytes; /* records of one segment, about; 0: all that wait */
	size_t turn;	      /* whose records are taken first */
	struct collector_totals totals;
	struct ow_error failure; /* of the last write, while it has not worked since */
	/* Called by collector_turn at next_beat_ns of the steady clock; gives the next time. NULL: not at all. */
	int64_t (*beat)(void *arg, int64_t now_ns);
	void *beat_arg;
	int64_t next_beat_ns;
	int look_ms;	    /* until the next look at the rings */
	ow_line_fn message; /* what people should know, a line each; or NULL */
	void *message_arg;
};

/* Without a socket. */
void collector_init(struct collector *c, struct mem *mem, struct recording *recording);
/* Makes the socket, in a directory of its own that only the user may enter. */
ow_status collector_open(struct collector *c, struct mem *mem, struct recording *recording,
			 struct ow_error *err);
/* Root's collector: a process of that user may connect, too. */
void collector_allow_user(struct collector *c, uid_t user);
/* Reads what is left, asks processes that still run to stop recording, and removes the socket. */
void collector_close(struct collector *c);
/* The same, but processes go on as they are: another collector will take them. */
void collector_leave(struct collector *c);

/* Waits until it is time, or something comes, or `fd` (unless -1) is readable; reads and writes what is due. Returns
 * false when there is no memory. */
bool collector_turn(struct collector *c, int fd);
/* Reads all records and writes them. */
void collector_drain(struct collector *c);
/* What a process is called in the recording; 0 when it is not connected. */
uint32_t collector_number(const struct collector *c, pid_t pid);
/* Processes that are connected. */
size_t collector_live(const struct collector *c);
/* Asks all to take their hooks out, and waits until they have, or for so long. */
bool collector_stop(struct collector *c, int64_t patience_ns);

/* ---- for the daemon ---- */

/* A process that has connected and said hello with its region `memory`, which stays the caller's; the connection is
 * taken over. `number` is what it was called in this recording before, or 0. False without memory. */
bool collector_adopt(struct collector *c, int fd, uint32_t pid, uint32_t number, int memory);
/* Reports a process whose recorder records nothing. */
void collector_refuse(struct collector *c, uint32_t pid, const struct ring_message *message);
/* Descriptors to wait for: c->count of them. */
void collector_poll(const struct collector *c, struct pollfd *fds);
/* Handles what poll reported; `count` is that of collector_fill. */
void collector_receive(struct collector *c, const struct pollfd *fds, size_t count);
/* Writes what is due. */
void collector_tick(struct collector *c);
/* The fullest ring, in parts of 256. */
unsigned collector_fill(const struct collector *c);
/* After how many milliseconds to read the rings again, given how full they were and how long the last wait was. */
int collector_next_look_ms(unsigned fill, int before_ms);
/* Asks a process, or with 0 all, to take the hooks out; a process that has done so disconnects. */
void collector_ask_stop(struct collector *c, uint32_t pid);
/* The recording continues in another file: names and processes are written again. */
void collector_begin_file(struct collector *c);

/* Drops of the rings so far go into the totals, once: the next collector does not count them again. */
void collector_count_dropped(struct collector *c);

struct collected_info {
	uint32_t number, pid, parent;
	int32_t rank; /* -1: none */
	uint64_t records;
	uint64_t dropped; /* that are not in the totals */
	struct step_meter steps;
	char torch[64]; /* version of PyTorch, when it is loaded */
	char step_marker[RING_MARKER_MAX];
	bool opencl;
};
/* Of the process with that index, below c->count. False when it has not said hello. */
bool collector_info(const struct collector *c, size_t index, struct collected_info *info);

#endif
