/*
 * export_ndjson.c: a JSON object per line. Integers are exact, real numbers the shortest text that reads back as the
 * same; values that JSON cannot write as numbers are null. For BigQuery, integers that its loader would round (beyond
 * 2^53) are strings, and so are infinities, as its documentation requires.
 */
#include "export/format.h"

/* Texts before the values of a row, {"run": and ,"id": and so on, made once. */
struct heads {
	struct arena arena;
	struct str *of;
};

static ow_status prepare(struct export_table *table, struct ow_error *err)
{
	struct heads *heads = mem_zalloc(table->t->mem, sizeof(*heads));

	if (!heads)
		return error_no_memory(err);
	table->state = heads;
	arena_init(&heads->arena, table->t->mem);
	heads->of = json_names(&table->rows, table->names, "{", ",", ":", &heads->arena, err);
	return heads->of ? OW_OK : OW_E_NO_MEMORY;
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

static ow_status block(struct export_table *table, struct ow_error *err)
{
	enum cell_style style = table->options->bigquery ? CELL_BIGQUERY : CELL_EXPORT;
	const struct heads *heads = table->state;
	struct buf *to = &table->stream.in;

	for (uint32_t i = 0; i < table->rows.n; i++) {
		row_json(to, &table->rows, heads->of, i, style);
		buf_puts(to, table->rows.column_count ? "}\n" : "{}\n");
	}
	return stream_flush(&table->stream, err);
}

static ow_status no_frame(struct export_table *table, struct ow_error *err)
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
	.begin = no_frame,
	.block = block,
	.end = no_frame,
	.release = release,
};
