/*
 * collector.h: takes what recorded processes have to say and writes it into a recording. Processes connect to a
 * socket and hand over their memory (wire/ring.h); from then on it is read without their doing. Records stay in
 * their rings until they are written, so that a collector that is killed loses nothing that it had taken.
 *
 * One thread. The caller runs collector_turn in a loop, and may wait for a descriptor of its own with it.
 */
#ifndef LIVE_COLLECTOR_H
#define LIVE_COLLECTOR_H

#include "live/recording.h"
#include "live/ring_view.h"

#include <sys/types.h>

struct collected; /* a process */

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
	uint32_t last_number;
	int64_t last_flush_ns, last_look_ns, failed_ns;
	bool attached; /* processes ran before */
	struct collector_totals totals;
	struct error failure; /* of the last write, while it has not worked since */
	ow_line_fn message;   /* what people should know, a line each; or NULL */
	void *message_arg;
};

/* Makes the socket, in a directory of its own that only the user may enter. */
ow_status collector_open(struct collector *c, struct mem *mem, struct recording *recording,
			 struct error *err);
/* Reads what is left, tells processes that go on to stop, and removes the socket. */
void collector_close(struct collector *c);

/* Waits until it is time, or something comes, or `fd` (unless -1) is readable; reads and writes what is due. Returns
 * false when there is no memory. */
bool collector_turn(struct collector *c, int fd);
/* Reads and writes all that is there. */
void collector_drain(struct collector *c);
/* Processes that are connected. */
size_t collector_live(const struct collector *c);
/* Asks all to take their hooks out, and waits until they have, or for so long. */
bool collector_stop(struct collector *c, int64_t patience_ns);

#endif
