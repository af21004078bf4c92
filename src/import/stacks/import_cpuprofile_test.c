/* import_cpuprofile_test.c: V8's profiles in both forms, with and without times, and broken ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/stack_model.h"

#define LOAD(s, text) stack_open(s, "cpuprofile", text, sizeof(text) - 1)
#define FRAME(name, line)                                                                          \
	"\"callFrame\":{\"functionName\":\"" name                                                  \
	"\",\"scriptId\":\"1\",\"url\":\"file:///a.js\",\"lineNumber\":" #line                     \
	",\"columnNumber\":0}"
#define NODES                                                                                      \
	"\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\",\"url\":\"\","            \
	"\"lineNumber\":-1},\"hitCount\":0,\"children\":[2,4]},{\"id\":2," FRAME(                  \
		"main",                                                                            \
		9) ","                                                                             \
		   "\"hitCount\":1,\"children\":[3],\"positionTicks\":[{\"line\":10,\"ticks\":1}]" \
		   "},"                                                                            \
		   "{\"id\":3," FRAME(                                                             \
			   "", 19) ",\"hitCount\":2},{\"id\":4,\"callFrame\":{\"functionName\":"   \
				   "\"(idle)\",\"url\":\"\",\"lineNumber\":-1},\"hitCount\":1}]"

static void listed(void **state)
{
	static const char text[] =
		"{" NODES ",\"startTime\":1000,\"endTime\":2000,\"samples\":[2,3,3,4],"
		"\"timeDeltas\":[100,200,100,50]}";
	struct small_model s;

	(void)state;
	LOAD(&s, text);
	stack_expect(&s, "JavaScript|0|0|1100000|time 200000|main:10\n"
			 "JavaScript|0|0|1300000|time 100000|main:10;(anonymous):20\n"
			 "JavaScript|0|0|1400000|time 50000|main:10;(anonymous):20\n");
	assert_int_equal(s.m->note.count, 2); /* one sample of an idle thread is left out */
	small_close(&s);
	stack_survives("cpuprofile", text, sizeof(text) - 1);
}

/* The end is the time of the last sample, as V8 writes it; and one time more than samples, as node 10 does. */
static void last_sample(void **state)
{
	struct small_model s;

	(void)state;
	LOAD(&s, "{" NODES ",\"startTime\":1000,\"endTime\":1300,\"samples\":[2,3],"
		 "\"timeDeltas\":[100,200]}");
	stack_expect(&s, "JavaScript|0|0|1100000|time 200000|main:10\n"
			 "JavaScript|0|0|1300000|time 200000|main:10;(anonymous):20\n");
	small_close(&s);
	LOAD(&s, "{" NODES ",\"startTime\":1000,\"endTime\":9000,\"samples\":[2,3],"
		 "\"timeDeltas\":[100,200,70]}");
	stack_expect(&s, "JavaScript|0|0|1100000|time 200000|main:10\n"
			 "JavaScript|0|0|1300000|time 70000|main:10;(anonymous):20\n");
	assert_int_equal(s.m->note.count, 1);
	small_close(&s);
}

static void nested(void **state)
{
	static const char text[] =
		"{\"typeId\":\"CPU\",\"head\":{\"functionName\":\"(root)\",\"url\":\"\","
		"\"lineNumber\":0,\"id\":1,"
		"\"children\":[{\"functionName\":\"f\",\"url\":\"a.js\",\"lineNumber\":3,\"id\":2,"
		"\"hitCount\":2,"
		"\"children\":[{\"functionName\":\"g\",\"url\":\"a.js\",\"lineNumber\":5,\"id\":3,"
		"\"hitCount\":1,"
		"\"children\":[]}]}]},\"startTime\":12.5,\"endTime\":13,\"samples\":[2,3,2],"
		"\"timestamps\":[5000,5100,5300]}";
	struct small_model s;

	(void)state;
	LOAD(&s, text);
	stack_expect(&s, "JavaScript|0|0|5000000|time 100000|f:3\n"
			 "JavaScript|0|0|5100000|time 200000|f:3;g:5\n"
			 "JavaScript|0|0|5300000|time 200000|f:3\n");
	small_close(&s);
	stack_survives("cpuprofile", text, sizeof(text) - 1);
}

static void hits_only(void **state)
{
	struct small_model s;

	(void)state;
	LOAD(&s, "{" NODES "}");
	stack_expect(&s, "JavaScript|0|0|-|samples 1|main:10\n"
			 "JavaScript|0|0|-|samples 2|main:10;(anonymous):20\n");
	small_close(&s);
}

static void broken(void **state)
{
	struct small_model s;

	(void)state;
	/* parents in a circle, a sample nowhere, time that goes back, one time too few */
	LOAD(&s, "{\"nodes\":[{\"id\":1," FRAME("a", 0) ",\"parent\":2},{\"id\":2," FRAME(
			 "b", 1) ",\"children\":[1],\"parent\":1}],\"samples\":[1,7,2,2],"
				 "\"timeDeltas\":[10,-5,20]}");
	assert_int_equal(s.m->sample.count, 3);
	assert_true(stack_noted(&s, "does not have"));
	assert_true(stack_noted(&s, "earlier than the sample before"));
	assert_true(stack_noted(&s, "4 samples but 3 times"));
	small_close(&s);
	LOAD(&s, "{" NODES ",\"samples\":[2,3],\"timeDeltas\":[1,2");
	assert_int_equal(s.m->sample.count, 3);
	assert_true(stack_noted(&s, "ends or is damaged here"));
	small_close(&s);
	small_open(&s);
	assert_int_equal(stack_load(&s, "cpuprofile", "{\"nodes\":[]}", 12), OW_E_FORMAT);
	small_close(&s);
}

/* Of the sampling heap profiler: nodes inside each other, lines from 0, bytes instead of hits. */
static void heap(void **state)
{
	static const char text[] =
		"{\"head\":{\"callFrame\":{\"functionName\":\"(root)\",\"url\":"
		"\"\",\"lineNumber\":-1},"
		"\"selfSize\":0,\"id\":1,\"children\":[{" FRAME(
			"f", 2) ",\"selfSize\":96,\"id\":2,\"children\":["
				"{" FRAME("g", 4) ",\"selfSize\":8,\"id\":3,"
						  "\"children\":[]}]}]},\"samples\":["
						  "{\"size\":48,\"nodeId\":2,"
						  "\"ordinal\":1},{\"size\":48,"
						  "\"nodeId\":2,\"ordinal\":2},{"
						  "\"size\":8,\"nodeId\":3},"
						  "{\"size\":8,\"nodeId\":9}]}";
	struct small_model s;

	(void)state;
	LOAD(&s, text);
	stack_expect(&s, "JavaScript|0|0|-|bytes 96|f:3\n"
			 "JavaScript|0|0|-|bytes 8|f:3;g:5\n");
	assert_true(s.m->metric.is_default[1]);
	assert_int_equal(s.m->note.count, 1);
	small_close(&s);
	stack_survives("cpuprofile", text, sizeof(text) - 1);
}

/* Calls inside each other as deep as nobody calls. */
static void deep(void **state)
{
	struct small_model s;
	struct buf text;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	buf_puts(&text, "{\"head\":");
	for (int i = 0; i < 20000; i++)
		buf_printf(&text, "{\"functionName\":\"f\",\"id\":%d,\"hitCount\":1,\"children\":[",
			   i);
	for (int i = 0; i < 20000; i++)
		buf_puts(&text, "]}");
	buf_puts(&text, "}");
	stack_open(&s, "cpuprofile", text.ptr, text.len);
	assert_int_equal(s.m->sample.count, 20001);
	small_close(&s);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listed), cmocka_unit_test(last_sample),
		cmocka_unit_test(nested), cmocka_unit_test(hits_only),
		cmocka_unit_test(broken), cmocka_unit_test(heap),
		cmocka_unit_test(deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
