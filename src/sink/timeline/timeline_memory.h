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
	bool in_micros; /* times are; else in nanoseconds */
	int64_t next_pid;
};

/* Opens an event: writes the comma before it. The caller writes the object. */
void timeline_next(struct timeline *t);
/* A process name made of two texts and a third that may be empty. */
void timeline_process(struct timeline *t, int64_t pid, const char *before, struct str name,
		      const char *after);
/* A slice; its arguments are {name}, and {name, op} when with_op. */
void timeline_region(struct timeline *t, int64_t start, int64_t dur, int64_t pid, int64_t tid,
		     struct str name, bool with_op);
/* A line for stdout. */
void timeline_stdout(struct timeline *t, struct str line);

/* ---- memory counters of one step ---- */
struct tracked {
	op_id op;
	uint32_t op_step; /* its row */
};

struct timeline_memory;

/* The devices that have a counter, of ops tracked in the order of the walk. */
ow_status timeline_memory_new(struct timeline *t, const struct tracked *tracked, uint32_t count,
			      struct timeline_memory **memory);
void timeline_memory_free(struct timeline_memory *memory);
/* List A: process names. List B: counters, and the peaks on stdout. */
void timeline_memory_names(struct timeline_memory *memory);
void timeline_memory_counters(struct timeline_memory *memory);

#endif
