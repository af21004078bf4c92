/*
 * sql_test.c: DuckDB over models made by hand: types and NULLs, many rows on many threads, dictionaries larger
 * than a vector, what a query may not do, cancelling, limits. Skipped without DuckDB.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sql/sql.h"
#include "support/trace_model.h"

#define EVENTS 50000
#define NAMES 5000
#define MANY_NAMES 12000 /* more than a dictionary with an id may have */

struct fixture {
	struct small_model s;
	struct mem mem;
	struct sql *sql;
};

static void fill_model(struct small_model *s, int names)
{
	source_id source = trace_source(s, "a.json", 1);
	track_id track = trace_track(s, source, "main", TRACK_HOST, NULL);
	op_id ops[MANY_NAMES] = { { 0 } };

	for (int i = 0; i < names; i++) {
		char name[64];

		snprintf(name, sizeof(name), "op/with/a/name/that/is/not/inlined/%d", i);
		ops[i] = builder_new_op(&s->b,
					&(struct op_row){ .name = builder_cstr(&s->b, name) });
	}
	for (int i = 0; i < EVENTS; i++)
		builder_add_event(&s->b,
				  &(struct event_row){ .ts_ns = i * 10,
						       .dur_ns = i % 100 ? i % 7 + 1 : TIME_UNKNOWN,
						       .op = ops[i % names],
						       .track = track });
}

static void open_names(struct fixture *f, int names, const struct sql_options *options)
{
	struct table_run runs[2];
	struct ow_error err = { 0 };

	small_open(&f->s);
	fill_model(&f->s, names);
	small_freeze(&f->s);
	mem_init(&f->mem, 0);
	runs[0] = (struct table_run){ f->s.m, "a", 1 };
	runs[1] = (struct table_run){ f->s.m, "b", 2 };
	if (sql_open(runs, 2, options, &f->mem, &f->sql, &err) != OW_OK)
		fail_msg("%s", err.text);
}

static void open_with(struct fixture *f, const struct sql_options *options)
{
	open_names(f, NAMES, options);
}

static void close_all(struct fixture *f)
{
	sql_close(f->sql);
	assert_int_equal(atomic_load(&f->mem.used), 0);
	small_close(&f->s);
}

/* Rows as text, columns separated by '|'; the status of the first failure. */
static ow_status ask(struct sql *sql, const char *text, struct buf *out, struct ow_error *err)
{
	struct table *result;
	struct sql_script *script;
	ow_status status = sql_parse(sql, str_from(text), &script, err);

	while (status == OW_OK && (status = sql_step(script, &result, err)) == OW_OK && result) {
		while ((status = sql_fetch(script, err)) == OW_OK && result->row_count)
			for (uint32_t i = 0; i < result->row_count; i++)
				for (uint32_t c = 0; c < result->column_count; c++) {
					const struct table_column *column = &result->columns[c];

					if (!column->known[i])
						buf_puts(out, "-");
					else if (column->type == TYPE_TEXT ||
						 column->type == TYPE_NUMBER)
						buf_add_str(out, column->texts[i]);
					else if (column->type == TYPE_REAL)
						buf_printf(out, "%g", column->reals[i]);
					else
						buf_printf(out, "%" PRId64, column->ints[i]);
					buf_add_char(out,
						     c + 1 < result->column_count ? '|' : '\n');
				}
		if (status != OW_OK)
			break;
	}
	if (script)
		sql_script_free(script);
	return status;
}

static void expect(struct fixture *f, const char *text, const char *wanted)
{
	struct ow_error err = { 0 };
	struct buf out;

	buf_init(&out, &f->mem);
	if (ask(f->sql, text, &out, &err) != OW_OK)
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(buf_cstr(&out), wanted);
	buf_release(&out);
}

static void expect_names(struct fixture *f, const char *text, const char *wanted)
{
	struct table *result;
	struct sql_script *script;
	struct ow_error err = { 0 };
	struct buf out;

	buf_init(&out, &f->mem);
	assert_int_equal(sql_parse(f->sql, str_from(text), &script, &err), OW_OK);
	assert_int_equal(sql_step(script, &result, &err), OW_OK);
	for (uint32_t i = 0; i < result->column_count; i++)
		buf_printf(&out, "%s%s", i ? " " : "", result->columns[i].name);
	assert_string_equal(buf_cstr(&out), wanted);
	buf_release(&out);
	sql_script_free(script);
}

static void expect_error(struct fixture *f, const char *text, ow_status status, const char *part)
{
	struct ow_error err = { 0 };
	struct buf out;

	buf_init(&out, &f->mem);
	assert_int_equal(ask(f->sql, text, &out, &err), status);
	if (!strstr(err.text, part))
		fail_msg("%s: %s", text, err.text);
	buf_release(&out);
}

static void values(void **state)
{
	struct sql_options options = { .threads = 4 };
	struct fixture f;

	(void)state;
	open_with(&f, &options);
	expect(&f,
	       "SELECT run, count(*), count(dur), min(ts), max(ts) FROM event GROUP BY 1 ORDER BY "
	       "1",
	       "a|50000|49500|0|499990\nb|50000|49500|0|499990\n");
	expect(&f, "SELECT count(*) FROM event", "100000\n");
	expect(&f,
	       "SELECT count(DISTINCT op), count(DISTINCT op_id), count(device), count(rank) FROM "
	       "event",
	       "5000|10000|0|100000\n");
	expect(&f, "SELECT op, count(*) FROM event GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1",
	       "op/with/a/name/that/is/not/inlined/0|20\n");
	/* Ids of two runs differ, so that joins on them are right. */
	expect(&f, "SELECT count(*) FROM event e JOIN op o ON o.id = e.op_id AND o.name = e.op",
	       "100000\n");
	/* Without ORDER BY rows come in order. */
	expect(&f,
	       "SELECT bool_and(ts = 10 * (row_number - 1)) FROM (SELECT ts, row_number() OVER () "
	       "AS "
	       "row_number FROM event WHERE run = 'b')",
	       "1\n");
	expect(&f,
	       "SELECT 170141183460469231731687303715884105727::HUGEINT, -12.50::DECIMAL(5,2), "
	       "18446744073709551615::UBIGINT, [1, NULL], {'a': 1}, DATE '2020-01-02', "
	       "0.05::DECIMAL(3,2)",
	       "170141183460469231731687303715884105727|-12.50|18446744073709551615|[1, "
	       "NULL]|{'a': 1}|"
	       "2020-01-02|0.05\n");
	expect(&f, "SELECT 1; ; SELECT NULL, true", "1\n-|1\n");
	expect_names(&f, "SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS b, 5 AS a", "a a_2 a_1 b a_3");
	expect(&f,
	       "SELECT name FROM op_view(order_by := 'name', max_depth := 1) WHERE run = 'a' LIMIT "
	       "0",
	       "");
	close_all(&f);
}

/* A dictionary is new to each session: its first use by several threads must not split groups. */
static void groups_are_whole(void **state)
{
	struct sql_options options = { .threads = 4 };

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct fixture f;

		open_with(&f, &options);
		expect(&f, "SELECT count(*) FROM (SELECT run, op FROM event GROUP BY run, op)",
		       "10000\n");
		close_all(&f);
	}
}

/* Small dictionaries are looked up once for all chunks, large ones are not: the answers are the same. Texts are called
 * by number, so that what they should be is known. */
static void dictionaries(void **state)
{
	static const int sizes[] = { 1, 2, 2047, 2048, 9000, 9999, 10000, MANY_NAMES };
	struct sql_options options = { .threads = 4 };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		struct fixture f;
		char wanted[64];

		open_names(&f, sizes[i], &options);
		snprintf(wanted, sizeof(wanted), "%d|%d|%d\n", sizes[i], 2 * EVENTS, 2 * EVENTS);
		expect(&f,
		       "SELECT count(*), sum(n), sum(good) FROM (SELECT op, count(*) AS n, "
		       "count(*) FILTER (ts // 10 % (SELECT count(*) FROM op WHERE run = 'a') = "
		       "op[36:]::INT) AS good FROM event GROUP BY op)",
		       wanted);
		/* Functions of a text, unknown ones among them. */
		snprintf(wanted, sizeof(wanted), "%d|%d|0\n", 2 * EVENTS, 2 * EVENTS);
		expect(&f,
		       "SELECT count(*), count(*) FILTER (upper(op) LIKE 'OP/WITH/%/' || (ts // 10 "
		       "% (SELECT count(*) FROM op WHERE run = 'a'))), count(lower(device)) "
		       "FROM event WHERE device IS NULL AND op LIKE '%inlined%'",
		       wanted);
		close_all(&f);
	}
}

static void refusals(void **state)
{
	struct sql_options options = { .threads = 2 };
	struct fixture f;

	(void)state;
	open_with(&f, &options);
	expect_error(&f, "SELEC 1", OW_E_USAGE, "LINE 1");
	expect_error(&f, "SELECT * FROM evnt", OW_E_NOT_FOUND, "Did you mean \"event\"");
	expect_error(&f, "SELECT nme FROM event", OW_E_USAGE, "\"name\"");
	expect_error(&f, "SELECT * FROM read_csv('/etc/passwd')", OW_E_PERMISSION, "--allow-io");
	expect_error(&f, "COPY (SELECT 1) TO '/tmp/opwatch_sql_test'", OW_E_PERMISSION,
		     "--allow-io");
	expect_error(&f, "ATTACH '/tmp/opwatch_sql_test.db'", OW_E_PERMISSION, "");
	expect_error(&f, "SET enable_external_access = true", OW_E_USAGE, "locked");
	expect_error(&f, "INSTALL httpfs", OW_E_PERMISSION, "");
	expect_error(&f, "SELECT $1", OW_E_USAGE, "parameter $1");
	expect_error(&f, "SELECT * FROM steps_view(step := 99)", OW_E_USAGE, "no step 99");
	expect_error(&f, "SELECT * FROM steps_view(stp := 99)", OW_E_USAGE, "stp");
	expect_error(&f, "SELECT * FROM op_view(order_by := 'mcros')", OW_E_USAGE, "micros,");
	expect_error(&f, "SELECT e.nme FROM event e", OW_E_USAGE, "Did you mean \"name\"?");
	expect_error(&f, "SELECT e.slf_dur FROM event AS e", OW_E_USAGE, "\"self_dur\"?");
	expect_error(&f, "SELECT event.zzzzzz FROM event", OW_E_USAGE, "zzzzzz");
	expect(&f, "SELECT 1", "1\n"); /* the session goes on */
	close_all(&f);
}

static void memory_limit(void **state)
{
	struct sql_options options = { .threads = 1, .memory_limit = 30 << 20 };
	struct fixture f;

	(void)state;
	open_with(&f, &options);
	expect_error(&f, "SELECT count(*) FROM (SELECT DISTINCT a.id, b.id FROM event a, event b)",
		     OW_E_NO_MEMORY, "--memory-limit");
	expect(&f, "SELECT 1", "1\n");
	close_all(&f);
}

static bool stop_soon(void *arg)
{
	atomic_int *left = arg;

	return atomic_fetch_sub(left, 1) > 0;
}

static void cancelling(void **state)
{
	atomic_int left;
	struct sql_options options = { .progress = stop_soon, .progress_arg = &left };
	struct fixture f;

	(void)state;
	atomic_init(&left, 1000000);
	open_with(&f, &options);
	for (int after = 0; after < 200; after = after * 2 + 1) {
		atomic_store(&left, after);
		expect_error(&f, "SELECT count(*) FROM event a, event b WHERE a.id * b.id % 7 = 3",
			     OW_E_INTERRUPTED, "cancelled");
	}
	atomic_store(&left, 1000000);
	expect(&f, "SELECT count(*) FROM event", "100000\n");
	close_all(&f);
}

/* Whatever allocation of ours fails, the query ends in an error or in the right answer, and nothing leaks. */
static void failing_allocations(void **state)
{
	struct sql_options options = { .threads = 1 };
	static const char *const queries[] = {
		"SELECT count(DISTINCT name) FROM event",
		"SELECT count(*) FROM tracks_view",
		"SELECT count(shape) FROM op",
	};
	unsigned failed = 0;
	struct fixture f;

	(void)state;
	open_with(&f, &options);
	for (size_t q = 0; q < ARRAY_COUNT(queries); q++)
		for (uint64_t n = 1; n < 60; n++) {
			struct ow_error err = { 0 };
			struct buf out;
			ow_status status;

			buf_init(&out, &f.s.mem);
			if (!buf_reserve(&out, 4096))
				fail();
			mem_fail_after(n, false);
			status = ask(f.sql, queries[q], &out, &err);
			mem_fail_after(0, false);
			failed += status != OW_OK;
			buf_release(&out);
		}
	assert_true(failed > 20);
	expect(&f, "SELECT count(*) FROM event", "100000\n");
	expect(&f, "SELECT count(*) FROM tracks_view", "2\n"); /* a failure does not stick */
	close_all(&f);
}

/* A relation over the runs of the session. */
static struct table *open_table(struct fixture *f, const char *name, struct ow_error *err)
{
	struct table_run runs[] = { { f->s.m, "a", 1 }, { f->s.m, "b", 2 } };
	struct table *t = NULL;

	(void)relation_open(relation_find(str_from(name)), runs, 2, NULL, 0, &f->mem, &t, err);
	return t;
}

/* COPY and other readers of streams see the rows of the table, in its order. */
static void streams(void **state)
{
	static const char *const names[] = { "event", "op", "track", "run", "device", "step" };
	struct sql_options options = { .threads = 4 };
	struct fixture f;

	(void)state;
	open_with(&f, &options);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct ow_error err = { 0 };
		struct table *t = open_table(&f, names[i], &err);
		char text[256];

		if (!t || sql_stream_view(f.sql, t, "s", &err) != OW_OK)
			fail_msg("%s: %s", names[i], err.text);
		snprintf(text, sizeof(text),
			 "CREATE TEMP TABLE got AS FROM s; CREATE TEMP TABLE want AS FROM %s; "
			 "SELECT count(*) FROM got g JOIN want w ON g.rowid = w.rowid AND g IS "
			 "DISTINCT FROM w; SELECT (SELECT count(*) FROM got) = (SELECT count(*) "
			 "FROM "
			 "want); DROP TABLE got; DROP TABLE want",
			 names[i]);
		expect(&f, text, "0\n1\n");
		table_free(t);
	}
	close_all(&f);
}

static void streams_without_memory(void **state)
{
	struct sql_options options = { .threads = 2 };
	unsigned failed = 0;
	struct fixture f;

	(void)state;
	open_with(&f, &options);
	for (uint64_t n = 1; n < 200; n += 3) {
		struct ow_error err = { 0 };
		struct table *t;
		struct buf out;
		ow_status status;

		buf_init(&out, &f.s.mem);
		if (!buf_reserve(&out, 4096))
			fail();
		mem_fail_after(n, false);
		t = open_table(&f, "event", &err);
		status = t ? sql_stream_view(f.sql, t, "s", &err) : OW_E_NO_MEMORY;
		if (status == OW_OK)
			status = ask(f.sql, "CREATE TEMP TABLE got AS FROM s", &out, &err);
		mem_fail_after(0, false);
		expect(&f, "DROP TABLE IF EXISTS got", "");
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		failed += status != OW_OK;
		buf_release(&out);
		table_free(t);
	}
	assert_true(failed > 20);
	close_all(&f);
}

/* When a cancelled query has returned, no thread of DuckDB reads the table or the session any more. */
static void cancelled_streams(void **state)
{
	(void)state;
	for (int after = 0; after < 60; after++) {
		atomic_int left;
		struct sql_options options = {
			.threads = 4, .allow_io = true, .progress = stop_soon, .progress_arg = &left
		};
		struct ow_error err = { 0 };
		struct fixture f;
		struct table *t;
		struct buf out;

		atomic_init(&left, 1000000);
		open_with(&f, &options);
		buf_init(&out, &f.s.mem);
		t = open_table(&f, "event", &err);
		if (!t || sql_stream_view(f.sql, t, "s", &err) != OW_OK)
			fail_msg("%s", err.text);
		atomic_store(&left, after / 3);
		(void)ask(f.sql, "COPY (FROM s) TO '/dev/null' (FORMAT csv, USE_TMP_FILE false)",
			  &out, &err);
		table_free(t);
		buf_release(&out);
		close_all(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(groups_are_whole),
		cmocka_unit_test(dictionaries),
		cmocka_unit_test(refusals),
		cmocka_unit_test(memory_limit),
		cmocka_unit_test(cancelling),
		cmocka_unit_test(failing_allocations),
		cmocka_unit_test(streams),
		cmocka_unit_test(streams_without_memory),
		cmocka_unit_test(cancelled_streams),
	};
	char text[1024];

	if (!sql_available(text, sizeof(text))) {
		print_message("skipped: %s\n", text);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
