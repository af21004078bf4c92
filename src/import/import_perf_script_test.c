/* import_perf_script_test.c: heads and frames of `perf script` in their many forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "import/perf_line.h"
#include "support/stack_model.h"

static void heads(void **state)
{
	struct perf_head h;

	(void)state;
	assert_true(perf_head_parse(STR("my prog: x 12/13 [001] 5.000000001: 77 cycles:ppp:"), &h));
	assert_true(str_eq(h.comm, STR("my prog: x")));
	assert_true(str_eq(h.event, STR("cycles:ppp")));
	assert_int_equal(h.pid, 12);
	assert_int_equal(h.tid, 13);
	assert_int_equal(h.cpu, 1);
	assert_int_equal(h.ts_ns, 5000000001);
	assert_int_equal(h.period, 77);
	assert_true(perf_head_parse(STR("dd 9 5.25: cpu-clock:"), &h));
	assert_int_equal(h.pid, -1);
	assert_int_equal(h.ts_ns, 5250000000);
	assert_int_equal(h.period, 0);
	assert_true(perf_head_parse(STR("node 31912 cpu-clock: "), &h));
	assert_int_equal(h.ts_ns, INT64_MIN);
	assert_false(perf_head_parse(STR("a sentence of 3 words"), &h));
	assert_false(perf_head_parse(STR(""), &h));
}

static void frames(void **state)
{
	struct perf_frame f;

	(void)state;
	assert_true(perf_frame_parse(STR("\tffff8 f(int, char (*)(x))+0x1f (/lib/a b.so)"), &f));
	assert_int_equal(f.address, 0xffff8);
	assert_true(str_eq(f.symbol, STR("f(int, char (*)(x))")));
	assert_true(str_eq(f.module, STR("/lib/a b.so")));
	assert_true(perf_frame_parse(STR(" 1 [unknown] ([unknown])"), &f));
	assert_int_equal(f.symbol.len + f.module.len, 0);
	assert_true(perf_frame_parse(STR(" 1 g (/x (deleted))"), &f));
	assert_true(str_eq(f.symbol, STR("g")));
	assert_true(str_eq(f.module, STR("/x (deleted)")));
	assert_false(perf_frame_parse(STR(" xyz g (/x)"), &f));
}

static const char text[] = "# header\n"
			   "my prog 12/13 [001] 100.000001: 1000 cpu-clock:\n"
			   "\tff8 leaf+0x12 ([kernel.kallsyms])\n"
			   "\t401000 a->b (/tmp/perf-12.map)\n"
			   "\t402000 [unknown] (/usr/bin/x)\n"
			   "  x.c:12\n"
			   "\n"
			   "my prog 12/13 [001] 100.000000: 5 instructions:\r\n"
			   "\t1 f (/a)\r\n"
			   "nonsense\n"
			   "dd 9 [000] 7.5: PERF_RECORD_EXIT(1:2):\n"
			   "            dd  77 [000]  3.500000: 4 cycles:  ff8 do_it ([k])\n";

static void samples(void **state)
{
	struct small_model s;

	(void)state;
	stack_open(&s, "perf_script", text, sizeof(text) - 1);
	stack_expect(&s, "my prog|12|13|100000000000|instructions 5|f@/a\n"
			 "my prog|12|13|100000001000|cpu-clock 1000|402000:12@/usr/bin/x;"
			 "a@/tmp/perf-12.map;b@/tmp/perf-12.map;leaf@[kernel.kallsyms]\n"
			 "dd|-1|77|3500000000|cycles 4|do_it@[k]\n");
	assert_true(stack_noted(&s, "neither a sample nor a frame"));
	assert_true(stack_noted(&s, "no sample"));
	assert_int_equal(s.m->metric.is_default[1], 1);
	assert_string_equal(model_str(s.m, s.m->metric.unit[1]).ptr, "ns");
	assert_string_equal(model_str(s.m, s.m->metric.unit[2]).ptr, "count");
	small_close(&s);
	stack_survives("perf_script", text, sizeof(text) - 1);
}

static void nothing(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	assert_int_equal(stack_load(&s, "perf_script", "# a\nwords\n", 10), OW_E_FORMAT);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads),
		cmocka_unit_test(frames),
		cmocka_unit_test(samples),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
