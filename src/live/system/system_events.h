/*
 * system_events.h: samples of all processors by the kernel (perf_event_open): what runs, by the software clock, which
 * every machine has, and each thread that leaves its processor, with both stacks and a part of the user's stack in bytes.
 * Also new processes, programs, mappings. Records of all processors come in the order of time.
 */
#ifndef LIVE_SYSTEM_EVENTS_H
#define LIVE_SYSTEM_EVENTS_H

#include "base/error.h"
#include "base/mem.h"

#include <linux/perf_event.h>

#define SYSTEM_RECORD_MAX ((size_t)24 << 10)

enum system_kind { SYSTEM_CLOCK, SYSTEM_SWITCHES, SYSTEM_KINDS };

struct system_ring {
	int fd;
	void *page; /* control page of the kernel, followed by the ring; NULL: none */
	size_t size;
	uint64_t head, tail; /* positions in this turn */
	bool has_next;
	int64_t next_ns;
	unsigned char *next; /* buffer for a record */
};

struct system_events {
	struct mem *mem;
	struct system_ring *rings; /* ring of processor i: i * SYSTEM_KINDS + kind */
	size_t ring_count;
	uint32_t cpus;	  /* number of sampled processors */
	bool no_waits;	  /* thread switches are not sampled */
	char why[160];	  /* reason why they are not sampled */
	uint64_t damaged; /* number of implausible bytes in rings */
};

/* Opens the events; OW_E_PERMISSION with advice, or OW_E_UNSUPPORTED. If switches cannot be sampled,
 * no_waits is set. */
ow_status system_events_open(struct system_events *e, struct mem *mem, uint32_t hz, bool waits,
			     struct ow_error *err);
/* Stops the events; data in the rings can still be read. */
void system_events_stop(struct system_events *e);
void system_events_close(struct system_events *e);
/* Waits until a ring is half full, a signal arrives, or the time is over. */
void system_events_wait(const struct system_events *e, int timeout_ms);
typedef void (*system_take_fn)(void *arg, enum system_kind kind,
			       const struct perf_event_header *record, int64_t ts_ns);
/* Reads the events that have arrived so far. */
void system_events_read(struct system_events *e, system_take_fn take, void *arg);

#endif
