/*
 * sink_timeline_test.c: scope and code timelines, and graph timelines: processes, lanes, flows and
 * memory counters by hand, then lanes and counters of random models against tfprof's slow way of
 * finding them.
 */
#include "sink/sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/small_tree.h"

#define PROCESS(name, pid)                                                                         \
	"{\"args\":{\"name\":\"" name "\"},\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" #pid "}"
#define SCOPE(name, start, dur, pid)                                                               \
	",{\"args\":{\"name\":\"" name "\",\"op\":\"" name "\"},\"cat\":\"Op\",\"dur\":" #dur      \
	",\"name\":\"" name "\",\"ph\":\"X\",\"pid\":" #pid ",\"tid\":0,\"ts\":" #start "}"
#define SLICE(name, start, dur, pid, tid)                                                          \
	",{\"args\":{\"name\":\"" name "\"},\"cat\":\"Op\",\"dur\":" #dur ",\"name\":\"" name      \
	"\",\"ph\":\"X\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #start "}"
#define FLOW(name, phase, id, ts, pid, tid)                                                        \
	",{\"cat\":\"DataFlow\",\"id\":" #id ",\"name\":\"" name "_flow\",\"ph\":\"" phase         \
	"\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts "}"
#define IN_USE(bytes, ts, pid)                                                                     \
	",{\"args\":{\"Allocator Bytes in Use\":" #bytes                                           \
	"},\"cat\":\"Memory\",\"name\":\"Allocated Bytes\",\"ph\":\"C\",\"pid\":" #pid             \
	",\"tid\":0,\"ts\":" #ts "}"
#define TOP(args, ts, pid)                                                                         \
	",{\"args\":{" args "},\"cat\":\"Memory\",\"name\":\"Top Allocations\",\"ph\":\"C\","      \
	"\"pid\":" #pid ",\"tid\":0,\"ts\":" #ts "}"

static void scope(void **state)
{
	struct small_model s;
	struct table *r;
	op_id nil = { 0 };
	uint32_t a, b;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	r = small_tree(&s, TREE_SCOPE, -1);
	a = small_node(r, 0, "a", nil, 0, 10);
	b = small_node(r, a, "b", nil, 0, 0);
	small_node(r, b, "b/hidden by its parent", nil, 3, 3);
	small_node(r, a, "é", nil, 4, 4);
	small_node(r, a, "c", nil, 5, 5);
	small_node(r, 0, "d", nil, 2, 2);
	small_expect(&sink_timeline, r, &(struct sink_options){ 0 },
		     "{\"traceEvents\":[" PROCESS("Scope:0", 0)
			     SCOPE("_TFProfRoot", 0, 12, 0) "," PROCESS("Scope:1", 1)
				     SCOPE("a", 0, 10, 1) "," PROCESS("Scope:2", 2)
					     SCOPE("\\u00e9", 0, 4, 2) SCOPE("c", 4, 5, 2)
						     SCOPE("d", 10, 2, 1) "]}\n");
	small_starve(&sink_timeline, r, &(struct sink_options){ 0 });
	small_hang_up(&sink_timeline, r, &(struct sink_options){ 0 });
	r->tree->kind = TREE_OP;
	small_refuse(&sink_timeline, r, &(struct sink_options){ 0 }, OW_E_USAGE);
	r->tree->kind = TREE_GRAPH;
	small_refuse(&sink_timeline, r, &(struct sink_options){ 0 }, OW_E_USAGE);
	table_free(r);
	small_close(&s);
}

static void add_input(struct small_model *s, op_id op, op_id src)
{
	op_input_id row = builder_add_op_input(
		&s->b, &(struct op_input_row){ .src = src, .name = s->m->op.name[src.v] });

	if (!s->m->op.input_count[op.v]++)
		s->m->op.input_first[op.v] = row.v;
}

/* Memory of the last op_step added. */
static void add_memory(struct small_model *s, int64_t ts_us, int64_t in_use, int64_t persistent)
{
	builder_add_memory(&s->b, &(struct memory_row){ .op_step = s->m->op_step.count - 1,
							.ts_ns = ts_us * 1000,
							.in_use = in_use,
							.accelerator_persistent = persistent });
}

static void add_alloc(struct small_model *s, int64_t ts_us, int64_t size)
{
	builder_add_alloc(&s->b, &(struct alloc_row){ .op_step = s->m->op_step.count - 1,
						      .ts_ns = ts_us * 1000,
						      .size = size });
}

static struct table *tree_of_all_ops(struct small_model *s, int64_t step)
{
	struct table *r = small_tree(s, TREE_GRAPH, step);

	for (uint32_t op = 1; op < s->m->op.count; op++)
		small_node(r, 0, model_str(s->m, s->m->op.name[op]).ptr, (op_id){ op }, 1, 1);
	return r;
}

static void graph(void **state)
{
	struct small_model s;
	struct table *r;
	struct buf lines;
	op_id b, c, never;
	struct sink_options options = { .stdout_line = small_line, .stdout_arg = &lines };

	(void)state;
	small_open(&s);
	b = small_op(&s, "b", "T", GPU0);
	c = small_op(&s, "c", "T", CPU0);
	never = small_op(&s, "never", "T", CPU0);
	add_input(&s, b, c);
	add_input(&s, b, never);
	add_input(&s, b, c);
	small_run(&s, b, 5, 1000, 20, 40);
	add_memory(&s, 1020, 3000000, 500000);
	add_memory(&s, 1060, 9000000, 0);
	add_memory(&s, 1130, 2500000, 0);
	add_alloc(&s, 1010, 1234567);
	add_alloc(&s, 1100, -1234567);
	small_run(&s, c, 5, 900, 30, 0);
	small_run(&s, c, 6, 5000, 30, 0); /* another step */
	small_freeze(&s);
	r = tree_of_all_ops(&s, 5);
	buf_init(&lines, &s.mem);
	small_expect(
		&sink_timeline, r, &options,
		"{\"traceEvents\":[" PROCESS(
			"Op execution threads: /device:GPU:0/stream:all",
			0) "," PROCESS("Op scheduling threads: " GPU0,
				       1) "," PROCESS("Op scheduling threads: " CPU0,
						      2) SLICE("b", 1000, 40, 0, 0) SLICE("b", 1000,
											  20, 1, 0)
			SLICE("c", 900, 30, 2, 0) "," PROCESS("mem usage on:" GPU0, 3) "," PROCESS(
				"mem usage on:" GPU0 " allocations", 4) FLOW("c", "s", 1, 930, 2, 0)
				FLOW("c", "t", 1, 1000, 1, 0) FLOW("c", "s", 2, 930, 2, 0)
					FLOW("c", "t", 2, 1000, 1, 0) IN_USE(3000000, 1020, 3)
						TOP("\"Not Displayed\":\"1.27 MB\",\"Top "
						    "Allocation 00\":\"1.734567 MB from b\","
						    "\"Top Allocation 01\":\"N/A\",\"Top "
						    "Allocation 02\":\"N/A\","
						    "\"Top Allocation 03\":\"N/A\",\"Top "
						    "Allocation 04\":\"N/A\","
						    "\"Top Allocation 05\":\"N/A\",\"Top "
						    "Allocation 06\":\"N/A\","
						    "\"Top Allocation 07\":\"N/A\",\"Top "
						    "Allocation 08\":\"N/A\","
						    "\"Top Allocation 09\":\"N/A\"",
						    1020, 4) IN_USE(2500000, 1130, 3)
							TOP("\"Not Displayed\":\"2.00 MB\",\"Top "
							    "Allocation 00\":\"0.5 MB from b\","
							    "\"Top Allocation 01\":\"N/A\",\"Top "
							    "Allocation 02\":\"N/A\","
							    "\"Top Allocation 03\":\"N/A\",\"Top "
							    "Allocation 04\":\"N/A\","
							    "\"Top Allocation 05\":\"N/A\",\"Top "
							    "Allocation 06\":\"N/A\","
							    "\"Top Allocation 07\":\"N/A\",\"Top "
							    "Allocation 08\":\"N/A\","
							    "\"Top Allocation 09\":\"N/A\"",
							    1130, 4) "]}\n");
	assert_string_equal(buf_cstr(&lines),
			    "generating trace file.\n" GPU0 " peak memory: 9.00 MB\n");
	buf_release(&lines);
	small_starve(&sink_timeline, r, &(struct sink_options){ 0 });
	small_hang_up(&sink_timeline, r, &(struct sink_options){ 0 });
	/* producers that are not accounted have no flows */
	r->tree->op_accounted = ARENA_ARRAY(&r->tree->arena, uint8_t, s.m->op.count);
	small_write(&sink_timeline, r, &(struct sink_options){ 0 }, &lines);
	assert_null(strstr(lines.ptr, "DataFlow"));
	buf_release(&lines);
	r->tree->step = 77;
	small_expect(&sink_timeline, r, &(struct sink_options){ 0 }, "{\"traceEvents\":[]}\n");
	table_free(r);
	small_close(&s);
}

/* ---- against the slow way ---- */

static uint32_t random_below(uint32_t *seed, uint32_t limit)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)*seed * limit) >> 32);
}

#define RUNS 300

/* Runs of one op each at distinct starts on one device, shuffled by their order of creation. */
static void random_model(struct small_model *s, uint32_t *seed)
{
	for (uint32_t i = 0; i < RUNS; i++) {
		char name[16];
		int64_t start = 1 + (int64_t)((i * 7919u) % RUNS) * 37;

		snprintf(name, sizeof(name), "op%u", i);
		small_run(s, small_op(s, name, "T", GPU0), 1, start,
			  (int64_t)random_below(seed, 400) - 20, 0);
		add_memory(s, start + random_below(seed, 200), random_below(seed, 300),
			   random_below(seed, 3) ? 0 : 7);
		for (uint32_t n = random_below(seed, 4); n; n--)
			add_alloc(s, start + random_below(seed, 3000),
				  (int64_t)random_below(seed, 40) - 10);
	}
}

struct run {
	int64_t start, end;
	uint32_t op, lane;
};

/* tfprof's loop over all slices of all lanes. */
static void slow_lanes(const struct model *m, struct run *runs)
{
	uint32_t lanes = 0;

	for (uint32_t e = 1; e < m->event.count; e++)
		runs[(m->event.ts_ns[e] / 1000 - 1) / 37] =
			(struct run){ m->event.ts_ns[e] / 1000,
				      (m->event.ts_ns[e] + m->event.dur_ns[e]) / 1000,
				      m->event.op[e].v, 0 };
	for (uint32_t i = 0; i < RUNS; i++) {
		uint32_t lane;

		for (lane = 0; lane < lanes; lane++) {
			bool busy = false;

			for (uint32_t j = i; j-- > 0;) {
				if (runs[j].lane != lane)
					continue;
				busy = runs[j].end > runs[i].start;
				if (runs[j].end != runs[i].start)
					break;
			}
			if (!busy)
				break;
		}
		lanes = MAX(lanes, lane + 1);
		runs[i].lane = lane;
	}
}

static int64_t slow_live(const struct model *m, uint32_t op, int64_t ts)
{
	int64_t live = 0;
	uint32_t row = m->op.step_first[op], first, count = model_memory_of(m, row, &first);

	for (uint32_t i = 0; i < count; i++)
		live += COLUMN_GET(m->memory.accelerator_persistent, first + i);
	for (uint32_t i = 1; i < m->alloc.count; i++)
		if (m->alloc.op_step[i] == row && m->alloc.ts_ns[i] < ts)
			live += m->alloc.size[i];
	return live;
}

/* The next op in tfprof's order: size descending, then name. 0 when there is none. */
static uint32_t slow_next(const struct model *m, const op_id *by_name, const int64_t *live,
			  int64_t after_size, uint32_t after_name, uint32_t *name)
{
	uint32_t best = 0;

	for (uint32_t n = 0; n + 1 < m->op.count; n++) {
		uint32_t op = by_name[n].v;

		if (live[op] <= 0 || live[op] > after_size ||
		    (live[op] == after_size && n <= after_name && after_name != UINT32_MAX))
			continue;
		if (!best || live[op] > live[best]) {
			best = op;
			*name = n;
		}
	}
	return best;
}

static void slow_top(struct buf *to, const struct model *m, const op_id *by_name, int64_t ts,
		     int64_t bytes)
{
	int64_t live[RUNS + 1], size = INT64_MAX, skip = -1;
	uint32_t name = UINT32_MAX, op, top[10], count = 0;

	for (uint32_t i = 1; i <= RUNS; i++)
		live[i] = slow_live(m, i, ts);
	while (count < 10 && (op = slow_next(m, by_name, live, size, name, &name))) {
		size = live[op];
		if (size == skip)
			continue;
		if (bytes < size) {
			skip = size; /* ends its group */
			continue;
		}
		top[count++] = op;
		bytes -= size;
	}
	buf_printf(to, "\"Not Displayed\":\"%.2f MB\"", (double)bytes / 1e6);
	for (uint32_t i = count ? 0 : 1; i < 10; i++) {
		if (i < count)
			buf_printf(to, ",\"Top Allocation %02u\":\"%.15g MB from %s\"", i,
				   (double)live[top[i]] / 1e6,
				   model_str(m, m->op.name[top[i]]).ptr);
		else
			buf_printf(to, ",\"Top Allocation %02u\":\"N/A\"", i);
	}
}

static int compare_lanes(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->start < y->start ? -1 : 1;
}

static void slow_slices(struct buf *to, const struct model *m)
{
	struct run runs[RUNS];

	slow_lanes(m, runs);
	qsort(runs, RUNS, sizeof(*runs), compare_lanes);
	for (uint32_t i = 0; i < RUNS; i++) {
		const char *name = model_str(m, m->op.name[runs[i].op]).ptr;

		buf_printf(to,
			   ",{\"args\":{\"name\":\"%s\"},\"cat\":\"Op\",\"dur\":%" PRId64
			   ",\"name\":\"%s\",\"ph\":\"X\",\"pid\":0,\"tid\":%u,\"ts\":%" PRId64 "}",
			   name, runs[i].end - runs[i].start, name, runs[i].lane, runs[i].start);
	}
}

/* The sample at a time: the last one in the order of ops. False when there is none. */
static bool slow_sample(const struct model *m, int64_t ts, int64_t *in_use)
{
	bool found = false;

	for (uint32_t i = 1; i < m->memory.count; i++)
		if (m->memory.ts_ns[i] == ts) {
			*in_use = COLUMN_GET(m->memory.in_use, i);
			found = true;
		}
	return found;
}

static void slow_counters(struct buf *to, struct model *m)
{
	const op_id *by_name = model_ops_by_name(m, NULL);
	int64_t last = 0, in_use = 0;

	assert_non_null(by_name);
	for (int64_t us = 1; us < RUNS * 37 + 300; us++) {
		if (!slow_sample(m, us * 1000, &in_use) || us - last < 100)
			continue;
		last = us;
		buf_printf(to,
			   ",{\"args\":{\"Allocator Bytes in Use\":%" PRId64
			   "},\"cat\":\"Memory\",\"name\":\"Allocated Bytes\",\"ph\":\"C\","
			   "\"pid\":1,\"tid\":0,\"ts\":%" PRId64 "},{\"args\":{",
			   in_use, us);
		slow_top(to, m, by_name, us * 1000, in_use);
		buf_printf(to,
			   "},\"cat\":\"Memory\",\"name\":\"Top Allocations\",\"ph\":\"C\","
			   "\"pid\":2,\"tid\":0,\"ts\":%" PRId64 "}",
			   us);
	}
}

static void random_models(void **state)
{
	uint32_t seed = 4711;

	(void)state;
	for (int round = 0; round < 5; round++) {
		struct small_model s;
		struct table *r;
		struct buf want;

		small_open(&s);
		random_model(&s, &seed);
		small_freeze(&s);
		r = tree_of_all_ops(&s, 1);
		buf_init(&want, &s.mem);
		buf_puts(&want, "{\"traceEvents\":[" PROCESS("Op scheduling threads: " GPU0, 0));
		slow_slices(&want, s.m);
		buf_puts(&want, "," PROCESS("mem usage on:" GPU0,
					    1) "," PROCESS("mem usage on:" GPU0 " allocations", 2));
		slow_counters(&want, s.m);
		buf_puts(&want, "]}\n");
		small_expect(&sink_timeline, r, &(struct sink_options){ 0 }, buf_cstr(&want));
		buf_release(&want);
		table_free(r);
		small_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scope),
		cmocka_unit_test(graph),
		cmocka_unit_test(random_models),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
