/*
 * tf_rows_test.c: events and tensors of run metadata that are made when somebody asks: not before, once, the same rows
 * as when they are made at once, from any thread; and what becomes of them when memory is short or the file is gone.
 */
#include "support/tf_files.h"

#include "import/tensorflow/run/tf_rows.h"

#include <pthread.h>
#include <unistd.h>

#define CPU "/job:localhost/replica:0/task:0/device:CPU:0"
#define RECORDS 40

/* A run with records of ops n0, n1, … on an executor and on its streams, and one that belongs to no op. */
static struct buf run_bytes(struct tf_files *t, int step)
{
	struct buf text, bytes;

	buf_init(&text, &t->mem);
	buf_puts(&text, "step_stats { dev_stats { device: '" CPU "'");
	for (int i = 0; i < RECORDS; i++)
		buf_printf(&text,
			   " node_stats { node_name: 'n%d' all_start_micros: %d "
			   "op_end_rel_micros: %d output { tensor_description { dtype: DT_FLOAT "
			   "shape { dim { size: %d } } allocation_description { "
			   "requested_bytes: %d allocator_name: 'cpu' ptr: %d } } } }",
			   i, 1000 * step + i + 1, i % 7, i % 5 + 1, i, 100 + i);
	buf_puts(&text, " node_stats { node_name: 'aMEMCPYb' all_start_micros: 5 }");
	buf_puts(&text, " } dev_stats { device: '/device:GPU:0/stream:all'");
	for (int i = 0; i < RECORDS; i += 2)
		buf_printf(&text,
			   " node_stats { node_name: 'n%d:X' all_start_micros: %d "
			   "op_end_rel_micros: 3 }",
			   i, 1000 * step + i);
	buf_puts(&text, " } }");
	bytes = tf_binary(&t->mem, &tf_run_metadata, buf_cstr(&text));
	buf_release(&text);
	return bytes;
}

static void load_runs(struct tf_files *t, bool forget)
{
	tf_open(t);
	t->options.forget = forget;
	for (int step = 0; step < 3; step++) {
		struct buf bytes = run_bytes(t, step);

		assert_int_equal(tf_load_bytes(t, "runmeta", &bytes), OW_OK);
		if (forget)
			import_forget(&t->b);
	}
	tf_freeze(t);
}

/* 3 runs, each of the records above; the first stream's record of the first run has no start time. */
#define EVENTS (3 * (RECORDS + 1 + RECORDS / 2) - 1)
#define TENSORS (3 * RECORDS)

static void compare(const struct tf_files *a, const struct tf_files *b)
{
	const struct model *x = a->m, *y = b->m;

	assert_int_equal(x->event.count, y->event.count);
	for (uint32_t i = 1; i < x->event.count; i++) {
		assert_int_equal(x->event.ts_ns[i], y->event.ts_ns[i]);
		assert_int_equal(x->event.dur_ns[i], y->event.dur_ns[i]);
		assert_int_equal(x->event.op[i].v, y->event.op[i].v);
		assert_int_equal(x->event.step[i].v, y->event.step[i].v);
		assert_int_equal(x->event.track[i].v, y->event.track[i].v);
		assert_int_equal(x->event.name[i].v, y->event.name[i].v);
		assert_int_equal(x->event.args_offset[i], y->event.args_offset[i]);
		assert_int_equal(x->event.args_size[i], y->event.args_size[i]);
	}
	assert_int_equal(x->tensor.count, y->tensor.count);
	for (uint32_t i = 1; i < x->tensor.count; i++) {
		assert_int_equal(x->tensor.op[i].v, y->tensor.op[i].v);
		assert_int_equal(x->tensor.step[i].v, y->tensor.step[i].v);
		assert_int_equal(x->tensor.shape[i].v, y->tensor.shape[i].v);
		assert_int_equal(x->tensor.requested[i], y->tensor.requested[i]);
		assert_int_equal(x->tensor.allocator[i].v, y->tensor.allocator[i].v);
		assert_int_equal(x->tensor.address[i], y->tensor.address[i]);
	}
	for (uint32_t i = 1; i < x->step.count; i++) {
		assert_int_equal(x->step.start_ns[i], y->step.start_ns[i]);
		assert_int_equal(x->step.end_ns[i], y->step.end_ns[i]);
	}
}

static void made_when_asked_for(void **state)
{
	struct tf_files later, at_once;
	uint32_t strings, shapes;

	(void)state;
	load_runs(&later, false);
	load_runs(&at_once, true); /* the inputs are gone: nothing could be made later */
	assert_int_equal(later.m->event.count, 1);
	assert_int_equal(later.m->tensor.count, 1);
	assert_int_equal(later.m->step.start_ns[1], 1000);
	assert_int_equal(at_once.m->event.count - 1, EVENTS);
	assert_int_equal(at_once.m->tensor.count - 1, TENSORS);
	strings = later.m->strings.count;
	shapes = later.m->shape.count;

	assert_int_equal(model_require_rows(later.m, TABLES_ALL & ~TF_ROWS_TABLES, &later.err),
			 OW_OK);
	assert_int_equal(later.m->event.count, 1);
	assert_int_equal(model_require_rows(later.m, TABLE_BIT(tensor), &later.err), OW_OK);
	compare(&later, &at_once);
	assert_int_equal(model_require_rows(later.m, TABLES_ALL, &later.err), OW_OK); /* again */
	compare(&later, &at_once);
	assert_int_equal(later.m->strings.count, strings); /* others may be reading them */
	assert_int_equal(later.m->shape.count, shapes);
	tf_close(&later);
	tf_close(&at_once);
}

/* Rows of other importers come after those of the inputs before them. */
static void made_before_others_add_some(void **state)
{
	struct tf_files t;
	struct buf bytes;

	(void)state;
	tf_open(&t);
	bytes = run_bytes(&t, 0);
	assert_int_equal(tf_load_bytes(&t, "runmeta", &bytes), OW_OK);
	assert_int_equal(tf_load_graph(&t, "node { name: 'g' op: 'T' }"), OW_OK);
	assert_int_equal(t.m->event.count, 1);
	buf_init(&bytes, &t.mem);
	buf_puts(&bytes,
		 "[{\"name\":\"slice\",\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1}]");
	assert_int_equal(tf_load_bytes(&t, "trace", &bytes), OW_OK);
	assert_int_equal(t.m->event.count - 1, EVENTS / 3 + 1);
	bytes = run_bytes(&t, 1); /* these follow those of the trace */
	assert_int_equal(tf_load_bytes(&t, "runmeta", &bytes), OW_OK);
	assert_int_equal(t.m->event.count - 1, EVENTS / 3 + 1 + EVENTS / 3 + 1);
	tf_close(&t);
}

static void memory_is_short(void **state)
{
	struct tf_files t, good;
	bool done = false;

	(void)state;
	load_runs(&good, true);
	for (uint64_t n = 1; !done; n++) {
		assert_true(n < 100000);
		load_runs(&t, false);
		mem_fail_after(n, n % 2);
		done = model_require_rows(t.m, TABLE_BIT(event), &t.err) == OW_OK;
		mem_fail_after(0, false);
		if (!done) {
			assert_int_equal(t.err.status, OW_E_NO_MEMORY);
			assert_int_equal(t.m->event.count, 1);
			assert_int_equal(t.m->tensor.count, 1);
			assert_int_equal(model_require_rows(t.m, TABLE_BIT(event), &t.err), OW_OK);
		}
		compare(&t, &good);
		tf_close(&t);
	}
	tf_close(&good);
}

/* A run in a file, loaded and frozen. Returns a descriptor of the file. */
static int load_file(struct tf_files *t)
{
	FILE *file = tmpfile();
	int fd = file ? dup(fileno(file)) : -1;
	struct buf bytes;
	struct input in;

	assert_true(fd >= 0);
	tf_open(t);
	bytes = run_bytes(t, 1);
	assert_int_equal(fwrite(bytes.ptr, 1, bytes.len, file), bytes.len);
	assert_int_equal(fflush(file), 0);
	buf_release(&bytes);
	assert_int_equal(input_adopt_fd(&in, &t->mem, "run", dup(fd), &t->err), OW_OK);
	fclose(file);
	assert_int_equal(import_input(&t->b, &in, importer_find(STR("runmeta")), &t->options,
				      &t->last, &t->err),
			 OW_OK);
	tf_freeze(t);
	return fd;
}

static void the_file_shrinks(void **state)
{
	struct tf_files t;
	int fd;

	(void)state;
	fd = load_file(&t);
	assert_int_equal(ftruncate(fd, 100), 0);
	close(fd);
	assert_int_equal(model_require_rows(t.m, TABLE_BIT(event), &t.err), OW_E_IO);
	assert_non_null(strstr(t.err.text, "shorter"));
	assert_int_equal(t.m->event.count, 1);
	tf_close(&t);
}

static void the_file_has_other_content(void **state)
{
	char zeros[4096] = { 0 };
	struct tf_files t;
	int fd;

	(void)state;
	fd = load_file(&t);
	assert_int_equal(pwrite(fd, zeros, 600, 60), 600); /* of the same size */
	close(fd);
	assert_int_equal(model_require_rows(t.m, TABLE_BIT(event), &t.err), OW_E_IO);
	assert_int_equal(t.m->event.count, 1);
	tf_close(&t);
}

static void *require(void *arg)
{
	struct model *m = arg;

	return model_require_rows(m, TABLE_BIT(event), NULL) == OW_OK && m->event.count > EVENTS
		       ? m
		       : NULL;
}

static void asked_for_by_many(void **state)
{
	struct tf_files t, good;
	pthread_t threads[8];
	void *result;

	(void)state;
	load_runs(&good, true);
	load_runs(&t, false);
	for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, require, t.m), 0);
	for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_non_null(result);
	}
	compare(&t, &good);
	tf_close(&t);
	tf_close(&good);
}

/* A record with damage inside has no row, neither then nor now. */
static void damaged_records(void **state)
{
	struct tf_files t;
	struct buf bytes;
	char *name;

	(void)state;
	tf_open(&t);
	bytes = run_bytes(&t, 1);
	name = memmem(bytes.ptr, bytes.len, "n7", 2);
	assert_non_null(name);
	name[-1] = 100; /* its length, which goes beyond the record */
	assert_int_equal(tf_load_bytes(&t, "runmeta", &bytes), OW_OK);
	tf_freeze(&t);
	assert_int_equal(tf_noted(&t, "damaged records"), 1);
	tf_require_rows(&t);
	assert_int_equal(t.m->event.count - 1, EVENTS / 3);
	assert_int_equal(t.m->tensor.count - 1, RECORDS - 1);
	assert_int_equal(t.m->event.op[8].v, tf_op(&t, "n8"));
	tf_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_when_asked_for),
		cmocka_unit_test(made_before_others_add_some),
		cmocka_unit_test(memory_is_short),
		cmocka_unit_test(the_file_shrinks),
		cmocka_unit_test(the_file_has_other_content),
		cmocka_unit_test(asked_for_by_many),
		cmocka_unit_test(damaged_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
