/*
 * runs.h: the files of the command line as runs, for commands that compare or collect several. Every FILE is
 * a run of its own, called by its name; one --name makes one run of all of them, and as many --name as there
 * are files give each its name.
 */
#ifndef CLI_RUNS_H
#define CLI_RUNS_H

#include "cli/command.h"

struct runs {
	struct ow_run *items;
	size_t count;
};

/* Opens the files [first, …); says what went wrong and returns false with the exit code. */
bool runs_load(struct args *args, size_t first, struct runs *runs, int *exit_code);
void runs_free(struct runs *runs);
/* EXIT_DAMAGED when --strict was given and one of them is damaged. */
int runs_finish_code(const struct args *args, const struct runs *runs, ow_status status);

#endif
