/*
 * relation_text.h: writes a relation as lines of text, for unit tests: chosen columns separated by '|', NULL as "-", a
 * line per row. Rows are read in pieces of an odd size, so that ranges are tested, too.
 */
#ifndef SUPPORT_RELATION_TEXT_H
#define SUPPORT_RELATION_TEXT_H

#include "relation/relation.h"

#define RELATION_PIECE 13

static inline void relation_put(const struct table *t, uint32_t part, uint32_t column,
				const struct table_vec *vec, uint32_t i, struct buf *to)
{
	const struct table_column *c = &t->columns[column];
	const struct table_dict *dict = table_dict(t, part, column);
	struct str text;

	if (c->type == TYPE_TEXT) {
		text = dict ? dict->texts[((uint32_t *)vec->values)[i]]
			    : ((struct str *)vec->values)[i];
		buf_add_str(to,
			    text.ptr && (!dict || ((uint32_t *)vec->values)[i]) ? text : STR("-"));
		return;
	}
	if (vec->has_nulls && !(vec->valid[i / 64] >> i % 64 & 1))
		buf_puts(to, "-");
	else if (c->type == TYPE_BOOL)
		buf_puts(to, ((bool *)vec->values)[i] ? "true" : "false");
	else if (c->type == TYPE_INT32)
		buf_printf(to, "%" PRId32, ((int32_t *)vec->values)[i]);
	else if (c->type == TYPE_INT)
		buf_printf(to, "%" PRId64, ((int64_t *)vec->values)[i]);
	else if (c->type == TYPE_UINT64)
		buf_printf(to, "%" PRIu64, ((uint64_t *)vec->values)[i]);
	else
		buf_printf(to, "%g", ((double *)vec->values)[i]);
}

/* Writes the rows; "a,b" are the names of the columns; NULL means all. */
static inline ow_status relation_lines(struct table *t, const char *columns, struct buf *to,
				       struct ow_error *err)
{
	uint32_t chosen[TABLE_COLUMNS_MAX], count = 0;
	struct str rest = str_from(columns), name;
	char cells[RELATION_PIECE][2048];

	while (columns && str_split(&rest, ',', &name)) {
		chosen[count] = table_find_column(t, name);
		if (chosen[count++] == UINT32_MAX)
			return error_set(err, OW_E_NOT_FOUND, "no column %.*s", STR_ARG(name));
	}
	for (; !columns && count < t->column_count; count++)
		chosen[count] = count;
	OW_TRY(table_prepare(t, err));
	for (uint32_t part = 0; part < t->part_count; part++) {
		uint32_t n;

		for (uint64_t row = 0; row < t->parts[part].rows; row += n) {
			n = (uint32_t)MIN(t->parts[part].rows - row, RELATION_PIECE);
			memset(cells, 0, sizeof(cells));
			for (uint32_t c = 0; c < count; c++) {
				struct str values[RELATION_PIECE]; /* the largest type */
				uint64_t valid[1];
				struct arena scratch;
				struct table_vec vec = { .values = values,
							 .valid = valid,
							 .scratch = &scratch };
				struct buf cell;
				ow_status status;

				arena_init(&scratch, t->mem);
				buf_init(&cell, t->mem);
				status = table_read(t, part, chosen[c], row, n, &vec, err);
				for (uint32_t i = 0; i < n && status == OW_OK; i++) {
					size_t len = strlen(cells[i]);

					buf_clear(&cell);
					relation_put(t, part, chosen[c], &vec, i, &cell);
					snprintf(cells[i] + len, sizeof(cells[i]) - len, "%s%.*s",
						 c ? "|" : "", STR_ARG(buf_str(&cell)));
				}
				buf_release(&cell);
				arena_release(&scratch);
				OW_TRY(status);
			}
			for (uint32_t i = 0; i < n; i++)
				buf_printf(to, "%s\n", cells[i]);
		}
	}
	return to->failed ? error_no_memory(err) : OW_OK;
}

/* Opens a relation, writes its rows and closes it. */
static inline ow_status relation_text(const char *name, const struct table_run *runs,
				      size_t run_count, const char *columns, struct mem *mem,
				      struct buf *to, struct ow_error *err)
{
	const struct table_source *relation = relation_find(str_from(name));
	struct table *t;
	ow_status status;

	if (!relation)
		return error_set(err, OW_E_NOT_FOUND, "no relation %s", name);
	OW_TRY(relation_open(relation, runs, run_count, NULL, 0, mem, &t, err));
	status = relation_lines(t, columns, to, err);
	table_free(t);
	return status;
}

#endif
