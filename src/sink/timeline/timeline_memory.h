/*
 * timeline_memory.h: the memory counters of tfprof's timeline (timeline_memory.c), and the writer that they share with its
 * owner, sink_timeline.c.
 *
 * The order of events is tfprof's: all process names and slices (list A), then all flows and counters (list B). The parts
 * therefore write in two passes, and no output is kept in memory.
 */
#ifndef SINK_TIMELINE_MEMORY_H
#define SINK_TIMELINE_MEMORY_H

#include "base/writer.h"
#include "sink/sink.h"

struct timeline {
	struct writer w;
	struct mem *mem;
	const struct tree *tree;
	const struct sink_options *options;
	struct ow_error *err;
	bool any;	/* an event was written, so the next one needs a comma */
	bool in_micros; /* times are in microseconds; false: in nanoseconds */
	int64_t next_pid;
};

/* Opens an event: writes the comma before it. The caller writes the object. */
void timeline_next(struct timeline *t);
/* Writes a process name made of two texts and a third that may be empty. */
void timeline_process(struct timeline *t, int64_t pid, const char *before, struct str name,
		      const char *after);
/* Writes a slice; its arguments are {name}, or {name, op} if with_op. */
void timeline_region(struct timeline *t, int64_t start, int64_t dur, int64_t pid, int64_t tid,
		     struct str name, bool with_op);
/* Writes a line for stdout. */
void timeline_stdout(struct timeline *t, struct str line);

/* An op whose memory is counted, in one step. */
struct tracked {
	op_id op;
	uint32_t op_step; /* row of the op in op_step */
};

struct timeline_memory;

/* Finds the devices that have a memory counter; `tracked` are ops in the order of the walk. */
ow_status timeline_memory_new(struct timeline *t, const struct tracked *tracked, uint32_t count,
			      struct timeline_memory **memory);
void timeline_memory_free(struct timeline_memory *memory);
/* timeline_memory_names writes the process names (list A); timeline_memory_counters writes the counters (list B) and
 * prints the peaks on stdout. */
void timeline_memory_names(struct timeline_memory *memory);
void timeline_memory_counters(struct timeline_memory *memory);

#endif
