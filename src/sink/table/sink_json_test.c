/* sink_json_test.c: the documented shape, flat and nested, with values that JSON cannot say. */
#include "sink/sink.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_tree.h"

static void flat(void **state)
{
	struct mem mem;
	struct table *r;
	uint32_t row;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "op", NULL);
	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "micros", "time", TYPE_INT, UNIT_MICROS);
	table_add_column(r, "part", "%", TYPE_REAL, UNIT_PERCENT);
	table_add_column(r, "ran", "ran", TYPE_BOOL, UNIT_NONE);
	row = table_add_row(r, 0);
	table_set_text(r, row, 0, STR("a\"b\xff"));
	table_set_int(r, row, 1, INT64_MIN);
	table_set_real(r, row, 2, 0.1);
	table_set_int(r, row, 3, 7);
	row = table_add_row(r, 0);
	table_set_unknown(r, row, 0);
	table_set_unknown(r, row, 1);
	table_set_real(r, row, 2, (double)NAN);
	r->footer = (char *)(uintptr_t) "the end";
	small_expect(&sink_json, r, &(struct sink_options){ 0 },
		     "{\"view\": \"op\",\n"
		     "\"columns\": [\n"
		     "  {\"name\": \"name\", \"type\": \"text\", \"unit\": null},\n"
		     "  {\"name\": \"micros\", \"type\": \"int\", \"unit\": \"us\"},\n"
		     "  {\"name\": \"part\", \"type\": \"real\", \"unit\": \"percent\"},\n"
		     "  {\"name\": \"ran\", \"type\": \"bool\", \"unit\": null}\n"
		     "],\n"
		     "\"rows\": [\n"
		     "  {\"name\": \"a\\\"b\xef\xbf\xbd\", \"micros\": -9223372036854775808, "
		     "\"part\": 0.1, \"ran\": true},\n"
		     "  {\"name\": null, \"micros\": null, \"part\": null, \"ran\": false}\n"
		     "],\n"
		     "\"schema_version\": 1,\n"
		     "\"footer\": \"the end\"}\n");
	small_starve(&sink_json, r, &(struct sink_options){ 0 });
	small_hang_up(&sink_json, r, &(struct sink_options){ 0 });
	table_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void empty(void **state)
{
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = table_new(&mem, "x", NULL);
	small_expect(&sink_json, r, &(struct sink_options){ 0 },
		     "{\"view\": \"x\",\n\"columns\": [],\n\"rows\": [],\n\"schema_version\": "
		     "1,\n\"footer\": null}\n");
	table_free(r);
}

static struct table *depths(struct mem *mem, const uint32_t *depth, size_t count)
{
	struct table *r = table_new(mem, "t", NULL);

	table_add_column(r, "n", "n", TYPE_INT, UNIT_NONE);
	table_make_tree(r);
	for (size_t i = 0; i < count; i++)
		table_set_int(r, table_add_row(r, depth[i]), 0, (int64_t)i);
	return r;
}

static void tree(void **state)
{
	static const uint32_t depth[] = { 0, 1, 2, 2, 3, 1, 0, 5 };
	struct mem mem;
	struct table *r;

	(void)state;
	mem_init(&mem, 0);
	r = depths(&mem, depth, ARRAY_COUNT(depth));
	small_expect(&sink_json, r, &(struct sink_options){ 0 },
		     "{\"view\": \"t\",\n"
		     "\"columns\": [\n"
		     "  {\"name\": \"n\", \"type\": \"int\", \"unit\": null}\n"
		     "],\n"
		     "\"rows\": [\n"
		     "  {\"n\": 0, \"children\": [\n"
		     "   {\"n\": 1, \"children\": [\n"
		     "    {\"n\": 2},\n"
		     "    {\"n\": 3, \"children\": [\n"
		     "     {\"n\": 4}]}]},\n"
		     "   {\"n\": 5}]},\n"
		     "  {\"n\": 6, \"children\": [\n"
		     "   {\"n\": 7}]}\n"
		     "],\n"
		     "\"schema_version\": 1,\n"
		     "\"footer\": null}\n");
	table_free(r);
	assert_int_equal(atomic_load(&mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flat),
		cmocka_unit_test(empty),
		cmocka_unit_test(tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
