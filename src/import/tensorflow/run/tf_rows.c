/* tf_rows.c: see tf_rows.h. Damaged records are passed over: the import has told of them. */
#include "import/tf_rows.h"

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
	void *lists = rows->lists;
	struct tf_rows_list *list;

	if (!mem_grow(rows->mem, &lists, &rows->list_cap, rows->list_count + 1,
		      sizeof(*rows->lists)))
		return NULL;
	rows->lists = lists;
	list = &rows->lists[rows->list_count++];
	*list = (struct tf_rows_list){ .first = rows->op_count };
	return list;
}

/* ---- making them ---- */

struct maker {
	const struct tf_rows *rows;
	const struct tf_rows_list *list;
	size_t done; /* records of the list */
	struct import_ctx ctx;
	struct builder b;
	struct tf_read r;
	struct tf_records read;
};

/* Whether the time of a record is in a total: the executor that owns the op counts, and what its streams did. */
static bool is_counted(const struct model *m, const struct tf_rows_list *list, op_id op)
{
	bool owned = !list->canonical || m->op.device[op.v].v == list->device.v;

	return op.v && owned && (list->canonical || list->streams);
}

static void add_event(struct maker *k, op_id op, const struct tf_record *rec)
{
	bool counted = is_counted(k->b.m, k->list, op);
	str_id name = { 0 };

	if (!op.v)
		name = tf_text(&k->r, rec->name);
	builder_add_event(&k->b,
			  &(struct event_row){ .ts_ns = us_to_ns(rec->start_us),
					       .dur_ns = us_to_ns(tf_record_dur_us(rec)),
					       .op = op,
					       .track = counted ? k->list->counted : k->list->other,
					       .step = k->rows->step,
					       .name = name,
					       .args_offset = rec->offset,
					       .args_size = rec->size });
}

static void add_tensors(struct maker *k, op_id op)
{
	for (size_t i = 0; i < k->read.tensor_count; i++) {
		k->read.tensors[i].op = op;
		k->read.tensors[i].step = k->rows->step;
		builder_add_tensor(&k->b, &k->read.tensors[i]);
	}
}

static void add_record(struct maker *k, struct str bytes, uint64_t offset)
{
	struct tf_record rec = { .offset = offset, .size = (uint32_t)bytes.len };
	struct pb r = pb_over(bytes.ptr, bytes.len);
	op_id op;

	tf_record_read(&k->read, &rec, &r);
	if (r.problem || k->done == k->list->count)
		return;
	op = k->rows->ops[k->list->first + k->done++];
	if (op.v)
		add_tensors(k, op);
	if (rec.start_us > 0) /* without a time there is nothing to show */
		add_event(k, op, &rec);
}

/* A record that was not whole in the window. */
static bool add_edge(struct maker *k, const struct pb_stream_field *f)
{
	const uint8_t *bytes;

	if (f->tag != PB_TAG(2, PB_BYTES))
		return true;
	bytes = pb_stream_bytes(&k->r.stream, f);
	if (bytes)
		add_record(k, str_make(bytes, (size_t)f->size), f->offset);
	return true;
}

static ow_status make_list(struct maker *k, const struct tf_rows_list *list)
{
	struct pb_stream_field part;
	struct pb_field field;
	struct tf_bulk bulk;
	uint64_t offset;

	k->list = list;
	k->done = 0;
	pb_stream_init(&k->r.stream, &k->r.window, list->begin, list->end);
	do {
		for (bulk = tf_bulk(&k->r); tf_bulk_next(&bulk, &field, &offset);)
			if (field.tag == PB_TAG(2, PB_BYTES))
				add_record(k, pb_str(&field), offset);
	} while (tf_bulk_end(&k->r, &bulk) && tf_next(&k->r, &part) && add_edge(k, &part));
	if (k->b.status != OW_OK)
		return k->b.status;
	/* Damage was there before; it ends a list where it ended then. */
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
			 "%s: the file was written to since it was opened; open it again",
			 k->ctx.in->name);
}

static ow_status make_rows(struct model *m, void *state, struct error *err)
{
	static const struct import_options options;
	const struct tf_rows *rows = state;
	struct maker *k;
	ow_status status;

	if (rows->source.v >= m->input_cap || !m->inputs[rows->source.v])
		return error_set(err, OW_E_IO, "the input of these events is closed");
	k = mem_zalloc(m->mem, sizeof(*k));
	if (!k)
		return error_no_memory(err);
	builder_init(&k->b, m, err);
	k->b.source = rows->source;
	k->ctx = (struct import_ctx){
		.b = &k->b, .in = m->inputs[rows->source.v], .options = &options, .err = err
	};
	k->rows = rows;
	k->read.r = &k->r;
	tf_read_begin(&k->r, &k->ctx, "RunMetadata", 0, k->ctx.in->size);
	status = make_lists(k);
	window_release(&k->r.window);
	tf_records_release(&k->read);
	mem_free(m->mem, k, sizeof(*k));
	return status;
}

static void release(void *state)
{
	tf_rows_free(state);
}

ow_status tf_rows_defer(struct builder *b, struct tf_rows *rows, bool forget)
{
	struct model *m = b->m;
	bool now = forget || m->event.count > 1 || m->tensor.count > 1;

	OW_TRY(builder_defer_rows(
		b, TF_ROWS_TABLES,
		&(struct deferred){ .run = make_rows, .release = release, .state = rows }));
	if (!now)
		return OW_OK;
	return builder_fail(b, model_require_rows(m, TF_ROWS_TABLES, b->err));
}

const struct tf_rows_list *tf_rows_before(const struct model *m, str_id device,
					  const struct tf_rows **rows)
{
	const struct deferred *last = m->deferred_rows;

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
