/*
 * step_timeline.h: traced steps as TensorFlow's timeline.Timeline draws them, byte for byte for one step:
 * generate_chrome_trace_format(show_dataflow, show_memory). Not a sink: it takes decoded records, not a
 * result.
 *
 * Of several steps the devices become one process each, numbers of tensors and arrows go on counting, and
 * a process "Steps" shows where each step begins and ends. All devices must be passed before the first
 * step is drawn, because their names come first:
 *
 *	for each step: step_timeline_devices(t, stats);
 *	for each step: step_timeline_draw(t, stats);
 *	step_timeline_finish(t);
 */
#ifndef SINK_STEP_TIMELINE_H
#define SINK_STEP_TIMELINE_H

#include "base/map.h"
#include "model/step_stats.h"
#include "base/writer.h"
#include "sink/sink.h"

struct timeline_device;

struct step_events {
	struct writer w;
	bool any; /* an event was written, so the next one needs a comma */
};

struct step_timeline {
	struct step_events events;
	struct mem *mem;
	struct arena arena; /* memory for the names of devices */
	bool show_dataflow, show_memory;
	void (*memory)(void *arg, struct str allocator, struct str tensor, int64_t ts_us,
		       int64_t bytes); /* called for each change of memory; may be NULL */
	void *memory_arg;
	struct map device_map;
	struct timeline_device *devices; /* index 0 is unused */
	size_t device_count, device_cap;
	uint32_t steps; /* steps passed so far; steps drawn so far */
	uint32_t drawn;
	int64_t next_pid, next_flow, first_tensor;
	struct ow_error *err;
};

void step_timeline_begin(struct step_timeline *t, struct mem *mem, const struct out *out,
			 bool show_dataflow, bool show_memory, struct ow_error *err);
void step_timeline_devices(struct step_timeline *t, const struct step_stats *stats);
void step_timeline_draw(struct step_timeline *t, const struct step_stats *stats);
/* Writes the end of the file and frees all memory; returns the status of the whole output. */
ow_status step_timeline_finish(struct step_timeline *t) OW_MUST_CHECK;

#endif
