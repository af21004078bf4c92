/*
 * bigquery.c: writes names, schemas and a script for BigQuery's loader, beside the exported files: column names that it
 * accepts, a schema for each table, and the bq commands. BigQuery has no unsigned 64-bit integers: those columns become
 * NUMERIC, which holds all of them. See docs/export.md.
 */
#include "export/format.h"

#include "base/json_escape.h"

#include <strings.h>

#define NAME_MAX_LEN 300

/* Prefixes of names that BigQuery reserves. */
static const char *const reserved[] = { "_TABLE_",	  "_FILE_",   "_PARTITION",
					"_ROW_TIMESTAMP", "__ROOT__", "_COLIDENTIFIER",
					"_CHANGE_",	  "_STREAM_" };

static bool is_reserved(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(reserved); i++)
		if (strncasecmp(name, reserved[i], strlen(reserved[i])) == 0)
			return true;
	return false;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

const char *bigquery_name(struct arena *arena, const char *name)
{
	const char *before = is_reserved(name) ? "x" : is_letter(name[0]) ? "" : "_";
	char *copy = arena_printf(arena, "%s%.*s", before, NAME_MAX_LEN - 20, name);

	for (char *at = copy; at && *at; at++)
		if (!is_letter(*at) && (*at < '0' || *at > '9'))
			*at = '_';
	return copy;
}

static bool is_taken(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(names[i], name) == 0)
			return true;
	return false;
}

ow_status bigquery_names(struct arena *arena, const char **names, size_t count,
			 struct ow_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const char *name = bigquery_name(arena, names[i]), *fits = name;

		for (unsigned n = 2; fits && is_taken(names, i, fits); n++)
			fits = arena_printf(arena, "%s_%u", name, n);
		if (!fits)
			return error_no_memory(err);
		names[i] = fits;
	}
	return OW_OK;
}

static const char *type_of(const struct table_column *column)
{
	static const char *const types[] = {
		[TYPE_BOOL] = "BOOLEAN",   [TYPE_INT32] = "INTEGER", [TYPE_INT] = "INTEGER",
		[TYPE_UINT64] = "NUMERIC", [TYPE_REAL] = "FLOAT",    [TYPE_TEXT] = "STRING"
	};

	return types[column->type];
}

void bigquery_schema(struct buf *to, const struct export_table *table)
{
	buf_puts(to, "[\n");
	for (uint32_t i = 0; i < table->t->column_count; i++) {
		const struct table_column *c = &table->t->columns[i];

		buf_puts(to, "  {\"name\": ");
		json_quote(to, str_from(table->names[i]));
		buf_printf(to, ", \"type\": \"%s\", \"mode\": \"NULLABLE\", \"description\": ",
			   type_of(c));
		json_quote(to, str_from(c->doc ? c->doc : ""));
		buf_puts(to, i + 1 < table->t->column_count ? "},\n" : "}\n");
	}
	buf_puts(to, "]\n");
}

void bigquery_script(struct buf *to)
{
	buf_puts(to,
		 "#!/bin/sh\n"
		 "# Loads these tables into BigQuery: ./load.sh [PROJECT:]DATASET\n"
		 "# Tables of the same names are replaced. The dataset must exist: bq mk DATASET\n"
		 "set -eu\n"
		 "dataset=${1:?usage: ./load.sh [PROJECT:]DATASET}\n"
		 "cd \"$(dirname \"$0\")\"\n\n");
}

static void put_line(struct buf *to, const struct export_table *table, const char *replace,
		     const char *file)
{
	const char *name = table->t->name;
	bool parquet = strcmp(table->options->format->name, "parquet") == 0;

	buf_printf(to, "bq load %s --source_format=%s%s \"$dataset.%s\" %s", replace,
		   parquet ? "PARQUET" : "NEWLINE_DELIMITED_JSON",
		   parquet ? " --decimal_target_types=NUMERIC" : "", name, file);
	if (!parquet)
		buf_printf(to, " %s.schema.json", name);
	buf_puts(to, "\n");
}

void bigquery_load(struct buf *to, const struct export_table *table)
{
	const char *name = table->t->name;

	if (!table->folders) {
		put_line(to, table, "--replace", table->target);
		return;
	}
	/* bq loads one local file at a time. */
	buf_printf(
		to,
		"replace=--replace\nfor file in $(find %s -type f -name 'part-*' | sort); do\n\t",
		name);
	put_line(to, table, "$replace", "\"$file\"");
	buf_puts(to, "\treplace=--noreplace\ndone\n");
}
