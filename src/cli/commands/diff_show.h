/*
 * diff_show.h: a comparison of runs on the command line, for `opwatch diff` and `opwatch baseline check`: the lines above the table, the table in
 * the output that was asked for, and the exit codes that scripts rely on.
 */
#ifndef CLI_DIFF_SHOW_H
#define CLI_DIFF_SHOW_H

#include "cli/command.h"

/* Exit codes of `diff` in addition to the usual ones. */
enum { EXIT_NOT_COMPARABLE = 4, EXIT_BEYOND = 5, EXIT_INCONCLUSIVE = 6 };

/* One word of the command line as a run: a file, or a folder with the files of its ranks. NULL and a code on failure, which is reported. */
ow_profile *diff_load(struct args *args, const char *file, int *code);
/* Compares, prints the result and returns the exit code. The metric and the smallest frame come from args. */
int diff_show(struct args *args, ow_profile *const *base, size_t base_count,
	      ow_profile *const *other, size_t other_count, const struct ow_diff_options *wanted);
/* Returns the extra value that says whether two runs can be compared. */
bool diff_is_comparable(ow_profile *base, ow_profile *other);

#endif
