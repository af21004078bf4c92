/*
 * step_stats.h: the records of one traced step, as TensorFlow's Timeline needs them: devices, the runs of nodes in the
 * order of the source, and their outputs. Plain data between the importer that decodes the records
 * (import/tensorflow/run/traced_steps.c) and the output that draws them (step_timeline.c).
 */
#ifndef MODEL_STEP_STATS_H
#define MODEL_STEP_STATS_H

#include "base/arena.h"
#include "base/str.h"

struct stats_output {
	struct str allocator;
	int64_t requested;	/* bytes */
	struct str description; /* the tensor's description as text; empty when not asked for */
};

struct stats_node {
	struct str name, label;
	int64_t start_us, dur_us; /* all_start_micros, all_end_rel_micros */
	struct stats_output *outputs;
	uint32_t output_count;
};

struct stats_device {
	struct str name;
	struct stats_node *nodes;
	size_t count, cap;
};

struct step_stats {
	int64_t step;
	struct stats_device *devices;
	size_t count, cap;
};

#endif
