/*
 * sink_json.c: any result as one JSON document for programs; the shape is in docs/outputs.md and
 * stable. Numbers are exact and unscaled (each column says its unit), unknown values null. A tree
 * nests its rows in "children"; nothing recurses, so its depth is not limited.
 */
#include "sink/writer.h"

#include <math.h>

static const char *unit_name(enum result_unit unit)
{
	switch (unit) {
	case RESULT_NS:
		return "ns";
	case RESULT_MICROS:
		return "us";
	case RESULT_BYTES:
		return "bytes";
	case RESULT_COUNT:
		return "count";
	case RESULT_PERCENT:
		return "percent";
	default:
		return NULL;
	}
}

static const char *type_name(enum result_type type)
{
	switch (type) {
	case RESULT_INT:
		return "int";
	case RESULT_REAL:
		return "real";
	case RESULT_BOOL:
		return "bool";
	case RESULT_NUMBER:
		return "number";
	default:
		return "text";
	}
}

static void put_columns(struct writer *w, const struct result *r)
{
	writer_puts(w, ",\n\"columns\": [");
	for (uint32_t c = 0; c < r->column_count; c++) {
		const struct result_column *column = &r->columns[c];
		const char *unit = unit_name(column->unit);

		writer_puts(w, c ? ",\n  {\"name\": " : "\n  {\"name\": ");
		writer_json(w, str_from(column->name));
		writer_printf(w, ", \"type\": \"%s\", \"unit\": ", type_name(column->type));
		if (unit)
			writer_printf(w, "\"%s\"", unit);
		else
			writer_puts(w, "null");
		writer_char(w, '}');
	}
	writer_puts(w, r->column_count ? "\n]" : "]");
}

static void put_value(struct writer *w, const struct result_column *c, uint32_t row)
{
	if (c->known && !c->known[row])
		writer_puts(w, "null");
	else if (c->type == RESULT_TEXT)
		writer_json(w, c->texts[row]);
	else if (c->type == RESULT_NUMBER)
		writer_str(w, c->texts[row]);
	else if (c->type == RESULT_BOOL)
		writer_puts(w, c->ints[row] ? "true" : "false");
	else if (c->type == RESULT_INT)
		writer_int(w, c->ints[row]);
	else if (isfinite(c->reals[row]))
		writer_real(w, c->reals[row]);
	else
		writer_puts(w, "null"); /* JSON has no infinity */
}

/* The members of a row; the object stays open for its children. */
static void open_row(struct writer *w, const struct result *r, uint32_t row)
{
	writer_char(w, '{');
	for (uint32_t c = 0; c < r->column_count; c++) {
		writer_puts(w, c ? ", " : "");
		writer_json(w, str_from(r->columns[c].name));
		writer_puts(w, ": ");
		put_value(w, &r->columns[c], row);
	}
}

static void put_flat_rows(struct writer *w, const struct result *r, bool any)
{
	for (uint32_t row = 0; row < r->row_count && w->status == OW_OK; row++) {
		writer_puts(w, row || any ? ",\n  " : "\n  ");
		open_row(w, r, row);
		writer_char(w, '}');
	}
}

static void put_separator(struct writer *w, const struct result *r, uint32_t level)
{
	writer_puts(w, r->column_count ? ", \"children\": [\n" : "\"children\": [\n");
	writer_repeat(w, ' ', 2 + (size_t)MIN(level, 30));
}

/* `level` counts open objects: a row deeper by more than one than the row before it (which no view
 * gives) nests by one. */
static void put_tree_rows(struct writer *w, const struct result *r)
{
	uint32_t level = 0;

	for (uint32_t row = 0; row < r->row_count && w->status == OW_OK; row++) {
		uint32_t depth = MIN(r->depth[row], level);

		if (!row) {
			writer_puts(w, "\n  ");
		} else if (depth == level) {
			put_separator(w, r, level);
		} else {
			for (; level > depth + 1; level--)
				writer_puts(w, "}]");
			level--;
			writer_puts(w, "},\n");
			writer_repeat(w, ' ', 2 + (size_t)MIN(level, 30));
		}
		open_row(w, r, row);
		level++;
	}
	for (; level > 1; level--)
		writer_puts(w, "}]");
	if (level)
		writer_char(w, '}');
}

static ow_status json_write(struct result *result, const struct sink_options *options,
			    const struct out *out, struct error *err)
{
	bool any = options->rows_before != 0;
	struct writer w;

	writer_init(&w, result->mem, out, err);
	if (!options->continued) {
		writer_puts(&w, "{\"view\": ");
		writer_json(&w, str_from(result->name));
		put_columns(&w, result);
		writer_puts(&w, ",\n\"rows\": [");
	}
	if (result->depth)
		put_tree_rows(&w, result);
	else
		put_flat_rows(&w, result, any);
	if (options->continues)
		return writer_finish(&w);
	writer_puts(&w, result->row_count || any ? "\n]" : "]");
	writer_puts(&w, ",\n\"footer\": ");
	if (result->footer)
		writer_json(&w, str_from(result->footer));
	else
		writer_puts(&w, "null");
	writer_puts(&w, "}\n");
	return writer_finish(&w);
}

const struct sink sink_json = {
	.name = "json",
	.summary = "one JSON document, trees nested",
	.extension = "json",
	.accepts = SINK_RESULT | SINK_TREES,
	.write = json_write,
};
