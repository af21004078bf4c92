/*
 * runs.h: the files of a command line as runs, and runs on a server, for the commands that compare runs (sql, ask, export,
 * push).
 */
#ifndef CLI_RUNS_H
#define CLI_RUNS_H

#include "cli/command.h"

struct run_files {
	const char *name;
	const char **paths;
	size_t count;
};

/* Groups the files into runs, in the arena of the arguments. Reports an error and returns false. */
bool runs_group(struct args *args, struct run_files **runs, size_t *count);

struct runs {
	struct ow_run *items;
	size_t count;
};

/* Opens the files [first, …) as runs. Reports an error and returns false with the exit code. */
bool runs_load(struct args *args, size_t first, struct runs *runs, int *exit_code);
void runs_free(struct runs *runs);
/* Returns EXIT_DAMAGED if --strict was given and one of the runs is damaged. */
int runs_finish_code(const struct args *args, const struct runs *runs, ow_status status);

/* Connects to the server at the address, with --password-file or the environment. Reports an error and
 * returns NULL. Ctrl-C cancels its calls. */
ow_remote *remote_open(const struct args *args, const char *address, int *exit_code);
/* Runs a statement on the server of --on and shows the rows as --json, --csv, --to and --out choose;
 * returns the exit code. */
int remote_run(struct args *args, const char *text);

#endif
