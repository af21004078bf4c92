/*
 * opw_places.h: the bytes that rows point to (arguments of events, definitions of ops), copied from the
 * sources into the file that is being saved, and the columns with their new places. Part of opw_save.c.
 */
#ifndef SINK_OPW_PLACES_H
#define SINK_OPW_PLACES_H

#include "sink/opw_save.h"

struct opw_places;

/* Whether a column will be written though no row has a value yet: places change. */
bool opw_places_has(const struct model *m, enum table_id table, const struct column_info *column);
/* At most so many bytes will be copied. */
uint64_t opw_places_size(const struct model *m);
/* Copies them to where the writer is. *places may be set on failure, too. */
ow_status opw_places_new(struct model *m, const struct opw_save_options *options,
			 struct opw_writer *w, struct opw_places **places, struct error *err);
void opw_places_free(struct opw_places *places, struct model *m);
/* What is to be written instead of a column, or NULL. */
const void *opw_places_column(const struct opw_places *places, enum table_id table,
			      const struct column_info *column);

#endif
