/* grpc_socket.h: a connection that never blocks for long; used by grpc_call.c alone. */
#ifndef LIVE_GRPC_SOCKET_H
#define LIVE_GRPC_SOCKET_H

#include "live/grpc_call.h"

/* A connected socket that does not block. */
ow_status grpc_connect(const struct grpc_call *call, int *fd, struct error *err);
/* Waits for poll events until the time `until_ns`. OW_E_IO without a message: the time is over. */
ow_status grpc_wait(const struct grpc_call *call, int fd, short events, int64_t until_ns,
		    struct error *err);

#endif
