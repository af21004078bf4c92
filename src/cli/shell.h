/*
 * shell.h: the interactive shell, and the same grammar for lines from a pipe. Under the name tfprof
 * it speaks as the original does; as `opwatch shell` it has more commands.
 */
#ifndef CLI_SHELL_H
#define CLI_SHELL_H

#include "cli/show.h"

/* Runs until the end of input, quit or exit; returns the program's exit code. */
int shell_run(const struct show *show, const struct options *defaults);

#endif
