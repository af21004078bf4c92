/*
 * baseline.h: runs of `opwatch baseline` on a ClickHouse server: whole .opw files, in parts, and what is known about each. Called by
 * api/remote.c. A run is there once its row in opwatch_baseline is, which is inserted last; a part that is sent twice counts once.
 */
#ifndef PUSH_BASELINE_H
#define PUSH_BASELINE_H

#include "push/click.h"

#define BASELINE_ID 32 /* digits */

struct baseline_facts {
	const char *commit, *host, *file, *configuration; /* NULL: unknown */
};

/* Creates the tables if they are missing. `id` gets the name of the run. */
ow_status baseline_store(struct click *click, const char *path, const struct baseline_facts *facts,
			 char id[BASELINE_ID + 1], struct ow_error *err);
/* Names, types and rows (answer.h) of all runs, the oldest first. A server without these tables has none: an empty answer. */
ow_status baseline_list(struct click *click, struct buf *answer, struct ow_error *err);
/* Writes the file of a run to a new file. */
ow_status baseline_fetch(struct click *click, const char *id, const char *path,
			 struct ow_error *err);

#endif
