/* model_test.c: builder, interning, freeze and the order of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "model/builder.h"

struct fixture {
	struct mem mem;
	struct ow_error err;
	struct model *m;
	struct builder b;
};

static void start(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	mem_init(&f->mem, 0);
	f->m = model_new(&f->mem, &f->err);
	assert_non_null(f->m);
	builder_init(&f->b, f->m, &f->err);
}

static void stop(struct fixture *f)
{
	model_free(f->m);
	assert_int_equal(atomic_load(&f->mem.used), 0);
}

static op_id add_op(struct builder *b, const char *name)
{
	return builder_new_op(
		b, &(struct op_row){ .name = builder_cstr(b, name), .type = builder_cstr(b, "T") });
}

static void interning(void **state)
{
	struct fixture f;
	int64_t dims[] = { 2, 3 };
	strset_id ab, ba;

	(void)state;
	start(&f);
	assert_int_equal(builder_cstr(&f.b, "x").v, builder_cstr(&f.b, "x").v);
	assert_int_not_equal(builder_cstr(&f.b, "x").v, builder_cstr(&f.b, "y").v);
	assert_int_equal(builder_cstr(&f.b, "").v, 0);
	assert_int_equal(builder_shape(&f.b, dims, 2).v, builder_shape(&f.b, dims, 2).v);
	assert_int_not_equal(builder_shape(&f.b, dims, 2).v, builder_shape(&f.b, dims, 1).v);
	assert_int_not_equal(builder_shape(&f.b, dims, 0).v, builder_shape(&f.b, NULL, -1).v);
	ab = builder_strset_add(&f.b, (strset_id){ 0 }, builder_cstr(&f.b, "a"));
	ab = builder_strset_add(&f.b, ab, builder_cstr(&f.b, "b"));
	ba = builder_strset_add(&f.b, (strset_id){ 0 }, builder_cstr(&f.b, "b"));
	ba = builder_strset_add(&f.b, ba, builder_cstr(&f.b, "a"));
	assert_int_equal(ab.v, ba.v);
	assert_int_equal(builder_strset_add(&f.b, ab, builder_cstr(&f.b, "b")).v, ab.v);
	stop(&f);
}

static uint32_t find_stack(const struct model *m, stack_id parent, frame_id frame)
{
	for (uint32_t i = 1; i < m->stack.count; i++)
		if (m->stack.parent[i].v == parent.v && m->stack.frame[i].v == frame.v)
			return i;
	return 0;
}

/* Equal stacks have one row, whether the row comes right behind its caller, elsewhere, or was added without a lookup. */
static void stacks_have_one_row(void **state)
{
	struct fixture f;
	uint32_t random = 1;

	(void)state;
	start(&f);
	for (int i = 0; i < 2000; i++) {
		stack_id stack = { 0 };

		for (int depth = 0; depth < 6; depth++) {
			frame_id frame = { 1 + (random = random * 1664525u + 1013904223u) % 5u };
			uint32_t want = find_stack(f.m, stack, frame), count = f.m->stack.count;

			if (!want && random % 7 == 0)
				builder_add_stack(&f.b, &(struct stack_row){ .parent = stack,
									     .frame = frame });
			stack = builder_stack(&f.b, stack, frame);
			assert_int_equal(stack.v, want ? want : count);
			assert_int_equal(f.m->stack.count, want ? count : count + 1);
		}
	}
	assert_int_equal(f.b.status, OW_OK);
	stop(&f);
}

/* Native frames differ by where they are; a frame without a module stays the same. */
static void frames_of_modules(void **state)
{
	struct fixture f;
	struct frame_row row = { .function = { 0 }, .line = 3 };
	frame_id plain, native;

	(void)state;
	start(&f);
	row.function = builder_cstr(&f.b, "main");
	plain = builder_frame(&f.b, &row);
	row.module = builder_cstr(&f.b, "a.out");
	native = builder_frame(&f.b, &row);
	assert_int_not_equal(plain.v, native.v);
	row.address = 0x1000;
	assert_int_not_equal(builder_frame(&f.b, &row).v, native.v);
	row.address = 0;
	row.flags = FRAME_KERNEL;
	assert_int_not_equal(builder_frame(&f.b, &row).v, native.v);
	row.flags = 0;
	assert_int_equal(builder_frame(&f.b, &row).v, native.v);
	row.module = (str_id){ 0 };
	assert_int_equal(builder_frame(&f.b, &row).v, plain.v);
	stop(&f);
}

static track_id add_thread(struct builder *b, int64_t tid)
{
	return builder_track(b, &(struct track_row){ .tid = tid, .kind = TRACK_HOST });
}

static void samples_come_by_track_and_time(void **state)
{
	static const struct {
		int track;
		int64_t ts, weight;
	} rows[] = { { 1, 30, 5 }, { 0, 20, 3 }, { 1, 10, 4 },		 { 0, 20, 6 },
		     { 0, 5, 1 },  { 1, 30, 7 }, { 1, TIME_UNKNOWN, 9 }, { 1, TIME_UNKNOWN, 8 } };
	static const int64_t weights[] = { 1, 3, 6, 9, 8, 4, 5, 7 };
	struct fixture f;
	track_id track[2];
	metric_id cycles;

	(void)state;
	start(&f);
	track[0] = add_thread(&f.b, 7);
	track[1] = add_thread(&f.b, 8);
	cycles = builder_metric(&f.b, STR("cycles"), STR("count"));
	assert_int_equal(builder_metric(&f.b, STR("cycles"), STR("count")).v, cycles.v);
	assert_int_not_equal(builder_metric(&f.b, STR("cycles"), STR("ns")).v, cycles.v);
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
		builder_add_sample(&f.b, &(struct sample_row){ .track = track[rows[i].track],
							       .ts_ns = rows[i].ts,
							       .weight = rows[i].weight,
							       .metric = cycles });
	assert_int_equal(model_freeze(&f.b), OW_OK);
	for (size_t i = 0; i < ARRAY_COUNT(weights); i++)
		assert_int_equal(f.m->sample.weight[i + 1], weights[i]);
	stop(&f);
}

static void rare_columns_appear_when_used(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	for (int i = 0; i < 100; i++)
		builder_add_event(&f.b, &(struct event_row){ .ts_ns = i });
	assert_null(f.m->event.depth);
	builder_add_event(&f.b, &(struct event_row){ .depth = 3 });
	assert_non_null(f.m->event.depth);
	for (int i = 0; i < 100; i++)
		builder_add_event(&f.b, &(struct event_row){ .ts_ns = i });
	assert_int_equal(f.m->event.depth[50], 0);
	assert_int_equal(f.m->event.depth[101], 3);
	assert_int_equal(f.m->event.depth[200], 0);
	assert_int_equal(f.m->event.ts_ns[0], 0); /* the nil row */
	stop(&f);
}

static int64_t requested_by(const struct model *m, uint32_t op_step)
{
	uint32_t first, count = model_memory_of(m, op_step, &first);
	int64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += m->memory.requested[first + i];
	return sum;
}

static void freeze_sorts_and_indexes(void **state)
{
	struct fixture f;
	op_id a, c;
	step_id five, one;
	op_step_id row;

	(void)state;
	start(&f);
	a = add_op(&f.b, "a");
	c = add_op(&f.b, "c");
	five = builder_step(&f.b, 5);
	one = builder_step(&f.b, 1);
	row = builder_add_op_step(&f.b,
				  &(struct op_step_row){ .op = c, .step = five, .cpu_ns = 4 });
	builder_add_memory(&f.b, &(struct memory_row){ .op_step = row.v, .requested = 40 });
	builder_add_op_step(&f.b, &(struct op_step_row){ .op = a, .step = five, .cpu_ns = 2 });
	row = builder_add_op_step(&f.b, &(struct op_step_row){ .op = a, .step = one, .cpu_ns = 1 });
	builder_add_memory(&f.b, &(struct memory_row){ .op_step = row.v, .requested = 10 });
	builder_add_op_step(&f.b, &(struct op_step_row){ .op = c, .step = one, .cpu_ns = 3 });
	builder_add_op_input(&f.b, &(struct op_input_row){ .name = f.m->op.name[a.v] });
	assert_int_equal(model_freeze(&f.b), OW_OK);
	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(f.m->op_step.cpu_ns[i], i);
	assert_int_equal(f.m->op.step_first[c.v], 3);
	assert_int_equal(f.m->op.step_count[c.v], 2);
	assert_int_equal(requested_by(f.m, 1), 10);
	assert_int_equal(requested_by(f.m, 2), 0);
	assert_int_equal(requested_by(f.m, 4), 40);
	assert_int_equal(f.m->op_input.src[1].v, a.v);
	stop(&f);
}

/* Where every row of op_step has one row of memory, no column says which; once one has more, all are told. */
static void one_row_of_memory_each_needs_no_index(void **state)
{
	struct fixture f;
	op_id a, c;
	step_id step;

	(void)state;
	start(&f);
	a = add_op(&f.b, "a");
	c = add_op(&f.b, "c");
	step = builder_step(&f.b, 1);
	for (uint32_t i = 1; i <= 2; i++) {
		op_step_id row = builder_add_op_step(
			&f.b, &(struct op_step_row){ .op = i == 1 ? c : a, .step = step });

		builder_add_memory(&f.b, &(struct memory_row){ .op_step = row.v, .requested = i });
	}
	assert_int_equal(model_freeze(&f.b), OW_OK);
	assert_null(f.m->op_step.memory_first);
	assert_int_equal(requested_by(f.m, 0), 0);
	assert_int_equal(requested_by(f.m, 1), 2);
	assert_int_equal(requested_by(f.m, 2), 1);
	model_unfreeze(f.m);
	builder_add_memory(&f.b, &(struct memory_row){ .op_step = 1, .requested = 30 });
	assert_int_equal(model_freeze(&f.b), OW_OK);
	assert_non_null(f.m->op_step.memory_first);
	assert_int_equal(requested_by(f.m, 1), 32);
	assert_int_equal(requested_by(f.m, 2), 1);
	stop(&f);
}

/* Lists of several devices, each in order but for some rows; equal times keep their order. */
static void freeze_puts_heaps_in_order_of_time(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	srand(3);
	for (int list = 0; list < 7; list++)
		for (int i = 0; i < 500; i++)
			builder_add_heap(&f.b, &(struct heap_row){
						       .ts_ns = i / 3 + (i % 50 ? 0 : rand() % 90),
						       .size = list * 500 + i,
						       .address = (uint64_t)(list * 500 + i) });
	builder_add_heap(&f.b, &(struct heap_row){ .ts_ns = TIME_UNKNOWN, .kind = HEAP_EXISTING });
	assert_int_equal(model_freeze(&f.b), OW_OK);
	assert_int_equal(f.m->heap.count, 3502);
	assert_int_equal(f.m->heap.kind[1], HEAP_EXISTING);
	for (uint32_t i = 2; i < f.m->heap.count; i++) {
		const struct heap_table *t = &f.m->heap;

		assert_true(t->ts_ns[i] > t->ts_ns[i - 1] ||
			    (t->ts_ns[i] == t->ts_ns[i - 1] && t->size[i] > t->size[i - 1]));
		assert_int_equal(t->size[i], t->address[i]);
	}
	stop(&f);
}

static void names_are_in_byte_order(void **state)
{
	struct fixture f;
	const op_id *order;
	char name[128];

	(void)state;
	start(&f);
	srand(7);
	for (int i = 0; i < 3000; i++) {
		int len = snprintf(name, sizeof(name), "scope/%s/layer_%d",
				   rand() % 2 ? "a" : "abcdefghijk", rand() % 400);

		len += snprintf(name + len, sizeof(name) - (size_t)len, "%.*s", rand() % 9,
				"xyzxyzxyz");
		if (rand() % 10 == 0)
			name[rand() % len] = (char)0xc3;
		if (!builder_find_op(&f.b, builder_cstr(&f.b, name)).v)
			add_op(&f.b, name);
	}
	add_op(&f.b, "");
	builder_new_op(&f.b, &(struct op_row){ .name = builder_str(&f.b, STR("scope\0")) });
	builder_new_op(&f.b, &(struct op_row){ .name = builder_str(&f.b, STR("scope")) });
	assert_int_equal(model_freeze(&f.b), OW_OK);
	order = model_ops_by_name(f.m, &f.err);
	assert_non_null(order);
	for (uint32_t i = 1; i + 1 < f.m->op.count; i++)
		assert_true(str_cmp(model_str(f.m, f.m->op.name[order[i - 1].v]),
				    model_str(f.m, f.m->op.name[order[i].v])) < 0);
	stop(&f);
}

/* Every allocation fails once: a status, nothing leaked. */
static void allocation_failures(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 2000; n++) {
		struct ow_error err = { 0 };
		struct builder b;
		struct model *m;
		struct mem mem;
		bool done = false;

		mem_init(&mem, 0);
		mem_fail_after(n, false);
		m = model_new(&mem, &err);
		if (m) {
			builder_init(&b, m, &err);
			for (int i = 0; i < 50; i++) {
				char name[16];

				snprintf(name, sizeof(name), "n%d", i % 40);
				if (!builder_find_op(&b, builder_cstr(&b, name)).v)
					add_op(&b, name);
				builder_add_event(&b, &(struct event_row){ .depth = (uint16_t)i });
				builder_add_op_step(
					&b, &(struct op_step_row){ .op = { (uint32_t)(1 + i % 7) },
								   .step = builder_step(&b, -i) });
				builder_add_heap(&b, &(struct heap_row){ .ts_ns = -i % 9 });
				builder_note(&b, NOTE_INFO, 0, "note %d", i);
			}
			done = b.status == OW_OK && model_freeze(&b) == OW_OK &&
			       model_ops_by_name(m, &err);
		}
		model_free(m);
		mem_fail_after(0, false);
		assert_int_equal(atomic_load(&mem.used), 0);
		if (done)
			return;
		assert_int_equal(err.status, OW_E_NO_MEMORY);
	}
	fail_msg("never enough allocations");
}

/* Asking again for room that is there changes nothing: many small files would grow without end. */
static void room_is_kept(void **state)
{
	struct fixture f;
	uint32_t cap;

	(void)state;
	start(&f);
	assert_true(builder_grow(&f.b, TABLE_event, 100));
	cap = f.m->event.cap;
	for (int i = 0; i < 50; i++)
		assert_true(builder_grow(&f.b, TABLE_event, 3));
	assert_int_equal(f.m->event.cap, cap);
	assert_true(builder_grow(&f.b, TABLE_event, cap));
	assert_true(f.m->event.cap > cap);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_is_kept),
		cmocka_unit_test(interning),
		cmocka_unit_test(frames_of_modules),
		cmocka_unit_test(samples_come_by_track_and_time),
		cmocka_unit_test(rare_columns_appear_when_used),
		cmocka_unit_test(freeze_sorts_and_indexes),
		cmocka_unit_test(one_row_of_memory_each_needs_no_index),
		cmocka_unit_test(freeze_puts_heaps_in_order_of_time),
		cmocka_unit_test(names_are_in_byte_order),
		cmocka_unit_test(stacks_have_one_row),
		cmocka_unit_test(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
