/*
 * import_runmeta_test.c: the accounting of run metadata, rule by rule, and the worked example that
 * the original's numbers were taken for; events and their tracks; truncations and failing allocations.
 */
#include "support/tf_files.h"

/* clang-format off */
#define CPU "/job:localhost/replica:0/task:0/device:CPU:0"
#define GPU "/job:localhost/replica:0/task:0/device:GPU:0"
#define STAT(name, start, end)                                                                     \
	" node_stats { node_name: '" name "' all_start_micros: " #start " op_end_rel_micros: " #end
#define DEVICE(name, stats) " dev_stats { device: '" name "'" stats " }"

static const char *const nodes = "node { name: 'n' op: 'T' } node { name: 'm' op: 'T' } node { name: 'g' op: 'T' }";

static const char *const step_0 =
	"step_stats {"
	DEVICE(CPU, STAT("n", 100, 0) " memory { allocator_name: 'cpu' total_bytes: 10 peak_bytes: 20 live_bytes: -5 }"
		"  output { tensor_description { allocation_description { requested_bytes: 5 allocated_bytes: 9 } } }"
		"  output { slot: 1 tensor_description { dtype: DT_FLOAT shape { dim { size: 2 } }"
		"    allocation_description { requested_bytes: 50 allocated_bytes: 2 allocator_name: 'cpu' ptr: 77 } } }"
		"  memory_stats { temp_memory_size: 3 persistent_memory_size: 4 } }"
		STAT("m:M", 100, 7) " }")
	DEVICE(GPU, STAT("n", 100, 50) " }"
		STAT("g", 10, 5) " memory { allocator_name: 'GPU_0_bfc' total_bytes: 100 peak_bytes: 90 live_bytes: 80 }"
		"  memory_stats { temp_memory_size: 1 persistent_memory_size: 2 } }"
		STAT("g", 20, 5) " }")
	DEVICE("/device:GPU:0/stream:all", STAT("g:Mul", 12, 30) " }" STAT("n:x", 5, 1000) " }")
	DEVICE("/device:GPU:0/stream:14", STAT("g:Mul", 12, 30) " }")
	DEVICE("/device:GPU:0/memcpy", STAT("edge_MEMCPYHtoD", 1, 1) " }")
	DEVICE("/job:x/device:XLA_CPU:0", STAT("xc", 10, 100) " }")
	DEVICE("/device:TPU:0", STAT("t", 10, 100) " }")
	"}";

static const char *const step_1 =
	"step_stats {"
	DEVICE(CPU, STAT("n", 100, 11) " memory { allocator_name: 'cpu' total_bytes: 10 peak_bytes: 20 live_bytes: -50 } }")
	DEVICE(GPU, STAT("m", 3, 4) " }")
	"}";
/* clang-format on */

static void check_row(const struct tf_files *t, const char *op, int64_t step, int64_t runs,
		      int64_t accelerator_us, int64_t cpu_us)
{
	uint32_t row = tf_row(t, op, step);

	assert_int_not_equal(row, 0);
	assert_int_equal(t->m->op_step.run_count[row], runs);
	assert_int_equal(t->m->op_step.accelerator_ns[row], accelerator_us * 1000);
	assert_int_equal(t->m->op_step.cpu_ns[row], cpu_us * 1000);
}

static void check_memory(const struct tf_files *t, const char *op, int64_t requested, int64_t peak,
			 int64_t residual, int64_t output)
{
	uint32_t at, count = model_memory_of(t->m, tf_row(t, op, 0), &at);

	assert_true(count >= 1);
	assert_int_equal(t->m->memory.requested[at], requested);
	assert_int_equal(t->m->memory.peak[at], peak);
	assert_int_equal(t->m->memory.residual[at], residual);
	assert_int_equal(t->m->memory.output[at], output);
}

static void worked_example(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, nodes), OW_OK);
	assert_int_equal(tf_load_run(&t, step_0), OW_OK);
	assert_true(t.last.coverage > 0.599 && t.last.coverage < 0.601);
	assert_false(t.m->missing_streams);
	assert_int_equal(tf_load_run(&t, step_1), OW_OK);
	assert_true(t.last.coverage > 0.599 && t.last.coverage < 0.601);
	assert_true(t.m->missing_streams);
	tf_freeze(&t);

	assert_int_equal(t.m->op.count - 1, 5);
	assert_int_equal(t.m->time_unit_ns, 1000);
	check_row(&t, "n", 0, 1, 1000, 1);
	check_row(&t, "m", 0, 1, 0, 7);
	check_row(&t, "g", 0, 2, 30, 10);
	check_row(&t, "xc", 0, 0, 0, 0);
	check_row(&t, "t", 0, 0, 0, 0);
	check_row(&t, "n", 1, 1, 0, 11);
	assert_int_equal(tf_row(&t, "m", 1), 0); /* another executor owns it */
	check_memory(&t, "n", 17, 27, -1, 59);
	check_memory(&t, "g", 103, 93, 82, 0);
	assert_int_equal(model_memory_of(t.m, tf_row(&t, "g", 0), &(uint32_t){ 0 }), 2);
	assert_int_equal(t.m->op_step.first_start_ns[tf_row(&t, "n", 0)], 5000);
	assert_int_equal(t.m->op_step.latest_end_ns[tf_row(&t, "n", 0)], 1005000);
	tf_close(&t);
}

static void devices_and_types(void **state)
{
	struct tf_files t;
	uint32_t g;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, nodes), OW_OK);
	assert_int_equal(tf_load_run(&t, step_0), OW_OK);
	g = tf_op(&t, "g");
	assert_string_equal(tf_str(&t, t.m->op.device[g]),
			    "/job:localhost/replica:0/task:0/device:gpu:0");
	assert_string_equal(tf_str(&t, t.m->op.host_device[g]),
			    "/job:localhost/replica:0/task:0/device:cpu:0");
	assert_string_equal(tf_types(&t, "g"), "/job:localhost/replica:0/task:0/device:gpu:0|T");
	assert_string_equal(tf_types(&t, "xc"), "xc");
	assert_string_equal(tf_str(&t, t.m->op.device[tf_op(&t, "xc")]), "");
	assert_true(t.m->op.flags[tf_op(&t, "xc")] & OP_FROM_RUN);
	assert_false(t.m->op.flags[tf_op(&t, "xc")] & OP_COVERED);
	assert_true(t.m->op.flags[g] & OP_COVERED);
	tf_close(&t);
}

/* Counted events are told by the kind of their track; their order is that of the records. */
static void events_and_tracks(void **state)
{
	struct tf_files t;
	unsigned by_kind[TRACK_COPY + 1] = { 0 };

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, nodes), OW_OK);
	assert_int_equal(tf_load_run(&t, step_0), OW_OK);
	tf_freeze(&t);
	tf_require_rows(&t);
	assert_int_equal(t.m->event.count - 1, 11);
	for (uint32_t i = 1; i < t.m->event.count; i++) {
		uint32_t track = t.m->event.track[i].v;

		assert_true(t.m->track.kind[track] <= TRACK_COPY);
		by_kind[t.m->track.kind[track]]++;
		assert_true(t.m->event.args_size[i] > 0);
		if (!t.m->event.op[i].v)
			assert_string_equal(tf_str(&t, t.m->event.name[i]), "edge_MEMCPYHtoD");
	}
	assert_int_equal(by_kind[TRACK_DEVICE], 4);	 /* n, m, g, g */
	assert_int_equal(by_kind[TRACK_ACCELERATOR], 2); /* g, n */
	assert_int_equal(by_kind[TRACK_STREAM], 1);
	assert_int_equal(by_kind[TRACK_COPY], 1);
	assert_int_equal(by_kind[TRACK_OTHER], 3); /* n on the GPU, xc, t */
	assert_int_equal(t.m->step.start_ns[1], 1000);
	tf_close(&t);
}

static void arguments_can_be_found(void **state)
{
	struct tf_files t;
	unsigned char bytes[256];
	uint32_t size;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_run(&t, "step_stats {" DEVICE(CPU, STAT("a", 5, 6) " }") "}"),
			 OW_OK);
	tf_require_rows(&t);
	size = t.m->event.args_size[1];
	assert_true(size < sizeof(bytes));
	assert_int_equal(
		input_read_at(t.m->inputs[1], t.m->event.args_offset[1], bytes, size, &t.err),
		OW_OK);
	assert_memory_equal(bytes,
			    "\x0a\x01"
			    "a"
			    "\x10\x05\x20\x06",
			    size);
	tf_close(&t);
}

static void tensors(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_run(&t, step_0), OW_OK);
	tf_require_rows(&t);
	assert_int_equal(t.m->tensor.count - 1, 2);
	assert_int_equal(t.m->tensor.op[2].v, tf_op(&t, "n"));
	assert_int_equal(t.m->tensor.slot[2], 1);
	assert_int_equal(t.m->tensor.dtype[2], 1);
	assert_string_equal(tf_dims(&t, t.m->tensor.shape[2]), "2");
	assert_int_equal(t.m->tensor.requested[2], 50);
	assert_int_equal(t.m->tensor.allocated[2], 2);
	assert_string_equal(tf_str(&t, t.m->tensor.allocator[2]), "cpu");
	assert_int_equal(t.m->tensor.address[2], 77);
	tf_close(&t);
}

static void gpu_memory(void **state)
{
	struct tf_files t;
	uint32_t row;

	(void)state;
	tf_open(&t);
	assert_int_equal(
		tf_load_run(
			&t,
			"step_stats {" DEVICE(
				GPU,
				STAT("a", 5,
				     6) " memory { allocator_name: 'GPU_0_bfc' "
					"allocator_bytes_in_use: 10"
					"   allocation_records { alloc_micros: 7 alloc_bytes: 64 } "
					"allocation_records { alloc_micros: 9 alloc_bytes: -64 } }"
					" memory { allocator_name: 'cpu' allocator_bytes_in_use: "
					"99 allocation_records { alloc_micros: 1 alloc_bytes: 1 } }"
					" memory { allocator_name: 'x_GPU' allocator_bytes_in_use: "
					"30 }"
					" memory_stats { temp_memory_size: 3 "
					"persistent_memory_size: 4 } }") "}"),
		OW_OK);
	tf_freeze(&t);
	assert_int_equal(model_memory_of(t.m, tf_row(&t, "a", 0), &row), 1);
	assert_int_equal(t.m->memory.in_use[row], 30);
	assert_int_equal(t.m->memory.accelerator_temp[row], 3);
	assert_int_equal(t.m->memory.accelerator_persistent[row], 4);
	assert_null(t.m->memory.host_temp);
	assert_int_equal(t.m->memory.ts_ns[row], 11000);
	assert_int_equal(t.m->alloc.count - 1, 2);
	assert_int_equal(t.m->alloc.size[2], -64);
	assert_int_equal(t.m->alloc.ts_ns[2], 9000);
	assert_int_equal(tf_noted(&t, "found 2 gpu allocator for 1 node"), 1);
	tf_close(&t);
}

static void no_start_time(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_run(&t, "step_stats {" DEVICE(CPU, STAT("a:B", 0, 6) " }") "}"),
			 OW_OK);
	tf_freeze(&t);
	check_row(&t, "a", 0, 0, 0, 0);
	assert_int_equal(tf_noted(&t, "a:B has no start time, skipping"), 1);
	tf_require_rows(&t);
	assert_int_equal(t.m->event.count - 1, 0);
	assert_int_equal(t.m->memory.count - 1, 0);
	tf_close(&t);
}

static void strangers(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, "node { name: 'RecvTensor' op: 'X' }"), OW_OK);
	assert_int_equal(
		tf_load_run(&t, "step_stats {" DEVICE(
					CPU,
					STAT("_SOURCE", 1, 1) " }" STAT("aMEMCPYb", 2, 1) " }" STAT(
						"RecvTensor", 3, 1) " }") "}"),
		OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->op.count - 1, 1);
	check_row(&t, "RecvTensor", 0, 1, 0, 1); /* a node of that name is no stranger */
	tf_require_rows(&t);
	assert_int_equal(t.m->event.count - 1, 3);
	tf_close(&t);
}

static void steps_are_numbered(void **state)
{
	struct tf_files t;
	const char *text = "step_stats {" DEVICE(CPU, STAT("a", 5, 6) " }") "}";

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_run(&t, text), OW_OK);
	t.options.step = 7;
	assert_int_equal(tf_load_run(&t, text), OW_OK);
	assert_int_equal(tf_load_run(&t, text), OW_OK); /* more of the same step */
	t.options.step = INT64_MIN;
	assert_int_equal(tf_load_run(&t, text), OW_OK);
	tf_freeze(&t);
	check_row(&t, "a", 0, 1, 0, 6);
	check_row(&t, "a", 7, 2, 0, 12);
	check_row(&t, "a", 8, 1, 0, 6);
	assert_int_equal(t.m->op.step_count[tf_op(&t, "a")], 3);
	tf_close(&t);
}

static void without_step_stats(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	t.options.strict_proto = true;
	assert_int_equal(tf_load_run(&t, ""), OW_OK);
	assert_true(t.last.missing_step_stats);
	assert_int_equal(t.m->step.count - 1, 0);
	assert_int_equal(tf_load_run(&t, "step_stats { }"), OW_OK);
	assert_false(t.last.missing_step_stats);
	assert_int_equal(t.m->step.count - 1, 1);
	tf_close(&t);
}

/* The device's name may come behind its records, and a message may be split in two. */
static void odd_orders(void **state)
{
	struct tf_files t;
	struct buf out;

	(void)state;
	tf_open(&t);
	buf_init(&out, &t.mem);
	for (int part = 0; part < 2; part++) {
		size_t stats = pb_begin(&out, 1), device = pb_begin(&out, 1),
		       node = pb_begin(&out, 2);

		pb_put_varint(&out, 4, 10);
		pb_put_varint(&out, 2, 5);
		pb_put_str(&out, 1, STR("a"));
		pb_end(&out, node);
		pb_put_str(&out, 1, part ? STR(GPU) : STR(CPU));
		pb_end(&out, device);
		pb_end(&out, stats);
	}
	assert_int_equal(tf_load_bytes(&t, "runmeta", &out), OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->step.count - 1, 1);
	check_row(&t, "a", 0, 1, 0, 10);
	tf_close(&t);
}

static void step_stats_alone(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load(&t, NULL, &tf_step_stats, DEVICE(CPU, STAT("a", 5, 6) " }")),
			 OW_OK);
	tf_freeze(&t);
	check_row(&t, "a", 0, 1, 0, 6);
	tf_close(&t);
}

/* Guesses at the next record's op must not matter, whatever the order of the records. */
static void any_order_of_records(void **state)
{
	static const char *const orders[] = { "abcdef", "abcdef", "fedcba", "aabbcc",
					      "acebdf", "f",	  "cdxabz" };
	struct tf_files t;
	struct buf text;

	(void)state;
	tf_open(&t);
	for (size_t i = 0; i < ARRAY_COUNT(orders); i++) {
		buf_init(&text, &t.mem);
		buf_puts(&text, "step_stats { dev_stats { device: '" CPU "' ");
		for (const char *c = orders[i]; *c; c++)
			buf_printf(&text,
				   "node_stats { node_name: '%c' all_start_micros: 9 "
				   "op_end_rel_micros: %d } ",
				   *c, *c);
		buf_puts(&text, "} }");
		assert_int_equal(tf_load_run(&t, buf_cstr(&text)), OW_OK);
		buf_release(&text);
	}
	tf_freeze(&t);
	assert_int_equal(t.m->op.count - 1, 8);
	for (size_t i = 0; i < ARRAY_COUNT(orders); i++)
		for (char c = 'a'; c <= 'z'; c++) {
			char name[2] = { c, 0 };
			int64_t runs = 0;

			for (const char *o = orders[i]; *o; o++)
				runs += *o == c;
			if (runs)
				check_row(&t, name, (int64_t)i, runs, 0, runs * c);
			else if (tf_op(&t, name))
				assert_int_equal(tf_row(&t, name, (int64_t)i), 0);
		}
	tf_close(&t);
}

/* A record is of the op whose name stands before its first colon, even if there is one named like the whole, or like a
 * part of it, in the place where it would be expected. */
static void names_end_at_colons(void **state)
{
	static const char *const graph = "node { name: 'a:b' op: 'T' } node { name: 'a' op: 'T' } "
					 "node { name: 'ab' op: 'T' }"
					 "node { name: 'a:' op: 'T' } node { name: 'abc' op: 'T' }";
	static const char *const names[] = { "a:b", "a", "ab:b", "a:", "abc:x:y", "a:b" };
	struct tf_files t;
	struct buf text;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_graph(&t, graph), OW_OK);
	for (size_t step = 0; step < 3; step++) {
		buf_init(&text, &t.mem);
		buf_puts(&text, "step_stats { dev_stats { device: '" CPU "' ");
		for (size_t i = 0; i < ARRAY_COUNT(names); i++)
			buf_printf(&text,
				   "node_stats { node_name: '%s' all_start_micros: 9 "
				   "op_end_rel_micros: 1 } ",
				   names[i]);
		buf_puts(&text, "} }");
		assert_int_equal(tf_load_run(&t, buf_cstr(&text)), OW_OK);
		buf_release(&text);
	}
	tf_freeze(&t);
	assert_int_equal(t.m->op.count - 1, 5);
	for (int64_t step = 0; step < 3; step++) {
		check_row(&t, "a", step, 4, 0, 4);
		check_row(&t, "ab", step, 1, 0, 1);
		check_row(&t, "abc", step, 1, 0, 1);
		assert_int_equal(tf_row(&t, "a:b", step), 0);
		assert_int_equal(tf_row(&t, "a:", step), 0);
	}
	tf_close(&t);
}

static void facts(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load_run(&t, step_0), OW_OK);
	assert_int_equal(tf_fact(&t, "node_stats"), 11);
	assert_int_equal(tf_fact(&t, "step"), 0);
	tf_close(&t);
}

static void truncations_and_failures(void **state)
{
	(void)state;
	tf_every_ending("runmeta", &tf_run_metadata, step_0);
	tf_every_truncation("runmeta", str_from(step_1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worked_example),
		cmocka_unit_test(devices_and_types),
		cmocka_unit_test(events_and_tracks),
		cmocka_unit_test(arguments_can_be_found),
		cmocka_unit_test(tensors),
		cmocka_unit_test(gpu_memory),
		cmocka_unit_test(no_start_time),
		cmocka_unit_test(strangers),
		cmocka_unit_test(steps_are_numbered),
		cmocka_unit_test(without_step_stats),
		cmocka_unit_test(odd_orders),
		cmocka_unit_test(step_stats_alone),
		cmocka_unit_test(any_order_of_records),
		cmocka_unit_test(names_end_at_colons),
		cmocka_unit_test(facts),
		cmocka_unit_test(truncations_and_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
