/*
 * stack_feed.h: Python stacks of the processes that a collector records, into the same recording: sampled from outside
 * (sampler.h) between two turns of the collector, written as blocks of their own (wire/live_file.h). Frames and stacks
 * are written once and named by numbers.
 *
 * Only processes that have connected are sampled: what they start connects by itself.
 */
#ifndef LIVE_STACK_FEED_H
#define LIVE_STACK_FEED_H

#include "live/collector.h"
#include "live/sampler.h"
#include "live/stack_names.h"

struct feed_thread;

struct stack_feed {
	struct mem *mem;
	struct collector *c;
	struct sampler sampler;
	int64_t period_ns, now_ns, watched_ns;
	uint64_t dice;
	struct stack_names table;
	uint32_t file;		     /* of the collector, that the table is of */
	struct feed_thread *threads; /* 0 is not used */
	size_t thread_count, thread_cap;
	uint64_t late, unknown;
	bool no_memory; /* no more samples are taken */
};

/* Sets the collector's beat. */
void stack_feed_open(struct stack_feed *f, struct mem *mem, struct collector *c, uint32_t hz);
/* Before the collector is closed: tells in the recording what was dropped. */
void stack_feed_close(struct stack_feed *f);

#endif
