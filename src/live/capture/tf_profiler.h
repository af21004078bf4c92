/*
 * tf_profiler.h: asks the profiler service of a TensorFlow 2 or JAX job for a trace
 * (tensorflow.ProfilerService/Profile). Three generations of servers answer in three ways: with the XSpace itself,
 * with it as one file of several, or by saving it where they run. Written after their definitions; never run
 * against a real job.
 */
#ifndef LIVE_TF_PROFILER_H
#define LIVE_TF_PROFILER_H

#include "base/buf.h"
#include "base/error.h"

struct grpc_call {
	const char *address; /* server address: HOST:PORT or [::1]:6009 */
	const char *path;    /* method: /package.Service/Method */
	struct str message;
	int64_t connect_ns;  /* how long to wait for a connection */
	int64_t timeout_ns;  /* how long to wait for the whole answer after that */
	size_t answer_limit; /* largest answer in bytes */
	/* called about five times a second, returns false to cancel; NULL: never cancel */
	bool (*go_on)(void *arg);
	void *arg;
};

/* The answer's message becomes the content of `answer`. OW_E_IO: no connection, silence, an answer that ends too early, or
 * one that says that the call failed; OW_E_FORMAT: no gRPC; OW_E_LIMIT: too long; OW_E_INTERRUPTED. */
ow_status grpc_call(const struct grpc_call *call, struct buf *answer, struct ow_error *err);

/* Splits "[::1]:6009" or "host:6009" into its parts, which are cut to the sizes of the arrays. */
bool grpc_split_address(const char *address, char host[256], char port[16]);

struct tf_profiler_request {
	const char *address;	      /* server address HOST:PORT */
	int64_t for_ns;		      /* how long the job records */
	int64_t wait_ns;	      /* how long its answer may take beyond that */
	const char *folder, *session; /* where servers that save the profile themselves put it */
	size_t answer_limit;
	bool (*go_on)(void *arg);
	void *arg;
};

struct tf_profiler_answer {
	struct buf bytes;  /* the whole answer, in a buffer that the caller initialised */
	struct str xspace; /* XSpace within `bytes`; its pointer is NULL if the job saved it */
};

ow_status tf_profiler_ask(const struct tf_profiler_request *request,
			  struct tf_profiler_answer *answer, struct ow_error *err);

#endif
