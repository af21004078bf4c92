/*
 * redact_test.c: no name survives, in any column of strings of the schema, and what has to stay the
 * same does: scopes, repetitions, gradients, types, devices, lookups.
 */
#include "model/redact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_model.h"

/* Columns that never carry what a user named, or that are kept on purpose. */
static const char *const kept_columns[] = {
	"source.format",  "source.producer", "source.container", "device.name",
	"op.device",	  "op.host_device",  "op.data_format",	 "tensor.allocator",
	"heap.allocator", "heap.purpose",    "metric.unit"
};

static bool is_kept_column(const char *table, const char *column)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.%s", table, column);
	for (size_t i = 0; i < ARRAY_COUNT(kept_columns); i++)
		if (strcmp(kept_columns[i], name) == 0)
			return true;
	return false;
}

static str_id **column_of(struct model *m, const struct table_info *info, uint32_t c)
{
	char *table = (char *)m + info->offset;

	if (strcmp(info->columns[c].type, "str_id") != 0)
		return NULL;
	return (str_id **)(void *)(table + info->columns[c].offset);
}

/* A row of zeros in every table, also in those of tomorrow. */
static void add_row_everywhere(struct small_model *s)
{
	for (int t = 0; t < TABLE_COUNT; t++) {
		char *table = (char *)s->m + model_tables[t].offset;
		uint32_t *count = (uint32_t *)(void *)table;

		assert_true(builder_grow(&s->b, (enum table_id)t, 1));
		for (uint32_t c = 0; c < model_tables[t].column_count; c++) {
			const struct column_info *info = &model_tables[t].columns[c];
			char *column = *(char **)(void *)(table + info->offset);

			if (column)
				memset(column + (size_t)*count * info->size, 0, info->size);
		}
		(*count)++;
	}
	s->m->strset.item_first[1] = 1;
	s->m->strset.item_count[1] = 1;
}

static void fill_every_column(struct small_model *s)
{
	for (int t = 0; t < TABLE_COUNT; t++)
		for (uint32_t c = 0; c < model_tables[t].column_count; c++) {
			const struct column_info *info = &model_tables[t].columns[c];
			str_id **column = column_of(s->m, &model_tables[t], c);
			char text[96];

			if (!column)
				continue;
			assert_true(builder_need_column(&s->b, (enum table_id)t, info->offset));
			snprintf(text, sizeof(text), "sekret Sekret/x_sekret.%s_%s/sekret_1",
				 model_tables[t].name, info->name);
			(*column)[1] = builder_cstr(&s->b, text);
		}
}

static void no_column_tells(void **state)
{
	struct small_model s;
	unsigned checked = 0;

	(void)state;
	small_open(&s);
	add_row_everywhere(&s);
	fill_every_column(&s);
	small_freeze(&s);
	assert_int_equal(model_redact(s.m, false, &s.err), OW_OK);
	for (int t = 0; t < TABLE_COUNT; t++)
		for (uint32_t c = 0; c < model_tables[t].column_count; c++) {
			const char *name = model_tables[t].columns[c].name;
			str_id **column = column_of(s.m, &model_tables[t], c);
			struct str text;

			if (!column || is_kept_column(model_tables[t].name, name))
				continue;
			text = model_str(s.m, (*column)[1]);
			if (!text.len || str_has(text, STR("sekret")) ||
			    str_has(text, STR("Sekret")))
				fail_msg("%s.%s is '%s'", model_tables[t].name, name, text.ptr);
			checked++;
		}
	assert_true(checked > 15);
	small_close(&s);
}

static struct str op_name(struct small_model *s, op_id op)
{
	return model_str(s->m, s->m->op.name[op.v]);
}

/* Nothing that the model still has as a string contains the word. */
static void expect_gone(struct small_model *s, struct str word)
{
	for (uint32_t i = 1; i < s->m->strings.count; i++)
		if (str_has(s->m->strings.text[i], word))
			fail_msg("'%s' still has '%s'", s->m->strings.text[i].ptr, word.ptr);
}

static void structure_stays(void **state)
{
	struct small_model s;
	op_id first, second, forward, grad, norm;
	struct str name;
	char want[128];

	(void)state;
	small_open(&s);
	first = small_op(&s, "falcon/block_1/MatMul", "MatMul", GPU0);
	second = small_op(&s, "falcon/block_2/MatMul_1", "MatMul", "");
	forward = small_op(&s, "falcon/mix", "Mul", "");
	grad = small_op(&s, "gradients/falcon/mix_grad/Reshape", "Reshape", "");
	norm = small_op(&s, "falcon/BatchNorm/mul", "Mul", "");
	builder_add_op_input(&s.b, &(struct op_input_row){ .name = s.m->op.name[first.v] });
	small_freeze(&s);
	assert_non_null(model_ops_by_name(s.m, &s.err));
	assert_int_equal(model_redact(s.m, false, &s.err), OW_OK);

	name = op_name(&s, first);
	assert_int_equal(name.ptr[0], 'n');
	assert_int_equal(str_find_char(name, '/'), 8);
	assert_true(str_ends(name, STR("_1/MatMul")));
	assert_true(str_ends(op_name(&s, second), STR("_2/MatMul_1")));
	assert_memory_equal(op_name(&s, second).ptr, name.ptr, 17); /* the same scopes */
	snprintf(want, sizeof(want), "gradients/%s_grad/Reshape", op_name(&s, forward).ptr);
	assert_string_equal(op_name(&s, grad).ptr, want);
	assert_true(str_has(op_name(&s, norm), STR("/BatchNorm/")));
	assert_string_equal(model_str(s.m, s.m->op.type[first.v]).ptr, "MatMul");
	assert_string_equal(model_str(s.m, s.m->op.device[first.v]).ptr, GPU0);

	assert_int_equal(model_find_op(s.m, name).v, first.v);
	assert_int_equal(s.m->op_input.name[1].v, s.m->op.name[first.v].v);
	assert_int_equal(s.m->op_input.src[1].v, first.v);
	assert_int_equal(model_find_op(s.m, STR("falcon/mix")).v, 0);
	assert_non_null(model_ops_by_name(s.m, &s.err));
	expect_gone(&s, STR("falcon"));
	expect_gone(&s, STR("mix"));
	small_close(&s);
}

/* Ops that only run-time records know, user-defined types, functions called like ops. */
static void types(void **state)
{
	struct small_model s;
	op_id run, marked, function;
	const str_id *set;
	uint32_t count;

	(void)state;
	small_open(&s);
	run = small_op(&s, "_retval_falcon_0_0", "_retval_falcon_0_0", CPU0);
	s.m->op.flags[run.v] |= OP_FROM_RUN;
	marked = small_op(&s, "a", "Conv2D", CPU0);
	s.m->op.types[marked.v] =
		builder_strset_add(&s.b, s.m->op.types[marked.v], builder_cstr(&s.b, "Aladdin"));
	s.m->op.types[marked.v] = builder_strset_add(&s.b, s.m->op.types[marked.v],
						     builder_cstr(&s.b, "_checkpoint_variables"));
	function = small_op(&s, "b", "__inference_falcon_12", "");
	small_freeze(&s);
	assert_int_equal(model_redact(s.m, false, &s.err), OW_OK);
	assert_int_equal(s.m->op.type[run.v].v, s.m->op.name[run.v].v);
	assert_true(str_ends(op_name(&s, run), STR("_0_0")));
	set = model_strset(s.m, s.m->op.types[marked.v], &count);
	assert_int_equal(count, 4);
	for (uint32_t i = 1; i < count; i++)
		assert_true(str_cmp(model_str(s.m, set[i - 1]), model_str(s.m, set[i])) < 0);
	assert_string_equal(model_str(s.m, set[0]).ptr, CPU0);
	assert_string_equal(model_str(s.m, set[1]).ptr, "Conv2D");
	assert_string_equal(model_str(s.m, set[2]).ptr, "_checkpoint_variables");
	assert_true(str_ends(model_str(s.m, s.m->op.type[function.v]), STR("_12")));
	expect_gone(&s, STR("falcon"));
	expect_gone(&s, STR("Aladdin"));
	small_close(&s);
}

static void paths_and_code(void **state)
{
	static const struct small_frame frames[] = { { "/home/ann/falcon/train.py", 3, "<module>" },
						     { "/home/ann/falcon/net.py", 7, "wing" },
						     { 0 } };
	struct small_model s;
	struct str file, other;

	(void)state;
	small_open(&s);
	small_source(&s, "/home/ann/runs/falcon.pb.gz", "tf_graph");
	small_source(&s, "events.out.tfevents.123.annbox", "tf_events");
	small_code(&s, small_op(&s, "a", "Conv2D", ""), frames);
	small_freeze(&s);
	assert_int_equal(model_redact(s.m, false, &s.err), OW_OK);
	file = model_str(s.m, s.m->frame.file[1]);
	other = model_str(s.m, s.m->frame.file[2]);
	assert_int_equal(file.ptr[0], '/');
	assert_true(str_ends(file, STR(".py")));
	assert_memory_equal(file.ptr, other.ptr, 3 * 9 + 1); /* the same directories */
	assert_string_equal(model_str(s.m, s.m->frame.function[1]).ptr, "<module>");
	assert_int_equal(s.m->frame.line[2], 7);
	assert_int_equal(model_str(s.m, s.m->source.path[1]).len, strlen("n0123456.pb.gz"));
	assert_true(str_ends(model_str(s.m, s.m->source.path[1]), STR(".pb.gz")));
	assert_int_equal(model_str(s.m, s.m->source.path[2]).len, strlen("n0123456"));
	expect_gone(&s, STR("ann"));
	expect_gone(&s, STR("falcon"));
	expect_gone(&s, STR("wing"));
	expect_gone(&s, STR("train"));
	small_close(&s);
}

static struct str note_of(struct small_model *s, uint32_t note)
{
	return model_str(s->m, s->m->note.text[note]);
}

static void facts_and_notes(void **state)
{
	struct small_model s;
	fact_id list, devices;

	(void)state;
	small_open(&s);
	small_op(&s, "falcon/wing", "Conv2D", "");
	small_op(&s, "inputs", "Placeholder", "");
	builder_note(
		&s.b, NOTE_DROPPED, OW_NO_OFFSET,
		"not used: my falcon/x y: not a format that opwatch knows; it starts with 66 61");
	small_source(&s, "a.pb", "tf_graph");
	fact_text(&s.b, (fact_id){ 0 }, "kind", STR("GraphDef"));
	list = fact_list(&s.b, (fact_id){ 0 }, "inputs");
	fact_text(&s.b, list, NULL, STR("falcon/wing"));
	fact_text(&s.b, list, NULL, STR("Conv2D"));
	fact_text(&s.b, list, NULL, STR("unseen"));
	devices = fact_object(&s.b, (fact_id){ 0 }, "devices");
	fact_int(&s.b, devices, "/job:worker/task:0/device:CPU:0", 1);
	builder_note(&s.b, NOTE_INFO, 9,
		     "record 12 of 'falcon/wing' (Conv2D) in the GraphDef: wing");
	builder_note(&s.b, NOTE_INFO, 9, "the profiler says: lynx of badger failed");
	builder_note(&s.b, NOTE_INFO, 9, "no slice matches the step marker ocelot");
	small_freeze(&s);
	assert_int_equal(model_redact(s.m, false, &s.err), OW_OK);
	assert_string_equal(model_str(s.m, s.m->fact.text[1]).ptr, "GraphDef");
	assert_string_equal(model_str(s.m, s.m->fact.key[2]).ptr, "inputs");
	assert_int_equal(s.m->fact.text[3].v, s.m->op.name[1].v);
	assert_string_equal(model_str(s.m, s.m->fact.text[4]).ptr, "Conv2D");
	assert_string_equal(model_str(s.m, s.m->fact.key[7]).ptr,
			    "/job:worker/task:0/device:CPU:0");
	assert_true(str_starts(note_of(&s, 1), STR("not used: n")));
	assert_true(str_ends(note_of(&s, 1), STR(": not a format that opwatch knows")));
	assert_true(str_starts(note_of(&s, 2), STR("record 12 of 'n")));
	assert_true(str_has(note_of(&s, 2), STR("' (Conv2D) in the GraphDef: n")));
	expect_gone(&s, STR("falcon"));
	expect_gone(&s, STR("wing"));
	expect_gone(&s, STR("unseen"));
	assert_true(str_starts(note_of(&s, 3), STR("the profiler says: n")));
	expect_gone(&s, STR("lynx"));
	expect_gone(&s, STR("badger"));
	expect_gone(&s, STR("ocelot"));
	small_close(&s);
}

static void text_ids(void **state)
{
	struct small_model s;
	uint64_t id;

	(void)state;
	small_open(&s);
	id = MODEL_TEXT_ID | builder_cstr(&s.b, "falcon").v;
	builder_add_flow(&s.b, &(struct flow_row){ .id = id });
	builder_add_event_key(&s.b, &(struct event_key_row){ .id = id });
	builder_add_event_key(&s.b, &(struct event_key_row){ .id = 77 });
	small_freeze(&s);
	assert_int_equal(model_redact(s.m, false, &s.err), OW_OK);
	assert_true(s.m->flow.id[1] == s.m->event_key.id[1]);
	assert_true(s.m->event_key.id[2] == 77);
	assert_int_equal(model_str(s.m, (str_id){ (uint32_t)s.m->flow.id[1] }).len, 8);
	expect_gone(&s, STR("falcon"));
	small_close(&s);
}

/* Another run, other pseudonyms. */
static void cannot_be_guessed(void **state)
{
	char seen[2][64];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct small_model s;
		op_id op;

		small_open(&s);
		op = small_op(&s, "falcon", "Conv2D", "");
		small_freeze(&s);
		assert_int_equal(model_redact(s.m, false, &s.err), OW_OK);
		snprintf(seen[i], sizeof(seen[i]), "%s", op_name(&s, op).ptr);
		small_close(&s);
	}
	assert_string_not_equal(seen[0], seen[1]);
}

/* Models that are compared have the same words for the same names. */
static void agree_when_compared(void **state)
{
	char seen[2][64];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct small_model s;
		op_id op;

		small_open(&s);
		op = small_op(&s, "falcon", "Conv2D", "");
		small_freeze(&s);
		assert_int_equal(model_redact(s.m, true, &s.err), OW_OK);
		snprintf(seen[i], sizeof(seen[i]), "%s", op_name(&s, op).ptr);
		small_close(&s);
	}
	assert_string_equal(seen[0], seen[1]);
	assert_string_not_equal(seen[0], "falcon");
}

/* Many words: all stay different. */
static void no_collisions(void **state)
{
	struct small_model s;
	const op_id *order;

	(void)state;
	small_open(&s);
	for (int i = 0; i < 60000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "layer%dx", i);
		small_op(&s, name, "Conv2D", "");
	}
	small_freeze(&s);
	assert_int_equal(model_redact(s.m, false, &s.err), OW_OK);
	order = model_ops_by_name(s.m, &s.err);
	for (int i = 1; i < 60000; i++)
		assert_true(str_cmp(op_name(&s, order[i - 1]), op_name(&s, order[i])) < 0);
	small_close(&s);
}

static ow_status redact_without(uint64_t n, bool sticky)
{
	struct small_model s;
	ow_status status;

	small_open(&s);
	small_source(&s, "a.pb", "tf_graph");
	small_run(&s, small_op(&s, "falcon/wing", "Conv2D", GPU0), 0, 10, 5, 3);
	builder_note(&s.b, NOTE_INFO, 9, "record of 'falcon/wing'");
	small_freeze(&s);
	mem_fail_after(n, sticky);
	status = model_redact(s.m, false, &s.err);
	mem_fail_after(0, false);
	assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
	small_close(&s);
	return status;
}

static void memory_ends(void **state)
{
	uint64_t n = 1;

	(void)state;
	for (; redact_without(n, true) != OW_OK; n++)
		(void)redact_without(n, false);
	assert_true(n > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_column_tells),
		cmocka_unit_test(structure_stays),
		cmocka_unit_test(types),
		cmocka_unit_test(paths_and_code),
		cmocka_unit_test(facts_and_notes),
		cmocka_unit_test(text_ids),
		cmocka_unit_test(cannot_be_guessed),
		cmocka_unit_test(agree_when_compared),
		cmocka_unit_test(no_collisions),
		cmocka_unit_test(memory_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
