/*
 * import_firefox_test.c: one small profile of the Firefox Profiler in the older and the newer form, what is damaged in others, markers,
 * counters, several processes, and names from the files of this machine. tests/property/firefox_test.py compares the versions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/stack_model.h"
#include "wire/elf/elf_symbols.h"

#include <link.h>
#include <unistd.h>

#define LOAD(s, text) stack_open(s, "firefox", text, sizeof(text) - 1)
#define META(more)                                                                                 \
	"\"meta\":{\"startTime\":1000.5,\"interval\":1,\"product\":\"P\",\"processType\":0,"       \
	"\"categories\":[{\"name\":\"Other\",\"color\":\"grey\"},{\"name\":\"JS\",\"color\":"      \
	"\"yellow\"}]" more "}"
#define TABLES                                                                                     \
	"\"stringArray\":[\"main\",\"0x10\",\"a.js\",\"GC\",\"tick\"],"                            \
	"\"frameTable\":{\"func\":[0,1],\"address\":[-1,16],\"line\":[7,null],"                    \
	"\"category\":[null,1]},"                                                                  \
	"\"funcTable\":{\"name\":[0,1],\"resource\":[-1,0],\"fileName\":[2,null],"                 \
	"\"lineNumber\":[5,null]},"                                                                \
	"\"resourceTable\":{\"lib\":[0],\"name\":[0]},"
#define LIBS "\"libs\":[{\"name\":\"x.so\",\"path\":\"/none/x.so\",\"codeId\":\"0a1B\"}]"

static void inlined_tables(void **state)
{
	static const char text[] = "{" META(
		",\"preprocessedProfileVersion\":47") "," LIBS
						      ",\"threads\":[{\"name\":\"t\",\"pid\":\"12."
						      "1\",\"tid\":13,\"processName\":\"p\"," TABLES
						      "\"stackTable\":{\"prefix\":[null,0],"
						      "\"frame\":[0,1]},"
						      "\"samples\":{\"stack\":[1,0,null],\"time\":["
						      "0.25,1.000001,2],\"weight\":[1,2,1],"
						      "\"weightType\":\"samples\","
						      "\"threadCPUDelta\":[5,6,0]},"
						      "\"nativeAllocations\":{\"stack\":[0],"
						      "\"time\":[1],\"weight\":[-64],"
						      "\"weightType\":"
						      "\"bytes\"}}]}";
	struct small_model s;

	(void)state;
	LOAD(&s, text);
	stack_expect(&s, "t|12|13|1000750000|samples 1|main:7;10@/none/x.so\n"
			 "t|12|13|1001500000|native allocations -64|main:7\n"
			 "t|12|13|1001500001|samples 2|main:7\n"
			 "t|12|13|1001500001|cpu 6000|main:7\n"
			 "t|12|13|1002500000|samples 1|\n");
	assert_true(stack_noted(&s, "functions have no name"));
	assert_string_equal(model_str(s.m, s.m->source.producer[1]).ptr, "P");
	assert_string_equal(model_str(s.m, s.m->sample.label[1]).ptr, "category=JS");
	assert_string_equal(model_str(s.m, s.m->sample.label[3]).ptr, "category=Other");
	small_close(&s);
	stack_survives("firefox", text, sizeof(text) - 1);
}

/* What is shared comes behind what refers to it. */
static void shared_tables(void **state)
{
	static const char text[] =
		"{\"threads\":[{\"name\":\"t\",\"pid\":\"1\",\"tid\":\"one\","
		"\"samples\":{\"stack\":[1,0],\"timeDeltas\":[0.25,0.5],\"weight\":[1.5,2],"
		"\"weightType\":\"tracing-ms\"}}],\"shared\":{" TABLES
		"\"stackTable\":{\"prefixOffset\":[0,1],\"frame\":[0,1]}}," LIBS
		"," META(",\"preprocessedProfileVersion\":66") "}";
	struct small_model s;

	(void)state;
	LOAD(&s, text);
	assert_int_equal(s.m->sample.count, 3);
	assert_int_equal(s.m->sample.ts_ns[1], 1000750000);
	assert_int_equal(s.m->sample.ts_ns[2], 1001250000);
	assert_int_equal(s.m->sample.weight[1], 1500000);
	assert_true(s.m->track.tid[s.m->sample.track[1].v] < INT32_MIN);
	small_close(&s);
	stack_survives("firefox", text, sizeof(text) - 1);
}

static const char rows[] = "{" META(
	"") ",\"libs\":[{\"name\":\"x.so\",\"start\":4096,\"end\":8192}],\"threads\":[{"
	    "\"name\":\"t\",\"pid\":1,\"tid\":2,"
	    "\"stringTable\":[\"f (http://h:80/x.js:12:3)\",\"0x1010\",\"g (in "
	    "y.so)\",\"GC\",\"l\"],"
	    "\"frameTable\":{\"data\":[[0],[1,false,0,null,null,null,1],[2],[4,true,0,null,9]],"
	    "\"schema\":{\"location\":0,\"relevantForJS\":1,\"innerWindowID\":2,\"implementation\":"
	    "3,"
	    "\"line\":4,\"column\":5,\"category\":6}},"
	    "\"stackTable\":{\"schema\":{\"prefix\":0,\"frame\":1},\"data\":[[null,3],[0,0],[1,1],["
	    "0,2]]},"
	    "\"samples\":{\"schema\":{\"stack\":0,\"time\":1},\"data\":[[2,1],[3,2.5],[null,3]]},"
	    "\"markers\":{\"schema\":{\"name\":0,\"startTime\":1,\"endTime\":2,\"phase\":3,"
	    "\"category\":4,"
	    "\"data\":5},\"data\":[[3,1,null,2,1,{\"type\":\"Text\",\"stack\":{\"samples\":{"
	    "\"schema\":{},"
	    "\"data\":[[1,0]]}}}],[3,null,3,3,1,{\"why\":\"full\"}],[3,null,4,3,1],[3,2,9,1,0,{"
	    "\"type\":"
	    "\"Network\",\"url\":\"u\"}],[99,5,null,0,0]]}}],"
	    "\"processes\":[{\"meta\":{\"startTime\":2000},\"threads\":[{\"name\":\"c\",\"pid\":7,"
	    "\"stringTable\":[],\"stackTable\":{\"schema\":{},\"data\":[]},"
	    "\"samples\":{\"schema\":{\"stack\":0,\"time\":1},\"data\":[[null,1]]}}]}],"
	    "\"counters\":[{\"name\":\"malloc\",\"category\":\"Memory\",\"sample_groups\":[{\"id\":"
	    "0,"
	    "\"samples\":{\"schema\":{\"time\":0,\"count\":1},\"data\":[[1,100],[2,-40]]}}]}]}";

static void tables_of_rows(void **state)
{
	const struct event_table *e;
	struct small_model s;

	(void)state;
	LOAD(&s, rows);
	stack_expect(&s, "t|1|2|1001500000|samples 1|l:9;f:12;10@x.so\n"
			 "t|1|2|1003000000|samples 1|l:9;g@y.so\n"
			 "t|1|2|1003500000|samples 1|\n"
			 "c|7|-9223372036854775808|2001000000|samples 1|\n");
	e = &s.m->event;
	assert_int_equal(e->count, 5);
	assert_int_equal(e->ts_ns[1], 1001500000);
	assert_int_equal(e->dur_ns[1], 2000000);
	assert_string_equal(model_str(s.m, e->category[1]).ptr, "JS");
	assert_int_equal(e->stack[1].v, s.m->stack.parent[s.m->sample.stack[1].v].v);
	assert_int_equal(s.m->event_args.count, 2);
	assert_int_equal(s.m->event_args.event[1].v, 1);
	assert_memory_equal(rows + s.m->event_args.args_offset[1], "{\"why\":\"full\"}", 14);
	assert_int_equal(e->flags[2], EVENT_UNMATCHED);
	assert_string_equal(model_str(s.m, e->name ? e->name[3] : (str_id){ 0 }).ptr, "(no name)");
	assert_int_equal(s.m->track.kind[e->track[4].v], TRACK_ASYNC);
	assert_int_equal(s.m->counter.count, 3);
	assert_true(s.m->counter.value[2] == 60);
	assert_true(stack_noted(&s, "end without a start"));
	assert_true(stack_noted(&s, "table of strings"));
	small_close(&s);
	stack_survives("firefox", rows, sizeof(rows) - 1);
}

/* Exports of the performance panel of Firefox 46 to 79. */
static void inside_another_object(void **state)
{
	static const char before[] =
		"{\"label\":\"\",\"duration\":12.5,\"markers\":[{\"name\":\"x\"}],"
		"\"profile\":",
			  after[] = ",\"fileType\":\"Recorded Performance Data\",\"version\":2}";
	char text[sizeof(before) + sizeof(rows) + sizeof(after)];
	int len = snprintf(text, sizeof(text), "%s%s%s", before, rows, after);
	struct small_model s;

	(void)state;
	stack_open(&s, "firefox", text, (size_t)len);
	assert_int_equal(s.m->sample.count, 5);
	assert_int_equal(s.m->event.count, 5);
	assert_int_equal(s.m->counter.count, 3);
	small_close(&s);
	stack_survives("firefox", text, (size_t)len);
}

static void broken(void **state)
{
	struct small_model s;

	(void)state;
	/* callers that come later, frames and stacks that are not there, fewer times than samples */
	LOAD(&s, "{" META("") ",\"threads\":[{\"name\":\"t\"," TABLES
			      "\"stackTable\":{\"prefix\":[1,0,7],\"frame\":[0,9,1]},\"samples\":{"
			      "\"stack\":[0,1,2,3,-1],\"time\":[1,2,3],\"weight\":null}}]}");
	assert_int_equal(s.m->sample.count, 6);
	assert_true(stack_noted(&s, "not in the tables"));
	assert_true(stack_noted(&s, "differ in number"));
	assert_true(stack_noted(&s, "without a time"));
	small_close(&s);
	LOAD(&s, "{\"threads\":[{\"name\":\"t\",\"samples\":{\"stack\":[0,1],\"time\":[1,2");
	assert_int_equal(s.m->sample.count, 3);
	assert_true(stack_noted(&s, "ends or is damaged here"));
	small_close(&s);
	small_open(&s);
	assert_int_equal(stack_load(&s, "firefox", "{\"meta\":{},\"threads\":[]}", 24),
			 OW_E_FORMAT);
	small_close(&s);
	small_open(&s);
	assert_int_equal(stack_load(&s, "firefox", "[]", 2), OW_E_FORMAT);
	small_close(&s);
}

/* What was recorded by a program that is still here, as it was. */
__attribute__((noinline, used)) static void look_me_up(void)
{
	__asm__ volatile("" ::: "memory");
}

static int first_object(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uint64_t *)base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD) {
			*(uint64_t *)base += info->dlpi_phdr[i].p_vaddr;
			break;
		}
	return 1;
}

static void names_of_this_machine(void **state)
{
	struct elf_symbols elf;
	struct small_model s;
	struct mem mem;
	struct buf text;
	char path[4096];
	uint64_t base = 0;
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	(void)state;
	assert_true(len > 0);
	path[len] = '\0';
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	assert_int_equal(elf_symbols_open(&elf, &mem, path, NULL), OW_OK);
	if (elf.id_len) {
		dl_iterate_phdr(first_object, &base);
		buf_printf(&text, "{\"libs\":[{\"path\":\"%s\",\"codeId\":\"", path);
		for (size_t i = 0; i < elf.id_len; i++)
			buf_printf(&text, "%02x", elf.id[i]);
		buf_printf(&text,
			   "\"}],\"threads\":[{\"name\":\"t\",\"stringArray\":[\"0x1\"],"
			   "\"frameTable\":{"
			   "\"func\":[0],\"address\":[%" PRIu64
			   "]},\"funcTable\":{\"name\":[0],\"resource\":"
			   "[0]},\"resourceTable\":{\"lib\":[0]},\"stackTable\":{\"prefix\":[null],"
			   "\"frame\":"
			   "[0]},\"samples\":{\"stack\":[0],\"time\":[1]}}]}",
			   (uint64_t)(uintptr_t)look_me_up - base);
		stack_open(&s, "firefox", text.ptr, text.len);
		assert_string_equal(model_str(s.m, s.m->frame.function[1]).ptr, "look_me_up");
		small_close(&s);
	}
	elf_symbols_release(&elf);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_tables), cmocka_unit_test(shared_tables),
		cmocka_unit_test(tables_of_rows), cmocka_unit_test(inside_another_object),
		cmocka_unit_test(broken),	  cmocka_unit_test(names_of_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
