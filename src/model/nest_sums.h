/*
 * nest_sums.h: runs of events added up per op and step, for nest.c, which stores them as rows of op_step. Each thread
 * has its own. Where there are few ops and steps for so many events, the place of a sum is told by its numbers alone:
 * events that follow each other are of one step, so that their sums are close together. Else sums are hashed.
 */
#ifndef MODEL_NEST_SUMS_H
#define MODEL_NEST_SUMS_H

#include "model/builder.h"

struct sum {
	uint32_t op, step; /* op 0 = empty slot */
	int64_t runs, cpu, accelerator, first, last;
};

struct sums {
	struct mem *mem;
	struct sum *slots;
	size_t slot_count, used;
	uint32_t ops, steps; /* as many of each; ops 0: hashed */
};

/* Allocates nothing yet. */
void sums_init(struct sums *s, const struct model *m);
/* How many of the threads are worth their own sums: fresh memory for many of them takes longer than adding up. */
unsigned sums_threads(const struct model *m, unsigned threads);
void sums_release(struct sums *s);
/* The slow path of sums_find. */
struct sum *sums_find_slot(struct sums *s, uint32_t op, uint32_t step);

/* The sum of an op in a step; NULL without memory. */
OW_ALWAYS_INLINE struct sum *sums_find(struct sums *s, uint32_t op, uint32_t step)
{
	if (OW_LIKELY(s->ops && s->slots)) {
		struct sum *sum = &s->slots[(size_t)step * s->ops + op];

		if (OW_LIKELY(sum->op))
			return sum;
	}
	return sums_find_slot(s, op, step);
}

/* That sum will be asked for soon. */
OW_ALWAYS_INLINE void sums_prefetch(const struct sums *s, uint32_t op, uint32_t step)
{
	if (OW_LIKELY(s->ops && s->slots))
		__builtin_prefetch(&s->slots[(size_t)step * s->ops + op], 1);
}

/* Saturates. */
OW_ALWAYS_INLINE int64_t sums_add_times(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Adds all of the one to the other; false without memory. */
bool sums_add_all(struct sums *to, const struct sums *from) OW_MUST_CHECK;
/* As rows, those of an op next to each other, or added to the rows that are there (of other sources, or of a first
 * freeze). The sums are no longer of use then. */
void sums_store(struct sums *s, struct builder *b);

#endif
