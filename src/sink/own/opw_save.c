/*
 * opw_places.c: see opw_places.h. Rows are in another order than their bytes in the source (events are
 * sorted by track), and a source may be larger than memory, so the rows are put into the source's order
 * first: counted into pieces of the source, then sorted within each piece. Equal places stay equal.
 */
#include "sink/opw_places.h"

#include "sink/opw_told.h"

#define PIECE_BITS 16
#define COPY_BYTES ((size_t)1 << 20)

enum place_kind { PLACE_EVENT, PLACE_SHARED, PLACE_EVENT_ARGS, PLACE_OP, PLACE_COUNT };

/* One table whose rows have places. */
struct place {
	enum table_id table;
	const char *offset_name, *size_name;
	const uint64_t *offset;
	const uint32_t *size;
	uint32_t rows;
	bool told; /* some source's importer tells the bytes */
	/* what is written instead */
	uint64_t *new_offset;
	uint32_t *new_size;
};

struct opw_places {
	struct model *m;
	struct opw_writer *w;
	struct error *err;
	struct place places[PLACE_COUNT];
};

static struct place place_of(enum table_id table, const char *offset_name, const char *size_name,
			     const uint64_t *offset, const uint32_t *size, uint32_t rows)
{
	return (struct place){ .table = table,
			       .offset_name = offset_name,
			       .size_name = size_name,
			       .offset = offset,
			       .size = size,
			       .rows = rows };
}

static void describe(const struct model *m, struct place *places)
{
	places[PLACE_EVENT] = place_of(TABLE_event, "args_offset", "args_size",
				       m->event.args_offset, m->event.args_size, m->event.count);
	places[PLACE_SHARED] =
		place_of(TABLE_event, "shared_offset", "shared_size", m->event.shared_offset,
			 m->event.shared_size, m->event.count);
	places[PLACE_EVENT_ARGS] =
		place_of(TABLE_event_args, "args_offset", "args_size", m->event_args.args_offset,
			 m->event_args.args_size, m->event_args.count);
	places[PLACE_OP] = place_of(TABLE_op, "record_offset", "record_size", m->op.record_offset,
				    m->op.record_size, m->op.count);
	places[PLACE_EVENT].told = places[PLACE_SHARED].told = opw_told_any(m);
}

static bool has_places(const struct place *p)
{
	return (p->size || p->told) && p->rows > 1;
}

static uint32_t source_of_row(const struct model *m, enum place_kind kind, uint32_t row)
{
	if (kind == PLACE_OP)
		return COLUMN_GET(m->op.source, row).v;
	if (kind == PLACE_EVENT_ARGS)
		row = m->event_args.event[row].v;
	return m->track.source[m->event.track[row].v].v;
}

static const struct input *input_of(const struct model *m, uint32_t source)
{
	return source && source < m->input_cap ? m->inputs[source] : NULL;
}

/* A row whose bytes can be copied; with its source. */
static const struct input *usable(const struct model *m, const struct place *p,
				  enum place_kind kind, uint32_t row, uint32_t *source)
{
	uint64_t offset = COLUMN_GET(p->offset, row);
	const struct input *in;

	if (!COLUMN_GET(p->size, row))
		return NULL;
	*source = source_of_row(m, kind, row);
	in = input_of(m, *source);
	if (!in || offset > in->size || p->size[row] > in->size - offset)
		return NULL;
	return in;
}

uint64_t opw_places_size(const struct model *m)
{
	struct place places[PLACE_COUNT];
	uint64_t total = 0;

	describe(m, places);
	for (int k = 0; k < PLACE_COUNT; k++)
		for (uint32_t i = 1; has_places(&places[k]) && i < places[k].rows; i++)
			total += COLUMN_GET(places[k].size, i);
	return total;
}

/* ---- copying ---- */

static ow_status copy_bytes(struct opw_places *all, struct window *window, uint64_t offset,
			    uint32_t size)
{
	while (size) {
		size_t part = MIN(size, COPY_BYTES);
		const unsigned char *bytes = window_at(window, offset, part);

		if (!bytes)
			return window->status;
		OW_TRY(opw_put_bytes(all->w, bytes, part, all->err));
		offset += part;
		size -= (uint32_t)part;
	}
	return OW_OK;
}

/* Where the last row's bytes were and went. */
struct last {
	uint32_t source, size;
	uint64_t offset, to;
};

static ow_status copy_row(struct opw_places *all, struct place *p, uint32_t row, uint32_t source,
			  struct window *window, struct last *last)
{
	uint64_t offset = COLUMN_GET(p->offset, row);
	uint32_t size = p->size[row];

	if (last->source != source || last->offset != offset || last->size != size) {
		*last = (struct last){ source, size, offset, 0 };
		OW_TRY(opw_begin_item(all->w, &last->to, all->err));
		OW_TRY(copy_bytes(all, window, offset, size));
	}
	p->new_offset[row] = last->to;
	p->new_size[row] = size;
	return OW_OK;
}

static ow_status copy_in_order(struct opw_places *all, enum place_kind kind, const uint32_t *order,
			       uint32_t count)
{
	struct place *p = &all->places[kind];
	const struct input *in = NULL;
	struct last last = { 0 };
	struct window window;
	ow_status status = OW_OK;

	for (uint32_t i = 0; i < count && status == OW_OK; i++) {
		uint32_t row = order ? order[i] : i, source = 0;
		const struct input *of = usable(all->m, p, kind, row, &source);

		if (!of)
			continue;
		if (of != in) {
			if (in)
				window_release(&window);
			window_init(&window, of, all->err);
			in = of;
		}
		status = copy_row(all, p, row, source, &window, &last);
	}
	if (in)
		window_release(&window);
	return status;
}

/* ---- order ---- */

static bool is_in_order(const struct opw_places *all, enum place_kind kind)
{
	const struct place *p = &all->places[kind];
	uint32_t last_source = 0, source;
	uint64_t last = 0;

	for (uint32_t i = 1; i < p->rows; i++) {
		uint64_t offset = COLUMN_GET(p->offset, i);

		if (!usable(all->m, p, kind, i, &source))
			continue;
		if (source < last_source || (source == last_source && offset < last))
			return false;
		last_source = source;
		last = offset;
	}
	return true;
}

static int by_offset(const void *a, const void *b, void *arg)
{
	const uint32_t *x = a, *y = b;
	const uint64_t *offset = arg;

	if (offset[*x] != offset[*y])
		return offset[*x] < offset[*y] ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

/* Pieces of the sources, in one row; base[s] is the first of source s. */
struct pieces {
	uint32_t *base;
	uint32_t *start; /* where the rows of each piece begin in the order; one more at the end */
	size_t sources, count;
	uint32_t *order;
	uint32_t rows;
};

static void free_pieces(struct pieces *x, struct mem *mem)
{
	mem_free(mem, x->base, x->sources * sizeof(*x->base));
	mem_free(mem, x->start, x->start ? (x->count + 1) * sizeof(*x->start) : 0);
	mem_free(mem, x->order, x->order ? x->rows * sizeof(*x->order) : 0);
}

static bool make_pieces(struct pieces *x, const struct model *m, uint32_t rows)
{
	uint64_t count = 0;

	*x = (struct pieces){ .sources = m->source.count, .rows = rows };
	x->base = mem_alloc(m->mem, x->sources * sizeof(*x->base));
	if (!x->base)
		return false;
	for (uint32_t s = 0; s < x->sources; s++) {
		const struct input *in = input_of(m, s);

		x->base[s] = (uint32_t)count;
		count += in ? (in->size >> PIECE_BITS) + 1 : 0;
		if (count >= UINT32_MAX)
			return false; /* 256 TB */
	}
	x->count = (size_t)count;
	x->start = mem_zalloc(m->mem, (x->count + 1) * sizeof(*x->start));
	x->order = x->start ? mem_alloc(m->mem, rows * sizeof(*x->order)) : NULL;
	return x->order != NULL;
}

static void sort_rows(const struct opw_places *all, enum place_kind kind, struct pieces *x)
{
	const struct place *p = &all->places[kind];
	uint32_t source, used = 0;

	for (uint32_t i = 1; i < p->rows; i++)
		if (usable(all->m, p, kind, i, &source))
			x->start[x->base[source] + (p->offset[i] >> PIECE_BITS)]++;
	for (size_t k = 0; k <= x->count; k++) {
		uint32_t here = x->start[k];

		x->start[k] = used;
		used += here;
	}
	for (uint32_t i = 1; i < p->rows; i++)
		if (usable(all->m, p, kind, i, &source))
			x->order[x->start[x->base[source] + (p->offset[i] >> PIECE_BITS)]++] = i;
	/* start[k] is where piece k ends now, and piece k + 1 begins */
	for (size_t k = 0; k < x->count; k++) {
		uint32_t begin = k ? x->start[k - 1] : 0;

		if (x->start[k] - begin > 1)
			qsort_r(x->order + begin, x->start[k] - begin, sizeof(*x->order), by_offset,
				(void *)(uintptr_t)p->offset);
	}
}

static ow_status copy_rows(struct opw_places *all, enum place_kind kind)
{
	struct place *p = &all->places[kind];
	ow_status status;
	struct pieces x;

	if (!p->offset || is_in_order(all, kind))
		return copy_in_order(all, kind, NULL, p->rows);
	if (!make_pieces(&x, all->m, p->rows)) {
		free_pieces(&x, all->m->mem);
		return error_no_memory(all->err);
	}
	sort_rows(all, kind, &x);
	status = copy_in_order(all, kind, x.order, x.count ? x.start[x.count - 1] : 0);
	free_pieces(&x, all->m->mem);
	return status;
}

/* Definitions are cut to what is worth keeping, in the order of the ops, which is the source's. */
static ow_status copy_records(struct opw_places *all, const struct opw_save_options *options)
{
	struct place *p = &all->places[PLACE_OP];

	for (uint32_t i = 1; i < p->rows; i++) {
		struct str bytes = STR("");
		uint32_t source;

		if (!usable(all->m, p, PLACE_OP, i, &source))
			continue;
		OW_TRY(options->record(options->record_arg, (op_id){ i }, &bytes, all->err));
		if (!bytes.len || bytes.len > UINT32_MAX)
			continue;
		OW_TRY(opw_begin_item(all->w, &p->new_offset[i], all->err));
		OW_TRY(opw_put_bytes(all->w, bytes.ptr, bytes.len, all->err));
		p->new_size[i] = (uint32_t)bytes.len;
	}
	return OW_OK;
}

/* ---- all of it ---- */

static ow_status copy_place(struct opw_places *all, enum place_kind kind,
			    const struct opw_save_options *options)
{
	struct place *p = &all->places[kind];
	struct mem *mem = all->m->mem;

	if (!has_places(p))
		return OW_OK;
	p->new_offset = mem_zalloc(mem, p->rows * sizeof(*p->new_offset));
	p->new_size = p->new_offset ? mem_zalloc(mem, p->rows * sizeof(*p->new_size)) : NULL;
	if (!p->new_size)
		return error_no_memory(all->err);
	if (!p->size)
		return OW_OK;
	return kind == PLACE_OP && options->record ? copy_records(all, options)
						   : copy_rows(all, kind);
}

/* Of sources whose importers tell the arguments, both kinds at once. */
static ow_status copy_told(struct opw_places *all)
{
	const struct place *own = &all->places[PLACE_EVENT], *shared = &all->places[PLACE_SHARED];
	struct opw_told told = { .m = all->m,
				 .w = all->w,
				 .own = { own->new_offset, own->new_size },
				 .shared = { shared->new_offset, shared->new_size },
				 .err = all->err };

	return own->told && own->new_size ? opw_told_write(&told) : OW_OK;
}

ow_status opw_places_new(struct model *m, const struct opw_save_options *options,
			 struct opw_writer *w, struct opw_places **places, struct error *err)
{
	struct opw_places *all = mem_zalloc(m->mem, sizeof(*all));

	*places = all;
	if (!all)
		return error_no_memory(err);
	all->m = m;
	all->w = w;
	all->err = err;
	describe(m, all->places);
	for (int kind = 0; kind < PLACE_COUNT; kind++)
		OW_TRY(copy_place(all, (enum place_kind)kind, options));
	OW_TRY(copy_told(all));
	return opw_end_bytes(w, err);
}

void opw_places_free(struct opw_places *all, struct model *m)
{
	if (!all)
		return;
	for (int kind = 0; kind < PLACE_COUNT; kind++) {
		struct place *p = &all->places[kind];

		mem_free(m->mem, p->new_offset, p->rows * sizeof(*p->new_offset));
		mem_free(m->mem, p->new_size, p->rows * sizeof(*p->new_size));
	}
	mem_free(m->mem, all, sizeof(*all));
}

static bool is_of(const struct place *p, enum table_id table, const char *column, const char *name)
{
	return p->table == table && strcmp(column, name) == 0;
}

bool opw_places_has(const struct model *m, enum table_id table, const struct column_info *column)
{
	struct place places[PLACE_COUNT];

	describe(m, places);
	for (int kind = 0; kind < PLACE_COUNT; kind++)
		if (has_places(&places[kind]) &&
		    (is_of(&places[kind], table, column->name, places[kind].offset_name) ||
		     is_of(&places[kind], table, column->name, places[kind].size_name)))
			return true;
	return false;
}

const void *opw_places_column(const struct opw_places *all, enum table_id table,
			      const struct column_info *column)
{
	for (int kind = 0; kind < PLACE_COUNT; kind++) {
		const struct place *p = &all->places[kind];

		if (is_of(p, table, column->name, p->offset_name))
			return p->new_offset;
		if (is_of(p, table, column->name, p->size_name))
			return p->new_size;
	}
	return NULL;
}
