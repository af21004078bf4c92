/*
 * sample_functions.h: sampled functions with what they cost themselves (samples in which they are the leaf)
 * and in total (samples in which they occur, once however often they call themselves). A function is known
 * by its name and module. Used by view_functions.c and by the verdict.
 */
#ifndef ANALYZE_SAMPLE_FUNCTIONS_H
#define ANALYZE_SAMPLE_FUNCTIONS_H

#include "analyze/samples.h"

struct function {
	uint32_t frame; /* one of its frames */
	struct str name;
	int64_t self, total;
	uint32_t seen; /* stack that was counted last */
};

struct functions {
	const struct model *m;
	struct sample_choice choice;
	struct arena *scratch;
	struct function *items; /* from 1 */
	size_t count, cap;
	struct map map;
	uint32_t *of_frame;
	int64_t all;
};

/* Adds up the samples of f->choice, which the caller made; the arena too. Release in any case. */
ow_status sample_functions_make(struct functions *f, struct error *err);
void sample_functions_release(struct functions *f);
/* Sorts items 1…: by their own cost, or by the total. */
void sample_functions_sort(struct functions *f, bool by_totals);

#endif
