/*
 * import_perf_data_test.c: recordings made by hand, in both byte orders, as a file and from a pipe: samples
 * before what they need, mappings that change, several events, damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/perf_writer.h"
#include "support/stack_model.h"

static void put_map(struct perf_recording *r, uint64_t start, const char *name, uint64_t time)
{
	perf_begin(r, PERF_MMAP, 2);
	perf_put(r, 7, 4);
	perf_put(r, 7, 4);
	perf_put(r, start, 8);
	perf_put(r, 0x1000, 8);
	perf_put(r, 0, 8);
	perf_put_text(r, name);
	perf_put_id(r, time);
	perf_end(r);
}

static void put_sample(struct perf_recording *r, uint64_t time, uint64_t id, uint64_t period,
		       const uint64_t *chain, size_t count)
{
	perf_begin(r, PERF_SAMPLE, 2);
	perf_put(r, chain[0], 8);
	perf_put(r, 7, 4);
	perf_put(r, 8, 4);
	perf_put(r, time, 8);
	perf_put(r, id, 8);
	perf_put(r, 3, 4);
	perf_put(r, 0, 4);
	perf_put(r, period, 8);
	perf_put(r, count, 8);
	for (size_t i = 0; i < count; i++)
		perf_put(r, chain[i], 8);
	perf_end(r);
}

static void put_records(struct perf_recording *r)
{
	static const uint64_t chain[] = { (uint64_t)-128, 0xffff0010, (uint64_t)-512, 0x1010,
					  0x2000 };

	perf_begin(r, PERF_COMM, 0);
	perf_put(r, 7, 4);
	perf_put(r, 8, 4);
	perf_put_text(r, "worker");
	perf_put_id(r, 1);
	perf_end(r);
	put_sample(r, 50, 100, 5, chain, 5); /* before what it is in is known */
	put_map(r, 0x1000, "/bin/prog", 2);
	put_map(r, 0x1000, "/bin/other", 60);
	put_sample(r, 70, 101, 6, chain + 2, 2);
	perf_begin(r, PERF_KSYMBOL, 0);
	perf_put(r, 0xffff0000, 8);
	perf_put(r, 0x100, 4);
	perf_put(r, 0, 4);
	perf_put_text(r, "bpf_prog_x");
	perf_put_id(r, 0);
	perf_end(r);
	perf_begin(r, PERF_LOST_SAMPLES, 0);
	perf_put(r, 9, 8);
	perf_put_id(r, 80);
	perf_end(r);
}

static void make_pipe(struct perf_recording *r, bool swap)
{
	perf_put_pipe(r, swap);
	perf_put_two_events(r);
	perf_begin(r, PERF_EVENT_UPDATE, 0);
	perf_put(r, 2, 8);
	perf_put(r, 100, 8);
	perf_put_text(r, "cycles:u");
	perf_end(r);
	put_records(r);
}

static void make_file(struct perf_recording *r)
{
	size_t attrs = 104, ids = attrs + 2 * (PERF_TEST_ATTR + 16), data = ids + 16, len;

	memset(r, 0, sizeof(*r));
	memcpy(r->bytes, "PERFILE2", 8);
	r->len = 8;
	perf_put(r, 104, 8);
	perf_put(r, PERF_TEST_ATTR + 16, 8);
	perf_put(r, attrs, 8);
	perf_put(r, 2 * (PERF_TEST_ATTR + 16), 8);
	perf_put(r, data, 8);
	perf_put(r, 0, 8); /* size of the data: below */
	r->len = attrs;
	for (uint64_t i = 0; i < 2; i++) {
		perf_put_attr(r, (uint32_t)i, i);
		perf_put(r, ids + 8 * i, 8);
		perf_put(r, 8, 8);
	}
	perf_put(r, 100, 8);
	perf_put(r, 101, 8);
	put_records(r);
	len = r->len;
	r->len = 48;
	perf_put(r, len - data, 8);
	r->len = len;
}

static const char *const from_pipe =
	"worker|7|8|50|cycles:u 5|2000@/bin/prog;1010@/bin/prog;bpf_prog_x\n"
	"worker|7|8|70|task-clock 6|1010@/bin/other\n";

static void expect(const struct perf_recording *r, const char *want)
{
	struct small_model s;

	stack_open(&s, "perf_data", r->bytes, r->len);
	stack_expect(&s, want);
	assert_true(stack_noted(&s, "perf lost"));
	assert_int_equal(s.m->metric.is_default[1], 1);
	assert_string_equal(model_str(s.m, s.m->metric.unit[2]).ptr, "ns");
	assert_int_equal(s.m->sample.cpu[1], 4);
	small_close(&s);
}

static void both_orders(void **state)
{
	struct perf_recording r;

	(void)state;
	make_pipe(&r, false);
	expect(&r, from_pipe);
	stack_survives("perf_data", r.bytes, r.len);
	make_pipe(&r, true);
	expect(&r, from_pipe);
	stack_survives("perf_data", r.bytes, r.len);
}

static void file(void **state)
{
	struct perf_recording r;

	(void)state;
	make_file(&r);
	expect(&r, "worker|7|8|50|cycles 5|2000@/bin/prog;1010@/bin/prog;bpf_prog_x\n"
		   "worker|7|8|70|task-clock 6|1010@/bin/other\n");
	stack_survives("perf_data", r.bytes, r.len);
	memset(r.bytes + 48, 0, 8); /* the recorder was killed */
	expect(&r, "worker|7|8|50|cycles 5|2000@/bin/prog;1010@/bin/prog;bpf_prog_x\n"
		   "worker|7|8|70|task-clock 6|1010@/bin/other\n");
}

/* Text that perf printed into the pipe, and a record of no size. */
static void rest_is_left_out(void **state)
{
	struct small_model s;
	struct perf_recording r;

	(void)state;
	make_pipe(&r, false);
	memcpy(r.bytes + r.len, "[ perf record: Woken up 1 times ]\n", 34);
	stack_open(&s, "perf_data", r.bytes, r.len + 34);
	stack_expect(&s, from_pipe);
	assert_true(stack_noted(&s, "no record begins there"));
	small_close(&s);
}

static void layouts(void **state)
{
	static const unsigned char body[256] = { [8] = 3 };
	struct perf_attr attr = { .sample_type = 1 << 4 | 1 << 5, .read_format = 8 | 4 | 16 };
	struct perf_bytes b = { body, body + sizeof(body), false, false };
	const unsigned char *chain = NULL;
	uint64_t count;

	(void)state;
	perf_attr_lay_out(&attr);
	assert_int_equal(attr.layout.size, 0);
	/* a group of none, then a chain of three */
	assert_true(perf_sample_rest(&attr, b, &chain, &count));
	assert_int_equal(count, 3);
	assert_ptr_equal(chain, body + 16);
	b.end = body + 16;
	assert_false(perf_sample_rest(&attr, b, &chain, &count));
	attr.sample_type = 1 << 16 | 1 << 1 | 1 << 8;
	perf_attr_lay_out(&attr);
	assert_int_equal(attr.layout.id, 0);
	assert_int_equal(attr.layout.tid, 8);
	assert_int_equal(attr.layout.period, 16);
	assert_int_equal(attr.layout.ip, PERF_ABSENT);
}

/* Stacks that need an unwinder: it says what to do. */
static void copied_stacks(void **state)
{
	struct small_model s;
	struct perf_recording r;

	(void)state;
	perf_put_pipe(&r, false);
	r.sample_type = PERF_TEST_SAMPLE | 1 << 13;
	perf_put_two_events(&r);
	put_records(&r);
	stack_open(&s, "perf_data", r.bytes, r.len);
	assert_true(stack_noted(&s, "open the output of 'perf script'"));
	small_close(&s);
	make_pipe(&r, false);
	stack_open(&s, "perf_data", r.bytes, r.len);
	assert_false(stack_noted(&s, "perf script"));
	small_close(&s);
}

/* More kinds of events than there are numbers for: it says so. */
static void too_many_events(void **state)
{
	static struct perf_recording r;
	struct small_model s;
	struct buf text;
	size_t head;

	(void)state;
	perf_put_pipe(&r, false);
	head = r.len;
	perf_put_two_events(&r);
	small_open(&s);
	buf_init(&text, &s.mem);
	buf_add(&text, r.bytes, head);
	for (int i = 0; i < 32768; i++)
		buf_add(&text, r.bytes + head, r.len - head);
	assert_int_equal(stack_load(&s, "perf_data", text.ptr, text.len), OW_E_LIMIT);
	assert_true(str_has(str_from(s.err.text), STR("more than 65535 events")));
	buf_release(&text);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_orders),	    cmocka_unit_test(file),
		cmocka_unit_test(rest_is_left_out), cmocka_unit_test(layouts),
		cmocka_unit_test(too_many_events),  cmocka_unit_test(copied_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
