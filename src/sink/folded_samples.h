/* folded_samples.h: sampled stacks as folded lines; called by sink_folded.c. */
#ifndef SINK_FOLDED_SAMPLES_H
#define SINK_FOLDED_SAMPLES_H

#include "sink/sink.h"

ow_status folded_samples_write(struct result *result, const struct out *out, struct error *err);

#endif
