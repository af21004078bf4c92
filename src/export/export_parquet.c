/*
 * export_parquet.c: Parquet, written by DuckDB directly from the relations: COPY (SELECT … FROM event) TO …. DuckDB
 * reads them through a stream, so that all cores encode and the order is kept. DuckDB also creates the folders of
 * partitions, limits the size of files and sorts, and spills next to the files when memory is short. One session serves
 * all tables of an export.
 */
#include "export/format.h"

#include "sql/sql.h"

struct parquet {
	struct sql *sql;
	struct export_table *table; /* the table that is being written */
};

static bool on_progress(void *arg)
{
	struct parquet *p = arg;

	return export_progress(p->table, NULL) == OW_OK;
}

static ow_status open_session(struct export_table *table, struct parquet **out,
			      struct ow_error *err)
{
	struct parquet *p = *table->shared;
	struct sql_options options = { .memory_limit = table->options->memory_limit,
				       .temp_dir = table->staging,
				       /* safe, because all SQL comes from this file */
				       .allow_io = true,
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

static ow_status run_statement(struct sql *sql, const struct buf *text, struct ow_error *err)
{
	struct sql_script *script;
	struct table *rows;
	ow_status status;

	if (text->failed)
		return error_no_memory(err);
	OW_TRY(sql_parse(sql, buf_str(text), &script, err));
	status = sql_step(script, &rows, err);
	sql_script_free(script);
	return status;
}

#define STREAM "rows of the table"
/* Rows of a row group, DuckDB's default. Readers skip whole groups by their statistics, but each group has a cost. */
#define GROUP_ROWS 122880

static void put_columns(struct buf *to, const struct export_table *table)
{
	for (uint32_t i = 0; i < table->t->column_count; i++) {
		const struct table_column *c = &table->t->columns[i];
		bool wide = table->options->bigquery && c->type == TYPE_UINT64;

		buf_puts(to, i ? ", " : "SELECT ");
		buf_puts(to, wide ? "CAST(" : "");
		sql_quote_name(to, str_from(c->name));
		buf_puts(to, wide ? " AS DECIMAL(20, 0))" : "");
		if (wide || strcmp(c->name, table->names[i]) != 0) {
			buf_puts(to, " AS ");
			sql_quote_name(to, str_from(table->names[i]));
		}
	}
}

/* Writes ORDER BY; rows with equal values keep the table's order. */
static void put_order(struct buf *to, const struct export_table *table)
{
	if (table->sort == ORDER_NONE)
		return;
	buf_puts(to, " ORDER BY ");
	sql_quote_name(to, str_from(table->t->columns[table->sort].name));
	buf_puts(to, " NULLS LAST");
	if (table_find_column(table->t, STR("id")) != UINT32_MAX)
		buf_puts(to, ", id");
}

static void put_key(struct buf *to, const char *column)
{
	struct buf key;

	buf_init(&key, to->mem);
	buf_printf(&key, "opwatch.unit.%s", column);
	sql_quote(to, buf_str(&key));
	buf_release(&key);
}

/* Writes the units of columns into the metadata of the file, opwatch.unit.ts = ns, because Parquet columns have no
 * units. */
static void put_units(struct buf *to, const struct table *t, const char *const *names)
{
	buf_puts(to, ", KV_METADATA {'opwatch.table': ");
	sql_quote(to, str_from(t->name));
	for (uint32_t i = 0; i < t->column_count; i++) {
		const char *unit = column_unit_name(t->columns[i].unit);

		if (!unit)
			continue;
		buf_puts(to, ", ");
		put_key(to, names ? names[i] : t->columns[i].name);
		buf_puts(to, ": ");
		sql_quote(to, str_from(unit));
	}
	buf_puts(to, "}");
}

static void put_options(struct buf *to, const struct export_table *table)
{
	static const char *const packings[] = {
		[PACKING_NONE] = "uncompressed", [PACKING_GZIP] = "gzip", [PACKING_ZSTD] = "zstd"
	};
	const struct export_options *o = table->options;

	buf_printf(to, " (FORMAT parquet, ROW_GROUP_SIZE %d, COMPRESSION %s", GROUP_ROWS,
		   packings[table->packing]);
	put_units(to, table->t, table->names);
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

static ow_status check(const struct export_table *table, struct ow_error *err)
{
	if (table->options->partition == PARTITION_NONE || !table->options->file_bytes)
		return OW_OK;
	return error_set(err, OW_E_USAGE,
			 "Parquet files are partitioned or split by size, not both: leave out "
			 "--partition or --split");
}

static ow_status write_table(struct export_table *table, struct ow_error *err)
{
	struct parquet *p;
	ow_status status;
	struct buf text;

	OW_TRY(check(table, err));
	OW_TRY(open_session(table, &p, err));
	OW_TRY(sql_stream_view(p->sql, table->t, STREAM, err));
	table->total = table_row_count(table->t);
	if (table->folders)
		OW_TRY(place_folders(table->staged, table->t->mem, err));
	buf_init(&text, table->t->mem);
	buf_puts(&text, "COPY (");
	put_columns(&text, table);
	buf_puts(&text, " FROM ");
	sql_quote_name(&text, STR(STREAM));
	put_order(&text, table);
	buf_puts(&text, ") TO ");
	sql_quote(&text, str_from(table->staged));
	put_options(&text, table);
	status = table->total || !table->folders ? run_statement(p->sql, &text, err) : OW_OK;
	buf_release(&text);
	OW_TRY(status);
	OW_TRY(table_check(table->t, err));
	if (table->step != ORDER_NONE)
		OW_TRY(place_name_unknown(table->staged, "step=NULL", "step=" NULL_FOLDER, err));
	return place_measure(table->staged, &table->summary->files, &table->summary->bytes, err);
}

ow_status export_parquet_file(struct table *t, const char *path, struct mem *mem,
			      struct ow_error *err)
{
	/* safe, because all SQL comes from this file */
	struct sql_options options = { .allow_io = true };
	struct sql *sql;
	ow_status status;
	struct buf text;

	OW_TRY(sql_open(NULL, 0, &options, mem, &sql, err));
	buf_init(&text, mem);
	buf_puts(&text, "COPY (FROM ");
	sql_quote_name(&text, STR(STREAM));
	buf_puts(&text, ") TO ");
	sql_quote(&text, str_from(path));
	buf_puts(&text, " (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false");
	put_units(&text, t, NULL);
	buf_puts(&text, ")");
	status = sql_stream_view(sql, t, STREAM, err);
	if (status == OW_OK)
		status = run_statement(sql, &text, err);
	buf_release(&text);
	sql_close(sql);
	return status;
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
