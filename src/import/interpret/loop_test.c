/* loop_test.c: loops in lists of calls are found with their begins; without a sure loop there is none. */
#include "import/interpret/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define MS 1000000
#define CALLS 20000

static const struct loop_rules usual = { .least = 8,
					 .least_alone = 16,
					 .shortest_ns = MS / 10,
					 .spread = 0.7,
					 .spread_alone = 0.25,
					 .covered = 1.0 / 3 };

struct written {
	struct loop_call list[CALLS];
	size_t count;
	int64_t now;
	uint64_t seed;
	struct mem mem;
	struct arena arena;
	struct loop loop;
};

static void begin(struct written *w)
{
	w->count = 0;
	w->now = 1000 * MS;
	w->seed = 7;
	mem_init(&w->mem, 0);
	arena_init(&w->arena, &w->mem);
}

static uint32_t draw(struct written *w, uint32_t below)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(w->seed >> 33) % below;
}

/* A call, `pause` after the one before. */
static void call(struct written *w, uint32_t key, int64_t pause, int64_t dur)
{
	assert_true(w->count < CALLS);
	w->now += pause;
	w->list[w->count++] = (struct loop_call){ w->now, w->now + dur, key };
	w->now += dur;
}

static uint32_t find(struct written *w, const struct loop_rules *rules)
{
	struct loop_calls calls = { w->list, w->count, 32 };

	assert_true(loop_find(&w->arena, &calls, rules, &w->loop));
	return w->loop.steps;
}

static void end(struct written *w)
{
	arena_release(&w->arena);
}

static struct written w;

static void a_loop_after_a_warm_up(void **state)
{
	(void)state;
	begin(&w);
	for (uint32_t i = 0; i < 50; i++)
		call(&w, 10 + draw(&w, 10), MS / 10, MS / 10);
	for (uint32_t i = 0; i < 40; i++) {
		call(&w, 1, 3 * MS, MS);
		call(&w, 2, MS / 10, 5 * MS);
		call(&w, 2, MS / 10, 5 * MS);
		call(&w, 3, MS / 10, MS);
		if (i % 10 == 9)
			call(&w, 4, MS / 10, MS);
	}
	call(&w, 20, 0, MS);
	assert_int_equal(find(&w, &usual), 39);
	assert_int_equal(w.loop.key, 1); /* after the longest pause */
	assert_int_equal(w.loop.length, 4);
	assert_int_equal(w.loop.median_ns, 15 * MS + 3 * MS / 10);
	for (uint32_t i = 0; i < 39; i++)
		assert_int_equal(w.loop.usual[i], i % 10 != 9);
	end(&w);
}

static void layers_are_not_steps(void **state)
{
	(void)state;
	begin(&w);
	for (uint32_t i = 0; i < 20; i++) {
		call(&w, 1, MS, MS);
		for (uint32_t layer = 0; layer < 24; layer++) {
			call(&w, 2, 0, MS);
			call(&w, 3, 0, MS);
		}
		call(&w, 4, 0, 2 * MS);
	}
	assert_in_range(find(&w, &usual), 19, 20);
	assert_int_equal(w.loop.key, 1);
	assert_int_equal(w.loop.median_ns, 52 * MS);
	end(&w);
}

/* Many steps, and now and then something between them. */
static void steps_are_not_epochs(void **state)
{
	(void)state;
	begin(&w);
	for (uint32_t epoch = 0; epoch < 10; epoch++) {
		for (uint32_t i = 0; i < 200; i++) {
			call(&w, 1, MS, MS);
			call(&w, 2, 0, 2 * MS);
		}
		call(&w, 5, 0, 3 * MS);
	}
	assert_in_range(find(&w, &usual), 1999, 2000);
	assert_int_equal(w.loop.median_ns, 4 * MS);
	end(&w);
}

/* Calls that only start work follow each other at once; the time is in the one that waits. */
static void calls_that_start_work_are_not_steps(void **state)
{
	(void)state;
	begin(&w);
	for (uint32_t i = 0; i < 20; i++) {
		for (uint32_t k = 0; k < 100; k++)
			call(&w, 1, 0, MS / 5);
		call(&w, 2, 0, 900 * MS);
	}
	assert_in_range(find(&w, &usual), 19, 20);
	assert_int_equal(w.loop.median_ns, 920 * MS);
	end(&w);
}

static void random_calls_are_not_a_loop(void **state)
{
	(void)state;
	for (uint32_t keys = 2; keys <= 12; keys += 5) {
		begin(&w);
		for (uint32_t i = 0; i < 5000; i++)
			call(&w, draw(&w, keys), MS, MS);
		assert_int_equal(find(&w, &usual), 0);
		end(&w);
	}
}

/* A server: each request is the same, but they come when they come. */
static void random_times_are_not_a_loop(void **state)
{
	(void)state;
	begin(&w);
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t pause = 1;

		while (draw(&w, 50))
			pause++;
		call(&w, 1, (int64_t)pause * MS, MS / 10);
		call(&w, 2, MS / 10, MS / 10);
	}
	assert_int_equal(find(&w, &usual), 0);
	end(&w);
}

static void one_call_has_to_be_regular(void **state)
{
	(void)state;
	begin(&w);
	for (uint32_t i = 0; i < 100; i++)
		call(&w, 1, i % 2 ? 40 * MS : 2 * MS, MS);
	assert_int_equal(find(&w, &usual), 0);
	end(&w);
	begin(&w);
	for (uint32_t i = 0; i < 100; i++)
		call(&w, 1, 40 * MS + (int64_t)draw(&w, 4 * MS), MS);
	assert_int_equal(find(&w, &usual), 99);
	end(&w);
}

static void too_few_too_short_or_a_small_part(void **state)
{
	struct loop_rules long_ones = usual;

	(void)state;
	begin(&w);
	for (uint32_t i = 0; i < 7; i++) {
		call(&w, 1, MS, MS);
		call(&w, 2, MS, MS);
	}
	assert_int_equal(find(&w, &usual), 0);
	for (uint32_t i = 0; i < 7; i++) {
		call(&w, 1, MS, MS);
		call(&w, 2, MS, MS);
	}
	assert_int_equal(find(&w, &usual), 13);
	long_ones.shortest_ns = 5 * MS;
	assert_int_equal(find(&w, &long_ones), 0);
	call(&w, 9, 1000 * MS, MS);
	assert_int_equal(find(&w, &usual), 0);
	end(&w);
}

static void without_memory(void **state)
{
	struct loop_calls calls = { w.list, 14, 32 };

	(void)state;
	begin(&w);
	mem_init(&w.mem, 64);
	assert_false(loop_find(&w.arena, &calls, &usual, &w.loop));
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_after_a_warm_up),
		cmocka_unit_test(layers_are_not_steps),
		cmocka_unit_test(steps_are_not_epochs),
		cmocka_unit_test(calls_that_start_work_are_not_steps),
		cmocka_unit_test(random_calls_are_not_a_loop),
		cmocka_unit_test(random_times_are_not_a_loop),
		cmocka_unit_test(one_call_has_to_be_regular),
		cmocka_unit_test(too_few_too_short_or_a_small_part),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
