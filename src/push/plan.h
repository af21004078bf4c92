/*
 * plan.h: what a push consists of: the tables, their batches, and the number under which all of it is known
 * to the servers. The same inputs, options and program give the same plan, which is what makes a push
 * resumable. Knows no server.
 */
#ifndef PUSH_PLAN_H
#define PUSH_PLAN_H

#include "push/push.h"

/* A new number: tables made by another one cannot be used. Columns need none, their names and types count
 * by themselves. */
#define PLAN_LAYOUT 1

struct plan_table {
	const struct relation *relation;
	struct relation_table *rows;
	bool chosen;
	uint32_t batch_first, batch_count;
};

struct batch {
	uint32_t table;	 /* in plan.tables */
	uint32_t number; /* in its table */
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
	uint64_t push;	 /* number of the push */
	char schema[32]; /* version of the tables: "1-89abcdef01234567" */
};

/* Opens all relations and prepares those that are pushed. */
ow_status plan_make(struct plan *plan, struct model *m, const struct push_options *options,
		    struct mem *mem, struct error *err);
void plan_release(struct plan *plan);

#endif
