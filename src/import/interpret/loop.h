/*
 * loop.h: finds the loop in a list of calls of one thread: which call begins each repetition. It computes on numbers
 * only; interpret_loops.c calls it for recorded calls and for lines of sampled stacks. It finds nothing if the order of
 * calls does not repeat, or repeats at random times: no steps are better than wrong ones.
 */
#ifndef IMPORT_INTERPRET_LOOP_H
#define IMPORT_INTERPRET_LOOP_H

#include "base/arena.h"

struct loop_call {
	int64_t begin, end;
	uint32_t key; /* number of the called function: 0 up to the number of keys */
};

struct loop_calls {
	const struct loop_call *list; /* sorted by begin; no call is inside another */
	size_t count;
	uint32_t keys;
};

struct loop_rules {
	uint32_t least; /* least number of repetitions */
	/* least number of repetitions if the loop consists of a single call */
	uint32_t least_alone;
	int64_t shortest_ns; /* shortest median repetition */
	/* largest distance from the median, as a share of it, for three quarters of the repetitions */
	double spread;
	double spread_alone;
	/* least share of the time from the first call to the last that the loop takes */
	double covered;
};

struct loop {
	uint32_t key;	 /* key of the call that begins a repetition */
	uint32_t steps;	 /* number of repetitions; 0 = no loop was found */
	uint32_t length; /* number of calls in most repetitions */
	int64_t *starts; /* start of each repetition, and the end of the last: steps + 1 entries */
	bool *usual;	 /* for each repetition: whether it has the calls that most have */
	int64_t median_ns;
};

/* Finds the loop; false if memory runs out. */
bool loop_find(struct arena *arena, const struct loop_calls *calls, const struct loop_rules *rules,
	       struct loop *out) OW_MUST_CHECK;

#endif
