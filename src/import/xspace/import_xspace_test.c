/* import_xspace_test.c: XSpace messages made for the purpose: what planes, lines and events become. */
#include "support/tf_files.h"
#include "support/xspace_writer.h"

/* A host with a thread of ops and frames, a GPU with a stream and a line that restates it. */
static void write_gpu_run(struct xw *w)
{
	xw_begin_plane(w, 0, "/host:CPU");
	xw_begin_line(w, 77, "python", 1000);
	for (int step = 0; step < 2; step++) {
		int64_t at = step * 1000000;

		xw_begin_event(w, "train", at, 900000);
		xw_number(w, "step_num", 10 + step);
		xw_number(w, "group_id", step);
		xw_text(w, "step_name", step ? "train 11" : "train 10");
		xw_end_event(w);
		xw_event(w, "$train.py:12 run", at + 1000, 800000);
		xw_event(w, "model/dense/MatMul:MatMul|MatMul", at + 2000, 300500);
		xw_begin_event(w, "cudaLaunchKernel", at + 3000, 10000);
		xw_number(w, "correlation_id", 5 + step);
		xw_end_event(w);
		xw_event(w, "Iterator::Prefetch::Map|Iterator::Map", at + 400000, 100000);
	}
	xw_end_line(w);
	xw_end_plane(w);
	xw_begin_plane(w, 1, "/device:GPU:0");
	xw_plane_number(w, "core_count", 304);
	xw_begin_line(w, 14, "Stream #14(Kernel)", 1000);
	for (int step = 0; step < 2; step++) {
		xw_begin_event(w, "gemm_kernel", step * 1000000 + 20000, 500000);
		xw_number(w, "correlation_id", 5 + step);
		xw_text(w, "tf_op", "model/dense/MatMul:MatMul");
		xw_end_event(w);
		xw_begin_event(w, "MemcpyH2D", step * 1000000 + 530000, 1000);
		xw_text(w, "memcpy_details",
			"kind_src:pageable kind_dst:device size:4096 dest:0 async:1");
		xw_end_event(w);
	}
	xw_end_line(w);
	xw_begin_line(w, -559038734, "TensorFlow Ops", 1000);
	xw_event(w, "MatMul", 20000, 500000);
	xw_end_line(w);
	xw_end_plane(w);
}

static void load_written(struct tf_files *t, struct xw *w)
{
	assert_int_equal(tf_load_bytes(t, NULL, &w->out), OW_OK);
	tf_freeze(t);
	buf_init(&w->out, w->mem);
}

static uint32_t find_track(const struct tf_files *t, const char *name, enum track_kind kind)
{
	for (uint32_t i = 1; i < t->m->track.count; i++)
		if (strcmp(tf_str(t, t->m->track.name[i]), name) == 0 &&
		    t->m->track.kind[i] == kind)
			return i;
	return 0;
}

/* The n-th event of an op, from 0. */
static uint32_t find_event(const struct tf_files *t, const char *op, uint32_t n)
{
	for (uint32_t i = 1; i < t->m->event.count; i++)
		if (t->m->event.op[i].v == tf_op(t, op) && !n--)
			return i;
	return 0;
}

static void planes_become_tracks_and_ops(void **state)
{
	struct tf_files t;
	struct xw w;
	uint32_t matmul, e;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	write_gpu_run(&w);
	load_written(&t, &w);
	assert_string_equal(tf_str(&t, t.m->source.format[1]), "xspace");
	assert_int_not_equal(find_track(&t, "python", TRACK_HOST), 0);
	assert_int_not_equal(find_track(&t, "python", TRACK_FRAMES), 0);
	assert_int_not_equal(find_track(&t, "Stream #14(Kernel)", TRACK_STREAM), 0);
	assert_int_not_equal(find_track(&t, "TensorFlow Ops", TRACK_DERIVED), 0);
	matmul = tf_op(&t, "model/dense/MatMul");
	assert_int_not_equal(matmul, 0);
	assert_string_equal(tf_str(&t, t.m->op.type[matmul]), "MatMul");
	assert_true(t.m->op.flags[matmul] & OP_FRAMEWORK);
	assert_int_equal(t.m->op_step.accelerator_ns[tf_row(&t, "model/dense/MatMul", 10)], 500);
	assert_string_equal(tf_str(&t, t.m->op.type[tf_op(&t, "Iterator/Prefetch/Map")]),
			    "Iterator::Map");
	assert_int_equal(tf_op(&t, "$train.py:12 run"), 0);
	e = find_event(&t, "MemcpyH2D", 0);
	assert_int_equal(t.m->event.bytes[e], 4096);
	assert_int_equal(t.m->event.phase[e], PHASE_HOST_TO_DEVICE);
	assert_int_equal(tf_fact(&t, "events"), 15);
	xw_release(&w);
	tf_close(&t);
}

static void steps_are_those_of_the_best_marker(void **state)
{
	struct tf_files t;
	struct xw w;
	uint32_t kernel, launch;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	write_gpu_run(&w);
	load_written(&t, &w);
	assert_int_equal(t.m->step.count, 3);
	assert_int_equal(t.m->step.number[1], 10);
	assert_string_equal(tf_str(&t, t.m->step.name[1]), "train 10");
	assert_int_not_equal(tf_op(&t, "train"), 0);
	assert_int_equal(tf_op(&t, "train 10"), 0);
	launch = find_event(&t, "cudaLaunchKernel", 1);
	assert_int_equal(t.m->link.count, 3);
	kernel = t.m->link.src[1].v == launch ? t.m->link.dst[1].v : t.m->link.dst[2].v;
	assert_int_equal(t.m->event.step[kernel].v, 2);
	assert_int_equal(t.m->event.phase[launch], PHASE_LAUNCH);
	xw_release(&w);
	tf_close(&t);
}

static void picoseconds_are_kept(void **state)
{
	struct tf_files t;
	struct xw w;
	uint32_t outer, inner;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	xw_begin_plane(&w, 0, "/device:TPU:0");
	xw_begin_line(&w, 3, "XLA Ops", 0);
	xw_event(&w, "outer", 1999, 3002);
	xw_event(&w, "inner", 2500, 2501);
	xw_end_line(&w);
	xw_end_plane(&w);
	load_written(&t, &w);
	outer = find_event(&t, "outer", 0);
	inner = find_event(&t, "inner", 0);
	assert_int_equal(t.m->event.ts_ns[outer], 1);
	assert_int_equal(t.m->event.ts_rest[outer], 999);
	assert_int_equal(t.m->event.dur_ns[outer], 4);
	assert_int_equal(t.m->event.end_rest[outer], 1);
	/* whose end is the same picosecond */
	assert_int_equal(t.m->event.ts_ns[inner] + t.m->event.dur_ns[inner], 5);
	assert_int_equal(t.m->event.end_rest[inner], 1);
	xw_release(&w);
	tf_close(&t);
}

static void instructions_have_category_and_cost(void **state)
{
	static const char *const name = "%fusion.1 = f32[8] fusion(f32[8] %p)|fusion.1";
	struct tf_files t;
	struct xw w;
	uint32_t op;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	xw_begin_plane(&w, 2, "/device:TPU:0");
	xw_begin_line(&w, 2, "XLA Modules", 0);
	xw_event(&w, "jit_f(99)", 0, 9000);
	xw_end_line(&w);
	xw_begin_line(&w, 3, "XLA Ops", 0);
	xw_entry_text(&w, name, "hlo_category", "convolution fusion");
	xw_entry_number(&w, name, "program_id", 99);
	xw_entry_number(&w, name, "flops", 1000);
	xw_entry_number(&w, name, "model_flops", 2000);
	xw_entry_number(&w, name, "bytes_accessed", 640);
	xw_entry_text(&w, name, "tf_op", "jit(f)/dot_general:");
	xw_entry_text(&w, name, "source", "a/train.py:38");
	xw_event(&w, name, 1000, 5000);
	xw_end_line(&w);
	xw_end_plane(&w);
	load_written(&t, &w);
	op = tf_op(&t, "jit(f)/dot_general/fusion.1");
	assert_int_not_equal(op, 0);
	assert_string_equal(tf_str(&t, t.m->op.type[op]), "convolution fusion");
	assert_int_equal(t.m->op.float_ops[op], 2000);
	assert_int_equal(t.m->op.accessed[op], 640);
	assert_int_equal(t.m->frame.line[t.m->stack.frame[t.m->op.stack[op].v].v], 38);
	assert_int_equal(t.m->step.count, 2); /* the run of the program */
	xw_release(&w);
	tf_close(&t);
}

static void lines_of_one_id_are_one_track_in_order(void **state)
{
	struct tf_files t;
	struct xw w;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	xw_begin_plane(&w, 0, "/host:CPU");
	xw_begin_line(&w, 5, "worker", 0);
	xw_event(&w, "b", 50000, 1000);
	xw_event(&w, "a", 10000, 1000);
	xw_end_line(&w);
	xw_begin_line(&w, 6, "other", 0);
	xw_event(&w, "a", 10000, 1000);
	xw_end_line(&w);
	xw_begin_line(&w, 5, "worker", 20);
	xw_event(&w, "c", 10000, 1000);
	xw_end_line(&w);
	xw_end_plane(&w);
	load_written(&t, &w);
	assert_int_equal(t.m->track.count, 3);
	assert_int_equal(t.m->event.count, 5);
	assert_int_equal(t.m->event.ts_ns[1], 10);
	assert_int_equal(t.m->event.ts_ns[2], 30);
	assert_int_equal(t.m->event.ts_ns[3], 50);
	assert_int_equal(t.m->event.op[2].v, tf_op(&t, "c"));
	xw_release(&w);
	tf_close(&t);
}

static void events_that_are_only_counted_are_sums(void **state)
{
	struct tf_files t;
	struct xw w;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	xw_begin_plane(&w, 0, "/host:CPU");
	xw_begin_line(&w, 5, "worker", 0);
	xw_event(&w, "a", 0, 1000);
	buf_clear(&w.event);
	pb_put_varint(&w.event, 1, xw_id(w.events, &w.event_count, "often"));
	pb_put_int(&w.event, 3, 7000000);
	pb_put_varint(&w.event, 5, 70);
	xw_end_event(&w);
	xw_end_line(&w);
	xw_end_plane(&w);
	load_written(&t, &w);
	assert_int_equal(t.m->event.count, 2);
	assert_int_equal(t.m->op.step_count[tf_op(&t, "often")], 1);
	assert_int_equal(t.m->op_step.run_count[t.m->op.step_first[tf_op(&t, "often")]], 70);
	assert_int_equal(t.m->op_step.cpu_ns[t.m->op.step_first[tf_op(&t, "often")]], 7000);
	xw_release(&w);
	tf_close(&t);
}

static void memory_event(struct xw *w, const char *name, int64_t at, int64_t in_use, int64_t size)
{
	xw_begin_event(w, name, at, 0);
	xw_text(w, "allocator_name", "GPU_1_bfc");
	xw_number(w, "bytes_reserved", 100);
	xw_number(w, "bytes_allocated", in_use);
	xw_number(w, "bytes_available", 9000);
	xw_number(w, "addr", 77);
	if (size) {
		xw_number(w, "allocation_bytes", size);
		xw_text(w, "tf_op", "a/MatMul:MatMul");
	}
	xw_end_event(w);
}

static void memory_becomes_rows_of_heaps(void **state)
{
	const struct heap_table *h;
	struct tf_files t;
	struct xw w;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	xw_begin_plane(&w, 0, "/host:CPU");
	xw_begin_line(&w, 5, "worker", 0);
	xw_event(&w, "a/MatMul:MatMul|MatMul", 0, 9000000);
	memory_event(&w, "MemoryAllocation", 1000000, 512, 512);
	memory_event(&w, "MemoryDeallocation", 2000000, 0, 0);
	xw_end_line(&w);
	xw_end_plane(&w);
	load_written(&t, &w);
	h = &t.m->heap;
	assert_int_equal(h->count, 3);
	assert_int_equal(h->ts_ns[1], 1000);
	assert_int_equal(h->size[1], 512);
	assert_int_equal(h->allocated[1], 612);
	assert_int_equal(h->available[1], 9000);
	assert_string_equal(tf_str(&t, t.m->device.name[h->device[1].v]), "/device:GPU:1");
	assert_int_equal(h->op[1].v, tf_op(&t, "a/MatMul"));
	/* what was released there is what was allocated there */
	assert_int_equal(h->kind[2], HEAP_FREE);
	assert_int_equal(h->size[2], -512);
	assert_int_equal(h->op[2].v, h->op[1].v);
	assert_int_equal(t.m->event.count, 2);
	xw_release(&w);
	tf_close(&t);
}

static void odd_files_are_read_as_far_as_possible(void **state)
{
	struct tf_files t;
	struct xw w;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	xw_begin_plane(&w, 0, "/host:CPU");
	xw_begin_line(&w, INT64_MIN, "\xff\xfe", INT64_MAX);
	xw_event(&w, "bad \xc3", INT64_MAX, INT64_MAX);
	xw_event(&w, "back", -5000, -7);
	buf_clear(&w.event);
	pb_put_varint(&w.event, 1, UINT64_MAX); /* no such entry */
	xw_end_event(&w);
	pb_put_str(&w.line, 4, STR("\x08")); /* damaged */
	xw_end_line(&w);
	xw_end_plane(&w);
	load_written(&t, &w);
	assert_int_equal(t.m->event.count, 4);
	assert_int_equal(tf_noted(&t, "unreadable events"), 1);
	assert_int_equal(tf_noted(&t, "have no name in the file"), 1);
	assert_true(tf_noted(&t, "times out of range") > 0);
	assert_true(tf_noted(&t, "not UTF-8") > 0);
	assert_int_not_equal(tf_op(&t, "event 18446744073709551615"), 0);
	xw_release(&w);
	tf_close(&t);
}

static void text_is_refused_by_name(void **state)
{
	/* the second has lost its first length, too, and is known by the name of its plane */
	static const struct {
		const char *importer, *bytes;
	} files[] = {
		{ "xspace", "\x0a\x10\x12\x09/host:CPU\x1a\xef\xbf\xbd\xef\xbf\xbd" },
		{ NULL,
		  "\x0a\xef\xbf\xbd\xef\xbf\xbd\x06\x08\x02\x12\x0d/device:TPU:0\x1a\xef\xbf\xbd" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
		struct tf_files t;
		struct buf copy;

		tf_open(&t);
		buf_init(&copy, &t.mem);
		buf_puts(&copy, files[i].bytes);
		assert_int_not_equal(tf_load_bytes(&t, files[i].importer, &copy), OW_OK);
		assert_non_null(strstr(t.err.text, "as if it were text"));
		tf_close(&t);
	}
}

/* Groups are not in the file: roots of the highest level are the steps, but those inside another, or of tf.data. */
static void roots_are_steps(void **state)
{
	struct tf_files t;
	struct xw w;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	xw_begin_plane(&w, 0, "/host:CPU");
	xw_begin_line(&w, 7, "main", 1000);
	for (int i = 0; i < 3; i++) {
		xw_begin_event(&w, "FunctionRun", i * 1000000, 800000);
		xw_number(&w, "_r", 1);
		xw_number(&w, "id", 50 + i);
		xw_end_event(&w);
		xw_begin_event(&w, "FunctionRun", i * 1000000 + 1000, 300000);
		xw_number(&w, "_r", 1);
		xw_number(&w, "id", 60 + i);
		xw_end_event(&w);
		xw_event(&w, "a/MatMul:MatMul", i * 1000000 + 2000, 5000);
	}
	xw_end_line(&w);
	xw_begin_line(&w, 8, "tf_data", 1000);
	xw_begin_event(&w, "InstantiatedCapturedFunction::Run", 100000, 1500000);
	xw_number(&w, "id", 77);
	xw_end_event(&w);
	xw_begin_event(&w, "FunctionRun", 200000, 1200000);
	xw_number(&w, "_r", 1);
	xw_number(&w, "id", 77);
	xw_end_event(&w);
	xw_end_line(&w);
	xw_end_plane(&w);
	load_written(&t, &w);
	assert_int_equal(t.m->window.count, 4);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t e = find_event(&t, "a/MatMul", i);

		assert_int_equal(t.m->step.number[t.m->event.step[e].v], i);
		assert_int_equal(t.m->window.start_ns[1 + i], 1000 + (int64_t)i * 1000);
		assert_int_equal(t.m->window.end_ns[1 + i], 1800 + (int64_t)i * 1000);
	}
	xw_release(&w);
	tf_close(&t);
}

/* Something that a root starts on another thread runs when the next step has begun, and hands on in turn. */
static void consumers_are_of_the_step_of_their_producer(void **state)
{
	static const struct {
		const char *name;
		uint32_t nth;
		int step; /* number, -1 = none */
	} want[] = {
		{ "late", 0, 0 },   { "inside", 0, 0 },	   { "third", 0, 0 },	 { "own", 0, 1 },
		{ "before", 0, 0 }, { "after all", 0, 1 }, { "nobody's", 0, 1 },
	};
	struct tf_files t;
	struct xw w;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	xw_begin_plane(&w, 0, "/host:CPU");
	xw_begin_line(&w, 7, "main", 0);
	for (int i = 0; i < 2; i++) {
		xw_begin_event(&w, "TraceContext", i * 1000000, 900000);
		xw_number(&w, "_r", 1);
		xw_end_event(&w);
		xw_begin_event(&w, "hand over", i * 1000000 + 1000, 2000);
		xw_number(&w, "_pt", 15);
		xw_number(&w, "_p", 40 + i);
		xw_end_event(&w);
	}
	xw_end_line(&w);
	xw_begin_line(&w, 8, "pool", 0);
	xw_event(&w, "before", 500000, 1000);
	xw_begin_event(&w, "late", 1100000, 50000);
	xw_number(&w, "_ct", 15);
	xw_number(&w, "_c", 40);
	xw_end_event(&w);
	xw_begin_event(&w, "inside", 1101000, 1000);
	xw_number(&w, "_pt", 2);
	xw_number(&w, "_p", 9);
	xw_end_event(&w);
	xw_event(&w, "nobody's", 1200000, 1000);
	xw_begin_event(&w, "after all", 2500000, 1000);
	xw_number(&w, "_ct", 15);
	xw_number(&w, "_c", 41);
	xw_end_event(&w);
	xw_end_line(&w);
	xw_begin_line(&w, 9, "third thread", 0);
	xw_begin_event(&w, "third", 1300000, 1000);
	xw_number(&w, "_ct", 2);
	xw_number(&w, "_c", 9);
	xw_end_event(&w);
	xw_event(&w, "own", 1400000, 1000);
	xw_end_line(&w);
	xw_end_plane(&w);
	load_written(&t, &w);
	for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
		step_id step = t.m->event.step[find_event(&t, want[i].name, want[i].nth)];

		assert_int_equal(step.v ? t.m->step.number[step.v] : -1, want[i].step);
	}
	xw_release(&w);
	tf_close(&t);
}

static void add_root(struct xw *w, const char *name, int64_t level, int64_t id, int64_t iteration,
		     int64_t start)
{
	xw_begin_event(w, name, start, 400000);
	if (level)
		xw_number(w, "_r", level);
	xw_number(w, "id", id);
	if (iteration >= 0)
		xw_number(w, "iter_num", iteration);
	xw_end_event(w);
}

/* Windows of the steps as "number start end" in ns. */
static void expect_steps(struct xw *w, const char *want)
{
	struct tf_files t;
	char text[512] = "";
	size_t len = 0;

	tf_open(&t);
	load_written(&t, w);
	for (uint32_t i = 1; i < t.m->window.count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%d %d %d\n",
					(int)t.m->step.number[t.m->window.step[i].v],
					(int)t.m->window.start_ns[i], (int)t.m->window.end_ns[i]);
	assert_string_equal(text, want);
	tf_close(&t);
}

static void begin_host(struct xw *w, struct mem *mem)
{
	xw_init(w, mem);
	xw_begin_plane(w, 0, "/host:CPU");
	xw_begin_line(w, 7, "main", 0);
}

static void end_host(struct xw *w)
{
	xw_end_line(w);
	xw_end_plane(w);
}

/* The executor runs twice for each iteration, and once for the call of tf.data. */
static void iterations_are_steps(void **state)
{
	struct mem mem;
	struct xw w;

	(void)state;
	mem_init(&mem, 0);
	begin_host(&w, &mem);
	add_root(&w, "FunctionRun", 1, 5, -1, 0);
	for (int i = 0; i < 6; i++)
		add_root(&w, "ExecutorState::Process", 0, 5, i / 2, 1000000 + i * 1000000);
	xw_begin_event(&w, "InstantiatedCapturedFunction::Run", 8000000, 1000);
	xw_number(&w, "id", 9);
	xw_end_event(&w);
	add_root(&w, "ExecutorState::Process", 0, 9, 3, 8000000);
	add_root(&w, "ExecutorState::Process", 0, 9, 4, 9000000);
	end_host(&w);
	expect_steps(&w, "0 1000 2400\n1 3000 4400\n2 5000 6400\n");
	xw_release(&w);
	/* only the first iteration is no loop, and loops of the newer runtime say nothing */
	for (int newer = 0; newer < 2; newer++) {
		begin_host(&w, &mem);
		for (int i = 0; i < 3; i++) {
			add_root(&w, "FunctionRun", 1, 20 + i, -1, i * 1000000);
			add_root(&w, "ExecutorState::Process", 0, 20 + i, 0, i * 1000000);
		}
		if (newer)
			xw_event(&w, "WhileOp-StartBody", 5000000, 1000);
		end_host(&w);
		expect_steps(&w, newer ? "" : "0 0 400\n1 1000 1400\n2 2000 2400\n");
		xw_release(&w);
	}
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* One root of a high level says nothing of steps; those below it do. */
static void lower_roots_are_steps(void **state)
{
	struct mem mem;
	struct xw w;

	(void)state;
	mem_init(&mem, 0);
	begin_host(&w, &mem);
	add_root(&w, "ProcessBatch", 0, 1, -1, 0);
	for (int i = 1; i < 4; i++)
		add_root(&w, "TraceContext", 0, 2, -1, i * 1000000);
	end_host(&w);
	expect_steps(&w, "0 1000 1400\n1 2000 2400\n2 3000 3400\n");
	xw_release(&w);
}

static void counters_are_counters(void **state)
{
	struct tf_files t;
	struct xw w;

	(void)state;
	tf_open(&t);
	xw_init(&w, &t.mem);
	for (int plane = 0; plane < 2; plane++) {
		xw_begin_plane(&w, plane, plane ? "#Chip TPU:0" : "/device:TPU:0");
		xw_begin_line(&w, 3, plane ? "HBM" : "_counters_", 1000);
		for (int i = 0; i < 2; i++) {
			xw_begin_event(&w, plane ? "hbm_bw" : "power", 5000 + i * 1000, 0);
			xw_number(&w, "performance_counter_id", 9);
			xw_number(&w, "counter_value", 70 + i);
			xw_end_event(&w);
		}
		xw_end_line(&w);
		xw_end_plane(&w);
	}
	load_written(&t, &w);
	assert_int_equal(t.m->event.count, 1);
	assert_int_equal(t.m->counter.count, 5);
	assert_string_equal(tf_str(&t, t.m->counter.name[2]), "power");
	assert_string_equal(tf_str(&t, t.m->counter.series[2]), "counter_value");
	assert_int_equal(t.m->counter.ts_ns[2], 1006);
	assert_true(t.m->counter.value[2] == 71);
	assert_string_equal(tf_str(&t, t.m->counter.name[3]), "hbm_bw");
	assert_int_equal(tf_fact(&t, "events"), 4);
	xw_release(&w);
	tf_close(&t);
}

/* Many events of a few forms, numbers of all lengths among them; `odd` ones are not of the form that is usual. */
static void write_forms(struct xw *w, bool odd)
{
	static const char *const ops[] = { "a/MatMul:MatMul|MatMul", "a/Relu:Relu", "plain" };

	for (int plane = 0; plane < 2; plane++) {
		xw_begin_plane(w, plane, plane ? "/device:GPU:0" : "/host:CPU");
		xw_begin_line(w, 7, plane ? "Stream #7(Kernel)" : "thread", 1000);
		for (int i = 0; i < 4000; i++) {
			xw_begin_event(w, ops[i % 3], (int64_t)i * i * 1001,
				       i % 5 ? i * 700 + 1 : 0);
			if (i % 4)
				xw_number(w, "other", (int64_t)1 << i % 60);
			if (i % 3 != 1)
				xw_number(w, "correlation_id", i + 1);
			if (i % 1000 == 0)
				xw_number(w, "step_num", i / 1000);
			if (i % 7 == 0)
				xw_number(w, plane ? "_c" : "_p", i);
			if (plane && i % 2)
				xw_text(w, "tf_op", i % 4 == 1 ? "b/Add:Add" : "c/Mul:Mul");
			if (odd)
				pb_put_int(&w->event, 15, 1);
			xw_end_event(w);
		}
		xw_end_line(w);
		xw_end_plane(w);
	}
}

static void the_fast_way_gives_what_the_slow_one_gives(void **state)
{
	struct tf_files fast, slow;
	const struct event_table *a, *b;
	struct xw w;

	(void)state;
	tf_open(&fast);
	tf_open(&slow);
	xw_init(&w, &fast.mem);
	write_forms(&w, false);
	load_written(&fast, &w);
	xw_release(&w);
	xw_init(&w, &slow.mem);
	write_forms(&w, true);
	load_written(&slow, &w);
	xw_release(&w);
	assert_int_equal(model_require_nesting(fast.m, &fast.err), OW_OK);
	assert_int_equal(model_require_nesting(slow.m, &slow.err), OW_OK);
	a = &fast.m->event;
	b = &slow.m->event;
	assert_int_equal(a->count, 8001);
	assert_int_equal(a->count, b->count);
	assert_memory_equal(a->ts_ns, b->ts_ns, a->count * sizeof(*a->ts_ns));
	assert_memory_equal(a->dur_ns, b->dur_ns, a->count * sizeof(*a->dur_ns));
	assert_memory_equal(a->self_ns, b->self_ns, a->count * sizeof(*a->self_ns));
	assert_memory_equal(a->op, b->op, a->count * sizeof(*a->op));
	assert_memory_equal(a->name, b->name, a->count * sizeof(*a->name));
	assert_memory_equal(a->step, b->step, a->count * sizeof(*a->step));
	assert_memory_equal(a->track, b->track, a->count * sizeof(*a->track));
	assert_memory_equal(a->ts_rest, b->ts_rest, a->count * sizeof(*a->ts_rest));
	assert_memory_equal(a->end_rest, b->end_rest, a->count * sizeof(*a->end_rest));
	assert_memory_equal(a->correlation, b->correlation, a->count * sizeof(*a->correlation));
	assert_memory_equal(a->phase, b->phase, a->count);
	for (uint32_t i = 1; i < a->count; i++) { /* calls, kernels, and others of the same ops */
		bool host = fast.m->track.kind[a->track[i].v] == TRACK_HOST;

		assert_int_equal(a->phase[i], !host		  ? PHASE_COMPUTE
					      : a->correlation[i] ? PHASE_LAUNCH
								  : PHASE_HOST);
	}
	assert_int_equal(fast.m->link.count, slow.m->link.count);
	assert_true(fast.m->link.count > 2000);
	assert_int_equal(fast.m->op_step.count, slow.m->op_step.count);
	assert_int_equal(tf_fact(&fast, "events"), 8000);
	assert_int_equal(tf_fact(&slow, "events"), 8000);
	tf_close(&fast);
	tf_close(&slow);
}

/* Stats are told again from the file, those of the event before those of its entry; also of lines in no order. */
static void stats_are_arguments(void **state)
{
	struct tf_files t;
	struct arena arena;
	const struct args_reader *reader;
	struct str texts[3] = { 0 };
	struct xw w;

	(void)state;
	tf_open(&t);
	arena_init(&arena, &t.mem);
	xw_init(&w, &t.mem);
	xw_begin_plane(&w, 0, "/host:CPU");
	xw_begin_line(&w, 7, "main", 1000);
	xw_begin_event(&w, "late", 900000, 1000);
	xw_number(&w, "iter_num", 4);
	xw_end_event(&w);
	xw_event(&w, "$t.py:1 f", 800000, 500000); /* on a track of its own */
	xw_begin_event(&w, "early|e", 5000, 1000);
	xw_number(&w, "iter_num", -3);
	xw_text(&w, "shape", "(f32[1], \"x\")");
	xw_end_event(&w);
	xw_event(&w, "bare", 20000, 1000);
	xw_end_line(&w);
	xw_end_plane(&w);
	load_written(&t, &w);
	reader = model_args_reader(t.m, 1);
	assert_non_null(reader);
	assert_true(model_has_args(t.m));
	assert_int_equal(
		reader->read(reader->state, t.m,
			     (uint32_t[]){ find_event(&t, "late", 0), find_event(&t, "bare", 0),
					   find_event(&t, "e", 0) },
			     3, texts, NULL, &arena, &t.err),
		OW_OK);
	assert_string_equal(texts[0].ptr, "{\"iter_num\": 4}");
	assert_null(texts[1].ptr);
	assert_string_equal(
		texts[2].ptr,
		"{\"iter_num\": -3, \"shape\": \"(f32[1], \\\"x\\\")\", \"long_name\": \"early\"}");
	arena_release(&arena);
	xw_release(&w);
	tf_close(&t);
}

static void every_ending(void **state)
{
	struct mem mem;
	struct xw w;

	(void)state;
	mem_init(&mem, 0);
	xw_init(&w, &mem);
	write_gpu_run(&w);
	tf_every_truncation("xspace", buf_str(&w.out));
	tf_every_failure("xspace", buf_str(&w.out));
	xw_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planes_become_tracks_and_ops),
		cmocka_unit_test(steps_are_those_of_the_best_marker),
		cmocka_unit_test(picoseconds_are_kept),
		cmocka_unit_test(instructions_have_category_and_cost),
		cmocka_unit_test(lines_of_one_id_are_one_track_in_order),
		cmocka_unit_test(events_that_are_only_counted_are_sums),
		cmocka_unit_test(memory_becomes_rows_of_heaps),
		cmocka_unit_test(odd_files_are_read_as_far_as_possible),
		cmocka_unit_test(text_is_refused_by_name),
		cmocka_unit_test(roots_are_steps),
		cmocka_unit_test(consumers_are_of_the_step_of_their_producer),
		cmocka_unit_test(iterations_are_steps),
		cmocka_unit_test(lower_roots_are_steps),
		cmocka_unit_test(counters_are_counters),
		cmocka_unit_test(stats_are_arguments),
		cmocka_unit_test(the_fast_way_gives_what_the_slow_one_gives),
		cmocka_unit_test(every_ending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
