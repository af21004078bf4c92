/*
 * runtime_dir.h: where the daemon of a user has its socket and its files. Folders below /tmp belong to whoever makes
 * them first: they are used only when they are this user's own and closed to others.
 */
#ifndef LIVE_RUNTIME_DIR_H
#define LIVE_RUNTIME_DIR_H

#include "base/error.h"

#include <sys/types.h>

/* $XDG_RUNTIME_DIR/opwatch or, without that, /tmp/opwatch-UID; of root /run/opwatch. Nothing is made. */
void runtime_dir(char *to, size_t size);
/* The places where a client looks for a socket, one after the other: only that of $OPWATCH_SOCKET when that is set. False
 * after the last; empty when there is nothing. */
bool runtime_socket(unsigned index, char *to, size_t size);
/* That of the user's daemon, or what $OPWATCH_SOCKET says, whether it is there or not. */
void runtime_usual_socket(char *to, size_t size);
/* Where rings go: /var/tmp/opwatch-UID, of root /var/lib/opwatch. */
void runtime_data_dir(char *to, size_t size);

/* Makes the folder, unless it is there; then it must be this user's, no link, and writable to nobody else. */
ow_status runtime_make_dir(const char *path, mode_t mode, struct error *err);

#endif
