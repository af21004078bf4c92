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

struct feed_thread;

/* Equal rows have one number. */
struct feed_table {
	struct map map;
	uint32_t (*keys)[4]; /* 0 is not used */
	size_t count, cap;
};

struct stack_feed {
	struct mem *mem;
	struct collector *c;
	struct sampler sampler;
	int64_t period_ns, now_ns, watched_ns;
	uint64_t dice;
	struct arena arena;
	struct map text_map;
	struct str *texts; /* 0 is not used */
	size_t text_count, text_cap;
	struct feed_table frames, stacks;
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
