/*
 * perf_resolve_test.c: many samples of threads that move between processors, whose records lie in the file by processor, while what
 * is mapped changes. Each must become the row that it is, and rows must come by thread and time without anybody sorting them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/perf_writer.h"
#include "support/stack_model.h"

#define SAMPLES 600
#define CHANGE 45 /* samples between two changes */
#define PLAIN (1 << SAMPLE_IP | 1 << SAMPLE_TID | 1 << SAMPLE_TIME)
#define RICH (PLAIN | 1 << SAMPLE_ID | 1 << SAMPLE_CPU | 1 << SAMPLE_PERIOD)
#define UNTIMED (PLAIN & ~(1 << SAMPLE_TIME))

struct truth {
	uint32_t count;
	struct {
		uint32_t tid, cpu, event, round;
	} samples[SAMPLES];
};

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

/* Threads 7, 8 and 9 stay where they are for a while. Of the second processor records come late. */
static void make_truth(struct truth *t, uint32_t count, uint32_t seed)
{
	uint32_t tid = 7, cpu = 0;

	t->count = count;
	for (uint32_t i = 0; i < count; i++) {
		tid = next(&seed) % 8 ? tid : 7 + next(&seed) % 3;
		cpu = next(&seed) % 16 ? cpu : next(&seed) % 3;
		t->samples[i].tid = tid;
		t->samples[i].cpu = cpu;
		t->samples[i].event = next(&seed) % 2;
		t->samples[i].round = (i + 25 * cpu) / 64;
	}
}

static uint64_t time_of(uint32_t sample)
{
	return 1000 + 10 * (uint64_t)sample;
}

static uint32_t pid_of(uint32_t tid)
{
	return tid == 9 ? 9 : 7;
}

static void put_end(struct perf_recording *r, uint32_t tid, uint64_t time)
{
	perf_put(r, pid_of(tid), 4);
	perf_put(r, tid, 4);
	if (r->sample_type & 1 << SAMPLE_TIME)
		perf_put(r, time, 8);
	if (r->sample_type & 1 << SAMPLE_ID)
		perf_put(r, 100, 8);
	if (r->sample_type & 1 << SAMPLE_CPU)
		perf_put(r, 0, 8);
	perf_end(r);
}

static void put_map_at(struct perf_recording *r, uint32_t pid, uint64_t start, const char *name,
		       uint64_t time)
{
	perf_begin(r, PERF_MMAP, 2);
	perf_put(r, pid, 4);
	perf_put(r, pid, 4);
	perf_put(r, start, 8);
	perf_put(r, 0x1000, 8);
	perf_put(r, 0, 8);
	perf_put_text(r, name);
	put_end(r, pid, time);
}

static void put_map(struct perf_recording *r, uint32_t pid, const char *name, uint64_t time)
{
	put_map_at(r, pid, 0x1000, name, time);
}

static void put_sample(struct perf_recording *r, const struct truth *t, uint32_t i)
{
	perf_begin(r, PERF_SAMPLE, 2);
	perf_put(r, 0x1010, 8);
	perf_put(r, pid_of(t->samples[i].tid), 4);
	perf_put(r, t->samples[i].tid, 4);
	if (r->sample_type & 1 << SAMPLE_TIME)
		perf_put(r, time_of(i), 8);
	if (r->sample_type & 1 << SAMPLE_ID)
		perf_put(r, 100 + t->samples[i].event, 8);
	if (r->sample_type & 1 << SAMPLE_CPU) {
		perf_put(r, t->samples[i].cpu, 4);
		perf_put(r, 0, 4);
	}
	if (r->sample_type & 1 << SAMPLE_PERIOD)
		perf_put(r, 5000 + i, 8);
	perf_end(r);
}

/* By round and processor; changes at the end. */
static void put_all(struct perf_recording *r, const struct truth *t, uint64_t type, bool swap)
{
	char name[16];

	perf_put_pipe(r, swap);
	r->sample_type = type;
	if (type == RICH) {
		perf_put_two_events(r);
	} else {
		perf_begin(r, PERF_HEADER_ATTR, 0);
		perf_put_attr(r, 0, 0);
		perf_end(r);
	}
	for (uint32_t round = 0; round <= t->count / 64 + 2; round++)
		for (uint32_t cpu = 0; cpu < 3; cpu++)
			for (uint32_t i = 0; i < t->count; i++)
				if (t->samples[i].round == round && t->samples[i].cpu == cpu)
					put_sample(r, t, i);
	put_map(r, 9, "lib", 1);
	for (uint32_t i = 0; i < t->count; i += CHANGE) {
		snprintf(name, sizeof(name), "m%u", i);
		put_map(r, 7, name, time_of(i));
	}
}

static void check_row(const struct small_model *s, const struct truth *t, uint32_t row,
		      uint64_t type, uint8_t *seen)
{
	const struct model *m = s->m;
	uint32_t i = (uint32_t)(m->sample.ts_ns[row] - 1000) / 10;
	uint32_t stack = m->sample.stack[row].v;
	bool rich = type == RICH;
	char name[16] = "lib";

	assert_true(i < t->count && m->sample.ts_ns[row] == (int64_t)time_of(i));
	assert_false(seen[i]);
	seen[i] = 1;
	if (t->samples[i].tid != 9)
		snprintf(name, sizeof(name), "m%u", i / CHANGE * CHANGE);
	assert_string_equal(model_str(m, COLUMN_GET(m->frame.module, m->stack.frame[stack].v)).ptr,
			    name);
	assert_int_equal(m->stack.parent[stack].v, 0);
	assert_int_equal(m->track.tid[m->sample.track[row].v], t->samples[i].tid);
	assert_int_equal(m->sample.weight[row], rich ? 5000 + i : 1000);
	assert_int_equal(COLUMN_GET(m->sample.cpu, row), rich ? t->samples[i].cpu + 1 : 0);
	assert_string_equal(model_str(m, m->metric.name[m->sample.metric[row].v]).ptr,
			    rich && t->samples[i].event ? "task-clock" : "cycles");
}

static void check(const struct perf_recording *r, const struct truth *t)
{
	const struct sample_table *rows;
	uint8_t seen[SAMPLES] = { 0 };
	struct small_model s;

	small_open(&s);
	assert_int_equal(stack_load(&s, "perf_data", r->bytes, r->len), OW_OK);
	rows = &s.m->sample;
	assert_int_equal(rows->count, t->count + 1);
	for (uint32_t row = 1; row < rows->count; row++) {
		check_row(&s, t, row, r->sample_type, seen);
		if (row == 1)
			continue;
		assert_true(rows->track[row - 1].v <= rows->track[row].v);
		if (rows->track[row - 1].v == rows->track[row].v)
			assert_true(rows->ts_ns[row - 1] < rows->ts_ns[row]);
	}
	small_close(&s);
}

static void every_row(void **state)
{
	struct perf_recording r;
	struct truth t;

	(void)state;
	for (uint32_t seed = 1; seed <= 24; seed++) {
		make_truth(&t, SAMPLES, seed);
		put_all(&r, &t, seed % 2 ? PLAIN : RICH, seed % 3 == 0);
		check(&r, &t);
	}
}

static void survives(void **state)
{
	struct perf_recording r;
	struct truth t;

	(void)state;
	make_truth(&t, 120, 5);
	put_all(&r, &t, RICH, false);
	stack_survives("perf_data", r.bytes, r.len);
	put_all(&r, &t, PLAIN, true);
	stack_survives("perf_data", r.bytes, r.len);
}

/* Without times: as in the file, and everything has happened already. */
static void untimed(void **state)
{
	struct perf_recording r;
	struct small_model s;
	struct truth t;

	(void)state;
	make_truth(&t, 4, 1);
	put_all(&r, &t, UNTIMED, false);
	stack_open(&s, "perf_data", r.bytes, r.len);
	stack_expect(&s, ":unknown|9|9|-|cycles 1000|1010@lib\n"
			 ":unknown|7|7|-|cycles 1000|1010@m0\n"
			 ":unknown|7|8|-|cycles 1000|1010@m0\n"
			 ":unknown|7|8|-|cycles 1000|1010@m0\n");
	small_close(&s);
}

/* The second event says how much its samples stand for, the first does not. */
static void some_weigh(void **state)
{
	struct perf_recording r;
	struct small_model s;

	(void)state;
	perf_put_pipe(&r, false);
	for (uint64_t i = 0; i < 2; i++) {
		r.sample_type = PLAIN | 1 << SAMPLE_IDENTIFIER | (i ? 1 << SAMPLE_PERIOD : 0);
		perf_begin(&r, PERF_HEADER_ATTR, 0);
		perf_put_attr(&r, 0, i);
		perf_put(&r, 100 + i, 8);
		perf_end(&r);
	}
	for (uint64_t i = 0; i < 4; i++) {
		perf_begin(&r, PERF_SAMPLE, 2);
		perf_put(&r, 100 + (i == 2), 8);
		perf_put(&r, 0x1010 + i % 2, 8);
		perf_put(&r, 7, 4);
		perf_put(&r, 7, 4);
		perf_put(&r, 100 * i, 8);
		if (i == 2)
			perf_put(&r, 42, 8);
		perf_end(&r);
	}
	stack_open(&s, "perf_data", r.bytes, r.len);
	stack_expect(&s, ":unknown|7|7|0|cycles 1000|0\n"
			 ":unknown|7|7|100|cycles 1000|0\n"
			 ":unknown|7|7|200|instructions 42|0\n"
			 ":unknown|7|7|300|cycles 1000|0\n");
	small_close(&s);
	stack_survives("perf_data", r.bytes, r.len);
}

/* Until a program runs, its process is in the call that started it, of the one before. */
static void exec(void **state)
{
	static const struct {
		uint64_t time, address;
	} samples[] = { { 10, 0x1010 }, { 25, 0x1010 }, { 40, 0x5010 }, { 50, 0x1010 } };
	struct perf_recording r;
	struct small_model s;

	(void)state;
	perf_put_pipe(&r, false);
	r.sample_type = PLAIN;
	perf_begin(&r, PERF_HEADER_ATTR, 0);
	perf_put_attr(&r, 0, 0);
	perf_end(&r);
	put_map_at(&r, 7, 0x1000, "old", 1);
	perf_begin(&r, PERF_COMM, 1 << 13);
	perf_put(&r, 7, 4);
	perf_put(&r, 7, 4);
	perf_put_text(&r, "next");
	put_end(&r, 7, 20);
	put_map_at(&r, 7, 0x5000, "new", 30);
	put_map_at(&r, 7, 0x1000, "over", 45);
	for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
		perf_begin(&r, PERF_SAMPLE, 2);
		perf_put(&r, samples[i].address, 8);
		perf_put(&r, 7, 4);
		perf_put(&r, 7, 4);
		perf_put(&r, samples[i].time, 8);
		perf_end(&r);
	}
	stack_open(&s, "perf_data", r.bytes, r.len);
	stack_expect(&s, ":unknown|7|7|10|cycles 1000|1010@old\n"
			 "next|7|7|25|cycles 1000|1010@old\n"
			 "next|7|7|40|cycles 1000|5010@new\n"
			 "next|7|7|50|cycles 1000|1010@over\n");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),  cmocka_unit_test(survives), cmocka_unit_test(untimed),
		cmocka_unit_test(some_weigh), cmocka_unit_test(exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
