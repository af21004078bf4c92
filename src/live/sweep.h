/*
 * sweep.h: folders of collectors that were killed and could not remove their socket. The next collector of the same user
 * removes them: those in which nobody listens any more, and that are no longer being made.
 */
#ifndef LIVE_SWEEP_H
#define LIVE_SWEEP_H

#include "base/base.h"

/* Below /tmp or what else the folders are made in. */
void sweep_sockets(const char *base);

#endif
