/*
 * live_functions.h: which functions running processes spend their time in, as a list that changes while it is looked at
 * (`opwatch top`). A thread of ours samples: Python functions of Python processes, native functions of others. Older
 * samples count less and less. The processes are neither stopped nor changed.
 */
#ifndef LIVE_FUNCTIONS_H
#define LIVE_FUNCTIONS_H

#include "base/error.h"
#include "base/mem.h"

#include <sys/types.h>

#define LIVE_FUNCTION_NAME 128
#define LIVE_FUNCTIONS_PROCESSES 64u /* largest number of processes that are sampled at a time */

struct live_function {
	char name[LIVE_FUNCTION_NAME];
	char place[LIVE_FUNCTION_NAME]; /* file and line, or the library; may be empty */
	/* Shares of the last seconds: 1 means one thread for all of that time. */
	double own;   /* share of samples in which the function was the innermost one */
	double total; /* share of samples whose stack contained the function */
	double cpu;   /* part of `own` on a processor */
};

struct live_functions;

ow_status live_functions_start(struct live_functions **f, struct mem *mem, struct ow_error *err);
void live_functions_stop(struct live_functions *f);
/* Samples these processes from now on; others are forgotten. Does not block. */
void live_functions_choose(struct live_functions *f, const pid_t *pids, size_t count);
/* Returns the functions with the most own time, at most `cap`. `why`: what could not be sampled, or empty. */
size_t live_functions_read(struct live_functions *f, struct live_function *to, size_t cap,
			   char why[256]);

#endif
