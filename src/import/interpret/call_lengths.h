/*
 * call_lengths.h: finds calls that take a hundred times as long as similar calls, a few times at most: they initialise
 * a context, a library, or a module that is loaded when its first kernel starts. Used for calls of traces
 * (interpret_calls.c) and for ops of TensorFlow's profiles (import/tensorflow/tf_phases.c).
 */
#ifndef IMPORT_CALL_LENGTHS_H
#define IMPORT_CALL_LENGTHS_H

#include "base/base.h"

#define SINGLE_CALL_NS 1000000 /* shorter calls are never initialisation */
#define SINGLE_CALL_FACTOR 100 /* a single call takes this many times the mean of the others */
#define SINGLE_CALL_LIKE 10    /* calls longer than a tenth of a call count as similar to it */
#define SINGLE_CALL_MOST 3     /* a single call may have at most this many similar calls */

/* Calls of one name, or all calls: number, sum and the longest. */
struct call_lengths {
	uint64_t count;
	double sum_ns;
	uint64_t short_count; /* number of calls shorter than SINGLE_CALL_NS */
	double short_ns;
	int64_t longest[SINGLE_CALL_MOST + 1]; /* the longest calls, descending */
};

static inline void call_lengths_add(struct call_lengths *c, int64_t dur)
{
	c->count++;
	c->sum_ns += (double)dur;
	if (dur < SINGLE_CALL_NS) {
		c->short_count++;
		c->short_ns += (double)dur;
	}
	for (unsigned i = 0; i <= SINGLE_CALL_MOST; i++)
		if (dur > c->longest[i]) {
			int64_t other = c->longest[i];

			c->longest[i] = dur;
			dur = other;
		}
}

/* Returns whether calls of this length are few and far longer than the others. */
static inline bool call_is_single(const struct call_lengths *c, int64_t dur)
{
	double others_ns = c->sum_ns;
	unsigned like = 0;

	while (like <= SINGLE_CALL_MOST && c->longest[like] >= dur / SINGLE_CALL_LIKE)
		others_ns -= (double)c->longest[like++];
	return like <= SINGLE_CALL_MOST && c->count > like &&
	       others_ns / (double)(c->count - like) * SINGLE_CALL_FACTOR <= (double)dur;
}

/* Whether a call is far longer than the short ones, however many long ones there are. */
static inline bool call_is_long(const struct call_lengths *c, int64_t dur)
{
	return c->short_count && dur >= SINGLE_CALL_NS &&
	       c->short_ns / (double)c->short_count * SINGLE_CALL_FACTOR <= (double)dur;
}

#endif
