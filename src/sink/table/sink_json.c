/*
 * sink_json.c: any table as one JSON document for programs; the shape is in docs/outputs.md and
 * stable. Numbers are exact and unscaled (each column says its unit), unknown values null. A tree
 * nests its rows in "children"; nothing recurses, so its depth is not limited.
 */
#include "base/json_escape.h"
#include "sink/table/table_out.h"

struct json {
	struct table_out o;
	const struct table *t;
	struct str *names; /* the text before each value: comma and key */
	uint32_t level;	   /* number of open objects */
};

static void put_columns(struct buf *to, const struct table *t)
{
	buf_puts(to, ",\n\"columns\": [");
	for (uint32_t c = 0; c < t->column_count; c++) {
		const char *unit = column_unit_name(t->columns[c].unit);

		buf_puts(to, c ? ",\n  {\"name\": " : "\n  {\"name\": ");
		json_quote(to, str_from(t->columns[c].name));
		buf_printf(to,
			   ", \"type\": \"%s\", \"unit\": ", column_type_name(t->columns[c].type));
		buf_printf(to, unit ? "\"%s\"}" : "null}", unit);
	}
	buf_puts(to, t->column_count ? "\n]" : "]");
}

/* Writes the members of a row; the object stays open for its children. */
static void open_row(struct json *j, uint32_t i)
{
	if (!j->o.rows.column_count)
		buf_add_char(&j->o.to, '{');
	row_json(&j->o.to, &j->o.rows, j->names, i, CELL_PLAIN);
}

static void put_separator(struct json *j)
{
	struct buf *to = &j->o.to;

	buf_puts(to, j->t->column_count ? ", \"children\": [\n" : "\"children\": [\n");
	buf_add_repeat(to, ' ', 2 + (size_t)MIN(j->level, 30));
}

/* Writes a row of a tree, closing and opening objects by its depth. A row that is more than one level deeper than
 * the previous row (no view makes one) is nested by one level. */
static void put_tree_row(struct json *j, uint64_t row, uint32_t i)
{
	uint32_t depth = MIN(j->t->depth[row], j->level);
	struct buf *to = &j->o.to;

	if (!row) {
		buf_puts(to, "\n  ");
	} else if (depth == j->level) {
		put_separator(j);
	} else {
		for (; j->level > depth + 1; j->level--)
			buf_puts(to, "}]");
		j->level--;
		buf_puts(to, "},\n");
		buf_add_repeat(to, ' ', 2 + (size_t)MIN(j->level, 30));
	}
	open_row(j, i);
	j->level++;
}

static ow_status put_rows(struct json *j, bool any, struct ow_error *err)
{
	struct rows *rows = &j->o.rows;

	for (;;) {
		OW_TRY(rows_next(rows, err));
		if (!rows->n)
			break;
		for (uint32_t i = 0; i < rows->n; i++) {
			if (j->t->depth) {
				put_tree_row(j, rows->row + i, i);
			} else {
				buf_puts(&j->o.to, rows->row + i || any ? ",\n  " : "\n  ");
				open_row(j, i);
				buf_add_char(&j->o.to, '}');
			}
			OW_TRY(table_out_flush(&j->o, err));
		}
	}
	for (; j->level > 1; j->level--)
		buf_puts(&j->o.to, "}]");
	if (j->level)
		buf_add_char(&j->o.to, '}');
	return OW_OK;
}

/* Writes the table's extra values. Every document has a schema version; answers with their own keys bring their own
 * version. */
static void put_extras(struct buf *to, const struct table *t)
{
	bool versioned = false;

	for (size_t i = 0; i < t->extra_count; i++) {
		buf_printf(to, ",\n\"%s\": %s", t->extras[i].name, t->extras[i].json);
		versioned |= strcmp(t->extras[i].name, "schema_version") == 0;
	}
	if (!versioned)
		buf_puts(to, ",\n\"schema_version\": 1");
}

static ow_status put_document(struct json *j, const struct sink_options *options,
			      struct ow_error *err)
{
	bool any = options->rows_before != 0;
	struct buf *to = &j->o.to;

	if (!options->continued) {
		buf_puts(to, "{\"view\": ");
		json_quote(to, str_from(j->t->name));
		put_columns(to, j->t);
		buf_puts(to, ",\n\"rows\": [");
	}
	j->names = json_names(&j->o.rows, NULL, "{", ", ", ": ", &j->o.arena, err);
	if (!j->names)
		return OW_E_NO_MEMORY;
	OW_TRY(put_rows(j, any, err));
	if (options->continues)
		return OW_OK;
	buf_puts(to, j->t->row_count || any ? "\n]" : "]");
	put_extras(to, j->t);
	buf_puts(to, ",\n\"footer\": ");
	if (j->t->footer)
		json_quote(to, str_from(j->t->footer));
	else
		buf_puts(to, "null");
	buf_puts(to, "}\n");
	return OW_OK;
}

static ow_status json_write(struct table *table, const struct sink_options *options,
			    const struct out *out, struct ow_error *err)
{
	struct json j = { .t = table };
	ow_status status = table_out_begin(&j.o, table, out, err);

	if (status == OW_OK)
		status = put_document(&j, options, err);
	return table_out_end(&j.o, status, err);
}

const struct sink sink_json = {
	.name = "json",
	.summary = "one JSON document, trees nested",
	.extension = "json",
	.accepts = SINK_RESULT | SINK_TREES,
	.write = json_write,
};
