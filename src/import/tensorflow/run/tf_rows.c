/*
 * tf_rows.c: lists the records of a run while it is imported, and makes their events and tensors on first use
 * (tf_rows.h). Damaged records are skipped as during the import, which has reported them.
 */
#include "import/tensorflow/run/tf_rows.h"
#include "base/vec.h"
#include "import/tensorflow/tf_phases.h"

struct tf_rows *tf_rows_new(struct builder *b)
{
	struct tf_rows *rows = mem_zalloc(b->m->mem, sizeof(*rows));

	if (!rows) {
		builder_no_memory(b);
		return NULL;
	}
	rows->mem = b->m->mem;
	rows->source = b->source;
	return rows;
}

void tf_rows_free(struct tf_rows *rows)
{
	struct mem *mem;

	if (!rows)
		return;
	mem = rows->mem;
	mem_free(mem, rows->ops, rows->op_cap * sizeof(*rows->ops));
	mem_free(mem, rows->lists, rows->list_cap * sizeof(*rows->lists));
	mem_free(mem, rows, sizeof(*rows));
}

struct tf_rows_list *tf_rows_list(struct tf_rows *rows)
{
	struct tf_rows_list *list;

	if (!vec_reserve(rows->mem, rows->lists, rows->list_cap, rows->list_count + 1))
		return NULL;
	list = &rows->lists[rows->list_count++];
	*list = (struct tf_rows_list){ .first = rows->op_count };
	return list;
}

struct maker {
	const struct tf_rows *rows;
	const struct tf_rows_list *list;
	size_t done; /* number of records of the list that were read */
	struct import_ctx ctx;
	struct builder b;
	struct tf_read r;
	struct tf_node_reader read;
	struct tf_shape_memory shapes;
};

/* Whether the time of a record is in a total: it must come from the executor that owns the op, or from its streams. */
static bool is_counted(const struct model *m, const struct tf_rows_list *list, op_id op)
{
	bool owned = !list->canonical || m->op.device[op.v].v == list->device.v;

	return op.v && owned && (list->canonical || list->streams);
}

static void add_event(struct maker *k, op_id op, const struct tf_node_stats *rec)
{
	bool counted = is_counted(k->b.m, k->list, op);
	str_id name = { 0 };

	if (!op.v)
		name = tf_text(&k->r, rec->name);
	builder_add_event(&k->b,
			  &(struct event_row){ .ts_ns = us_to_ns(rec->start_us),
					       .dur_ns = us_to_ns(tf_node_stats_dur_us(rec)),
					       .op = op,
					       .track = counted ? k->list->counted : k->list->other,
					       .step = k->rows->step,
					       .name = name,
					       .args_offset = rec->offset,
					       .args_size = rec->size });
}

static void add_tensors(struct maker *k, op_id op)
{
	for (size_t i = 0; i < k->read.output_count; i++) {
		const struct tf_output *out = &k->read.outputs[i];
		struct tensor_row row = { .op = op,
					  .step = k->rows->step,
					  .slot = out->slot,
					  .dtype = out->dtype,
					  .requested = out->requested,
					  .allocated = out->allocated,
					  .address = out->address,
					  .allocator = tf_word(&k->r, out->allocator) };

		if (out->shape.ptr)
			row.shape = tf_shape_recall(&k->shapes, &k->b, out->shape, tf_shape_real);
		builder_add_tensor(&k->b, &row);
	}
}

static ow_status make_list(struct maker *k, const struct tf_rows_list *list)
{
	struct tf_node_stats rec;

	k->list = list;
	pb_stream_init(&k->r.stream, &k->r.window, list->begin, list->end);
	tf_node_stats_begin(&k->read, &k->r.stream);
	for (k->done = 0; k->b.status == OW_OK && tf_node_stats_next(&k->read, &rec);) {
		op_id op;

		if (k->read.no_memory)
			builder_no_memory(&k->b);
		if (k->done == list->count)
			continue;
		op = k->rows->ops[list->first + k->done++];
		if (op.v)
			add_tensors(k, op);
		if (rec.start_us > 0) /* a record without a time has no event */
			add_event(k, op, &rec);
	}
	if (k->b.status != OW_OK)
		return k->b.status;
	/* Damage ends the list at the same place as during the import. */
	if (k->r.stream.status == OW_OK || k->r.stream.status == OW_E_CORRUPT ||
	    k->r.stream.status == OW_E_LIMIT)
		return OW_OK;
	if (k->ctx.err)
		*k->ctx.err = k->r.problem;
	return k->r.stream.status;
}

static ow_status make_lists(struct maker *k)
{
	const struct tf_rows *rows = k->rows;
	const struct model *m = k->b.m;
	uint32_t events = m->event.count, tensors = m->tensor.count;

	for (size_t i = 0; i < rows->list_count; i++)
		OW_TRY(make_list(k, &rows->lists[i]));
	OW_TRY(input_check_unchanged(k->ctx.in, k->ctx.err));
	if (m->event.count - events == rows->events && m->tensor.count - tensors == rows->tensors)
		return OW_OK;
	return error_set(k->ctx.err, OW_E_IO,
			 "%s: the file changed after it was opened; open it again",
			 k->ctx.in->name);
}

static ow_status make_rows(struct model *m, void *state, struct ow_error *err)
{
	static const struct import_options options;
	const struct tf_rows *rows = state;
	uint32_t first_event;
	struct maker *k;
	ow_status status;

	if (rows->source.v >= m->input_cap || !m->inputs[rows->source.v])
		return error_set(err, OW_E_IO,
				 "the events cannot be read: their input file is closed");
	k = mem_zalloc(m->mem, sizeof(*k));
	if (!k)
		return error_no_memory(err);
	builder_init(&k->b, m, err);
	k->b.source = rows->source;
	k->ctx = (struct import_ctx){
		.b = &k->b, .in = m->inputs[rows->source.v], .options = &options, .err = err
	};
	k->rows = rows;
	k->read.mem = m->mem;
	tf_read_begin(&k->r, &k->ctx, "RunMetadata", 0, k->ctx.in->size);
	first_event = m->event.count;
	status = make_lists(k);
	if (status == OW_OK && rows->phases) {
		tf_phases(&k->b, first_event);
		status = builder_status(&k->b);
	}
	window_release(&k->r.window);
	tf_node_reader_release(&k->read);
	mem_free(m->mem, k, sizeof(*k));
	return status;
}

static void free_rows(void *state)
{
	tf_rows_free(state);
}

ow_status tf_rows_defer(struct builder *b, struct tf_rows *rows, bool forget)
{
	struct model *m = b->m;
	bool now = forget || m->event.count > 1 || m->tensor.count > 1;

	OW_TRY(builder_defer_rows(
		b, TF_ROWS_TABLES,
		&(struct deferred){ .run = make_rows, .release = free_rows, .state = rows }));
	if (!now)
		return OW_OK;
	return builder_fail(b, model_require_rows(m, TF_ROWS_TABLES, b->err));
}

const struct tf_rows_list *tf_rows_of_previous_run(const struct model *m, str_id device,
						   const struct tf_rows **rows)
{
	const struct deferred *last = m->deferred.rows;

	while (last && last->next)
		last = last->next;
	if (!last || last->run != make_rows)
		return NULL;
	*rows = last->state;
	for (size_t i = 0; i < (*rows)->list_count; i++)
		if ((*rows)->lists[i].device.v == device.v)
			return &(*rows)->lists[i];
	return NULL;
}
