/*
 * trace_list_test.c: trace_events told from the model is what reading the file gives, element by element, and the
 * file is read where the model cannot tell; every failed allocation ends cleanly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "import/chrome/trace_int.h"
#include "relation/trace/trace_list.h"
#include "support/relation_text.h"

static const struct trace_options whole = { .part_bytes = 4 << 20, .threads = 1 };
static const struct trace_options parts = { .part_bytes = 256, .threads = 3 };

struct loaded {
	struct mem mem;
	struct ow_error err;
	struct model *m;
};

static void load(struct loaded *l, const char *text, const struct trace_options *options)
{
	struct import_options import = { .step = INT64_MIN };
	struct import_ctx ctx = { .options = &import, .err = &l->err };
	struct builder b;
	source_id source;

	memset(l, 0, sizeof(*l));
	mem_init(&l->mem, 0);
	l->m = model_new(&l->mem, &l->err);
	assert_non_null(l->m);
	builder_init(&b, l->m, &l->err);
	source = builder_new_source(
		&b, &(struct source_row){ .rank = -1, .format = builder_cstr(&b, "trace") });
	l->m->input_cap = source.v + 1;
	l->m->inputs = mem_zalloc(&l->mem, l->m->input_cap * sizeof(*l->m->inputs));
	assert_non_null(l->m->inputs);
	l->m->inputs[source.v] = mem_alloc(&l->mem, sizeof(struct input));
	assert_non_null(l->m->inputs[source.v]);
	assert_int_equal(input_from_memory(l->m->inputs[source.v], &l->mem, "test", text,
					   strlen(text), &l->err),
			 OW_OK);
	ctx.b = &b;
	ctx.in = l->m->inputs[source.v];
	assert_int_equal(trace_load_with(&ctx, options), OW_OK);
	assert_int_equal(model_freeze(&b), OW_OK);
}

static void unload(struct loaded *l)
{
	model_free(l->m);
	assert_int_equal(atomic_load(&l->mem.used), 0);
}

static void read_all(struct loaded *l, struct buf *text)
{
	struct table_run run = { .m = l->m, .name = "a", .number = 1 };

	buf_init(text, &l->mem);
	if (relation_text("trace_events", &run, 1, NULL, &l->mem, text, &l->err) != OW_OK)
		fail_msg("%s", l->err.text);
}

/* Single quotes stand for double ones. */
static char *quoted(const char *text)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	return copy;
}

/* The same rows from the model, if the trace is plain, and from the file. */
static void compare(const char *text, bool plain, enum trace_labels labels)
{
	static const struct trace_options *const all[] = { &whole, &parts };
	char *json = quoted(text);

	for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
		struct trace_list list;
		struct buf told, scanned;
		struct loaded l;

		load(&l, json, all[i]);
		assert_int_equal(l.m->listings[1].plain, plain);
		assert_int_equal(trace_list_init(&list, &l.mem, l.m, false, &l.err), OW_OK);
		assert_int_equal(list.span_count, 1);
		assert_int_equal(list.spans[0].refs != NULL, plain);
		if (plain)
			assert_int_equal(list.spans[0].labels, labels);
		trace_list_release(&list);
		read_all(&l, &told);
		l.m->listings[1].plain = false;
		read_all(&l, &scanned);
		assert_string_equal(buf_cstr(&told), buf_cstr(&scanned));
		assert_true(scanned.len > 10);
		buf_release(&told);
		buf_release(&scanned);
		unload(&l);
	}
	free(json);
}

#define OP(ts, tid, label)                                                                         \
	"{'ph':'X','cat':'Op','name':'MatMul','pid':1,'tid':" #tid ",'ts':" #ts                    \
	",'dur':5,'args':{'name':'" label "','op':'MatMul'}},"

static void timelines(void **state)
{
	(void)state;
	compare("{'traceEvents':["
		"{'ph':'M','name':'process_name','pid':1,'args':{'name':'/cpu:0 Compute'}}," OP(
			20, 1, "a/b") OP(10, 2, "a/c")
			OP(5, 1, "MatMul") "{'ph':'s','cat':'DataFlow','name':'t','pid':1,'tid':1,'"
					   "ts':21,'id':7},"
					   "{'ph':'C','cat':'Memory','name':'bytes','pid':1,'tid':"
					   "0,'ts':22,'args':{'bfc':5,"
					   "'x':7}},{'ph':'O','cat':'Tensor','name':'t0','pid':1,'"
					   "tid':1,'id':1,'ts':23,"
					   "'args':{'snapshot':{'name':'no'}}},"
					   "{'ph':'t','cat':'DataFlow','name':'t','pid':1,'tid':2,'"
					   "ts':24,'id':7}," OP(
						   30, 3, "a/b") "{'ph':'X','cat':'Op','name':'"
								 "NoArgs','pid':1,'tid':1,'ts':40,"
								 "'dur':1}]}",
		true, LABELS_ALL);
}

/* Many ops with plain labels, and some more elements. */
static void compare_among_plain(const char *more, enum trace_labels labels)
{
	char text[16384] = "[";

	for (int i = 0; i < 80; i++)
		strncat(text, OP(1, 1, "plain"), sizeof(text) - strlen(text) - 1);
	strncat(text, more, sizeof(text) - strlen(text) - 1);
	strncat(text, OP(9, 1, "last") "]", sizeof(text) - strlen(text) - 1);
	compare(text, true, labels);
}

/* Ops of tf.data are called otherwise than their label, which can be told unless two labels give one op. */
static void paths(void **state)
{
	(void)state;
	compare_among_plain(OP(2, 1, "Iterator::Model::Map") OP(3, 2, "Iterator::Model")
				    OP(4, 1, "Iterator::Model::Map"),
			    LABELS_ALL);
	compare_among_plain(OP(2, 1, "Iterator::Model::Map") OP(3, 1, "Iterator::Model/Map"),
			    LABELS_MOST);
	compare_among_plain(OP(2, 1, "Iterator::a") OP(3, 1, "Iterator/a"), LABELS_MOST);
	compare_among_plain(OP(2, 1, "Iterator/a") OP(3, 1, "Iterator/b::c"), LABELS_MOST);
}

static void kineto(void **state)
{
	(void)state;
	compare("{'schemaVersion':1,'baseTimeNanoseconds':1700000000000000000,'traceEvents':["
		"{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':3,'tid':4,'ts':10.125,'dur':2.5,"
		"'args':{'External id':1,'name':'x\\u00e9','op':null}},"
		"{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernel','pid':3,'tid':4,"
		"'ts':11,'dur':1,'args':{'correlation':5,'op':7}},"
		"{'ph':'s','id':5,'pid':3,'tid':4,'ts':11,'cat':'ac2g','name':'ac2g'},"
		"{'ph':'X','cat':'kernel','name':'gemm','pid':0,'tid':7,'ts':20,'dur':9,"
		"'args':{'correlation':5,'stream':7}},"
		"{'ph':'f','id':5,'pid':0,'tid':7,'ts':20,'cat':'ac2g','name':'ac2g','bp':'e'},"
		"{'ph':'i','s':'t','name':'tick','pid':3,'tid':4,'ts':12,'cat':'x'},"
		"{'ph':'X','name':'open','pid':3,'tid':5,'ts':1},"
		"{'ph':'M','name':'thread_name','pid':3,'tid':4,'args':{'name':'main'}}]}",
		true, LABELS_NONE);
}

/* Pairs, and what is made of them. */
static void pairs(void **state)
{
	(void)state;
	compare("[{'ph':'B','name':'a','pid':1,'tid':1,'ts':1},"
		"{'ph':'b','cat':'c','id':1,'name':'as','pid':1,'tid':1,'ts':1.5},"
		"{'ph':'E','pid':1,'tid':1,'ts':2},"
		"{'ph':'e','cat':'c','id':1,'name':'as','pid':1,'tid':1,'ts':2.5},"
		"{'ph':'E','pid':1,'tid':1,'ts':3},"
		"{'ph':'n','cat':'c','id':1,'name':'as','pid':1,'tid':1,'ts':3},"
		"{'ph':'B','name':'never "
		"ends','pid':1,'tid':1,'ts':4},{'ph':'X','name':'f','pid':1,"
		"'tid':1,'ts':5,'dur':1,'bind_id':'0x1','flow_out':true},"
		"{'ph':'C','name':'n','pid':1,'ts':6,'args':{'op':1}},{'ph':'C','pid':1,'ts':7},"
		"{'ph':'s','name':'q','id':1,'pid':1,'tid':1,'ts':8,'args':{'a':1}},"
		"{'ph':'f','name':'q','id':1,'pid':1,'tid':1},{},{'ph':'XX'}]",
		true, LABELS_ALL);
}

/* What rows do not tell: such files are read again. */
static void odd_ones(void **state)
{
	static const char *const odd[] = {
		"{'ph':'X','name':'a','ts':'5','dur':1}",
		"{'ph':'X','name':'a','ts':5.12345,'dur':1}",
		"{'ph':'X','name':'a','ts':5,'dur':0.0001}",
		"{'ph':'X','name':'a','ts':5,'dur':-1}",
		"{'ph':'X','name':'a','ts':5,'dur':null}",
		"{'ph':'X','name':'a','ts':1e30,'dur':1}",
		"{'ph':'X','ts':5,'dur':1}",
		"{'ph':'X','name':'','ts':5,'dur':1}",
		"{'ph':'X','name':7,'ts':5,'dur':1}",
		"{'ph':'X','name':'a','cat':'','ts':5,'dur':1}",
		"{'ph':'X','name':'a','pid':'7','ts':5,'dur':1}",
		"{'ph':'X','name':'a','tid':'main','ts':5,'dur':1}",
		"{'ph':'X','name':'a','tid':1.5,'ts':5,'dur':1}",
		"{'ph':'X','name':'a','ts':5,'dur':1,'args':{}}",
		"{'ph':'i','name':'a','ts':5,'dur':1}",
		"{'ph':'T','name':'a','ts':5,'dur':1}",
		"{'ph':'B','name':'a','ts':5},{'ph':'E','ts':6,'args':{'name':'end'}}",
		"{'ph':'XX','name':'a','ts':5,'dur':1}",
		"{'name':'a','ts':5,'dur':1}",
		"{'ph':'\\u0058','name':'a','ts':5,'dur':1}",
		"{'ph':'O','name':'a','ts':5,'args':{'name':1}}",
		"5,{'ph':'X','name':'a','ts':5,'dur':1}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(odd); i++) {
		char text[1024];

		snprintf(text, sizeof(text), "[%s,%s]",
			 "{'ph':'X','name':'before','pid':1,'tid':2,'ts':1,'dur':2}", odd[i]);
		compare(text, false, LABELS_NONE);
	}
}

static ow_status list_once(struct loaded *l, struct mem *mem)
{
	struct table_dict dict;
	struct trace_list list;
	ow_status status = trace_list_init(&list, mem, l->m, false, &l->err);

	if (status == OW_OK)
		status = trace_list_read_args(&list, KEY_NAME, &dict, &l->err);
	if (status == OW_OK)
		status = trace_list_read_args(&list, KEY_OP, &dict, &l->err);
	trace_list_release(&list);
	return status;
}

static void failures_are_clean(void **state)
{
	char *json = quoted("[" OP(1, 1, "Iterator::a") OP(
		2, 2, "b") "{'ph':'M','name':'x','args':{'name':'new'}},{'ph':'X','ts':9,"
			   "'name':'y','dur':1,'args':{'op':'q\\n'}}]");
	ow_status status = OW_E_NO_MEMORY;
	struct loaded l;

	(void)state;
	load(&l, json, &whole);
	for (uint64_t n = 1; status != OW_OK; n++) {
		struct mem mem;

		mem_init(&mem, 0);
		mem_fail_after(n, false);
		status = list_once(&l, &mem);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
	unload(&l);
	free(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timelines), cmocka_unit_test(paths),
		cmocka_unit_test(kineto),    cmocka_unit_test(pairs),
		cmocka_unit_test(odd_ones),  cmocka_unit_test(failures_are_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
