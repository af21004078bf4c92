/*
 * baseline.h: stores runs of `opwatch baseline` on a ClickHouse server: whole .opw files, in parts, and facts about
 * each. Called by api/remote.c. A run exists once its row is in opwatch_baseline, which is inserted last; a part that
 * is sent twice counts once.
 */
#ifndef PUSH_BASELINE_H
#define PUSH_BASELINE_H

#include "push/click.h"

#define BASELINE_ID 32 /* hexadecimal digits of a run's id */

struct baseline_facts {
	const char *commit, *host, *file, *configuration; /* NULL: unknown */
};

/* Stores a file as a run; creates the tables if they are missing. `id` receives the name of the run. */
ow_status baseline_store(struct click *click, const char *path, const struct baseline_facts *facts,
			 char id[BASELINE_ID + 1], struct ow_error *err);
/* The names, types and rows (answer.h) of all runs, the oldest first. If the server does not have the tables, the
 * answer is empty. */
ow_status baseline_list(struct click *click, struct buf *answer, struct ow_error *err);
/* Writes the file of a run to a new file. */
ow_status baseline_fetch(struct click *click, const char *id, const char *path,
			 struct ow_error *err);

#endif
