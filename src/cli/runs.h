/*
 * runs.h: which files of a command line are one run, and what the runs are called; for commands that compare runs
 * (sql, ask, export, push). A directory or a pattern is one run. Plain files are one run each, unless they belong
 * together: parts of one TensorFlow model (a graph with its run metadata, op log, checkpoint), or a series
 * whose names differ in numbers only. --one-run, --run NAME=PATH,… and one --name for all decide by hand; several --name give names in order.
 */
#ifndef CLI_RUNS_H
#define CLI_RUNS_H

#include "cli/command.h"

struct run_files {
	const char *name;
	const char **paths;
	size_t count;
};

/* In the arena of the arguments. False (and said on stderr) when that is not possible. */
bool runs_group(struct args *args, struct run_files **runs, size_t *count);

struct runs {
	struct ow_run *items;
	size_t count;
};

/* Opens the files [first, …) as runs; says what went wrong and returns false with the exit code. */
bool runs_load(struct args *args, size_t first, struct runs *runs, int *exit_code);
void runs_free(struct runs *runs);
/* EXIT_DAMAGED when --strict was given and one of them is damaged. */
int runs_finish_code(const struct args *args, const struct runs *runs, ow_status status);

#endif
