/* pprof_samples.h: the code view of sampled stacks as profile.proto; called by sink_pprof.c. */
#ifndef SINK_PPROF_SAMPLES_H
#define SINK_PPROF_SAMPLES_H

#include "sink/sink.h"

ow_status pprof_samples_write(struct result *result, const struct out *out, struct error *err);

#endif
