/*
 * profile_proto.c: writes a model as ProfileProto or OpLogProto (profile_proto.h), for api/tf_write.c. One node at a
 * time is in memory. The times of an op in a step are its counted events. If the events do not add up to the time in
 * the model (nested slices of a trace, whose self time the model counts), a single time with the model's sum replaces
 * them, so that a reader computes the same totals.
 */
#include "sink/proto/profile_proto.h"
#include "base/vec.h"
#include "base/writer.h"
#include "sink/sink.h"
#include "wire/protobuf/pb_write.h"

/* Code traces: call stacks as TensorFlow's CodeDef, outermost frame first; texts are replaced by their numbers in the
 * model's string table.
 */

/* Records which strings were used, to write them as id_to_string. */
struct code_proto {
	struct model *m;
	uint64_t *used; /* one bit for each string */
	size_t words;
	stack_id *path; /* frames of the stack being written */
	size_t path_cap;
};

enum { CODE_TRACES = 1 };
enum { TRACE_LINE = 2, TRACE_FUNCTION_LINE = 5, TRACE_FILE_ID, TRACE_FUNCTION_ID, TRACE_LINE_ID };

static ow_status code_proto_init(struct code_proto *c, struct model *m, struct ow_error *err)
{
	*c = (struct code_proto){ .m = m };
	OW_TRY(model_require_stacks(m, err));
	c->words = (size_t)m->strings.count / 64 + 1;
	c->used = mem_zalloc(m->mem, c->words * sizeof(*c->used));
	return c->used ? OW_OK : error_no_memory(err);
}

static void code_proto_release(struct code_proto *c)
{
	mem_free(c->m->mem, c->used, c->words * sizeof(*c->used));
	mem_free(c->m->mem, c->path, c->path_cap * sizeof(*c->path));
}

static void put_text_id(struct code_proto *c, uint32_t field, str_id text, struct buf *to)
{
	c->used[text.v / 64] |= (uint64_t)1 << text.v % 64;
	if (text.v)
		pb_put_varint(to, field, text.v);
}

static void put_frame(struct code_proto *c, frame_id frame, struct buf *to)
{
	const struct frame_table *f = &c->m->frame;
	size_t trace = pb_begin(to, CODE_TRACES);

	pb_put_int(to, TRACE_LINE, f->line[frame.v]);
	pb_put_int(to, TRACE_FUNCTION_LINE, f->function_line[frame.v]);
	put_text_id(c, TRACE_FILE_ID, f->file[frame.v], to);
	put_text_id(c, TRACE_FUNCTION_ID, f->function[frame.v], to);
	put_text_id(c, TRACE_LINE_ID, f->text[frame.v], to);
	pb_end(to, trace);
}

static void code_proto_put(struct code_proto *c, op_id op, uint32_t field, struct buf *to)
{
	const struct model *m = c->m;
	stack_id stack = COLUMN_GET(m->op.stack, op.v);
	size_t depth = 0, code;

	if (!(m->op.flags[op.v] & OP_HAS_CODE) && !stack.v)
		return;
	for (; stack.v; stack = m->stack.parent[stack.v]) {
		if (!vec_reserve(m->mem, c->path, c->path_cap, depth + 1)) {
			to->failed = true;
			return;
		}
		c->path[depth++] = stack;
	}
	code = pb_begin(to, field);
	while (depth)
		put_frame(c, m->stack.frame[c->path[--depth].v], to);
	pb_end(to, code);
}

static bool code_proto_string(const struct code_proto *c, uint32_t string, uint32_t field,
			      struct buf *to)
{
	size_t entry;

	if (string / 64 >= c->words || !(c->used[string / 64] >> string % 64 & 1))
		return false;
	entry = pb_begin(to, field);
	pb_put_varint(to, 1, string);
	pb_put_str(to, 2, model_str(c->m, (str_id){ string }));
	pb_end(to, entry);
	return true;
}

enum { PROFILE_NODES = 1, PROFILE_HAS_TRACE, PROFILE_STEPS, PROFILE_STRINGS, PROFILE_MISS_STREAM };
enum {
	NODE_NAME = 1,
	NODE_INPUTS = 2,
	NODE_SHAPE = 4,
	NODE_OP_TYPES = 5,
	NODE_CANONICAL_DEVICE = 6,
	NODE_HOST_DEVICE = 7,
	NODE_FLOAT_OPS = 8,
	NODE_OP = 9,
	NODE_TRACE = 10,
	NODE_EXECS = 12,
	NODE_ID = 13,
	NODE_PORTS = 14,
	NODE_OUTPUT_SHAPES = 15
};
enum {
	EXEC_RUN_COUNT = 1,
	EXEC_START = 2,
	EXEC_END = 3,
	EXEC_ACCELERATOR = 4,
	EXEC_CPU = 5,
	EXEC_DEVICES = 6,
	EXEC_MEMORY = 7,
	EXEC_ALLOCATIONS = 11
};
enum { TIME_TIMES = 1, TUPLE_VALUES = 1 };

struct profile_out {
	struct model *m;
	const struct profile_proto_options *options;
	struct ow_error *err;
	struct code_proto code;
	struct buf node;
	struct writer w;
	/* for each op_step: index of its first event in `events`; one more entry marks the end */
	uint32_t *first;
	uint32_t *events; /* events grouped by op_step, each group in its old order */
	uint32_t *allocs; /* for each op_step: its first row in alloc */
	track_id *tracks; /* tracks of the current op_step */
	size_t track_cap;
};

static uint32_t op_step_of(const struct model *m, op_id op, step_id step)
{
	uint32_t first = m->op.step_first[op.v], end = first + m->op.step_count[op.v];

	if (!op.v || !step.v)
		return 0;
	for (uint32_t i = first; i < end; i++)
		if (m->op_step.step[i].v == step.v)
			return i;
	return 0;
}

static ow_status index_events(struct profile_out *p)
{
	const struct model *m = p->m;
	size_t rows = (size_t)m->op_step.count + 1;

	p->first = mem_zalloc(m->mem, rows * sizeof(*p->first));
	p->allocs = mem_zalloc(m->mem, rows * sizeof(*p->allocs));
	p->events = mem_alloc(m->mem, ((size_t)m->event.count + 1) * sizeof(*p->events));
	if (!p->first || !p->allocs || !p->events)
		return error_no_memory(p->err);
	for (uint32_t i = 1; i < m->event.count; i++)
		p->first[op_step_of(m, m->event.op[i], m->event.step[i])]++;
	for (uint32_t row = 0, at = 0; row < rows; row++) {
		uint32_t count = p->first[row];

		p->first[row] = at;
		at += count;
	}
	for (uint32_t i = 1; i < m->event.count; i++)
		p->events[p->first[op_step_of(m, m->event.op[i], m->event.step[i])]++] = i;
	/* the counting sort moved each entry to the end of its group: move it back to the beginning */
	for (size_t row = rows - 1; row > 0; row--)
		p->first[row] = p->first[row - 1];
	p->first[0] = 0;
	for (uint32_t i = m->alloc.count; i-- > 1;)
		p->allocs[m->alloc.op_step[i]] = i;
	return OW_OK;
}

static void put_time(struct buf *to, int64_t start_ns, int64_t dur_ns)
{
	size_t tuple = pb_begin(to, TIME_TIMES), values = pb_begin(to, TUPLE_VALUES);

	pb_add_varint(to, (uint64_t)(start_ns / 1000));
	pb_add_varint(to, (uint64_t)(dur_ns / 1000));
	pb_end(to, values);
	pb_end(to, tuple);
}

static bool counts(const struct model *m, uint32_t event, uint8_t kind)
{
	return m->track.kind[m->event.track[event].v] == kind;
}

/* The different tracks of an op_step, in the order of their first event. */
static uint32_t tracks_of(struct profile_out *p, uint32_t row)
{
	const struct model *m = p->m;
	uint32_t count = 0;

	for (uint32_t i = p->first[row]; i < p->first[row + 1]; i++) {
		track_id track = m->event.track[p->events[i]];
		uint32_t k = 0;

		while (k < count && p->tracks[k].v != track.v)
			k++;
		if (k < count)
			continue;
		if (!vec_reserve(m->mem, p->tracks, p->track_cap, count + 1)) {
			p->node.failed = true;
			return count;
		}
		p->tracks[count++] = track;
	}
	return count;
}

static void put_track_times(struct profile_out *p, uint32_t row, track_id track, uint32_t field)
{
	const struct model *m = p->m;
	size_t entry = pb_begin(&p->node, field), times;

	pb_put_str(&p->node, 1, model_str(m, m->track.name[track.v]));
	times = pb_begin(&p->node, 2);
	for (uint32_t i = p->first[row]; i < p->first[row + 1]; i++) {
		uint32_t event = p->events[i];

		if (m->event.track[event].v == track.v)
			put_time(&p->node, m->event.ts_ns[event], m->event.dur_ns[event]);
	}
	pb_end(&p->node, times);
	pb_end(&p->node, entry);
}

static void put_sum(struct profile_out *p, uint32_t row, uint32_t track_count, int64_t sum_ns,
		    uint32_t field)
{
	const struct model *m = p->m;
	str_id device =
		track_count ? m->track.name[p->tracks[0].v] : m->op.device[m->op_step.op[row].v];
	size_t entry = pb_begin(&p->node, field), times;

	pb_put_str(&p->node, 1, model_str(m, device));
	times = pb_begin(&p->node, 2);
	put_time(&p->node, m->op_step.first_start_ns[row], sum_ns);
	pb_end(&p->node, times);
	pb_end(&p->node, entry);
}

static void put_times(struct profile_out *p, uint32_t row, uint32_t track_count, uint8_t kind,
		      int64_t sum_ns, uint32_t field)
{
	const struct model *m = p->m;
	int64_t sum = 0;

	for (uint32_t i = p->first[row]; i < p->first[row + 1]; i++)
		if (counts(m, p->events[i], kind))
			sum = wrap_add(sum, m->event.dur_ns[p->events[i]]);
	if (sum != sum_ns) {
		put_sum(p, row, track_count, sum_ns, field);
		return;
	}
	for (uint32_t i = 0; i < track_count; i++)
		if (m->track.kind[p->tracks[i].v] == kind)
			put_track_times(p, row, p->tracks[i], field);
}

static void put_devices(struct profile_out *p, uint32_t track_count)
{
	const struct model *m = p->m;
	struct str before = { 0 };

	/* there are few tracks: search the next one in byte order of names */
	for (uint32_t done = 0; done < track_count; done++) {
		struct str next = { 0 };

		for (uint32_t i = 0; i < track_count; i++) {
			struct str name = model_str(m, m->track.name[p->tracks[i].v]);

			if ((!before.ptr || str_cmp(before, name) < 0) &&
			    (!next.ptr || str_cmp(name, next) < 0))
				next = name;
		}
		if (!next.ptr)
			return;
		pb_put_str(&p->node, EXEC_DEVICES, next);
		before = next;
	}
}

static void put_nonzero(struct buf *to, uint32_t field, int64_t value)
{
	if (value)
		pb_put_int(to, field, value);
}

static void put_memory(struct profile_out *p, uint32_t row)
{
	const struct memory_table *t = &p->m->memory;
	size_t message = pb_begin(&p->node, EXEC_MEMORY);

	put_nonzero(&p->node, 1, t->ts_ns[row] / 1000);
	put_nonzero(&p->node, 2, COLUMN_GET(t->host_temp, row));
	put_nonzero(&p->node, 3, COLUMN_GET(t->host_persistent, row));
	put_nonzero(&p->node, 4, COLUMN_GET(t->accelerator_temp, row));
	put_nonzero(&p->node, 5, COLUMN_GET(t->accelerator_persistent, row));
	put_nonzero(&p->node, 6, t->requested[row]);
	put_nonzero(&p->node, 7, t->peak[row]);
	put_nonzero(&p->node, 8, t->residual[row]);
	put_nonzero(&p->node, 9, t->output[row]);
	put_nonzero(&p->node, 10, COLUMN_GET(t->in_use, row));
	pb_end(&p->node, message);
}

static void put_allocs(struct profile_out *p, uint32_t row)
{
	const struct alloc_table *t = &p->m->alloc;

	for (uint32_t i = p->allocs[row]; i && i < t->count && t->op_step[i] == row; i++) {
		size_t record = pb_begin(&p->node, EXEC_ALLOCATIONS);

		put_nonzero(&p->node, 1, t->ts_ns[i] / 1000);
		put_nonzero(&p->node, 2, t->size[i]);
		pb_end(&p->node, record);
	}
}

static void put_exec(struct profile_out *p, uint32_t row)
{
	const struct op_step_table *t = &p->m->op_step;
	size_t entry = pb_begin(&p->node, NODE_EXECS), exec;
	uint32_t tracks = tracks_of(p, row), memory, count;

	pb_put_int(&p->node, 1, p->m->step.number[t->step[row].v]);
	exec = pb_begin(&p->node, 2);
	pb_put_int(&p->node, EXEC_RUN_COUNT, t->run_count[row]);
	pb_put_int(&p->node, EXEC_START, t->first_start_ns[row] / 1000);
	pb_put_int(&p->node, EXEC_END, t->latest_end_ns[row] / 1000);
	put_times(p, row, tracks, TRACK_ACCELERATOR, t->accelerator_ns[row], EXEC_ACCELERATOR);
	put_times(p, row, tracks, TRACK_DEVICE, t->cpu_ns[row], EXEC_CPU);
	put_devices(p, tracks);
	count = model_memory_of(p->m, row, &memory);
	for (uint32_t i = 0; i < count; i++)
		put_memory(p, memory + i);
	put_allocs(p, row);
	pb_end(&p->node, exec);
	pb_end(&p->node, entry);
}

static void put_pair(struct buf *to, uint32_t field, int64_t key, int64_t value)
{
	size_t entry = pb_begin(to, field);

	pb_put_int(to, 1, key);
	pb_put_int(to, 2, value);
	pb_end(to, entry);
}

static void put_dims(struct buf *to, uint32_t field, const struct model *m, shape_id shape)
{
	size_t list = pb_begin(to, field);
	int32_t rank;
	const int64_t *dims = model_dims(m, shape, &rank);

	for (int32_t i = 0; i < rank; i++)
		pb_add_varint(to, (uint64_t)dims[i]);
	pb_end(to, list);
}

static void put_edges(struct profile_out *p, uint32_t op)
{
	const struct model *m = p->m;
	uint32_t first = m->op.input_first[op], end = first + m->op.input_count[op];

	for (uint32_t i = first; i < end; i++)
		if (m->op_input.src[i].v)
			put_pair(&p->node, NODE_INPUTS, m->op_input.index[i],
				 m->op_input.src[i].v - 1);
	for (uint32_t i = first; i < end; i++)
		/* if several inputs have the same number the last one counts, for opwatch and for other readers */
		if (m->op_input.src[i].v)
			put_pair(&p->node, NODE_PORTS, m->op_input.src[i].v - 1,
				 m->op_input.shown_port[i]);
	first = m->op.output_first[op];
	for (uint32_t i = first; i < first + m->op.output_count[op]; i++) {
		size_t entry = pb_begin(&p->node, NODE_OUTPUT_SHAPES), tuple;

		pb_put_int(&p->node, 1, m->op_output.index[i]);
		tuple = pb_begin(&p->node, 2);
		if (m->op_output.shape[i].v)
			put_dims(&p->node, TUPLE_VALUES, m, m->op_output.shape[i]);
		pb_end(&p->node, tuple);
		pb_end(&p->node, entry);
	}
}

static void put_text(struct profile_out *p, uint32_t field, str_id text)
{
	if (text.v)
		pb_put_str(&p->node, field, model_str(p->m, text));
}

static ow_status put_node(struct profile_out *p, uint32_t op)
{
	const struct model *m = p->m;
	size_t entry = pb_begin(&p->node, PROFILE_NODES), node;
	uint32_t count;
	const str_id *types = model_strset(m, m->op.types[op], &count);

	pb_put_int(&p->node, 1, op - 1);
	node = pb_begin(&p->node, 2);
	put_text(p, NODE_NAME, m->op.name[op]);
	put_text(p, NODE_OP, m->op.type[op]);
	pb_put_int(&p->node, NODE_ID, op - 1);
	put_edges(p, op);
	if (m->op.shape[op].v)
		put_dims(&p->node, NODE_SHAPE, m, m->op.shape[op]);
	for (uint32_t i = 0; i < count; i++)
		/* an empty type is written, too */
		pb_put_str(&p->node, NODE_OP_TYPES, model_str(m, types[i]));
	put_text(p, NODE_CANONICAL_DEVICE, m->op.device[op]);
	put_text(p, NODE_HOST_DEVICE, COLUMN_GET(m->op.host_device, op));
	put_nonzero(&p->node, NODE_FLOAT_OPS, m->op.float_ops[op]);
	code_proto_put(&p->code, (op_id){ op }, NODE_TRACE, &p->node);
	if (p->options->attrs)
		OW_TRY(p->options->attrs(p->options->arg, (op_id){ op }, &p->node, p->err));
	for (uint32_t i = 0; i < m->op.step_count[op]; i++)
		put_exec(p, m->op.step_first[op] + i);
	pb_end(&p->node, node);
	pb_end(&p->node, entry);
	return OW_OK;
}

static void write_field(struct profile_out *p, ow_status status)
{
	if (status == OW_OK && p->node.failed)
		status = error_no_memory(p->err);
	writer_fail(&p->w, status);
	writer_str(&p->w, buf_str(&p->node));
	buf_clear(&p->node);
}

static int by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static ow_status put_steps(struct profile_out *p)
{
	const struct step_table *t = &p->m->step;
	size_t count = t->count - 1, list;
	int64_t *numbers = mem_alloc(p->m->mem, (count + 1) * sizeof(*numbers));

	if (!numbers)
		return error_no_memory(p->err);
	for (size_t i = 0; i < count; i++)
		numbers[i] = t->number[i + 1];
	qsort(numbers, count, sizeof(*numbers), by_number);
	list = pb_begin(&p->node, PROFILE_STEPS);
	for (size_t i = 0; i < count; i++)
		pb_add_varint(&p->node, (uint64_t)numbers[i]);
	pb_end(&p->node, list);
	mem_free(p->m->mem, numbers, (count + 1) * sizeof(*numbers));
	return OW_OK;
}

static void write_all(struct profile_out *p)
{
	struct model *m = p->m;

	for (uint32_t op = 1; op < m->op.count && p->w.status == OW_OK; op++)
		write_field(p, put_node(p, op));
	pb_put_varint(&p->node, PROFILE_HAS_TRACE, m->has_code);
	if (m->missing_streams)
		pb_put_varint(&p->node, PROFILE_MISS_STREAM, 1);
	write_field(p, put_steps(p));
	for (uint32_t i = 0; i < m->strings.count && p->w.status == OW_OK; i++)
		if (code_proto_string(&p->code, i, PROFILE_STRINGS, &p->node))
			write_field(p, OW_OK);
}

ow_status profile_proto_write(struct model *m, const struct profile_proto_options *options,
			      const struct out *out, struct ow_error *err)
{
	struct profile_out p = { .m = m, .options = options, .err = err };
	size_t rows = (size_t)m->op_step.count + 1;
	ow_status status = code_proto_init(&p.code, m, err);

	buf_init(&p.node, m->mem);
	if (status == OW_OK)
		status = index_events(&p);
	if (status == OW_OK) {
		writer_init(&p.w, m->mem, out, err);
		write_all(&p);
		status = writer_finish(&p.w);
	}
	buf_release(&p.node);
	code_proto_release(&p.code);
	mem_free(m->mem, p.first, rows * sizeof(*p.first));
	mem_free(m->mem, p.allocs, rows * sizeof(*p.allocs));
	mem_free(m->mem, p.events, ((size_t)m->event.count + 1) * sizeof(*p.events));
	mem_free(m->mem, p.tracks, p.track_cap * sizeof(*p.tracks));
	return status;
}

/* Op logs: OpLogProto holds facts about ops that are not in the graph. Ops without such facts have no entry. */

enum { LOG_ENTRIES = 1, LOG_STRINGS = 2 };
enum { ENTRY_NAME = 1, ENTRY_FLOAT_OPS = 2, ENTRY_TYPES = 3, ENTRY_CODE = 4 };

/* Writes all types of an op except its kind and its device. */
static void put_types(const struct model *m, op_id op, struct buf *to)
{
	uint32_t count;
	const str_id *types = model_strset(m, m->op.types[op.v], &count);

	for (uint32_t i = 0; i < count; i++)
		if (types[i].v != m->op.type[op.v].v && types[i].v != m->op.device[op.v].v)
			pb_put_str(to, ENTRY_TYPES, model_str(m, types[i]));
}

static void put_entry(struct code_proto *c, op_id op, struct buf *to)
{
	const struct model *m = c->m;
	size_t entry = pb_begin(to, LOG_ENTRIES), named;

	pb_put_str(to, ENTRY_NAME, model_str(m, m->op.name[op.v]));
	named = to->len;
	if (m->op.float_ops[op.v])
		pb_put_int(to, ENTRY_FLOAT_OPS, m->op.float_ops[op.v]);
	put_types(m, op, to);
	code_proto_put(c, op, ENTRY_CODE, to);
	if (to->len == named)
		buf_clear(to);
	else
		pb_end(to, entry);
}

static void write_entry(struct writer *w, struct buf *bytes)
{
	if (bytes->failed)
		writer_fail(w, error_no_memory(w->err));
	writer_str(w, buf_str(bytes));
	buf_clear(bytes);
}

ow_status op_log_write(struct model *m, const struct out *out, struct ow_error *err)
{
	struct code_proto code;
	struct buf bytes;
	struct writer w;
	ow_status status = code_proto_init(&code, m, err);

	if (status != OW_OK) {
		code_proto_release(&code);
		return status;
	}
	buf_init(&bytes, m->mem);
	writer_init(&w, m->mem, out, err);
	for (uint32_t op = 1; op < m->op.count && w.status == OW_OK; op++) {
		put_entry(&code, (op_id){ op }, &bytes);
		write_entry(&w, &bytes);
	}
	for (uint32_t i = 0; i < m->strings.count && w.status == OW_OK; i++)
		if (code_proto_string(&code, i, LOG_STRINGS, &bytes))
			write_entry(&w, &bytes);
	buf_release(&bytes);
	code_proto_release(&code);
	return writer_finish(&w);
}
