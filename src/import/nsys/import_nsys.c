/*
 * import_nsys.c: the importer of SQLite databases that Nsight Systems exports, of any version. It recognises them, runs the
 * steps of reading (nsys_store.h has the overview) and collects what `info` shows: tables with their rows, devices, and sums
 * in nanoseconds since the recording began. Databases of other programs get an error that names the program, and so do the
 * reports that Nsight Systems itself writes, because their layout is not public. Values of the environment are not read.
 */
#include "import/nsys/nsys_store.h"

#include <strings.h>

#define REPORT_MAGIC "NVIDIA Tegra Profiler Report"
#define TOP 5

static bool is_database(struct str head)
{
	return head.len >= sizeof(SQLITE_MAGIC) &&
	       memcmp(head.ptr, SQLITE_MAGIC, sizeof(SQLITE_MAGIC)) == 0;
}

static int sniff_nsys(const struct sniff *sniff)
{
	if (is_database(sniff->head))
		return 90;
	return str_starts(sniff->head, STR(REPORT_MAGIC)) ? 100 : 0;
}

static bool has_prefix(const struct sqlite_file *db, const char *prefix)
{
	for (size_t i = 0; i < db->table_count; i++)
		if (strncasecmp(db->tables[i].name.ptr, prefix, strlen(prefix)) == 0)
			return true;
	return false;
}

static bool is_export(const struct sqlite_file *db)
{
	return has_prefix(db, "CUPTI_ACTIVITY_KIND_") || sqlite_file_table(db, "NVTX_EVENTS") ||
	       sqlite_file_table(db, "OSRT_API") || sqlite_file_table(db, "COMPOSITE_EVENTS") ||
	       (sqlite_file_table(db, "StringIds") &&
		sqlite_file_table(db, "TARGET_INFO_SYSTEM_ENV"));
}

/* Rejects a database of another program, which may also end in .sqlite or .db. */
static ow_status refuse_database(const struct nsys *n)
{
	const struct sqlite_file *db = &n->db;
	const char *name = n->ctx->in->name;
	struct ow_error *err = n->ctx->err;

	if (sqlite_file_table(db, "read_only_kernels"))
		return error_set(
			err, OW_E_FORMAT,
			"%s: this is a database of DLProf; open the nsys_profile.sqlite beside it "
			"instead, or export the .qdrep again: nsys export --type sqlite --output "
			"nsys_profile.sqlite nsys_profile.qdrep",
			name);
	if (has_prefix(db, "rocpd_"))
		return error_set(
			err, OW_E_FORMAT,
			"%s: this is a database of ROCm's profiler (rocprofv3, rocpd), which "
			"opwatch "
			"cannot read; convert it with 'rocpd convert -i FILE -f pftrace' and that "
			"with "
			"Perfetto's 'traceconv json FILE.pftrace OUT.json', and open OUT.json",
			name);
	if (has_prefix(db, "CUPTI_") || sqlite_file_table(db, "Driver"))
		return error_set(
			err, OW_E_FORMAT,
			"%s: this SQLite database, probably of nvprof, cannot be read; record with "
			"Nsight Systems and open its SQLite export",
			name);
	return error_set(err, OW_E_FORMAT,
			 "%s: an SQLite database with %zu tables, none of which Nsight Systems "
			 "writes%s%.*s; opwatch reads only exports of Nsight Systems",
			 name, db->table_count, db->table_count ? "; the first is " : "",
			 STR_ARG(db->table_count ? db->tables[0].name : STR("")));
}

static ow_status read_epoch(struct nsys *n, const struct sqlite_rows *rows)
{
	n->epoch_ns = MAX(sqlite_int(rows, 0), 0);
	return OW_OK;
}

/* Reads the version only: other values may be paths, or names of people. */
static ow_status read_version(struct nsys *n, const struct sqlite_rows *rows)
{
	struct str value;

	if (!str_eq(sqlite_text(rows, 0), STR("EXPORT_PRODUCT_VERSION")))
		return OW_OK;
	value = sqlite_text(rows, 1);
	if (value.len < 32 && utf8_plain_prefix(value) == value.len)
		snprintf(n->version, sizeof(n->version), "Nsight Systems %.*s", STR_ARG(value));
	return OW_OK;
}

/* Counts the rows of a table that no reader has read. */
static ow_status count_rows(struct nsys *n, struct sqlite_table *table)
{
	struct sqlite_rows rows;
	ow_status status = OW_OK;

	if (table->read)
		return OW_OK;
	status = sqlite_rows_open(&rows, &n->db, table->name.ptr, NULL, 0);
	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		;
	sqlite_rows_close(&rows);
	return status;
}

static ow_status table_facts(struct nsys *n)
{
	fact_id tables = fact_object(n->b, (fact_id){ 0 }, "tables");
	int64_t nonempty = 0;

	for (size_t i = 0; i < n->db.table_count; i++) {
		struct sqlite_table *table = &n->db.tables[i];

		OW_TRY(count_rows(n, table));
		nonempty += table->rows > 0;
		if (utf8_valid(table->name))
			fact_int(n->b, tables, table->name.ptr, (int64_t)table->rows);
	}
	fact_int(n->b, (fact_id){ 0 }, "tables_nonempty", nonempty);
	fact_int(n->b, (fact_id){ 0 }, "schema_rows", (int64_t)n->db.schema_rows);
	return builder_status(n->b);
}

struct ranked {
	str_id name;
	int64_t total, count;
};

static bool ranks_before(const struct nsys *n, const struct ranked *a, const struct ranked *b)
{
	if (a->total != b->total)
		return a->total > b->total;
	return str_cmp(model_str(n->b->m, a->name), model_str(n->b->m, b->name)) < 0;
}

static void add_ranked(const struct nsys *n, struct ranked best[TOP], struct ranked one)
{
	for (size_t i = 0; i < TOP; i++) {
		struct ranked swap = best[i];

		if (swap.count && !ranks_before(n, &one, &swap))
			continue;
		best[i] = one;
		if (!swap.count)
			return;
		one = swap;
	}
}

static void top_facts(struct nsys *n, fact_id parent, bool kernels)
{
	struct ranked best[TOP] = { 0 };
	fact_id list;

	for (size_t i = 1; i < n->name_count; i++) {
		const struct nsys_name *name = &n->names[i];
		struct ranked one = { name->text, name->call_ns, name->call_count };

		if (kernels)
			one = (struct ranked){ name->text, name->kernel_ns, name->kernel_count };
		if (one.count)
			add_ranked(n, best, one);
	}
	list = fact_list(n->b, parent, "top5");
	for (size_t i = 0; i < TOP && best[i].count; i++) {
		fact_id item = fact_list(n->b, list, NULL);

		fact_text(n->b, item, NULL, model_str(n->b->m, best[i].name));
		fact_int(n->b, item, NULL, best[i].total);
		fact_int(n->b, item, NULL, best[i].count);
	}
}

static void tally_facts(struct nsys *n, const char *table, const struct nsys_tally *t, bool kernels)
{
	fact_id parent;

	if (!t->rows)
		return;
	parent = fact_object(n->b, (fact_id){ 0 }, table);
	fact_int(n->b, parent, "rows", t->rows);
	fact_int(n->b, parent, "min_start", t->first_ns);
	fact_int(n->b, parent, "max_end", t->last_ns);
	fact_int(n->b, parent, "total_ns", t->total_ns);
	top_facts(n, parent, kernels);
}

struct columns {
	struct nsys *n;
	fact_id list;
};

static void add_column(void *arg, struct str column)
{
	struct columns *c = arg;

	if (utf8_valid(column))
		fact_text(c->n->b, c->list, NULL, column);
}

static ow_status range_facts(struct nsys *n)
{
	struct sqlite_table *table = sqlite_file_table(&n->db, "NVTX_EVENTS");
	struct columns columns = { .n = n };
	fact_id parent, types;

	if (!table || !n->ranges)
		return OW_OK;
	parent = fact_object(n->b, (fact_id){ 0 }, "NVTX_EVENTS");
	fact_int(n->b, parent, "rows", n->ranges);
	fact_int(n->b, parent, "with_end", n->ranges_with_end);
	types = fact_object(n->b, parent, "by_eventType");
	for (size_t i = 0; i < ARRAY_COUNT(n->range_types); i++) {
		char type[16];

		snprintf(type, sizeof(type), "%zu", i);
		if (n->range_types[i])
			fact_int(n->b, types, type, n->range_types[i]);
	}
	columns.list = fact_list(n->b, parent, "columns");
	return sqlite_file_columns(&n->db, table, add_column, &columns);
}

static ow_status device_facts(struct nsys *n)
{
	static const char *const columns[] = { "name" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "TARGET_INFO_GPU", columns, 1);
	fact_id list = { 0 };

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		if (!list.v)
			list = fact_list(n->b, (fact_id){ 0 }, "gpus");
		fact_text(n->b, list, NULL,
			  model_str(n->b->m, nsys_utf8(n, sqlite_text(&rows, 0))));
		status = builder_status(n->b);
	}
	sqlite_rows_close(&rows);
	return status;
}

/* The only values of the machine's description that are read: others may contain anything, even passwords. */
static const char *const machine_values[] = { "CpuCores",	 "CpuDescription",
					      "CpuArchitecture", "OsDescription",
					      "NvDriverVersion", "CudaDriverVersion" };

static ow_status machine_facts(struct nsys *n)
{
	static const char *const columns[] = { "name", "value" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "TARGET_INFO_SYSTEM_ENV", columns, 2);
	fact_id machine = { 0 };
	uint32_t seen = 0;

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct str name = sqlite_text(&rows, 0);

		for (uint32_t i = 0; i < ARRAY_COUNT(machine_values); i++) {
			if (seen >> i & 1 || !str_eq(name, str_from(machine_values[i])))
				continue;
			seen |= 1u << i;
			if (!machine.v)
				machine = fact_object(n->b, (fact_id){ 0 }, "machine");
			fact_text(n->b, machine, machine_values[i],
				  model_str(n->b->m, nsys_utf8(n, sqlite_text(&rows, 1))));
		}
		status = builder_status(n->b);
	}
	sqlite_rows_close(&rows);
	return status;
}

static void add_notes(struct nsys *n)
{
	static const struct {
		enum note_kind kind;
		const char *text;
	} notes[NSYS_PROBLEMS] = {
		[NSYS_NO_TIME] = { NOTE_DROPPED, "rows without a time are left out" },
		[NSYS_NEGATIVE] = { NOTE_REPAIRED,
				    "rows that end before they start: their length is set to 0" },
		[NSYS_CLAMPED] = { NOTE_REPAIRED, "times that do not fit into 64 bits of "
						  "nanoseconds are replaced by the limit" },
		[NSYS_OPEN] = { NOTE_REPAIRED,
				"ranges without an end: they last until the recording ends" },
		[NSYS_UNMATCHED] = { NOTE_DROPPED,
				     "starts or ends of ranges without their counterpart are left "
				     "out" },
		[NSYS_BIG_NUMBER] = { NOTE_INFO,
				      "correlation numbers do not fit into 32 bits: the launches "
				      "of these rows are unknown" },
		[NSYS_NO_TEXT] = { NOTE_MISSING, "rows whose name is not in the database" },
		[NSYS_BROKEN_CHAIN] = { NOTE_DAMAGED,
					"rows of call chains with impossible values are left out" },
		[NSYS_WARNING] = { NOTE_INFO, "warnings of Nsight Systems about this recording; "
					      "open it in Nsight Systems to read them" },
		[NSYS_ERROR] = { NOTE_INFO, "errors of Nsight Systems in this recording; open it "
					    "in Nsight Systems to read them" },
	};

	for (size_t i = 0; i < NSYS_PROBLEMS; i++)
		if (n->problems[i])
			builder_note_many(n->b, notes[i].kind, OW_NO_OFFSET, n->problems[i], "%s",
					  notes[i].text);
	if (n->db.logged)
		builder_note_many(n->b, NOTE_INFO, OW_NO_OFFSET, n->db.logged,
				  "the database has a write-ahead log (-wal), which is not read: "
				  "rows that are only there are missing");
	if (n->db.cut)
		builder_note(n->b, NOTE_TRUNCATED, n->ctx->in->size,
			     "the database is shorter than its header says; the rows that are "
			     "there are used");
	for (size_t i = 0; i < n->db.table_count; i++)
		if (n->db.tables[i].damaged)
			builder_note(n->b, NOTE_DAMAGED, OW_NO_OFFSET,
				     "table %.*s is damaged; the %" PRIu64
				     " rows before the damage are used",
				     STR_ARG(n->db.tables[i].name), n->db.tables[i].rows);
}

static ow_status read_tables(struct nsys *n)
{
	static const char *const start[] = { "utcEpochNs" };
	static const char *const pairs[] = { "name", "value" };

	OW_TRY(nsys_each_row(n, "TARGET_INFO_SESSION_START_TIME", start, 1, read_epoch));
	OW_TRY(nsys_each_row(n, "EXPORT_META_DATA", pairs, 2, read_version));
	OW_TRY(nsys_each_row(n, "META_DATA_EXPORT", pairs, 2, read_version));
	OW_TRY(nsys_read_host(n));
	OW_TRY(nsys_read_device(n));
	OW_TRY(nsys_read_ranges(n));
	OW_TRY(nsys_read_values(n));
	OW_TRY(nsys_read_chains(n));
	OW_TRY(nsys_read_owners(n));
	return nsys_fetch_names(n);
}

static ow_status add_facts(struct nsys *n)
{
	tally_facts(n, "CUPTI_ACTIVITY_KIND_KERNEL", &n->kernels, true);
	tally_facts(n, "CUPTI_ACTIVITY_KIND_RUNTIME", &n->calls, false);
	OW_TRY(range_facts(n));
	OW_TRY(device_facts(n));
	OW_TRY(machine_facts(n));
	return table_facts(n);
}

static ow_status load_export(struct nsys *n)
{
	OW_TRY(sqlite_file_open(&n->db, n->mem, n->ctx->in, n->ctx->err));
	if (!is_export(&n->db))
		return refuse_database(n);
	OW_TRY(nsys_init(n));
	OW_TRY(read_tables(n));
	nsys_ranks_from_names(n);
	if (n->rank >= 0 && n->b->m->source.rank[n->b->source.v] < 0)
		n->b->m->source.rank[n->b->source.v] = (int32_t)n->rank;
	OW_TRY(nsys_make_stacks(n));
	OW_TRY(add_facts(n));
	OW_TRY(nsys_make_rows(n));
	add_notes(n);
	return builder_status(n->b);
}

static ow_status load_nsys(struct import_ctx *ctx)
{
	struct nsys n = { .ctx = ctx,
			  .b = ctx->b,
			  .mem = ctx->b->m->mem,
			  .last_ns = INT64_MIN,
			  .last_number = -1,
			  .last_gpu = -1,
			  .rank = NSYS_NO_RANK,
			  .version = "Nsight Systems" };
	char head[64] = "";
	size_t len = (size_t)MIN(ctx->in->size, (uint64_t)sizeof(head));
	ow_status status;

	OW_TRY(input_read_at(ctx->in, 0, head, len, ctx->err));
	if (str_starts(str_make(head, len), STR(REPORT_MAGIC)))
		return error_set(ctx->err, OW_E_FORMAT,
				 "%s: this is an Nsight Systems report, which only its own "
				 "programs can read; export it and open the export: nsys export "
				 "--type sqlite --output report.sqlite '%s'",
				 ctx->in->name, ctx->in->name);
	if (!is_database(str_make(head, len)))
		return error_set(ctx->err, OW_E_FORMAT, "%s: not an SQLite database",
				 ctx->in->name);
	map_init(&n.name_map, n.mem);
	map_init(&n.lane_map, n.mem);
	map_init(&n.process_map, n.mem);
	map_init(&n.domain_map, n.mem);
	status = load_export(&n);
	sqlite_file_close(&n.db);
	nsys_release(&n);
	return status;
}

const struct importer import_nsys = {
	.name = "nsys",
	.summary = "SQLite exports of NVIDIA Nsight Systems",
	.extensions = ".sqlite",
	.role = ROLE_TRACE,
	.sniff = sniff_nsys,
	.load = load_nsys,
};
