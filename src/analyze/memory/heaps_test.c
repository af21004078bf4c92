/*
 * heaps_test.c: the memory views on small models: peaks, what was there before, totals of the source, what was
 * in use by address, by size and by purpose, steps, and hostile numbers; every allocation fails once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/view_text.h"

static const struct view *const all[] = { &view_heaps, &view_memory_peak, &view_memory_steps,
					  &view_memory_time };

static void add(struct small_model *s, int64_t ts, int64_t size, struct heap_row row)
{
	row.ts_ns = ts;
	row.size = size;
	row.device = builder_device(&s->b, STR("GPU 0"));
	if (row.kind == HEAP_ALLOC && size < 0)
		row.kind = HEAP_FREE;
	builder_add_heap(&s->b, &row);
}

static op_id named(struct small_model *s, const char *name)
{
	return small_op(s, name, "MatMul", GPU0);
}

static void fail_each(struct small_model *s)
{
	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		view_text_fail_each(s, all[i]);
}

/* A piece belongs to the last allocation at its address; of equal peaks the last one counts. */
static void by_address(void **state)
{
	struct small_model s;
	op_id a, b;

	(void)state;
	small_open(&s);
	a = named(&s, "net/a");
	b = named(&s, "net/in/b");
	add(&s, TIME_UNKNOWN, 5, (struct heap_row){ .kind = HEAP_EXISTING, .address = 9 });
	add(&s, 10, 100, (struct heap_row){ .op = a, .address = 1 });
	add(&s, 20, 50, (struct heap_row){ .op = b, .address = 2 });
	add(&s, 30, -100, (struct heap_row){ .op = b, .address = 1 });
	add(&s, 40, 100, (struct heap_row){ .op = b, .address = 1 });
	add(&s, 50, 200, (struct heap_row){ .kind = HEAP_SEGMENT_ALLOC });
	add(&s, 60, -50, (struct heap_row){ .address = 2 });
	add(&s, 70, 7, (struct heap_row){ .kind = HEAP_OUT_OF_MEMORY });
	small_freeze(&s);
	view_text_expect_columns(&s, &view_heaps, NULL,
				 "device,peak_bytes,peak_ns,start_bytes,end_bytes,"
				 "reserved_peak_bytes,allocations,releases,out_of_memory",
				 "GPU 0|155|30|5|105|200|4|2|1\n");
	view_text_expect_columns(&s, &view_memory_peak, NULL, "grouped_by,name,bytes,blocks",
				 "op|net/in/b|150|2\n"
				 "op|(unknown)|5|-\n"
				 "scope|net/in|150|2\n"
				 "scope|(unknown)|5|-\n");
	fail_each(&s);
	small_close(&s);
}

/* Without addresses a release belongs to the last allocation of its size. */
static void by_size(void **state)
{
	struct small_model s;
	op_id a, b;

	(void)state;
	small_open(&s);
	a = named(&s, "a");
	b = named(&s, "b");
	add(&s, 1, -30, (struct heap_row){ 0 }); /* was there before */
	add(&s, 2, 100, (struct heap_row){ .op = a });
	add(&s, 3, 100, (struct heap_row){ .op = b });
	add(&s, 4, -100, (struct heap_row){ 0 });
	add(&s, 5, 20, (struct heap_row){ .op = b });
	add(&s, 6, 90, (struct heap_row){ .op = b });
	small_freeze(&s);
	view_text_expect_columns(&s, &view_heaps, NULL, "peak_bytes,start_bytes,end_bytes",
				 "210|30|210\n");
	view_text_expect_columns(&s, &view_memory_peak, NULL, "grouped_by,name,bytes,blocks",
				 "op|b|110|2\nop|a|100|1\n");
	fail_each(&s);
	small_close(&s);
}

/* The first total says what was there before; later ones outweigh the sum. */
static void totals(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	add(&s, 1, 100, (struct heap_row){ .address = 1 });
	add(&s, 2, -40, (struct heap_row){ .address = 7 });
	add(&s, 3, 10, (struct heap_row){ .address = 2, .allocated = 1070, .reserved = 4000 });
	add(&s, 4, 10, (struct heap_row){ .address = 3, .allocated = 1500, .reserved = 5000 });
	add(&s, 5, 1, (struct heap_row){ .address = 4, .peak = 9999, .available = 77 });
	small_freeze(&s);
	view_text_expect_columns(&s, &view_heaps, NULL,
				 "peak_bytes,peak_ns,start_bytes,end_bytes,reserved_peak_bytes,"
				 "unused_at_peak_bytes,lifetime_peak_bytes,available_bytes",
				 "1501|4|1000|1501|5000|3499|9999|77\n");
	fail_each(&s);
	small_close(&s);
}

static void step(struct small_model *s, int64_t number, int64_t start, int64_t end)
{
	builder_add_window(&s->b, &(struct window_row){ .step = builder_step(&s->b, number),
							.start_ns = start,
							.end_ns = end });
}

static void steps(void **state)
{
	struct small_model s;
	struct view_options second;

	(void)state;
	small_open(&s);
	step(&s, 1, 10, 20);
	step(&s, 2, 20, 30);
	step(&s, 3, 30, 40);
	add(&s, 5, 1000, (struct heap_row){ .address = 1 });
	add(&s, 12, 100, (struct heap_row){ .address = 2 });
	add(&s, 14, -100, (struct heap_row){ .address = 2 });
	add(&s, 16, 8, (struct heap_row){ .address = 3 });
	add(&s, 25, 8, (struct heap_row){ .address = 4 });
	add(&s, 35, -1000, (struct heap_row){ .address = 1 });
	small_freeze(&s);
	view_text_expect_columns(
		&s, &view_memory_steps, NULL,
		"step,start_bytes,peak_bytes,end_bytes,growth_bytes,allocations,allocated_bytes",
		"1|1000|1100|1008|8|2|108\n"
		"2|1008|1016|1016|8|1|8\n"
		"3|1016|1016|16|-1000|0|0\n");
	view_options_init(&second);
	second.step = 2;
	view_text_expect_columns(&s, &view_heaps, &second, "peak_bytes,peak_step", "1016|2\n");
	view_text_expect_columns(&s, &view_memory_steps, &second, "step", "2\n");
	fail_each(&s);
	small_close(&s);
}

/* Several heaps, the largest first; the parts of time are common to all. */
static void several(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	add(&s, 0, 10, (struct heap_row){ .allocator = builder_cstr(&s.b, "x") });
	add(&s, 2400, 20, (struct heap_row){ .allocator = builder_cstr(&s.b, "y") });
	add(&s, 1200, 5, (struct heap_row){ .allocator = builder_cstr(&s.b, "x") });
	small_freeze(&s);
	view_text_expect_columns(&s, &view_heaps, NULL, "allocator,peak_bytes,peak_ns",
				 "y|20|2400\nx|15|1200\n");
	fail_each(&s);
	small_close(&s);
}

static void hostile(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	add(&s, INT64_MIN + 1, INT64_MAX, (struct heap_row){ 0 });
	add(&s, INT64_MAX, INT64_MAX, (struct heap_row){ .allocated = INT64_MIN });
	add(&s, 0, INT64_MIN, (struct heap_row){ .reserved = INT64_MIN, .kind = HEAP_FREE });
	add(&s, 0, INT64_MIN, (struct heap_row){ .kind = HEAP_SEGMENT_FREE });
	add(&s, 0, INT64_MIN, (struct heap_row){ .kind = HEAP_ALLOC, .address = UINT64_MAX });
	add(&s, 1, 0, (struct heap_row){ .kind = 255, .fragmentation = -3 });
	step(&s, 1, INT64_MAX, INT64_MIN);
	step(&s, 2, INT64_MIN, INT64_MAX);
	small_freeze(&s);
	fail_each(&s);
	small_close(&s);
}

/* What TensorFlow 1 tells: op by op, and what allocators say. */
static void of_tensorflow(void **state)
{
	struct small_model s;
	op_step_id row;
	op_id op;

	(void)state;
	small_open(&s);
	op = named(&s, "net/a");
	row = builder_add_op_step(&s.b,
				  &(struct op_step_row){ .op = op, .step = builder_step(&s.b, 3) });
	builder_add_alloc(&s.b, &(struct alloc_row){ .op_step = row.v, .ts_ns = 20, .size = -64 });
	builder_add_alloc(&s.b, &(struct alloc_row){ .op_step = row.v, .ts_ns = 10, .size = 64 });
	builder_add_alloc(&s.b, &(struct alloc_row){ .op_step = row.v, .ts_ns = 15, .size = 36 });
	builder_add_memory(&s.b,
			   &(struct memory_row){ .op_step = row.v, .ts_ns = 17, .in_use = 500 });
	small_freeze(&s);
	view_text_expect_columns(&s, &view_heaps, NULL,
				 "allocator,peak_bytes,peak_step,end_bytes,allocations",
				 "(all of the device)|500|3|500|0\n-|100|3|36|2\n");
	view_text_expect_columns(&s, &view_memory_peak, NULL, "grouped_by,name,bytes,blocks",
				 "op|net/a|100|2\nscope|net|100|2\n");
	fail_each(&s);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_address),	 cmocka_unit_test(by_size),
		cmocka_unit_test(totals),	 cmocka_unit_test(steps),
		cmocka_unit_test(several),	 cmocka_unit_test(hostile),
		cmocka_unit_test(of_tensorflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
