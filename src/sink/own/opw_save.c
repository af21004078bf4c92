/*
 * opw_save.c: writes a model as our own file (.opw), which import_opw.c opens in place. The columns are at the
 * beginning of the file, so that the tables survive if the file is cut short; the bytes that columns point to
 * (arguments, definitions of ops) are at the end. These bytes are written first, because their offsets go into the
 * columns, whose size is known before. Arguments that an importer reads on demand are read and written out. Called by
 * the API.
 */
#include "sink/own/opw_save.h"
#include "model/model.h"
#include "wire/own/opw.h"
#include "base/map.h"

/* For each event: offset and size of its arguments in the new file. */
struct lazy_args_places {
	uint64_t *offset;
	uint32_t *size;
};

struct lazy_args {
	struct model *m;
	struct opw_writer *w;
	struct lazy_args_places own, shared;
	struct ow_error *err;
};

struct opw_places;

#define AT_ONCE 4096

/* A text of arguments that was already written, for sharing equal texts. */
struct written {
	struct str text;
	uint64_t offset;
};

struct lazy_args_pass {
	struct lazy_args *args;
	struct arena scratch; /* memory for one block of rows */
	struct arena kept;    /* copies of the texts that were written, for comparison */
	struct map map;	      /* text → 1 + row of `written` */
	struct written *written;
	size_t count, cap;
};

/* Whether some source has arguments that are read on demand. */
static bool lazy_args_any(const struct model *m)
{
	for (uint32_t source = 1; source < m->source.count; source++)
		if (model_args_reader(m, source))
			return true;
	return false;
}

static ow_status put_text(struct lazy_args *args, struct str text, uint64_t *offset)
{
	if (text.len > UINT32_MAX)
		return error_set(args->err, OW_E_LIMIT,
				 "arguments of more than 4 GB cannot be saved");
	OW_TRY(opw_begin_item(args->w, offset, args->err));
	return opw_put_bytes(args->w, text.ptr, text.len, args->err);
}

static ow_status put_own(struct lazy_args_pass *t, uint32_t row, struct str text)
{
	struct lazy_args *args = t->args;

	if (!text.len)
		return OW_OK;
	OW_TRY(put_text(args, text, &args->own.offset[row]));
	args->own.size[row] = (uint32_t)text.len;
	return OW_OK;
}

static const struct written *find(const struct lazy_args_pass *t, struct str text, uint64_t hash)
{
	for (struct map_iter it = map_find(&t->map, hash); it.value; it = map_next(&t->map, it))
		if (str_eq(t->written[it.value - 1].text, text))
			return &t->written[it.value - 1];
	return NULL;
}

static ow_status remember(struct lazy_args_pass *t, struct str text, uint64_t hash, uint64_t offset)
{
	void *written = t->written;
	struct str copy = arena_str(&t->kept, text);

	if (!copy.ptr ||
	    !mem_grow(t->args->m->mem, &written, &t->cap, t->count + 1, sizeof(*t->written)))
		return error_no_memory(t->args->err);
	t->written = written;
	t->written[t->count++] = (struct written){ copy, offset };
	return map_add(&t->map, hash, (uint32_t)t->count) ? OW_OK : error_no_memory(t->args->err);
}

static ow_status put_shared(struct lazy_args_pass *t, uint32_t row, struct str text)
{
	struct lazy_args *args = t->args;
	const struct written *before;
	uint64_t hash;

	if (!text.len)
		return OW_OK;
	hash = str_hash(text);
	before = find(t, text, hash);
	if (before) {
		args->shared.offset[row] = before->offset;
	} else {
		OW_TRY(put_text(args, text, &args->shared.offset[row]));
		OW_TRY(remember(t, text, hash, args->shared.offset[row]));
	}
	args->shared.size[row] = (uint32_t)text.len;
	return OW_OK;
}

/* Writes the arguments of `rows`, all from one source. */
static ow_status put_rows(struct lazy_args_pass *t, uint32_t source, const uint32_t *rows,
			  uint32_t n)
{
	const struct args_reader *reader = model_args_reader(t->args->m, source);
	struct str *texts = ARENA_ARRAY(&t->scratch, struct str, n);
	struct str *shared = texts ? ARENA_ARRAY(&t->scratch, struct str, n) : NULL;

	if (!shared)
		return error_no_memory(t->args->err);
	OW_TRY(reader->read(reader->state, t->args->m, rows, n, texts, shared, &t->scratch,
			    t->args->err));
	for (uint32_t i = 0; i < n; i++) {
		OW_TRY(put_own(t, rows[i], texts[i]));
		OW_TRY(put_shared(t, rows[i], shared[i]));
	}
	arena_clear(&t->scratch);
	return OW_OK;
}

static uint32_t source_of(const struct model *m, uint32_t event)
{
	return m->track.source[m->event.track[event].v].v;
}

static ow_status put_all(struct lazy_args_pass *t)
{
	const struct model *m = t->args->m;
	uint32_t rows[AT_ONCE], n = 0, source = 0;

	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t of = source_of(m, i);

		if (n && (n == AT_ONCE || of != source)) {
			OW_TRY(put_rows(t, source, rows, n));
			n = 0;
		}
		source = of;
		if (model_args_reader(m, of))
			rows[n++] = i;
	}
	return n ? put_rows(t, source, rows, n) : OW_OK;
}

/* Writes the arguments of all events at the writer's current position. */
static ow_status lazy_args_write(struct lazy_args *args)
{
	struct mem *mem = args->m->mem;
	struct lazy_args_pass t = { .args = args };
	ow_status status;

	arena_init(&t.scratch, mem);
	arena_init(&t.kept, mem);
	map_init(&t.map, mem);
	status = put_all(&t);
	mem_free(mem, t.written, t.cap * sizeof(*t.written));
	map_release(&t.map);
	arena_release(&t.kept);
	arena_release(&t.scratch);
	return status;
}

#define PIECE_BITS 16
#define COPY_BYTES ((size_t)1 << 20)

enum place_kind { PLACE_EVENT, PLACE_SHARED, PLACE_EVENT_ARGS, PLACE_OP, PLACE_COUNT };

/* A table whose rows point to bytes in a source file, and its columns of offset and size. */
struct place {
	enum table_id table;
	const char *offset_name, *size_name;
	const uint64_t *offset;
	const uint32_t *size;
	uint32_t rows;
	bool lazy; /* the importer of some source reads these bytes on demand */
	/* offsets and sizes in the new file, written instead of the old ones */
	uint64_t *new_offset;
	uint32_t *new_size;
};

struct opw_places {
	struct model *m;
	struct opw_writer *w;
	struct ow_error *err;
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
	places[PLACE_EVENT].lazy = places[PLACE_SHARED].lazy = lazy_args_any(m);
}

static bool has_places(const struct place *p)
{
	return (p->size || p->lazy) && p->rows > 1;
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

/* The input from which the bytes of a row can be copied; NULL if they cannot. */
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

/* An upper bound of the bytes that will be copied. */
static uint64_t opw_places_size(const struct model *m)
{
	struct place places[PLACE_COUNT];
	uint64_t total = 0;

	describe(m, places);
	for (int k = 0; k < PLACE_COUNT; k++)
		for (uint32_t i = 1; has_places(&places[k]) && i < places[k].rows; i++)
			total += COLUMN_GET(places[k].size, i);
	return total;
}

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

/* The last row's bytes: their position in the source and in the new file, because neighbours often share bytes. */
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

/* All sources split into pieces, numbered through; base[s] is the number of source s's first piece. */
struct pieces {
	uint32_t *base;
	/* index in the sorted rows at which each piece begins; one more entry marks the end */
	uint32_t *start;
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
			return false; /* a file of more than 256 TB */
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
	/* start[k] is now where piece k ends and piece k + 1 begins */
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

/* Copies the definitions of ops, reduced by options->record, in the order of the ops, which is the order in the
 * source. */
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

/* Copies the arguments of events whose importers read them on demand; offsets and sizes are filled together. */
static ow_status copy_lazy_args(struct opw_places *all)
{
	const struct place *own = &all->places[PLACE_EVENT], *shared = &all->places[PLACE_SHARED];
	struct lazy_args args = { .m = all->m,
				  .w = all->w,
				  .own = { own->new_offset, own->new_size },
				  .shared = { shared->new_offset, shared->new_size },
				  .err = all->err };

	return own->lazy && own->new_size ? lazy_args_write(&args) : OW_OK;
}

/* Copies all bytes that columns point to, at the writer's current position. *places may be set on failure, too. */
static ow_status opw_places_new(struct model *m, const struct opw_save_options *options,
				struct opw_writer *w, struct opw_places **places,
				struct ow_error *err)
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
	OW_TRY(copy_lazy_args(all));
	return opw_end_bytes(w, err);
}

static void opw_places_free(struct opw_places *all, struct model *m)
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

/* Whether a column will be written although no row has a value yet, because copying will fill it. */
static bool opw_places_has(const struct model *m, enum table_id table,
			   const struct column_info *column)
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

/* The values to write instead of a column's own; NULL = the column's own. */
static const void *opw_places_column(const struct opw_places *all, enum table_id table,
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

struct save {
	struct model *m;
	const struct opw_save_options *options;
	const struct opw_out *to;
	struct opw_out out; /* counts written bytes and reports progress */
	struct opw_writer w;
	struct opw_places *places;
	uint64_t done, total, reported;
};

#define COLUMNS_MAX 64
#define REPORT_BYTES ((uint64_t)4 << 20)

static ow_status counted_write(void *arg, uint64_t offset, const void *bytes, size_t len,
			       struct ow_error *err)
{
	struct save *s = arg;
	const struct progress *progress = s->options->progress;

	s->done += len;
	if (progress && progress->report && s->done - s->reported >= REPORT_BYTES) {
		s->reported = s->done;
		if (!progress->report(progress->arg, s->done, MAX(s->total, s->done)))
			return error_set(err, OW_E_INTERRUPTED, "interrupted");
	}
	return s->to->write_at(s->to->arg, offset, bytes, len, err);
}

struct meta {
	int64_t time_unit_ns;
	uint8_t has_code, missing_streams, damaged, frozen;
};

static uint32_t meta_parts(const struct meta *meta, struct opw_part *parts)
{
	parts[0] = opw_part_of(OPW_BLOCK_TIME_UNIT_NS, &meta->time_unit_ns, 8);
	parts[1] = opw_part_of(OPW_BLOCK_HAS_CODE, &meta->has_code, 1);
	parts[2] = opw_part_of(OPW_BLOCK_MISSING_STREAMS, &meta->missing_streams, 1);
	parts[3] = opw_part_of(OPW_BLOCK_DAMAGED, &meta->damaged, 1);
	parts[4] = opw_part_of(OPW_BLOCK_FROZEN, &meta->frozen, 1);
	return 5;
}

static struct meta meta_of(const struct model *m)
{
	return (struct meta){ .time_unit_ns = m->time_unit_ns,
			      .has_code = m->has_code,
			      .missing_streams = m->missing_streams,
			      .damaged = m->damaged,
			      .frozen = m->frozen };
}

struct string_reader {
	const struct model *m;
	uint32_t next;
	size_t within; /* bytes of the current string (with its NUL) that were returned so far */
};

static void read_lengths(void *arg, void *to, size_t len)
{
	struct string_reader *r = arg;
	uint32_t *lengths = to;

	for (size_t i = 0; i < len / sizeof(*lengths); i++)
		lengths[i] = (uint32_t)r->m->strings.text[r->next++].len;
}

static void read_texts(void *arg, void *to, size_t len)
{
	struct string_reader *r = arg;
	char *at = to;

	while (len) {
		struct str text = r->m->strings.text[r->next];
		size_t part = MIN(text.len - MIN(r->within, text.len), len);

		if (part)
			memcpy(at, text.ptr + r->within, part);
		at += part;
		len -= part;
		r->within += part;
		if (!len)
			return;
		*at++ = '\0';
		len--;
		r->within = 0;
		r->next++;
	}
}

static uint32_t string_parts(const struct model *m, struct string_reader *readers,
			     struct opw_part *parts)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < m->strings.count; i++)
		size += m->strings.text[i].len + 1;
	readers[0] = (struct string_reader){ .m = m };
	readers[1] = readers[0];
	parts[0] = opw_part_of(OPW_BLOCK_LENGTH, NULL, (uint64_t)m->strings.count * 4);
	parts[0].read = read_lengths;
	parts[0].arg = &readers[0];
	parts[1] = opw_part_of(OPW_BLOCK_TEXT, NULL, size);
	parts[1].read = read_texts;
	parts[1].arg = &readers[1];
	return 2;
}

static ow_status check_strings(const struct model *m, struct ow_error *err)
{
	for (uint32_t i = 0; i < m->strings.count; i++)
		if (m->strings.text[i].len > UINT32_MAX)
			return error_set(err, OW_E_LIMIT,
					 "a text of more than 4 GB cannot be saved");
	return OW_OK;
}

static uint32_t table_rows(const struct model *m, enum table_id table)
{
	return *(const uint32_t *)(const void *)((const char *)m + model_tables[table].offset);
}

/* Whether a column is written. Undecoded code traces are not: they have been decoded into the stacks. */
static bool is_kept(enum table_id table, const struct column_info *column)
{
	return table != TABLE_op ||
	       (strcmp(column->name, "code_offset") != 0 && strcmp(column->name, "code_size") != 0);
}

/* Whether a table has only its nil row; such a table is not written, because a reader creates the nil row itself. */
static bool is_empty(const struct model *m, enum table_id table)
{
	const struct table_info *info = &model_tables[table];
	static const char zeros[16];

	for (uint32_t c = 0; c < info->column_count; c++) {
		const char *head = (const char *)m + info->offset;
		const void *values = *(void *const *)(const void *)(head + info->columns[c].offset);

		if (values && memcmp(values, zeros, info->columns[c].size) != 0)
			return false;
	}
	return table_rows(m, table) <= 1;
}

/* Lists the columns of a table that are written; none for a table that is left out. */
static uint32_t table_parts(const struct save *s, enum table_id table, struct opw_part *parts)
{
	const struct table_info *info = &model_tables[table];
	const char *head = (const char *)s->m + info->offset;
	uint32_t rows = table_rows(s->m, table), n = 0;

	if (is_empty(s->m, table))
		return 0;
	for (uint32_t c = 0; c < info->column_count; c++) {
		const struct column_info *column = &info->columns[c];
		const void *values = *(void *const *)(const void *)(head + column->offset);
		const void *moved = s->places ? opw_places_column(s->places, table, column) : NULL;

		if ((!values && !opw_places_has(s->m, table, column)) || !is_kept(table, column))
			continue;
		OW_ASSERT(n < COLUMNS_MAX);
		parts[n++] = (struct opw_part){ .name = column->name,
						.type = column->type,
						.value_size = column->size,
						.size = (uint64_t)rows * column->size,
						.bytes = moved ? moved : values };
	}
	return n;
}

/* Bytes of the header and of all segments of columns. */
static uint64_t columns_size(struct save *s, const struct meta *meta)
{
	struct opw_part parts[COLUMNS_MAX];
	struct string_reader readers[2];
	uint64_t size = sizeof(struct opw_header);

	size += opw_segment_size(parts, meta_parts(meta, parts));
	size += opw_segment_size(parts, string_parts(s->m, readers, parts));
	for (int t = 0; t < TABLE_COUNT; t++) {
		uint32_t count = table_parts(s, (enum table_id)t, parts);

		size += count ? opw_segment_size(parts, count) : 0;
	}
	return size;
}

static ow_status put_columns(struct save *s, const struct meta *meta, struct ow_error *err)
{
	struct opw_part parts[COLUMNS_MAX];
	struct string_reader readers[2];
	uint32_t count = meta_parts(meta, parts);

	OW_TRY(opw_put_header(&s->w, s->options->writer, err));
	OW_TRY(opw_put_segment(&s->w, OPW_META, "", 0, 1, parts, count, err));
	count = string_parts(s->m, readers, parts);
	OW_TRY(opw_put_segment(&s->w, OPW_STRINGS, "", 0, s->m->strings.count, parts, count, err));
	for (int t = 0; t < TABLE_COUNT; t++) {
		count = table_parts(s, (enum table_id)t, parts);
		if (!count)
			continue;
		OW_TRY(opw_put_segment(&s->w, OPW_ROWS, model_tables[t].name, 0,
				       table_rows(s->m, (enum table_id)t), parts, count, err));
	}
	return OW_OK;
}

static ow_status check_sources(const struct model *m, struct ow_error *err)
{
	for (size_t i = 0; i < m->input_cap; i++)
		if (m->inputs[i])
			OW_TRY(input_check_unchanged(m->inputs[i], err));
	return OW_OK;
}

static ow_status save_all(struct save *s, struct ow_error *err)
{
	struct meta meta = meta_of(s->m);
	uint64_t columns = columns_size(s, &meta), end, size;

	s->total = columns + opw_places_size(s->m);
	s->w.at = columns;
	OW_TRY(opw_places_new(s->m, s->options, &s->w, &s->places, err));
	end = s->w.at;
	s->w.at = sizeof(struct opw_header);
	OW_TRY(put_columns(s, &meta, err));
	OW_ASSERT(s->w.at == columns);
	s->w.at = end;
	OW_TRY(opw_put_footer(&s->w, &size, err));
	return check_sources(s->m, err);
}

ow_status opw_save(struct model *m, const struct opw_save_options *options,
		   const struct opw_out *out, struct ow_error *err)
{
	struct save s = { .m = m, .options = options, .to = out, .out = { counted_write, &s } };
	ow_status status;

	OW_TRY(model_require_rows(m, UINT64_MAX, err));
	OW_TRY(model_require_stacks(m, err));
	if (m->frozen)
		OW_TRY(model_require_nesting(m, err));
	OW_TRY(check_strings(m, err));
	opw_writer_init(&s.w, m->mem, &s.out);
	status = save_all(&s, err);
	opw_places_free(s.places, m);
	opw_writer_release(&s.w);
	return status;
}
