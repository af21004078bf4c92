/*
 * trace_model.h: builds models as from traces, for unit tests of phases and of views based on them: sources with a
 * rank, tracks, classified slices, step markers and launches, one line each. Times are milliseconds.
 */
#ifndef SUPPORT_TRACE_MODEL_H
#define SUPPORT_TRACE_MODEL_H

#include "support/small_model.h"

#define MS 1000000

static inline source_id trace_source(struct small_model *s, const char *path, int32_t rank)
{
	source_id id = small_source(s, path, "trace");

	s->m->source.rank[id.v] = rank;
	return id;
}

/* Adds a track; device NULL = none. */
static inline track_id trace_track(struct small_model *s, source_id source, const char *name,
				   enum track_kind kind, const char *device)
{
	return builder_track(
		&s->b,
		&(struct track_row){ .name = builder_cstr(&s->b, name),
				     .kind = (uint8_t)kind,
				     .flags = TRACK_SLICES,
				     .source = source,
				     .device = device ? builder_device(&s->b, str_from(device))
						      : (device_id){ 0 } });
}

/* Adds a slice [begin, end) of an op called `name`. */
static inline event_id trace_slice(struct small_model *s, track_id track, const char *name,
				   enum event_phase phase, int64_t begin, int64_t end)
{
	str_id id = builder_cstr(&s->b, name);
	op_id op = builder_find_op(&s->b, id);

	if (!op.v)
		op = builder_new_op(&s->b, &(struct op_row){ .name = id, .type = id });
	return builder_add_event(&s->b, &(struct event_row){ .ts_ns = begin * MS,
							     .dur_ns = (end - begin) * MS,
							     .op = op,
							     .track = track,
							     .phase = (uint8_t)phase });
}

static inline void trace_step(struct small_model *s, source_id source, int64_t number,
			      int64_t begin, int64_t end)
{
	builder_add_window(&s->b, &(struct window_row){ .step = builder_step(&s->b, number),
							.source = source,
							.start_ns = begin * MS,
							.end_ns = end * MS });
}

static inline void trace_launch(struct small_model *s, event_id call, event_id work)
{
	builder_add_link(&s->b,
			 &(struct link_row){ .src = call, .dst = work, .kind = LINK_LAUNCH });
}

/* Links work of a device to the event that waits for it. */
static inline void trace_wait(struct small_model *s, event_id work, event_id waits)
{
	builder_add_link(&s->b, &(struct link_row){ .src = work, .dst = waits, .kind = LINK_WAIT });
}

/* Adds a step of 100 ms at `at` with known shares: compute 50, communication 8 (25 in all, 17 of them during compute),
 * device to host 4, host to device 6, input 12, synchronisation 12, launch 2, host 2, idle 4; the device is busy for
 * 68.
 */
static inline void trace_known_step(struct small_model *s, source_id source, track_id host,
				    track_id stream, track_id second, int64_t number, int64_t at)
{
	event_id calls[3], work[3];

	trace_step(s, source, number, at, at + 100);
	trace_slice(s, host, "DataLoader.__next__", PHASE_INPUT, at, at + 12);
	trace_slice(s, host, "aten::conv2d", PHASE_HOST, at + 12, at + 70);
	calls[0] = trace_slice(s, host, "cudaMemcpyAsync", PHASE_LAUNCH, at + 14, at + 16);
	calls[1] = trace_slice(s, host, "cudaLaunchKernel", PHASE_LAUNCH, at + 20, at + 22);
	calls[2] = trace_slice(s, host, "cudaLaunchKernel", PHASE_LAUNCH, at + 40, at + 42);
	trace_slice(s, host, "cudaDeviceSynchronize", PHASE_SYNCHRONISATION, at + 70, at + 96);
	work[0] = trace_slice(s, stream, "Memcpy HtoD", PHASE_HOST_TO_DEVICE, at + 16, at + 22);
	work[1] = trace_slice(s, stream, "conv_kernel", PHASE_COMPUTE, at + 22, at + 50);
	work[2] = trace_slice(s, stream, "gemm_kernel", PHASE_COMPUTE, at + 58, at + 80);
	trace_slice(s, stream, "Memcpy DtoH", PHASE_DEVICE_TO_HOST, at + 84, at + 88);
	trace_slice(s, second, "ncclKernel", PHASE_COMMUNICATION, at + 45, at + 70);
	for (int i = 0; i < 3; i++)
		trace_launch(s, calls[i], work[i]);
}

#endif
