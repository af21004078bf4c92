/*
 * collector_int.h: shared by collector.c (records, files), collector_check.c (hooks, counters, threads), collector_socket.c (connections and messages)
 * and launch.c (which processes still run). Others include collector.h.
 */
#ifndef LIVE_COLLECTOR_INT_H
#define LIVE_COLLECTOR_INT_H

#include "live/record/collector.h"

#define TEXT_WORDS (RING_TEXT_BYTES / 8 / 64)
#define STEP_NAMES 8
#define QUEUES 64

/* Processor time of a thread at its last reading. */
struct thread_schedule {
	uint64_t running_ns, waiting_ns;
	int64_t seen_ns; /* time of the reading; 0: never */
	bool written;	 /* the values of seen_ns are written */
};

struct ring_seen {
	struct ring_view view;
	uint32_t tid;
	char name[16];
	struct thread_schedule schedule;
	uint64_t scheduled_at; /* number of the next record at the last reading */
	uint32_t taken;	       /* number of records in the segment that is being written */
};

struct queue_seen {
	uint32_t stream, name, device;
};

struct collected {
	uint32_t number;
	int fd; /* connection; -1 after it was closed */
	uint32_t pid;
	size_t known; /* index + 1 in the collector's list; 0: not in it */
	struct process_view view;
	uint64_t *texts; /* one bit per text that was written */
	struct ring_seen *rings;
	size_t ring_count, ring_cap;
	uint32_t hook_states[RING_HOOKS];
	uint64_t counts[RING_COUNTERS];
	uint64_t io_seen;		 /* number of bytes read, as the kernel counts them */
	struct thread_schedule schedule; /* scheduling of its first thread */
	bool ended, over_quota;
	uint64_t records;
	/* Names that mark steps, and their counts. */
	uint32_t step_names[STEP_NAMES];
	uint8_t step_marks[STEP_NAMES];
	size_t step_count;
	struct step_meter steps;
	struct queue_seen queues[QUEUES];
	size_t queue_count;
};

void collector_report(struct collector *c, const char *format, ...) OW_PRINTF(2, 3);

/* Functions of collector.c: */
/* Records that the ring dropped and that no sum includes yet. */
uint64_t ring_seen_dropped(const struct ring_seen *ring);
void collector_add_text(struct collector *c, struct collected *p, enum live_text_kind kind,
			uint32_t number, uint32_t text);
/* Writes a name that a record uses, once per file. */
void collector_need_name(struct collector *c, struct collected *p, uint64_t number);
bool collector_flush(struct collector *c);

void collector_introduce(struct collector *c, struct collected *p);
void collector_add_place(struct collector *c, struct collected *p, const struct ring_seen *ring);

/* Functions of collector_check.c: */
void collector_check_process(struct collector *c, struct collected *p, int64_t now);
void collector_check_all(struct collector *c);
/* Writes the thread's current name in the system if it has changed. */
void collector_name_thread(struct collector *c, struct collected *p, struct ring_seen *ring);

/* Functions of collector_socket.c: */
void collector_receive_one(struct collector *c, struct collected *p);
/* Accepts a connection. False if memory runs out; *more: whether there was one. */
bool collector_accept(struct collector *c, bool *more);
void collector_remove_socket(struct collector *c);

#endif
