/*
 * import_trace_test.c: Chrome traces of every phase and form become the rows they should; the same rows
 * whether one thread reads the file or many read tiny parts of it; any cut or failed allocation ends
 * cleanly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "import/chrome/trace_int.h"

struct loaded {
	struct mem mem;
	struct ow_error err;
	struct model *m;
	ow_status status;
};

static const struct trace_options one_thread = { .part_bytes = 4 << 20, .threads = 1 };

static void add(struct loaded *l, struct builder *b, const void *text, size_t len,
		const struct trace_options *options)
{
	struct import_options import = { .step = INT64_MIN };
	struct import_ctx ctx = { .b = b, .options = &import, .err = &l->err };
	struct input in;

	b->source = builder_new_source(b, &(struct source_row){ .rank = -1 });
	l->status = input_from_memory(&in, &l->mem, "test", text, len, &l->err);
	if (l->status != OW_OK)
		return;
	ctx.in = &in;
	l->status = trace_load_with(&ctx, options);
	input_close(&in);
}

static void load(struct loaded *l, const void *text, size_t len,
		 const struct trace_options *options)
{
	struct builder b;

	memset(l, 0, sizeof(*l));
	mem_init(&l->mem, 0);
	l->m = model_new(&l->mem, &l->err);
	l->status = l->m ? OW_OK : OW_E_NO_MEMORY;
	if (!l->m)
		return;
	builder_init(&b, l->m, &l->err);
	add(l, &b, text, len, options);
	if (l->status == OW_OK)
		l->status = model_freeze(&b);
	if (l->status == OW_OK)
		l->status = model_require_nesting(l->m, &l->err);
}

static void unload(struct loaded *l)
{
	model_free(l->m);
	assert_int_equal(atomic_load(&l->mem.used), 0);
}

static void tell_number(struct buf *out, const struct model *m, const char *what, int64_t number)
{
	if (number == MODEL_NO_ID)
		return;
	if (number < MODEL_TEXT_NUMBER + UINT32_MAX)
		buf_printf(out, " %s=\"%s\"", what,
			   model_str(m, (str_id){ (uint32_t)(number - MODEL_TEXT_NUMBER) }).ptr);
	else
		buf_printf(out, " %s=%" PRId64, what, number);
}

static void tell_id(struct buf *out, const struct model *m, uint64_t id)
{
	if (id & MODEL_TEXT_ID)
		buf_printf(out, " id=\"%s\"", model_str(m, (str_id){ (uint32_t)id }).ptr);
	else
		buf_printf(out, " id=%" PRIu64, id);
}

static void tell_time(struct buf *out, const char *what, int64_t ns)
{
	if (ns != TIME_UNKNOWN)
		buf_printf(out, " %s=%" PRId64, what, ns);
}

static void tell_stack(struct buf *out, const struct model *m, stack_id stack)
{
	if (!stack.v)
		return;
	buf_puts(out, " stack=");
	for (; stack.v; stack = m->stack.parent[stack.v])
		buf_printf(out, "%s;",
			   model_str(m, m->frame.function[m->stack.frame[stack.v].v]).ptr);
}

static void tell_event(struct buf *out, const struct model *m, uint32_t i)
{
	const struct event_table *e = &m->event;
	uint8_t ph = COLUMN_GET(e->ph, i), flags = COLUMN_GET(e->flags, i);
	str_id name = e->op[i].v ? m->op.name[e->op[i].v] : COLUMN_GET(e->name, i);

	buf_printf(out, "  %c %s", ph ? ph : 'X', model_str(m, name).ptr);
	if (COLUMN_GET(e->category, i).v)
		buf_printf(out, " [%s]", model_str(m, e->category[i]).ptr);
	tell_time(out, "ts", e->ts_ns[i]);
	tell_time(out, "dur", e->dur_ns[i]);
	if (e->dur_ns[i] != TIME_UNKNOWN && COLUMN_GET(e->self_ns, i) != e->dur_ns[i])
		tell_time(out, "self", e->self_ns[i]);
	if (COLUMN_GET(e->depth, i))
		buf_printf(out, " depth=%u", e->depth[i]);
	if (COLUMN_GET(e->args_size, i))
		buf_printf(out, " args=%" PRIu64 "+%u", e->args_offset[i], e->args_size[i]);
	tell_stack(out, m, COLUMN_GET(e->stack, i));
	if (e->op[i].v && COLUMN_GET(e->name, i).v)
		buf_printf(out, " called=%s type=%s", model_str(m, e->name[i]).ptr,
			   model_str(m, m->op.type[e->op[i].v]).ptr);
	if (COLUMN_GET(e->correlation, i))
		buf_printf(out, " correlation=%u", e->correlation[i]);
	buf_printf(out, "%s%s%s", flags & EVENT_UNFINISHED ? " unfinished" : "",
		   flags & EVENT_OVERLAPS ? " overlaps" : "",
		   flags & EVENT_UNMATCHED ? " unmatched" : "");
	for (uint32_t k = 1; k < m->event_key.count; k++)
		if (m->event_key.event[k].v == i) {
			tell_id(out, m, m->event_key.id[k]);
			buf_printf(out, " scope=%s", model_str(m, m->event_key.scope[k]).ptr);
		}
	for (uint32_t k = 1; k < m->event_args.count; k++)
		if (m->event_args.event[k].v == i)
			buf_printf(out, " more=%" PRIu64 "+%u", m->event_args.args_offset[k],
				   m->event_args.args_size[k]);
	buf_add_char(out, '\n');
}

static void tell_track(struct buf *out, const struct model *m, uint32_t track)
{
	buf_printf(out, "track kind=%u", m->track.kind[track]);
	tell_number(out, m, "pid", m->track.pid[track]);
	tell_number(out, m, "tid", m->track.tid[track]);
	buf_printf(out, " (%s / %s)\n", model_str(m, m->track.process[track]).ptr,
		   model_str(m, m->track.name[track]).ptr);
	for (uint32_t i = 1; i < m->event.count; i++)
		if (m->event.track[i].v == track)
			tell_event(out, m, i);
	for (uint32_t i = 1; i < m->flow.count; i++) {
		if (m->flow.track[i].v != track)
			continue;
		buf_printf(out, "  flow %c [%s] %s ts=%" PRId64, m->flow.ph[i],
			   model_str(m, m->flow.category[i]).ptr, model_str(m, m->flow.name[i]).ptr,
			   m->flow.ts_ns[i]);
		tell_id(out, m, m->flow.id[i]);
		if (COLUMN_GET(m->flow.event, i).v)
			buf_printf(out, " of %u", m->flow.event[i].v);
		buf_puts(out, COLUMN_GET(m->flow.enclosing, i) ? " enclosing\n" : "\n");
	}
	for (uint32_t i = 1; i < m->counter.count; i++)
		if (m->counter.track[i].v == track)
			buf_printf(out, "  counter %s.%s%s%s ts=%" PRId64 " %g\n",
				   model_str(m, m->counter.name[i]).ptr,
				   model_str(m, m->counter.series[i]).ptr,
				   COLUMN_GET(m->counter.instance, i).v ? " " : "",
				   model_str(m, COLUMN_GET(m->counter.instance, i)).ptr,
				   m->counter.ts_ns[i], m->counter.value[i]);
}

/* The whole model but for facts, as text. */
static void write_rows(struct buf *out, const struct model *m)
{
	for (uint32_t track = 1; track < m->track.count; track++)
		tell_track(out, m, track);
}

static void tell_notes(struct buf *out, const struct model *m)
{
	for (uint32_t i = 1; i < m->note.count; i++)
		buf_printf(out, "note %u x%" PRIu64 " %s\n", m->note.kind[i], m->note.times[i],
			   model_str(m, m->note.text[i]).ptr);
}

static void tells_with(const char *text, const char *want, const struct trace_options *options)
{
	struct loaded l;
	struct buf out;

	load(&l, text, strlen(text), options);
	assert_int_equal(l.status, OW_OK);
	buf_init(&out, &l.mem);
	write_rows(&out, l.m);
	assert_string_equal(buf_cstr(&out), want);
	buf_release(&out);
	unload(&l);
}

static void reads_as(const char *text, const char *want)
{
	struct trace_options portable = one_thread;

	tells_with(text, want, &one_thread);
	portable.path = JSON_PORTABLE;
	tells_with(text, want, &portable);
}

#define EV(ph, name, ts, more)                                                                     \
	"{\"ph\":\"" ph "\",\"name\":\"" name "\",\"pid\":1,\"tid\":2,\"ts\":" ts more "}"

static void test_slices(void **state)
{
	(void)state;
	reads_as("[" EV("X", "a", "10", ",\"dur\":5,\"cat\":\"c\"") "," EV("X", "b", "11.5",
									   ",\"dur\":1.25") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X a [c] ts=10000 dur=5000 self=3750\n"
		 "  X b ts=11500 dur=1250 depth=1\n");
	/* out of order; equal starts, longest first; file order where equal */
	reads_as("[" EV("X", "late", "9", ",\"dur\":1") "," EV("X", "s", "1", ",\"dur\":1") "," EV(
			 "X", "l", "1", ",\"dur\":3") "," EV("X", "m", "1",
							     ",\"dur\":2") "," EV("X", "m2", "1",
										  ",\"dur\":2") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X l ts=1000 dur=3000 self=1000\n"
		 "  X m ts=1000 dur=2000 self=0 depth=1\n"
		 "  X m2 ts=1000 dur=2000 self=1000 depth=2\n"
		 "  X s ts=1000 dur=1000 depth=3\n"
		 "  X late ts=9000 dur=1000\n");
	/* arguments by reference; {} and null are none */
	reads_as("[" EV("X", "a", "1", ",\"dur\":1,\"args\":{\"k\":[1]}") "," EV(
			 "X", "b", "2", ",\"dur\":1,\"args\":{}") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X a ts=1000 dur=1000 args=60+9\n"
		 "  X b ts=2000 dur=1000\n");
	/* without a duration: to the end of the track */
	reads_as("[" EV("X", "a", "1", "") "," EV("X", "b", "5", ",\"dur\":2") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X a ts=1000 dur=6000 self=4000 unfinished\n"
		 "  X b ts=5000 dur=2000 depth=1\n");
	reads_as("[" EV("X", "a", "1", ",\"dur\":-7") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X a ts=1000 dur=0\n");
}

/* Arguments that say what a slice is. */
static void test_labels(void **state)
{
	(void)state;
	reads_as(
		"[" EV("X", "MatMul", "1", ",\"dur\":1,\"cat\":\"Op\",\"args\":{\"name\":\"a\\/b\",\"op\":\"MatMul\"}") "," EV(
			"X", "MatMul", "3",
			",\"dur\":1,\"cat\":\"Op\",\"args\":{ \"x\" : [{\"name\":1}], "
			"\"name\":\"c\" "
			"}") "," EV("X", "other", "5",
				    ",\"dur\":1,\"cat\":\"Op\"") "," EV("X", "plain", "7",
									",\"dur\":1") "]",
		"track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		"  X a/b [Op] ts=1000 dur=1000 args=76+29 called=MatMul type=MatMul\n"
		"  X c [Op] ts=3000 dur=1000 args=182+34 called=MatMul type=MatMul\n"
		"  X other [Op] ts=5000 dur=1000\n"
		"  X plain ts=7000 dur=1000\n");
	reads_as("[" EV("X", "k", "1",
			",\"dur\":1,\"cat\":\"cuda_runtime\",\"args\":{\"cbid\": 211, "
			"\"correlation\": 77}") "," EV("X", "l", "3",
						       ",\"dur\":1,\"cat\":\"cuda_runtime\","
						       "\"args\":{"
						       "\"correlation\":-1}") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X k [cuda_runtime] ts=1000 dur=1000 args=81+32 correlation=77\n"
		 "  X l [cuda_runtime] ts=3000 dur=1000 args=195+18\n");
}

static void test_overlaps(void **state)
{
	(void)state;
	reads_as("[" EV("X", "p", "0", ",\"dur\":100") "," EV("X", "a", "10", ",\"dur\":10") "," EV(
			 "X", "b", "15",
			 ",\"dur\":15") "," EV("X", "in_b", "21",
					       ",\"dur\":2") "," EV("X", "c", "25",
								    ",\"dur\":15") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X p ts=0 dur=100000 self=75000\n"
		 "  X a ts=10000 dur=10000 depth=1\n"
		 "  X b ts=15000 dur=15000 self=13000 overlaps\n"
		 "  X in_b ts=21000 dur=2000 depth=1\n"
		 "  X c ts=25000 dur=15000 depth=1\n");
	/* whole microseconds: a child may end one late; with decimals it may not */
	reads_as("[" EV("X", "p", "0", ",\"dur\":10") "," EV("X", "c", "5", ",\"dur\":6") "," EV(
			 "X", "n", "10", ",\"dur\":5") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X p ts=0 dur=10000 self=5000\n"
		 "  X c ts=5000 dur=6000 depth=1\n"
		 "  X n ts=10000 dur=5000\n");
	reads_as("[" EV("X", "p", "0", ",\"dur\":10") "," EV("X", "c", "5", ",\"dur\":5.5") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X p ts=0 dur=10000\n"
		 "  X c ts=5000 dur=5500 overlaps\n");
}

static void test_begin_end(void **state)
{
	(void)state;
	reads_as("[" EV("B", "a", "0", ",\"args\":{\"x\":1}") "," EV("B", "b", "1", "") "," EV(
			 "E", "b", "2", ",\"args\":{\"y\":1}") "," EV("E", "a", "3",
								      ",\"args\":{\"z\":1}") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  B a ts=0 dur=3000 self=2000 args=52+7 more=217+7\n"
		 "  B b ts=1000 dur=1000 depth=1 args=157+7\n");
	/* an end closes the begin of its name; the inner one keeps its own end */
	reads_as(
		"[" EV("B", "alpha", "0", "") "," EV("B", "beta", "1", "") "," EV(
			"E", "alpha", "9", "") "," EV("E", "beta", "10", "") "]",
		"track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		"  B alpha ts=0 dur=9000 self=1000\n" /* within the tolerance of whole microseconds */
		"  B beta ts=1000 dur=9000 depth=1\n");
	/* an inner begin that never ends, ends with the outer one; one without ends with the track */
	reads_as("[" EV("B", "a", "0", "") "," EV("B", "b", "1", "") "," EV(
			 "E", "a", "9", "") "," EV("B", "c", "10", "") "," EV("i", "i", "12",
									      "") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  B a ts=0 dur=9000 self=1000\n"
		 "  B b ts=1000 dur=8000 depth=1 unfinished\n"
		 "  B c ts=10000 dur=2000 unfinished\n"
		 "  i i ts=12000\n");
	/* the end of an empty slice may come first; ends without a name close the top; surplus ones go */
	reads_as("[" EV("E", "z", "3", "") "," EV("B", "z", "3", "") "," EV(
			 "B", "y", "4",
			 "") ",{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":5}," EV("E", "none", "6",
										"") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  B z ts=3000 dur=0\n"
		 "  B y ts=4000 dur=1000\n");
	/* in order of time, whatever the order in the file */
	reads_as("[" EV("E", "a", "5", "") "," EV("B", "a", "1", "") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  B a ts=1000 dur=4000\n");
}

static void test_async(void **state)
{
	(void)state;
	reads_as(
		"[{\"ph\":\"b\",\"cat\":\"c\",\"name\":\"n\",\"id\":\"0x1\",\"pid\":1,\"tid\":1,"
		"\"ts\":1},"
		"{\"ph\":\"n\",\"cat\":\"c\",\"name\":\"n\",\"id\":\"0x1\",\"pid\":1,\"tid\":1,"
		"\"ts\":2},"
		"{\"ph\":\"b\",\"cat\":\"c\",\"name\":\"m\",\"id\":\"0x1\",\"pid\":1,\"tid\":1,"
		"\"ts\":2},"
		"{\"ph\":\"e\",\"cat\":\"c\",\"name\":\"n\",\"id\":\"0x1\",\"pid\":1,\"tid\":9,"
		"\"ts\":5},"
		"{\"ph\":\"e\",\"cat\":\"c\",\"name\":\"n\",\"id\":1,\"pid\":1,\"tid\":9,\"ts\":6},"
		"{\"ph\":\"S\",\"cat\":\"c\",\"name\":\"s\",\"id\":\"7\",\"pid\":1,\"tid\":1,"
		"\"ts\":"
		"1},"
		"{\"ph\":\"F\",\"cat\":\"c\",\"name\":\"s\",\"id\":7,\"pid\":1,\"tid\":1,\"ts\":4}"
		"]",
		"track kind=11 pid=1 (process 1 / )\n"
		"  b n [c] ts=1000 dur=4000 id=\"0x1\" scope=\n"
		"  S s [c] ts=1000 dur=3000 id=7 scope=\n"
		"  b m [c] ts=2000 dur=3000 unfinished id=\"0x1\" scope=\n"
		"  n n [c] ts=2000 id=\"0x1\" scope=\n"
		"  e n [c] ts=6000 unmatched id=1 scope=\n");
}

static void test_flows_and_counters(void **state)
{
	(void)state;
	reads_as("[{\"ph\":\"s\",\"cat\":\"f\",\"name\":\"n\",\"id\":5,\"pid\":1,\"tid\":2,\"ts\":"
		 "1},"
		 "{\"ph\":\"f\",\"cat\":\"f\",\"name\":\"n\",\"id\":\"5\",\"bp\":\"e\",\"pid\":1,"
		 "\"tid\":2,\"ts\":1.5},"
		 "{\"ph\":\"X\",\"name\":\"v2\",\"pid\":1,\"tid\":2,\"ts\":2,\"dur\":1,\"bind_id\":"
		 "\"0x9\",\"flow_out\":true},"
		 "{\"ph\":\"C\",\"name\":\"mem\",\"id\":3,\"pid\":1,\"tid\":2,\"ts\":3,\"args\":{"
		 "\"a\":1,\"b\":\"2.5\",\"c\":\"x\"}}]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X v2 ts=2000 dur=1000\n"
		 "  flow s [f] n ts=1000 id=5\n"
		 "  flow f [f] n ts=1500 id=5 enclosing\n"
		 "  flow s [] v2 ts=2000 id=\"0x9\" of 1\n"
		 "  counter mem.a 3 ts=3000 1\n"
		 "  counter mem.b 3 ts=3000 2.5\n");
}

static void test_tracks(void **state)
{
	(void)state;
	/* text of digits is the number; other text is a name; missing ones */
	reads_as("[{\"ph\":\"i\",\"name\":\"a\",\"pid\":\"7\",\"tid\":\"x y\",\"ts\":1},"
		 "{\"ph\":\"i\",\"name\":\"b\",\"pid\":7,\"ts\":2},{\"ph\":\"i\",\"name\":\"c\","
		 "\"ts\":3},"
		 "{\"ph\":\"i\",\"name\":\"d\",\"pid\":-1,\"tid\":18446744073709551615,\"ts\":4},"
		 "{\"ph\":\"i\",\"name\":\"e\",\"pid\":\"-1\",\"tid\":\"007\",\"ts\":5}]",
		 "track kind=1 ( / )\n"
		 "  i c ts=3000\n"
		 "track kind=1 pid=-1 tid=\"007\" (process -1 / 007)\n"
		 "  i e ts=5000\n"
		 "track kind=1 pid=-1 tid=\"18446744073709551615\" (process -1 / "
		 "18446744073709551615)\n"
		 "  i d ts=4000\n"
		 "track kind=1 pid=7 (process 7 / )\n"
		 "  i b ts=2000\n"
		 "track kind=1 pid=7 tid=\"x y\" (process 7 / x y)\n"
		 "  i a ts=1000\n");
	/* names from metadata, wherever it stands; a specific name beats a generic one */
	reads_as("[{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":{\"name\":"
		 "\"thread 2 (worker)\"}},"
		 "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":{\"name\":"
		 "\"thread 2 (python3)\"}}," EV(
			 "i", "a", "1", "") ",{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":"
					    "1,\"args\":{\"name\":\"p\\u0041\"}}]",
		 "track kind=1 pid=1 tid=2 (pA / thread 2 (worker))\n"
		 "  i a ts=1000\n");
	/* layers of one thread */
	reads_as("[" EV("X", "op", "5", ",\"dur\":10,\"cat\":\"cpu_op\"") "," EV(
			 "X", "f", "1",
			 ",\"dur\":6,\"cat\":\"python_function\"") "," EV("X", "k", "2",
									  ",\"dur\":4,\"cat\":"
									  "\"kernel\"") "]",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X op [cpu_op] ts=5000 dur=10000 stack=f;\n"
		 "track kind=10 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  X f [python_function] ts=1000 dur=6000 stack=f;\n"
		 "track kind=4 pid=1 tid=2 (process 1 / stream 2)\n"
		 "  X k [kernel] ts=2000 dur=4000\n");
}

/* An arrow on a thread whose slices are on a layer of it. */
static void test_arrows_of_layers(void **state)
{
	(void)state;
	reads_as("[" EV("X", "k", "2", ",\"dur\":4,\"cat\":\"kernel\"") "," EV(
			 "f", "n", "2", ",\"id\":1,\"cat\":\"c\"") "]",
		 "track kind=4 pid=1 tid=2 (process 1 / stream 2)\n"
		 "  X k [kernel] ts=2000 dur=4000\n"
		 "  flow f [c] n ts=2000 id=1\n");
}

static void test_time_base(void **state)
{
	(void)state;
	reads_as("{\"traceEvents\":[" EV("i", "a", "1.5",
					 "") "],\"baseTimeNanoseconds\":1700000000000000000}",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n  i a ts=1700000000000001500\n");
	reads_as("{\"displayTimeUnit\":\"ns\",\"beginningOfTime\":1700000000000000,\"traceEvents\":"
		 "[" EV("i", "a", "2", "") "]}",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n  i a ts=1700000000000002000\n");
}

static void test_frames(void **state)
{
	(void)state;
	reads_as("{\"traceEvents\":[" EV(
			 "P", "s", "1",
			 ",\"sf\":2") "],\"stackFrames\":{\"1\":{\"name\":\"main\"},"
				      "\"2\":{\"name\":\"f\",\"parent\":1},\"3\":{\"name\":\"g\","
				      "\"parent\":\"4\"},\"4\":{\"name\":\"h\",\"parent\":3}},"
				      "\"samples\":[{\"tid\":\"2\",\"ts\":\"2\",\"name\":\"c\","
				      "\"sf\":"
				      "3},{\"tid\":2,\"ts\":3,\"name\":\"c\"}]}",
		 "track kind=1 pid=1 tid=2 (process 1 / thread 2)\n"
		 "  P s ts=1000 stack=f;main;\n"
		 "  P c ts=2000 stack=g;h;\n"
		 "  P c ts=3000\n");
}

static void test_odd_events(void **state)
{
	struct loaded l;
	struct buf out;
	static const char text[] = "[{},{\"ph\":\"??\",\"name\":\"odd\",\"ts\":1},{\"ph\":\"X\","
				   "\"name\":\"no time\",\"dur\":1},{\"ph\":\"Z\",\"ts\":2},"
				   "{\"ph\":\"X\",\"ts\":1e300,\"dur\":1,\"name\":\"\\ud800\"},7,{"
				   "\"ph\":\"X\",\"ts\":";

	(void)state;
	load(&l, text, sizeof(text) - 1, &one_thread);
	assert_int_equal(l.status, OW_OK);
	buf_init(&out, &l.mem);
	write_rows(&out, l.m);
	tell_notes(&out, l.m);
	assert_string_equal(
		buf_cstr(&out),
		"track kind=1 ( / )\n"
		"  ? odd ts=1000\n"
		"  Z [no name] ts=2000\n"
		"  X \xef\xbf\xbd ts=9223372036854775807 dur=1000\n"
		"note 4 x1 the file ends inside an event, which is left out\n"
		"note 1 x1 distinct texts have invalid UTF-8 or half surrogate pairs: replaced by "
		"U+FFFD\n"
		"note 2 x1 elements of the list are not events: left out\n"
		"note 2 x1 events have no time: left out\n"
		"note 1 x1 times do not fit into 64 bits of nanoseconds: replaced by the limit\n"
		"note 0 x2 events have a phase (ph) that the format does not define: kept as "
		"points in time\n");
	buf_release(&out);
	unload(&l);
}

/* ---- many threads, tiny parts ---- */

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

static void random_event(struct buf *out, uint64_t *seed)
{
	static const char *const names[] = { "a", "b\\u0041", "long name \\\"with\\\" quotes", "",
					     "{\\\"ph\\\":\\\"X\\\",\\\"ts\\\":1},{" };
	static const char *const phases[] = {
		"X", "X", "X", "X", "B", "E", "i", "b", "e", "s", "f"
	};
	uint64_t r = next_random(seed);

	buf_printf(out,
		   "{\"ph\":\"%s\",\"name\":\"%s\",\"cat\":\"c%d\",\"pid\":%d,\"tid\":%d,\"ts\":%d."
		   "%03d",
		   phases[r % 11], names[next_random(seed) % 5], (int)(next_random(seed) % 3),
		   (int)(next_random(seed) % 3), (int)(next_random(seed) % 4),
		   (int)(next_random(seed) % 1000), (int)(next_random(seed) % 1000));
	buf_printf(out, ",\"dur\":%d,\"id\":%d", (int)(next_random(seed) % 100),
		   (int)(next_random(seed) % 10));
	if (next_random(seed) % 2) {
		buf_puts(out, ",\"args\":{\"list\":[1,");
		/* nested events, to mislead guesses */
		if (next_random(seed) % 8 == 0)
			buf_puts(out, "{\"ph\":\"X\",\"ts\":5},{\"ph\":\"X\",\"ts\":6},");
		buf_puts(out, "\"}]\"],\"s\":\"");
		buf_add_repeat(out, 'x', next_random(seed) % 90);
		buf_puts(out, "\"}");
	}
	buf_puts(out, "}");
}

static void random_trace(struct buf *out, uint64_t seed)
{
	size_t count = next_random(&seed) % 200;

	buf_puts(out, seed & 1 << 20 ? "{\"k\":[{\"ph\":\"X\",\"ts\":1}],\"traceEvents\":[" : "[");
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_puts(out, next_random(&seed) % 3 ? "," : " ,\n  ");
		random_event(out, &seed);
		if (next_random(&seed) % 70 == 0)
			buf_puts(out, ",{\"ph\":\"X\",\"name\":\"lost\"quote\"}"); /* damage */
		if (next_random(&seed) % 50 == 0)
			buf_puts(out, "] [{\"ph\":\"i\",\"ts\":1}"); /* another document */
	}
	if (next_random(&seed) % 4)
		buf_puts(out, seed & 1 << 20 ? "]}" : "]");
}

static void test_parts(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct trace_options many = { .part_bytes = 20 + seed * 7 % 900,
					      .threads = 2 + (unsigned)(seed % 5),
					      .path = seed % 2 ? json_best_path() : JSON_PORTABLE };
		struct loaded a, b;
		struct buf text, one, other;
		struct mem mem;

		mem_init(&mem, 0);
		buf_init(&text, &mem);
		buf_init(&one, &mem);
		buf_init(&other, &mem);
		random_trace(&text, seed);
		load(&a, text.ptr, text.len, &one_thread);
		load(&b, text.ptr, text.len, &many);
		assert_int_equal(a.status, b.status);
		if (a.status == OW_OK) {
			write_rows(&one, a.m);
			tell_notes(&one, a.m);
			write_rows(&other, b.m);
			tell_notes(&other, b.m);
			assert_string_equal(buf_cstr(&one), buf_cstr(&other));
		}
		unload(&a);
		unload(&b);
		buf_release(&text);
		buf_release(&one);
		buf_release(&other);
	}
}

/* ---- cuts and failures ---- */

static void test_prefixes(void **state)
{
	struct buf text;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	random_trace(&text, 12);
	for (size_t len = 0; len <= text.len; len += 1 + len / 500) {
		void *copy = malloc(len ? len : 1);
		struct loaded l;

		memcpy(copy, text.ptr, len);
		load(&l, copy, len, &one_thread);
		assert_true(l.status == OW_OK || l.status == OW_E_EMPTY || l.status == OW_E_FORMAT);
		unload(&l);
		free(copy);
	}
	buf_release(&text);
}

static void fail_each_allocation(const struct trace_options *options, uint64_t seed)
{
	struct buf text;
	struct mem mem;
	bool done = false;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	random_trace(&text, seed);
	for (uint64_t n = 1; !done; n += n < 400 ? 1 : 17) {
		struct loaded l;

		mem_fail_after(n, n % 2);
		load(&l, text.ptr, text.len, options);
		mem_fail_after(0, false);
		done = l.status == OW_OK && n > 400;
		assert_true(l.status == OW_OK || l.status == OW_E_NO_MEMORY);
		unload(&l);
		assert_true(n < 20000);
	}
	buf_release(&text);
}

static void test_no_memory(void **state)
{
	(void)state;
	fail_each_allocation(&one_thread, 5);
	fail_each_allocation(&(struct trace_options){ .part_bytes = 500, .threads = 3 }, 6);
}

/* ---- recognition ---- */

static int sniffed(const char *text)
{
	return import_trace.sniff(
		&(struct sniff){ .path = "x", .head = str_from(text), .size = strlen(text) });
}

/* traceEvents may come behind more than the head: an object that goes on is not ruled out. */
static void test_sniff_long_members(void **state)
{
	static const char start[] = "{\"stuff\":{\"a\":\"";
	char text[64 << 10];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(sniffed(text), 0);
	memcpy(text, start, strlen(start));
	assert_in_range(sniffed(text), 1, 30);
	memcpy(text + 40000, "\"}}", 3); /* all of it, and something else behind */
	assert_int_equal(sniffed(text), 0);
}

static void test_sniff(void **state)
{
	(void)state;
	assert_true(sniffed("{\"traceEvents\":[") >= 90);
	assert_true(sniffed("[{\"ph\":\"X\"}]") >= 90);
	assert_true(sniffed("[ {\"pid\":1,\"args\":{\"x\":[],\"ph\":1},\"ph\":\"M\"},") >= 90);
	assert_true(sniffed("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"x\":{\"y\":") >= 60);
	assert_true(sniffed("// c\n[{\"ph\":\"X\"}]") >= 90);
	assert_true(sniffed("{\"ph\":\"X\",\"ts\":1}\n") >= 90);
	assert_int_equal(sniffed("{\"$schema\":\"https://www.speedscope.app/"
				 "file-format-schema.json\",\"profiles\":[]}"),
			 0);
	assert_int_equal(sniffed("{\"nodes\":[{\"id\":1,\"callFrame\":{}}],\"startTime\":1}"), 0);
	assert_int_equal(sniffed("{\"schema\":\"1.0.1\",\"pid\":1,\"nodes\":[{\"name\":\"a\"}]}"),
			 0);
	assert_int_equal(sniffed("{\"segments\":[],\"traces\":[[{\"action\":\"alloc\"}]]}"), 0);
	assert_int_equal(sniffed("hello"), 0);
	assert_int_equal(sniffed("node { name: \"a\" }"), 0);
	assert_true(sniffed("[1,2,3]") < 50);
	assert_true(sniffed("[]") < 50);
}

/* ---- facts of a file do not depend on what was read before it ---- */

static void tell_facts(struct buf *out, const struct model *m, uint32_t source)
{
	const struct fact_table *f = &m->fact;

	for (uint32_t i = 1; i < f->count; i++)
		if (f->source[i].v == source)
			buf_printf(out, "%s %u %" PRId64 " %g %s\n", model_str(m, f->key[i]).ptr,
				   f->kind[i], f->number[i], f->real[i],
				   model_str(m, f->text[i]).ptr);
}

static void test_facts_of_a_second_file(void **state)
{
	static const char first[] =
		"[{\"ph\":\"X\",\"name\":\"b\",\"cat\":\"y\",\"ts\":1,\"dur\":2},"
		"{\"ph\":\"long\",\"name\":\"c\",\"cat\":\"z\",\"ts\":1}]";
	static const char second[] =
		"[{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"x\",\"ts\":1,\"dur\":7,\"args\":{\"k\":1}}"
		","
		"{\"ph\":\"X\",\"name\":\"b\",\"cat\":\"y\",\"ts\":9,\"dur\":3},"
		"{\"ph\":\"X\",\"name\":\"\",\"cat\":\"\",\"ts\":20,\"dur\":4},"
		"{\"ph\":\"X\",\"ts\":30,\"dur\":5},"
		"{\"ph\":\"long\",\"name\":\"b\",\"cat\":\"z\",\"ts\":1},"
		"{\"ph\":\"C\",\"name\":\"c\",\"cat\":\"y\",\"ts\":2,\"args\":{\"v\":1}},"
		"{\"ph\":\"M\",\"name\":\"thread_name\",\"cat\":\"q\",\"args\":{\"name\":\"b\"}}]";
	const struct trace_options options = { .part_bytes = 64, .threads = 2 };
	struct loaded alone, after = { .status = OW_OK };
	struct buf want, got;
	struct builder b;

	(void)state;
	load(&alone, second, strlen(second), &options);
	assert_int_equal(alone.status, OW_OK);
	mem_init(&after.mem, 0);
	after.m = model_new(&after.mem, &after.err);
	builder_init(&b, after.m, &after.err);
	add(&after, &b, first, strlen(first), &options);
	assert_int_equal(after.status, OW_OK);
	add(&after, &b, second, strlen(second), &options);
	assert_int_equal(after.status, OW_OK);
	assert_int_equal(model_freeze(&b), OW_OK);
	buf_init(&want, &alone.mem);
	buf_init(&got, &after.mem);
	tell_facts(&want, alone.m, 1);
	tell_facts(&got, after.m, 2);
	assert_string_equal(buf_cstr(&got), buf_cstr(&want));
	assert_true(str_has(buf_str(&want), STR("distinct_X_names")));
	buf_release(&want);
	buf_release(&got);
	unload(&alone);
	unload(&after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_begin_end),
		cmocka_unit_test(test_async),
		cmocka_unit_test(test_flows_and_counters),
		cmocka_unit_test(test_tracks),
		cmocka_unit_test(test_arrows_of_layers),
		cmocka_unit_test(test_time_base),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_odd_events),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_sniff),
		cmocka_unit_test(test_sniff_long_members),
		cmocka_unit_test(test_facts_of_a_second_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
