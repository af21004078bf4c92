/*
 * arguments.h: with which shapes and types operators ran. run.c counts them while it reads a run; rows.c finds those that only one side has.
 */
#ifndef DIFF_ARGUMENTS_H
#define DIFF_ARGUMENTS_H

#include "diff/run.h"

/* Reads the arguments of the operators of one run. */
struct argument_reader {
	struct model *m;
	struct diff_run *run;
	char *text;    /* of one operator */
	uint32_t left; /* reads that are still allowed */
};

/* `scratch` lives as long as the reader. */
void arguments_init(struct argument_reader *r, struct model *m, struct diff_run *run,
		    struct arena *scratch);
/* Counts the arguments of an operator, an event. */
ow_status arguments_count(struct argument_reader *r, uint32_t operator, struct argument_list * list,
			  struct ow_error *err);
/* A step was read: it counts if the arguments of all of its operators were, or if it is the first one. */
void arguments_end_step(struct argument_reader *r);

bool arguments_equal(const struct diff_arguments *a, const struct diff_arguments *b);
/* Adds to a list, or to the count of equal ones; false without memory. */
bool arguments_add(struct arena *arena, struct argument_list *list, const struct diff_arguments *a);

#endif
