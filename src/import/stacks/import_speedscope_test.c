/* import_speedscope_test.c: sampled and evented profiles, units, keys in any order, and what people's files break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/stack_model.h"

#define LOAD(s, text) stack_open(s, "speedscope", text, sizeof(text) - 1)
#define FRAMES                                                                                     \
	"\"shared\":{\"frames\":[{\"name\":\"a\",\"file\":\"a.py\",\"line\":3,\"col\":1},{"        \
	"\"name\":\"b\\u0021\"}]}"

static void sampled(void **state)
{
	static const char text[] = "{\"exporter\":\"x\",\"profiles\":[{\"weights\":[1.5,0.25,2],"
				   "\"samples\":[[0,1],[0],[]],"
				   "\"endValue\":3,\"startValue\":0.5,\"unit\":\"milliseconds\","
				   "\"name\":\"t\",\"more\":{},"
				   "\"type\":\"sampled\"}]," FRAMES "}";
	struct small_model s;

	(void)state;
	LOAD(&s, text);
	stack_expect(&s, "t|0|1|500000|time 1500000|a:3;b!\n"
			 "t|0|1|2000000|time 250000|a:3\n"
			 "t|0|1|2250000|time 2000000|\n");
	assert_string_equal(model_str(s.m, s.m->source.producer[1]).ptr, "x");
	assert_int_equal(s.m->note.count, 1);
	small_close(&s);
	stack_survives("speedscope", text, sizeof(text) - 1);
}

static void evented(void **state)
{
	static const char text[] =
		"{" FRAMES ",\"profiles\":[{\"type\":\"evented\",\"name\":\"e\",\"unit\":"
		"\"seconds\",\"startValue\":0,"
		"\"endValue\":10,\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":1},{\"at\":2,"
		"\"frame\":1,\"type\":\"O\"},"
		"{\"type\":\"C\",\"frame\":1,\"at\":4.5},{\"type\":\"C\",\"frame\":0,\"at\":5},"
		"{\"type\":\"O\",\"frame\":1,\"at\":8}]}]}";
	struct small_model s;

	(void)state;
	LOAD(&s, text);
	stack_expect(&s, "e|0|1|1000000000|time 1000000000|a:3\n"
			 "e|0|1|2000000000|time 2500000000|a:3;b!\n"
			 "e|0|1|4500000000|time 500000000|a:3\n"
			 "e|0|1|8000000000|time 2000000000|b!\n");
	assert_true(stack_noted(&s, "without an end"));
	small_close(&s);
	stack_survives("speedscope", text, sizeof(text) - 1);
}

static void several_units(void **state)
{
	struct small_model s;

	(void)state;
	LOAD(&s,
	     "{\"activeProfileIndex\":1," FRAMES ",\"profiles\":[{\"type\":\"sampled\",\"unit\":"
	     "\"none\",\"samples\":[[1]],\"weights\":[7]},"
	     "{\"type\":\"sampled\",\"unit\":\"bytes\",\"samples\":[[0]],\"weights\":[4096]}]}");
	stack_expect(&s, "|0|1|-|samples 7|b!\n|0|2|-|bytes 4096|a:3\n");
	assert_int_equal(s.m->metric.is_default[1], 0);
	assert_int_equal(s.m->metric.is_default[2], 1);
	small_close(&s);
}

static void broken(void **state)
{
	struct small_model s;

	(void)state;
	LOAD(&s,
	     "{" FRAMES ",\"profiles\":[{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"events\":["
	     "{\"type\":\"O\",\"frame\":0,\"at\":1},{\"type\":\"O\",\"frame\":1,\"at\":3},"
	     "{\"type\":\"C\",\"frame\":0,\"at\":5},{\"type\":\"C\",\"frame\":1,\"at\":4},"
	     "{\"type\":\"O\",\"frame\":9,\"at\":6},{\"type\":\"C\",\"frame\":9,\"at\":7}]}]}");
	stack_expect(&s, "|0|1|1|time 2|a:3\n|0|1|3|time 2|a:3;b!\n|0|1|6|time 1|\n");
	assert_true(stack_noted(&s, "not the innermost"));
	assert_true(stack_noted(&s, "earlier than the event before"));
	assert_true(stack_noted(&s, "not in the list of frames"));
	small_close(&s);
	LOAD(&s, "{" FRAMES
		 ",\"profiles\":[{\"unit\":\"bytes\",\"samples\":[[0],[1]],\"weights\":[1]}]}");
	stack_expect(&s, "|0|1|-|bytes 1|a:3\n");
	assert_true(stack_noted(&s, "without a partner"));
	small_close(&s);
	/* killed while it wrote */
	LOAD(&s,
	     "{" FRAMES ",\"profiles\":[{\"unit\":\"none\",\"weights\":[1,2],\"samples\":[[0],[1");
	stack_expect(&s, "|0|1|-|samples 1|a:3\n");
	assert_true(stack_noted(&s, "ends or is damaged here"));
	small_close(&s);
	small_open(&s);
	assert_int_equal(stack_load(&s, "speedscope", "{" FRAMES "}", sizeof("{" FRAMES "}") - 1),
			 OW_E_FORMAT);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sampled),
		cmocka_unit_test(evented),
		cmocka_unit_test(several_units),
		cmocka_unit_test(broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
