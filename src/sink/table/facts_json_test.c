/* facts_json_test.c: the document for no, one and two sources, with nested facts and odd values. */
#include "sink/table/facts_json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_model.h"

static ow_status collect(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	(void)err;
	buf_add(arg, bytes, len);
	return OW_OK;
}

static void write_to(struct small_model *s, struct buf *text)
{
	struct out out = { .write = collect };

	buf_init(text, &s->mem);
	out.arg = text;
	assert_int_equal(facts_write_json(s->m, &out, &s->err), OW_OK);
	buf_add_char(text, '\0');
	assert_false(text->failed);
}

static void expect_has(const struct buf *text, const char *want)
{
	if (!strstr(text->ptr, want))
		fail_msg("no %s in %s", want, text->ptr);
}

static void nothing(void **state)
{
	struct small_model s;
	struct buf text;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	write_to(&s, &text);
	assert_true(strncmp(text.ptr,
			    "{\n  \"schema_version\": 1,\n  \"sources\": [],\n  \"model\": {",
			    54) == 0);
	expect_has(&text, "\n  \"loss\": []\n}\n");
	buf_release(&text);
	small_close(&s);
}

static void add_facts(struct builder *b)
{
	fact_id nil = { 0 }, devices, list, pair;

	fact_text(b, nil, "kind", STR("GraphDef"));
	fact_int(b, nil, "producer", 26); /* better than the source's own */
	devices = fact_object(b, nil, "devices");
	list = fact_list(b, nil, "top5_ops");
	fact_int(b, devices, "cpu\"0", -3);
	pair = fact_list(b, list, NULL);
	fact_text(b, pair, NULL, STR("Const"));
	fact_int(b, pair, NULL, 2);
	fact_list(b, list, NULL);
	fact_bool(b, devices, "real", true);
	fact_real(b, devices, "ratio", 0.1);
	fact_real(b, devices, "nan", (double)NAN);
	fact_int(b, fact_list(b, nil, "steps"), NULL, 7);
	fact_object(b, nil, "empty");
	fact_int(b, nil, "model", 5); /* a name that is taken at the top */
}

static void one(void **state)
{
	static const char members[] =
		"      \"kind\": \"GraphDef\",\n"
		"      \"producer\": 26,\n"
		"      \"devices\": {\n"
		"        \"cpu\\\"0\": -3,\n"
		"        \"real\": true,\n"
		"        \"ratio\": 0.1,\n"
		"        \"nan\": null\n"
		"      },\n"
		"      \"top5_ops\": [\n"
		"        [\"Const\", 2],\n"
		"        []\n"
		"      ],\n"
		"      \"steps\": [7],\n"
		"      \"empty\": {},\n"
		"      \"model\": 5,\n"
		"      \"notes\": [\n"
		"        {\"kind\": \"damaged\", \"offset\": 9, \"count\": 2, \"text\": \"a "
		"\\\"b\\\"\"},\n"
		"        {\"kind\": \"info\", \"offset\": null, \"count\": 1, \"text\": \"c\"}\n"
		"      ]\n";
	struct small_model s;
	struct buf text;

	(void)state;
	small_open(&s);
	small_source(&s, "a.pb", "tf_graph");
	add_facts(&s.b);
	builder_note_many(&s.b, NOTE_DAMAGED, 9, 2, "a \"b\"");
	builder_note(&s.b, NOTE_INFO, OW_NO_OFFSET, "c");
	small_freeze(&s);
	write_to(&s, &text);
	expect_has(&text, "      \"path\": \"a.pb\",\n      \"format\": \"tf_graph\",\n"
			  "      \"container\": null,\n      \"bytes\": 1000,\n");
	expect_has(&text, members);
	expect_has(&text,
		   "\n  \"kind\": \"GraphDef\",\n  \"producer\": 26,\n  \"devices\": {\n    ");
	expect_has(&text, "\"source\": 1, \"device\": 0,");
	expect_has(&text, "\n  \"loss\": [\n    {\"kind\": \"damaged\", \"source\": \"a.pb\", ");
	assert_null(strstr(text.ptr, "\n  \"model\": 5"));
	assert_null(strstr(text.ptr, "\"producer\": null"));
	buf_release(&text);
	small_close(&s);
}

static void two(void **state)
{
	struct small_model s;
	struct buf text;

	(void)state;
	small_open(&s);
	builder_note(&s.b, NOTE_DROPPED, OW_NO_OFFSET, "not used");
	small_source(&s, "a.pb", "tf_graph");
	fact_int(&s.b, (fact_id){ 0 }, "nodes", 1);
	small_source(&s, "b.pb", "tf_graph");
	fact_int(&s.b, (fact_id){ 0 }, "nodes", 2);
	small_freeze(&s);
	write_to(&s, &text);
	expect_has(&text, "      \"nodes\": 1,\n");
	expect_has(&text, "      \"nodes\": 2,\n");
	assert_null(strstr(text.ptr, "\n  \"nodes\""));
	expect_has(&text,
		   "{\"kind\": \"dropped\", \"source\": null, \"offset\": null, \"count\": 1, ");
	buf_release(&text);
	small_close(&s);
}

static ow_status write_without(struct small_model *s, uint64_t n, bool sticky)
{
	struct mem other;
	struct buf text;
	struct out out = { collect, &text };
	ow_status status;

	mem_init(&other, 0);
	buf_init(&text, &other);
	assert_true(buf_reserve(&text, 1 << 20));
	mem_fail_after(n, sticky);
	status = facts_write_json(s->m, &out, &s->err);
	mem_fail_after(0, false);
	buf_release(&text);
	assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
	return status;
}

static void memory_ends(void **state)
{
	struct small_model s;
	uint64_t n = 1;

	(void)state;
	small_open(&s);
	small_source(&s, "a.pb", "tf_graph");
	add_facts(&s.b);
	small_freeze(&s);
	for (; write_without(&s, n, true) != OW_OK; n++)
		(void)write_without(&s, n, false);
	assert_true(n > 1);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(nothing), cmocka_unit_test(one),
					    cmocka_unit_test(two), cmocka_unit_test(memory_ends) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
