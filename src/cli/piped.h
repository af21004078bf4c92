/*
 * piped.h: a recording or profile that goes to standard output (-o -). It is not written from front to back, so it is made in a
 * folder of ours first (scratch.h), and copied when it is whole.
 */
#ifndef CLI_PIPED_H
#define CLI_PIPED_H

#include "cli/command.h"

struct piped {
	struct scratch file; /* none: it goes to a file of its own */
};

bool is_standard_output(const char *path);
/* Where to write what is to go to `*path`, which it replaces when that is standard output. EXIT_GOOD, or says what is wrong: a terminal is
 * no place for it. */
int piped_begin(struct piped *piped, const struct args *args, const char **path);
/* Copies it, when `code` is EXIT_GOOD, and takes the folder away. The code of the whole. */
int piped_end(struct piped *piped, int code);
/* For messages. */
const char *piped_name(const struct piped *piped, const char *path);

#endif
