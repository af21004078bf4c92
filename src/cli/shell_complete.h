/*
 * shell_complete.h: completion in the shell behind the command: options in both spellings, their values, names of files.
 * Commands are completed by shell.c, which has their table.
 */
#ifndef CLI_SHELL_COMPLETE_H
#define CLI_SHELL_COMPLETE_H

#include "cli/lineedit.h"

/* `before` is the line up to the cursor and has a blank. As tfprof, only options of the original. */
void shell_complete_option(bool tfprof, struct str before, struct completions *out);

#endif
