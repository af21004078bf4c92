/*
 * import_tfevents_test.c: graphs and run metadata inside an event file are found, wherever they are;
 * damage costs the records it hits; every truncation, changed byte and failing allocation ends in a
 * status. OPWATCH_CORPUS may point to real files.
 */
#include "import/importer.h"

#include "../../tests/support/ckpt_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct mem mem;

/* ---- writing -------------------------------------------------------------------------------- */

static void add_record(struct buf *out, struct str data)
{
	size_t start = out->len;

	tw_u64(out, data.len);
	tw_u32(out, tw_masked_crc(tw_crc(0, out->ptr + start, 8)));
	buf_add_str(out, data);
	tw_u32(out, tw_masked_crc(tw_crc(0, data.ptr, data.len)));
}

/* An Event with one field of bytes; emptied: the field's content. */
static void add_event(struct buf *out, int64_t step, unsigned field, struct buf *content)
{
	struct buf event;

	buf_init(&event, &mem);
	tw_pb_double(&event, 1, 1476472047.25);
	if (step)
		tw_pb_int(&event, 2, step);
	tw_pb_message(&event, field, content);
	add_record(out, buf_str(&event));
	buf_release(&event);
}

static void add_node(struct buf *graph, const char *name, const char *type)
{
	struct buf node;

	buf_init(&node, &mem);
	tw_pb_bytes(&node, 1, str_from(name));
	tw_pb_bytes(&node, 2, str_from(type));
	tw_pb_message(graph, 1, &node);
	buf_release(&node);
}

/* TaggedRunMetadata of one run of `name` on the CPU. */
static void make_run(struct buf *out, const char *tag, const char *name)
{
	struct buf node, device, stats;

	buf_init(&node, &mem);
	buf_init(&device, &mem);
	buf_init(&stats, &mem);
	tw_pb_bytes(&node, 1, str_from(name));
	tw_pb_int(&node, 2, 1000000);
	tw_pb_int(&node, 3, 1);
	tw_pb_int(&node, 4, 5);
	tw_pb_int(&node, 5, 7);
	tw_pb_bytes(&device, 1, STR("/job:localhost/replica:0/task:0/cpu:0"));
	tw_pb_message(&device, 2, &node);
	tw_pb_message(&stats, 1, &device);
	tw_pb_message(&node, 1, &stats); /* RunMetadata */
	tw_pb_bytes(out, 1, str_from(tag));
	tw_pb_message(out, 2, &node);
	buf_release(&node);
	buf_release(&device);
	buf_release(&stats);
}

/* Run metadata before its graph; the same tag twice, as after a restart; and one without a number. */
static void write_events(struct buf *out)
{
	struct buf content;

	buf_init(out, &mem);
	buf_init(&content, &mem);
	buf_puts(&content, "brain.Event:2");
	add_event(out, 0, 3, &content);
	make_run(&content, "step_100", "a");
	add_event(out, 100, 8, &content);
	add_node(&content, "a", "Const");
	add_node(&content, "b", "MatMul");
	add_event(out, 0, 4, &content);
	add_node(&content, "a", "Const");
	add_node(&content, "c", "Add");
	add_event(out, 0, 4, &content);
	make_run(&content, "step_100", "b");
	add_event(out, 100, 8, &content);
	make_run(&content, "warm up", "b");
	add_event(out, 7, 8, &content);
	buf_puts(&content, "\x0a\x03\x0a\x01x");
	add_event(out, 8, 5, &content);
	buf_release(&content);
}

/* ---- reading -------------------------------------------------------------------------------- */

static struct model *load(struct str bytes, ow_status *status, struct ow_error *err)
{
	struct model *m = model_new(&mem, err);
	struct import_options options = { .step = INT64_MIN };
	struct builder b;
	struct input in;

	error_clear(err);
	*status = OW_E_NO_MEMORY;
	if (!m)
		return NULL;
	builder_init(&b, m, err);
	*status = input_from_memory(&in, &mem, "events", bytes.ptr, bytes.len, err);
	if (*status != OW_OK) {
		model_free(m);
		return NULL;
	}
	*status = import_input(&b, &in, &import_tfevents, &options, NULL, err);
	if (*status == OW_OK)
		*status = model_freeze(&b);
	if (*status == OW_OK)
		return m;
	model_free(m);
	return NULL;
}

/* The value of the n-th fact of that name, below any parent. */
static int64_t fact_of(const struct model *m, const char *key, int n)
{
	for (uint32_t i = 1; i < m->fact.count; i++)
		if (str_eq(model_str(m, m->fact.key[i]), str_from(key)) && !n--)
			return m->fact.number[i];
	return -1;
}

static uint64_t notes_of(const struct model *m, enum note_kind kind)
{
	uint64_t count = 0;

	for (uint32_t i = 1; i < m->note.count; i++)
		if (m->note.kind[i] == kind)
			count += m->note.times[i];
	return count;
}

static void finds_graphs_and_runs(void **state)
{
	struct buf file;
	struct ow_error err = { 0 };
	struct model *m;
	ow_status status;

	(void)state;
	write_events(&file);
	m = load(buf_str(&file), &status, &err);
	assert_non_null(m);
	assert_int_equal(m->op.count, 4);
	for (uint32_t i = 1; i < m->op.count; i++)
		assert_false(m->op.flags[i] & OP_FROM_RUN);
	assert_int_equal(m->step.count, 4);
	assert_true(model_find_step(m, 100).v != 0);
	assert_true(model_find_step(m, 101).v != 0); /* the tag that came twice */
	assert_true(model_find_step(m, 7).v != 0);   /* from the event's own step */
	assert_int_equal(model_require_rows(m, TABLES_ALL, &err), OW_OK);
	assert_int_equal(m->event.count, 4);
	assert_int_equal(fact_of(m, "records", 0), 7);
	assert_int_equal(fact_of(m, "wall_time", 0), 7);
	assert_int_equal(fact_of(m, "step", 0), 4);
	assert_int_equal(fact_of(m, "graph_def", 0), 2);
	assert_int_equal(fact_of(m, "summary", 0), 1);
	assert_int_equal(fact_of(m, "tagged_run_metadata", 0), 3);
	assert_int_equal(fact_of(m, "nodes", 0), 2);
	assert_int_equal(fact_of(m, "nodes", 1), 2);
	assert_false(m->damaged);
	model_free(m);
	buf_release(&file);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* A file that has only a meta graph is read by that. */
static void meta_graphs_will_do(void **state)
{
	struct buf file, graph, meta;
	struct ow_error err = { 0 };
	struct model *m;
	ow_status status;

	(void)state;
	buf_init(&file, &mem);
	buf_init(&graph, &mem);
	buf_init(&meta, &mem);
	add_node(&graph, "a", "VariableV2");
	tw_pb_message(&meta, 2, &graph);
	tw_pb_bytes(&graph, 1, STR("trainable_variables"));
	tw_pb_bytes(&graph, 2,
		    STR("\x0a\x05\x0a\x03"
			"a:0")); /* NodeList { "a:0" } */
	tw_pb_message(&meta, 4, &graph);
	add_event(&file, 0, 9, &meta);
	m = load(buf_str(&file), &status, &err);
	assert_non_null(m);
	assert_int_equal(m->op.count, 2);
	assert_true(m->op.flags[1] & OP_TRAINABLE);
	assert_int_equal(fact_of(m, "meta_graph_def", 0), 1);
	model_free(m);
	buf_release(&file);
	buf_release(&graph);
	buf_release(&meta);
}

static void is_recognised(void **state)
{
	struct sniff s = { .path = "anything" };
	struct buf file;

	(void)state;
	write_events(&file);
	s.head = s.tail = buf_str(&file);
	s.size = file.len;
	assert_int_equal(import_tfevents.sniff(&s), 95);
	file.ptr[3] ^= 1; /* the first record is lost */
	assert_int_equal(import_tfevents.sniff(&s), 40);
	s.head = STR("a text that is longer than any header could be");
	assert_int_equal(import_tfevents.sniff(&s), 0);
	s.head = STR("short");
	assert_int_equal(import_tfevents.sniff(&s), 0);
	buf_release(&file);
}

static void other_records_are_refused(void **state)
{
	struct ow_error err = { 0 };
	struct buf file;
	ow_status status;

	(void)state;
	buf_init(&file, &mem);
	add_record(&file, STR("\x0a\x03\x0a\x01x"));
	assert_null(load(buf_str(&file), &status, &err));
	assert_int_equal(status, OW_E_FORMAT);
	file.ptr[0] ^= 1;
	assert_null(load(buf_str(&file), &status, &err));
	assert_int_equal(status, OW_E_CORRUPT);
	buf_release(&file);
}

static void damage_is_counted(void **state)
{
	struct ow_error err = { 0 };
	struct buf file;
	ow_status status;
	struct model *m;

	(void)state;
	write_events(&file);
	for (size_t i = 0; i < file.len; i++) {
		file.ptr[i] ^= 0x20;
		m = load(buf_str(&file), &status, &err);
		assert_non_null(m);
		assert_true(m->damaged);
		assert_int_equal(notes_of(m, NOTE_DAMAGED), 1);
		assert_int_equal(fact_of(m, "records", 0), 6);
		model_free(m);
		file.ptr[i] ^= 0x20;
	}
	for (size_t len = 1; len < file.len; len++) {
		m = load(str_make(file.ptr, len), &status, &err);
		assert_true(m || status == OW_E_CORRUPT);
		model_free(m);
	}
	buf_release(&file);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* Every byte of the events themselves changed, behind right CRCs. */
static void hostile_events(void **state)
{
	struct ow_error err = { 0 };
	struct buf file;
	ow_status status;

	(void)state;
	write_events(&file);
	for (size_t record = 0; record < file.len;) {
		uint64_t len;
		size_t data = record + 12;

		memcpy(&len, file.ptr + record, 8);
		for (size_t i = data; i < data + len; i++)
			for (int change = 1; change < 256; change += 61) {
				uint32_t crc;

				file.ptr[i] = (char)(file.ptr[i] ^ change);
				crc = tw_masked_crc(tw_crc(0, file.ptr + data, len));
				memcpy(file.ptr + data + len, &crc, 4);
				model_free(load(buf_str(&file), &status, &err));
				file.ptr[i] = (char)(file.ptr[i] ^ change);
				crc = tw_masked_crc(tw_crc(0, file.ptr + data, len));
				memcpy(file.ptr + data + len, &crc, 4);
			}
		record = data + len + 4;
	}
	buf_release(&file);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void failing_allocations(void **state)
{
	ow_status status = OW_E_NO_MEMORY;
	struct ow_error err = { 0 };
	struct buf file;
	size_t before;

	(void)state;
	write_events(&file);
	before = atomic_load(&mem.used);
	for (uint64_t n = 1; status != OW_OK; n++) {
		struct model *m;

		assert_in_range(n, 1, 5000);
		mem_fail_after(n, true);
		m = load(buf_str(&file), &status, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		model_free(m);
		assert_int_equal(atomic_load(&mem.used), before);
	}
	buf_release(&file);
}

/* Numbers counted by other programs. */
static void corpus(void **state)
{
	static const struct {
		const char *name;
		int records, graphs, steps, nodes[3], distinct_ops[3];
	} real[] = {
		{ "tb-eval-events.out.tfevents.1476472058", 5, 1, 2, { 207 }, { 49 } },
		{ "tb-events.out.tfevents.1476472047",
		  71,
		  3,
		  64,
		  { 255, 338, 338 },
		  { 51, 59, 59 } },
	};
	const char *root = getenv("OPWATCH_CORPUS");

	(void)state;
	if (!root) {
		print_message("OPWATCH_CORPUS is not set: real event files are not tried\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_COUNT(real); i++) {
		char path[1024];
		struct ow_error err = { 0 };
		struct input in;
		struct model *m;
		ow_status status;

		snprintf(path, sizeof(path), "%s/tf-events/%s", root, real[i].name);
		assert_int_equal(input_open(&in, &mem, path, &err), OW_OK);
		m = load(str_make(in.data, (size_t)in.size), &status, &err);
		assert_non_null(m);
		assert_int_equal(fact_of(m, "records", 0), real[i].records);
		assert_int_equal(fact_of(m, "graph_def", 0), real[i].graphs);
		assert_int_equal(fact_of(m, "step", 0), real[i].steps);
		for (int g = 0; g < real[i].graphs; g++) {
			assert_int_equal(fact_of(m, "nodes", g), real[i].nodes[g]);
			assert_int_equal(fact_of(m, "distinct_ops", g), real[i].distinct_ops[g]);
			assert_int_equal(fact_of(m, "library_functions", g), 0);
		}
		assert_false(m->damaged);
		model_free(m);
		input_close(&in);
	}
}

/* The seeds of the fuzz target, made again with OPWATCH_SEEDS=tests/fuzz/seeds/tfevents. */
static void write_seeds(const char *dir)
{
	char path[1024];
	struct buf file;

	write_events(&file);
	snprintf(path, sizeof(path), "%s/events", dir);
	cw_write_file(path, buf_str(&file));
	file.ptr[60] ^= 1;
	snprintf(path, sizeof(path), "%s/damaged", dir);
	cw_write_file(path, str_make(file.ptr, file.len - 9));
	buf_release(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_graphs_and_runs),
		cmocka_unit_test(meta_graphs_will_do),
		cmocka_unit_test(is_recognised),
		cmocka_unit_test(other_records_are_refused),
		cmocka_unit_test(damage_is_counted),
		cmocka_unit_test(hostile_events),
		cmocka_unit_test(failing_allocations),
		cmocka_unit_test(corpus),
	};

	mem_init(&mem, 0);
	if (getenv("OPWATCH_SEEDS"))
		write_seeds(getenv("OPWATCH_SEEDS"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
