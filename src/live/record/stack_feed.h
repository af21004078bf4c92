/*
 * stack_feed.h: Python stacks of the processes that a collector records, in the same recording: sampled from
 * outside (sampler.h) between two turns of the collector, written as blocks of their own (wire/own/opw.h).
 * Frames and stacks are written once and named by numbers.
 *
 * Only connected processes are sampled; the processes that they start connect themselves. What belongs to them is read by
 * a side thread: a job whose files or memory do not answer loses its own samples, and the collector goes on.
 */
#ifndef LIVE_STACK_FEED_H
#define LIVE_STACK_FEED_H

#include "live/record/collector.h"
#include "live/pystack/sampler.h"
#include "live/record/recording.h"

struct feed_thread;
struct feed_side;

struct stack_feed {
	struct mem *mem;
	struct collector *c;
	struct feed_side *side; /* sampler and its thread; NULL: none */
	int64_t period_ns, now_ns, watched_ns;
	uint64_t dice;
	struct stack_names table;
	uint32_t file;		     /* file number of the collector that the table belongs to */
	struct feed_thread *threads; /* threads; item 0 is not used */
	size_t thread_count, thread_cap;
	uint64_t late, unknown, unanswered;
	bool no_memory; /* no more samples are taken */
};

/* Opens a feed and sets the collector's beat. */
void stack_feed_open(struct stack_feed *f, struct mem *mem, struct collector *c, uint32_t hz);
/* Closes the feed before the collector: writes notes about dropped samples. */
void stack_feed_close(struct stack_feed *f);

#endif
