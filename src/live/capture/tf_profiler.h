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
	const char *address; /* HOST:PORT, [::1]:6009 */
	const char *path;    /* /package.Service/Method */
	struct str message;
	int64_t connect_ns;	  /* how long to wait for a connection */
	int64_t timeout_ns;	  /* and for the whole answer, from then on */
	size_t answer_limit;	  /* bytes */
	bool (*go_on)(void *arg); /* asked about five times a second; NULL: always */
	void *arg;
};

/* The answer's message becomes the content of `answer`. OW_E_IO: no connection, silence, an answer that ends too early, or
 * one that says that the call failed; OW_E_FORMAT: no gRPC; OW_E_LIMIT: too long; OW_E_INTERRUPTED. */
ow_status grpc_call(const struct grpc_call *call, struct buf *answer, struct ow_error *err);

/* "[::1]:6009" or "host:6009" into its parts, which are cut to the rooms. */
bool grpc_split_address(const char *address, char host[256], char port[16]);

struct tf_profiler_request {
	const char *address;	      /* HOST:PORT */
	int64_t for_ns;		      /* what the job records */
	int64_t wait_ns;	      /* and how long its answer may take beyond that */
	const char *folder, *session; /* where servers that save the profile themselves put it */
	size_t answer_limit;
	bool (*go_on)(void *arg);
	void *arg;
};

struct tf_profiler_answer {
	struct buf bytes;  /* the caller's, initialised: the whole answer */
	struct str xspace; /* in it; without pointer when the job has saved it */
};

ow_status tf_profiler_ask(const struct tf_profiler_request *request,
			  struct tf_profiler_answer *answer, struct ow_error *err);

#endif
