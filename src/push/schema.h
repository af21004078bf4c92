/*
 * schema.h: the tables on a server, made from the relations: for each relation `event` a table
 * opwatch_event with the rows (on a cluster also opwatch_event_all over all shards) and a view `event` of
 * the rows of published pushes; beside them opwatch_schema, opwatch_publish and opwatch_claim.
 */
#ifndef PUSH_SCHEMA_H
#define PUSH_SCHEMA_H

#include "push/plan.h"

/* Makes what is missing on a node. Refuses tables of another version, tables that look otherwise than they
 * should, and things of other people with the names of our views. */
ow_status schema_make(const struct plan *plan, const char *cluster, struct click *click,
		      struct error *err);

/* One statement each, for tests: CREATE of a relation's table, and of its view. */
void schema_table_text(struct buf *to, const struct plan_table *table);
void schema_view_text(struct buf *to, const struct plan_table *table, const char *cluster);

#endif
