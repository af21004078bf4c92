/*
 * scratch.h: a file for the time of a command, in a folder of its own that nobody else may look into. Whatever ends the
 * program, but SIGKILL, takes both away.
 */
#ifndef CLI_SCRATCH_H
#define CLI_SCRATCH_H

#include "base/arena.h"

struct scratch {
	char *folder, *path; /* NULL: there is none */
};

/* The folder, and the path of a file that the caller makes; says what went wrong. */
bool scratch_make(struct scratch *scratch, struct arena *arena, const char *name);
/* If it is there. */
void scratch_drop(struct scratch *scratch);

#endif
