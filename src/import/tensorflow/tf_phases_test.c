/* tf_phases_test.c: phases and windows of the ops of a profile and of run metadata. */
#include "support/tf_files.h"

#include "import/tensorflow/tf_phases.h"

#define TASK "/job:a/replica:0/task:0"
#define OTHER_TASK "/job:a/replica:0/task:1"
#define CPU "/device:cpu:0"
#define GPU "/device:gpu:0"

/* One run: a step, when it began and how long it took, on a device. */
#define RUN(kind, step, device, start, dur)                                                        \
	" execs { key: " #step " value { run_count: 1 " kind " { key: '" device                    \
	"' value { times { int64_values: " #start " int64_values: " #dur " } } } } }"
#define HOST_RUN(step, device, start, dur) RUN("cpu_execs", step, device, start, dur)
#define NODE(key, name, op, device, rest)                                                          \
	"nodes { key: " #key " value { name: '" name "' op: '" op "' canonical_device: '" device   \
	"' " rest " } }"

/* A reader, what is made of its result, a model on the accelerator, and what the host does with the model's result. */
#define READER(task, second)                                                                       \
	NODE(1, "read", "ReadFile", task CPU,                                                      \
	     HOST_RUN(0, TASK CPU, 1000, 100) HOST_RUN(1, TASK CPU, second, 100))
#define CONSTANT NODE(2, "size", "Const", TASK CPU, HOST_RUN(0, TASK CPU, 1000, 1))
#define RESIZE                                                                                     \
	NODE(3, "resize", "ResizeBilinear", TASK CPU,                                              \
	     "inputs { key: 0 value: 1 } inputs { key: 1 value: 2 }" HOST_RUN(0, TASK CPU, 1100,   \
									      50))
#define MODEL(streams)                                                                             \
	NODE(4, "conv", "Conv2D", TASK GPU,                                                        \
	     "inputs { key: 0 value: 3 }" HOST_RUN(0, TASK GPU, 1150, 5) streams)
#define STREAMS RUN("accelerator_execs", 1, "/device:gpu:0/stream:all", 3000, 40)
#define LOSS                                                                                       \
	NODE(5, "loss", "Mean", TASK CPU,                                                          \
	     "inputs { key: 0 value: 4 } inputs { key: 1 value: 3 }" HOST_RUN(0, TASK CPU, 1300,   \
									      7))

static uint8_t phase_of(const struct tf_files *t, const char *op)
{
	for (uint32_t i = 1; i < t->m->event.count; i++)
		if (t->m->event.op[i].v == tf_op(t, op))
			return COLUMN_GET(t->m->event.phase, i);
	fail();
	return 0;
}

static void load(struct tf_files *t, const char *text)
{
	tf_open(t);
	assert_int_equal(tf_load(t, "profile", &tf_profile, text), OW_OK);
	tf_freeze(t);
}

static void ops_of_a_step(void **state)
{
	struct tf_files t;

	(void)state;
	load(&t, READER(TASK, 2900) CONSTANT RESIZE MODEL(STREAMS) LOSS "steps: 0 steps: 1");
	assert_int_equal(phase_of(&t, "read"), PHASE_INPUT);
	assert_int_equal(phase_of(&t, "size"), PHASE_HOST);
	assert_int_equal(phase_of(&t, "resize"), PHASE_INPUT); /* works on what was read */
	assert_int_equal(phase_of(&t, "conv"), PHASE_LAUNCH);
	assert_int_equal(phase_of(&t, "loss"), PHASE_HOST); /* also on what the model made */
	assert_int_equal(t.m->window.count - 1, 2);
	assert_int_equal(t.m->window.start_ns[1], 1000000);
	assert_int_equal(t.m->window.end_ns[1], 1307000);
	assert_int_equal(t.m->window.start_ns[2], 2900000);
	assert_int_equal(t.m->window.end_ns[2], 3040000);
	tf_close(&t);
}

static void without_streams(void **state)
{
	struct tf_files t;

	(void)state;
	load(&t, READER(TASK, 2900) CONSTANT RESIZE MODEL("") LOSS "steps: 0 steps: 1");
	assert_int_equal(phase_of(&t, "conv"), PHASE_COMPUTE);
	assert_int_equal(phase_of(&t, "loss"), PHASE_COMPUTE);
	assert_int_equal(phase_of(&t, "read"), PHASE_INPUT);
	tf_close(&t);
}

/* The second step begins inside the first. */
static void steps_that_overlap(void **state)
{
	struct tf_files t;

	(void)state;
	load(&t, READER(TASK, 1200) LOSS "steps: 0 steps: 1");
	assert_int_equal(t.m->window.count, 1);
	assert_int_equal(phase_of(&t, "read"), PHASE_UNKNOWN);
	tf_close(&t);
}

static void several_tasks(void **state)
{
	struct tf_files t;

	(void)state;
	load(&t, READER(TASK, 2900) NODE(6, "far", "MatMul", OTHER_TASK CPU,
					 HOST_RUN(0, OTHER_TASK CPU, 1000, 9)) "steps: 0 steps: 1");
	assert_int_equal(t.m->window.count, 1);
	assert_int_equal(phase_of(&t, "read"), PHASE_UNKNOWN);
	tf_close(&t);
}

/* tfprof itself gets nothing that it does not know. */
static void as_tfprof(void **state)
{
	struct tf_files t;

	(void)state;
	tf_open(&t);
	t.options.strict_proto = true;
	assert_int_equal(tf_load(&t, "profile", &tf_profile, READER(TASK, 2900) "steps: 0"), OW_OK);
	tf_freeze(&t);
	assert_int_equal(t.m->window.count, 1);
	assert_null(t.m->event.phase);
	tf_close(&t);
}

/* The events of run metadata get theirs when they are made. */
static void run_metadata(void **state)
{
	struct tf_files t;
	uint32_t found[PHASE_COUNT] = { 0 };

	(void)state;
	tf_open(&t);
	assert_int_equal(tf_load(&t, "graphdef", &tf_graph_def,
				 "node { name: 'a' op: 'DecodeJpeg' device: '/cpu:0' } node { "
				 "name: 'b' op: 'MatMul' "
				 "input: 'a' } node { name: 'c' op: 'MatMul' input: 'b' }"),
			 OW_OK);
	assert_int_equal(
		tf_load(&t, "runmeta", &tf_run_metadata,
			"step_stats { dev_stats { device: '" TASK "/device:CPU:0'"
			" node_stats { node_name: 'a' timeline_label: 'a = DecodeJpeg()' "
			"all_start_micros: 10 op_end_rel_micros: 5 all_end_rel_micros: 5 } }"
			" dev_stats { device: '" TASK "/device:GPU:0'"
			" node_stats { node_name: 'b' timeline_label: 'b = MatMul(a)' "
			"all_start_micros: 20 op_end_rel_micros: 3000 all_end_rel_micros: 3000 }"
			" node_stats { node_name: 'c' timeline_label: 'c = MatMul(b)' "
			"all_start_micros: 3050 op_end_rel_micros: 2 all_end_rel_micros: 2 } }"
			" dev_stats { device: '/device:GPU:0/stream:all'"
			" node_stats { node_name: 'b:MatMul' all_start_micros: 3030 "
			"op_end_rel_micros: 4 all_end_rel_micros: 4 }"
			" node_stats { node_name: 'edge_1_a:MEMCPYHtoD' all_start_micros: 3040 "
			"op_end_rel_micros: 4 all_end_rel_micros: 4 } }"
			" dev_stats { device: '/device:GPU:0/memcpy'"
			" node_stats { node_name: 'edge_1_a:MEMCPYHtoD' all_start_micros: 3040 "
			"op_end_rel_micros: 4 all_end_rel_micros: 4 } } }"),
		OW_OK);
	tf_freeze(&t);
	assert_int_equal(model_require_rows(t.m, TABLES_ALL, NULL), OW_OK);
	for (uint32_t i = 1; i < t.m->event.count; i++)
		found[COLUMN_GET(t.m->event.phase, i)]++;
	assert_int_equal(found[PHASE_INPUT], 1);
	assert_int_equal(found[PHASE_INITIALISATION], 1); /* 3 ms where the other takes 2 us */
	assert_int_equal(found[PHASE_LAUNCH], 1);
	assert_int_equal(found[PHASE_HOST_TO_DEVICE], 1);
	tf_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_of_a_step),      cmocka_unit_test(without_streams),
		cmocka_unit_test(steps_that_overlap), cmocka_unit_test(several_tasks),
		cmocka_unit_test(as_tfprof),	      cmocka_unit_test(run_metadata),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
