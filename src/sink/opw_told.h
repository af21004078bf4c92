/*
 * opw_told.h: arguments of events that no source has as text, because its importer tells them when somebody asks
 * (struct args_reader), as text in the file that is being saved. Part of opw_places.c.
 */
#ifndef SINK_OPW_TOLD_H
#define SINK_OPW_TOLD_H

#include "model/model.h"
#include "wire/opw.h"

/* Columns of all events: where the text of each went, and its size. */
struct opw_told_places {
	uint64_t *offset;
	uint32_t *size;
};

struct opw_told {
	struct model *m;
	struct opw_writer *w;
	struct opw_told_places own, shared;
	struct error *err;
};

/* Whether some source has such arguments. */
bool opw_told_any(const struct model *m);
/* Writes those of all events to where the writer is. */
ow_status opw_told_write(struct opw_told *told) OW_MUST_CHECK;

#endif
