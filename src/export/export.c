/*
 * export.c: chooses the tables, checks the options, and writes one table after the other, group by group and file by
 * file; see export.h. The formats of the files are in export_<format>.c.
 */
#include "base/nearest.h"
#include "export/format.h"

#include <sys/stat.h>

#define EXPORT(name) extern const struct export_format export_##name;
#include "export/exports.def"
#undef EXPORT

static const struct export_format *const formats[] = {
#define EXPORT(name) &export_##name,
#include "export/exports.def"
#undef EXPORT
};

const struct export_format *export_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(formats); i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

ow_status export_progress(struct export_table *table, struct ow_error *err)
{
	const struct export_options *o = table->options;

	if (!o->progress || o->progress(o->progress_arg, table->t->name, table->done, table->total))
		return OW_OK;
	return error_set(err, OW_E_INTERRUPTED, "interrupted");
}

static enum pack_kind stream_packing(const struct export_table *table)
{
	if (table->options->format->packs_itself || table->packing == PACKING_NONE)
		return PACK_NONE;
	return table->packing == PACKING_GZIP ? PACK_GZIP : PACK_ZSTD;
}

static const char *packing_extension(const struct export_table *table)
{
	static const char *const ends[] = {
		[PACK_NONE] = "", [PACK_GZIP] = ".gz", [PACK_ZSTD] = ".zst"
	};

	return ends[stream_packing(table)];
}

/* Writes one file, from the block that was read last on. */
static ow_status fill_file(struct export_table *table, struct ow_error *err)
{
	const struct export_format *format = table->options->format;
	uint64_t limit = table->options->file_bytes;

	OW_TRY(format->begin(table, err));
	while (table->rows.n) {
		OW_TRY(format->block(table, err));
		table->done += table->rows.n;
		OW_TRY(export_progress(table, err));
		OW_TRY(rows_next(&table->rows, err));
		if (limit && table->stream.written + table->stream.in.len >= limit)
			break;
	}
	OW_TRY(format->end(table, err));
	return table_check(table->t, err);
}

static ow_status write_file(struct export_table *table, const char *path, struct ow_error *err)
{
	ow_status status;

	OW_TRY(stream_open(&table->stream, table->t->mem, path, stream_packing(table), err));
	status = stream_close(&table->stream, fill_file(table, err), err);
	table->summary->files++;
	table->summary->bytes += table->stream.written;
	return status;
}

static ow_status write_files(struct export_table *table, struct ow_error *err)
{
	const struct export_format *format = table->options->format;
	uint32_t number = 0;
	struct arena arena;
	ow_status status;

	arena_init(&arena, table->t->mem);
	do {
		const char *path =
			table->folders ? arena_printf(&arena, "%spart-%u%s%s", table->group->folder,
						      number++, format->extension,
						      packing_extension(table))
				       : table->group->folder;

		status = path ? write_file(table, path, err) : error_no_memory(err);
	} while (status == OW_OK && table->rows.n);
	arena_release(&arena);
	return status;
}

static ow_status write_group(struct export_table *table, const struct export_group *group,
			     struct ow_error *err)
{
	const struct export_format *format = table->options->format;
	ow_status status;

	table->group = group;
	if (table->folders)
		OW_TRY(place_folders(group->folder, table->t->mem, err));
	OW_TRY(group_start(&table->rows, group, err));
	OW_TRY(rows_next(&table->rows, err));
	status = format->prepare ? format->prepare(table, err) : OW_OK;
	if (status == OW_OK)
		status = write_files(table, err);
	if (format->release)
		format->release(table);
	return status;
}

/* Writes the rows of all runs together, as one group. */
static ow_status write_together(struct export_table *table, const char *target,
				struct ow_error *err)
{
	struct export_group group = { .folder = target, .end = table->t->part_count };
	struct order order = { 0 };
	ow_status status = OW_OK;

	if (table->sort != ORDER_NONE)
		status = order_make(table->t, 0, group.end, table->sort, ORDER_NONE, &order, err);
	group.items = order.items;
	group.count = order.count;
	if (status == OW_OK)
		status = write_group(table, &group, err);
	if (order.mem)
		order_release(&order);
	return status;
}

static ow_status write_step(struct export_table *table, const char *run_folder,
			    const struct order_item *items, size_t count, struct ow_error *err)
{
	struct export_group group = { .items = items, .count = count };
	bool known = !(items[0].where & ORDER_UNKNOWN);
	struct arena arena;
	ow_status status;

	arena_init(&arena, table->t->mem);
	group.folder = known ? arena_printf(&arena, "%sstep=%" PRId64 "/", run_folder,
					    order_number(items[0]))
			     : arena_printf(&arena, "%sstep=" NULL_FOLDER "/", run_folder);
	status = group.folder ? write_group(table, &group, err) : error_no_memory(err);
	arena_release(&arena);
	return status;
}

static ow_status write_steps(struct export_table *table, const char *run_folder,
			     const struct order *order, struct ow_error *err)
{
	for (size_t i = 0, end; i < order->count; i = end) {
		for (end = i + 1; end < order->count; end++)
			if (!order_same(order->items[i], order->items[end]))
				break;
		OW_TRY(write_step(table, run_folder, order->items + i, end - i, err));
	}
	return OW_OK;
}

static ow_status write_run(struct export_table *table, uint32_t part, const char *run_folder,
			   struct ow_error *err)
{
	struct export_group group = { .folder = run_folder, .first = part, .end = part + 1 };
	struct order order = { 0 };
	ow_status status = OW_OK;

	if (!table->t->parts[part].rows)
		return OW_OK;
	if (table->sort != ORDER_NONE || table->step != ORDER_NONE)
		status =
			order_make(table->t, part, part + 1, table->sort, table->step, &order, err);
	group.items = order.items;
	group.count = order.count;
	if (status == OW_OK)
		status = table->step != ORDER_NONE ? write_steps(table, run_folder, &order, err)
						   : write_group(table, &group, err);
	if (order.mem)
		order_release(&order);
	return status;
}

static ow_status write_runs(struct export_table *table, const char *target, struct ow_error *err)
{
	struct arena arena;
	ow_status status = place_folders(target, table->t->mem, err);

	arena_init(&arena, table->t->mem);
	for (uint32_t part = 0; part < table->t->part_count && status == OW_OK; part++) {
		const char *name = table->t->parts[part].run->name;
		char *value = place_escape(&arena, str_from(name));
		char *folder = value ? arena_printf(&arena, "%srun=%s/", target,
						    *value ? value : NULL_FOLDER)
				     : NULL;

		status = folder ? write_run(table, part, folder, err) : error_no_memory(err);
	}
	arena_release(&arena);
	return status;
}

static ow_status write_rows(struct export_table *table, struct ow_error *err)
{
	const char *target = table->staged;
	ow_status status;

	OW_TRY(table_prepare(table->t, err));
	table->total = table_row_count(table->t);
	OW_TRY(rows_open(&table->rows, table->t, table->skip, err));
	status = table->options->partition == PARTITION_NONE ? write_together(table, target, err)
							     : write_runs(table, target, err);
	rows_close(&table->rows);
	return status;
}

/* State of the whole export. */
struct exporting {
	const struct export_options *options;
	const struct table_run *runs;
	size_t run_count;
	struct mem *mem;
	struct place place;
	struct buf script; /* text of load.sh */
	void *shared;	   /* state that the format shares between tables */
	enum export_packing packing;
	const struct table_source **relations;
	size_t relation_count;
	struct export_summary *summary;
};

/* Finds the columns that become folders, the columns to sort by, and the names of all columns. */
static ow_status look_at_columns(struct exporting *e, struct export_table *table,
				 struct arena *arena, struct ow_error *err)
{
	const struct export_options *o = e->options;
	struct table *t = table->t;
	const char **names = ARENA_ARRAY(arena, const char *, t->column_count + 1);
	bool *skip = ARENA_ARRAY(arena, bool, t->column_count + 1);

	if (!names || !skip)
		return error_no_memory(err);
	for (uint32_t i = 0; i < t->column_count; i++)
		names[i] = t->columns[i].name;
	table->sort = o->sort ? table_find_column(t, str_from(o->sort)) : ORDER_NONE;
	if (table->sort != ORDER_NONE && !order_can_sort(&t->columns[table->sort]))
		table->sort = ORDER_NONE;
	table->step = ORDER_NONE;
	if (o->partition == PARTITION_STEP)
		table->step = table_find_column(t, STR("step"));
	if (table->step != ORDER_NONE && t->columns[table->step].type != TYPE_INT)
		table->step = ORDER_NONE;
	/* BigQuery loads local files one by one, and does not read folders. */
	if (o->partition != PARTITION_NONE && !o->bigquery) {
		skip[table_find_column(t, STR("run"))] = true;
		if (table->step != ORDER_NONE)
			skip[table->step] = true;
	}
	if (o->bigquery)
		OW_TRY(bigquery_names(arena, names, t->column_count, err));
	table->names = names;
	table->skip = skip;
	return OW_OK;
}

static const char *target_name(const struct export_table *table, const char *name,
			       struct arena *arena)
{
	if (table->folders)
		return arena_printf(arena, "%s/", name);
	return arena_printf(arena, "%s%s%s", name, table->options->format->extension,
			    packing_extension(table));
}

static ow_status add_bigquery(struct exporting *e, struct export_table *table, struct arena *arena,
			      struct ow_error *err)
{
	char *name = arena_printf(arena, "%s.schema.json", table->t->name);
	struct buf schema;
	ow_status status;

	if (!name)
		return error_no_memory(err);
	buf_init(&schema, e->mem);
	bigquery_schema(&schema, table);
	bigquery_load(&e->script, table);
	status = schema.failed ? error_no_memory(err)
			       : place_write(&e->place, name, buf_str(&schema), 0, true, err);
	buf_release(&schema);
	return status;
}

static ow_status write_table(struct exporting *e, struct export_table *table, struct arena *arena,
			     struct ow_error *err)
{
	const struct export_format *format = e->options->format;

	OW_TRY(look_at_columns(e, table, arena, err));
	table->target = target_name(table, table->t->name, arena);
	table->staged = table->target
				? arena_printf(arena, "%s/%s", e->place.staging, table->target)
				: NULL;
	if (!table->staged)
		return error_no_memory(err);
	OW_TRY(export_progress(table, err));
	OW_TRY(format->write ? format->write(table, err) : write_rows(table, err));
	OW_TRY(place_publish(&e->place, table->target, e->options->overwrite, err));
	e->summary->tables++;
	e->summary->rows += table->total;
	return e->options->bigquery ? add_bigquery(e, table, arena, err) : OW_OK;
}

static void describe(const struct exporting *e, struct export_table *table)
{
	*table = (struct export_table){
		.options = e->options,
		.packing = e->packing,
		.runs = e->runs,
		.run_count = e->run_count,
		.folders = e->options->partition != PARTITION_NONE || e->options->file_bytes,
		.staging = e->place.staging,
		.summary = e->summary,
	};
}

static ow_status export_one(struct exporting *e, const struct table_source *relation,
			    struct ow_error *err)
{
	struct export_table table;
	struct arena arena;
	ow_status status;

	describe(e, &table);
	table.shared = &e->shared;
	OW_TRY(relation_open(relation, e->runs, e->run_count, NULL, 0, e->mem, &table.t, err));
	arena_init(&arena, e->mem);
	status = write_table(e, &table, &arena, err);
	arena_release(&arena);
	table_free(table.t);
	return error_wrap(err, status, "%s", relation->name);
}

static ow_status no_table(struct str name, struct ow_error *err)
{
	size_t least = nearest_limit(name);
	const char *best = NULL;

	for (size_t i = 0; relation_at(i); i++)
		nearest_try(name, relation_at(i)->name, &best, &least);
	if (best)
		return error_set(err, OW_E_NOT_FOUND, "there is no table %.*s; did you mean %s?",
				 STR_ARG(name), best);
	return error_set(err, OW_E_NOT_FOUND,
			 "there is no table %.*s; 'opwatch sql .tables' lists them", STR_ARG(name));
}

static ow_status add_relation(struct exporting *e, struct str name, struct ow_error *err)
{
	const struct table_source *relation = relation_find(name);

	if (!relation)
		return no_table(name, err);
	for (size_t i = 0; i < e->relation_count; i++)
		if (e->relations[i] == relation)
			return OW_OK;
	e->relations[e->relation_count++] = relation;
	return OW_OK;
}

/* Chooses the tables. Views have parameters and are results, so they are exported only when named. */
static ow_status choose_tables(struct exporting *e, struct arena *arena, struct ow_error *err)
{
	const struct ow_list *tables = &e->options->tables;
	size_t all = 0;

	while (relation_at(all))
		all++;
	e->relations = ARENA_ARRAY(arena, const struct table_source *, all + 1);
	if (!e->relations)
		return error_no_memory(err);
	for (size_t i = 0; i < tables->count; i++)
		OW_TRY(add_relation(e, str_from(tables->items[i]), err));
	for (size_t i = 0; !tables->count && i < all; i++)
		if (!relation_at(i)->params)
			e->relations[e->relation_count++] = relation_at(i);
	return OW_OK;
}

static ow_status check_runs(const struct exporting *e, struct ow_error *err)
{
	for (size_t i = 0; i < e->run_count; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(e->runs[i].name, e->runs[k].name) == 0)
				return error_set(err, OW_E_USAGE, "two runs have the name %s",
						 e->runs[i].name);
	return OW_OK;
}

static ow_status choose_packing(struct exporting *e, struct ow_error *err)
{
	static const char *const names[] = { "", "none", "gzip", "zstd" };
	const struct export_format *format = e->options->format;
	enum pack_kind kind;

	e->packing = e->options->packing ? e->options->packing : format->usual;
	if (!(format->packings >> e->packing & 1))
		return error_set(err, OW_E_USAGE, "%s files cannot be compressed by %s",
				 format->name, names[e->packing]);
	if (!e->options->bigquery)
		return e->packing == PACKING_ZSTD && !format->write
			       ? pack_kind_of("x.zst", &kind, err)
			       : OW_OK;
	if (strcmp(format->name, "ndjson") != 0 && strcmp(format->name, "parquet") != 0)
		return error_set(err, OW_E_USAGE, "BigQuery gets ndjson or parquet, not %s",
				 format->name);
	if (e->packing == PACKING_ZSTD && !format->write)
		return error_set(err, OW_E_USAGE,
				 "BigQuery reads ndjson that is compressed by gzip, not by zstd");
	return OW_OK;
}

/* Checks that some table has the column to sort by. Tables that cannot be sorted by it keep their order. */
static ow_status check_sort(const struct exporting *e, struct ow_error *err)
{
	const char *sort = e->options->sort;
	bool found = !sort;

	for (size_t i = 0; sort && i < e->relation_count; i++) {
		struct table *t;
		uint32_t column;
		bool sortable;

		OW_TRY(relation_open(e->relations[i], NULL, 0, NULL, 0, e->mem, &t, err));
		column = table_find_column(t, str_from(sort));
		sortable = column == ORDER_NONE || order_can_sort(&t->columns[column]);
		table_free(t);
		found |= column != ORDER_NONE && sortable;
		if (!sortable && e->relation_count == 1)
			return error_set(err, OW_E_USAGE, "%s cannot be sorted by %s",
					 e->relations[i]->name, sort);
	}
	return found ? OW_OK
		     : error_set(err, OW_E_NOT_FOUND, "none of the tables has a column %s", sort);
}

static ow_status check_target(const struct exporting *e, const char *name, struct arena *arena,
			      struct ow_error *err)
{
	const char *path = name ? arena_printf(arena, "%s/%s", e->options->dir, name) : NULL;
	struct stat st;

	if (!path)
		return error_no_memory(err);
	if (lstat(path, &st) < 0)
		return OW_OK;
	return error_set(err, OW_E_USAGE, "%s already exists; --overwrite replaces it", path);
}

/* Before any other work: fails if a part of the export already exists, unless it may be overwritten. */
static ow_status check_targets(struct exporting *e, struct arena *arena, struct ow_error *err)
{
	if (e->options->overwrite)
		return OW_OK;
	for (size_t i = 0; i < e->relation_count; i++) {
		struct export_table table;

		describe(e, &table);
		OW_TRY(check_target(e, target_name(&table, e->relations[i]->name, arena), arena,
				    err));
	}
	return e->options->bigquery ? check_target(e, "load.sh", arena, err) : OW_OK;
}

static ow_status check(struct exporting *e, struct arena *arena, struct ow_error *err)
{
	OW_TRY(check_runs(e, err));
	OW_TRY(choose_packing(e, err));
	OW_TRY(choose_tables(e, arena, err));
	OW_TRY(check_sort(e, err));
	return check_targets(e, arena, err);
}

static ow_status write_all(struct exporting *e, struct ow_error *err)
{
	bigquery_script(&e->script);
	for (size_t i = 0; i < e->relation_count; i++)
		OW_TRY(export_one(e, e->relations[i], err));
	if (!e->options->bigquery)
		return OW_OK;
	return e->script.failed ? error_no_memory(err)
				: place_write(&e->place, "load.sh", buf_str(&e->script), 0755,
					      e->options->overwrite, err);
}

ow_status export_tables(const struct table_run *runs, size_t run_count,
			const struct export_options *options, struct mem *mem,
			struct export_summary *summary, struct ow_error *err)
{
	struct exporting e = { .options = options,
			       .runs = runs,
			       .run_count = run_count,
			       .mem = mem,
			       .summary = summary };
	struct arena arena;
	ow_status status;

	*summary = (struct export_summary){ 0 };
	arena_init(&arena, mem);
	buf_init(&e.script, mem);
	status = check(&e, &arena, err);
	if (status == OW_OK)
		status = place_open(&e.place, mem, options->dir, err);
	if (status == OW_OK) {
		status = write_all(&e, err);
		if (e.shared)
			options->format->finish(e.shared, mem);
		place_close(&e.place, status != OW_OK);
	}
	buf_release(&e.script);
	arena_release(&arena);
	return status;
}
