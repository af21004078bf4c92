/*
 * tf_step_stats.h: the records of traced steps, decoded for a timeline. They are read from the
 * RunMetadata that a profile was opened from; of TensorBoard event files and of our own files, from the
 * records of their events, which leaves out those that have no start time.
 */
#ifndef IMPORT_TF_STEP_STATS_H
#define IMPORT_TF_STEP_STATS_H

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

/* Every step that has records, in the order of the sources; step < 0: all, else that number. */
ow_status tf_traced_steps(const struct model *m, int64_t step, struct arena *arena,
			  struct tf_traced_steps *steps, struct error *err);

/* The records of one. Descriptions of tensors are made only on demand. */
ow_status tf_step_stats_read(const struct model *m, struct tf_traced_step which, bool descriptions,
			     struct arena *arena, struct step_stats *out, struct error *err);

#endif
