/*
 * view_functions_test.c: views of sampled stacks: self and total by function, recursion counted once, metrics
 * kept apart, native names, processes as the outermost level, lines of the user's own code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/verdict/verdict.h"
#include "table/tree/tree.h"
#include "support/view_text.h"

struct sampled {
	struct small_model s;
	track_id track;
};

static frame_id frame(struct sampled *t, const char *function, const char *module, uint64_t address)
{
	struct builder *b = &t->s.b;

	return builder_frame(b, &(struct frame_row){ .function = builder_cstr(b, function),
						     .module = builder_cstr(b, module),
						     .address = address });
}

/* Names separated by ';', the root first; "name@module". */
static void sample(struct sampled *t, const char *metric, const char *unit, const char *names,
		   int64_t ts, int64_t weight)
{
	struct builder *b = &t->s.b;
	struct str rest = str_from(names), name;
	stack_id stack = { 0 };

	while (str_split(&rest, ';', &name)) {
		size_t at = str_find_char(name, '@');
		char function[64], module[64] = "";

		snprintf(function, sizeof(function), "%.*s",
			 (int)MIN(at == STR_NONE ? name.len : at, sizeof(function) - 1), name.ptr);
		if (at != STR_NONE)
			snprintf(module, sizeof(module), "%.*s", (int)(name.len - at - 1),
				 name.ptr + at + 1);
		/* an address each: the same function is several frames */
		stack = builder_stack(b, stack,
				      frame(t, function, module, *module ? stack.v + 1 : 0));
	}
	builder_add_sample(b, &(struct sample_row){
				      .ts_ns = ts,
				      .weight = weight,
				      .metric = builder_metric(b, str_from(metric), str_from(unit)),
				      .stack = stack,
				      .track = t->track });
}

static void open_tracks(struct sampled *t)
{
	small_open(&t->s);
	small_source(&t->s, "perf.data", "perf_data");
	t->track = builder_track(&t->s.b,
				 &(struct track_row){ .name = builder_cstr(&t->s.b, "my prog"),
						      .process = builder_cstr(&t->s.b, "my prog"),
						      .pid = 7,
						      .tid = 8,
						      .kind = TRACK_HOST,
						      .source = t->s.b.source });
}

static void open_first(struct sampled *t)
{
	open_tracks(t);
	sample(t, "cycles", "count", "main;f;f;g", 10, 5);
	sample(t, "cycles", "count", "main;f", 20, 3);
	sample(t, "cycles", "count", "main", 30, 2);
	sample(t, "time", "ns", "main;g", 30, 1000);
	t->s.m->metric.is_default[1] = 1;
}

static void open_samples(struct sampled *t)
{
	open_first(t);
	small_freeze(&t->s);
}

static void functions(void **state)
{
	struct view_options options;
	struct sampled t;

	(void)state;
	open_samples(&t);
	view_text_expect_columns(&t.s, &view_functions, NULL,
				 "name,self,self_percent,total,total_percent",
				 "g|5|50|5|50\nf|3|30|8|80\nmain|2|20|10|100\n");
	/* what stands in for operations */
	view_text_expect_columns(&t.s, &view_op, NULL, "name,self", "g|5\nf|3\nmain|2\n");
	view_options_init(&options);
	options.metric = "time";
	view_text_expect_columns(&t.s, &view_functions, &options, "name,self,total,unit",
				 "g|1000|1000|ns\nmain|0|1000|ns\n");
	options.metric = NULL;
	options.style = "total";
	options.limit = 1;
	view_text_expect_columns(&t.s, &view_functions, &options, "name,total", "main|10\n");
	view_options_init(&options);
	options.time_from_ns = 5;
	view_text_expect_columns(&t.s, &view_functions, &options, "name,self", "f|3\nmain|2\n");
	view_text_fail_each(&t.s, &view_functions);
	small_close(&t.s);
}

/* Functions that call each other, also on several ways: each sample counts once for each function in it. */
static void recursion(void **state)
{
	struct sampled t;

	(void)state;
	open_tracks(&t);
	sample(&t, "cycles", "count", "main;f;g;f", 10, 1);
	sample(&t, "cycles", "count", "main;g;f;g;h", 20, 2);
	sample(&t, "cycles", "count", "main;g;f", 30, 4);
	sample(&t, "cycles", "count", "f;main;f;main", 40, 8);
	sample(&t, "cycles", "count", "h", 50, 16);
	t.s.m->metric.is_default[1] = 1;
	small_freeze(&t.s);
	view_text_expect_columns(&t.s, &view_functions, NULL, "name,self,total",
				 "h|18|18\nmain|8|15\nf|5|15\ng|0|7\n");
	view_text_fail_each(&t.s, &view_functions);
	small_close(&t.s);
}

/* One walk over the stacks, not one per sample: 60,000 levels with a sample on each. */
static void deep_recursion(void **state)
{
	struct builder *b;
	struct sampled t;
	stack_id stack = { 0 };
	frame_id frames[2];

	(void)state;
	open_tracks(&t);
	b = &t.s.b;
	frames[0] = frame(&t, "even", "", 0);
	frames[1] = frame(&t, "odd", "", 0);
	for (int i = 0; i < 60000; i++) {
		stack = builder_stack(b, stack, frames[i % 2]);
		builder_add_sample(b, &(struct sample_row){ .ts_ns = i,
							    .weight = 1,
							    .metric = builder_metric(
								    b, STR("cycles"), STR("count")),
							    .stack = stack,
							    .track = t.track });
	}
	t.s.m->metric.is_default[1] = 1;
	small_freeze(&t.s);
	view_text_expect_columns(&t.s, &view_functions, NULL, "name,self,total",
				 "even|30000|60000\nodd|30000|59999\n");
	view_text_expect_columns(&t.s, &view_lines, NULL, "name,self,total",
				 "even|30000|60000\nodd|30000|59999\n");
	small_close(&t.s);
}

/* Samples of two inputs are one sum only when they measure the same; what is left out is told. */
static void other_inputs_are_told_of(void **state)
{
	static const char told[] = "Not shown: bytes of heap.pprof; different metrics are not "
				   "added up. --metric bytes shows these.";
	struct view_options options;
	struct sampled t;
	struct table *r;

	(void)state;
	open_first(&t);
	small_source(&t.s, "heap.pprof", "pprof");
	sample(&t, "bytes", "bytes", "main;alloc", TIME_UNKNOWN, 64);
	small_freeze(&t.s);
	r = view_text_run(&t.s, &view_functions, NULL);
	assert_string_equal(r->footer, told);
	table_free(r);
	r = view_text_run(&t.s, &view_lines, NULL);
	assert_string_equal(r->footer, told);
	table_free(r);
	r = view_text_run(&t.s, &view_code, NULL);
	assert_int_equal(r->tree->message_count, 1);
	assert_string_equal(r->tree->messages[0].ptr, told);
	table_free(r);
	view_options_init(&options);
	options.metric = "bytes";
	r = view_text_run(&t.s, &view_functions, &options);
	assert_null(r->footer);
	table_free(r);
	view_text_fail_each(&t.s, &view_functions);
	view_text_fail_each(&t.s, &view_code);
	small_close(&t.s);
}

static void other_metrics(void **state)
{
	struct view_options options;
	struct sampled t;
	struct table *r;

	(void)state;
	open_samples(&t);
	view_text_expect_columns(
		&t.s, &view_metrics, NULL,
		"name,unit,samples,total,threads,stacks,start_ns,span_ns,is_default",
		"cycles|count|3|10|1|3|10|20|1\ntime|ns|1|1000|1|1|30|1000|0\n");
	view_text_fail_each(&t.s, &view_metrics);
	view_options_init(&options);
	options.time_from_ns = 5; /* from the first sample */
	view_text_expect_columns(&t.s, &view_metrics, &options,
				 "name,samples,total,stacks,start_ns",
				 "cycles|2|5|2|20\ntime|1|1000|1|30\n");
	view_options_init(&options);
	options.metric = "bytes";
	r = table_new(&t.s.mem, "code", &t.s.err);
	assert_int_equal(view_code.run(t.s.m, &options, r, &t.s.err), OW_E_NOT_FOUND);
	assert_string_equal(t.s.err.text, "there is no metric 'bytes'; metrics are: cycles, time");
	table_free(r);
	small_close(&t.s);
}

static void expect_tree(struct sampled *t, const char *style, const char *want)
{
	struct table *r = table_new(&t->s.mem, "code", &t->s.err);
	struct view_options options;
	struct buf text;

	view_options_init(&options);
	options.style = style;
	assert_int_equal(view_code.run(t->s.m, &options, r, &t->s.err), OW_OK);
	assert_int_equal(tree_flatten(r, &t->s.err), OW_OK);
	buf_init(&text, &t->s.mem);
	for (uint32_t row = 1; row < r->row_count; row++)
		buf_printf(&text, "%u %.*s %d %d\n", r->depth[row],
			   STR_ARG(r->columns[0].texts[row]), (int)r->columns[1].ints[row],
			   (int)r->columns[3].ints[row]);
	buf_add_char(&text, '\0');
	assert_string_equal(text.ptr, want);
	buf_release(&text);
	table_free(r);
}

static void tree(void **state)
{
	struct sampled t;
	struct buf text;

	(void)state;
	open_samples(&t);
	expect_tree(&t, NULL, "1 my_prog 0 10\n2 main 2 10\n3 f 3 8\n4 f 0 5\n5 g 5 5\n");
	expect_tree(&t, "tid", "1 my_prog-7/8 0 10\n2 main 2 10\n3 f 3 8\n4 f 0 5\n5 g 5 5\n");
	view_text_fail_each(&t.s, &view_code);
	buf_init(&text, &t.s.mem);
	assert_int_equal(verdict_write(t.s.m, &EVENT_FILTER_ALL, NULL, &text, &t.s.err), OW_OK);
	assert_string_equal(buf_cstr(&text), "50 % of cycles is spent in g itself; 80 % below f.");
	buf_release(&text);
	small_close(&t.s);
}

/* As the stackcollapse scripts name them. */
static void native_names(void **state)
{
	struct sampled t;

	(void)state;
	small_open(&t.s);
	t.track =
		builder_track(&t.s.b, &(struct track_row){ .name = builder_cstr(&t.s.b, "java"),
							   .process = builder_cstr(&t.s.b, "java"),
							   .pid = -1,
							   .tid = 8 });
	sample(&t, "cycles", "count",
	       "std::f(int, (anonymous namespace)::x)@/a/b.so;net/http.(*Client).Do@/bin/go;"
	       "(dropped)@/x;Lorg/a:.run@/tmp/perf-3.map;do_it@[kernel.kallsyms];@/l/libc.so;@",
	       0, 1);
	small_freeze(&t.s);
	expect_tree(&t, NULL,
		    "1 java 0 1\n2 std::f 0 1\n3 net/http.(*Client).Do 0 1\n4 org/a:.run 0 1\n"
		    "5 do_it 0 1\n6 [libc.so] 0 1\n7 [unknown] 1 1\n");
	expect_tree(
		&t, "all,pid",
		"1 java-? 0 1\n2 std::f 0 1\n3 net/http.(*Client).Do 0 1\n4 Lorg/a:.run_[j] 0 1\n"
		"5 do_it_[k] 0 1\n6 [libc.so] 0 1\n7 [unknown] 1 1\n");
	small_close(&t.s);
}

/* Template arguments have parentheses, too, which the scripts take for those of the parameters. */
static void templates(void **state)
{
	struct sampled t;

	(void)state;
	small_open(&t.s);
	t.track = (track_id){ 0 };
	sample(&t, "cycles", "count",
	       "f<int (int, int)>::operator()(int) const@/a;f<g<(E)0> >::h(int)@/a;"
	       "operator<<(x)@/a;A::operator->(y)@/a;a<b>->(x)@/a;bool operator< <T>(T)@/a",
	       0, 1);
	small_freeze(&t.s);
	expect_tree(&t, NULL,
		    "1 f<int (int, int)>::operator() 0 1\n2 f<g<(E)0> >::h 0 1\n3 operator<< 0 1\n"
		    "4 A::operator-> 0 1\n5 a<b>-> 0 1\n6 bool operator< <T> 1 1\n");
	expect_tree(
		&t, "stackcollapse",
		"1 f<int  0 1\n2 f<g< 0 1\n3 operator<< 0 1\n4 A::operator-> 0 1\n5 a<b>-> 0 1\n"
		"6 bool operator< <T> 1 1\n");
	small_close(&t.s);
}

/* What has neither name nor module has an address, be it 0; what has an empty name is called by a blank in the scripts. */
static void nameless(void **state)
{
	struct sampled t;
	stack_id stack = { 0 };
	struct builder *b = &t.s.b;

	(void)state;
	small_open(&t.s);
	stack = builder_stack(b, stack, frame(&t, "main", "", 0));
	stack = builder_stack(b, stack, builder_frame(b, &(struct frame_row){ 0 }));
	stack = builder_stack(
		b, stack,
		builder_frame(b, &(struct frame_row){ .module = builder_cstr(b, "/l/libc.so"),
						      .address = 16,
						      .flags = FRAME_NAMELESS }));
	builder_add_sample(
		b, &(struct sample_row){ .ts_ns = TIME_UNKNOWN,
					 .weight = 1,
					 .metric = builder_metric(b, STR("cycles"), STR("count")),
					 .stack = stack });
	small_freeze(&t.s);
	expect_tree(&t, NULL, "1 main 0 1\n2 [unknown] 0 1\n3 [libc.so] 1 1\n");
	expect_tree(&t, "addrs", "1 main 0 1\n2 [unknown <0>] 0 1\n3 [libc.so <10>] 1 1\n");
	expect_tree(&t, "addrs,stackcollapse", "1 main 0 1\n2 [unknown <0>] 0 1\n3   1 1\n");
	small_close(&t.s);
}

static void lines(void **state)
{
	static const struct frame_row places[] = { { .line = 3 }, { .line = 9 }, { .line = 7 } };
	static const char *const files[] = { "/home/me/a.py", "/home/me/b.py",
					     "/usr/lib/python3/x.py" };
	struct sampled t;
	stack_id stack = { 0 };

	(void)state;
	small_open(&t.s);
	for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
		struct frame_row row = places[i];

		row.file = builder_cstr(&t.s.b, files[i]);
		row.function = builder_cstr(&t.s.b, "f");
		stack = builder_stack(&t.s.b, stack, builder_frame(&t.s.b, &row));
		builder_add_sample(&t.s.b,
				   &(struct sample_row){
					   .ts_ns = TIME_UNKNOWN,
					   .weight = 1 << i,
					   .metric = builder_metric(&t.s.b, STR("wall"), STR("ns")),
					   .stack = stack });
	}
	small_freeze(&t.s);
	view_text_expect_columns(&t.s, &view_lines, NULL, "name,self,total,line",
				 "b.py:9 f|6|6|9\na.py:3 f|1|7|3\nx.py:7 f|0|4|7\n");
	view_text_fail_each(&t.s, &view_lines);
	small_close(&t.s);
}

static track_id thread_of(struct sampled *t, int64_t pid, int64_t tid, enum track_kind kind)
{
	return t->track = builder_track(&t->s.b, &(struct track_row){ .pid = pid,
								      .tid = tid,
								      .kind = (uint8_t)kind,
								      .source = t->s.b.source });
}

static void times(struct sampled *t, const char *names, int64_t wall, int64_t cpu)
{
	sample(t, "wall", "ns", names, 10, wall);
	sample(t, "cpu", "ns", names, 10, cpu);
	t->s.m->metric.is_default[1] = 1;
}

/* Of threads that mostly wait only the time on a processor counts: helpers, workers of a loader, and a process that waits
 * for those that compute. */
static void threads_that_wait(void **state)
{
	struct view_options options;
	struct sampled t;
	track_id first;

	(void)state;
	open_tracks(&t);
	first = thread_of(&t, 1, 1, TRACK_HOST);
	times(&t, "main;compute", 300, 60);
	thread_of(&t, 1, 2, TRACK_HOST);
	times(&t, "accept", 400, 20);
	thread_of(&t, 1, 3, TRACK_HOST);
	times(&t, "decode", 400, 250);
	thread_of(&t, 4, 4, TRACK_LOADER);
	times(&t, "select", 400, 30);
	thread_of(&t, 5, 5, TRACK_HOST);
	times(&t, "join", 400, 50);
	builder_add_event(
		&t.s.b, &(struct event_row){
				.ts_ns = 1, .dur_ns = 5, .track = first, .phase = PHASE_COMPUTE });
	small_freeze(&t.s);
	view_text_expect_columns(
		&t.s, &view_functions, NULL, "name,self",
		"decode|400\ncompute|300\njoin|50\nselect|30\naccept|20\nmain|0\n");
	view_options_init(&options);
	options.metric = "wall";
	view_text_expect_columns(
		&t.s, &view_functions, &options, "name,self",
		"accept|400\ndecode|400\njoin|400\nselect|400\ncompute|300\nmain|0\n");
	view_text_fail_each(&t.s, &view_functions);
	small_close(&t.s);
}

/* Without operators the time on processors says which process leads. */
static void processes_that_wait(void **state)
{
	struct sampled t;

	(void)state;
	open_tracks(&t);
	thread_of(&t, 1, 1, TRACK_HOST);
	times(&t, "wait", 400, 4);
	thread_of(&t, 2, 2, TRACK_HOST);
	times(&t, "sort", 300, 90);
	thread_of(&t, 3, 3, TRACK_HOST);
	times(&t, "read", 200, 20);
	small_freeze(&t.s);
	view_text_expect_columns(&t.s, &view_functions, NULL, "name,self",
				 "sort|300\nread|200\nwait|4\n");
	small_close(&t.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions),
		cmocka_unit_test(recursion),
		cmocka_unit_test(deep_recursion),
		cmocka_unit_test(other_metrics),
		cmocka_unit_test(other_inputs_are_told_of),
		cmocka_unit_test(tree),
		cmocka_unit_test(native_names),
		cmocka_unit_test(templates),
		cmocka_unit_test(nameless),
		cmocka_unit_test(lines),
		cmocka_unit_test(threads_that_wait),
		cmocka_unit_test(processes_that_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
