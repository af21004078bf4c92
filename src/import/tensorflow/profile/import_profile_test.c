/*
 * import_profile_test.c: what a ProfileProto becomes: ids, inputs, ports, steps, times, memory, code;
 * odd orders, duplicates and dangling ids; a profile beside other sources; truncations and failing
 * allocations.
 */
#include "support/tf_files.h"

/* clang-format off */
#define GPU "/job:w/device:gpu:0"
#define EXEC                                                                                       \
	"run_count: 2 all_start_micros: 100 latest_end_micros: 150"                                \
	" accelerator_execs { key: '/gpu:0/stream:all' value { times { int64_values: 120 int64_values: 30 } } }" \
	" cpu_execs { key: '" GPU "' value { times { int64_values: 100 int64_values: 7 }"          \
	"   times { int64_values: 110 int64_values: 4 } } } devices: '" GPU "'"                    \
	" memory_execs { memory_micros: 111 host_temp_bytes: 1 host_persistent_bytes: 2 accelerator_temp_bytes: 3" \
	"   accelerator_persistent_bytes: 4 requested_bytes: 50 peak_bytes: 60 residual_bytes: -7 output_bytes: 8" \
	"   allocator_bytes_in_use: 900 output_memory { key: 0 value { bytes: 5 ptr: 6 } } }"      \
	" allocations { alloc_micros: 101 alloc_bytes: 64 }"

static const char *const whole =
	"nodes { key: 100 value { name: 'src' op: 'Split' op_types: 'Split' op_types: 'mine' shape: 3 shape: 4"
	"  output_shapes { key: 0 value { int64_values: 2 int64_values: 3 } } output_shapes { key: 1 value { int64_values: 4 } }"
	"  output_shapes { key: 2 value { } } } }"
	"nodes { key: -5 value { name: 'dst' op: 'Conv2D' op_types: '" GPU "' op_types: 'Conv2D' canonical_device: '" GPU "'"
	"  host_device: '/job:w/device:cpu:0' float_ops: 1000 id: 9 inputs { key: 1 value: 100 } inputs { key: 0 value: 100 }"
	"  inputs { key: 2 value: 55 } inputs { key: 3 value: 7 } src_output_index { key: 100 value: 1 } src_output_index { key: 56 value: 3 }"
	"  trace { traces { file_id: 1 lineno: 3 function_id: 2 } } attrs { key: 'data_format' value { s: 'NHWC' } }"
	"  execs { key: 5 value { " EXEC " } } execs { key: 2 value { run_count: 1 cpu_execs { key: '" GPU "'"
	"    value { times { int64_values: 10 int64_values: 1 } } } } } } }"
	"nodes { key: 7 value { name: 'bare' op: 'NoOp' } }"
	"nodes { key: 8 value { name: 'src' op: 'Other' } }"
	"has_trace: true steps: 2 steps: 5 steps: 6"
	" id_to_string { key: 1 value: 'x.py' } id_to_string { key: 2 value: 'f' } miss_accelerator_stream: true";
/* clang-format on */

static ow_status load(struct tf_files *t, const char *text)
{
	return tf_load(t, "profile", &tf_profile, text);
}

static void nodes_and_edges(void **state)
{
	struct tf_files t;
	uint32_t dst, i;

	(void)state;
	tf_open(&t);
	assert_int_equal(load(&t, whole), OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->op.count - 1, 3);
	dst = tf_op(&t, "dst");
	assert_string_equal(tf_types(&t, "src"), "Split|mine");
	assert_string_equal(tf_types(&t, "bare"), ""); /* as stored */
	assert_string_equal(tf_dims(&t, t.m->op.shape[tf_op(&t, "src")]), "3x4");
	assert_string_equal(tf_dims(&t, t.m->op.shape[dst]), "-");
	i = t.m->op.output_first[tf_op(&t, "src")];
	assert_string_equal(tf_dims(&t, t.m->op_output.shape[i + 1]), "4");
	assert_string_equal(tf_dims(&t, t.m->op_output.shape[i + 2]), "-");
	assert_string_equal(tf_str(&t, t.m->op.device[dst]), GPU);
	assert_string_equal(tf_str(&t, t.m->op.host_device[dst]), "/job:w/device:cpu:0");
	assert_string_equal(tf_str(&t, t.m->op.data_format[dst]), "NHWC");
	assert_int_equal(t.m->op.float_ops[dst], 1000);

	i = t.m->op.input_first[dst];
	assert_int_equal(t.m->op.input_count[dst], 3);
	for (uint32_t k = 0; k < 2; k++) {
		assert_int_equal(t.m->op_input.index[i + k], k);
		assert_int_equal(t.m->op_input.src[i + k].v, tf_op(&t, "src"));
		assert_int_equal(t.m->op_input.shown_port[i + k], 1);
	}
	assert_int_equal(t.m->op_input.index[i + 2], 3);
	assert_string_equal(tf_str(&t, t.m->op_input.name[i + 2]), "bare");
	assert_int_equal(t.m->op_input.shown_port[i + 2],
			 -1); /* no port is stored, so no shape is shown */
	assert_int_equal(tf_noted(&t, "not in the profile"), 2);
	assert_int_equal(tf_noted(&t, "another node has the same name"), 1);
	assert_string_equal(tf_str(&t, t.m->op.type[tf_op(&t, "src")]), "Split");
	tf_close(&t);
}

static void runs(void **state)
{
	struct tf_files t;
	uint32_t row, at;

	(void)state;
	tf_open(&t);
	assert_int_equal(load(&t, whole), OW_OK);
	assert_int_equal(t.m->step.count - 1, 3);
	tf_freeze(&t);
	assert_false(t.m->missing_streams); /* not restored */
	row = tf_row(&t, "dst", 5);
	assert_int_equal(t.m->op_step.run_count[row], 2);
	assert_int_equal(t.m->op_step.accelerator_ns[row], 30000);
	assert_int_equal(t.m->op_step.cpu_ns[row], 11000);
	assert_int_equal(t.m->op_step.first_start_ns[row], 100000);
	assert_int_equal(t.m->op_step.latest_end_ns[row], 150000);
	assert_int_equal(model_memory_of(t.m, row, &at), 1);
	assert_int_equal(t.m->memory.ts_ns[at], 111000);
	assert_int_equal(t.m->memory.requested[at], 50);
	assert_int_equal(t.m->memory.peak[at], 60);
	assert_int_equal(t.m->memory.residual[at], -7);
	assert_int_equal(t.m->memory.output[at], 8);
	assert_int_equal(t.m->memory.in_use[at], 900);
	assert_int_equal(t.m->memory.host_temp[at], 1);
	assert_int_equal(t.m->memory.accelerator_persistent[at], 4);
	assert_int_equal(t.m->alloc.op_step[1], row);
	assert_int_equal(t.m->alloc.size[1], 64);
	assert_int_equal(tf_row(&t, "dst", 2),
			 row - 1); /* by number, whatever the order in the file */

	assert_int_equal(t.m->event.count - 1, 4);
	assert_int_equal(t.m->track.kind[t.m->event.track[1].v], TRACK_ACCELERATOR);
	assert_string_equal(tf_str(&t, t.m->track.name[t.m->event.track[1].v]),
			    "/gpu:0/stream:all");
	assert_int_equal(t.m->track.kind[t.m->event.track[2].v], TRACK_DEVICE);
	assert_int_equal(t.m->event.ts_ns[3], 110000);
	assert_int_equal(t.m->event.dur_ns[3], 4000);
	assert_int_equal(t.m->event.op[3].v, tf_op(&t, "dst"));
	tf_close(&t);
}

static void code(void **state)
{
	struct tf_files t;
	uint32_t stack;

	(void)state;
	tf_open(&t);
	assert_int_equal(load(&t, whole), OW_OK);
	assert_true(t.m->has_code);
	tf_freeze(&t);
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
	stack = t.m->op.stack[tf_op(&t, "dst")].v;
	assert_string_equal(tf_str(&t, t.m->frame.function[t.m->stack.frame[stack].v]), "f");
	tf_close(&t);

	/* The flag counts, not whether there are traces. */
	tf_open(&t);
	assert_int_equal(load(&t, "nodes { value { name: 'a' trace { traces { lineno: 1 } } } }"),
			 OW_OK);
	assert_false(t.m->has_code);
	assert_true(t.m->op.flags[1] & OP_HAS_CODE);
	tf_close(&t);
}

static void facts(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(load(&t, whole), OW_OK);
	assert_int_equal(tf_fact(&t, "nodes"), 4);
	assert_int_equal(tf_fact(&t, "distinct_ops"), 4);
	assert_int_equal(tf_fact(&t, "exec_profiles"), 2);
	assert_int_equal(tf_fact(&t, "nodes_with_exec"), 1);
	assert_int_equal(tf_fact(&t, "nodes_with_trace"), 1);
	assert_int_equal(tf_fact(&t, "id_to_string"), 2);
	assert_int_equal(tf_fact(&t, "has_trace"), true);
	assert_int_equal(tf_fact(&t, "sum_float_ops"), 1000);
	assert_int_equal(tf_fact(&t, "sum_run_count"), 3);
	tf_close(&t);
}

/* Far-apart ids need another table than the dense ones that are usual. */
static void ids_anywhere(void **state)
{
	struct tf_files t;
	uint32_t i;

	(void)state;
	tf_open(&t);
	assert_int_equal(load(&t, "nodes { key: 9223372036854775807 value { name: 'a' op: 'A' } }"
				  "nodes { key: 3 value { name: 'b' op: 'B' inputs { key: 0 value: "
				  "9223372036854775807 } } }"),
			 OW_OK);
	i = t.m->op.input_first[tf_op(&t, "b")];
	assert_int_equal(t.m->op_input.src[i].v, tf_op(&t, "a"));
	tf_close(&t);
}

static void many_ports(void **state)
{
	struct tf_files t;
	struct buf text;
	uint32_t first;

	(void)state;
	tf_open(&t);
	buf_init(&text, &t.mem);
	buf_puts(&text, "nodes { key: 1000 value { name: 'n' ");
	for (int i = 0; i < 100; i++)
		buf_printf(&text,
			   "inputs { key: %d value: %d } src_output_index { key: %d value: %d } ",
			   99 - i, i, i, i + 7);
	buf_puts(&text, "} }");
	for (int i = 0; i < 100; i++)
		buf_printf(&text, "nodes { key: %d value { name: 'p%d' } } ", i, i);
	assert_int_equal(load(&t, buf_cstr(&text)), OW_OK);
	buf_release(&text);
	first = t.m->op.input_first[tf_op(&t, "n")];
	for (int i = 0; i < 100; i++) {
		assert_int_equal(t.m->op_input.index[first + (uint32_t)i], i);
		assert_int_equal(t.m->op_input.shown_port[first + (uint32_t)i], 99 - i + 7);
	}
	tf_close(&t);
}

/* A node's name behind everything else, and a value before its key. */
static void odd_orders(void **state)
{
	struct tf_files t;
	struct buf out;
	size_t entry, node, exec, value;

	(void)state;
	tf_open(&t);
	buf_init(&out, &t.mem);
	for (int i = 0; i < 2; i++) {
		entry = pb_begin(&out, 1);
		node = pb_begin(&out, 2);
		exec = pb_begin(&out, 12);
		value = pb_begin(&out, 2);
		pb_put_varint(&out, 1, 5);
		pb_end(&out, value);
		pb_put_varint(&out, 1, 3);
		pb_end(&out, exec);
		pb_put_str(&out, 1, STR("late"));
		pb_end(&out, node);
		pb_put_varint(&out, 1, 77);
		pb_end(&out, entry);
	}
	assert_int_equal(tf_load_bytes(&t, "profile", &out), OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->op.count - 1, 1);
	assert_int_equal(t.m->op_step.count - 1, 1);
	assert_int_equal(t.m->op_step.run_count[tf_row(&t, "late", 3)], 5);
	tf_close(&t);
}

static void damaged_parts(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(
		load(&t,
		     "nodes { value { name: 'a' execs { key: 1 value { cpu_execs { key: 'd' value {"
		     " times { int64_values: 4 } times { int64_values: 5 int64_values: 6 } } } } }"
		     " execs { key: 1 value { run_count: 9 } } } }"),
		OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->op_step.cpu_ns[tf_row(&t, "a", 1)], 6000);
	assert_int_equal(t.m->op_step.count - 1, 1);
	assert_int_equal(tf_noted(&t, "lack a start or a duration"), 1);
	assert_int_equal(tf_noted(&t, "appear twice"), 1);
	tf_close(&t);
}

/* A profile after a graph, or after another profile of the same job, adds what is new. */
static void beside_other_sources(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, "node { name: 'dst' op: 'Conv2D' input: 'src' } node { "
					   "name: 'src' op: 'Split' }"),
			 OW_OK);
	assert_int_equal(load(&t, whole), OW_OK);
	assert_int_equal(load(&t,
			      "nodes { value { name: 'dst' execs { key: 5 value { run_count: 99 } }"
			      " execs { key: 6 value { run_count: 3 } } } } steps: 5 steps: 6"),
			 OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->op.count - 1, 3);
	assert_int_equal(t.m->op.float_ops[tf_op(&t, "dst")], 1000);
	assert_string_equal(tf_types(&t, "dst"), GPU "|Conv2D");
	assert_string_equal(tf_types(&t, "src"), "Split|mine");
	assert_int_equal(t.m->op.input_count[tf_op(&t, "dst")], 1);
	assert_int_equal(t.m->op_step.run_count[tf_row(&t, "dst", 5)], 2);
	assert_int_equal(t.m->op_step.run_count[tf_row(&t, "dst", 6)], 3);
	assert_int_equal(model_require_stacks(t.m, &t.err), OW_OK);
	assert_int_not_equal(t.m->op.stack[tf_op(&t, "dst")].v, 0);
	tf_close(&t);
}

static void strictness(void **state)
{
	struct tf_files t;
	struct buf bytes;

	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		tf_open(&t);
		t.options.strict_proto = strict;
		bytes = tf_binary(&t.mem, &tf_profile, whole);
		bytes.len -= 3;
		assert_int_equal(tf_load_bytes(&t, "profile", &bytes),
				 strict ? OW_E_CORRUPT : OW_OK);
		tf_close(&t);
	}
	tf_open(&t);
	assert_int_equal(load(&t, "has_trace: true"), OW_E_FORMAT);
	tf_close(&t);
}

static void truncations_and_failures(void **state)
{
	(void)state;
	tf_every_ending("profile", &tf_profile, whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_and_edges),
		cmocka_unit_test(runs),
		cmocka_unit_test(code),
		cmocka_unit_test(facts),
		cmocka_unit_test(ids_anywhere),
		cmocka_unit_test(many_ports),
		cmocka_unit_test(odd_orders),
		cmocka_unit_test(damaged_parts),
		cmocka_unit_test(beside_other_sources),
		cmocka_unit_test(strictness),
		cmocka_unit_test(truncations_and_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
