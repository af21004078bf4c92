/*
 * import_torch_memory_test.c: snapshots and timelines of torch as rows of `heap`; failing allocations end in a
 * status. Written as pickles of protocol 0, which are text. Larger ones: tests/cli/memory_test.py.
 */
#include "import/importer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct mem mem;

#define ENTRY(action, address, size, time)                                                         \
	"(dS'action'\nS'" action "'\nsS'addr'\nI" #address "\nsS'size'\nI" #size                   \
	"\nsS'time_us'\nI" #time "\nsS'frames'\n(l(dS'filename'\nS'a.py'\nsS'line'\nI3\n"          \
	"sS'name'\nS'f'\nsasa"
#define BLOCK(address, size, state)                                                                \
	"(dS'address'\nI" #address "\nsS'size'\nI" #size "\nsS'state'\nS'" state "'\nsa"

static const char snapshot[] =
	"(dS'segments'\n(l"
	"(dS'device'\nI1\nsS'address'\nI1000\nsS'total_size'\nI900\nsS'blocks'\n(l" BLOCK(
		1000, 300, "active_allocated") BLOCK(1300, 200,
						     "inactive") BLOCK(1500, 100,
								       "active_awaiting_free")
		BLOCK(1600, 300,
		      "inactive") "sa"
				  "sS'device_traces'\n(l(la(l" ENTRY("free_completed", 500, 70,
								     5) ENTRY("alloc", 1500, 100, 6)
					  ENTRY("segment_alloc", 1000, 200, 7) ENTRY("nonsense", 1,
										     1, 8)
						  ENTRY("oom", 0, 4096,
							9) "as"
							   "S'external_annotations'\n(l(dS'name'"
							   "\nS'ProfilerStep#4'\nsS'stage'\nS'"
							   "START'\nsS'time_us'\nI5\n"
							   "sa(dS'name'\nS'ProfilerStep#4'\nsS'"
							   "stage'\nS'END'\nsS'time_us'\nI8\nsas.";

static const char timeline[] =
	"[[-1,1,10,0],[5,2,20,4],[6,3,-20,4],[6,3,20,5],[7,4,-20,5],[8,2,-1,0]]";

static struct model *load(const struct importer *importer, const char *text, struct ow_error *err)
{
	struct model *m = model_new(&mem, err);
	struct import_options options = { .step = INT64_MIN };
	struct import_ctx ctx = { .options = &options, .err = err };
	struct builder b;
	struct input in;
	ow_status status = OW_E_NO_MEMORY;

	if (!m)
		return NULL;
	builder_init(&b, m, err);
	if (input_from_memory(&in, &mem, "x", text, strlen(text), err) == OW_OK) {
		builder_new_source(&b, &(struct source_row){ .rank = -1 });
		b.source = (source_id){ 1 };
		ctx.b = &b;
		ctx.in = &in;
		status = b.status == OW_OK ? importer->load(&ctx) : b.status;
		input_close(&in);
	}
	if (status == OW_OK)
		status = model_freeze(&b);
	if (status == OW_OK)
		return m;
	assert_int_equal(err->status, status);
	model_free(m);
	return NULL;
}

static void is_row(const struct model *m, uint32_t row, enum heap_kind kind, int64_t ts,
		   int64_t size)
{
	assert_int_equal(m->heap.kind[row], kind);
	assert_true(m->heap.ts_ns[row] == ts);
	assert_int_equal(m->heap.size[row], size);
}

static void of_snapshot(void **state)
{
	struct ow_error err = { 0 };
	struct model *m = load(&import_torch_memory, snapshot, &err);

	(void)state;
	assert_non_null(m);
	assert_int_equal(m->heap.count, 9);
	is_row(m, 1, HEAP_EXISTING, TIME_UNKNOWN, 70);
	is_row(m, 2, HEAP_EXISTING, TIME_UNKNOWN, 300); /* the block that the trace does not know */
	is_row(m, 3, HEAP_SEGMENT_EXISTING, TIME_UNKNOWN, 700);
	is_row(m, 4, HEAP_FREE, 5000, -70);
	is_row(m, 5, HEAP_ALLOC, 6000, 100);
	is_row(m, 6, HEAP_SEGMENT_ALLOC, 7000, 200);
	is_row(m, 7, HEAP_OUT_OF_MEMORY, 9000, 4096);
	is_row(m, 8, HEAP_TOTAL, 9000, 0);
	assert_int_equal(m->heap.allocated[8], 400);
	assert_int_equal(m->heap.reserved[8], 900);
	assert_true(m->heap.fragmentation[8] > 0.399 && m->heap.fragmentation[8] < 0.401);
	for (uint32_t i = 1; i < m->heap.count; i++)
		assert_true(
			str_eq(model_str(m, m->device.name[m->heap.device[i].v]), STR("GPU 1")));
	assert_int_equal(m->heap.stack[5].v, m->heap.stack[4].v);
	assert_int_equal(m->frame.line[m->stack.frame[m->heap.stack[5].v].v], 3);
	assert_int_equal(m->window.count, 2);
	assert_int_equal(m->step.number[m->window.step[1].v], 4);
	assert_int_equal(m->note.count, 2); /* the nonsense */
	model_free(m);
}

static void of_timeline(void **state)
{
	struct ow_error err = { 0 };
	struct model *m = load(&import_torch_timeline, timeline, &err);

	(void)state;
	assert_non_null(m);
	assert_int_equal(m->heap.count, 6);
	is_row(m, 1, HEAP_EXISTING, TIME_UNKNOWN, 10);
	is_row(m, 2, HEAP_ALLOC, 5, 20);
	is_row(m, 3, HEAP_FREE, 6, -20);
	is_row(m, 4, HEAP_ALLOC, 6, 20);
	is_row(m, 5, HEAP_FREE, 7, -20);
	assert_true(str_eq(model_str(m, m->heap.purpose[4]), STR("gradient")));
	assert_int_equal(m->note.times[1], 1); /* creating less than nothing */
	model_free(m);
}

static void is_refused(const struct importer *importer, const char *text)
{
	struct ow_error err = { 0 };

	assert_null(load(importer, text, &err));
	assert_int_not_equal(err.status, OW_E_NO_MEMORY);
	assert_true(strlen(err.text) > 0);
}

static void nothing_usable(void **state)
{
	(void)state;
	is_refused(&import_torch_memory, "x");
	is_refused(&import_torch_memory, ".");
	is_refused(&import_torch_timeline, "[[");
	is_refused(&import_torch_timeline, "[[1,2,3],[\"a\",2,3,4],[99999999999999999999,2,3,4]]");
}

static int score(const struct importer *importer, const char *text)
{
	struct sniff sniff = { .head = str_from(text), .size = strlen(text) };

	return importer->sniff(&sniff);
}

static void recognition(void **state)
{
	(void)state;
	assert_true(score(&import_torch_memory, snapshot) > 0);
	assert_int_equal(score(&import_torch_memory, "(dS'weights'\nI1\ns."), 0);
	assert_true(score(&import_torch_timeline, " [ [1, 2, -3, 4], "));
	assert_int_equal(score(&import_torch_timeline, "[[1,2,3,4,5]]"), 0);
	assert_int_equal(score(&import_torch_timeline, "[[1,2,3]]"), 0);
	assert_int_equal(score(&import_torch_timeline, "[{}]"), 0);
}

static void fail_each(const struct importer *importer, const char *text)
{
	for (uint64_t n = 1; n < 5000; n++) {
		struct ow_error err = { 0 };
		struct model *m;

		mem_fail_after(n, false);
		m = load(importer, text, &err);
		mem_fail_after(0, false);
		model_free(m);
		assert_int_equal(atomic_load(&mem.used), 0);
		if (m)
			return;
		assert_int_equal(err.status, OW_E_NO_MEMORY);
	}
	fail_msg("never enough allocations");
}

static void allocation_failures(void **state)
{
	(void)state;
	fail_each(&import_torch_memory, snapshot);
	fail_each(&import_torch_timeline, timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_snapshot),	       cmocka_unit_test(of_timeline),
		cmocka_unit_test(nothing_usable),      cmocka_unit_test(recognition),
		cmocka_unit_test(allocation_failures),
	};

	mem_init(&mem, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
