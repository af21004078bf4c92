/*
 * clock_fit.h: the offset of one machine's clock from another's, computed from collectives that
 * both took part in. clock.c calls it with the pairs of two workers; this file knows nothing of
 * workers. The certain bounds follow from causality: no rank leaves an all-reduce before the last
 * rank has entered it, no receive ends before its send began. The estimate uses the ends, which are
 * nearly simultaneous, and lies within the certain bounds.
 */
#ifndef RANKS_CLOCK_FIT_H
#define RANKS_CLOCK_FIT_H

#include "base/arena.h"
#include "base/error.h"

#define CLOCK_PIECES_MOST 4
#define CLOCK_REJECTED_MOST 0.2
#define CLOCK_PAIRS_LEAST 3
#define CLOCK_DRIFT_MOST 1e-3 /* larger drifts are rejected: no computer's clock drifts faster */

enum pair_direction {
	PAIR_MUTUAL, /* both sides must have entered the collective before either leaves it */
	PAIR_A_TO_B, /* b's end comes after a's start */
	PAIR_B_TO_A
};

/* One collective or message of two workers a and b; each time is on that worker's own clock. */
struct clock_pair {
	int64_t a_start, a_end, b_start, b_end;
	uint8_t direction;
	bool rejected; /* set when the pair contradicts the others */
	uint8_t piece; /* result: index of the span in clock_fit.spans that this pair belongs to */
};

/* A time of b plus (offset + drift × (t - origin)) is a time of a; holds from b's time `from`
 * on. */
struct clock_span {
	int64_t from, origin; /* b's time */
	/* end of the last pair of this span; between `until` and the next span's `from` either
	 * span may hold */
	int64_t until;
	double offset, drift;
	double low, high; /* the offset at the origin is certainly between these */
	double likely;	  /* 95 % confidence interval of the offset: ± this value */
};

struct clock_fit {
	/* sorted by time; more than one if a clock was set */
	struct clock_span spans[CLOCK_PIECES_MOST];
	unsigned span_count; /* 0: no fit is possible */
	size_t used, rejected;
	const char *why;  /* the reason why no fit is possible */
	bool contradicts; /* no fit is possible because too many pairs contradict each other */
};

/* Fits the pairs, which are sorted by b's end. `resolution_ns` is the resolution of both clocks.
 * `middle` is the time of b at which the caller needs the offset. */
ow_status clock_fit(struct clock_pair *pairs, size_t count, int64_t resolution_ns, int64_t middle,
		    struct mem *mem, struct clock_fit *fit, struct ow_error *err);

#endif
