/* queries_test.c: headers, parameters and forms of named queries; values and literals; folders; no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ask/queries.h"

#include <sys/stat.h>
#include <unistd.h>

static const char text[] = "-- title: A title: with a colon\n"
			   "-- What it\n"
			   "--   shows.\n"
			   "-- param limit int 20: rows: at most\n"
			   "-- param name text 'a: b': part of a name\n"
			   "-- param x real 0.5: a number\n"
			   "\n"
			   "SELECT '$limit' FROM event -- $limit is 'here'\n"
			   "LIMIT $limit\n"
			   "-- clickhouse:\n"
			   "SELECT $name, $x, \"$name\", '\\'$x' LIMIT $limit\n";

struct fixture {
	struct mem mem;
	struct arena arena;
	struct query query;
	struct ow_error err;
};

static ow_status parse(struct fixture *f, const char *content)
{
	mem_init(&f->mem, 0);
	arena_init(&f->arena, &f->mem);
	return query_parse(&f->arena, "q", NULL, str_from(content), &f->query, &f->err);
}

static void parsed(struct fixture *f, const char *content)
{
	if (parse(f, content) != OW_OK)
		fail_msg("%s", f->err.text);
}

static void release(struct fixture *f)
{
	arena_release(&f->arena);
	assert_int_equal(atomic_load(&f->mem.used), 0);
}

static void header(void **state)
{
	struct fixture f;

	(void)state;
	parsed(&f, text);
	assert_string_equal(f.query.title, "A title: with a colon");
	assert_string_equal(f.query.doc, "What it shows.");
	assert_int_equal(f.query.param_count, 3);
	assert_string_equal(f.query.params[0].name, "limit");
	assert_int_equal(f.query.params[0].type, TYPE_INT);
	assert_string_equal(f.query.params[0].usual, "20");
	assert_string_equal(f.query.params[0].doc, "rows: at most");
	assert_string_equal(f.query.params[1].usual, "a: b");
	assert_string_equal(f.query.params[1].doc, "part of a name");
	assert_string_equal(f.query.sql,
			    "SELECT '$limit' FROM event -- $limit is 'here'\nLIMIT $limit");
	assert_string_equal(f.query.clickhouse,
			    "SELECT $name, $x, \"$name\", '\\'$x' LIMIT $limit");
	release(&f);
	parsed(&f, "SELECT 1");
	assert_string_equal(f.query.title, "q");
	assert_string_equal(f.query.sql, "SELECT 1");
	assert_null(f.query.clickhouse);
	release(&f);
	parsed(&f, "-- title: x\r\nSELECT 1\r\n-- clickhouse: same\r\n");
	assert_string_equal(f.query.title, "x");
	assert_string_equal(f.query.clickhouse, "SELECT 1");
	release(&f);
}

static void faults(void **state)
{
	static const char *const wrong[] = {
		"",
		"-- title: x",
		"-- param\nSELECT 1",
		"-- param a\nSELECT 1",
		"-- param a int\nSELECT 1",
		"-- param a int 3\nSELECT 1",
		"-- param a date 3: x\nSELECT 1",
		"-- param a-b int 3: x\nSELECT 1",
		"-- param a text 'x: y\nSELECT 1",
		"SELECT 1\n-- clickhouse:\n",
		"-- clickhouse:\nSELECT 1 \xff",
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
		if (parse(&f, wrong[i]) != OW_E_FORMAT)
			fail_msg("%s", wrong[i]);
		release(&f);
	}
}

static void rendered(void **state)
{
	static const char *const given[] = { "name=it's \\ \n", "limit=-3" };
	struct sql_param *values;
	struct fixture f;
	struct buf out;

	(void)state;
	parsed(&f, text);
	buf_init(&out, &f.mem);
	assert_int_equal(
		query_values(&f.query, &(struct ow_list){ given, 2 }, &f.arena, &values, &f.err),
		OW_OK);
	assert_int_equal(query_render(f.query.clickhouse, values, 3, &out, &f.err), OW_OK);
	assert_string_equal(buf_cstr(&out), "SELECT 'it\\'s \\\\ \\x0a', 0.5, \"$name\", "
					    "'\\'$x' LIMIT (-3)");
	buf_clear(&out);
	assert_int_equal(query_render(f.query.sql, values, 3, &out, &f.err), OW_OK);
	assert_string_equal(buf_cstr(&out),
			    "SELECT '$limit' FROM event -- $limit is 'here'\nLIMIT (-3)");
	assert_int_equal(query_render("SELECT $other", values, 3, &out, &f.err), OW_E_USAGE);
	buf_release(&out);
	release(&f);
}

static void wrong_values(void **state)
{
	static const char *const wrong[] = {
		"limit=x", "limit=", "limit=1.5", "x=nan",     "x=1e999",
		"x=1 ",	   "limit",  "none=1",	  "name=\xff", "limit=99999999999999999999"
	};
	struct sql_param *values;
	struct fixture f;

	(void)state;
	parsed(&f, text);
	for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
		if (query_values(&f.query, &(struct ow_list){ &wrong[i], 1 }, &f.arena, &values,
				 &f.err) != OW_E_USAGE)
			fail_msg("%s", wrong[i]);
	release(&f);
}

static void built_in(void **state)
{
	static const struct ow_list none = { NULL, 0 };
	struct sql_param *values;
	struct queries q;
	struct ow_error err;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(queries_open(&q, &mem, &none, &err), OW_OK);
	assert_true(q.count >= 25);
	for (size_t i = 0; i < q.count; i++) {
		const struct query *query = &q.items[i];
		struct buf out;

		assert_true(i == 0 || strcmp(q.items[i - 1].name, query->name) < 0);
		assert_ptr_equal(queries_find(&q, query->name), query);
		assert_int_equal(query_values(query, &none, &q.arena, &values, &err), OW_OK);
		buf_init(&out, &mem);
		if (query_render(query->sql, values, query->param_count, &out, &err) != OW_OK ||
		    (query->clickhouse && query_render(query->clickhouse, values,
						       query->param_count, &out, &err) != OW_OK))
			fail_msg("%s: %s", query->name, err.text);
		buf_release(&out);
	}
	assert_null(queries_find(&q, "nothing"));
	queries_close(&q);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void without_memory(void **state)
{
	char dir[] = "/tmp/opwatch-queries-XXXXXX", path[64];
	const char *dirs[] = { dir, "/nonexistent-folder" };
	struct queries q;
	struct ow_error err;
	struct mem mem;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/mine.sql", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	mem_init(&mem, 0);
	for (uint64_t n = 1;; n++) {
		ow_status status;

		mem_fail_after(n, n % 2);
		status = queries_open(&q, &mem, &(struct ow_list){ dirs, 2 }, &err);
		mem_fail_after(0, false);
		if (status == OW_OK)
			break;
		assert_int_equal(status, OW_E_NO_MEMORY);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
	assert_string_equal(queries_find(&q, "mine")->path, path);
	queries_close(&q);
	assert_int_equal(atomic_load(&mem.used), 0);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header),   cmocka_unit_test(faults),
		cmocka_unit_test(rendered), cmocka_unit_test(wrong_values),
		cmocka_unit_test(built_in), cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
