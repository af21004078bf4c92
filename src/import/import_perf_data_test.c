/*
 * import_perf_data_test.c: recordings made by hand, in both byte orders, as a file and from a pipe: samples
 * before what they need, mappings that change, several events, damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "import/perf_record.h"
#include "support/stack_model.h"

#define SAMPLE_TYPE (1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8)
#define ATTR 64

struct recording {
	unsigned char bytes[4096];
	size_t len, record;
	bool swap;
};

static void put(struct recording *r, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		r->bytes[r->len + (r->swap ? size - 1 - i : i)] = (unsigned char)(value >> 8 * i);
	r->len += size;
}

static void put_text(struct recording *r, const char *text)
{
	size_t len = (strlen(text) + 8) & ~(size_t)7;

	memset(r->bytes + r->len, 0, len);
	memcpy(r->bytes + r->len, text, strlen(text));
	r->len += len;
}

static void begin(struct recording *r, uint32_t type, uint16_t misc)
{
	r->record = r->len;
	put(r, type, 4);
	put(r, misc, 2);
	put(r, 0, 2);
}

static void end(struct recording *r)
{
	size_t len = r->len;

	r->len = r->record + 6;
	put(r, len - r->record, 2);
	r->len = len;
}

/* Frequency and ids at the end of records, as bit fields of that byte order. */
static void put_attr(struct recording *r, uint32_t type, uint64_t config)
{
	size_t start = r->len;

	put(r, type, 4);
	put(r, ATTR, 4);
	put(r, config, 8);
	put(r, 1000, 8);
	put(r, SAMPLE_TYPE, 8);
	put(r, 0, 8);
	memset(r->bytes + r->len, 0, ATTR - 40);
	r->bytes[r->len + 2] = r->swap ? 0x20 : 0x04; /* bit 18 */
	r->len = start + ATTR;
}

static void put_id(struct recording *r, uint64_t time)
{
	put(r, 7, 4);
	put(r, 8, 4);
	put(r, time, 8);
	put(r, 100, 8); /* id */
	put(r, 0, 8);	/* cpu */
}

static void put_map(struct recording *r, uint64_t start, const char *name, uint64_t time)
{
	begin(r, PERF_MMAP, 2);
	put(r, 7, 4);
	put(r, 7, 4);
	put(r, start, 8);
	put(r, 0x1000, 8);
	put(r, 0, 8);
	put_text(r, name);
	put_id(r, time);
	end(r);
}

static void put_sample(struct recording *r, uint64_t time, uint64_t id, uint64_t period,
		       const uint64_t *chain, size_t count)
{
	begin(r, PERF_SAMPLE, 2);
	put(r, chain[0], 8);
	put(r, 7, 4);
	put(r, 8, 4);
	put(r, time, 8);
	put(r, id, 8);
	put(r, 3, 4);
	put(r, 0, 4);
	put(r, period, 8);
	put(r, count, 8);
	for (size_t i = 0; i < count; i++)
		put(r, chain[i], 8);
	end(r);
}

static void put_records(struct recording *r)
{
	static const uint64_t chain[] = { (uint64_t)-128, 0xffff0010, (uint64_t)-512, 0x1010,
					  0x2000 };

	begin(r, PERF_COMM, 0);
	put(r, 7, 4);
	put(r, 8, 4);
	put_text(r, "worker");
	put_id(r, 1);
	end(r);
	put_sample(r, 50, 100, 5, chain, 5); /* before what it is in is known */
	put_map(r, 0x1000, "/bin/prog", 2);
	put_map(r, 0x1000, "/bin/other", 60);
	put_sample(r, 70, 101, 6, chain + 2, 2);
	begin(r, PERF_KSYMBOL, 0);
	put(r, 0xffff0000, 8);
	put(r, 0x100, 4);
	put(r, 0, 4);
	put_text(r, "bpf_prog_x");
	put_id(r, 0);
	end(r);
	begin(r, PERF_LOST_SAMPLES, 0);
	put(r, 9, 8);
	put_id(r, 80);
	end(r);
}

static void make_pipe(struct recording *r, bool swap)
{
	memset(r, 0, sizeof(*r));
	r->swap = swap;
	memcpy(r->bytes, swap ? "2ELIFREP" : "PERFILE2", 8);
	r->len = 8;
	put(r, 16, 8);
	for (uint64_t i = 0; i < 2; i++) {
		begin(r, PERF_HEADER_ATTR, 0);
		put_attr(r, (uint32_t)i, i);
		put(r, 100 + i, 8);
		end(r);
	}
	begin(r, PERF_EVENT_UPDATE, 0);
	put(r, 2, 8);
	put(r, 100, 8);
	put_text(r, "cycles:u");
	end(r);
	put_records(r);
}

static void make_file(struct recording *r)
{
	size_t attrs = 104, ids = attrs + 2 * (ATTR + 16), data = ids + 16, len;

	memset(r, 0, sizeof(*r));
	memcpy(r->bytes, "PERFILE2", 8);
	r->len = 8;
	put(r, 104, 8);
	put(r, ATTR + 16, 8);
	put(r, attrs, 8);
	put(r, 2 * (ATTR + 16), 8);
	put(r, data, 8);
	put(r, 0, 8); /* size of the data: below */
	r->len = attrs;
	for (uint64_t i = 0; i < 2; i++) {
		put_attr(r, (uint32_t)i, i);
		put(r, ids + 8 * i, 8);
		put(r, 8, 8);
	}
	put(r, 100, 8);
	put(r, 101, 8);
	put_records(r);
	len = r->len;
	r->len = 48;
	put(r, len - data, 8);
	r->len = len;
}

static const char *const from_pipe =
	"worker|7|8|50|cycles:u 5|2000@/bin/prog;1010@/bin/prog;bpf_prog_x\n"
	"worker|7|8|70|task-clock 6|1010@/bin/other\n";

static void expect(const struct recording *r, const char *want)
{
	struct small_model s;

	stack_open(&s, "perf_data", r->bytes, r->len);
	stack_expect(&s, want);
	assert_true(stack_noted(&s, "perf itself lost"));
	assert_int_equal(s.m->metric.is_default[1], 1);
	assert_string_equal(model_str(s.m, s.m->metric.unit[2]).ptr, "ns");
	assert_int_equal(s.m->sample.cpu[1], 4);
	small_close(&s);
}

static void both_orders(void **state)
{
	struct recording r;

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
	struct recording r;

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
	struct recording r;

	(void)state;
	make_pipe(&r, false);
	memcpy(r.bytes + r.len, "[ perf record: Woken up 1 times ]\n", 34);
	stack_open(&s, "perf_data", r.bytes, r.len + 34);
	stack_expect(&s, from_pipe);
	assert_true(stack_noted(&s, "no record begins here"));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_orders),
		cmocka_unit_test(file),
		cmocka_unit_test(rest_is_left_out),
		cmocka_unit_test(layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
