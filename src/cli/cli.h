/* cli.h: the two faces of the program, and what a command of opwatch is. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/base.h"

/* Exit codes: 0 something usable was read, 1 nothing was or the work failed, 2 wrong usage, 3 damage
 * with --strict. */
enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_DAMAGED = 3 };

int tfprof_main(int argc, char **argv);
void tfprof_print_help(void);

int opwatch_main(int argc, char **argv);

#endif
