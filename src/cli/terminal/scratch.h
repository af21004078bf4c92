/*
 * scratch.h: files that must not stay behind. A signal sets `interrupted`, the work is undone, and then the signal does
 * what it does to other programs; signals that were ignored stay ignored.
 */
#ifndef CLI_SCRATCH_H
#define CLI_SCRATCH_H

#include "base/arena.h"

/* signals_catch catches the signals that end the program; signals_caught returns whether one came. */

void signals_catch(void);
bool signals_caught(void);
/* Restores the default action of the signals. */
void signals_release(void);
/* Ends the program by the signal that was caught; returns if there was none. */
void signals_pass_on(void);

/* From here to signals_guard_end a signal that ends the program removes the half-written `file`; with a `folder`, which must
 * be ours, also the complete file and the folder. signals_catch and other handlers replace this. */
void signals_guard_cut(const char *file, const char *folder);
void signals_guard_end(void);

/* A temporary file for the duration of a command, in a folder that only this user may read. Every end of the program
 * but SIGKILL removes both. */

struct scratch {
	char *folder, *path; /* paths; NULL: not created */
};

/* Creates the folder, and the path of a file that the caller writes. Reports errors. */
bool scratch_make(struct scratch *scratch, struct arena *arena, const char *name);
/* Removes file and folder, if they were created. */
void scratch_drop(struct scratch *scratch);

/* A recording or profile for standard output (-o -). It cannot be written sequentially, so it is made in a temporary
 * file first and copied when it is complete. */

struct args;

struct piped {
	/* temporary file; not created if the recording goes to a file of the user */
	struct scratch file;
};

bool is_standard_output(const char *path);
/* Replaces *path by a temporary file when it is standard output. Returns EXIT_GOOD, or reports the problem: a
 * recording cannot be written to a terminal. */
int piped_begin(struct piped *piped, const struct args *args, const char **path);
/* If `code` is EXIT_GOOD, copies the file to standard output. Removes the file and returns the exit code. */
int piped_end(struct piped *piped, int code);
/* Returns the name of the output for messages. */
const char *piped_name(const struct piped *piped, const char *path);

#endif
