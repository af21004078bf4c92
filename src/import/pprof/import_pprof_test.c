/* import_pprof_test.c: profile.proto made by hand: several values, inlined functions, labels, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/stack_model.h"
#include "wire/protobuf/pb.h"
#include "wire/protobuf/pb_write.h"

static void number(struct buf *to, uint32_t field, uint64_t value)
{
	pb_add_varint(to, PB_TAG(field, PB_VARINT));
	pb_add_varint(to, value);
}

static void text(struct buf *to, const char *s)
{
	size_t mark = pb_begin(to, 6);

	buf_puts(to, s);
	pb_end(to, mark);
}

static void pair(struct buf *to, uint32_t field, uint64_t a, uint64_t b)
{
	size_t mark = pb_begin(to, field);

	number(to, 1, a);
	number(to, 2, b);
	pb_end(to, mark);
}

/* Location 5 has g inlined into f; location 9 is an address only. */
static void make(struct buf *to)
{
	static const char *const strings[] = { "",    "samples", "count", "cpu",    "microseconds",
					       "f",   "g",	 "a.go",  "/bin/x", "thread",
					       "main" };
	size_t mark, sub;

	pair(to, 1, 1, 2);
	pair(to, 1, 3, 4);
	mark = pb_begin(to, 2);
	number(to, 1, 5);
	number(to, 1, 9);
	sub = pb_begin(to, 2);
	pb_add_varint(to, 2);
	pb_add_varint(to, 30);
	pb_end(to, sub);
	sub = pb_begin(to, 3);
	number(to, 1, 9);
	number(to, 2, 10);
	pb_end(to, sub);
	pb_end(to, mark);
	mark = pb_begin(to, 3);
	number(to, 1, 1);
	number(to, 5, 8);
	pb_end(to, mark);
	mark = pb_begin(to, 4);
	number(to, 1, 5);
	pair(to, 4, 2, 12);
	pair(to, 4, 1, 3);
	pb_end(to, mark);
	mark = pb_begin(to, 4);
	number(to, 1, 9);
	number(to, 2, 1);
	number(to, 3, 0x1234);
	pb_end(to, mark);
	for (uint64_t i = 1; i <= 2; i++) {
		mark = pb_begin(to, 5);
		number(to, 1, i);
		number(to, 2, 4 + i);
		number(to, 4, 7);
		pb_end(to, mark);
	}
	for (size_t i = 0; i < ARRAY_COUNT(strings); i++)
		text(to, strings[i]);
}

static void samples(void **state)
{
	struct small_model s;
	struct mem mem;
	struct buf bytes;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&bytes, &mem);
	make(&bytes);
	stack_open(&s, "pprof", bytes.ptr, bytes.len);
	stack_expect(&s, "|0|0|-|samples 2|1234@/bin/x;f:3;g:12\n"
			 "|0|0|-|cpu 30000|1234@/bin/x;f:3;g:12\n");
	assert_int_equal(s.m->metric.is_default[2], 1);
	assert_string_equal(model_str(s.m, s.m->metric.unit[2]).ptr, "ns");
	assert_string_equal(model_str(s.m, s.m->sample.label[1]).ptr, "thread=main");
	small_close(&s);
	stack_survives("pprof", bytes.ptr, bytes.len);
	buf_release(&bytes);
}

/* One function per location, in order from the leaf; the names are strings 3…, then the two expressions. */
static void make_chain(struct buf *to, const char *const *names, uint64_t count, const char *drop,
		       const char *keep)
{
	size_t mark;

	pair(to, 1, 1, 2);
	mark = pb_begin(to, 2);
	for (uint64_t i = 1; i <= count; i++)
		number(to, 1, i);
	number(to, 2, 1);
	pb_end(to, mark);
	for (uint64_t i = 1; i <= count; i++) {
		mark = pb_begin(to, 4);
		number(to, 1, i);
		pair(to, 4, i, 0);
		pb_end(to, mark);
		mark = pb_begin(to, 5);
		number(to, 1, i);
		number(to, 2, i + 2);
		pb_end(to, mark);
	}
	text(to, "");
	text(to, "samples");
	text(to, "count");
	for (uint64_t i = 0; i < count; i++)
		text(to, names[i]);
	text(to, drop);
	text(to, keep);
	number(to, 7, count + 3);
	number(to, 8, count + 4);
}

static void expect_chain(const char *const *names, uint64_t count, const char *drop,
			 const char *keep, const char *want)
{
	struct small_model s;
	struct mem mem;
	struct buf bytes;

	mem_init(&mem, 0);
	buf_init(&bytes, &mem);
	make_chain(&bytes, names, count, drop, keep);
	stack_open(&s, "pprof", bytes.ptr, bytes.len);
	stack_expect(&s, want);
	small_close(&s);
	stack_survives("pprof", bytes.ptr, bytes.len);
	buf_release(&bytes);
}

/* What matches goes with all that it calls, but parameters do not count, and something is left. */
static void dropped_frames(void **state)
{
	static const char *const alloc[] = { "slow_path", "malloc(unsigned long)", "f", "main" };
	static const char *const odd[] = { "g", "(anonymous namespace)::x(int)",
					   "A::operator()(int)", "main" };

	(void)state;
	expect_chain(alloc, 4, "malloc|free", "", "|0|0|-|samples 1|main;f\n");
	expect_chain(alloc, 4, "mall", "",
		     "|0|0|-|samples 1|main;f;malloc(unsigned long);slow_path\n");
	expect_chain(alloc, 4, "malloc|main", "mal.*",
		     "|0|0|-|samples 1|main;f;malloc(unsigned long);slow_path\n");
	expect_chain(alloc, 4, ".*", "",
		     "|0|0|-|samples 1|main;f;malloc(unsigned long);slow_path\n");
	expect_chain(odd, 4, "\\(anonymous namespace\\)::x", "",
		     "|0|0|-|samples 1|main;A::operator()(int)\n");
	expect_chain(odd, 4, "A::operator\\(\\)", "", "|0|0|-|samples 1|main\n");
	expect_chain(odd, 4, "(", "",
		     "|0|0|-|samples 1|main;A::operator()(int);(anonymous namespace)::x(int);g\n");
}

static void recognition(void **state)
{
	struct sniff sniff = { 0 };
	struct mem mem;
	struct buf bytes;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&bytes, &mem);
	make(&bytes);
	sniff.head = buf_str(&bytes);
	sniff.size = bytes.len;
	assert_true(import_pprof.sniff(&sniff) > 50);
	/* a type of no name, a sample, a location and strings; and nothing but a type of no name */
	sniff.head = str_make("\n\0\22\4\n\0\22\0\42\2\10\1\62\0\62\1f", 17);
	sniff.size = sniff.head.len;
	assert_int_equal(import_pprof.sniff(&sniff), 60);
	sniff.head.len = 2;
	sniff.size = 2;
	assert_int_equal(import_pprof.sniff(&sniff), 0);
	sniff.head = STR("\n\5\n\1a\22\0");
	sniff.size = sniff.head.len;
	assert_int_equal(import_pprof.sniff(&sniff), 0);
	buf_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples),
		cmocka_unit_test(dropped_frames),
		cmocka_unit_test(recognition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
