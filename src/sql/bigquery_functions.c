/*
 * bigquery_functions.c: functions of BigQuery that DuckDB does not have: those that one line of SQL can define, which
 * are created in the session when a query first uses them, and those that cannot be defined, with what to write
 * instead. query.c and session.c call it; forms that are not functions are in bigquery.c.
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
	MACRO("unix_millis", "(t)", "floor(epoch_us(t) / 1000)::BIGINT"),
	MACRO("unix_seconds", "(t)", "floor(epoch_us(t) / 1000000)::BIGINT"),
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
	/* Returns the group, if the pattern has one: escapes and sets of characters are removed before groups are
	 * counted. */
	MACRO("bigquery_regexp_extract", "(text, pattern)",
	      "CASE len(regexp_extract_all(regexp_replace(pattern, "
	      "'\\\\Q.*?(\\\\E|$)|\\\\.|\\[\\^?\\]?([^\\]\\\\]|\\\\.)*\\]', '', 'gs'), "
	      "'\\((\\?P?<[A-Za-z_]|[^?]|$)')) "
	      "WHEN 0 THEN CASE WHEN regexp_matches(text, pattern) THEN regexp_extract(text, "
	      "pattern) END "
	      "WHEN 1 THEN CASE WHEN regexp_matches(text, pattern) THEN regexp_extract(text, "
	      "pattern, 1) END "
	      "ELSE error('REGEXP_EXTRACT of BigQuery takes a pattern with one group at most, not "
	      "' || pattern) END"),
	MACRO("bigquery_log", "(x)", "ln(x), (x, base) AS log(base, x)"),
	MACRO("bigquery_substr", "(text, place)",
	      "substr(text, CASE WHEN place = 0 OR place < -length(text) THEN 1 ELSE place END), "
	      "(text, place, n) AS "
	      "substr(text, CASE WHEN place = 0 OR place < -length(text) THEN 1 ELSE place END, "
	      "n)"),
	/* The result is NULL when one argument is NULL. */
	MACRO("bigquery_concat", "(a)",
	      "a, (a, b) AS a || b, (a, b, c) AS a || b || c, (a, b, c, d) AS a || b || c || d, "
	      "(a, b, c, d, e) AS a || b || c || d || e, (a, b, c, d, e, f) AS a || b || c || d || "
	      "e || f"),
	MACRO("bigquery_greatest", "(a, b)",
	      "CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN greatest(a, b) END, (a, b, c) AS "
	      "CASE WHEN a IS NOT NULL AND b IS NOT NULL AND c IS NOT NULL THEN greatest(a, b, c) "
	      "END"),
	MACRO("bigquery_least", "(a, b)",
	      "CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN least(a, b) END, (a, b, c) AS "
	      "CASE WHEN a IS NOT NULL AND b IS NOT NULL AND c IS NOT NULL THEN least(a, b, c) "
	      "END"),
	/* format_texts is defined in format_function.c. */
	MACRO("bigquery_format", "(form)",
	      "format_texts(form), "
	      "(form, a) AS format_texts(form, a::VARCHAR), "
	      "(form, a, b) AS format_texts(form, a::VARCHAR, b::VARCHAR), "
	      "(form, a, b, c) AS format_texts(form, a::VARCHAR, b::VARCHAR, c::VARCHAR), "
	      "(form, a, b, c, d) AS format_texts(form, a::VARCHAR, b::VARCHAR, c::VARCHAR, "
	      "d::VARCHAR), "
	      "(form, a, b, c, d, e) AS format_texts(form, a::VARCHAR, b::VARCHAR, c::VARCHAR, "
	      "d::VARCHAR, e::VARCHAR), "
	      "(form, a, b, c, d, e, f) AS format_texts(form, a::VARCHAR, b::VARCHAR, c::VARCHAR, "
	      "d::VARCHAR, e::VARCHAR, f::VARCHAR), "
	      "(form, a, b, c, d, e, f, g) AS format_texts(form, a::VARCHAR, b::VARCHAR, "
	      "c::VARCHAR, d::VARCHAR, e::VARCHAR, f::VARCHAR, g::VARCHAR), "
	      "(form, a, b, c, d, e, f, g, h) AS format_texts(form, a::VARCHAR, b::VARCHAR, "
	      "c::VARCHAR, d::VARCHAR, e::VARCHAR, f::VARCHAR, g::VARCHAR, h::VARCHAR), "
	      "(form, a, b, c, d, e, f, g, h, i) AS format_texts(form, a::VARCHAR, b::VARCHAR, "
	      "c::VARCHAR, d::VARCHAR, e::VARCHAR, f::VARCHAR, g::VARCHAR, h::VARCHAR, "
	      "i::VARCHAR), "
	      "(form, a, b, c, d, e, f, g, h, i, j) AS format_texts(form, a::VARCHAR, b::VARCHAR, "
	      "c::VARCHAR, d::VARCHAR, e::VARCHAR, f::VARCHAR, g::VARCHAR, h::VARCHAR, i::VARCHAR, "
	      "j::VARCHAR)"),
	{ "float64", "CREATE TYPE float64 AS DOUBLE" },
	{ "bytes", "CREATE TYPE bytes AS BLOB" },
};

/* Functions that DuckDB has with another meaning: the replacement for statements of BigQuery, for up to `most`
 * arguments. */
static const struct {
	const char *name, *here;
	size_t most;
} renamed[] = {
	{ "json_value", "json_extract_string", 2 },
	{ "format", "bigquery_format", 11 },
	{ "regexp_replace", "bigquery_regexp_replace", 3 },
	{ "regexp_extract", "bigquery_regexp_extract", 2 },
	{ "log", "bigquery_log", 2 },
	{ "substr", "bigquery_substr", 3 },
	{ "substring", "bigquery_substr", 3 },
	{ "concat", "bigquery_concat", 6 },
	{ "greatest", "bigquery_greatest", 3 },
	{ "least", "bigquery_least", 3 },
};

/* Functions that no line of SQL can define: the argument is a keyword (DAY), the meaning differs, or DuckDB has
 * nothing similar; with what to write instead. */
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
	{ "format_time", "strftime(TIME, '%H:%M')" },
	{ "array_first", "LIST[1]" },
	{ "array_last", "LIST[-1]" },
	{ "cosine_distance", "list_cosine_distance(A, B)" },
	{ "date_add", "DATE + INTERVAL 1 DAY" },
	{ "date_sub", "DATE - INTERVAL 1 DAY" },
	{ "datetime", "X::TIMESTAMP" },
	{ "datetime_add", "TIME + INTERVAL 1 DAY" },
	{ "datetime_sub", "TIME - INTERVAL 1 DAY" },
	{ "edit_distance", "levenshtein(A, B)" },
	{ "euclidean_distance", "list_distance(A, B)" },
	{ "generate_date_array", "generate_series(FIRST, LAST, INTERVAL 1 DAY)" },
	{ "is_inf", "isinf(X)" },
	{ "is_nan", "isnan(X)" },
	{ "json_query", "json_extract(DOCUMENT, '$.path')" },
	{ "json_value_array", "json_extract_string(DOCUMENT, '$.list[*]')" },
	{ "lax_bool", "TRY_CAST(X AS BOOLEAN)" },
	{ "lax_float64", "TRY_CAST(X AS DOUBLE)" },
	{ "lax_int64", "TRY_CAST(X AS BIGINT)" },
	{ "lax_string", "TRY_CAST(X AS VARCHAR)" },
	{ "parse_bignumeric", "TEXT::DECIMAL(38, 9)" },
	{ "parse_numeric", "TEXT::DECIMAL(38, 9)" },
	{ "safe_negate", "-x" },
	{ "string", "X::VARCHAR" },
	{ "time_add", "TIME + INTERVAL 1 SECOND" },
	{ "time_diff", "date_diff('second', EARLIER, LATER)" },
	{ "time_sub", "TIME - INTERVAL 1 SECOND" },
	{ "timestamp", "X::TIMESTAMP" },
	{ "timestamp_bucket", "time_bucket(INTERVAL 1 HOUR, TIME)" },
	{ "array_concat_agg", "flatten(list(X))" },
	{ "bool", "X::BOOLEAN" },
	{ "float64", "X::DOUBLE" },
	{ "int64", "X::BIGINT" },
	{ "bignumeric", "X::DECIMAL(38, 9)" },
	{ "make_interval", "to_days(N)" },
	{ "search", "contains(TEXT, PART)" },
	{ "quantiles", "quantile_cont(X, [0.25, 0.5, 0.75])" },
	{ "init", "approx_count_distinct(X)" }, /* HLL_COUNT.INIT */
	{ "unix_date", "date_diff('day', DATE '1970-01-01', DATE)" },
};

/* Functions without a replacement, or without a short one. */
static const char *const missing[] = {
	"add_key_from_raw_bytes",
	"appends",
	"bag_of_words",
	"changes",
	"code_points_to_bytes",
	"code_points_to_string",
	"collate",
	"coth",
	"csc",
	"csch",
	"date_bucket",
	"datetime_bucket",
	"decrypt_bytes",
	"decrypt_string",
	"deterministic_decrypt_bytes",
	"deterministic_decrypt_string",
	"deterministic_encrypt",
	"dlp_deterministic_encrypt",
	"encrypt",
	"external_object_transform",
	"external_query",
	"extract",
	"extract_float64",
	"extract_int64",
	"extract_point_float64",
	"extract_point_int64",
	"fetch_metadata",
	"from_base32",
	"gap_fill",
	"generate_embedding",
	"generate_range_array",
	"generate_timestamp_array",
	"get_access_url",
	"host",
	"init_float64",
	"init_int64",
	"ip_from_string",
	"ip_net_mask",
	"ip_to_string",
	"ip_trunc",
	"ipv4_from_int64",
	"ipv4_to_int64",
	"json_array_append",
	"json_array_insert",
	"json_remove",
	"json_set",
	"json_strip_nulls",
	"justify_days",
	"justify_hours",
	"justify_interval",
	"merge",
	"merge_float64",
	"merge_int64",
	"merge_partial",
	"merge_point_float64",
	"merge_point_int64",
	"new_keyset",
	"normalize",
	"normalize_and_casefold",
	"parse_time",
	"predict",
	"public_suffix",
	"range_bucket",
	"range_contains",
	"range_end",
	"range_intersect",
	"range_overlaps",
	"range_sessionize",
	"range_start",
	"reg_domain",
	"safe_convert_bytes_to_string",
	"safe_ip_from_string",
	"sec",
	"sech",
	"sha512",
	"soundex",
	"text_analyze",
	"tf_idf",
	"time_trunc",
	"to_base32",
	"to_code_points",
	"vector_search",
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

const char *bigquery_renamed(struct str name, size_t arguments)
{
	for (size_t i = 0; i < ARRAY_COUNT(renamed); i++)
		if (same(name, renamed[i].name) && arguments <= renamed[i].most)
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
	for (size_t i = 0; i < ARRAY_COUNT(missing); i++)
		if (same(name, missing[i]))
			return "";
	if (name.len > 3 &&
	    (strncasecmp(name.ptr, "st_", 3) == 0 || strncasecmp(name.ptr, "s2_", 3) == 0))
		return ""; /* geography */
	return NULL;
}
