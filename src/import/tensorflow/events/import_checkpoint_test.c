/*
 * import_checkpoint_test.c: variables become tensors and mark the ops of their names; alone they are
 * ops. Damage, hostile bytes and failing allocations end in a status.
 */
#include "import/importer.h"

#include "../../tests/support/ckpt_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct mem mem;

static const float floats[6] = { 1, 2, 3, 4, 5, 6 };
static const int64_t two_by_three[2] = { 2, 3 };

/* A bundle's index with w (2x3), scalar, a partitioned variable, and a name that is not UTF-8. */
static void write_index(struct table_writer *w, bool snappy)
{
	static const struct cw_extent rows[] = { { 0, 1 }, { 0, -1 }, { 1, 1 }, { 0, -1 } };
	struct cw_bundle b;

	cw_bundle_init(&b, &mem, 2, false);
	cw_bundle_add(&b, STR("w"), 1, two_by_three, 2, 0, 4, str_make(floats, 24));
	cw_bundle_add(&b, STR("scalar"), 1, NULL, 0, 0, 4, str_make(floats, 4));
	cw_bundle_add(&b, STR("odd\xff"), 1, NULL, 0, 0, 4, str_make(floats, 4));
	cw_bundle_sliced(&b, "part", two_by_three, 2, floats, rows, 2);
	qsort(b.pairs, (size_t)b.count, sizeof(b.pairs[0]), cw_compare);
	table_writer_init(w, &mem, 100, snappy);
	for (int i = 0; i < b.count; i++)
		table_writer_add(w, buf_str(&b.pairs[i].key), buf_str(&b.pairs[i].value));
	table_writer_finish(w);
	cw_bundle_release(&b);
}

/* Into a model that has an op "w" first, when `graph`. NULL on failure. */
static struct model *load(struct str bytes, bool graph, ow_status *status, struct ow_error *err)
{
	struct model *m = model_new(&mem, err);
	struct import_options options = { .step = INT64_MIN };
	struct import_ctx ctx = { .options = &options, .err = err };
	struct builder b;
	struct input in;

	*status = OW_E_NO_MEMORY;
	if (!m)
		return NULL;
	builder_init(&b, m, err);
	*status = input_from_memory(&in, &mem, "x.index", bytes.ptr, bytes.len, err);
	if (*status != OW_OK) {
		model_free(m);
		return NULL;
	}
	if (graph) {
		builder_new_source(&b, &(struct source_row){ .format = builder_cstr(&b, "other") });
		builder_new_op(&b, &(struct op_row){ .name = builder_cstr(&b, "w"),
						     .type = builder_cstr(&b, "VariableV2") });
	}
	builder_new_source(&b, &(struct source_row){ .format = builder_cstr(&b, "checkpoint") });
	ctx.b = &b;
	ctx.in = &in;
	*status = b.status == OW_OK ? import_checkpoint.load(&ctx) : b.status;
	input_close(&in);
	if (*status == OW_OK)
		*status = model_freeze(&b);
	if (*status == OW_OK)
		return m;
	model_free(m);
	return NULL;
}

static int64_t fact_of(const struct model *m, const char *key)
{
	for (uint32_t i = 1; i < m->fact.count; i++)
		if (str_eq(model_str(m, m->fact.key[i]), str_from(key)))
			return m->fact.number[i];
	return -1;
}

static bool has_type(const struct model *m, op_id op, const char *type)
{
	uint32_t count;
	const str_id *types = model_strset(m, m->op.types[op.v], &count);

	while (count--)
		if (str_eq(model_str(m, types[count]), str_from(type)))
			return true;
	return false;
}

static void marks_the_ops_of_a_graph(void **state)
{
	struct table_writer w;
	struct ow_error err = { 0 };
	struct model *m;
	ow_status status;
	op_id op;

	(void)state;
	write_index(&w, true);
	m = load(buf_str(&w.out), true, &status, &err);
	assert_non_null(m);
	assert_int_equal(m->op.count, 2); /* nil and w: nothing was invented */
	op = model_find_op(m, STR("w"));
	assert_true(has_type(m, op, "_checkpoint_variables"));
	assert_true(has_type(m, op, "VariableV2"));
	assert_int_equal(m->tensor.count, 5);
	assert_int_equal(fact_of(m, "tensors"), 4);
	assert_int_equal(fact_of(m, "tensor_bytes"), 24 + 4 + 4 + 24);
	for (uint32_t i = 1; i < m->tensor.count; i++) {
		struct str name = model_str(m, m->tensor.name[i]);
		int32_t rank;

		model_dims(m, m->tensor.shape[i], &rank);
		assert_int_equal(m->tensor.dtype[i], 1);
		assert_int_equal(m->tensor.op[i].v, str_eq(name, STR("w")) ? op.v : 0);
		if (str_eq(name, STR("part"))) {
			assert_int_equal(m->tensor.requested[i], 24);
			assert_int_equal(rank, 2);
		}
	}
	assert_int_equal(m->note.count, 2); /* the repaired name */
	model_free(m);
	table_writer_release(&w);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void alone_its_variables_are_ops(void **state)
{
	struct table_writer w;
	struct ow_error err = { 0 };
	struct model *m;
	ow_status status;
	const int64_t *dims;
	int32_t rank;
	op_id op;

	(void)state;
	write_index(&w, false);
	m = load(buf_str(&w.out), false, &status, &err);
	assert_non_null(m);
	assert_int_equal(m->op.count, 5);
	op = model_find_op(m, STR("scalar"));
	assert_true(has_type(m, op, "_checkpoint_variables"));
	dims = model_dims(m, m->op.shape[op.v], &rank);
	assert_int_equal(rank, 1);
	assert_int_equal(dims[0], 1);
	assert_true(model_find_op(m, STR("odd\xef\xbf\xbd")).v != 0);
	model_free(m);
	table_writer_release(&w);
}

static void is_recognised_by_its_end(void **state)
{
	struct table_writer w;
	struct sniff s = { .path = "anything" };

	(void)state;
	write_index(&w, true);
	s.head = s.tail = buf_str(&w.out);
	s.size = w.out.len;
	assert_int_equal(import_checkpoint.sniff(&s), 95);
	s.tail.len--;
	assert_int_equal(import_checkpoint.sniff(&s), 0);
	s.tail.len = 3;
	assert_int_equal(import_checkpoint.sniff(&s), 0);
	table_writer_release(&w);
}

static void damage_ends_in_a_status(void **state)
{
	struct table_writer w;
	struct ow_error err = { 0 };
	struct model *m;
	ow_status status;

	(void)state;
	write_index(&w, false);
	for (size_t len = 0; len < w.out.len; len++) {
		m = load(str_make(w.out.ptr, len), false, &status, &err);
		assert_null(m);
		assert_memory_equal(err.text, "x.index: ", 9);
	}
	for (size_t i = 0; i < w.out.len; i++) {
		w.out.ptr[i] ^= 0x41;
		m = load(buf_str(&w.out), i & 1, &status, &err);
		if (m)
			model_free(m);
		w.out.ptr[i] ^= 0x41;
	}
	for (size_t block = 0; block < w.block_count; block++)
		for (size_t i = w.blocks[block].from; i < w.blocks[block].to; i++) {
			w.out.ptr[i] ^= 0x11;
			table_writer_reseal(&w, block);
			m = load(buf_str(&w.out), i & 1, &status, &err);
			if (m)
				model_free(m);
			w.out.ptr[i] ^= 0x11;
			table_writer_reseal(&w, block);
		}
	table_writer_release(&w);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* TensorFlow's words alone say neither where nor what to do. */
static void damage_is_told(void **state)
{
	struct table_writer w;
	struct ow_error err = { 0 };
	ow_status status;

	(void)state;
	write_index(&w, false);
	w.out.ptr[20] ^= 1;
	model_free(load(buf_str(&w.out), false, &status, &err));
	assert_int_equal(status, OW_E_CORRUPT);
	assert_non_null(strstr(err.text, "block checksum mismatch"));
	assert_non_null(strstr(err.text, "copy it again"));
	assert_non_null(strstr(err.text, "(at byte 0)"));
	table_writer_release(&w);
}

static void failing_allocations(void **state)
{
	ow_status status = OW_E_NO_MEMORY;
	struct table_writer w;
	struct ow_error err = { 0 };
	struct model *m;
	size_t before;

	(void)state;
	write_index(&w, true);
	before = atomic_load(&mem.used);
	for (uint64_t n = 1; status != OW_OK; n++) {
		assert_in_range(n, 1, 5000);
		mem_fail_after(n, true);
		m = load(buf_str(&w.out), false, &status, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		model_free(m);
		assert_int_equal(atomic_load(&mem.used), before);
	}
	table_writer_release(&w);
}

/* The seeds of the fuzz target, made again with OPWATCH_SEEDS=tests/fuzz/seeds/checkpoint. */
static void write_seeds(const char *dir)
{
	static const struct cw_extent whole[] = { { 0, -1 }, { 0, -1 } };
	struct cw_saved s;
	char path[1024];
	struct buf value;

	for (int snappy = 0; snappy < 2; snappy++) {
		struct table_writer w;

		write_index(&w, snappy);
		snprintf(path, sizeof(path), "%s/bundle%s.index", dir, snappy ? "-snappy" : "");
		cw_write_file(path, buf_str(&w.out));
		w.out.ptr[20] ^= 1;
		snprintf(path, sizeof(path), "%s/bundle%s-damaged.index", dir,
			 snappy ? "-snappy" : "");
		cw_write_file(path, buf_str(&w.out));
		table_writer_release(&w);
	}
	cw_saved_init(&s, &mem);
	cw_saved_meta(&s, "w", 1, two_by_three, 2, whole, 1);
	buf_init(&value, &mem);
	tw_pb_bytes(&value, 5, str_make(floats, 24));
	cw_saved_value(&s, "w", whole, 2, &value);
	snprintf(path, sizeof(path), "%s/saved", dir);
	cw_saved_write(&s, path, 100, true);
	buf_release(&value);
	cw_saved_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_the_ops_of_a_graph),
		cmocka_unit_test(alone_its_variables_are_ops),
		cmocka_unit_test(is_recognised_by_its_end),
		cmocka_unit_test(damage_ends_in_a_status),
		cmocka_unit_test(damage_is_told),
		cmocka_unit_test(failing_allocations),
	};

	mem_init(&mem, 0);
	if (getenv("OPWATCH_SEEDS"))
		write_seeds(getenv("OPWATCH_SEEDS"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
