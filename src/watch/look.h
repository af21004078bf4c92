/*
 * look.h: one look at a part of a recording: the bytes that live/follow.h cut out become a model, and the analysis that
 * every view uses (analyze/phases.h, analyze/op_stats.h) tells its steps and operations. Nothing here counts by itself, so
 * that what is seen live is what `opwatch steps` says of the same file later.
 */
#ifndef WATCH_LOOK_H
#define WATCH_LOOK_H

#include "analyze/phases.h"
#include "base/buf.h"
#include "model/builder.h"

#define LOOK_NAME 96

/* What the ends of steps were taken from; a later one is surer. */
enum look_marker { LOOK_NO_STEPS, LOOK_LOADER, LOOK_OPTIMIZER, LOOK_GIVEN };

struct look_step {
	int32_t rank; /* -1: there are none */
	enum look_marker marker;
	int64_t start_ns, end_ns; /* since 1970 */
	int64_t share[CLASS_COUNT];
	int64_t device_busy_ns;
	bool has_device;
	bool first; /* of its rank in what was looked at: it may be cut short */
};

struct look_op {
	char name[LOOK_NAME]; /* UTF-8 */
	int64_t self_ns;
	int64_t runs;
};

struct look {
	struct arena arena;
	struct mem *mem;
	struct model *m;
	struct phases phases;
	struct look_step
		*steps; /* by rank, then by time; without markers one per rank, of all the time */
	uint32_t count;
};

/* A whole file in memory, which must live as long as the look. OW_E_EMPTY: nothing was recorded in it. look_release is
 * due in any case. */
ow_status look_make(struct look *look, struct mem *mem, const struct buf *file,
		    const char *step_marker, struct error *err);
void look_release(struct look *look);

/* The operations that took longest by themselves in a part of the time, of one rank or of all (-1): of devices where
 * there are any. At most `cap`; how many there are. */
ow_status look_ops(struct look *look, int64_t from_ns, int64_t to_ns, int32_t rank,
		   struct look_op *ops, size_t cap, size_t *count, struct error *err);

#endif
