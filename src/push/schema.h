/*
 * schema.h: the tables on a server. Each of our tables, for example `event`, becomes a table opwatch_event with the
 * rows (on a cluster also opwatch_event_all over all shards) and a view `event` of the rows of published pushes. Three
 * more tables hold the state of pushes: opwatch_schema, opwatch_publish and opwatch_claim.
 */
#ifndef PUSH_SCHEMA_H
#define PUSH_SCHEMA_H

#include "push/plan.h"

/* Creates the missing tables on a node. Fails on tables of another version or with other columns, and on tables of other
 * programs with the names of our views. */
ow_status schema_make(const struct plan *plan, const char *cluster, struct click *click,
		      struct ow_error *err);

/* schema_table_text writes the CREATE statement of a relation's table, schema_view_text that of its view; for tests. */
void schema_table_text(struct buf *to, const struct plan_table *table);
void schema_view_text(struct buf *to, const struct plan_table *table, const char *cluster);

#endif
