/*
 * tf_phases.h: assigns phases to the ops of a traced TensorFlow step. Importers of RunMetadata and of ProfileProto call
 * it when the events of a source exist. It fills event.phase, from which analyze/steps/phases.h makes the shares of a
 * step, as for traces.
 */
#ifndef IMPORT_TF_PHASES_H
#define IMPORT_TF_PHASES_H

#include "model/builder.h"

/* Fills event.phase for events [first_event, end) of one source. Leaves it unknown when the events come from several tasks: one
 * task's input does not delay another's device. On failure the builder has the status. */
void tf_phases(struct builder *b, uint32_t first_event);

/* Like tf_phases, for a source with several steps: each step gets a window from its first to its last event. When
 * the steps overlap, or have no times, there are no windows and no phases. */
void tf_phases_of_steps(struct builder *b, uint32_t first_event);

#endif
