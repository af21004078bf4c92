/*
 * check.c: checks the references of rows from a file whose checksums are right, but which we may not have written, or
 * of which a part is lost. Ids name rows that exist, ranges lie inside their table, parents come before their children,
 * so every reader of the model may follow them unchecked. A wrong value that can only make an answer wrong is not
 * checked.
 *
 * Ids are found by the types of the columns. References of other types are in the lists below: a new one in schema.def
 * needs a line here.
 */
#include "model/model.h"

struct head {
	uint32_t count, cap;
};

struct check {
	struct model *m;
	bool repair; /* make wrong references nil and count them, instead of failing */
	uint64_t repaired;
	struct ow_error *err;
};

static const struct head *head_of(const struct model *m, enum table_id table)
{
	return (const struct head *)(const void *)((const char *)m + model_tables[table].offset);
}

static void *values_at(const struct model *m, size_t offset)
{
	return *(void *const *)(const void *)((const char *)m + offset);
}

/* Handles a wrong reference; OW_OK if the caller should repair the row and continue. */
static ow_status wrong(struct check *c, enum table_id table, const char *column, uint32_t row)
{
	if (c->repair) {
		c->repaired++;
		return OW_OK;
	}
	return error_set(c->err, OW_E_CORRUPT,
			 "the opwatch file is invalid: %s.%s of row %u refers to a row that "
			 "does not exist",
			 model_tables[table].name, column, row);
}

/* Returns how many rows an id of that type may refer to; UINT64_MAX if the type is not an id. */
static uint64_t rows_of_type(const struct model *m, const char *type)
{
	size_t len = strlen(type);

	if (strcmp(type, "str_id") == 0)
		return m->strings.count;
	for (int t = 0; t < TABLE_COUNT; t++) {
		const char *name = model_tables[t].name;

		if (strlen(name) + 3 == len && memcmp(type, name, len - 3) == 0 &&
		    strcmp(type + len - 3, "_id") == 0)
			return head_of(m, (enum table_id)t)->count;
	}
	return UINT64_MAX;
}

static uint32_t largest(const uint32_t *values, uint32_t count)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < count; i++)
		most = MAX(most, values[i]);
	return most;
}

/* Checks that every value is below `rows`. */
static ow_status check_below(struct check *c, enum table_id table, const char *column,
			     uint32_t *values, uint64_t rows)
{
	uint32_t count = head_of(c->m, table)->count;

	if (!values || largest(values, count) < rows)
		return OW_OK;
	for (uint32_t i = 0; i < count; i++) {
		if (values[i] < rows)
			continue;
		OW_TRY(wrong(c, table, column, i));
		values[i] = 0;
	}
	return OW_OK;
}

static ow_status check_ids(struct check *c, enum table_id table, const struct column_info *column)
{
	uint64_t rows = rows_of_type(c->m, column->type);

	if (rows == UINT64_MAX)
		return OW_OK;
	return check_below(c, table, column->name,
			   values_at(c->m, model_tables[table].offset + column->offset), rows);
}

/* A range of rows in another table: column `first` and the number of rows. */
struct range {
	enum table_id table;
	size_t first, count; /* offsets of the columns */
	enum table_id in;
	const char *name;
};

#define RANGE(table, first, count, in)                                                             \
	{                                                                                          \
		TABLE_##table, offsetof(struct model, table.first),                                \
			offsetof(struct model, table.count), TABLE_##in, #first                    \
	}
static const struct range ranges[] = {
	RANGE(strset, item_first, item_count, strset_item),
	RANGE(op, input_first, input_count, op_input),
	RANGE(op, output_first, output_count, op_output),
	RANGE(op, step_first, step_count, op_step),
	RANGE(op_step, memory_first, memory_count, memory),
};

static ow_status check_range(struct check *c, const struct range *range)
{
	uint32_t *first = values_at(c->m, range->first), *count = values_at(c->m, range->count);
	uint32_t rows = head_of(c->m, range->table)->count, in = head_of(c->m, range->in)->count;

	for (uint32_t i = 0; first && count && i < rows; i++) {
		if ((uint64_t)first[i] + count[i] <= in)
			continue;
		OW_TRY(wrong(c, range->table, range->name, i));
		first[i] = count[i] = 0;
	}
	return OW_OK;
}

static ow_status check_shapes(struct check *c)
{
	struct shape_table *t = &c->m->shape;

	for (uint32_t i = 0; i < t->count; i++) {
		if ((int64_t)t->dim_first[i] + MAX(t->rank[i], 0) <= c->m->dim.count)
			continue;
		OW_TRY(wrong(c, TABLE_shape, "dim_first", i));
		t->dim_first[i] = 0;
		t->rank[i] = -1;
	}
	return OW_OK;
}

/* Checks that parents come before their children, so that a walk up always ends. */
static ow_status check_parents(struct check *c, enum table_id table, uint32_t *parent)
{
	uint32_t count = head_of(c->m, table)->count;

	for (uint32_t i = 1; i < count; i++) {
		if (parent[i] < i)
			continue;
		OW_TRY(wrong(c, table, "parent", i));
		parent[i] = 0;
	}
	return OW_OK;
}

static ow_status check_special(struct check *c, enum table_id table)
{
	struct model *m = c->m;

	switch (table) {
	case TABLE_shape:
		return check_shapes(c);
	case TABLE_stack:
		return check_parents(c, table, &m->stack.parent->v);
	case TABLE_fact:
		return check_parents(c, table, &m->fact.parent->v);
	case TABLE_memory:
		return check_below(c, table, "op_step", m->memory.op_step, m->op_step.count);
	case TABLE_alloc:
		return check_below(c, table, "op_step", m->alloc.op_step, m->op_step.count);
	default:
		return OW_OK;
	}
}

static ow_status check_table(struct check *c, enum table_id table)
{
	const struct table_info *info = &model_tables[table];

	for (uint32_t i = 0; i < info->column_count; i++)
		OW_TRY(check_ids(c, table, &info->columns[i]));
	for (size_t i = 0; i < ARRAY_COUNT(ranges); i++)
		if (ranges[i].table == table)
			OW_TRY(check_range(c, &ranges[i]));
	return check_special(c, table);
}

ow_status model_check_table(struct model *m, enum table_id table, struct ow_error *err)
{
	struct check c = { .m = m, .err = err };

	return check_table(&c, table);
}

uint64_t model_repair(struct model *m)
{
	struct check c = { .m = m, .repair = true };

	for (int t = 0; t < TABLE_COUNT; t++)
		(void)check_table(&c, (enum table_id)t);
	return c.repaired;
}
