/* bigquery_test.c: what becomes of queries written for BigQuery, and that all other text stays as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sql/bigquery.h"

static const char *const run_items[] = { "tf115" };
static const struct ow_list runs = { run_items, 1 };

static void expect(const char *text, const struct ow_list *run_names, const char *wanted)
{
	struct bigquery_names names = { 0 };
	struct ow_error err = { 0 };
	struct arena arena;
	struct mem mem;
	struct buf out;

	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	buf_init(&out, &mem);
	if (run_names)
		names.runs = *run_names;
	assert_int_equal(bigquery_rewrite(str_from(text), &names, &arena, &out, &err), OW_OK);
	assert_string_equal(buf_cstr(&out), wanted);
	buf_release(&out);
	arena_release(&arena);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void same(const char *text)
{
	expect(text, NULL, text);
}

static void stays(void **state)
{
	(void)state;
	same("");
	same(";;");
	same("SELECT name, \"Name\" FROM event WHERE x = 'it''s `not` e.args.name' -- `a.b.c`");
	same("SELECT /* UNNEST(t.traceEvents) `p.d.t` */ 1; SELECT $$ `p.d.t` $$, $tag$ ` $tag$");
	same("SELECT E'\\'`a.b`' FROM event");
	same("SELECT unnest([1, 2]) LIMIT 1 OFFSET 1");
	same("SELECT 'unfinished");
	same("SELECT e.args.name FROM x AS e"); /* no UNNEST: not ours */
	same("SELECT \"unfinished");
}

static void names(void **state)
{
	(void)state;
	expect("SELECT `name` FROM `proj-1.traces.event`", NULL, "SELECT \"name\" FROM \"event\"");
	expect("SELECT 1 FROM `p.d.tf115_processed` WHERE x", NULL,
	       "SELECT 1 FROM trace_events AS \"tf115_processed\" WHERE x");
	expect("SELECT 1 FROM `p.d.tf115` AS t", &runs,
	       "SELECT 1 FROM (SELECT * FROM trace_events WHERE lower(run) = lower('tf115')) AS t");
	expect("SELECT 1 FROM a JOIN `p.d.x` b ON true", NULL,
	       "SELECT 1 FROM a JOIN trace_events b ON true");
	/* Texts in double quotes are BigQuery's, unless they name a column. */
	expect("SELECT 1 AS \"a b\" FROM `p.d.x` t WHERE ph = \"it's\"", NULL,
	       "SELECT 1 AS \"a b\" FROM trace_events t WHERE ph = 'it''s'");
	expect("SELECT `unfinished", NULL, "SELECT \"unfinishe\"");
}

static void elements(void **state)
{
	(void)state;
	expect("SELECT index, e.ph, e.args.name AS n, e.args.op, e.args.a.b FROM `p.d.t` AS t, "
	       "UNNEST(t.traceEvents) as e WITH OFFSET AS index;",
	       NULL,
	       "SELECT index, e.ph, \"e\".arg_name AS n, \"e\".arg_op, "
	       "arg_value(arg_value(\"e\".args, 'a'), 'b') FROM trace_events AS \"e\" ;");
	expect("SELECT i FROM t CROSS JOIN UNNEST(t.traceEvents) AS e WITH OFFSET i WHERE e.dur > "
	       "1",
	       NULL,
	       "SELECT i FROM (SELECT *, \"index\" AS \"i\" FROM trace_events) AS \"e\" WHERE "
	       "e.dur > 1");
	expect("SELECT offset FROM d.t, UNNEST(traceEvents) e WITH OFFSET LIMIT 2 OFFSET 1", NULL,
	       "SELECT \"offset\" FROM (SELECT *, \"index\" AS \"offset\" FROM trace_events) AS "
	       "\"e\" "
	       "LIMIT 2 OFFSET 1");
	expect("SELECT 1 FROM `p.d.tf115`, unnest(tf115.traceEvents)", &runs,
	       "SELECT 1 FROM (SELECT * FROM trace_events WHERE lower(run) = lower('tf115')) AS "
	       "\"e\" ");
	/* Each statement has elements of its own. */
	expect("SELECT e.args.name FROM t, UNNEST(t.traceEvents) e; SELECT e.args.name FROM e",
	       NULL,
	       "SELECT \"e\".arg_name FROM trace_events AS \"e\" ; SELECT e.args.name FROM e");
}

/* A list called traceEvents in plain SQL is not BigQuery's. */
static void plain_lists(void **state)
{
	static const char *const made[] = { "mine" };
	struct bigquery_names names = { .tables = { made, 1 } };
	static const char own[] = "SELECT e FROM mine, UNNEST(mine.traceEvents) AS x(e)";
	struct ow_error err = { 0 };
	struct arena arena;
	struct mem mem;
	struct buf out;

	(void)state;
	same("WITH t AS (SELECT [1, 2] AS traceEvents) SELECT e FROM t, UNNEST(t.traceEvents) "
	     "AS x(e)");
	same("WITH t(traceEvents) AS (SELECT [1]) SELECT 1 FROM t CROSS JOIN "
	     "UNNEST(traceEvents)");
	same("SELECT UNNEST(traceEvents) FROM (SELECT [1, 2] AS traceEvents)");
	same("SELECT 1, unnest(s.traceEvents) FROM s");
	same("SELECT e FROM (SELECT [1] AS traceEvents) AS s, UNNEST(s.traceEvents) AS x(e)");
	same("SELECT e FROM a, UNNEST(b.traceEvents) AS x(e)");
	same("CREATE TABLE a AS SELECT [1] AS traceEvents; SELECT e FROM a, UNNEST(a.traceEvents) "
	     "AS x(e)");
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	buf_init(&out, &mem);
	assert_int_equal(bigquery_rewrite(str_from(own), &names, &arena, &out, &err), OW_OK);
	assert_string_equal(buf_cstr(&out), own);
	buf_clear(&out);
	assert_int_equal(bigquery_rewrite(STR("FROM `p.d.mine`"), &names, &arena, &out, &err),
			 OW_OK);
	assert_string_equal(buf_cstr(&out), "FROM \"mine\"");
	buf_release(&out);
	arena_release(&arena);
}

static void refused(struct bigquery_names *names, const char *text, const char *message)
{
	struct ow_error err = { 0 };
	struct arena arena;
	struct mem mem;
	struct buf out;

	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	buf_init(&out, &mem);
	assert_int_equal(bigquery_rewrite(str_from(text), names, &arena, &out, &err),
			 OW_E_NOT_FOUND);
	assert_non_null(strstr(err.text, message));
	buf_release(&out);
	arena_release(&arena);
}

/* A table's name chooses among runs and files; a name that is none of them is an error. */
static void choosing(void **state)
{
	static const char *const two[] = { "tf114", "tf115" };
	static const char *const files[] = { "a/tf114.json", "all.zip!b/tf115.json.gz" };
	struct bigquery_names names = { .runs = { two, 2 } };
	struct bigquery_names pooled = { .runs = { two, 1 }, .files = { files, 2 } };
	struct ow_error err = { 0 };
	struct arena arena;
	struct mem mem;
	struct buf out;

	(void)state;
	refused(&names, "FROM `p.d.tf116`", "no run is called 'tf116'; the runs are tf114, tf115");
	refused(&names, "SELECT 1 FROM `p.d.x` t, UNNEST(t.traceEvents) e", "tf114, tf115");
	refused(&pooled, "FROM `p.d.tf116`", "the files of the run are tf114, tf115");
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	buf_init(&out, &mem);
	assert_int_equal(bigquery_rewrite(STR("FROM `p.d.TF115` t; FROM `p.d.other`"), &pooled,
					  &arena, &out, &err),
			 OW_OK);
	assert_string_equal(
		buf_cstr(&out),
		"FROM (SELECT * FROM trace_events WHERE source_id IN (SELECT id FROM source WHERE "
		"path = 'all.zip!b/tf115.json.gz')) t; FROM trace_events AS \"other\"");
	buf_release(&out);
	arena_release(&arena);
}

static void functions(void **state)
{
	(void)state;
	expect("#standardSQL\nSELECT x[OFFSET(2)], x[SAFE_OFFSET(n)], x[ORDINAL(1)] # end", NULL,
	       "\nSELECT x[1 + (2)], x[1 + (n)], x[(1)] ");
	same("SELECT #1 FROM x ORDER BY #2");
	expect("SELECT * EXCEPT(a, `b`), e.* except (c) FROM x", NULL,
	       "SELECT * EXCLUDE(a, \"b\"), e.* EXCLUDE (c) FROM x");
	same("SELECT 2 * x FROM a EXCEPT (SELECT 1)");
	same("(SELECT * FROM a) EXCEPT (SELECT * FROM b)");
	expect("SELECT r\"\\d+'x\", R'a\\'b' FROM car", NULL,
	       "SELECT '\\d+''x', 'a\\''b' FROM car");
	expect("SELECT SAFE_CAST(x AS FLOAT64)", NULL, "SELECT TRY_CAST(x AS FLOAT64)");
	expect("SELECT FORMAT('%d', 1), Json_Value(a, b) AS `format`", NULL,
	       "SELECT bigquery_format('%d', 1), json_extract_string(a, b) AS \"format\"");
	same("SELECT FORMAT('{}', 1), JSON_VALUE(a, b), REGEXP_REPLACE(a, b, c)");
	assert_true(bigquery_function(STR("Safe_Divide")) == 1);
	assert_true(bigquery_function(STR("float64")) != 0);
	assert_true(bigquery_function(STR("sum")) == 0);
	assert_null(bigquery_create(64));
	assert_non_null(bigquery_instead(STR("TIMESTAMP_DIFF")));
	assert_null(bigquery_instead(STR("sum")));
}

static void notebooks(void **state)
{
	(void)state;
	expect("%%bigquery --project x name\n\nSELECT 1", NULL, "\nSELECT 1");
}

static void statements(void **state)
{
	struct str text = STR("-- a\n; SELECT ';' ;; SELECT 2 -- ;\n");

	(void)state;
	assert_true(str_eq(str_trim(bigquery_statement(text, 0)), STR("SELECT ';'")));
	assert_true(str_eq(str_trim(bigquery_statement(text, 1)), STR("SELECT 2 -- ;")));
	assert_int_equal(bigquery_statement(text, 2).len, 0);
	assert_int_equal(bigquery_statement(STR(""), 0).len, 0);
}

/* Any bytes are some text: it must end, and use no memory afterwards. */
static void anything(void **state)
{
	static const char bytes[] =
		"`'\".;$(),#[r\\ AS FROM UNNEST(t.traceEvents)e WITH OFFSET args*EXCEPT/*--\n";
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		struct bigquery_names all = { .runs = runs };
		struct ow_error err = { 0 };
		struct arena arena;
		struct mem mem;
		struct buf out;
		char text[64];
		size_t len = (size_t)round % sizeof(text);

		for (size_t i = 0; i < len; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			text[i] = bytes[(seed >> 33) % (sizeof(bytes) - 1)];
		}
		mem_init(&mem, 0);
		arena_init(&arena, &mem);
		buf_init(&out, &mem);
		assert_int_equal(bigquery_rewrite(str_make(text, len), &all, &arena, &out, &err),
				 OW_OK);
		buf_release(&out);
		arena_release(&arena);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stays),       cmocka_unit_test(names),
		cmocka_unit_test(elements),    cmocka_unit_test(notebooks),
		cmocka_unit_test(statements),  cmocka_unit_test(anything),
		cmocka_unit_test(plain_lists), cmocka_unit_test(choosing),
		cmocka_unit_test(functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
