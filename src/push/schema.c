/*
 * schema.c: creates the tables and views on a server, and checks those that exist. The statements are made from the
 * columns of our tables. Used by push.c.
 */
#include "push/schema.h"

#include "push/native.h"

#include "opwatch_config.h"

static void add_name(struct buf *to, const char *name)
{
	click_quote_name(to, str_from(name));
}

void schema_table_text(struct buf *to, const struct plan_table *table)
{
	const struct table *rows = table->rows;
	bool has_id = table_find_column(rows, STR("id")) != UINT32_MAX;
	bool has_ts = table_find_column(rows, STR("ts")) != UINT32_MAX;

	buf_printf(to,
		   "CREATE TABLE IF NOT EXISTS opwatch_%s (" NATIVE_PUSH " UInt64, " NATIVE_BATCH
		   " UInt32",
		   table->relation->name);
	for (uint32_t i = 0; i < rows->column_count; i++) {
		buf_puts(to, ", ");
		add_name(to, rows->columns[i].name);
		buf_printf(to, " %s", native_type(&rows->columns[i]));
	}
	/* A query on one run reads only its rows, in the order of time. Without partitions the parts of all runs
	 * merge into few, so that the time of such a query does not grow with the number of runs: a server opens
	 * every part. */
	buf_printf(to, ") ENGINE = MergeTree ORDER BY (run%s)",
		   has_ts   ? ", ifNull(ts, 0)"
		   : has_id ? ", id"
			    : "");
}

void schema_view_text(struct buf *to, const struct plan_table *table, const char *cluster)
{
	const struct table *rows = table->rows;
	const char *suffix = cluster ? "_all" : "";

	buf_puts(to, "CREATE VIEW IF NOT EXISTS ");
	add_name(to, table->relation->name);
	buf_puts(to, " AS SELECT ");
	for (uint32_t i = 0; i < rows->column_count; i++) {
		buf_puts(to, i ? ", " : "");
		add_name(to, rows->columns[i].name);
	}
	buf_printf(to,
		   " FROM opwatch_%s%s WHERE " NATIVE_PUSH
		   " %sIN (SELECT argMax(push, version) FROM opwatch_publish%s GROUP BY run)",
		   table->relation->name, suffix, cluster ? "GLOBAL " : "", suffix);
}

static const struct fixed_table {
	const char *name, *columns, *engine;
	bool distributed;
} fixed_tables[] = {
	{ "opwatch_schema", "version String, cluster String, writer String, made DateTime",
	  "MergeTree ORDER BY version", false },
	{ "opwatch_publish",
	  "run String, push UInt64, version UInt64, content String, rows UInt64, writer String, "
	  "published DateTime",
	  "MergeTree ORDER BY run", true },
	{ "opwatch_claim",
	  "run String, push UInt64, owner String, host String, pid UInt64, seen DateTime, "
	  "state UInt8",
	  "MergeTree PARTITION BY push ORDER BY run", false },
};

static void add_distributed(struct buf *to, const struct click *click, const char *table,
			    const char *cluster)
{
	buf_printf(to, "CREATE TABLE IF NOT EXISTS %s_all AS %s ENGINE = Distributed(", table,
		   table);
	click_quote(to, str_from(cluster));
	buf_puts(to, ", ");
	click_quote(to, str_from(click->address.database));
	buf_printf(to, ", '%s')", table);
}

static ow_status run_buf(struct click *click, struct buf *text, struct ow_error *err)
{
	if (text->failed)
		return error_no_memory(err);
	return click_run(click, buf_str(text), CLICK_REPEAT, NULL, err);
}

static ow_status make_fixed(struct click *click, const char *cluster, struct buf *text,
			    struct ow_error *err)
{
	for (size_t i = 0; i < ARRAY_COUNT(fixed_tables); i++) {
		const struct fixed_table *table = &fixed_tables[i];

		buf_clear(text);
		buf_printf(text, "CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = %s", table->name,
			   table->columns, table->engine);
		OW_TRY(run_buf(click, text, err));
		if (!cluster || !table->distributed)
			continue;
		buf_clear(text);
		add_distributed(text, click, table->name, cluster);
		OW_TRY(run_buf(click, text, err));
	}
	return OW_OK;
}

static ow_status make_relations(const struct plan *plan, struct click *click, const char *cluster,
				struct buf *text, struct ow_error *err)
{
	char name[128];

	for (uint32_t i = 0; i < plan->table_count; i++) {
		const struct plan_table *table = &plan->tables[i];

		buf_clear(text);
		schema_table_text(text, table);
		OW_TRY(run_buf(click, text, err));
		if (cluster) {
			snprintf(name, sizeof(name), "opwatch_%s", table->relation->name);
			buf_clear(text);
			add_distributed(text, click, name, cluster);
			OW_TRY(run_buf(click, text, err));
		}
		buf_clear(text);
		schema_view_text(text, table, cluster);
		OW_TRY(run_buf(click, text, err));
	}
	return OW_OK;
}

static ow_status other_version(const struct plan *plan, const struct click *click,
			       struct str version, struct str cluster, struct str writer,
			       const char *our_cluster, struct ow_error *err)
{
	if (str_eq(version, str_from(plan->schema)))
		return error_set(err, OW_E_UNSUPPORTED,
				 "the tables of database %s on %s were made %s%.*s, not for "
				 "%s%s; use another database, or drop them and push again",
				 click->address.database, click->place,
				 cluster.len ? "for the cluster " : "for one server",
				 STR_ARG(cluster), our_cluster ? "the cluster " : "one server",
				 our_cluster ? our_cluster : "");
	return error_set(
		err, OW_E_UNSUPPORTED,
		"the tables of database %s on %s have version %.*s (made by opwatch %.*s), "
		"this is opwatch " OPWATCH_VERSION " with version %s; create another database and "
		"push to it, or drop that one's tables and views (DROP DATABASE, CREATE DATABASE) "
		"and push its runs again",
		click->address.database, click->place, STR_ARG(version), STR_ARG(writer),
		plan->schema);
}

/* Checks that every row of opwatch_schema has our version; *there says whether there is a row. */
static ow_status check_version(const struct plan *plan, const char *cluster, struct click *click,
			       struct buf *text, bool *there, struct ow_error *err)
{
	struct str rest, line, version, made_for, writer;

	OW_TRY(click_runf(click, text, err, "SELECT version, cluster, writer FROM opwatch_schema"));
	*there = false;
	for (rest = buf_str(text); click_line(&rest, &line);) {
		if (!click_field(&line, &version) || !click_field(&line, &made_for) ||
		    !click_field(&line, &writer))
			continue;
		if (!str_eq(version, str_from(plan->schema)) ||
		    !str_eq(made_for, str_from(cluster ? cluster : "")))
			return other_version(plan, click, version, made_for, writer, cluster, err);
		*there = true;
	}
	return OW_OK;
}

/* Writes the version before the tables are created, so that a push with another version at the same time is
 * rejected. */
static ow_status set_version(const struct plan *plan, const char *cluster, struct click *click,
			     struct buf *text, struct ow_error *err)
{
	bool there;

	OW_TRY(check_version(plan, cluster, click, text, &there, err));
	if (there)
		return OW_OK;
	buf_clear(text);
	buf_printf(text, "INSERT INTO opwatch_schema SELECT '%s', ", plan->schema);
	click_quote(text, str_from(cluster ? cluster : ""));
	buf_puts(text, ", '" OPWATCH_VERSION "', now()");
	OW_TRY(run_buf(click, text, err));
	return check_version(plan, cluster, click, text, &there, err);
}

/* Compares the columns on the server, "push UInt64, …", with the expected ones. */
static ow_status check_columns(const struct plan *plan, struct click *click, struct buf *text,
			       struct ow_error *err)
{
	struct str rest, line, table, name, type;
	uint64_t good = 0, wanted = 0;

	buf_clear(text);
	buf_puts(text, "SELECT table, name, type FROM system.columns WHERE table LIKE 'opwatch%' "
		       "AND database = ");
	click_quote(text, str_from(click->address.database));
	if (!buf_cstr(text))
		return error_no_memory(err);
	OW_TRY(click_runf(click, text, err, "%s", buf_cstr(text)));
	for (uint32_t t = 0; t < plan->table_count; t++)
		wanted += plan->tables[t].rows->column_count;
	for (rest = buf_str(text); click_line(&rest, &line);) {
		if (!click_field(&line, &table) || !click_field(&line, &name) ||
		    !click_field(&line, &type) || !str_starts(table, STR("opwatch_")))
			continue;
		table = str_skip(table, 8);
		for (uint32_t t = 0; t < plan->table_count; t++) {
			const struct plan_table *ours = &plan->tables[t];
			uint32_t column;

			if (!str_eq(table, str_from(ours->relation->name)))
				continue;
			column = table_find_column(ours->rows, name);
			good += column != UINT32_MAX &&
				str_eq(type, str_from(native_type(&ours->rows->columns[column])));
		}
	}
	if (good == wanted)
		return OW_OK;
	return error_set(
		err, OW_E_UNSUPPORTED,
		"tables opwatch_* of database %s on %s were changed and no longer have the "
		"columns they were made with; use another database, or drop them and push "
		"again",
		click->address.database, click->place);
}

struct there {
	uint32_t fixed, relations; /* numbers of our tables that exist */
};

static bool is_suffixed(struct str name, const char *base, bool cluster)
{
	size_t len = strlen(base);

	return str_starts(name, str_make(base, len)) &&
	       (name.len == len || (cluster && str_eq(str_skip(name, len), STR("_all"))));
}

/* Counts a name if it belongs to us. A table `event` of another program is an error, because it would hide our view. */
static ow_status look_at_name(const struct plan *plan, const char *cluster,
			      const struct click *click, struct str name, struct str engine,
			      struct there *there, struct ow_error *err)
{
	char table[128];

	for (size_t i = 0; i < ARRAY_COUNT(fixed_tables); i++)
		there->fixed += is_suffixed(name, fixed_tables[i].name,
					    cluster && fixed_tables[i].distributed);
	for (uint32_t t = 0; t < plan->table_count; t++) {
		const char *relation = plan->tables[t].relation->name;

		snprintf(table, sizeof(table), "opwatch_%s", relation);
		there->relations += is_suffixed(name, table, cluster);
		if (!str_eq(name, str_from(relation)))
			continue;
		if (!str_eq(engine, STR("View")))
			return error_set(err, OW_E_UNSUPPORTED,
					 "database %s on %s has a table '%s' of its own, which is "
					 "the name of a view that push makes; use a database for "
					 "opwatch alone",
					 click->address.database, click->place, relation);
		there->relations++;
	}
	return OW_OK;
}

static ow_status read_existing_tables(const struct plan *plan, const char *cluster,
				      struct click *click, struct buf *text, struct there *there,
				      struct ow_error *err)
{
	struct str rest, line, name, engine;

	*there = (struct there){ 0 };
	buf_clear(text);
	buf_puts(text, "SELECT name, engine FROM system.tables WHERE database = ");
	click_quote(text, str_from(click->address.database));
	if (!buf_cstr(text))
		return error_no_memory(err);
	OW_TRY(click_runf(click, text, err, "%s", buf_cstr(text)));
	for (rest = buf_str(text); click_line(&rest, &line);)
		if (click_field(&line, &name) && click_field(&line, &engine))
			OW_TRY(look_at_name(plan, cluster, click, name, engine, there, err));
	return OW_OK;
}

static ow_status make(const struct plan *plan, const char *cluster, struct click *click,
		      struct buf *text, struct ow_error *err)
{
	struct there there;

	OW_TRY(read_existing_tables(plan, cluster, click, text, &there, err));
	if (there.fixed < ARRAY_COUNT(fixed_tables) + (cluster ? 1 : 0))
		OW_TRY(make_fixed(click, cluster, text, err));
	OW_TRY(set_version(plan, cluster, click, text, err));
	if (there.relations < plan->table_count * (cluster ? 3 : 2))
		OW_TRY(make_relations(plan, click, cluster, text, err));
	return check_columns(plan, click, text, err);
}

ow_status schema_make(const struct plan *plan, const char *cluster, struct click *click,
		      struct ow_error *err)
{
	struct buf text;
	ow_status status;

	buf_init(&text, click->mem);
	status = make(plan, cluster, click, &text, err);
	buf_release(&text);
	return status;
}
