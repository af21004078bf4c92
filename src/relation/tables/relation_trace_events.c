/*
 * relation_trace_events.c: the relation `trace_events`: the elements of traceEvents in the order and the units of the
 * file, as chrome://tracing shows them and as warehouses load them. Events of inputs that are not Chrome traces appear
 * in the same form. trace_list.h defines the rows.
 */
#include "model/backing.h"
#include "relation/args.h"
#include "relation/columns.h"
#include "relation/trace/trace_list.h"
#include "wire/json/json_strict.h"

#include <math.h>

struct state {
	struct trace_list list;
	/* dictionaries, selected by column.number: 0 for most columns, then arg_name and arg_op */
	struct table_dict dicts[3];
};

#define AHEAD 32 /* memory is prefetched for the row this far ahead */
#define AT(member) (uint32_t) offsetof(struct trace_block, member)

/* The part of rows [first, first + n) that lies in one span and, if the span was read from the file as a whole, in
 * one block. column.stride is the offset of the column in the block. */
struct piece {
	const struct trace_span *span;
	const struct trace_block *block; /* NULL: the rows are refs, not elements of a block */
	uint64_t row;			 /* first row, in the span or in the block */
	uint32_t n;
};

static struct piece piece_of(const struct table_part *p, uint64_t first, uint32_t n)
{
	const struct trace_list *list = &((const struct state *)p->state)->list;
	const struct trace_span *span = trace_list_span(list, first);
	struct piece piece = { .span = span, .row = first - span->first };
	uint64_t element = span->first_element + piece.row;

	piece.n = (uint32_t)MIN((uint64_t)n, span->count - piece.row);
	if (span->refs)
		return piece;
	piece.block = list->elements.blocks[element / TRACE_BLOCK];
	piece.row = element % TRACE_BLOCK;
	piece.n = MIN(piece.n, TRACE_BLOCK - (uint32_t)piece.row);
	return piece;
}

static const void *in_block(const struct trace_block *block, const struct table_column *c,
			    size_t size, uint64_t row)
{
	return (const char *)block + c->stride + row * size;
}

/* Copies the values of a piece whose elements are in one block; false when they are not. */
static bool copy_piece(const struct piece *piece, const struct table_column *c, size_t size,
		       void *to)
{
	if (!piece->block)
		return false;
	memcpy(to, in_block(piece->block, c, size, piece->row), piece->n * size);
	return true;
}

static const void *of_element(const struct table_part *p, const struct table_column *c, size_t size,
			      uint32_t element)
{
	const struct trace_list *list = &((const struct state *)p->state)->list;

	return in_block(list->elements.blocks[element / TRACE_BLOCK], c, size,
			element % TRACE_BLOCK);
}

static uint32_t event_ph(const struct state *s, const struct trace_span *span, uint32_t event)
{
	const struct model *m = s->list.m;
	uint8_t ph = COLUMN_GET(m->event.ph, event);

	if (!span->is_trace)
		ph = m->event.dur_ns[event] == TIME_UNKNOWN ? 'i' : 'X';
	else if (!ph ||
		 (!span->listed && ph == 'B')) /* a complete slice, or a begin whose end is known */
		ph = 'X';
	return s->list.elements.letters[ph];
}

static uint32_t event_name(const struct model *m, const struct trace_span *span, uint32_t event)
{
	uint32_t own = COLUMN_GET(m->event.name, event).v, op = m->event.op[event].v;

	if (own)
		return own;
	return span->is_trace ? m->op.name[op].v : m->op.type[op].v;
}

/* The args.name of an event, if its op determines it. */
static inline uint32_t event_label(const struct trace_list *list, uint32_t event)
{
	const struct event_table *e = &list->m->event;

	if (!COLUMN_GET(e->args_size, event) || trace_is_object(list->m, event))
		return 0;
	return list->labels[e->op[event].v];
}

static uint32_t event_arg(const struct state *s, const struct trace_span *span, uint64_t row,
			  uint32_t event, bool op)
{
	const struct model *m = s->list.m;

	if (!span->is_trace)
		return op ? m->op.type[m->event.op[event].v].v : m->op.name[m->event.op[event].v].v;
	if (op)
		return span->arg_op[row];
	if (span->labels != LABELS_ALL)
		return span->arg_name[row];
	return event_label(&s->list, event);
}

static uint32_t event_code(const struct state *s, const struct trace_span *span,
			   const struct table_column *c, uint64_t row, uint32_t event)
{
	const struct model *m = s->list.m;

	switch (c->stride) {
	case AT(ph):
		return event_ph(s, span, event);
	case AT(cat):
		return COLUMN_GET(m->event.category, event).v;
	case AT(name):
		return event_name(m, span, event);
	default:
		return event_arg(s, span, row, event, c->stride == AT(arg_op));
	}
}

static uint32_t listed_code(const struct state *s, const struct trace_listing_counter *counter,
			    const struct table_column *c)
{
	switch (c->stride) {
	case AT(ph):
		return s->list.elements.letters['C'];
	case AT(cat):
		return counter->category.v;
	case AT(name):
		return counter->name.v;
	default:
		return 0;
	}
}

static uint32_t code_of(const struct table_part *p, const struct trace_span *span,
			const struct table_column *c, uint64_t row)
{
	const struct state *s = p->state;
	const struct model *m = s->list.m;
	uint32_t ref = span->refs[row], at = trace_ref_row(ref);
	bool flow;

	if (OW_LIKELY(trace_ref_kind(ref) == REF_EVENT))
		return event_code(s, span, c, row, at);
	if (trace_ref_kind(ref) == REF_ELEMENT)
		return *(const uint32_t *)of_element(p, c, sizeof(uint32_t), at);
	if (trace_ref_kind(ref) == REF_LISTED)
		return listed_code(s, &span->counters[at], c);
	flow = trace_ref_kind(ref) == REF_FLOW;
	if (c->stride == AT(ph))
		return s->list.elements.letters[flow ? m->flow.ph[at] : 'C'];
	if (c->stride == AT(name))
		return flow ? m->flow.name[at].v : m->counter.name[at].v;
	return flow && c->stride == AT(cat) ? m->flow.category[at].v : 0;
}

/* The event of a row some places ahead, to prefetch it: events of many tracks are far apart in memory. */
static inline uint32_t event_ahead(const struct piece *piece, uint32_t i)
{
	uint32_t ref = i + AHEAD < piece->n ? piece->span->refs[piece->row + i + AHEAD] : 0;

	return ref < TRACE_EVENTS_MAX ? ref : 0;
}

/* Fills labels, a frequent GROUP BY key. Whether a row is an event is unpredictable, so that test has no branch; the
 * test for the few elements read from the file has one. */
static void fill_labels(const struct table_part *p, const struct piece *piece,
			const struct table_column *c, uint32_t *to)
{
	const struct state *s = p->state;
	const uint32_t *refs = piece->span->refs + piece->row;

	for (uint32_t i = 0; i < piece->n; i++) {
		uint32_t ahead = event_ahead(piece, i);
		bool event = refs[i] < TRACE_EVENTS_MAX;
		uint32_t label = event_label(&s->list, event ? refs[i] : 0);

		__builtin_prefetch(&p->m->event.op[ahead]);
		__builtin_prefetch(&p->m->event.args_size[ahead]);
		to[i] = event ? label : 0;
		if (OW_UNLIKELY(trace_ref_kind(refs[i]) == REF_ELEMENT))
			to[i] = code_of(p, piece->span, c, piece->row + i);
	}
}

/* Fills codes of rows that are not in a block. */
static void fill_codes(const struct table_part *p, const struct piece *piece,
		       const struct table_column *c, uint32_t *to)
{
	const struct trace_span *span = piece->span;

	if (c->stride == AT(arg_name) && span->is_trace && span->labels == LABELS_ALL) {
		fill_labels(p, piece, c, to);
		return;
	}
	for (uint32_t i = 0; i < piece->n; i++)
		to[i] = code_of(p, span, c, piece->row + i);
}

static ow_status fill_code(const struct table_part *p, const struct table_column *c, uint64_t first,
			   uint32_t n, struct table_vec *out, struct ow_error *err)
{
	uint32_t *to = out->values;
	struct piece piece;

	(void)err;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, first + done, n - done);
		if (!copy_piece(&piece, c, sizeof(*to), to + done))
			fill_codes(p, &piece, c, to + done);
	}
	return OW_OK;
}

static uint32_t track_of(const struct model *m, const struct trace_span *span, uint32_t ref)
{
	uint32_t at = trace_ref_row(ref);

	switch (trace_ref_kind(ref)) {
	case REF_EVENT:
		return m->event.track[at].v;
	case REF_FLOW:
		return m->flow.track[at].v;
	case REF_LISTED:
		return span->counters[at].track.v;
	default:
		return m->counter.track[at].v;
	}
}

static int64_t number_of(const struct table_part *p, const struct trace_span *span,
			 const struct table_column *c, uint32_t ref)
{
	const struct track_table *t = &p->m->track;

	if (trace_ref_kind(ref) == REF_ELEMENT)
		return *(const int64_t *)of_element(p, c, sizeof(int64_t), trace_ref_row(ref));
	return (c->stride == AT(pid) ? t->pid : t->tid)[track_of(p->m, span, ref)];
}

static ow_status fill_number(const struct table_part *p, const struct table_column *c,
			     uint64_t first, uint32_t n, struct table_vec *out,
			     struct ow_error *err)
{
	int64_t *to = out->values;
	struct piece piece;

	(void)err;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, first + done, n - done);
		if (!copy_piece(&piece, c, sizeof(*to), to + done))
			for (uint32_t i = 0; i < piece.n; i++)
				to[done + i] = number_of(p, piece.span, c,
							 piece.span->refs[piece.row + i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		/* Smaller values stand for "none" or a text. */
		if (to[i] > MODEL_TEXT_NUMBER + UINT32_MAX)
			continue;
		vec_null(out, n, i);
		to[i] = 0;
	}
	return OW_OK;
}

/* The duration as in the file: a begin event has none, nor has an event whose end is a separate element. */
static inline int64_t event_dur(const struct event_table *e, const struct trace_span *span,
				uint32_t event)
{
	uint8_t ph = COLUMN_GET(e->ph, event), flags = COLUMN_GET(e->flags, event);
	bool none = span->listed & ((ph && ph != 'X') | ((flags & EVENT_UNFINISHED) != 0));

	return none ? TIME_UNKNOWN : e->dur_ns[event];
}

static double time_of(const struct table_part *p, const struct trace_span *span,
		      const struct table_column *c, uint32_t ref)
{
	const struct model *m = p->m;
	uint32_t at = trace_ref_row(ref);

	switch (trace_ref_kind(ref)) {
	case REF_EVENT:
		return trace_micros(c->stride == AT(dur) ? event_dur(&m->event, span, at)
							 : m->event.ts_ns[at] - span->base_ns);
	case REF_ELEMENT:
		return *(const double *)of_element(p, c, sizeof(double), at);
	case REF_FLOW:
		return c->stride == AT(dur) ? (double)NAN
					    : trace_micros(m->flow.ts_ns[at] - span->base_ns);
	case REF_LISTED:
		return c->stride == AT(dur) ? (double)NAN : trace_micros(span->counters[at].ts_ns);
	case REF_COUNTER:
		break;
	}
	return c->stride == AT(dur) ? (double)NAN
				    : trace_micros(m->counter.ts_ns[at] - span->base_ns);
}

/* Fills durations, a frequent argument of SUM; branches as in fill_labels. */
static void fill_durs(const struct table_part *p, const struct piece *piece,
		      const struct table_column *c, double *to)
{
	const uint32_t *refs = piece->span->refs + piece->row;
	/* copies, which stay in registers because writing to `to` cannot change them */
	const struct event_table events = p->m->event;
	const struct trace_span span = *piece->span;
	const struct piece here = { .span = &span, .row = piece->row, .n = piece->n };

	for (uint32_t i = 0; i < here.n; i++) {
		uint32_t ahead = event_ahead(&here, i);
		bool event = refs[i] < TRACE_EVENTS_MAX;
		int64_t ns = event_dur(&events, &span, event ? refs[i] : 0);

		__builtin_prefetch(&events.dur_ns[ahead]);
		to[i] = trace_micros(event ? ns : TIME_UNKNOWN);
		if (OW_UNLIKELY(trace_ref_kind(refs[i]) == REF_ELEMENT))
			to[i] = time_of(p, piece->span, c, refs[i]);
	}
}

/* Fills times of rows that are not in a block. */
static void fill_times(const struct table_part *p, const struct piece *piece,
		       const struct table_column *c, double *to)
{
	if (c->stride == AT(dur)) {
		fill_durs(p, piece, c, to);
		return;
	}
	for (uint32_t i = 0; i < piece->n; i++)
		to[i] = time_of(p, piece->span, c, piece->span->refs[piece->row + i]);
}

/* Marks NaN values as NULL. */
static void null_unknown(struct table_vec *out, uint32_t n)
{
	double *values = out->values;

	for (uint32_t first = 0; first < n; first += 64) {
		uint32_t count = MIN(n - first, 64u);
		uint64_t unknown = 0;

		for (uint32_t i = 0; i < count; i++)
			unknown |= (uint64_t)(isnan(values[first + i]) != 0) << i;
		out->valid[first / 64] = ~unknown;
		out->has_nulls |= unknown != 0;
		for (; unknown; unknown &= unknown - 1)
			values[first + (uint32_t)__builtin_ctzll(unknown)] = 0;
	}
}

static ow_status fill_time(const struct table_part *p, const struct table_column *c, uint64_t first,
			   uint32_t n, struct table_vec *out, struct ow_error *err)
{
	double *to = out->values;
	struct piece piece;

	(void)err;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, first + done, n - done);
		if (!copy_piece(&piece, c, sizeof(*to), to + done))
			fill_times(p, &piece, c, to + done);
	}
	null_unknown(out, n);
	return OW_OK;
}

static ow_status fill_index(const struct table_part *p, const struct table_column *c,
			    uint64_t first, uint32_t n, struct table_vec *out, struct ow_error *err)
{
	int64_t *to = out->values;
	struct piece piece;

	(void)err;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, first + done, n - done);
		for (uint32_t i = 0; i < piece.n; i++)
			to[done + i] = piece.block ? *(const uint32_t *)in_block(piece.block, c,
										 sizeof(uint32_t),
										 piece.row + i)
						   : (int64_t)(piece.row + i);
	}
	return OW_OK;
}

static ow_status fill_source(const struct table_part *p, const struct table_column *c,
			     uint64_t first, uint32_t n, struct table_vec *out,
			     struct ow_error *err)
{
	int64_t *to = out->values;
	struct piece piece;

	(void)c;
	(void)err;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, first + done, n - done);
		for (uint32_t i = 0; i < piece.n; i++)
			to[done + i] = p->id_base + piece.span->source;
	}
	return OW_OK;
}

/* Reads the text of an element's arguments from the file. */
static ow_status text_at(const struct table_part *p, const struct trace_span *span, uint64_t offset,
			 uint32_t size, struct arena *arena, struct str *text, struct ow_error *err)
{
	char *bytes;

	*text = (struct str){ 0 };
	if (!size)
		return OW_OK;
	bytes = arena_push_aligned(arena, size, 1);
	if (!bytes)
		return error_no_memory(err);
	*text = str_make(bytes, size);
	return input_read_at(p->m->inputs[span->source], offset, bytes, size, err);
}

static ow_status element_args(const struct table_part *p, const struct trace_span *span,
			      const struct trace_block *block, uint64_t row, struct arena *arena,
			      struct str *text, struct ow_error *err)
{
	return text_at(p, span, block->args_offset[row], block->args_size[row], arena, text, err);
}

/* Makes the arguments of a counter event: its series, each of which is a row in the model. */
static ow_status counter_args(const struct model *m, uint32_t row, struct arena *arena,
			      struct str *text, struct ow_error *err)
{
	ow_status status = OW_OK;
	struct buf out;

	buf_init(&out, arena->mem);
	buf_puts(&out, "{");
	json_quote(&out, model_str(m, m->counter.series[row]));
	buf_printf(&out, ": %.17g}", m->counter.value[row]);
	*text = (struct str){ 0 };
	if (!out.failed)
		*text = arena_str(arena, buf_str(&out));
	if (!text->ptr)
		status = error_no_memory(err);
	buf_release(&out);
	return status;
}

static ow_status piece_args(const struct table_part *p, const struct piece *piece, struct str *to,
			    struct arena *arena, struct ow_error *err)
{
	const struct state *s = p->state;
	uint32_t *rows = ARENA_ARRAY(arena, uint32_t, piece->n);

	if (!rows)
		return error_no_memory(err);
	for (uint32_t i = 0; i < piece->n; i++) {
		uint32_t ref = piece->span->refs[piece->row + i];

		rows[i] = trace_ref_kind(ref) == REF_EVENT && piece->span->is_trace ? ref : 0;
	}
	OW_TRY(args_read(p->m, rows, piece->n, to, arena, err));
	for (uint32_t i = 0; i < piece->n; i++) {
		uint32_t ref = piece->span->refs[piece->row + i], at = trace_ref_row(ref);

		if (trace_ref_kind(ref) == REF_ELEMENT)
			OW_TRY(element_args(p, piece->span,
					    s->list.elements.blocks[at / TRACE_BLOCK],
					    at % TRACE_BLOCK, arena, &to[i], err));
		else if (trace_ref_kind(ref) == REF_LISTED)
			OW_TRY(text_at(p, piece->span, piece->span->counters[at].args_offset,
				       piece->span->counters[at].args_size, arena, &to[i], err));
		else if (trace_ref_kind(ref) == REF_COUNTER)
			OW_TRY(counter_args(p->m, at, arena, &to[i], err));
	}
	return OW_OK;
}

static ow_status fill_args(const struct table_part *p, const struct table_column *c, uint64_t first,
			   uint32_t n, struct table_vec *out, struct ow_error *err)
{
	struct str *to = out->values;
	struct piece piece;

	(void)c;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, first + done, n - done);
		if (!piece.block)
			OW_TRY(piece_args(p, &piece, to + done, out->scratch, err));
		for (uint32_t i = 0; piece.block && i < piece.n; i++)
			OW_TRY(element_args(p, piece.span, piece.block, piece.row + i, out->scratch,
					    &to[done + i], err));
	}
	for (uint32_t i = 0; i < n; i++)
		if (to[i].ptr && !utf8_valid(to[i]))
			to[i] = (struct str){ 0 };
	return OW_OK;
}

static ow_status describe(struct table *t, struct ow_error *err)
{
	static const struct table_column columns[] = {
		{ .name = "index",
		  .doc = "position of the event in the list, from 0",
		  .type = TYPE_INT,
		  .fill = fill_index,
		  .stride = AT(index) },
		{ .name = "ph",
		  .doc = "phase letter of the event: X complete, M metadata, s, t, f flow, …",
		  .stride = AT(ph) },
		{ .name = "cat", .doc = "category", .stride = AT(cat) },
		{ .name = "name", .doc = "name", .stride = AT(name) },
		{ .name = "pid",
		  .doc = "process id; the text \"7\" counts as 7, other texts are NULL",
		  .type = TYPE_INT,
		  .fill = fill_number,
		  .stride = AT(pid) },
		{ .name = "tid",
		  .doc = "thread id; the text \"7\" counts as 7, other texts are NULL",
		  .type = TYPE_INT,
		  .fill = fill_number,
		  .stride = AT(tid) },
		{ .name = "ts",
		  .doc = "start of the event, in microseconds as written",
		  .type = TYPE_REAL,
		  .fill = fill_time,
		  .stride = AT(ts) },
		{ .name = "dur",
		  .doc = "duration of the event, in microseconds as written",
		  .type = TYPE_REAL,
		  .fill = fill_time,
		  .stride = AT(dur) },
		{ .name = "arg_name", .doc = "args.name", .stride = AT(arg_name), .number = 1 },
		{ .name = "arg_op", .doc = "args.op", .stride = AT(arg_op), .number = 2 },
		{ .name = "args",
		  .doc = "all arguments of the event, as JSON; see arg_value()",
		  .type = TYPE_TEXT,
		  .fill = fill_args },
		{ .name = "source_id",
		  .doc = "the input",
		  .type = TYPE_INT,
		  .fill = fill_source,
		  .refers = true },
	};

	columns_need(t, TABLES_ALL);
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
		struct table_column column = columns[i];

		if (!column.fill) {
			column.type = TYPE_TEXT;
			column.fill = fill_code;
			column.dict = DICT_PART;
		}
		OW_TRY(columns_add(t, &column, err));
	}
	return OW_OK;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	struct state *s = ARENA_NEW(&part->arena, struct state);

	if (!s)
		return error_no_memory(err);
	part->state = s;
	OW_TRY(trace_list_init(&s->list, t->mem, part->m, false, err));
	part->rows = s->list.rows;
	for (size_t i = 0; i < ARRAY_COUNT(s->dicts); i++)
		s->dicts[i] = trace_texts_dict(&s->list.elements.texts);
	part->dicts = s->dicts;
	return OW_OK;
}

/* Reads the names of arguments, if a query needs them and the model does not have them. */
static ow_status need(struct table_part *part, const struct table_column *c, struct ow_error *err)
{
	struct state *s = part->state;

	if (!c->number)
		return OW_OK;
	return trace_list_read_args(&s->list, c->number == 1 ? KEY_NAME : KEY_OP,
				    &s->dicts[c->number], err);
}

static void release(struct table_part *part)
{
	if (part->state)
		trace_list_release(&((struct state *)part->state)->list);
}

const struct table_source relation_trace_events = {
	.name = "trace_events",
	.doc = "the elements of traceEvents, in the order and the units of the file",
	.describe = describe,
	.prepare = prepare,
	.need = need,
	.release = release,
};
