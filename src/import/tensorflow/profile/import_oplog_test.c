/*
 * import_oplog_test.c: what an op log adds to ops, and the code traces of ops: frames with texts and
 * with ids, stacks shared by ops and by sources; truncations and failing allocations.
 */
#include "support/tf_files.h"

#include <unistd.h>

/* clang-format off */
static const char *const graph = "node { name: 'a' op: 'A' } node { name: 'b' op: 'B' } node { name: 'c' op: 'C' }"
				 "node { name: 'd' op: 'D' }";
static const char *const log_text =
	"log_entries { name: 'b' float_ops: 100 types: 'mine' types: '_trainable_variables'"
	"  code_def { traces { file_id: 1 lineno: 10 function_id: 2 line_id: 3 }"
	"             traces { file_id: 1 lineno: 5 function_id: 4 line_id: 99 func_start_line: 4 } } }"
	"log_entries { name: 'a' float_ops: 0"
	"  code_def { traces { file_id: 1 lineno: 10 function_id: 2 line_id: 3 } traces { file: '/p/x.py' lineno: -5"
	"             function: 'f' line: 'y' } } }"
	"log_entries { name: 'c' float_ops: -7 code_def { } }"
	"log_entries { name: 'nobody' float_ops: 3 types: 'x' }"
	"id_to_string { key: 1 value: '/p/main.py' } id_to_string { key: 2 value: '<module>' }"
	"id_to_string { key: 3 value: 'build()' } id_to_string { key: 4 value: 'build' }";
/* clang-format on */

static ow_status load_log(struct tf_files *t, const char *text)
{
	return tf_load(t, "oplog", &tf_op_log, text);
}

/* "file:line:function|file:line:function", outermost first. */
static const char *stack_text(const struct tf_files *t, const char *op)
{
	static char text[512];
	stack_id stack = COLUMN_GET(t->m->op.stack, tf_op(t, op));
	char rest[512];

	text[0] = '\0';
	for (; stack.v; stack = t->m->stack.parent[stack.v]) {
		uint32_t frame = t->m->stack.frame[stack.v].v;

		memcpy(rest, text, sizeof(rest));
		snprintf(text, sizeof(text), "%s:%d:%s%s%.400s", tf_str(t, t->m->frame.file[frame]),
			 t->m->frame.line[frame], tf_str(t, t->m->frame.function[frame]),
			 *rest ? "|" : "", rest);
	}
	return text;
}

static void annotates_ops(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, graph), OW_OK);
	assert_int_equal(load_log(&t, log_text), OW_OK);
	assert_int_equal(t.m->op.float_ops[tf_op(&t, "b")], 100);
	assert_int_equal(t.m->op.float_ops[tf_op(&t, "c")], -7);
	assert_string_equal(tf_types(&t, "b"), "B|_trainable_variables|mine");
	assert_int_equal(tf_op(&t, "nobody"), 0);
	assert_int_equal(tf_noted(&t, "not in the graph"), 1);
	assert_true(t.m->has_code);
	assert_true(t.m->op.flags[tf_op(&t, "c")] & OP_HAS_CODE);
	assert_false(t.m->op.flags[tf_op(&t, "d")] & OP_HAS_CODE);
	assert_int_equal(tf_fact(&t, "log_entry_count"), 4);
	assert_int_equal(tf_fact(&t, "id_to_string"), 4);

	/* A zero does not take back what an earlier log gave. */
	assert_int_equal(load_log(&t, "log_entries { name: 'b' types: 'more' }"), OW_OK);
	assert_int_equal(t.m->op.float_ops[tf_op(&t, "b")], 100);
	assert_string_equal(tf_types(&t, "b"), "B|_trainable_variables|mine|more");
	tf_close(&t);
}

static void stacks_are_decoded_on_demand(void **state)
{
	struct tf_files t;
	stack_id a, b;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, graph), OW_OK);
	assert_int_equal(load_log(&t, log_text), OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->stack.count - 1, 0);
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
	assert_string_equal(stack_text(&t, "b"), "/p/main.py:10:<module>|/p/main.py:5:build");
	assert_string_equal(stack_text(&t, "a"), "/p/main.py:10:<module>|/p/x.py:-5:f");
	assert_string_equal(stack_text(&t, "c"), "");
	a = t.m->op.stack[tf_op(&t, "a")];
	b = t.m->op.stack[tf_op(&t, "b")];
	assert_int_equal(t.m->stack.parent[a.v].v, t.m->stack.parent[b.v].v);
	assert_int_equal(t.m->stack.count - 1, 3);
	assert_int_equal(t.m->frame.count - 1, 3);
	assert_string_equal(tf_str(&t, t.m->frame.text[t.m->stack.frame[b.v].v]), "");
	assert_int_equal(t.m->frame.function_line[t.m->stack.frame[b.v].v], 4);
	tf_close(&t);
}

static void load_two_logs(struct tf_files *t)
{
	tf_open(t);
	assert_int_equal(tf_load_graph(t, graph), OW_OK);
	assert_int_equal(load_log(t, log_text), OW_OK);
	assert_int_equal(
		load_log(t,
			 "log_entries { name: 'a' code_def { traces { file_id: 1 lineno: 99 } } }"
			 "log_entries { name: 'd' code_def { traces { file_id: 7 lineno: 10 "
			 "function_id: 8 line_id: 9 }"
			 "  traces { file_id: 1 lineno: 1 function_id: 8 } } }"
			 "id_to_string { key: 1 value: '/q' } id_to_string { key: 7 value: "
			 "'/p/main.py' }"
			 "id_to_string { key: 8 value: '<module>' } id_to_string { key: 9 value: "
			 "'build()' }"),
		OW_OK);
	tf_freeze(t);
}

/* The first code counts; ids mean what they mean in their own file; equal stacks are one. */
static void several_logs(void **state)
{
	struct tf_files t;

	(void)state;
	load_two_logs(&t);
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
	assert_string_equal(stack_text(&t, "a"), "/p/main.py:10:<module>|/p/x.py:-5:f");
	assert_string_equal(stack_text(&t, "d"), "/p/main.py:10:<module>|/q:1:<module>");
	assert_int_equal(t.m->stack.parent[t.m->op.stack[tf_op(&t, "a")].v].v,
			 t.m->stack.parent[t.m->op.stack[tf_op(&t, "d")].v].v);
	tf_close(&t);
}

/* Raw frames of any size are told apart, and found again. */
static void frames_of_all_sizes(void **state)
{
	enum { SIZES = 40 };
	struct tf_files t;
	struct buf nodes, entries;

	(void)state;
	tf_open(&t);
	buf_init(&nodes, t.m->mem);
	buf_init(&entries, t.m->mem);
	for (int i = 0; i < 2 * SIZES; i++) {
		buf_printf(&nodes, "node { name: 'n%d' op: 'A' }", i);
		buf_printf(&entries,
			   "log_entries { name: 'n%d' code_def { traces { lineno: 7 file: '%.*s' } "
			   "traces { lineno: %d } } }",
			   i, i % SIZES, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			   i % SIZES * 1000);
	}
	assert_int_equal(tf_load_graph(&t, buf_cstr(&nodes)), OW_OK);
	assert_int_equal(load_log(&t, buf_cstr(&entries)), OW_OK);
	buf_release(&nodes);
	buf_release(&entries);
	tf_freeze(&t);
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
	assert_int_equal(t.m->frame.count - 1, 2 * SIZES);
	for (int i = 0; i < 2 * SIZES; i++) {
		char name[16], want[128];

		snprintf(name, sizeof(name), "n%d", i);
		snprintf(want, sizeof(want), "%.*s:7:|:%d:", i % SIZES,
			 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i % SIZES * 1000);
		assert_string_equal(stack_text(&t, name), want);
	}
	tf_close(&t);
}

/* ---- traces that stay in their file ---- */

#define FILE_OPS 50

/* An op log in a file, for ops n0, n1, …, in that order or backwards. Returns a descriptor of the file. */
static int load_file(struct tf_files *t, bool backwards, bool forget)
{
	struct buf text, bytes;
	struct input in;
	FILE *file = tmpfile();
	int fd = file ? dup(fileno(file)) : -1;

	assert_true(fd >= 0);
	tf_open(t);
	t->options.forget = forget;
	buf_init(&text, &t->mem);
	for (int i = 0; i < FILE_OPS; i++)
		buf_printf(&text, "node { name: 'n%d' op: 'A' }", i);
	assert_int_equal(tf_load_graph(t, buf_cstr(&text)), OW_OK);
	buf_clear(&text);
	for (int i = 0; i < FILE_OPS; i++) {
		int op = backwards ? FILE_OPS - 1 - i : i;

		buf_printf(&text,
			   "log_entries { name: 'n%d' code_def { traces { file: '/a long name' "
			   "lineno: %d } traces { lineno: %d } } }",
			   op, op % 3, op);
	}
	bytes = tf_binary(&t->mem, &tf_op_log, buf_cstr(&text));
	buf_release(&text);
	assert_int_equal(fwrite(bytes.ptr, 1, bytes.len, file), bytes.len);
	assert_int_equal(fflush(file), 0);
	buf_release(&bytes);
	assert_int_equal(input_adopt_fd(&in, &t->mem, "log", dup(fd), &t->err), OW_OK);
	fclose(file);
	assert_int_equal(import_input(&t->b, &in, importer_find(STR("oplog")), &t->options,
				      &t->last, &t->err),
			 OW_OK);
	tf_freeze(t);
	return fd;
}

static void check_file_stacks(const struct tf_files *t)
{
	for (int i = 0; i < FILE_OPS; i++) {
		char name[16], want[64];

		snprintf(name, sizeof(name), "n%d", i);
		snprintf(want, sizeof(want), "/a long name:%d:|:%d:", i % 3, i);
		assert_string_equal(stack_text(t, name), want);
	}
}

static void traces_stay_in_a_file(void **state)
{
	struct tf_files t;

	(void)state;
	for (int backwards = 0; backwards < 2; backwards++) {
		close(load_file(&t, backwards, false));
		assert_int_equal(t.m->code.len, 0);
		assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
		check_file_stacks(&t);
		tf_close(&t);
		for (uint64_t n = 1, done = false; !done; n++) {
			close(load_file(&t, backwards, false));
			mem_fail_after(n, n % 2);
			done = model_require_stacks(t.m, &t.err) == OW_OK;
			mem_fail_after(0, false);
			tf_close(&t);
		}
	}
}

static void a_file_that_is_forgotten(void **state)
{
	struct tf_files t;

	(void)state;
	close(load_file(&t, false, true));
	import_forget(&t.b);
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
	check_file_stacks(&t);
	tf_close(&t);
}

static void a_file_that_shrinks(void **state)
{
	struct tf_files t;
	int fd;

	(void)state;
	fd = load_file(&t, false, false);
	assert_int_equal(ftruncate(fd, 100), 0);
	close(fd);
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_E_IO);
	assert_non_null(strstr(t.err.text, "shorter"));
	tf_close(&t);
}

static struct str trace_file(const struct tf_files *t, const struct code_traces *traces,
			     const char *op, uint32_t depth)
{
	uint32_t id = tf_op(t, op);

	assert_true(depth < traces->len[id]);
	return model_str(t->m, t->m->frame.file[traces->frames[traces->first[id] + depth].v]);
}

/* Traces may be asked for before stacks, which are the same then; but not after them. */
static void traces_first(void **state)
{
	const struct code_traces *traces;
	struct tf_files t;

	(void)state;
	load_two_logs(&t);
	assert_int_equal(model_require_traces(t.m, &traces, &t.err), OW_OK);
	assert_non_null(traces);
	assert_int_equal(t.m->stack.count - 1, 0);
	assert_int_equal(traces->len[tf_op(&t, "c")], 0);
	assert_int_equal(traces->len[tf_op(&t, "a")], 2);
	assert_true(str_eq(trace_file(&t, traces, "a", 1), STR("/p/x.py")));
	assert_true(str_eq(trace_file(&t, traces, "d", 0), STR("/p/main.py")));
	assert_true(str_eq(trace_file(&t, traces, "d", 1), STR("/q")));
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
	assert_string_equal(stack_text(&t, "a"), "/p/main.py:10:<module>|/p/x.py:-5:f");
	assert_string_equal(stack_text(&t, "d"), "/p/main.py:10:<module>|/q:1:<module>");
	tf_close(&t);

	load_two_logs(&t);
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
	assert_int_equal(model_require_traces(t.m, &traces, &t.err), OW_OK);
	assert_null(traces);
	tf_close(&t);
}

/* Many traces with common beginnings, ends and middles: as if each had been added alone. */
static void stacks_as_a_tree(void **state)
{
	struct tf_files t;
	struct buf text, nodes;
	char want[256];

	(void)state;
	tf_open(&t);
	buf_init(&text, &t.mem);
	buf_init(&nodes, &t.mem);
	for (int i = 0; i < 200; i++) {
		buf_printf(&nodes, "node { name: 'n%d' op: 'N' } ", i);
		buf_printf(&text, "log_entries { name: 'n%d' code_def { ", i);
		for (int k = 0; k < i % 7; k++)
			buf_printf(&text, "traces { file: 'f' function: 'g' lineno: %d } ",
				   (i * (k + 3)) % 4);
		buf_puts(&text, "} } ");
	}
	assert_int_equal(tf_load_graph(&t, buf_cstr(&nodes)), OW_OK);
	assert_int_equal(load_log(&t, buf_cstr(&text)), OW_OK);
	buf_release(&text);
	buf_release(&nodes);
	tf_freeze(&t);
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
	for (int i = 0; i < 200; i++) {
		char name[16];

		want[0] = '\0';
		for (int k = 0; k < i % 7; k++)
			snprintf(want + strlen(want), sizeof(want) - strlen(want), "%sf:%d:g",
				 k ? "|" : "", (i * (k + 3)) % 4);
		snprintf(name, sizeof(name), "n%d", i);
		assert_string_equal(stack_text(&t, name), want);
	}
	for (uint32_t i = 1; i < t.m->stack.count; i++) {
		assert_true(t.m->stack.parent[i].v < i);
		for (uint32_t k = 1; k < i; k++)
			assert_true(t.m->stack.parent[i].v != t.m->stack.parent[k].v ||
				    t.m->stack.frame[i].v != t.m->stack.frame[k].v);
	}
	tf_close(&t);
}

static ow_status load_both(struct mem *mem, const struct buf *g, const struct buf *l, bool trace)
{
	struct import_options options = { .step = INT64_MIN };
	struct ow_error err = { 0 };
	struct model *m = model_new(mem, &err);
	const struct code_traces *traces;
	struct builder b;
	struct input in;
	ow_status status;

	if (!m)
		return err.status;
	builder_init(&b, m, &err);
	status = input_from_memory(&in, mem, "g", g->ptr, g->len, &err);
	if (status == OW_OK)
		status =
			import_input(&b, &in, importer_find(STR("graphdef")), &options, NULL, &err);
	if (status == OW_OK)
		status = input_from_memory(&in, mem, "l", l->ptr, l->len, &err);
	if (status == OW_OK)
		status = import_input(&b, &in, importer_find(STR("oplog")), &options, NULL, &err);
	if (status == OW_OK)
		status = model_freeze(&b);
	if (status == OW_OK && trace)
		status = model_require_traces(m, &traces, &err);
	if (status == OW_OK)
		status = model_require_stacks(m, &err);
	model_free(m);
	return status;
}

static void truncations_and_failures(void **state)
{
	struct mem mem, other;
	struct buf g, l;

	(void)state;
	mem_init(&mem, 0);
	mem_init(&other, 0);
	g = tf_binary(&other, &tf_graph_def, graph);
	l = tf_binary(&other, &tf_op_log, log_text);
	tf_every_truncation("oplog", buf_str(&l));
	for (size_t len = l.len; l.len-- > 0;) {
		(void)load_both(&mem, &g, &l, l.len % 2);
		assert_int_equal(atomic_load(&mem.used), 0);
		if (!l.len) {
			l.len = len;
			break;
		}
	}
	for (int trace = 0; trace < 2; trace++)
		for (uint64_t n = 1, done = false; !done; n++) {
			mem_fail_after(n, n % 2);
			done = load_both(&mem, &g, &l, trace) == OW_OK;
			mem_fail_after(0, false);
			assert_int_equal(atomic_load(&mem.used), 0);
		}
	buf_release(&g);
	buf_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(annotates_ops),
		cmocka_unit_test(stacks_are_decoded_on_demand),
		cmocka_unit_test(several_logs),
		cmocka_unit_test(traces_first),
		cmocka_unit_test(stacks_as_a_tree),
		cmocka_unit_test(truncations_and_failures),
		cmocka_unit_test(frames_of_all_sizes),
		cmocka_unit_test(traces_stay_in_a_file),
		cmocka_unit_test(a_file_that_is_forgotten),
		cmocka_unit_test(a_file_that_shrinks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
