/*
 * relation_trace_events.c: the relation `trace_events`: the elements of traceEvents in the order and the units
 * of the file, as people know them from chrome://tracing and from loading such files into a warehouse. Inputs that
 * are no Chrome traces give their events in the same form.
 */
#include "model/backing.h"
#include "relation/columns.h"
#include "relation/trace_scan.h"

#include <math.h>

/* The part of rows [first, first + n) that lies in one block. column.stride is where the column is in it. */
struct piece {
	const struct trace_block *block;
	const void *values;
	uint32_t at, n;
};

static struct piece piece_of(const struct relation_part *p, const struct relation_column *c,
			     size_t size, uint64_t first, uint32_t n)
{
	const struct trace_rows *rows = p->state;
	struct piece piece = { .block = rows->blocks[first / TRACE_BLOCK],
			       .at = (uint32_t)(first % TRACE_BLOCK) };

	piece.n = MIN(n, TRACE_BLOCK - piece.at);
	piece.values = (const char *)piece.block + c->stride + piece.at * size;
	return piece;
}

static ow_status fill_code(const struct relation_part *p, const struct relation_column *c,
			   uint64_t first, uint32_t n, struct relation_vec *out, struct error *err)
{
	struct piece piece;

	(void)err;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, c, sizeof(uint32_t), first + done, n - done);
		memcpy((uint32_t *)out->values + done, piece.values, piece.n * sizeof(uint32_t));
	}
	return OW_OK;
}

static ow_status fill_number(const struct relation_part *p, const struct relation_column *c,
			     uint64_t first, uint32_t n, struct relation_vec *out,
			     struct error *err)
{
	int64_t *to = out->values;
	struct piece piece;

	(void)err;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, c, sizeof(int64_t), first + done, n - done);
		memcpy(to + done, piece.values, piece.n * sizeof(int64_t));
	}
	for (uint32_t i = 0; i < n; i++) {
		/* Below are "none" and, of events that are no trace's, text. */
		if (to[i] > MODEL_TEXT_NUMBER + UINT32_MAX)
			continue;
		vec_null(out, n, i);
		to[i] = 0;
	}
	return OW_OK;
}

static ow_status fill_time(const struct relation_part *p, const struct relation_column *c,
			   uint64_t first, uint32_t n, struct relation_vec *out, struct error *err)
{
	double *to = out->values;
	struct piece piece;

	(void)err;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, c, sizeof(double), first + done, n - done);
		memcpy(to + done, piece.values, piece.n * sizeof(double));
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!isnan(to[i]))
			continue;
		vec_null(out, n, i);
		to[i] = 0;
	}
	return OW_OK;
}

/* Numbers of 32 bits; ids begin at the run's, an index at 0. */
static ow_status fill_small(const struct relation_part *p, const struct relation_column *c,
			    uint64_t first, uint32_t n, struct relation_vec *out, struct error *err)
{
	int64_t *to = out->values, base = c->refers ? p->id_base : 0;
	struct piece piece;

	(void)err;
	for (uint32_t done = 0; done < n; done += piece.n) {
		piece = piece_of(p, c, sizeof(uint32_t), first + done, n - done);
		for (uint32_t i = 0; i < piece.n; i++)
			to[done + i] = base + ((const uint32_t *)piece.values)[i];
	}
	return OW_OK;
}

/* The text of the arguments, from the file. */
static ow_status fill_args(const struct relation_part *p, const struct relation_column *c,
			   uint64_t first, uint32_t n, struct relation_vec *out, struct error *err)
{
	struct str *to = out->values;

	for (uint32_t i = 0; i < n; i++) {
		struct piece piece = piece_of(p, c, 0, first + i, 1);
		uint32_t size = piece.block->args_size[piece.at];
		char *text;

		to[i] = (struct str){ 0 };
		if (!size)
			continue;
		text = arena_push_aligned(out->scratch, size, 1);
		if (!text)
			return error_no_memory(err);
		OW_TRY(input_read_at(p->m->inputs[piece.block->source[piece.at]],
				     piece.block->args_offset[piece.at], text, size, err));
		to[i] = str_make(text, size);
		if (!utf8_valid(to[i]))
			to[i] = (struct str){ 0 };
	}
	return OW_OK;
}

#define AT(member) (uint32_t) offsetof(struct trace_block, member)

static ow_status describe(struct relation_table *t, struct error *err)
{
	static const struct relation_column columns[] = {
		{ .name = "index",
		  .doc = "place in the list, from 0",
		  .type = RELATION_INT64,
		  .fill = fill_small,
		  .stride = AT(index) },
		{ .name = "ph",
		  .doc = "letter: X complete, M metadata, s, t, f flow, …",
		  .stride = AT(ph) },
		{ .name = "cat", .doc = "category", .stride = AT(cat) },
		{ .name = "name", .doc = "name", .stride = AT(name) },
		{ .name = "pid",
		  .doc = "process; NULL when it is text",
		  .type = RELATION_INT64,
		  .fill = fill_number,
		  .stride = AT(pid) },
		{ .name = "tid",
		  .doc = "thread; NULL when it is text",
		  .type = RELATION_INT64,
		  .fill = fill_number,
		  .stride = AT(tid) },
		{ .name = "ts",
		  .doc = "start, in microseconds as written",
		  .type = RELATION_REAL,
		  .fill = fill_time,
		  .stride = AT(ts) },
		{ .name = "dur",
		  .doc = "duration, in microseconds as written",
		  .type = RELATION_REAL,
		  .fill = fill_time,
		  .stride = AT(dur) },
		{ .name = "arg_name", .doc = "args.name", .stride = AT(arg_name) },
		{ .name = "arg_op", .doc = "args.op", .stride = AT(arg_op) },
		{ .name = "args",
		  .doc = "all arguments, as JSON; see arg_value()",
		  .type = RELATION_TEXT,
		  .fill = fill_args },
		{ .name = "source_id",
		  .doc = "the input",
		  .type = RELATION_INT64,
		  .fill = fill_small,
		  .stride = AT(source),
		  .refers = true },
	};

	columns_need(t, TABLES_ALL);
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
		struct relation_column column = columns[i];

		if (!column.fill) {
			column.type = RELATION_TEXT;
			column.fill = fill_code;
			column.dict = DICT_PART;
		}
		OW_TRY(columns_add(t, &column, err));
	}
	return OW_OK;
}

static bool is_trace(const struct model *m, uint32_t source)
{
	return source < m->input_cap && m->inputs[source] && !m->backing &&
	       str_eq(model_str(m, m->source.format[source]), STR("trace"));
}

static ow_status prepare(struct relation_table *t, struct relation_part *part, struct error *err)
{
	static const struct str nothing[1] = { { NULL, 0 } };
	struct relation_dict *dict = ARENA_NEW(&part->arena, struct relation_dict);
	struct trace_rows *rows = ARENA_NEW(&part->arena, struct trace_rows);
	const struct model *m = part->m;

	if (!dict || !rows)
		return error_no_memory(err);
	trace_rows_init(rows, t->mem);
	part->state = rows;
	for (uint32_t i = 1; i < m->source.count; i++)
		OW_TRY(is_trace(m, i) ? trace_rows_scan(rows, m->inputs[i], i, err)
				      : trace_rows_add_events(rows, m, i, err));
	part->rows = rows->count;
	*dict = (struct relation_dict){ rows->texts, (uint32_t)rows->text_count };
	if (!rows->text_count)
		*dict = (struct relation_dict){ nothing, 1 };
	part->dicts = dict;
	return OW_OK;
}

static void release(struct relation_part *part)
{
	if (part->state)
		trace_rows_release(part->state);
}

const struct relation relation_trace_events = {
	.name = "trace_events",
	.doc = "the elements of traceEvents, in the order and the units of the file",
	.describe = describe,
	.prepare = prepare,
	.release = release,
};
