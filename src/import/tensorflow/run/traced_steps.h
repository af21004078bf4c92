/*
 * traced_steps.h: the records of traced steps for a timeline (api/timeline.c). They are read from the RunMetadata that
 * a profile was opened from. For TensorBoard event files and .opw files they are read at the offsets that the events
 * keep, which leaves out records without a start time.
 */
#ifndef IMPORT_TRACED_STEPS_H
#define IMPORT_TRACED_STEPS_H

#include "model/model.h"
#include "model/step_stats.h"

/* One step of one source. */
struct tf_traced_step {
	source_id source;
	step_id step;
};

struct tf_traced_steps {
	struct tf_traced_step *items;
	size_t count, cap;
};

/* Lists every step that has records, in the order of the sources; step < 0: all, else only that number. */
ow_status tf_traced_steps(const struct model *m, int64_t step, struct arena *arena,
			  struct tf_traced_steps *steps, struct ow_error *err);

/* Reads the records of one step; with `descriptions` also those of tensors. */
ow_status tf_traced_step_read(const struct model *m, struct tf_traced_step which, bool descriptions,
			      struct arena *arena, struct step_stats *out, struct ow_error *err);

#endif
