/*
 * inputs.h: whether a file that is about to be written is one of those that are read. Called before anything is
 * opened for writing; it looks at what is named, not into directories.
 */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include "cli/command.h"

/* Tells it, and returns true, when writing there would destroy what the command line asks to read. */
bool overwrites_input(const struct args *args, const char *path);

#endif
