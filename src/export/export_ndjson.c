/*
 * export_ndjson.c: an object of JSON per line. Integers are exact, real numbers the shortest text that reads
 * back as the same; what JSON has no number for is null. For BigQuery, integers that its loader would round
 * (beyond 2^53) are strings, and so are infinities, as its documentation asks for.
 */
#include "export/format.h"

#include <math.h>

#define EXACT ((int64_t)1 << 53)

static void put_ndjson_int(struct buf *to, int64_t value, bool bigquery)
{
	bool quoted = bigquery && (value >= EXACT || value <= -EXACT);

	if (quoted)
		buf_add_char(to, '"');
	put_int(to, value);
	if (quoted)
		buf_add_char(to, '"');
}

/* BigQuery has no unsigned integers; the column is a NUMERIC, which takes all of them. */
static void put_ndjson_uint(struct buf *to, uint64_t value, bool bigquery)
{
	bool quoted = bigquery && value >= (uint64_t)EXACT;

	if (quoted)
		buf_add_char(to, '"');
	put_uint(to, value);
	if (quoted)
		buf_add_char(to, '"');
}

static void put_ndjson_real(struct buf *to, double value, bool bigquery)
{
	if (isfinite(value))
		put_real(to, value);
	else if (!bigquery)
		buf_puts(to, "null");
	else if (isnan(value))
		buf_puts(to, "\"NaN\"");
	else
		buf_puts(to, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
}

static void put_text(struct buf *to, struct str text)
{
	if (text.ptr)
		put_json(to, text);
	else
		buf_puts(to, "null");
}

static void put_value(struct buf *to, const struct rows *rows, const struct rows_column *column,
		      uint32_t i, bool bigquery)
{
	if (column->c->type == RELATION_TEXT) {
		put_text(to, rows_text(rows, column, i));
		return;
	}
	if (!rows_known(column, i)) {
		buf_puts(to, "null");
		return;
	}
	switch (column->c->type) {
	case RELATION_BOOL:
		buf_puts(to, ((const bool *)column->values)[i] ? "true" : "false");
		return;
	case RELATION_INT32:
		put_int(to, ((const int32_t *)column->values)[i]);
		return;
	case RELATION_INT64:
		put_ndjson_int(to, ((const int64_t *)column->values)[i], bigquery);
		return;
	case RELATION_UINT64:
		put_ndjson_uint(to, ((const uint64_t *)column->values)[i], bigquery);
		return;
	default:
		put_ndjson_real(to, ((const double *)column->values)[i], bigquery);
	}
}

/* {"run": and ,"id": and so on, made once. */
struct heads {
	struct arena arena;
	struct str *of;
};

static ow_status make_head(struct heads *heads, const char *name, uint32_t column)
{
	struct buf text;

	buf_init(&text, heads->arena.mem);
	buf_add_char(&text, column ? ',' : '{');
	put_json(&text, str_from(name));
	buf_add_char(&text, ':');
	if (!text.failed)
		heads->of[column] = arena_str(&heads->arena, buf_str(&text));
	buf_release(&text);
	return heads->of[column].ptr ? OW_OK : OW_E_NO_MEMORY;
}

static ow_status prepare(struct export_table *table, struct error *err)
{
	const struct rows *rows = &table->rows;
	struct heads *heads = mem_zalloc(table->t->mem, sizeof(*heads));

	if (!heads)
		return error_no_memory(err);
	table->state = heads;
	arena_init(&heads->arena, table->t->mem);
	heads->of = ARENA_ARRAY(&heads->arena, struct str, rows->column_count + 1);
	if (!heads->of)
		return error_no_memory(err);
	for (uint32_t c = 0; c < rows->column_count; c++)
		if (make_head(heads, table->names[rows->columns[c].index], c) != OW_OK)
			return error_no_memory(err);
	return OW_OK;
}

static void release(struct export_table *table)
{
	struct heads *heads = table->state;

	if (!heads)
		return;
	arena_release(&heads->arena);
	mem_free(table->t->mem, heads, sizeof(*heads));
	table->state = NULL;
}

static ow_status block(struct export_table *table, struct error *err)
{
	const struct heads *heads = table->state;
	const struct rows *rows = &table->rows;
	struct buf *to = &table->stream.in;

	for (uint32_t i = 0; i < rows->n; i++) {
		for (uint32_t c = 0; c < rows->column_count; c++) {
			buf_add_str(to, heads->of[c]);
			put_value(to, rows, &rows->columns[c], i, table->options->bigquery);
		}
		buf_puts(to, rows->column_count ? "}\n" : "{}\n");
	}
	return stream_flush(&table->stream, err);
}

static ow_status nothing(struct export_table *table, struct error *err)
{
	(void)table;
	(void)err;
	return OW_OK;
}

const struct export_format export_ndjson = {
	.name = "ndjson",
	.extension = ".ndjson",
	.doc = "newline-delimited JSON",
	.packings = 1u << PACKING_NONE | 1u << PACKING_GZIP | 1u << PACKING_ZSTD,
	.usual = PACKING_NONE,
	.prepare = prepare,
	.begin = nothing,
	.block = block,
	.end = nothing,
	.release = release,
};
