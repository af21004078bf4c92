/*
 * check.c: model_check_table: references of rows that come from a file whose checksums are right but
 * which we may not have written. Ids name rows that exist, ranges lie inside their table, parents come
 * before their children; so every reader of the model may follow them without looking. What a wrong
 * value can at worst make wrong in an answer is not checked.
 *
 * Ids are found by the types of the columns. References of other types are in the lists below: a new
 * one in schema.def needs a line here.
 */
#include "model/model.h"

struct head {
	uint32_t count, cap;
};

static const struct head *head_of(const struct model *m, enum table_id table)
{
	return (const struct head *)(const void *)((const char *)m + model_tables[table].offset);
}

static const void *values_of(const struct model *m, enum table_id table,
			     const struct column_info *column)
{
	return *(void *const *)(const void *)((const char *)head_of(m, table) + column->offset);
}

static ow_status fault(enum table_id table, const char *column, uint32_t row, struct error *err)
{
	return error_set(err, OW_E_CORRUPT,
			 "the opwatch file is not sound: %s.%s of row %u names something that is not "
			 "there",
			 model_tables[table].name, column, row);
}

/* How many rows an id of that type may name; UINT64_MAX when the type is no id. */
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

static ow_status check_ids(const struct model *m, enum table_id table,
			   const struct column_info *column, struct error *err)
{
	const uint32_t *values = values_of(m, table, column);
	uint32_t count = head_of(m, table)->count, row = 0;
	uint64_t rows = rows_of_type(m, column->type);

	if (rows == UINT64_MAX || !values || largest(values, count) < rows)
		return OW_OK;
	while (values[row] < rows)
		row++;
	return fault(table, column->name, row, err);
}

/* ---- references that are no ids ---- */

/* Column `first` and the number of rows, in another table. */
struct range {
	enum table_id table;
	size_t first, count; /* offsets of the columns */
	enum table_id in;
	const char *name;
};

#define RANGE(table, first, count, in)                                                             \
	{ TABLE_##table, offsetof(struct model, table.first), offsetof(struct model, table.count), \
	  TABLE_##in, #first }
static const struct range ranges[] = {
	RANGE(strset, item_first, item_count, strset_item),
	RANGE(op, input_first, input_count, op_input),
	RANGE(op, output_first, output_count, op_output),
	RANGE(op, step_first, step_count, op_step),
	RANGE(op_step, memory_first, memory_count, memory),
};

static const uint32_t *column_at(const struct model *m, size_t offset)
{
	return *(uint32_t *const *)(const void *)((const char *)m + offset);
}

static ow_status check_range(const struct model *m, const struct range *range, struct error *err)
{
	const uint32_t *first = column_at(m, range->first), *count = column_at(m, range->count);
	uint32_t rows = head_of(m, range->table)->count, in = head_of(m, range->in)->count;

	for (uint32_t i = 0; first && count && i < rows; i++)
		if ((uint64_t)first[i] + count[i] > in)
			return fault(range->table, range->name, i, err);
	return OW_OK;
}

static ow_status check_shapes(const struct model *m, struct error *err)
{
	for (uint32_t i = 0; i < m->shape.count; i++)
		if ((int64_t)m->shape.dim_first[i] + MAX(m->shape.rank[i], 0) > m->dim.count)
			return fault(TABLE_shape, "dim_first", i, err);
	return OW_OK;
}

/* Whoever walks up must come to an end. */
static ow_status check_parents(enum table_id table, const uint32_t *parent, uint32_t count,
			       struct error *err)
{
	for (uint32_t i = 1; i < count; i++)
		if (parent[i] >= i)
			return fault(table, "parent", i, err);
	return OW_OK;
}

static ow_status check_rows(enum table_id table, const uint32_t *row, uint32_t count, uint32_t rows,
			    struct error *err)
{
	for (uint32_t i = 0; i < count; i++)
		if (row[i] >= rows)
			return fault(table, "op_step", i, err);
	return OW_OK;
}

static ow_status check_special(const struct model *m, enum table_id table, struct error *err)
{
	switch (table) {
	case TABLE_shape:
		return check_shapes(m, err);
	case TABLE_stack:
		return check_parents(table, &m->stack.parent->v, m->stack.count, err);
	case TABLE_fact:
		return check_parents(table, &m->fact.parent->v, m->fact.count, err);
	case TABLE_memory:
		return check_rows(table, m->memory.op_step, m->memory.count, m->op_step.count, err);
	case TABLE_alloc:
		return check_rows(table, m->alloc.op_step, m->alloc.count, m->op_step.count, err);
	default:
		return OW_OK;
	}
}

ow_status model_check_table(const struct model *m, enum table_id table, struct error *err)
{
	const struct table_info *info = &model_tables[table];

	for (uint32_t c = 0; c < info->column_count; c++)
		OW_TRY(check_ids(m, table, &info->columns[c], err));
	for (size_t i = 0; i < ARRAY_COUNT(ranges); i++)
		if (ranges[i].table == table)
			OW_TRY(check_range(m, &ranges[i], err));
	return check_special(m, table, err);
}
