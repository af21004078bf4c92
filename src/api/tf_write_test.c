/*
 * tf_write_test.c: profiles written as TensorFlow's messages and read again, and profiles to which more is
 * added after they were looked at. Both must show what a profile shows that was loaded at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "api/api_int.h"

#include "wire/protobuf/pb.h"

static const char *const four[] = { "scope", "graph", "op", "code" };
static const char *const columns[] = { "bytes",	       "peak_bytes", "residual_bytes",
				       "output_bytes", "micros",     "accelerator_micros",
				       "cpu_micros",   "params",     "float_ops",
				       "occurrence",   "device",     "op_types",
				       "input_shapes" };

static char *sample(const char *name)
{
	static char paths[8][512];
	static unsigned next;
	const char *src = getenv("OPWATCH_SRC");
	char *to = paths[next++ % ARRAY_COUNT(paths)];

	snprintf(to, sizeof(paths[0]), "%s/samples/%s", src ? src : ".", name);
	return to;
}

struct text {
	struct mem mem;
	struct buf bytes;
};

static bool take(void *arg, const void *bytes, size_t len)
{
	struct text *t = arg;

	buf_add(&t->bytes, bytes, len);
	return !t->bytes.failed;
}

static void text_init(struct text *t)
{
	mem_init(&t->mem, 0);
	buf_init(&t->bytes, &t->mem);
}

static void add_view(ow_profile *p, const char *view, const char *sink, int64_t step,
		     struct text *to)
{
	struct ow_error err = { 0 };
	struct ow_view_options options;
	ow_result *result;

	ow_view_options_init(&options);
	options.select = (struct ow_list){ columns, ARRAY_COUNT(columns) };
	options.max_depth = 100;
	options.order_by = "name";
	options.step = step;
	options.all_metrics = true;
	if (ow_view(p, view, &options, &result, &err) != OW_OK)
		fail_msg("%s: %s", view, err.text);
	if (ow_result_write(result, sink, NULL, take, to, &err) != OW_OK)
		fail_msg("%s: %s", view, err.text);
	ow_result_free(result);
}

static void all_views(ow_profile *p, struct text *to)
{
	text_init(to);
	for (size_t i = 0; i < ARRAY_COUNT(four); i++)
		for (int64_t step = -1; step < 3; step++)
			add_view(p, four[i], "tfprof", step, to);
}

/* Tells the first line that differs: the texts are long. */
static void assert_same(struct text *a, struct text *b)
{
	struct str left = buf_str(&a->bytes), right = buf_str(&b->bytes), x, y;

	assert_true(left.len > 2000);
	while (str_split(&left, '\n', &x)) {
		assert_true(str_split(&right, '\n', &y));
		if (!str_eq(x, y))
			fail_msg("%.*s\nis now\n%.*s", STR_ARG(x), STR_ARG(y));
	}
	assert_int_equal(right.len, 0);
	buf_release(&a->bytes);
	buf_release(&b->bytes);
}

static void add_file(ow_profile *p, const char *name, int64_t step, bool forget)
{
	struct ow_file_options options;
	struct ow_error err = { 0 };

	ow_file_options_init(&options);
	options.step = step;
	options.forget = forget;
	if (ow_profile_add_file(p, sample(name), &options, NULL, &err) != OW_OK)
		fail_msg("%s: %s", name, err.text);
}

/* "Both structs may be NULL." */
static void options_may_be_left_out(void **state)
{
	struct ow_error err = { 0 };
	ow_profile *p;

	(void)state;
	assert_int_equal(ow_profile_new(NULL, &p, &err), OW_OK);
	assert_int_equal(ow_profile_add_file(p, sample("graph.pb"), NULL, NULL, &err), OW_OK);
	ow_profile_free(p);
}

static ow_profile *parts(void)
{
	struct ow_error err = { 0 };
	ow_profile *p;

	assert_int_equal(ow_profile_new(NULL, &p, &err), OW_OK);
	add_file(p, "graph.pb", INT64_MIN, false);
	add_file(p, "run_meta_0", 0, false);
	add_file(p, "run_meta_1", 1, false);
	add_file(p, "run_meta_2", 2, false);
	add_file(p, "op_log", INT64_MIN, false);
	assert_int_equal(ow_profile_freeze(p, &err), OW_OK);
	return p;
}

static ow_profile *reread(struct text *message, const char *format)
{
	struct ow_file_options options;
	struct ow_error err = { 0 };
	ow_profile *p;

	ow_file_options_init(&options);
	options.format = format;
	assert_int_equal(ow_profile_new(NULL, &p, &err), OW_OK);
	if (ow_profile_add_memory(p, "written", message->bytes.ptr, message->bytes.len, &options,
				  NULL, &err) != OW_OK)
		fail_msg("%s", err.text);
	buf_release(&message->bytes);
	return p;
}

static void a_written_profile_shows_the_same(void **state)
{
	struct text message, before, after;
	ow_profile *p = parts();
	struct ow_error err = { 0 };

	(void)state;
	all_views(p, &before);
	text_init(&message);
	assert_int_equal(ow_tf_profile_write(p, take, &message, &err), OW_OK);
	ow_profile_free(p);
	p = reread(&message, "profile");
	assert_int_equal(ow_profile_freeze(p, &err), OW_OK);
	all_views(p, &after);
	ow_profile_free(p);
	assert_same(&before, &after);
}

/* A slice in a slice: the outer one counts its own time only. */
static void a_trace_as_a_profile(void **state)
{
	static const char trace[] =
		"[{\"ph\":\"X\",\"name\":\"outer\",\"ts\":1000,\"dur\":100,\"pid\":1,\"tid\":1},"
		"{\"ph\":\"X\",\"name\":\"inner\",\"ts\":1010,\"dur\":30,\"pid\":1,\"tid\":1}]";
	struct text message, before, after;
	struct ow_error err = { 0 };
	ow_profile *p;

	(void)state;
	text_init(&message);
	buf_add(&message.bytes, trace, sizeof(trace) - 1);
	p = reread(&message, NULL);
	assert_int_equal(ow_profile_freeze(p, &err), OW_OK);
	text_init(&before);
	add_view(p, "scope", "tfprof", -1, &before);
	assert_non_null(strstr(buf_cstr(&before.bytes), "70us"));
	text_init(&message);
	assert_int_equal(ow_tf_profile_write(p, take, &message, &err), OW_OK);
	ow_profile_free(p);
	p = reread(&message, "profile");
	assert_int_equal(ow_profile_freeze(p, &err), OW_OK);
	text_init(&after);
	add_view(p, "scope", "tfprof", -1, &after);
	ow_profile_free(p);
	assert_string_equal(buf_cstr(&before.bytes), buf_cstr(&after.bytes));
	buf_release(&before.bytes);
	buf_release(&after.bytes);
}

/* float_ops, types of users and lines, beside the same graph. */
static void a_written_op_log_tells_the_same(void **state)
{
	struct text message, before, after;
	ow_profile *p = parts();
	struct ow_error err = { 0 };
	struct ow_file_options options;
	ow_profile *again;

	(void)state;
	all_views(p, &before);
	text_init(&message);
	assert_int_equal(ow_tf_op_log_write(p, take, &message, &err), OW_OK);
	ow_profile_free(p);
	assert_int_equal(ow_profile_new(NULL, &again, &err), OW_OK);
	add_file(again, "graph.pb", INT64_MIN, false);
	add_file(again, "run_meta_0", 0, false);
	add_file(again, "run_meta_1", 1, false);
	add_file(again, "run_meta_2", 2, false);
	ow_file_options_init(&options);
	options.format = "oplog";
	assert_int_equal(ow_profile_add_memory(again, "log", message.bytes.ptr, message.bytes.len,
					       &options, NULL, &err),
			 OW_OK);
	buf_release(&message.bytes);
	assert_int_equal(ow_profile_freeze(again, &err), OW_OK);
	all_views(again, &after);
	ow_profile_free(again);
	assert_same(&before, &after);
}

/* Step by step, looked at in between, and nothing kept of the inputs. */
static void more_can_be_added(void **state)
{
	static const char *const files[] = { "op_log", "run_meta_0", "run_meta_1", "run_meta_2" };
	struct text expected, got, ignored;
	ow_profile *p = parts();
	struct ow_error err = { 0 };

	(void)state;
	all_views(p, &expected);
	ow_profile_free(p);
	assert_int_equal(ow_profile_new(NULL, &p, &err), OW_OK);
	add_file(p, "graph.pb", INT64_MIN, false);
	for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
		add_file(p, files[i], (int64_t)i - 1, i > 0);
		assert_int_equal(ow_profile_freeze(p, &err), OW_OK);
		text_init(&ignored);
		for (size_t k = 0; k < ARRAY_COUNT(four); k++)
			add_view(p, four[k], "tfprof", -1, &ignored);
		buf_release(&ignored.bytes);
		if (i + 1 < ARRAY_COUNT(files))
			assert_int_equal(ow_profile_thaw(p, &err), OW_OK);
	}
	all_views(p, &got);
	ow_profile_free(p);
	assert_same(&expected, &got);
}

static void a_living_result_forbids_adding(void **state)
{
	ow_profile *p = parts();
	struct ow_error err = { 0 };
	ow_result *result;

	(void)state;
	assert_int_equal(ow_view(p, "op", NULL, &result, &err), OW_OK);
	assert_int_equal(ow_profile_thaw(p, &err), OW_E_USAGE);
	assert_non_null(strstr(err.text, "1 results"));
	ow_result_free(result);
	assert_int_equal(ow_profile_thaw(p, &err), OW_OK);
	assert_int_equal(ow_profile_thaw(p, &err), OW_OK); /* twice is once */
	assert_int_equal(ow_view(p, "op", NULL, &result, &err), OW_E_USAGE);
	ow_profile_free(p);
}

/* ---- the messages of the views ---- */

struct counts {
	uint64_t nodes, graph_nodes;
	int64_t root_total_us;
};

/* Counts nodes without recursion: the op view is a chain as long as there are types. */
static void count_nodes(struct str bytes, bool multi, struct counts *counts)
{
	struct pb stack[512];
	size_t depth = 1;

	stack[0] = pb_over(bytes.ptr, bytes.len);
	counts->nodes = 1;
	while (depth) {
		struct pb_field f;

		if (!pb_next(&stack[depth - 1], &f)) {
			assert_int_equal(stack[depth - 1].problem, PB_OK);
			depth--;
			continue;
		}
		if (depth == 1 && f.tag == PB_TAG(6, PB_VARINT))
			counts->root_total_us = (int64_t)f.value;
		counts->graph_nodes += multi && f.tag == PB_TAG(10, PB_BYTES);
		if (f.tag == PB_TAG(multi ? 11 : 12, PB_BYTES)) {
			assert_true(depth < ARRAY_COUNT(stack));
			stack[depth++] = pb_message(&f);
			counts->nodes++;
		}
	}
}

static void views_as_messages(void **state)
{
	ow_profile *p = parts();
	int64_t total = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(four); i++) {
		bool multi = i >= 2;
		struct counts counts = { 0 };
		struct ow_error err = { 0 };
		struct ow_view_options options;
		struct text bytes;
		ow_result *result;

		text_init(&bytes);
		ow_view_options_init(&options);
		options.max_depth = 1000;
		options.step = 0; /* averages are cut to microseconds, so their sums differ */
		assert_int_equal(ow_view(p, four[i], &options, &result, &err), OW_OK);
		assert_int_equal(ow_result_write(result, "proto", NULL, take, &bytes, &err), OW_OK);
		count_nodes(buf_str(&bytes.bytes), multi, &counts);
		assert_int_equal(counts.nodes, result->r->tree->node_count);
		assert_int_equal(counts.graph_nodes >= 60, multi);
		if (i == 0)
			total = counts.root_total_us;
		assert_true(total > 1000);
		if (i == 3) /* a few ops have no line */
			assert_in_range(counts.root_total_us, total - 10, total);
		else
			assert_int_equal(counts.root_total_us, total);
		ow_result_free(result);
		buf_release(&bytes.bytes);
	}
	ow_profile_free(p);
}

static bool drop(void *arg, const void *bytes, size_t len)
{
	(void)arg;
	(void)bytes;
	(void)len;
	return true;
}

static void every_allocation_may_fail(void **state)
{
	ow_profile *p = parts();
	size_t used;
	unsigned failed = 0;

	(void)state;
	assert_int_equal(model_require_stacks(p->m, NULL), OW_OK); /* made once and kept */
	assert_int_equal(model_require_rows(p->m, TABLES_ALL, NULL), OW_OK);
	used = atomic_load(&p->mem.used);
	for (uint64_t n = 1; n < 60; n++) {
		struct ow_error err = { 0 };
		ow_status status;

		mem_fail_after(n, false);
		status = n % 2 ? ow_tf_profile_write(p, drop, NULL, &err)
			       : ow_tf_op_log_write(p, drop, NULL, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		failed += status != OW_OK;
		assert_int_equal(atomic_load(&p->mem.used), used);
	}
	assert_true(failed > 4 && failed < 59);
	ow_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_written_profile_shows_the_same),
		cmocka_unit_test(a_trace_as_a_profile),
		cmocka_unit_test(a_written_op_log_tells_the_same),
		cmocka_unit_test(more_can_be_added),
		cmocka_unit_test(a_living_result_forbids_adding),
		cmocka_unit_test(views_as_messages),
		cmocka_unit_test(options_may_be_left_out),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
