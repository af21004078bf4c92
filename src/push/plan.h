/*
 * plan.h: the content of a push: the tables, their batches, and the number by which servers know the push. The same
 * inputs, options and program make the same plan, so a push can be resumed. It does not connect to servers.
 */
#ifndef PUSH_PLAN_H
#define PUSH_PLAN_H

#include "push/push.h"

/* Version of the layout: tables of another version are refused. New columns do not change it, because their names and types
 * are part of plan.schema. */
/* Version 1: one partition for each batch, ordered by id. Version 2: up to 16 partitions. */
#define PLAN_LAYOUT 2

struct plan_table {
	const struct table_source *relation;
	struct table *rows;
	bool chosen;
	uint32_t batch_first, batch_count;
};

struct batch {
	uint32_t table;	 /* index in plan.tables */
	uint32_t number; /* index of the batch in its table */
	uint64_t first, rows;
};

struct plan {
	struct mem *mem;
	struct arena arena;
	struct plan_table *tables;
	uint32_t table_count, chosen_count;
	struct batch *batches;
	uint32_t batch_count;
	uint64_t rows;
	const char *run; /* name of the run */
	uint64_t push;	 /* number of the push */
	char schema[32]; /* version of the tables: "1-89abcdef01234567" */
};

/* Opens all relations and prepares those that are pushed. */
ow_status plan_make(struct plan *plan, struct model *m, const struct push_options *options,
		    struct mem *mem, struct ow_error *err);
void plan_release(struct plan *plan);

#endif
