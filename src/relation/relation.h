/*
 * relation.h: the tables that people query: the list of them by name, over one or more runs (a frozen model each). SQL,
 * export and push use this; it knows no SQL and writes nothing. Reading a table is in table/table.h.
 *
 *	relation_open(relation_find(STR("event")), runs, 2, NULL, 0, mem, &table, err);	columns are known
 *	table_prepare(table, err);					rows are known
 *
 * Conventions of all relations: `run` is the name of the run. `id` numbers the rows; ids of several
 * runs differ: (run - 1) << 32, plus the row of the model. A column x_id refers to `id` of another relation
 * and is NULL without one; x, without _id, is its name in text, or a step's number.
 * Times are nanoseconds; unknown times, ranks and the like are NULL, and so is an empty text.
 */
#ifndef RELATION_RELATION_H
#define RELATION_RELATION_H

#include "table/table.h"

/* All relations, in the order of relations.def, then one for each view; NULL beyond the last. */
const struct table_source *relation_at(size_t index);
/* Finds a relation by name, ignoring case; NULL when there is none. */
const struct table_source *relation_find(struct str name);

/* Opens a relation as a table (see table_open) whose columns are known. */
ow_status relation_open(const struct table_source *relation, const struct table_run *runs,
			size_t run_count, const struct table_arg *args, size_t arg_count,
			struct mem *mem, struct table **table, struct ow_error *err);

#endif
