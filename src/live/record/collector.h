/*
 * collector.h: takes what recorded processes have to say and writes it into a recording. Processes connect to a
 * socket and hand over their memory (wire/ring.h); from then on it is read without their doing. Records stay in
 * their rings until they are written, so that a collector that is killed loses nothing that it had taken.
 *
 * One thread. Who records one job opens it with a socket of its own (collector_open) and runs collector_turn in a loop,
 * and may wait for a descriptor of its own with it. The daemon has one socket for all jobs and a collector per job
 * (collector_init, collector_adopt), and waits for all of them at once (collector_poll, collector_hear, collector_tick).
 */
#ifndef LIVE_COLLECTOR_H
#define LIVE_COLLECTOR_H

#include "live/recording.h"
#include "live/ring_view.h"
#include "live/step_meter.h"

#include <poll.h>
#include <sys/types.h>

struct collected; /* a process */

/* A process that has connected: with that clock at its begin it is no other one of the same pid. */
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
	struct collector_known *known; /* also those that have gone: they may come again */
	size_t known_count, known_cap;
	uint32_t last_number;
	uint32_t files; /* how often the recording became another file */
	int64_t last_flush_ns, last_look_ns, failed_ns;
	int64_t failing_ns;   /* since when writing fails */
	bool attached;	      /* processes ran before */
	size_t segment_bytes; /* records of one segment, about; 0: all that wait */
	size_t turn;	      /* whose records are taken first */
	struct collector_totals totals;
	struct error failure; /* of the last write, while it has not worked since */
	/* Called by collector_turn at next_beat_ns of the steady clock; gives the next time. NULL: not at all. */
	int64_t (*beat)(void *arg, int64_t now_ns);
	void *beat_arg;
	int64_t next_beat_ns;
	ow_line_fn message; /* what people should know, a line each; or NULL */
	void *message_arg;
};

/* Without a socket. */
void collector_init(struct collector *c, struct mem *mem, struct recording *recording);
/* Makes the socket, in a directory of its own that only the user may enter. */
ow_status collector_open(struct collector *c, struct mem *mem, struct recording *recording,
			 struct error *err);
/* Root's collector: a process of that user may connect, too. */
void collector_let_in(struct collector *c, uid_t user);
/* Reads what is left, tells processes that go on to stop, and removes the socket. */
void collector_close(struct collector *c);
/* The same, but processes go on as they are: another collector will take them. */
void collector_leave(struct collector *c);

/* Waits until it is time, or something comes, or `fd` (unless -1) is readable; reads and writes what is due. Returns
 * false when there is no memory. */
bool collector_turn(struct collector *c, int fd);
/* Reads and writes all that is there. */
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
/* Somebody whose recorder does not speak our version. */
void collector_refuse(struct collector *c, uint32_t pid, uint32_t version);
/* Descriptors to wait for: c->count of them. */
void collector_poll(const struct collector *c, struct pollfd *fds);
/* What came of that: as many as there were. */
void collector_hear(struct collector *c, const struct pollfd *fds, size_t count);
/* Writes what is due. */
void collector_tick(struct collector *c);
/* The fullest ring, in parts of 256. */
unsigned collector_fill(const struct collector *c);
/* Asks a process, or with 0 all, to take the hooks out; whoever has, hangs up. */
void collector_ask_stop(struct collector *c, uint32_t pid);
/* The recording is another file now: it is told again what files before it were told. */
void collector_begin_file(struct collector *c);

/* Drops of the rings so far go into the totals, once: whoever is the next collector does not count them again. */
void collector_count_dropped(struct collector *c);

struct collected_info {
	uint32_t number, pid, parent;
	int32_t rank; /* -1: none */
	uint64_t records;
	uint64_t dropped; /* that are not in the totals */
	struct step_meter steps;
	char torch[64]; /* version, when it is there */
	bool opencl;
};
/* Of the process with that index, below c->count. False when it has not said hello. */
bool collector_info(const struct collector *c, size_t index, struct collected_info *info);

#endif
