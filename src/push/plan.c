/*
 * plan.c: decides what a push consists of: the tables, their batches and the numbers by which servers know them. push.c
 * calls it before it asks the first server.
 */
#include "push/plan.h"

#include "push/native.h"

#include "opwatch_config.h"

#define TABLES_MAX 256

/* A hash (FNV-1a) of texts with a separator between them. Servers store the result, so it must never change; the
 * hashes of base/ may. */
static uint64_t mix(uint64_t hash, const char *text)
{
	for (;; text++) {
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
		if (!*text)
			return hash;
	}
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return mix(hash, text);
}

#define MIX_START 0xcbf29ce484222325ull

/* Views that are stored as tables. Other views are computed on the server from the tables; these cannot be, because
 * memory in use at a peak and at the ends of steps is found by going through a heap in time. */
static const char *const stored_views[] = { "memory_peak_view", "memory_steps_view" };

static bool is_stored(const struct table_source *relation)
{
	for (size_t i = 0; i < ARRAY_COUNT(stored_views); i++)
		if (strcmp(stored_views[i], relation->name) == 0)
			return true;
	return !relation->params;
}

/* Tables that are pushed only when the user names them: they are as large as all others together, and seldom needed. */
static const char *const seldom[] = { "arg", "trace_events" };

static bool is_chosen(const struct ow_list *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], name) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_COUNT(seldom); i++)
		if (strcmp(seldom[i], name) == 0)
			return false;
	return !names->count;
}

static ow_status check_names(const struct plan *plan, const struct ow_list *names,
			     struct ow_error *err)
{
	for (size_t i = 0; i < names->count; i++) {
		bool found = false;

		for (uint32_t t = 0; t < plan->table_count; t++)
			found |= strcmp(plan->tables[t].relation->name, names->items[i]) == 0;
		if (!found)
			return error_set(err, OW_E_USAGE, "there is no table '%s' to push",
					 names->items[i]);
	}
	return OW_OK;
}

/* The number of a run, which is part of its rows' ids. It is a hash of the run's name, so that ids of different runs
 * on a server differ. */
static uint32_t run_number(const struct push_options *options)
{
	uint64_t hash = mix(MIX_START, options->run);

	return (uint32_t)((hash ^ hash >> 32) & INT32_MAX) + 1;
}

static ow_status open_tables(struct plan *plan, struct model *m, const struct push_options *options,
			     struct ow_error *err)
{
	struct table_run run = { m, options->run, run_number(options) };
	const struct table_source *relation;

	plan->tables = ARENA_ARRAY(&plan->arena, struct plan_table, TABLES_MAX);
	if (!plan->tables)
		return error_no_memory(err);
	for (size_t i = 0; (relation = relation_at(i)) && plan->table_count < TABLES_MAX; i++) {
		struct plan_table *table = &plan->tables[plan->table_count];

		if (!is_stored(relation))
			continue;
		table->relation = relation;
		OW_TRY(relation_open(relation, &run, 1, NULL, 0, plan->mem, &table->rows, err));
		table->chosen = is_chosen(&options->tables, relation->name);
		plan->chosen_count += table->chosen;
		plan->table_count++;
	}
	return check_names(plan, &options->tables, err);
}

static ow_status prepare_tables(struct plan *plan, uint32_t batch_rows, struct ow_error *err)
{
	for (uint32_t i = 0; i < plan->table_count; i++) {
		struct plan_table *table = &plan->tables[i];
		uint64_t rows;

		table->batch_first = plan->batch_count;
		if (!table->chosen)
			continue;
		OW_TRY(error_wrap(err, table_prepare(table->rows, err), "table %s",
				  table->relation->name));
		rows = table->rows->parts[0].rows;
		if ((rows + batch_rows - 1) / batch_rows > 100000)
			return error_set(err, OW_E_LIMIT,
					 "table %s has %" PRIu64
					 " rows, too many for batches of %u: give larger ones",
					 table->relation->name, rows, batch_rows);
		table->batch_count = (uint32_t)((rows + batch_rows - 1) / batch_rows);
		plan->batch_count += table->batch_count;
		plan->rows += rows;
	}
	return OW_OK;
}

static ow_status cut(struct plan *plan, uint32_t batch_rows, struct ow_error *err)
{
	plan->batches = ARENA_ARRAY(&plan->arena, struct batch, plan->batch_count + 1);
	if (!plan->batches)
		return error_no_memory(err);
	for (uint32_t t = 0; t < plan->table_count; t++) {
		const struct plan_table *table = &plan->tables[t];

		for (uint32_t b = 0; b < table->batch_count; b++) {
			uint64_t first = (uint64_t)b * batch_rows;
			uint64_t left = table->rows->parts[0].rows - first;

			plan->batches[table->batch_first + b] =
				(struct batch){ t, b, first, MIN(left, batch_rows) };
		}
	}
	return OW_OK;
}

static uint64_t schema_hash(const struct plan *plan)
{
	uint64_t hash = MIX_START;

	for (uint32_t t = 0; t < plan->table_count; t++) {
		const struct table *rows = plan->tables[t].rows;

		hash = mix(hash, plan->tables[t].relation->name);
		for (uint32_t c = 0; c < rows->column_count; c++)
			hash = mix(mix(hash, rows->columns[c].name),
				   native_type(&rows->columns[c]));
	}
	return hash;
}

static void name_push(struct plan *plan, const struct push_options *options)
{
	uint64_t hash =
		mix(mix(mix_number(MIX_START, options->reading), options->run), options->content);

	snprintf(plan->schema, sizeof(plan->schema), "%d-%016" PRIx64, PLAN_LAYOUT,
		 schema_hash(plan));
	hash = mix(mix(hash, plan->schema), OPWATCH_VERSION);
	hash = mix_number(hash, options->batch_rows);
	for (uint32_t t = 0; t < plan->table_count; t++)
		if (plan->tables[t].chosen)
			hash = mix_number(mix(hash, plan->tables[t].relation->name),
					  plan->tables[t].rows->parts[0].rows);
	plan->push = hash | 1; /* | 1 because 0 means "no push" */
}

ow_status plan_make(struct plan *plan, struct model *m, const struct push_options *options,
		    struct mem *mem, struct ow_error *err)
{
	*plan = (struct plan){ .mem = mem, .run = options->run };
	arena_init(&plan->arena, mem);
	OW_TRY(open_tables(plan, m, options, err));
	OW_TRY(prepare_tables(plan, options->batch_rows, err));
	OW_TRY(cut(plan, options->batch_rows, err));
	name_push(plan, options);
	return OW_OK;
}

void plan_release(struct plan *plan)
{
	for (uint32_t i = 0; i < plan->table_count; i++)
		table_free(plan->tables[i].rows);
	arena_release(&plan->arena);
	*plan = (struct plan){ 0 };
}
