/*
 * import_nsys.c: SQLite databases that Nsight Systems exports, of any version. This file recognises them and runs the
 * steps; the work is in nsys_*.c, see nsys_int.h. Other SQLite databases are refused by name, and so are the reports
 * that Nsight Systems itself writes, whose layout is not public.
 */
#include "import/nsys_int.h"

#include <strings.h>

#define REPORT_MAGIC "NVIDIA Tegra Profiler Report"

static bool is_report(struct str head)
{
	return str_starts(head, STR(REPORT_MAGIC));
}

static bool is_database(struct str head)
{
	return head.len >= sizeof(SQLITE_MAGIC) &&
	       memcmp(head.ptr, SQLITE_MAGIC, sizeof(SQLITE_MAGIC)) == 0;
}

static int sniff_nsys(const struct sniff *sniff)
{
	if (is_database(sniff->head))
		return 90;
	return is_report(sniff->head) ? 100 : 0;
}

/* ---- what it is ---- */

static ow_status refuse_report(const struct import_ctx *ctx)
{
	return error_set(
		ctx->err, OW_E_FORMAT,
		"%s: a report of Nsight Systems, which only its own programs can read; export "
		"it, and open what that writes: nsys export --type sqlite --output "
		"report.sqlite '%s'",
		ctx->in->name, ctx->in->name);
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

/* Databases of others that end in .sqlite or .db, too. */
static ow_status refuse_database(const struct nsys *n)
{
	const struct sqlite_file *db = &n->db;
	const char *name = n->ctx->in->name;
	struct error *err = n->ctx->err;

	if (sqlite_file_table(db, "read_only_kernels"))
		return error_set(
			err, OW_E_FORMAT,
			"%s: a database of DLProf; open the nsys_profile.sqlite that lies "
			"beside it instead, or export the .qdrep again: nsys export --type "
			"sqlite --output nsys_profile.sqlite nsys_profile.qdrep",
			name);
	if (has_prefix(db, "rocpd_"))
		return error_set(
			err, OW_E_FORMAT,
			"%s: a database of ROCm's profiler (rocpd), which is not read; have the "
			"profiler write a Chrome trace (JSON) instead",
			name);
	if (has_prefix(db, "CUPTI_") || sqlite_file_table(db, "Driver"))
		return error_set(
			err, OW_E_FORMAT,
			"%s: an SQLite database, maybe of nvprof, which opwatch does not read",
			name);
	return error_set(err, OW_E_FORMAT,
			 "%s: an SQLite database of %zu tables, but none of those that Nsight "
			 "Systems exports%s%.*s",
			 name, db->table_count, db->table_count ? "; the first is " : "",
			 STR_ARG(db->table_count ? db->tables[0].name : STR("")));
}

/* ---- when, and by whom ---- */

static ow_status read_epoch(struct nsys *n)
{
	static const char *const columns[] = { "utcEpochNs" };
	struct sqlite_rows rows;
	ow_status status =
		sqlite_rows_open(&rows, &n->db, "TARGET_INFO_SESSION_START_TIME", columns, 1);

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		n->epoch_ns = MAX(sqlite_int(&rows, 0), 0);
	sqlite_rows_close(&rows);
	return status;
}

/* Of the other values only names are looked at: some are paths, and names of people. */
static ow_status read_version(struct nsys *n, const char *table)
{
	static const char *const columns[] = { "name", "value" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, table, columns, 2);

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct str value;

		if (!str_eq(sqlite_text(&rows, 0), STR("EXPORT_PRODUCT_VERSION")))
			continue;
		value = sqlite_text(&rows, 1);
		if (value.len < 32 && utf8_plain_prefix(value) == value.len)
			snprintf(n->version, sizeof(n->version), "Nsight Systems %.*s",
				 STR_ARG(value));
	}
	sqlite_rows_close(&rows);
	return status;
}

/* ---- loading ---- */

static void add_notes(struct nsys *n)
{
	const struct nsys_counts *c = &n->counts;
	const struct {
		uint64_t count;
		enum note_kind kind;
		const char *text;
	} notes[] = {
		{ c->no_time, NOTE_DROPPED, "rows without a time, not used" },
		{ c->negative, NOTE_REPAIRED, "ends before the start, taken as the start" },
		{ c->clamped, NOTE_REPAIRED,
		  "times beyond what 64 bits of nanoseconds hold, cut to that" },
		{ c->open, NOTE_REPAIRED, "ranges without an end, closed with the recording" },
		{ c->unmatched, NOTE_DROPPED,
		  "begins and ends of ranges without the other, not used" },
		{ c->numbers, NOTE_INFO, "correlation numbers beyond 32 bits: no launch is known" },
		{ c->no_text, NOTE_MISSING, "rows whose name is not in the database" },
		{ c->chains_broken, NOTE_DAMAGED,
		  "rows of call chains that make no sense, not used" },
		{ c->warnings, NOTE_INFO,
		  "warnings of Nsight Systems about this recording: its own window shows them" },
		{ c->errors, NOTE_INFO,
		  "errors of Nsight Systems in this recording: its own window shows them" },
		{ n->db.logged, NOTE_INFO,
		  "the database was written with a log (-wal), which is not read: what is only "
		  "there "
		  "is missing" },
	};

	for (size_t i = 0; i < ARRAY_COUNT(notes); i++)
		if (notes[i].count)
			builder_note_many(n->b, notes[i].kind, OW_NO_OFFSET, notes[i].count, "%s",
					  notes[i].text);
	if (n->db.cut)
		builder_note(n->b, NOTE_TRUNCATED, n->ctx->in->size,
			     "the database is shorter than its header says; what can be reached is "
			     "used");
	for (size_t i = 0; i < n->db.table_count; i++)
		if (n->db.tables[i].damaged)
			builder_note(n->b, NOTE_DAMAGED, OW_NO_OFFSET,
				     "table %.*s is damaged; used are the %" PRIu64
				     " rows before that",
				     STR_ARG(n->db.tables[i].name), n->db.tables[i].rows);
}

static ow_status read_tables(struct nsys *n)
{
	OW_TRY(read_epoch(n));
	OW_TRY(read_version(n, "EXPORT_META_DATA"));
	OW_TRY(read_version(n, "META_DATA_EXPORT"));
	OW_TRY(nsys_read_gpus(n));
	OW_TRY(nsys_read_calls(n));
	OW_TRY(nsys_read_device(n));
	OW_TRY(nsys_read_ranges(n));
	OW_TRY(nsys_read_values(n));
	OW_TRY(nsys_read_chains(n));
	OW_TRY(nsys_read_owners(n));
	return nsys_fetch_names(n);
}

static ow_status load(struct nsys *n)
{
	OW_TRY(sqlite_file_open(&n->db, n->mem, n->ctx->in, n->ctx->err));
	if (!is_export(&n->db))
		return refuse_database(n);
	OW_TRY(NSYS_GROW(n, names, name_cap, 1));
	OW_TRY(NSYS_GROW(n, lanes, lane_cap, 1));
	OW_TRY(NSYS_GROW(n, processes, process_cap, 1));
	OW_TRY(NSYS_GROW(n, domains, domain_cap, 1));
	OW_TRY(NSYS_GROW(n, extras, extra_cap, 1));
	n->names[0] = (struct nsys_name){ 0 };
	n->lanes[0] = (struct nsys_lane){ 0 };
	n->processes[0] = (struct nsys_process){ 0 };
	n->domains[0] = (struct nsys_domain){ 0 };
	n->extras[0] = (struct nsys_extra){ 0 };
	n->name_count = n->lane_count = n->process_count = n->domain_count = n->extra_count = 1;
	OW_TRY(read_tables(n));
	nsys_ranks_from_names(n);
	if (n->rank >= 0 && n->b->m->source.rank[n->b->source.v] < 0)
		n->b->m->source.rank[n->b->source.v] = (int32_t)n->rank;
	OW_TRY(nsys_make_stacks(n));
	OW_TRY(nsys_facts(n));
	OW_TRY(nsys_make_rows(n));
	add_notes(n);
	return builder_status(n->b);
}

static void release(struct nsys *n)
{
	sqlite_file_close(&n->db);
	mem_free(n->mem, n->names, n->name_cap * sizeof(*n->names));
	for (size_t i = 0; i < n->lane_count; i++)
		mem_free(n->mem, n->lanes[i].list, n->lanes[i].cap * sizeof(*n->lanes[i].list));
	mem_free(n->mem, n->lanes, n->lane_cap * sizeof(*n->lanes));
	mem_free(n->mem, n->processes, n->process_cap * sizeof(*n->processes));
	mem_free(n->mem, n->domains, n->domain_cap * sizeof(*n->domains));
	mem_free(n->mem, n->extras, n->extra_cap * sizeof(*n->extras));
	mem_free(n->mem, n->backtraces, n->backtrace_cap * sizeof(*n->backtraces));
	mem_free(n->mem, n->gpus, n->gpu_cap * sizeof(*n->gpus));
	mem_free(n->mem, n->samples, n->sample_cap * sizeof(*n->samples));
	mem_free(n->mem, n->values, n->value_cap * sizeof(*n->values));
	nsys_free_chains(n);
	map_release(&n->name_map);
	map_release(&n->lane_map);
	map_release(&n->process_map);
	map_release(&n->domain_map);
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
	if (is_report(str_make(head, len)))
		return refuse_report(ctx);
	if (!is_database(str_make(head, len)))
		return error_set(ctx->err, OW_E_FORMAT, "%s: not an SQLite database",
				 ctx->in->name);
	map_init(&n.name_map, n.mem);
	map_init(&n.lane_map, n.mem);
	map_init(&n.process_map, n.mem);
	map_init(&n.domain_map, n.mem);
	status = load(&n);
	release(&n);
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
