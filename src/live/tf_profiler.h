/*
 * tf_profiler.h: asks the profiler service of a TensorFlow 2 or JAX job for a trace (tensorflow.ProfilerService/Profile).
 * Three generations of servers answer in three ways: with the XSpace itself, with it as a file among others, or by
 * saving it where they run. Written after their definitions; not tried against a real job.
 */
#ifndef LIVE_TF_PROFILER_H
#define LIVE_TF_PROFILER_H

#include "live/grpc_call.h"

struct tf_profiler_request {
	const char *address;	      /* HOST:PORT */
	int64_t for_ns;		      /* what the job records */
	int64_t wait_ns;	      /* and how long its answer may take beyond that */
	const char *folder, *session; /* where servers that save it themselves put it */
	size_t answer_limit;
	bool (*go_on)(void *arg);
	void *arg;
};

struct tf_profiler_answer {
	struct buf bytes;  /* the caller's, initialised: the whole answer */
	struct str xspace; /* in it; without pointer when the job has saved it */
};

ow_status tf_profiler_ask(const struct tf_profiler_request *request,
			  struct tf_profiler_answer *answer, struct error *err);

#endif
