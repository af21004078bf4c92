/*
 * v8_profile.h: a CPU profile of V8 that comes in pieces: Chrome's traces hold one in the arguments of the events Profile and ProfileChunk,
 * or whole in CpuProfile. import_cpuprofile.c reads them as it reads a .cpuprofile; chrome/trace_samples.c collects the pieces.
 */
#ifndef IMPORT_V8_PROFILE_H
#define IMPORT_V8_PROFILE_H

#include "import/importer.h"

struct v8_profile;

/* NULL if memory runs out. */
struct v8_profile *v8_profile_new(struct import_ctx *ctx);
void v8_profile_free(struct v8_profile *profile);
/* Adds the nodes, samples and times in the arguments of one event. */
ow_status v8_profile_take(struct v8_profile *profile, struct str args);
/* Adds the samples to the track in the model, with notes; base_ns is added to their times. */
ow_status v8_profile_finish(struct v8_profile *profile, track_id track, int64_t base_ns);

#endif
