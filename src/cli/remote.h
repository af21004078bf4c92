/*
 * remote.h: what commands share that talk to a server: opening it from the command line, and a statement
 * in its dialect shown as any other result. cmd_push.c, and the commands that take --on.
 */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "cli/command.h"

/* The server at the address, with --password-file or the environment; says what is wrong and returns NULL.
 * Ctrl-C ends what it does. */
ow_remote *remote_open(const struct args *args, const char *address, int *exit_code);

/* Runs a statement on the server of --on and shows the rows as --json, --csv, --to and --out say; returns
 * the exit code. */
int remote_run(struct args *args, const char *text);

#endif
