/* relation_test.c: relations over models made by hand: columns, NULLs, references, several runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/steps/phases.h"
#include "model/names.h"
#include "relation/columns.h"
#include "support/relation_text.h"
#include "support/trace_model.h"

static void fill_model(struct small_model *s)
{
	source_id source = trace_source(s, "rank0.json", 3);
	track_id host = trace_track(s, source, "main", TRACK_HOST, NULL);
	track_id stream = trace_track(s, source, "stream 7", TRACK_STREAM, "/gpu:0");
	event_id call;

	trace_step(s, source, 5, 0, 100);
	call = trace_slice(s, host, "cudaLaunchKernel", PHASE_LAUNCH, 1, 3);
	trace_launch(s, call, trace_slice(s, stream, "gemm", PHASE_COMPUTE, 4, 9));
	builder_add_event(&s->b, &(struct event_row){ .ts_ns = 50 * MS,
						      .dur_ns = TIME_UNKNOWN,
						      .name = builder_cstr(&s->b, "tick"),
						      .ph = 'i',
						      .track = host });
}

static void expect_lines(const struct table_run *runs, size_t count, const char *name,
			 const char *columns, const char *lines, bool start)
{
	struct ow_error err = { 0 };
	struct mem mem;
	struct buf text;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	if (relation_text(name, runs, count, columns, &mem, &text, &err) != OW_OK)
		fail_msg("%s: %s", name, err.text);
	if (!str_starts(buf_str(&text), str_from(lines)) || (!start && text.len != strlen(lines)))
		assert_string_equal(buf_cstr(&text), lines);
	buf_release(&text);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void expect(const struct table_run *runs, size_t count, const char *name,
		   const char *columns, const char *lines)
{
	expect_lines(runs, count, name, columns, lines, false);
}

static void event_columns(void **state)
{
	struct table_run run = { .name = "a", .number = 1 };
	struct small_model s;

	(void)state;
	small_open(&s);
	fill_model(&s);
	small_freeze(&s);
	run.m = s.m;
	expect(&run, 1, "event",
	       "run,id,name,ts,dur,ph,op,op_id,track,track_id,device,rank,phase,track_kind",
	       "a|1|cudaLaunchKernel|1000000|2000000|X|cudaLaunchKernel|1|main|1|-|3|launch|host\n"
	       "a|2|tick|50000000|-|i|-|-|main|1|-|3|-|host\n"
	       "a|3|gemm|4000000|5000000|X|gemm|2|stream 7|2|/gpu:0|3|compute|stream\n");
	expect(&run, 1, "source", "id,path,rank,step_id", "1|rank0.json|3|-\n");
	expect(&run, 1, "step", "id,number", "1|5\n");
	small_close(&s);
}

static void several_runs(void **state)
{
	struct table_run runs[2] = { { .name = "a", .number = 1 }, { .name = "b", .number = 2 } };
	struct small_model s[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		small_open(&s[i]);
		fill_model(&s[i]);
		small_freeze(&s[i]);
		runs[i].m = s[i].m;
	}
	expect(runs, 2, "op", "run,id,name",
	       "a|1|cudaLaunchKernel\na|2|gemm\nb|4294967297|cudaLaunchKernel\nb|4294967298|"
	       "gemm\n");
	expect(runs, 2, "event", "run,op_id", "a|1\na|-\na|2\nb|4294967297\nb|-\nb|4294967298\n");
	for (int i = 0; i < 2; i++)
		small_close(&s[i]);
}

/* A model with something in every table that a trace can fill. */
static void fill_more(struct small_model *s)
{
	static const struct small_frame frames[] = { { "train.py", 7, "main" }, { NULL, 0, NULL } };
	source_id source = trace_source(s, "rank0.json", 0);
	track_id host = trace_track(s, source, "main", TRACK_HOST, NULL);
	track_id stream = trace_track(s, source, "stream 7", TRACK_STREAM, "/gpu:0");
	track_id second = trace_track(s, source, "stream 8", TRACK_STREAM, "/gpu:0");
	op_id op = small_op(s, "layer/MatMul", "MatMul", GPU0);

	small_code(s, op, frames);
	small_run(s, op, 3, 100, 20, 10);
	for (int i = 0; i < 3; i++)
		trace_known_step(s, source, host, stream, second, 3 + i, i * 120);
	builder_add_counter(&s->b, &(struct counter_row){ .track = host,
							  .name = builder_cstr(&s->b, "memory"),
							  .series = builder_cstr(&s->b, "bytes"),
							  .ts_ns = 5,
							  .value = 1.5 });
	builder_add_flow(&s->b,
			 &(struct flow_row){ .ts_ns = 1, .id = 17, .track = host, .ph = 's' });
	builder_add_flow(&s->b,
			 &(struct flow_row){ .ts_ns = 2,
					     .id = MODEL_TEXT_ID | builder_cstr(&s->b, "0xa").v,
					     .track = host,
					     .ph = 'f' });
	builder_add_tensor(&s->b, &(struct tensor_row){ .op = op, .requested = 64, .dtype = 1 });
	builder_note(&s->b, NOTE_DAMAGED, 5, "something was unreadable");
}

/* Every relation can be read whole, in pieces, with one and with two runs, and says how many rows it has. */
static void every_relation(void **state)
{
	struct table_run runs[2] = { { .name = "a", .number = 1 }, { .name = "b", .number = 2 } };
	const struct table_source *relation;
	struct small_model s;

	(void)state;
	small_open(&s);
	fill_more(&s);
	small_freeze(&s);
	runs[0].m = runs[1].m = s.m;
	for (size_t i = 0; (relation = relation_at(i)); i++) {
		struct ow_error err = { 0 };
		struct buf text[2];

		for (int n = 0; n < 2; n++) {
			buf_init(&text[n], &s.mem);
			if (relation_text(relation->name, runs, (size_t)n + 1, NULL, &s.mem,
					  &text[n], &err) != OW_OK)
				fail_msg("%s: %s", relation->name, err.text);
		}
		/* Of two runs the first comes first. */
		assert_true(str_starts(buf_str(&text[1]), buf_str(&text[0])));
		if (text[0].len)
			assert_true(text[1].len > text[0].len);
		for (int n = 0; n < 2; n++)
			buf_release(&text[n]);
	}
	expect(runs, 1, "flow", "key,ph,track", "17|s|main\n0xa|f|main\n");
	expect(runs, 1, "counter", "name,series,ts,value", "memory|bytes|5|1.5\n");
	expect(runs, 1, "tensor", "op,op_type,requested,step", "layer/MatMul|MatMul|64|-\n");
	expect(runs, 1, "loss", "kind,byte_offset,times,text",
	       "damaged|5|1|something was unreadable\n");
	expect(runs, 1, "run", "run,number,sources,damaged", "a|1|1|true\n");
	expect_lines(runs, 1, "op_step",
		     "op,step,run_count,cpu_ns,accelerator_ns,exec_ns,peak_bytes",
		     "layer/MatMul|3|1|20000|10000|30000|-\n"
		     "DataLoader.__next__|-|3|36000000|0|36000000|-\n",
		     true);
	expect(runs, 1, "step_window", "step,start_ns,end_ns,rank",
	       "3|0|100000000|0\n4|120000000|220000000|0\n5|240000000|340000000|0\n");
	small_close(&s);
}

/* Shares of a step add up to its time. */
static void phases_of_steps(void **state)
{
	struct table_run run = { .name = "a", .number = 1 };
	struct small_model s;

	(void)state;
	small_open(&s);
	fill_more(&s);
	small_freeze(&s);
	run.m = s.m;
	expect_lines(&run, 1, "phase", "step,phase,share,total,exposed,overlapped,dur",
		     "3|input|12000000|12000000|12000000|0|100000000\n"
		     "3|host|2000000|58000000|2000000|56000000|100000000\n"
		     "3|initialisation|0|0|0|0|100000000\n"
		     "3|allocation|0|0|0|0|100000000\n"
		     "3|launch|2000000|6000000|2000000|4000000|100000000\n"
		     "3|host_to_device|6000000|6000000|6000000|0|100000000\n"
		     "3|compute|50000000|50000000|50000000|0|100000000\n"
		     "3|communication|8000000|25000000|8000000|17000000|100000000\n"
		     "3|device_to_host|4000000|4000000|4000000|0|100000000\n"
		     "3|synchronisation|12000000|26000000|12000000|14000000|100000000\n"
		     "3|idle|4000000|4000000|4000000|0|100000000\n",
		     true);
	small_close(&s);
}

/* Any allocation may fail; then the status says so and nothing is left behind. */
static void failing_allocations(void **state)
{
	struct table_run run = { .name = "a", .number = 1 };
	const struct table_source *relation;
	struct small_model s;
	unsigned failed = 0;

	(void)state;
	small_open(&s);
	fill_more(&s);
	small_freeze(&s);
	run.m = s.m;
	for (size_t i = 0; (relation = relation_at(i)); i++)
		for (uint64_t n = 1;; n++) {
			struct ow_error err = { 0 };
			struct buf text;
			ow_status status;
			struct mem mem;

			mem_init(&mem, 0);
			buf_init(&text, &mem);
			mem_fail_after(n, true);
			status = relation_text(relation->name, &run, 1, NULL, &mem, &text, &err);
			mem_fail_after(0, false);
			buf_release(&text);
			assert_int_equal(atomic_load(&mem.used), 0);
			if (status == OW_OK)
				break;
			assert_int_equal(status, OW_E_NO_MEMORY);
			failed++;
		}
	assert_true(failed > 100);
	small_close(&s);
}

/* The words are those that the rest of the program uses. */
static void words(void **state)
{
	(void)state;
	for (uint8_t i = 0; i < words_device_kind.count - 1; i++)
		assert_string_equal(words_device_kind.texts[i + 1].ptr, device_kind_name(i));
	for (uint8_t i = 0; i < words_track_kind.count - 1; i++)
		assert_string_equal(words_track_kind.texts[i + 1].ptr, track_kind_name(i));
	for (uint8_t i = 0; i < words_note_kind.count - 1; i++)
		assert_string_equal(words_note_kind.texts[i + 1].ptr, note_kind_name(i));
	assert_int_equal(words_phase_class.count, CLASS_COUNT + 1);
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		assert_string_equal(words_phase_class.texts[i + 1].ptr, phase_class_names[i]);
	assert_int_equal(words_event_phase.count, PHASE_COUNT);
	assert_string_equal(words_event_phase.texts[PHASE_COMPUTE].ptr, "compute");
	/* Every enum of the schema has words. */
	for (int t = 0; t < TABLE_COUNT; t++)
		for (uint32_t c = 0; c < model_tables[t].column_count; c++)
			if (model_tables[t].columns[c].unit == UNIT_ENUM)
				assert_non_null(words_of(model_tables[t].columns[c].doc));
}

/* A column of a view is described in analyze/columns.def, else its title would stand for it. */
static void view_columns_have_sentences(void **state)
{
	const struct table_source *relation;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (size_t i = 0; (relation = relation_at(i)); i++) {
		struct table *t;

		assert_int_equal(relation_open(relation, NULL, 0, NULL, 0, &mem, &t, NULL), OW_OK);
		for (uint32_t c = 0; c < t->column_count; c++)
			if (!t->columns[c].doc || !*t->columns[c].doc ||
			    (t->columns[c].title && t->columns[c].doc == t->columns[c].title))
				fail_msg("%s.%s has no sentence", t->name, t->columns[c].name);
		table_free(t);
	}
	assert_int_equal(atomic_load(&mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_columns),
		cmocka_unit_test(several_runs),
		cmocka_unit_test(every_relation),
		cmocka_unit_test(phases_of_steps),
		cmocka_unit_test(failing_allocations),
		cmocka_unit_test(words),
		cmocka_unit_test(view_columns_have_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
