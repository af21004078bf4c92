/*
 * nest.h: the part of model_freeze for traces: events of tracks with TRACK_SLICES are sorted, nested, and summed into
 * op_step. Only freeze.c calls nest_events; nest.c calls the rest.
 */
#ifndef MODEL_NEST_H
#define MODEL_NEST_H

#include "model/builder.h"

ow_status nest_events(struct builder *b);

/* Sorts events by track, then by start, then the longest first; rows that refer to events follow. For nest.c. */
ow_status nest_order_events(struct builder *b);

#endif
