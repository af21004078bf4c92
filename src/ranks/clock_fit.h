/*
 * clock_fit.h: how far the clock of one machine is from that of another, from collectives that both took part in. Called by clock.c with the pairs
 * of two workers; knows nothing of workers. The certain bounds come from causality alone: no rank leaves an all-reduce before the last has come, no
 * receive ends before its send began. The estimate comes from the ends, which are nearly simultaneous, and lies in the certain region.
 */
#ifndef RANKS_CLOCK_FIT_H
#define RANKS_CLOCK_FIT_H

#include "base/arena.h"
#include "base/error.h"

#define CLOCK_PIECES_MOST 4
#define CLOCK_REJECTED_MOST 0.2
#define CLOCK_PAIRS_LEAST 3
#define CLOCK_DRIFT_MOST 1e-3 /* no clock of a computer drifts faster */

enum pair_direction {
	PAIR_MUTUAL, /* both must have come before any leaves */
	PAIR_A_TO_B, /* b's end comes after a's start */
	PAIR_B_TO_A
};

/* Times of each on its own clock. */
struct clock_pair {
	int64_t a_start, a_end, b_start, b_end;
	uint8_t direction;
	bool rejected; /* set when the pair contradicts the others */
	uint8_t piece; /* set: which piece it is of */
};

/* What has to be added to b's times to get a's: offset + drift × (t - origin), from `from` on. */
struct clock_span {
	int64_t from, origin; /* b's time */
	int64_t until; /* end of its last pair: from here to the next span's `from` either may hold */
	double offset, drift;
	double low, high; /* the offset at the origin is certainly between these */
	double likely;	  /* ±, 95 % */
};

struct clock_fit {
	struct clock_span spans[CLOCK_PIECES_MOST]; /* by time; several where a clock was set */
	unsigned span_count;			    /* 0: impossible */
	size_t used, rejected;
	const char *why;  /* when it is impossible */
	bool contradicts; /* because too many pairs contradict each other */
};

/* `resolution_ns`: of the times of both. `middle` is b's time at which offsets are wanted. Pairs are sorted by b's end. */
ow_status clock_fit(struct clock_pair *pairs, size_t count, int64_t resolution_ns, int64_t middle,
		    struct mem *mem, struct clock_fit *fit, struct ow_error *err);

#endif
