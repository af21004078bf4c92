/*
 * processors.h: what the thread that takes the steps of an input got of the processors: time on one, and time ready and waiting
 * for one. From the counter PROCESSOR_COUNTER, which recordings of running programs have. Used by phases.c: computing without
 * recorded calls is host code and not idle time, and waiting for a processor is a phase of its own.
 */
#ifndef ANALYZE_PROCESSORS_H
#define ANALYZE_PROCESSORS_H

#include "analyze/steps/phases.h"

struct processor_span {
	int64_t begin, end;
	/* parts of the time in which threads ran, and waited for a processor */
	double running, waiting;
};

/* Processor use of one input. */
struct processor_use {
	struct processor_span *items; /* spans, sorted by time */
	size_t count;
};

/* Finds the processor use of each source; the result is in the arena. */
ow_status processors_find(const struct model *m, struct arena *arena, struct processor_use **uses,
			  struct ow_error *err);

/*
 * Divides the time of a step [from, to) again. The wait for a processor is taken first from the time without recorded
 * calls, then from host code, in proportion and as far as the thread did not run, then from other calls, because it is
 * unknown where the wait was. Running time beyond the recorded calls is host code.
 */
void processors_apply(const struct processor_use *use, int64_t from, int64_t to, bool has_device,
		      struct phase_sums *sums);

#endif
