/* packet.h: one packet of a UNIX socket of sequenced packets, with the descriptor that may come with it. */
#ifndef LIVE_PACKET_H
#define LIVE_PACKET_H

#include "base/base.h"

#include <sys/types.h>

/* Does not wait. Gives the length (cut to `size`), or 0 when there is none now; *closed: there will be none any more.
 * *fd is the descriptor, the caller's, or -1. */
size_t packet_receive(int socket, void *to, size_t size, int *fd, bool *closed);

#endif
