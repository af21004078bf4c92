/*
 * nsys_facts.c: what `info` tells about an export: its tables with their rows, the devices, and sums over the main
 * tables, in nanoseconds since the recording began, as the database has them. Values of the environment are not read;
 * of the machine only what is in `told` below.
 */
#include "import/nsys_int.h"

#define TOP 5

/* ---- tables ---- */

/* Rows of tables that nobody else wanted. */
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

/* ---- sums ---- */

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

static void rank(const struct nsys *n, struct ranked best[TOP], struct ranked one)
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
			rank(n, best, one);
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

/* ---- ranges ---- */

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

/* ---- devices and the machine ---- */

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

/* The only values of the machine's description that are read; the others may be anything, passwords included. */
static const char *const told[] = { "CpuCores",	     "CpuDescription",	"CpuArchitecture",
				    "OsDescription", "NvDriverVersion", "CudaDriverVersion" };

static ow_status machine_facts(struct nsys *n)
{
	static const char *const columns[] = { "name", "value" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "TARGET_INFO_SYSTEM_ENV", columns, 2);
	fact_id machine = { 0 };
	uint32_t seen = 0;

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct str name = sqlite_text(&rows, 0);

		for (uint32_t i = 0; i < ARRAY_COUNT(told); i++) {
			if (seen >> i & 1 || !str_eq(name, str_from(told[i])))
				continue;
			seen |= 1u << i;
			if (!machine.v)
				machine = fact_object(n->b, (fact_id){ 0 }, "machine");
			fact_text(n->b, machine, told[i],
				  model_str(n->b->m, nsys_utf8(n, sqlite_text(&rows, 1))));
		}
		status = builder_status(n->b);
	}
	sqlite_rows_close(&rows);
	return status;
}

ow_status nsys_facts(struct nsys *n)
{
	tally_facts(n, "CUPTI_ACTIVITY_KIND_KERNEL", &n->kernels, true);
	tally_facts(n, "CUPTI_ACTIVITY_KIND_RUNTIME", &n->calls, false);
	OW_TRY(range_facts(n));
	OW_TRY(device_facts(n));
	OW_TRY(machine_facts(n));
	return table_facts(n);
}
