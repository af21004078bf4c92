/*
 * interpret_test.c: small traces as each producer writes them, and what the pass makes of them: producer,
 * kinds of tracks, devices, ops, steps, phases, links, stacks. Also: names of files, categories, names, and
 * every allocation failing. Traces are written with ' for ", so that they can be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "import/interpret/interpret_int.h"
#include "model/metrics.h"

struct loaded {
	struct mem mem;
	struct ow_error err;
	struct model *m;
	ow_status status;
	char *text;
};

static const char *const kinds[] = { "other",	"host", "device", "accelerator",
				     "stream",	"copy", "loader", "communication",
				     "derived", "span", "frames", "async" };
static const char *const phases[] = { "-",	   "input",   "host",	 "launch",
				      "to-device", "compute", "to-host", "communication",
				      "sync",	   "idle",    "alloc",	 "init" };
static const char *const links[] = { "flow", "launch", "backward", "message", "wait" };

static char *with_quotes(const char *text)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	return copy;
}

static void load(struct loaded *l, const char *path, const char *text,
		 const struct import_options *options)
{
	struct builder b;
	struct input in;

	memset(l, 0, sizeof(*l));
	l->text = with_quotes(text);
	mem_init(&l->mem, 0);
	l->m = model_new(&l->mem, &l->err);
	l->status = l->m ? OW_OK : OW_E_NO_MEMORY;
	if (!l->m)
		return;
	builder_init(&b, l->m, &l->err);
	l->status = input_from_memory(&in, &l->mem, path, l->text, strlen(l->text), &l->err);
	if (l->status != OW_OK)
		return;
	l->status = import_input(&b, &in, importer_find(STR("trace")), options, NULL, &l->err);
	if (l->status == OW_OK)
		l->status = model_freeze(&b);
}

static void unload(struct loaded *l)
{
	model_free(l->m);
	assert_int_equal(atomic_load(&l->mem.used), 0);
	free(l->text);
}

/* ---- what was made ---- */

static const char *string(const struct model *m, str_id id)
{
	return model_str(m, id).ptr;
}

static const char *called(const struct model *m, uint32_t event)
{
	str_id own = COLUMN_GET(m->event.name, event);

	return string(m, own.v ? own : m->op.name[m->event.op[event].v]);
}

static void tell_op(struct buf *out, const struct model *m, uint32_t event)
{
	uint32_t op = m->event.op[event].v;
	struct str name = model_str(m, m->op.name[op]), type = model_str(m, m->op.type[op]);

	if (!op) {
		buf_puts(out, " no-op");
		return;
	}
	if (!str_eq(name, str_from(called(m, event))))
		buf_printf(out, " op=%s", name.ptr);
	if (!str_eq(type, str_from(called(m, event))))
		buf_printf(out, " type=%s", type.ptr);
}

static void tell_stack(struct buf *out, const struct model *m, stack_id stack)
{
	for (; stack.v; stack = m->stack.parent[stack.v]) {
		uint32_t frame = m->stack.frame[stack.v].v;

		buf_printf(out, " < %s:%d:%s", string(m, m->frame.file[frame]),
			   m->frame.line[frame], string(m, m->frame.function[frame]));
	}
}

static void tell_event(struct buf *out, const struct model *m, uint32_t e)
{
	int64_t bytes = COLUMN_GET(m->event.bytes, e);

	buf_printf(out, "  %s", called(m, e));
	tell_op(out, m, e);
	if (m->event.step[e].v)
		buf_printf(out, " step=%" PRId64, m->step.number[m->event.step[e].v]);
	buf_printf(out, " %s", phases[COLUMN_GET(m->event.phase, e)]);
	if (bytes)
		buf_printf(out, " bytes=%" PRId64, bytes);
	tell_stack(out, m, COLUMN_GET(m->event.stack, e));
	buf_add_char(out, '\n');
}

static void tell_tracks(struct buf *out, const struct model *m)
{
	uint32_t track = 0;

	for (uint32_t e = 1; e < m->event.count; e++) {
		if (m->event.track[e].v != track) {
			track = m->event.track[e].v;
			buf_printf(out, "%s %s [%s]\n", kinds[m->track.kind[track]],
				   string(m, m->track.name[track]),
				   string(m, m->device.name[m->track.device[track].v]));
		}
		tell_event(out, m, e);
	}
}

static void rows(struct buf *out, const struct model *m)
{
	buf_printf(out, "%s", string(m, m->source.producer[1]));
	if (m->source.rank[1] >= 0)
		buf_printf(out, " rank=%d", m->source.rank[1]);
	buf_add_char(out, '\n');
	tell_tracks(out, m);
	for (uint32_t i = 1; i < m->link.count; i++)
		buf_printf(out, "%s: %s@%" PRId64 " → %s@%" PRId64 "\n", links[m->link.kind[i]],
			   called(m, m->link.src[i].v), m->event.ts_ns[m->link.src[i].v] / 1000,
			   called(m, m->link.dst[i].v), m->event.ts_ns[m->link.dst[i].v] / 1000);
	for (uint32_t i = 1; i < m->window.count; i++)
		buf_printf(out, "step %" PRId64 ": %" PRId64 "–%" PRId64 "\n",
			   m->step.number[m->window.step[i].v], m->window.start_ns[i] / 1000,
			   m->window.end_ns[i] / 1000);
	for (uint32_t i = 1; i < m->op.count; i++)
		for (uint32_t k = 0; k < m->op.input_count[i]; k++)
			buf_printf(out, "edge %s → %s\n",
				   string(m, m->op_input.name[m->op.input_first[i] + k]),
				   string(m, m->op.name[i]));
}

static const struct import_options plain = { .step = INT64_MIN };

static void tells_with(const char *path, const char *text, const char *want,
		       const struct import_options *options)
{
	struct loaded l;
	struct buf out;

	load(&l, path, text, options);
	if (l.status != OW_OK)
		fail_msg("%s", l.err.text);
	buf_init(&out, &l.mem);
	rows(&out, l.m);
	assert_string_equal(buf_cstr(&out), want);
	buf_release(&out);
	unload(&l);
}

static void gives(const char *text, const char *want)
{
	tells_with("x.json", text, want, &plain);
}

/* ---- traces ---- */

#define PROCESS(pid, name)                                                                         \
	"{'ph':'M','name':'process_name','pid':" #pid ",'args':{'name':'" name "'}},"
#define THREAD(pid, tid, name)                                                                     \
	"{'ph':'M','name':'thread_name','pid':" #pid ",'tid':" #tid ",'args':{'name':'" name "'}}" \
	","
#define SLICE(pid, tid, ts, dur, name, more)                                                       \
	"{'ph':'X','pid':" #pid ",'tid':" #tid ",'ts':" #ts ",'dur':" #dur ",'name':'" name        \
	"'" more "}"
#define ARGS(text) ",'args':{" text "}"
#define NODE(pid, tid, ts, dur, type, node)                                                        \
	SLICE(pid, tid, ts, dur, type, ",'cat':'Op'" ARGS("'name':'" node "','op':'" type "'"))

#define TF1_TRACE                                                                                                                                                                                                                       \
	"{'traceEvents':[" PROCESS(1, "/job:w/task:0/cpu:0 Compute") PROCESS(                                                                                                                                                           \
		2,                                                                                                                                                                                                                      \
		"/job:w/task:0/"                                                                                                                                                                                                        \
		"gpu:0 Compute") PROCESS(3,                                                                                                                                                                                             \
					 "/gpu:0/stream:all Compute") PROCESS(4,                                                                                                                                                        \
									      "/gpu:0/stream:7 "                                                                                                                                        \
									      "Compute") PROCESS(5,                                                                                                                                     \
												 "/gpu:0/"                                                                                                                              \
												 "memcpy "                                                                                                                              \
												 "Compute")                                                                                                                             \
		NODE(1, 0, 10, 5, "NoOp", "_SOURCE") "," NODE(1, 0, 20, 5, "IteratorGetNext", "in/next") "," SLICE(1, 0, 30, 5, "unknown", ",'cat':'Op'" ARGS("'name':'Iterator::Model::Map','op':'unknown'")) "," SLICE(               \
			2, 0, 40, 5, "MatMul",                                                                                                                                                                                          \
			",'cat':'Op'" ARGS(                                                                                                                                                                                             \
				"'name':'a/mm','op':'MatMul','input0':'in/next:1',"                                                                                                                                                     \
				"'input1':'^_SOURCE'")) "," NODE(2, 0, 50, 5, "RecvTensor",                                                                                                                                             \
								 "edge_1") "," NODE(3, 0, 46, 9,                                                                                                                                        \
										    "MatMul",                                                                                                                                           \
										    "a/mm") "," NODE(4,                                                                                                                                 \
												     0,                                                                                                                                 \
												     46,                                                                                                                                \
												     9,                                                                                                                                 \
												     "MatMul",                                                                                                                          \
												     "a/mm") "," NODE(4,                                                                                                                \
														      0,                                                                                                                \
														      60,                                                                                                               \
														      2,                                                                                                                \
														      "MEMCPYHtoD",                                                                                                     \
														      "edge_2_in") "," NODE(5,                                                                                          \
																	    0,                                                                                          \
																	    60,                                                                                         \
																	    2,                                                                                          \
																	    "MEMCPYHtoD",                                                                               \
																	    "edge_2_in") ","                                                                            \
																			 "{'ph':'s','cat':'DataFlow','name':'in/next','pid':1,'tid':0,'ts':25,'id':1}," \
																			 "{'ph':'t','cat':'DataFlow','name':'in/next','pid':2,'tid':0,'ts':40,'id':1}]}"

static void test_tf1(void **state)
{
	(void)state;
	tells_with("/a/timeline-12.json", TF1_TRACE,
		   "TF1 Timeline\n"
		   "host thread 0 [/job:w/task:0/cpu:0]\n"
		   "  NoOp op=_SOURCE step=12 host\n"
		   "  IteratorGetNext op=in/next step=12 input\n"
		   "  unknown op=Iterator/Model/Map step=12 -\n"
		   "host thread 0 [/job:w/task:0/gpu:0]\n"
		   "  MatMul op=a/mm step=12 launch\n"
		   "  RecvTensor op=edge_1 step=12 communication\n"
		   "derived thread 0 [/gpu:0]\n"
		   "  MatMul op=a/mm step=12 -\n"
		   "stream thread 0 [/gpu:0]\n"
		   "  MatMul op=a/mm step=12 compute\n"
		   "  MEMCPYHtoD op=edge_2_in step=12 to-device\n"
		   "derived thread 0 [/gpu:0]\n"
		   "  MEMCPYHtoD op=edge_2_in step=12 -\n"
		   "launch: MatMul@40 → MatMul@46\n"
		   "flow: IteratorGetNext@20 → MatMul@40\n"
		   "edge in/next → a/mm\n"
		   "edge _SOURCE → a/mm\n",
		   &plain);
}

/* Without numbered streams "all" and "memcpy" are the work; without a device ops are the compute. */
static void test_tf1_streams(void **state)
{
	(void)state;
	gives("[" PROCESS(3, "/gpu:0/stream:all Compute") PROCESS(5, "/gpu:0/memcpy Compute")
		      NODE(3, 0, 1, 2, "MatMul", "mm") "," NODE(5, 0, 4, 2, "MEMCPYDtoH", "e") "]",
	      "TF1 Timeline\n"
	      "stream thread 0 [/gpu:0]\n"
	      "  MatMul op=mm step=0 compute\n"
	      "copy thread 0 [/gpu:0]\n"
	      "  MEMCPYDtoH op=e step=0 to-host\n");
	gives("[" PROCESS(3, "/device:CPU:0 Compute") NODE(3, 0, 1, 2, "MatMul", "mm") "]",
	      "TF1 Timeline\n"
	      "host thread 0 [/device:CPU:0]\n"
	      "  MatMul op=mm step=0 compute\n");
}

/* Two runs in one file: a device may start a little before the CPU; ids of flows are used again. */
static void test_tf1_glued(void **state)
{
	(void)state;
	gives("[" PROCESS(1, "/cpu:0 Compute") PROCESS(2, "/gpu:0 Compute")
		      NODE(1, 0, 100, 5, "NoOp", "_SOURCE") "," NODE(2, 0, 98, 5, "NoOp", "_SOURCE") "," NODE(
			      1, 0, 120, 9, "A",
			      "a") "," NODE(2, 0, 140, 9, "B",
					    "b") "," NODE(2, 0, 900, 5, "NoOp",
							  "_SOURCE") "," NODE(1, 0, 905, 5, "NoOp",
									      "_SOURCE") "," NODE(1,
												  0,
												  920,
												  9,
												  "A",
												  "a") "," NODE(2,
														0,
														940,
														9,
														"B",
														"b") ","
														     "{'ph':'s','cat':'DataFlow','name':'a','pid':1,'tid':0,'ts':129,'id':0},"
														     "{'ph':'t','cat':'DataFlow','name':'a','pid':2,'tid':0,'ts':140,'id':0},"
														     "{'ph':'s','cat':'DataFlow','name':'a','pid':1,'tid':0,'ts':929,'id':0},"
														     "{'ph':'t','cat':'DataFlow','name':'a','pid':2,'tid':0,'ts':940,'id':0}]",
	      "TF1 Timeline\n"
	      "host thread 0 [/cpu:0]\n"
	      "  NoOp op=_SOURCE step=0 compute\n"
	      "  A op=a step=0 compute\n"
	      "  NoOp op=_SOURCE step=1 compute\n"
	      "  A op=a step=1 compute\n"
	      "host thread 0 [/gpu:0]\n"
	      "  NoOp op=_SOURCE step=0 compute\n"
	      "  B op=b step=0 compute\n"
	      "  NoOp op=_SOURCE step=1 compute\n"
	      "  B op=b step=1 compute\n"
	      "flow: A@120 → B@140\n"
	      "flow: A@920 → B@940\n"
	      "step 0: 98–149\n"
	      "step 1: 900–949\n");
}

/* The calls of the second run were lost when files were glued together: its work is its own still. */
static void test_tf1_lost(void **state)
{
	struct loaded l;
	uint32_t in_second = 0;

	(void)state;
	load(&l, "x.json",
	     "[" PROCESS(1, "/cpu:0 Compute") PROCESS(2, "/gpu:0 Compute") PROCESS(
		     3, "/gpu:0/stream:7 Compute")
		     NODE(1, 0, 100, 5, "NoOp", "_SOURCE") "," NODE(
			     2, 0, 110, 9, "MatMul",
			     "mm") "," NODE(3, 0, 115, 9, "MatMul",
					    "mm") "," NODE(1, 0, 900, 5, "NoOp",
							   "_SOURCE") "," NODE(3, 0, 915, 9,
									       "MatMul", "mm") "]",
	     &plain);
	assert_int_equal(l.status, OW_OK);
	assert_int_equal(l.m->link.count, 2); /* nil, and that of the first run */
	for (uint32_t i = 1; i < l.m->event.count; i++)
		in_second += l.m->step.number[l.m->event.step[i].v] == 1 && l.m->event.step[i].v;
	assert_int_equal(in_second, 2);
	unload(&l);
}

static void test_tfprof(void **state)
{
	(void)state;
	tells_with("timeline_of_7.json",
		   "{'traceEvents':[" PROCESS(0, "Op execution threads: /gpu:0/stream:all") PROCESS(
			   1, "Op scheduling threads: /job:w/gpu:0")
			   SLICE(0, 0, 5, 3, "mm", ",'cat':'Op'" ARGS("'name':'mm'")) "," SLICE(
				   1, 0, 1, 2, "mm", ",'cat':'Op'" ARGS("'name':'mm'")) "]}",
		   "tfprof timeline\n"
		   "stream thread 0 [/gpu:0]\n"
		   "  mm step=7 compute\n"
		   "host thread 0 [/job:w/gpu:0]\n"
		   "  mm step=7 launch\n"
		   "launch: mm@1 → mm@5\n",
		   &plain);
	/* a tree, one process per depth: on one track it nests */
	gives("{'traceEvents':[" PROCESS(0, "Scope:0") PROCESS(1, "Scope:1") SLICE(
		      0, 0, 0, 9, "_TFProfRoot",
		      ",'cat':'Op'" ARGS(
			      "'name':'_TFProfRoot','op':'_TFProfRoot'")) "," SLICE(1, 0, 0, 5, "a",
										    ",'cat':'"
										    "Op'" ARGS(
											    "'name'"
											    ":'a','"
											    "op':'"
											    "a'")) "]}",
	      "tfprof timeline\n"
	      "host thread 0 []\n"
	      "  _TFProfRoot step=0 -\n"
	      "  a step=0 -\n");
}

#define KERNEL "void at::native::add<4, F<int> >(int)"
#define KINETO_TRACE                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                          \
	"{'schemaVersion':1,'deviceProperties':[],'distributedInfo':{'rank':3},'traceEvents':"                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                \
	"[" SLICE(                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            \
		9, 9, 0, 100, "ProfilerStep#5", ",'cat':'user_annotation'") "," SLICE(9, 9,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   \
										      100, 50, "ProfilerStep#6", ",'cat':'user_annotation'") "," SLICE(9, 9, 2, 6, "enumerate(DataLoader)#X.__next__", ",'cat':'user_annotation'") "," SLICE(9,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               \
																													     9, 10, 20, "aten::add", ",'cat':'cpu_op'" ARGS("'Sequence number':7,'Fwd thread id':0")) "," SLICE(9,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            \
																																										9,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            \
																																										12, 3, "cudaLaunchKernel", ",'cat':'cuda_runtime'" ARGS("'correlation':70")) "," SLICE(9, 9, 90, 5, "cudaMemcpyAsync", ",'cat':'cuda_runtime'" ARGS("'correlation':71")) "," SLICE(9,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         \
																																																																   9, 96, 3, "cudaDeviceSynchronize",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         \
																																																																   ",'cat':'cuda_runtime'" ARGS(                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              \
																																																																	   "'correlation':72")) "," SLICE(9,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  \
																																																																					  8,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  \
																																																																					  110, 9, "AddBackward0", ",'cat':'cpu_op'" ARGS("'Sequence number':7,'Fwd thread id':1")) "," SLICE(9,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               \
																																																																																	     9,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               \
																																																																																	     1,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               \
																																																																																	     98, "m.py(12): train", ",'cat':'python_function'") "," SLICE(9,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  \
																																																																																									  9, 11, 9, "nn.Module: Add_0", ",'cat':'python_function'") "," SLICE(0, 7, 20, 30, KERNEL,                                                                                                                                                                                                                                                                                                                                                                                           \
																																																																																																	      ",'cat':'kernel'" ARGS(                                                                                                                                                                                                                                                                                                                                                                                         \
																																																																																																		      "'device':2,'correlation':70")) "," SLICE(0, 7, 105, 9, "Memcpy DtoH (Device -> Pageable)", ",'cat':'gpu_memcpy'" ARGS("'device':2,'correlation':71,'bytes':4096")) "," SLICE(0, 7, 19, 40, "range", ",'cat':'gpu_user_annotation'") "," SLICE(0, 9, 60, 9, "ncclKernel_AllReduce", ",'cat':'kernel'" ARGS("'device':2,'correlation':99,'In msg nelems':10,'dtype':'Float'")) "," SLICE(-1,             \
																																																																																																																																																	      0, 3,           \
																																																																																																																																																	      9,              \
																																																																																																																																																	      "Buffer Flush", \
																																																																																																																																																	      ",'cat':'overhead'") "]}"

static void test_kineto(void **state)
{
	(void)state;
	gives(KINETO_TRACE,
	      "PyTorch Kineto (2022–23) rank=3\n"
	      "span thread 0 []\n"
	      "  Buffer Flush no-op step=5 -\n"
	      "stream stream 7 [GPU 2]\n"
	      "  " KERNEL
	      " type=at::native::add<4, F> step=5 compute < :0:nn.Module: Add_0 < m.py:12:train\n"
	      "  Memcpy DtoH (Device -> Pageable) step=5 to-host bytes=4096 < m.py:12:train\n"
	      "derived thread 7 [GPU 0]\n"
	      "  range no-op step=5 -\n"
	      "communication stream 9 [GPU 2]\n"
	      "  ncclKernel_AllReduce step=5 communication bytes=40\n"
	      "host thread 8 []\n"
	      "  AddBackward0 step=6 host < m.py:12:train\n"
	      "host thread 9 []\n"
	      "  ProfilerStep#5 type=ProfilerStep step=5 -\n"
	      "  enumerate(DataLoader)#X.__next__ step=5 input < m.py:12:train\n"
	      "  aten::add step=5 host < m.py:12:train\n"
	      "  cudaLaunchKernel step=5 launch < :0:nn.Module: Add_0 < m.py:12:train\n"
	      "  cudaMemcpyAsync step=5 launch < m.py:12:train\n"
	      "  cudaDeviceSynchronize step=5 sync < m.py:12:train\n"
	      "  ProfilerStep#6 type=ProfilerStep step=6 -\n"
	      "frames thread 9 []\n"
	      "  m.py(12): train no-op step=5 - < m.py:12:train\n"
	      "  nn.Module: Add_0 no-op step=5 - < :0:nn.Module: Add_0 < m.py:12:train\n"
	      "launch: cudaLaunchKernel@12 → " KERNEL "@20\n"
	      "launch: cudaMemcpyAsync@90 → Memcpy DtoH (Device -> Pageable)@105\n"
	      "backward: aten::add@10 → AddBackward0@110\n"
	      "step 5: 0–100\n"
	      "step 6: 100–150\n");
}

/* Two streams and an event between them: kernel 1 is recorded, kernel 3 was given to the stream after that, kernel 2 waits; then the host waits for
 * the stream, looks at the event, and waits for it. Waits of which nothing is known (-1) make no link. */
#define CALL(ts, dur, name, number)                                                                \
	SLICE(9, 9, ts, dur, name, ",'cat':'cuda_runtime'" ARGS("'correlation':" #number)) ","
#define WORK(stream, ts, dur, name, number)                                                        \
	SLICE(0, stream, ts, dur, name,                                                            \
	      ",'cat':'kernel'" ARGS("'device':0,'correlation':" #number))                         \
	","
#define WAIT(tid, ts, name, number, stream, other, record)                                         \
	SLICE(0, tid, ts, 1, name,                                                                 \
	      ",'cat':'cuda_sync'" ARGS("'correlation':" #number ",'stream':" #stream              \
					",'wait_on_stream':" #other                                \
					",'wait_on_cuda_event_record_corr_id':" #record))

static void test_kineto_waits(void **state)
{
	struct loaded l;
	struct buf out;

	(void)state;
	load(&l, "a.json",
	     "{'schemaVersion':1,'deviceProperties':[],'traceEvents':[" CALL(
		     10, 2, "cudaLaunchKernel", 1) CALL(13, 1, "cudaEventRecord", 2)
		     CALL(15, 2, "cudaLaunchKernel", 3) CALL(18, 1, "cudaStreamWaitEvent", 4) CALL(
			     20, 2, "cudaLaunchKernel", 5) CALL(30, 40, "cudaStreamSynchronize",
								6) CALL(72, 1, "cudaEventQuery", 7)
			     CALL(75, 5, "cudaEventSynchronize", 8) CALL(
				     82, 1, "cudaStreamWaitEvent",
				     9) WORK(7, 13, 10, "k1", 1) WORK(7, 23, 30, "k3",
								      3) WORK(20, 24, 9, "k2", 5)
				     WAIT(20, 18, "Stream Wait Event", 4, 20, 7, 2) "," WAIT(
					     7, 31, "Stream Sync",
					     6, 7, -1,
					     -1) "," WAIT(-1, 72, "Event Sync", 7, -1, 7,
							  2) "," WAIT(-1, 76, "Event Sync", 8, -1,
								      7, 2) "," WAIT(20, 82,
										     "Stream Wait "
										     "Event",
										     9, 20, -1,
										     -1) "]}",
	     &plain);
	buf_init(&out, &l.mem);
	for (uint32_t i = 1; i < l.m->link.count; i++)
		if (l.m->link.kind[i] == LINK_WAIT)
			buf_printf(&out, "%s → %s@%lld\n", called(l.m, l.m->link.src[i].v),
				   called(l.m, l.m->link.dst[i].v),
				   (long long)l.m->event.ts_ns[l.m->link.dst[i].v] / 1000);
	buf_add_char(&out, '\0');
	assert_string_equal(out.ptr, "k1 → k2@24\n"
				     "k3 → cudaStreamSynchronize@30\n"
				     "k1 → cudaEventSynchronize@75\n");
	buf_release(&out);
	unload(&l);
}

/* A kernel that a communication launches is one, whatever it is called. */
static void test_kineto_communication(void **state)
{
	(void)state;
	gives("[" SLICE(9, 9, 0, 9, "record_param_comms", ",'cat':'cpu_op'") "," SLICE(9, 9, 1, 2, "cudaLaunchKernel", ",'cat':'cuda_runtime'" ARGS("'correlation':1")) "," SLICE(
		      9, 9, 4, 4, "aten::copy_",
		      ",'cat':'cpu_op'") "," SLICE(9, 9, 5, 2, "cudaLaunchKernel",
						   ",'cat':'cuda_runtime'" ARGS(
							   "'correlation':2")) "," SLICE(0, 7, 5, 3,
											 "fused",
											 ",'cat':'"
											 "kernel"
											 "'" ARGS(
												 "'"
												 "c"
												 "o"
												 "r"
												 "r"
												 "e"
												 "l"
												 "a"
												 "t"
												 "i"
												 "o"
												 "n"
												 "'"
												 ":"
												 "1")) "," SLICE(0,
														 7,
														 9,
														 3,
														 "copy",
														 ",'cat':'kernel'" ARGS(
															 "'correlation':2")) "]",
	      "PyTorch Kineto (2022–23)\n"
	      "stream stream 7 [GPU 0]\n"
	      "  fused step=0 communication\n"
	      "  copy step=0 compute\n"
	      "host thread 9 []\n"
	      "  record_param_comms step=0 host\n"
	      "  cudaLaunchKernel step=0 launch\n"
	      "  aten::copy_ step=0 host\n"
	      "  cudaLaunchKernel step=0 launch\n"
	      "launch: cudaLaunchKernel@1 → fused@5\n"
	      "launch: cudaLaunchKernel@5 → copy@9\n");
}

/* Arrows instead of correlations; stacks as arguments; steps from the optimizer. */
static void test_kineto_old(void **state)
{
	(void)state;
	gives("{'traceEvents':[" SLICE(
		      9, '9', 1, 8, "aten::add",
		      ",'cat':'Operator'" ARGS(
			      "'Call stack':'a.py(3): f;b.py(4): "
			      "main'")) "," SLICE(9, '9', 2, 3, "cudaLaunchKernel",
						  ",'cat':'Runtime'") "," SLICE(9, '9', 20, 5,
										"Optimizer.step#"
										"SGD.step",
										",'cat':'"
										"Operator'") "," SLICE(9,
												       '9',
												       40,
												       5,
												       "Optimizer.step#SGD.step",
												       ",'cat':'Operator'") "," SLICE(0,
																      'stream 7',
																      6,
																      3,
																      "k",
																      ",'cat':'Kernel'") ","
																			 "{'ph':'s','cat':'async','name':'launch','pid':9,'tid':9,'ts':2,'id':1},"
																			 "{'ph':'f','cat':'async','name':'launch','pid':0,'tid':'stream "
																			 "7','ts':6,'id':1,'bp':'e'}]}",
	      "PyTorch Kineto (2020–21)\n"
	      "stream stream 7 [GPU 0]\n"
	      "  k step=0 compute < a.py:3:f < b.py:4:main\n"
	      "host thread 9 []\n"
	      "  aten::add step=0 host < a.py:3:f < b.py:4:main\n"
	      "  cudaLaunchKernel step=0 launch < a.py:3:f < b.py:4:main\n"
	      "  Optimizer.step#SGD.step step=0 host\n"
	      "  Optimizer.step#SGD.step step=1 host\n"
	      "launch: cudaLaunchKernel@2 → k@6\n"
	      "step 0: 1–25\n"
	      "step 1: 25–45\n");
}

/* Without a device operators are the compute, unless they are part of a wait. */
static void test_kineto_host(void **state)
{
	(void)state;
	gives("[" SLICE(9, 9, 0, 5, "train step 3", ",'cat':'user_annotation'") "," SLICE(9, 9, 1, 2, "aten::mm", ",'cat':'cpu_op'") "," SLICE(9, 9, 5, 5, "train step 4", ",'cat':'user_annotation'") "," SLICE(
		      9, 9, 6, 3, "enumerate(DataLoader)#Y.__next__",
		      ",'cat':'user_annotation'") "," SLICE(9, 9, 7, 1, "aten::stack",
							    ",'cat':'cpu_op'") "," SLICE(9, 9, 9, 1,
											 "nccl:all_"
											 "reduce",
											 ",'cat':'"
											 "user_"
											 "annotatio"
											 "n'") "," SLICE(9,
													 4,
													 9,
													 1,
													 "gloo:all_reduce",
													 ",'cat':'user_annotation'") "]",
	      "PyTorch Kineto (2022–23)\n"
	      "host thread 4 []\n"
	      "  gloo:all_reduce step=4 communication\n"
	      "host thread 9 []\n"
	      "  train step 3 step=3 host\n"
	      "  aten::mm step=3 compute\n"
	      "  train step 4 step=4 host\n"
	      "  enumerate(DataLoader)#Y.__next__ step=4 input\n"
	      "  aten::stack step=4 input\n"
	      "  nccl:all_reduce step=4 communication\n"
	      "step 3: 0–5\n"
	      "step 4: 5–10\n");
}

static void test_kineto_mtia(void **state)
{
	(void)state;
	gives("{'traceEvents':[{'ph':'M','name':'process_labels','pid':17,'args':{'labels':'MTIA "
	      "17'}}," SLICE(17, 1, 1, 2, "dma_request",
			     ",'cat':'mtia_ccp_events'" ARGS(
				     "'direction':'HOST_TO_DEVICE','size':"
				     "64")) "," SLICE(17, 1, 4, 2, "event_wait",
						      ",'cat':'mtia_ccp_"
						      "events'") "," SLICE(17, 1, 7, 2, "pe_exe",
									   ",'cat':'mtia_ccp_"
									   "events'") "]}",
	      "PyTorch Kineto (2022–23)\n"
	      "stream stream 1 [MTIA 17]\n"
	      "  dma_request op=Memcpy HtoD (dma_request) type=Memcpy HtoD (dma_request) step=0 "
	      "to-device "
	      "bytes=64\n"
	      "  event_wait step=0 -\n"
	      "  pe_exe step=0 compute\n");
}

#define ORT(ts, dur, cat, name, more)                                                              \
	"{'cat':'" cat "','pid':1,'tid':1,'dur':" #dur ",'ts':" #ts ",'ph':'X','name':'" name      \
	"','args':{" more "}}"

static void test_onnxruntime(void **state)
{
	(void)state;
	gives("[" ORT(0, 9, "Session", "model_loading_uri", "") "," ORT(12, 4, "Node", "conv1_kernel_time", "'op_name':'Conv','provider':'CPUExecutionProvider'") "," ORT(
		      17, 1, "Node", "conv1_fence_after",
		      "'op_name':'Conv'") "," ORT(11, 8, "Session", "SequentialExecutor::Execute",
						  "") "," ORT(10, 10, "Session", "model_run",
							      "") "]",
	      "ONNX Runtime\n"
	      "host thread 1 []\n"
	      "  model_loading_uri host\n"
	      "  model_run step=0 host\n"
	      "  SequentialExecutor::Execute step=0 host\n"
	      "  conv1_kernel_time op=conv1 type=Conv step=0 compute\n"
	      "  conv1_fence_after step=0 sync\n"
	      "step 0: 10–20\n");
	/* kernels follow the node that launched them in the file */
	gives("[" ORT(12, 4, "Node", "mm_kernel_time",
		      "'op_name':'MatMul','provider':'CUDAExecutionProvider'") ","
									       "{'cat':'Kernel','"
									       "pid':2,'tid':3,'ts'"
									       ":15,'dur':9,'ph':'"
									       "X','name':'gemm',"
									       "'args':{'stream':7}"
									       "}]",
	      "ONNX Runtime\n"
	      "host thread 1 []\n"
	      "  mm_kernel_time op=mm type=MatMul step=0 launch\n"
	      "stream thread 3 [GPU 0]\n"
	      "  gemm step=0 compute\n"
	      "launch: mm_kernel_time@12 → gemm@15\n");
}

static void test_xprof(void **state)
{
	(void)state;
	gives("{'displayTimeUnit':'ns','metadata':{'highres-ticks':true},'traceEvents':[" PROCESS(
		      501, "/host:CPU") THREAD(501, 1,
					       "python3") THREAD(501, 2,
								 "tf_data_iterator_get_next")
		      SLICE(501, 1, 1, 50, "train", ARGS("'step_num':'8'")) "," SLICE(501, 1, 2, 9, "$train.py:33 step", "") "," SLICE(
			      501, 1, 3, 4, "EagerExecute: MatMul",
			      "") "," SLICE(501, 1, 4, 2, "MatMul",
					    ARGS("'long_name':'m/dense/"
						 "MatMul:MatMul'")) "," SLICE(501, 2, 5, 9,
									      "Iterat"
									      "orGetN"
									      "extOp:"
									      ":DoCom"
									      "pute",
									      "") "," SLICE(501, 2,
											    6, 4,
											    "Iterat"
											    "or::"
											    "Map",
											    ARGS("'"
												 "l"
												 "o"
												 "n"
												 "g"
												 "_"
												 "n"
												 "a"
												 "m"
												 "e"
												 "'"
												 ":"
												 "'"
												 "I"
												 "t"
												 "e"
												 "r"
												 "a"
												 "t"
												 "o"
												 "r"
												 ":"
												 ":"
												 "M"
												 "o"
												 "d"
												 "e"
												 "l"
												 ":"
												 ":"
												 "M"
												 "a"
												 "p"
												 "'")) ",{}]}",
	      "TensorFlow 2, JAX or XProf\n"
	      "host python3 [/host:CPU]\n"
	      "  train step=8 host\n"
	      "  EagerExecute: MatMul step=8 host < train.py:33:step\n"
	      "  MatMul op=m/dense/MatMul step=8 compute < train.py:33:step\n"
	      "frames python3 [/host:CPU]\n"
	      "  $train.py:33 step no-op step=8 - < train.py:33:step\n"
	      "loader tf_data_iterator_get_next [/host:CPU]\n"
	      "  IteratorGetNextOp::DoCompute step=8 input\n"
	      "  Iterator::Map op=Iterator/Model/Map step=8 -\n"
	      "step 8: 1–51\n");
	/* a device: streams are its work, the other lines restate it */
	gives("{'traceEvents':[" PROCESS(501, "/host:CPU") PROCESS(1, "/device:GPU:0") THREAD(
		      1, 5, "Stream #5(Kernel)") THREAD(1, 6, "Steps")
		      SLICE(501, 1, 1, 4, "cuLaunchKernel", ARGS("'correlation_id':'9'")) "," SLICE(
			      1, 5, 8, 4, "gemm<float>(int)",
			      ARGS("'correlation_id':'9','tf_op':'m/"
				   "mm:MatMul'")) "," SLICE(1, 5, 13, 2, "MemcpyH2D",
							    ARGS("'memcpy_"
								 "details':'"
								 "kind:pinned "
								 "size:77 "
								 "dest:0'")) "," SLICE(1, 6, 1, 20,
										       "3",
										       "") "]}",
	      "TensorFlow 2, JAX or XProf\n"
	      "stream Stream #5(Kernel) [/device:GPU:0]\n"
	      "  gemm<float>(int) op=m/mm type=MatMul step=3 compute\n"
	      "  MemcpyH2D step=3 to-device bytes=77\n"
	      "derived Steps [/device:GPU:0]\n"
	      "  3 no-op step=3 -\n"
	      "host thread 1 [/host:CPU]\n"
	      "  cuLaunchKernel step=3 launch\n"
	      "launch: cuLaunchKernel@1 → gemm<float>(int)@8\n"
	      "step 3: 1–21\n");
}

static void test_torch_legacy(void **state)
{
	(void)state;
	tells_with("run_rank1.json",
		   "[" SLICE('CPU functions', 1, 1, 9, "aten::add", ",'args':{}") "," SLICE(
			   'CUDA functions', 0, 6, 5, "k",
			   ",'args':{}") ","
					 "{'ph':'s','cat':'cpu_to_cuda','name':'aten::add','pid':'"
					 "CPU functions',"
					 "'tid':1,'ts':1,'id':1},"
					 "{'ph':'f','cat':'cpu_to_cuda','name':'k','pid':'CUDA "
					 "functions','tid':0,"
					 "'ts':6,'id':1}]",
		   "PyTorch autograd profiler\n"
		   "host thread 1 []\n"
		   "  aten::add step=0 host\n"
		   "stream thread 0 [GPU 0]\n"
		   "  k step=0 compute\n"
		   "launch: aten::add@1 → k@6\n",
		   &plain);
}

static void test_rocprof(void **state)
{
	(void)state;
	gives("{'traceEvents':[{}," PROCESS(2, "CPU HIP API") PROCESS(6, "GPU0")
		      SLICE(2, 1, 1, 2, "hipLaunchKernel", ARGS("'BeginNs':'1000'")) "," SLICE(
			      6, 0, 5, 3, "k.kd", "") ","
						      "{'ph':'s','cat':'DataFlow','name':'dep','"
						      "pid':2,'tid':1,'ts':1,'id':4},"
						      "{'ph':'t','cat':'DataFlow','name':'dep','"
						      "pid':6,'tid':0,'ts':5,'id':4}]}",
	      "rocprof\n"
	      "host thread 1 []\n"
	      "  hipLaunchKernel step=0 launch\n"
	      "stream thread 0 [GPU0]\n"
	      "  k.kd type=k step=0 compute\n"
	      "launch: hipLaunchKernel@1 → k.kd@5\n");
}

static void test_others(void **state)
{
	(void)state;
	gives("{'beginningOfTime':0,'traceEvents':[" SLICE(
		      1, 1, 0, 9, "ExecuteCompiler", "") "," SLICE(1, 2, 0, 9, "Total Frontend",
								   ARGS("'count':1")) "]}",
	      "clang -ftime-trace\n"
	      "host thread 1 []\n"
	      "  ExecuteCompiler step=0 -\n"
	      "derived thread 2 []\n"
	      "  Total Frontend no-op step=0 -\n");
	gives("[" SLICE(1, 1, 0, 9, "RunTask", ",'cat':'toplevel'") "]",
	      "Chrome\nhost thread 1 []\n  RunTask step=0 -\n");
	/* Chrome writes what XProf does into its metadata, but has categories. */
	gives("{'displayTimeUnit':'ns','metadata':{'highres-ticks':true},'traceEvents':[" SLICE(
		      1, 1, 1, 2, "RunTask", ",'cat':'disabled-by-default-devtools.timeline'") "]}",
	      "Chrome\nhost thread 1 []\n  RunTask step=0 -\n");
	gives("[" SLICE(1, 1, 0, 9, "GC", ",'cat':'v8'") "]",
	      "V8 or Node.js\nhost thread 1 []\n  GC step=0 -\n");
	gives("[" SLICE(1, 1, 0, 9, "work", "") "," SLICE(1, 1, 10, 9, "data_loader wait", "") "]",
	      "unknown\nhost thread 1 []\n  work step=0 -\n  data_loader wait step=0 input\n");
}

/* ---- steps and flows of any trace ---- */

static void test_step_marker(void **state)
{
	static const struct import_options numbered = { .step = INT64_MIN,
							.step_marker = "iter [0-9]+" };
	static const struct import_options counted = { .step = INT64_MIN, .step_marker = "run" };
	static const struct import_options missing = { .step = 4, .step_marker = "nothing" };

	(void)state;
	tells_with(
		"x.json",
		"[" SLICE(1, 1, 0, 9, "iter 10", "") "," SLICE(1, 1, 9, 9, "iter 11", "") "," SLICE(
			1, 2, 5, 20, "w", "") "," SLICE(1, 2, 30, 2, "w", "") "]",
		"unknown\n"
		"host thread 1 []\n"
		"  iter 10 step=10 -\n"
		"  iter 11 step=11 -\n"
		"host thread 2 []\n"
		"  w step=10 -\n"
		"  w -\n"
		"step 10: 0–9\n"
		"step 11: 9–18\n",
		&numbered);
	tells_with("x.json", "[" SLICE(1, 1, 0, 9, "run", "") "," SLICE(1, 1, 9, 9, "run", "") "]",
		   "unknown\nhost thread 1 []\n  run step=0 -\n  run step=1 -\n"
		   "step 0: 0–9\nstep 1: 9–18\n",
		   &counted);
	tells_with("x.json", "[" SLICE(1, 1, 0, 9, "run", "") "]",
		   "unknown\nhost thread 1 []\n  run step=4 -\n", &missing);
}

#define SEQUENCES 20000

/* Each forward op is joined to its backward op, and of ops that call each other the inner one counts. */
static void check_sequences(int apart)
{
	struct loaded l;
	struct buf text;
	struct mem mem;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	buf_puts(&text, "{'schemaVersion':1,'traceEvents':[{'ph':'M','name':'x'}");
	for (int i = 0; i < 3 * SEQUENCES; i++) {
		int number = i < 2 * SEQUENCES ? i / 2 : 3 * SEQUENCES - 1 - i;

		buf_printf(
			&text,
			",{'ph':'X','cat':'cpu_op','name':'%s','pid':1,'tid':%d,'ts':%d,'dur':%d,"
			"'args':{'Sequence number':%d,'Fwd thread id':%d}}",
			i >= 2 * SEQUENCES ? "backward"
			: i % 2		   ? "inner"
					   : "outer",
			i < 2 * SEQUENCES ? 1 : 2, 10 * i, i % 2 ? 2 : 15, number * apart,
			i >= 2 * SEQUENCES);
	}
	buf_puts(&text, "]}");
	load(&l, "x.json", buf_cstr(&text), &plain);
	assert_int_equal(l.status, OW_OK);
	assert_int_equal(l.m->link.count, 1 + SEQUENCES);
	for (uint32_t i = 1; i < l.m->link.count; i++) {
		int64_t forward = l.m->event.ts_ns[l.m->link.src[i].v] / 10000;
		int64_t backward = l.m->event.ts_ns[l.m->link.dst[i].v] / 10000;

		assert_int_equal(l.m->link.kind[i], LINK_FORWARD_BACKWARD);
		assert_int_equal(forward % 2, 1);
		assert_int_equal(backward, 3 * SEQUENCES - 1 - forward / 2);
	}
	unload(&l);
	buf_release(&text);
}

static void test_many_sequences(void **state)
{
	(void)state;
	check_sequences(1);
	check_sequences(50021); /* too far apart for a table */
}

/* Flags of the op of that name, of those that tell what it does. */
static uint32_t role(const struct loaded *l, const char *name)
{
	op_id op = model_find_op(l->m, str_from(name));

	assert_true(op.v);
	return l->m->op.flags[op.v] & (OP_WRAPS | OP_WAITS);
}

/* An op per step is called ProfilerStep#N: on average a step has one of them, not all. */
static void test_marker_average(void **state)
{
	int64_t values[METRIC_COUNT] = { 0 }, sum = 0;
	struct metric_plan plan;
	struct loaded l;

	(void)state;
	load(&l, "x.json",
	     "{'schemaVersion':1,'traceEvents':["
	     "{'ph':'X','cat':'user_annotation','name':'ProfilerStep#1','pid':1,'tid':1,'ts':0,'"
	     "dur':90},"
	     "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':2,'dur':30},"
	     "{'ph':'X','cat':'user_annotation','name':'ProfilerStep#2','pid':1,'tid':1,'ts':100,'"
	     "dur':70},"
	     "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':102,'dur':30}]}",
	     &plain);
	assert_int_equal(l.status, OW_OK);
	metric_plan_init(&plan, l.m, -1, METRIC_BIT(METRIC_CPU_MICROS));
	for (uint32_t i = 1; i < l.m->op.count; i++) {
		metric_eval(&plan, (op_id){ i }, values);
		sum += values[METRIC_CPU_MICROS];
	}
	assert_int_equal(sum, (60 + 40) * 1000 / 2 + 30 * 1000);
	unload(&l);
}

static void test_roles(void **state)
{
	static const struct import_options marked = { .step = INT64_MIN, .step_marker = "epoch.*" };
	struct loaded l;

	(void)state;
	load(&l, "x.json",
	     "{'schemaVersion':1,'traceEvents':["
	     "{'ph':'X','cat':'user_annotation','name':'ProfilerStep#1','pid':1,'tid':1,'ts':0,'"
	     "dur':90},"
	     "{'ph':'X','cat':'user_annotation','name':'forward','pid':1,'tid':1,'ts':1,'dur':50},"
	     "{'ph':'X','cat':'user_annotation','name':'## data_load "
	     "##','pid':1,'tid':1,'ts':52,'dur':5},"
	     "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':2,'dur':5},"
	     "{'ph':'X','cat':'cuda_runtime','name':'cudaDeviceSynchronize','pid':1,'tid':1,'ts':"
	     "60,'dur':5},"
	     "{'ph':'X','cat':'kernel','name':'gemm','pid':0,'tid':7,'ts':60,'dur':5,"
	     "'args':{'device':0,'stream':7}}]}",
	     &plain);
	assert_int_equal(l.status, OW_OK);
	assert_int_equal(role(&l, "ProfilerStep#1"), OP_WRAPS);
	assert_int_equal(role(&l, "forward"), OP_WRAPS);
	assert_int_equal(role(&l, "## data_load ##"),
			 0); /* waiting for input is what one looks for */
	assert_int_equal(role(&l, "aten::mm"), 0);
	assert_int_equal(role(&l, "cudaDeviceSynchronize"), OP_WAITS);
	assert_int_equal(role(&l, "gemm"), 0);
	unload(&l);

	load(&l, "x.json",
	     "[{'ph':'X','cat':'Session','name':'session_initialization','pid':1,'tid':1,'ts':0,'"
	     "dur':9},"
	     "{'ph':'X','cat':'Session','name':'model_run','pid':1,'tid':1,'ts':10,'dur':9},"
	     "{'ph':'X','cat':'Node','name':'c_kernel_time','pid':1,'tid':1,'ts':11,'dur':5,"
	     "'args':{'op_name':'Conv'}}]",
	     &plain);
	assert_int_equal(role(&l, "session_initialization"), OP_WRAPS);
	assert_int_equal(role(&l, "model_run"), OP_WRAPS);
	assert_int_equal(role(&l, "c"), 0);
	unload(&l);

	load(&l, "x.json",
	     "[" SLICE(1, 1, 0, 9, "epoch", "") "," SLICE(1, 1, 1, 3, "batch", "") "]", &marked);
	assert_int_equal(role(&l, "epoch"), OP_WRAPS);
	assert_int_equal(role(&l, "batch"), 0);
	unload(&l);
}

#define FLOW(ph, id, tid, ts, more)                                                                \
	"{'ph':'" ph "','cat':'c','name':'n','pid':1,'tid':" #tid ",'ts':" #ts ",'id':" #id more "}"

static void test_flows(void **state)
{
	(void)state;
	/* inside the innermost; an end without bp goes to the next slice; steps are ends, too */
	gives("[" SLICE(1, 1, 0, 20, "a", "") "," SLICE(1, 1, 2, 5, "b", "") "," SLICE(1, 2, 10, 5, "c", "") "," SLICE(
		      1, 3, 3, 9, "d",
		      "") "," FLOW("s", 1, 1, 3,
				   "") "," FLOW("t", 1, 3, 4,
						"") "," FLOW("f", 1, 2, 8,
							     "") "," FLOW("f", 2, 2, 8,
									  "") "," FLOW("s", 3, 1,
										       15,
										       "") "," FLOW("f",
												    3,
												    2,
												    12,
												    ",'bp':'e'") "]",
	      "unknown\n"
	      "host thread 1 []\n  a step=0 -\n  b step=0 -\n"
	      "host thread 2 []\n  c step=0 -\n"
	      "host thread 3 []\n  d step=0 -\n"
	      "flow: b@2 → d@3\n"
	      "flow: b@2 → c@10\n");
	/* written in the slices themselves */
	gives("[" SLICE(1, 1, 0, 5, "a", ",'bind_id':7,'flow_out':true") "," SLICE(
		      1, 2, 6, 5, "b", ",'bind_id':7,'flow_in':true") "]",
	      "unknown\n"
	      "host thread 1 []\n  a step=0 -\n"
	      "host thread 2 []\n  b step=0 -\n"
	      "flow: a@0 → b@6\n");
}

/* ---- parts ---- */

static void test_file_names(void **state)
{
	static const struct {
		const char *path;
		bool any;
		int64_t number;
	} numbers[] = {
		{ "timeline-100.json", false, 100 },
		{ "/x/timeline_7.json.gz", false, 7 },
		{ "my-timeline_02_step_3.json", false, 3 },
		{ "trace_9.json", false, -1 },
		{ "trace_9.json", true, 9 },
		{ "timeline.json", true, -1 },
		{ "9", true, -1 },
		{ "timeline-.json", true, -1 },
		{ "timeline-99999999999999999999.json", false, -1 },
	};
	static const struct {
		const char *path;
		int32_t rank;
	} ranks[] = {
		{ "rank0.json", 0 },	{ "a/trace_rank_12.pt.trace.json", 12 },
		{ "x-rank=3.json", 3 }, { "rank.json", -1 },
		{ "frank.json", -1 },	{ "rank5/x.json", -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
		int64_t number;

		if (!interpret_file_number(str_from(numbers[i].path), numbers[i].any, &number))
			number = -1;
		if (number != numbers[i].number)
			fail_msg("%s: %" PRId64, numbers[i].path, number);
	}
	for (size_t i = 0; i < ARRAY_COUNT(ranks); i++)
		if (interpret_file_rank(str_from(ranks[i].path)) != ranks[i].rank)
			fail_msg("%s", ranks[i].path);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		uint8_t host, device;
	} names[] = {
		{ "aten::mm", HOST_PLAIN, DEVICE_PLAIN },
		{ "ProfilerStep#3", HOST_MARKER, DEVICE_PLAIN },
		{ "## data_load ##", HOST_INPUT, DEVICE_PLAIN },
		{ "DataLoader", HOST_INPUT, DEVICE_PLAIN },
		{ "next_batch", HOST_INPUT, DEVICE_PLAIN },
		{ "Iterator::Prefetch", HOST_PIPELINE, DEVICE_PLAIN },
		{ "IteratorGetNextOp::DoCompute", HOST_INPUT, DEVICE_PLAIN },
		{ "hipDeviceSynchronize", HOST_SYNC, DEVICE_PLAIN },
		{ "Await", HOST_SYNC, DEVICE_PLAIN },
		{ "KJTAwaitable wait()", HOST_PLAIN, DEVICE_PLAIN },
		{ "MPI_Init_thread", HOST_INITIALISATION, DEVICE_PLAIN },
		{ "MPI_Send", HOST_COMMUNICATION, DEVICE_PLAIN },
		{ "nccl:all_reduce", HOST_ENQUEUE, DEVICE_COMMUNICATION },
		{ "ncclDevKernel_AllGather_RING_LL", HOST_PLAIN, DEVICE_COMMUNICATION },
		{ "multimem_all_reduce_kernel", HOST_PLAIN, DEVICE_COMMUNICATION },
		{ "all-to-all.3", HOST_PLAIN, DEVICE_COMMUNICATION },
		{ "send", HOST_PLAIN, DEVICE_COMMUNICATION },
		{ "sender", HOST_PLAIN, DEVICE_PLAIN },
		{ "reduce_kernel<all>", HOST_PLAIN, DEVICE_PLAIN },
		{ "Memcpy PtoP (Device -> Device)", HOST_PLAIN, DEVICE_TO_DEVICE },
		{ "MEMCPYDtoD", HOST_PLAIN, DEVICE_LOCAL_COPY },
		{ "MemcpyD2H", HOST_PLAIN, DEVICE_TO_HOST },
		{ "Memset (Device)", HOST_PLAIN, DEVICE_LOCAL_COPY },
		{ "copy_kernel<HtoD>", HOST_PLAIN, DEVICE_PLAIN },
		{ "infeed.1", HOST_PLAIN, DEVICE_FROM_HOST },
		{ "", HOST_PLAIN, DEVICE_PLAIN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct name_class class = classify_name(str_from(names[i].name));

		if (class.host != names[i].host || class.device != names[i].device)
			fail_msg("%s: %u %u", names[i].name, class.host, class.device);
	}
	assert_int_equal(trailing_number(STR("GPU 12")), 12);
	assert_int_equal(trailing_number(STR("GPU")), -1);
	assert_int_equal(category_meaning(STR("xpu_runtime")).class, CATEGORY_RUNTIME);
	assert_int_equal(category_meaning(STR("node,node.async_hooks")).class, CATEGORY_V8);
	assert_int_equal(category_meaning(STR("")).class, CATEGORY_NONE);
}

/* What [memory] events say is known from the first reading, but for those that are written in another way: with escapes
 * in their name, or with arguments that come with the end. Rows are the same. */
#define MEMORY_TRACE                                                                               \
	"{'schemaVersion': 1, 'deviceProperties': [], 'traceEvents': ["                            \
	"{'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::empty', 'pid': 1, 'tid': 1, 'ts': 10, "       \
	"'dur': 90},"                                                                              \
	"{'ph': 'i', 'name': '[memory]', 'pid': 1, 'tid': 1, 'ts': 50, 'args': {" MEMORY(          \
		512) "}},"                                                                         \
		     "{'ph': 'i', 'name': '\\u005bmemory]', 'pid': 1, 'tid': 1, 'ts': 60, "        \
		     "'args': {" MEMORY(                                                           \
			     1024) "}},"                                                           \
				   "{'ph': 'i', 'name': '[memory]', 'pid': 1, 'tid': 1, 'ts': "    \
				   "70, 'args': {'Addr': 7}},"                                     \
				   "{'ph': 'i', 'name': '[memory]', 'pid': 1, 'tid': 1, 'ts': "    \
				   "71},"                                                          \
				   "{'ph': 'B', 'name': '[memory]', 'pid': 1, 'tid': 1, 'ts': "    \
				   "80},"                                                          \
				   "{'ph': 'E', 'name': '[memory]', 'pid': 1, 'tid': 1, 'ts': "    \
				   "81, 'args': {" MEMORY(                                         \
					   -512) "}},"                                             \
						 "{'ph': 'i', 'name': '[memory]', 'pid': 1, "      \
						 "'tid': 1, 'ts': 20, 'args': {" MEMORY(           \
							 64) "}},"                                 \
							     "{'ph': 'i', 'name': '[memory]', "    \
							     "'pid': 1, 'tid': 2, 'ts': 30, "      \
							     "'args': {" MEMORY(32) "}}]}"
#define MEMORY(bytes)                                                                              \
	"'Bytes': " #bytes ", 'Addr': 7, 'Device Type': 1, 'Device Id': 2, 'Total Allocated': 900"

static void test_memory_events(void **state)
{
	static const struct {
		int64_t ts, size;
	} want[] = {
		{ 20000, 64 }, { 30000, 32 }, { 50000, 512 }, { 60000, 1024 }, { 80000, -512 }
	};
	struct loaded l;

	(void)state;
	load(&l, "x.json", MEMORY_TRACE, &plain);
	assert_int_equal(l.status, OW_OK);
	assert_int_equal(l.m->heap.count, ARRAY_COUNT(want) + 1);
	for (uint32_t i = 0; i < ARRAY_COUNT(want); i++) {
		bool other = want[i].ts == 30000; /* on another thread, where no operator is open */

		assert_true(l.m->heap.ts_ns[i + 1] == want[i].ts);
		assert_true(l.m->heap.size[i + 1] == want[i].size);
		assert_true(l.m->heap.address[i + 1] == 7);
		assert_int_equal(l.m->heap.allocated[i + 1], 900);
		assert_string_equal(string(l.m, l.m->op.name[l.m->heap.op[i + 1].v]),
				    other ? "" : "aten::empty");
	}
	assert_string_equal(string(l.m, l.m->device.name[l.m->heap.device[1].v]), "GPU 2");
	unload(&l);
}

static void test_no_memory(void **state)
{
	static const char *const traces[] = { TF1_TRACE, KINETO_TRACE, MEMORY_TRACE };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(traces); i++) {
		struct loaded l = { .status = OW_E_NO_MEMORY };

		for (uint64_t n = 1; l.status != OW_OK; n++) {
			mem_fail_after(n, n % 2);
			load(&l, "x.json", traces[i], &plain);
			mem_fail_after(0, false);
			if (l.status != OW_OK)
				assert_int_equal(l.status, OW_E_NO_MEMORY);
			unload(&l);
			assert_true(n < 20000);
		}
	}
}

/* Cut anywhere, any of these ends cleanly. */
static void test_prefixes(void **state)
{
	static const char *const traces[] = { TF1_TRACE, KINETO_TRACE, MEMORY_TRACE };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(traces); i++) {
		char *text = with_quotes(traces[i]);

		for (size_t len = strlen(text); len-- > 1;) {
			struct loaded l;

			text[len] = '\0';
			load(&l, "x.json", text, &plain);
			unload(&l);
		}
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tf1),
		cmocka_unit_test(test_tf1_streams),
		cmocka_unit_test(test_tf1_glued),
		cmocka_unit_test(test_tfprof),
		cmocka_unit_test(test_kineto),
		cmocka_unit_test(test_kineto_waits),
		cmocka_unit_test(test_kineto_communication),
		cmocka_unit_test(test_kineto_old),
		cmocka_unit_test(test_kineto_host),
		cmocka_unit_test(test_kineto_mtia),
		cmocka_unit_test(test_onnxruntime),
		cmocka_unit_test(test_xprof),
		cmocka_unit_test(test_torch_legacy),
		cmocka_unit_test(test_rocprof),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_many_sequences),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_marker_average),
		cmocka_unit_test(test_tf1_lost),
		cmocka_unit_test(test_step_marker),
		cmocka_unit_test(test_flows),
		cmocka_unit_test(test_file_names),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_memory_events),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
