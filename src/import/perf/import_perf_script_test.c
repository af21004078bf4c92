/* import_perf_script_test.c: samples and frames of `perf script` in their many forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/stack_model.h"

/* Expects that a text of one sample becomes `want`. */
static void assert_sample(const char *sample, const char *want)
{
	struct small_model s;

	stack_open(&s, "perf_script", sample, strlen(sample));
	stack_expect(&s, want);
	small_close(&s);
}

static void heads(void **state)
{
	struct small_model s;

	(void)state;
	assert_sample("my prog: x 12/13 [001] 5.000000001: 77 cycles:ppp:\n",
		      "my prog: x|12|13|5000000001|cycles:ppp 77|\n");
	assert_sample("dd 9 5.25: cpu-clock:\n", "dd|-1|9|5250000000|cpu-clock 1|\n");
	assert_sample("node 31912 cpu-clock: \n", "node|-1|31912|-|cpu-clock 1|\n");
	assert_sample("a sentence of 3 words\nnode 31912 cpu-clock: \n",
		      "node|-1|31912|-|cpu-clock 1|\n");
	stack_open(&s, "perf_script", "a 1/2 [001] 5.0: x:\n", 20);
	assert_int_equal(s.m->sample.cpu[1], 2);
	small_close(&s);
}

static void frames(void **state)
{
	(void)state;
	assert_sample("a 1 x:\n\tffff8 f(int, char (*)(x))+0x1f (/lib/a b.so)\n",
		      "a|-1|1|-|x 1|f(int, char (*)(x))@/lib/a b.so\n");
	assert_sample("a 1 x:\n 1 [unknown] ([unknown])\n", "a|-1|1|-|x 1|1\n");
	assert_sample("a 1 x:\n 1 g (/x (deleted))\n", "a|-1|1|-|x 1|g@/x (deleted)\n");
	assert_sample("a 1 x:\n xyz g (/x)\n 2 h (/y)\n", "a|-1|1|-|x 1|h@/y\n");
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
	assert_true(stack_noted(&s, "not samples"));
	assert_int_equal(s.m->metric.is_default[1], 1);
	assert_string_equal(model_str(s.m, s.m->metric.unit[1]).ptr, "ns");
	assert_string_equal(model_str(s.m, s.m->metric.unit[2]).ptr, "count");
	small_close(&s);
	stack_survives("perf_script", text, sizeof(text) - 1);
}

/* Some scripts and editors take the blanks away; and a frame may have no name at all, which is another thing than
 * one that perf calls unknown. */
static void frames_without_indent(void **state)
{
	static const char plain[] = "java 19983 cycles:\n"
				    "ffffffff8103d0ca write_msr ([kernel.kallsyms])\n"
				    "7f1e2215d058  (/lib/libc.so)\n"
				    "401000 [unknown] (/usr/bin/x)\n"
				    "\n"
				    "dead 77 [000] 3.500000: 4 cycles:  ff8 do_it ([k])\n"
				    "dead 77 [000] 3.600000: 4 cycles:  ff8 do_it ([k])\n";
	struct input in;
	struct small_model s;

	(void)state;
	stack_open(&s, "perf_script", plain, sizeof(plain) - 1);
	stack_expect(&s, "java|-1|19983|-|cycles 1|401000@/usr/bin/x;7f1e2215d058@/lib/libc.so;"
			 "write_msr@[kernel.kallsyms]\n"
			 "dead|-1|77|3500000000|cycles 4|do_it@[k]\n"
			 "dead|-1|77|3600000000|cycles 4|do_it@[k]\n");
	for (uint32_t i = 1; i < s.m->frame.count; i++)
		assert_int_equal((s.m->frame.flags[i] & FRAME_NAMELESS) != 0,
				 s.m->frame.address[i] == 0x7f1e2215d058);
	assert_int_equal(input_from_memory(&in, &s.mem, "x", plain, sizeof(plain) - 1, &s.err),
			 OW_OK);
	assert_ptr_equal(importer_recognise(&in, &s.err), &import_perf_script);
	input_close(&in);
	small_close(&s);
	stack_survives("perf_script", plain, sizeof(plain) - 1);
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
		cmocka_unit_test(heads),   cmocka_unit_test(frames),
		cmocka_unit_test(samples), cmocka_unit_test(frames_without_indent),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
