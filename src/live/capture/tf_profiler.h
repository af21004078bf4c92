/*
 * grpc_call.h: one call of a gRPC service without TLS: a message goes there, a message comes back. HTTP/2 is
 * libnghttp2's; without it every call is OW_E_UNSUPPORTED. Blocks, but asks now and then whether to go on.
 */
#ifndef LIVE_GRPC_CALL_H
#define LIVE_GRPC_CALL_H

#include "base/buf.h"
#include "base/error.h"

struct grpc_call {
	const char *address; /* HOST:PORT, [::1]:6009 */
	const char *path;    /* /package.Service/Method */
	struct str message;
	int64_t connect_ns;	  /* how long to wait for a connection */
	int64_t timeout_ns;	  /* and for the whole answer, from then on */
	size_t answer_limit;	  /* bytes */
	bool (*go_on)(void *arg); /* asked about five times a second; NULL: always */
	void *arg;
};

/* The answer's message becomes the content of `answer`. OW_E_IO: nobody there, silence, an answer that ends too early, or
 * one that says that the call failed; OW_E_FORMAT: no gRPC; OW_E_LIMIT: too long; OW_E_INTERRUPTED. */
ow_status grpc_call(const struct grpc_call *call, struct buf *answer, struct error *err);

/* "[::1]:6009" or "host:6009" into its parts, which are cut to the rooms. */
bool grpc_split_address(const char *address, char host[256], char port[16]);

#endif
