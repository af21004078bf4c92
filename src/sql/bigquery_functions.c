/*
 * bigquery_functions.c: functions of BigQuery that DuckDB does not have: those that are a line of its SQL, created in the
 * session when a query first uses them, and those that are not, with what to write instead. query.c and session.c call
 * it; the forms that are not functions are in bigquery.c.
 */
#include "sql/bigquery.h"

#include <strings.h>

#define MACRO(name, parameters, body)                                                              \
	{                                                                                          \
		name, "CREATE TEMP MACRO IF NOT EXISTS " name parameters " AS " body               \
	}

static const struct {
	const char *name, *create;
} created[] = {
	MACRO("safe_divide", "(a, b)", "CASE WHEN b = 0 THEN NULL ELSE a::DOUBLE / b END"),
	MACRO("ieee_divide", "(a, b)",
	      "CASE WHEN b <> 0 THEN a::DOUBLE / b WHEN a > 0 THEN 'inf'::DOUBLE WHEN a < 0 THEN "
	      "'-inf'::DOUBLE WHEN a = 0 THEN 'nan'::DOUBLE END"),
	MACRO("div", "(a, b)", "a // b"),
	MACRO("approx_quantiles", "(x, n)", "quantile_disc(x, [i / n for i in range(n + 1)])"),
	MACRO("regexp_contains", "(text, pattern)", "regexp_matches(text, pattern)"),
	MACRO("json_extract_scalar", "(document, path)", "json_extract_string(document, path)"),
	MACRO("to_json_string", "(x)", "to_json(x)::VARCHAR"),
	MACRO("timestamp_micros", "(n)", "make_timestamp(n::BIGINT)"),
	MACRO("timestamp_millis", "(n)", "make_timestamp(n::BIGINT * 1000)"),
	MACRO("timestamp_seconds", "(n)", "make_timestamp(n::BIGINT * 1000000)"),
	MACRO("unix_micros", "(t)", "epoch_us(t)"),
	MACRO("unix_millis", "(t)", "epoch_ms(t)"),
	MACRO("unix_seconds", "(t)", "(epoch_us(t) // 1000000)"),
	MACRO("logical_and", "(x)", "bool_and(x)"),
	MACRO("logical_or", "(x)", "bool_or(x)"),
	MACRO("generate_array", "(first, last, width := 1)", "generate_series(first, last, width)"),
	MACRO("approx_top_count", "(x, n)",
	      "[{'value': e.v, 'count': e.n} for e in list_reverse_sort([{'n': t.value, 'v': "
	      "t.key} for t in map_entries(histogram(x))])[:n]]"),
	MACRO("byte_length", "(text)", "strlen(text)"),
	MACRO("char_length", "(text)", "length(text)"),
	MACRO("array_concat", "(a, b)", "list_concat(a, b)"),
	MACRO("generate_uuid", "()", "uuid()::VARCHAR"),
	MACRO("bigquery_regexp_replace", "(text, pattern, new)",
	      "regexp_replace(text, pattern, new, 'g')"),
	{ "float64", "CREATE TYPE float64 AS DOUBLE" },
	{ "bytes", "CREATE TYPE bytes AS BLOB" },
};

/* Functions that DuckDB has with another meaning: what a statement of BigQuery means by them. */
static const struct {
	const char *name, *here;
} renamed[] = {
	{ "json_value", "json_extract_string" },
	{ "format", "printf" },
	{ "regexp_replace", "bigquery_regexp_replace" },
};

/* Not a line of SQL: the argument is a word (DAY), the meaning differs, or there is nothing like it. */
static const struct {
	const char *name, *instead;
} others[] = {
	{ "timestamp_diff", "date_diff('second', EARLIER, LATER)" },
	{ "datetime_diff", "date_diff('day', EARLIER, LATER)" },
	{ "timestamp_trunc", "date_trunc('hour', TIME)" },
	{ "datetime_trunc", "date_trunc('hour', TIME)" },
	{ "timestamp_add", "TIME + INTERVAL 1 SECOND" },
	{ "timestamp_sub", "TIME - INTERVAL 1 SECOND" },
	{ "format_timestamp", "strftime(TIME, '%Y-%m-%d')" },
	{ "format_date", "strftime(DATE, '%Y-%m-%d')" },
	{ "parse_timestamp", "strptime(TEXT, '%Y-%m-%d')" },
	{ "parse_date", "strptime(TEXT, '%Y-%m-%d')" },
	{ "json_extract_array", "json_extract(DOCUMENT, '$.list[*]')" },
	{ "json_extract_string_array", "json_extract_string(DOCUMENT, '$.list[*]')" },
	{ "json_query_array", "json_extract(DOCUMENT, '$.list[*]')" },
	{ "regexp_substr", "regexp_extract(TEXT, PATTERN)" },
	{ "regexp_instr", "regexp_matches(TEXT, PATTERN)" },
	{ "parse_json", "TEXT::JSON" },
	{ "approx_top_sum", "GROUP BY with ORDER BY sum(X) DESC LIMIT N" },
	{ "farm_fingerprint", "hash(X)" },
	{ "safe_add", "a + b" },
	{ "safe_subtract", "a - b" },
	{ "safe_multiply", "a * b" },
	{ "st_geogpoint", "two columns" },
	{ "percentile_cont", "quantile_cont(X, 0.5) OVER ()" },
	{ "percentile_disc", "quantile_disc(X, 0.5) OVER ()" },
	{ "current_timestamp", "current_timestamp" },
	{ "current_datetime", "now()::TIMESTAMP" },
	{ "initcap", "upper(TEXT[1]) || lower(TEXT[2:])" },
	{ "rand", "random()" },
	{ "contains_substr", "contains(lower(TEXT), lower(PART))" },
	{ "date_from_unix_date", "DATE '1970-01-01' + N" },
	{ "parse_datetime", "strptime(TEXT, '%Y-%m-%d')" },
	{ "format_datetime", "strftime(TIME, '%Y-%m-%d')" },
};

_Static_assert(sizeof(created) / sizeof(*created) <= 64, "one bit for each");

static bool same(struct str name, const char *known)
{
	return name.len == strlen(known) && strncasecmp(name.ptr, known, name.len) == 0;
}

uint64_t bigquery_function(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(created); i++)
		if (same(name, created[i].name))
			return (uint64_t)1 << i;
	return 0;
}

const char *bigquery_renamed(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(renamed); i++)
		if (same(name, renamed[i].name))
			return renamed[i].here;
	return NULL;
}

const char *bigquery_create(unsigned bit)
{
	return bit < ARRAY_COUNT(created) ? created[bit].create : NULL;
}

const char *bigquery_instead(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(others); i++)
		if (same(name, others[i].name))
			return others[i].instead;
	return NULL;
}
