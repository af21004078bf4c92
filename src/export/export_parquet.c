/*
 * export_parquet.c: Parquet, written by DuckDB from the relations in place: COPY (SELECT … FROM event) TO ….
 * It reads them
 * through a stream, so that all cores encode and the order is kept. Folders of partitions, the size of files and the order are DuckDB's work; it spills what does not fit in
 * memory next to the files. One session serves all tables of an export.
 */
#include "export/format.h"

#include "sql/sql.h"

/* ---- the session ---- */

struct parquet {
	struct sql *sql;
	struct export_table *table; /* the one that is being written */
};

static bool on_progress(void *arg)
{
	struct parquet *p = arg;

	return export_progress(p->table, NULL) == OW_OK;
}

static ow_status open_session(struct export_table *table, struct parquet **out, struct error *err)
{
	struct parquet *p = *table->shared;
	struct sql_options options = { .memory_limit = table->options->memory_limit,
				       .temp_dir = table->staging,
				       .allow_io = true, /* all the SQL is ours */
				       .progress = on_progress };
	ow_status status;

	if (!p) {
		p = mem_zalloc(table->t->mem, sizeof(*p));
		if (!p)
			return error_no_memory(err);
		options.progress_arg = p;
		status = sql_open(table->runs, table->run_count, &options, table->t->mem, &p->sql,
				  err);
		if (status != OW_OK) {
			mem_free(table->t->mem, p, sizeof(*p));
			return status;
		}
		*table->shared = p;
	}
	p->table = table;
	*out = p;
	return OW_OK;
}

static void close_session(void *shared, struct mem *mem)
{
	struct parquet *p = shared;

	sql_close(p->sql);
	mem_free(mem, p, sizeof(*p));
}

/* Runs a statement; *number (may be NULL) becomes what its first row has. */
static ow_status run(struct parquet *p, const struct buf *text, int64_t *number, struct error *err)
{
	const struct sql_result *result;
	struct sql_script *script;
	ow_status status;
	uint32_t rows;

	if (text->failed)
		return error_no_memory(err);
	OW_TRY(sql_parse(p->sql, buf_str(text), &script, err));
	status = sql_step(script, &result, err);
	if (status == OW_OK && number)
		status = sql_fetch(script, &rows, err);
	if (status == OW_OK && number && rows && result->columns[0].type == SQL_INT)
		*number = result->columns[0].ints[0];
	sql_script_free(script);
	return status;
}

/* ---- statements ---- */

#define STREAM "rows of the table"
/* A quarter of what DuckDB would take: groups are packed on several cores, and the last ones leave none idle. The
 * files grow by less than a hundredth. */
#define GROUP_ROWS 30720

static void put_quoted(struct buf *to, const char *text, char quote)
{
	buf_add_char(to, quote);
	for (; *text; text++) {
		if (*text == quote)
			buf_add_char(to, quote);
		buf_add_char(to, *text);
	}
	buf_add_char(to, quote);
}

static void put_columns(struct buf *to, const struct export_table *table)
{
	for (uint32_t i = 0; i < table->t->column_count; i++) {
		const struct relation_column *c = &table->t->columns[i];
		bool wide = table->options->bigquery && c->type == RELATION_UINT64;

		buf_puts(to, i ? ", " : "SELECT ");
		buf_puts(to, wide ? "CAST(" : "");
		put_quoted(to, c->name, '"');
		buf_puts(to, wide ? " AS DECIMAL(20, 0))" : "");
		if (wide || strcmp(c->name, table->names[i]) != 0) {
			buf_puts(to, " AS ");
			put_quoted(to, table->names[i], '"');
		}
	}
}

/* Rows that are equal in the column stay in the table's order. */
static void put_order(struct buf *to, const struct export_table *table)
{
	if (table->sort == ORDER_NONE)
		return;
	buf_puts(to, " ORDER BY ");
	put_quoted(to, table->t->columns[table->sort].name, '"');
	buf_puts(to, " NULLS LAST");
	if (relation_find_column(table->t, STR("id")) != UINT32_MAX)
		buf_puts(to, ", id");
}

static void put_options(struct buf *to, const struct export_table *table)
{
	static const char *const packings[] = {
		[PACKING_NONE] = "uncompressed", [PACKING_GZIP] = "gzip", [PACKING_ZSTD] = "zstd"
	};
	const struct export_options *o = table->options;

	buf_printf(to, " (FORMAT parquet, ROW_GROUP_SIZE %d, COMPRESSION %s", GROUP_ROWS,
		   packings[table->packing]);
	if (table->folders)
		buf_puts(to, ", FILENAME_PATTERN 'part-{i}'");
	if (o->partition != PARTITION_NONE)
		buf_printf(to, ", PARTITION_BY (run%s), WRITE_PARTITION_COLUMNS %s",
			   table->step != ORDER_NONE ? ", step" : "",
			   o->bigquery ? "true" : "false");
	else if (o->file_bytes)
		buf_printf(to, ", FILE_SIZE_BYTES %" PRIu64, o->file_bytes);
	buf_puts(to, ")");
}

static ow_status check(const struct export_table *table, struct error *err)
{
	if (table->options->partition == PARTITION_NONE || !table->options->file_bytes)
		return OW_OK;
	return error_set(err, OW_E_USAGE,
			 "Parquet files are partitioned or split by size, not both: leave out "
			 "--partition or --split");
}

static ow_status count_rows(struct parquet *p, struct export_table *table, struct error *err)
{
	int64_t rows = 0;
	struct buf text;
	ow_status status;

	buf_init(&text, table->t->mem);
	buf_puts(&text, "SELECT count(*)::BIGINT FROM ");
	put_quoted(&text, table->t->relation->name, '"');
	status = run(p, &text, &rows, err);
	buf_release(&text);
	table->total = (uint64_t)rows;
	return status;
}

static ow_status write_table(struct export_table *table, struct error *err)
{
	struct parquet *p;
	ow_status status;
	struct buf text;

	OW_TRY(check(table, err));
	OW_TRY(open_session(table, &p, err));
	OW_TRY(count_rows(p, table, err));
	OW_TRY(sql_stream_view(p->sql, table->t->relation, STREAM, err));
	if (table->folders)
		OW_TRY(place_folders(table->staged, table->t->mem, err));
	buf_init(&text, table->t->mem);
	buf_puts(&text, "COPY (");
	put_columns(&text, table);
	buf_puts(&text, " FROM ");
	put_quoted(&text, STREAM, '"');
	put_order(&text, table);
	buf_puts(&text, ") TO ");
	put_quoted(&text, table->staged, '\'');
	put_options(&text, table);
	status = table->total || !table->folders ? run(p, &text, NULL, err) : OW_OK;
	buf_release(&text);
	OW_TRY(status);
	return place_measure(table->staged, &table->summary->files, &table->summary->bytes, err);
}

const struct export_format export_parquet = {
	.name = "parquet",
	.extension = ".parquet",
	.doc = "Parquet, by DuckDB",
	.packings = 1u << PACKING_NONE | 1u << PACKING_GZIP | 1u << PACKING_ZSTD,
	.usual = PACKING_ZSTD,
	.packs_itself = true,
	.write = write_table,
	.finish = close_session,
};
