/*
 * arguments.h: the shapes and types that operators ran with. run.c counts them while it reads a run; rows.c finds those
 * that only one side has.
 */
#ifndef DIFF_ARGUMENTS_H
#define DIFF_ARGUMENTS_H

#include "diff/run.h"

/* Reads the arguments of the operators of one run. */
struct argument_reader {
	struct model *m;
	struct diff_run *run;
	char *text;    /* text of one operator's arguments */
	uint32_t left; /* number of reads that are still allowed */
};

/* `scratch` must live as long as the reader. */
void arguments_init(struct argument_reader *r, struct model *m, struct diff_run *run,
		    struct arena *scratch);
/* Counts the arguments of an operator, which is an event. */
ow_status arguments_count(struct argument_reader *r, uint32_t operator, struct argument_list * list,
			  struct ow_error *err);
/* Called after a step: the step counts if the arguments of all its operators were read, or if it is the first one. */
void arguments_end_step(struct argument_reader *r);

bool arguments_equal(const struct diff_arguments *a, const struct diff_arguments *b);
/* Adds arguments to a list, or increases the count of equal ones; false if memory runs out. */
bool arguments_add(struct arena *arena, struct argument_list *list, const struct diff_arguments *a);

#endif
