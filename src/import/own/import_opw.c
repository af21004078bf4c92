/*
 * import_opw.c: the importer of saved models (.opw). The file is mapped and its columns are used in place: the file
 * replaces the model that is being built, or its rows are added to that model. It checks that the columns fit together
 * before they are used; the rows of a table are verified when they are first read (model/backing.c). Recordings are
 * read by import_live.c and journal_rows.c.
 */
#include "import/importer.h"
#include "import/own/own_int.h"
#include "model/backing.h"
#include "model/builder.h"
#include "wire/own/opw.h"
#include "model/append.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "wire/container/crc32c.h"

#include <unistd.h>

/* Problems of the file, for notes once it is in the model. */
struct opw_remarks {
	bool complete;
	/* if the file is incomplete: offset of the first unused byte, and the reason */
	uint64_t end;
	char problem[160];
	uint64_t repaired; /* references to rows that are lost */
	uint64_t lost;	   /* lost arguments and definitions */
	/* number of columns and tables of a newer version, and the first of them */
	uint32_t unknown;
	char first_unknown[80];
};

struct stored {
	struct mem *mem;
	struct arena arena;
	struct opw_file file;
	/* the mapped bytes of the file; NULL when columns have to be copied */
	const unsigned char *base;
	const struct opw_segment *in_place[TABLE_COUNT];
};

struct opening {
	struct stored *st;
	struct model *m;
	struct backing *backing;
	struct opw_remarks *remarks;
	struct ow_error *err;
};

#define COLUMNS_MAX 64
#define PARALLEL_BYTES ((uint64_t)4 << 20) /* below this, threads cost more than they save */

static bool is_column(const struct opw_block *block, const struct column_info *column)
{
	return strcmp(block->name, column->name) == 0 && strcmp(block->type, column->type) == 0 &&
	       block->value_size == column->size;
}

/* Whether a column is used. Undecoded code is not in the file, so nothing may point to it. */
static bool is_wanted(enum table_id table, const struct column_info *column)
{
	return table != TABLE_op ||
	       (strcmp(column->name, "code_offset") != 0 && strcmp(column->name, "code_size") != 0);
}

static const struct opw_block *block_of_column(const struct opw_segment *segment,
					       enum table_id table,
					       const struct column_info *column)
{
	for (uint32_t i = 0; i < segment->head.block_count; i++)
		if (is_column(&segment->blocks[i], column))
			return is_wanted(table, column) ? &segment->blocks[i] : NULL;
	return NULL;
}

static int find_table(const char *name)
{
	for (int t = 0; t < TABLE_COUNT; t++)
		if (strcmp(model_tables[t].name, name) == 0)
			return t;
	return -1;
}

static void remark_unknown(struct opening *o, const char *table, const char *column)
{
	if (!o->remarks->unknown++)
		snprintf(o->remarks->first_unknown, sizeof(o->remarks->first_unknown), "%s%s%s",
			 table, *column ? "." : "", column);
}

static void find_unknown(struct opening *o, const struct opw_segment *segment, int table)
{
	const struct table_info *info = &model_tables[table];

	for (uint32_t i = 0; i < segment->head.block_count; i++) {
		bool known = false;

		for (uint32_t c = 0; c < info->column_count && !known; c++)
			known = is_column(&segment->blocks[i], &info->columns[c]);
		if (!known)
			remark_unknown(o, info->name, segment->blocks[i].name);
	}
}

static ow_status out_of_order(const struct opening *o, const struct opw_segment *segment)
{
	return error_at(
		o->err, OW_E_CORRUPT, segment->offset,
		"%s: the opwatch file is damaged: a segment of %s does not follow the one before",
		o->backing->file.name, *segment->head.table ? segment->head.table : "strings");
}

static ow_status read_value(const struct opening *o, const struct opw_segment *segment,
			    enum opw_block_id id, void *to)
{
	const struct opw_block *block = opw_find_block(segment, opw_block_info[id].name);
	size_t size = opw_block_info[id].value_size;

	if (!block || block->size != size)
		return OW_OK;
	OW_TRY(opw_check_block(&o->st->file, segment, block, o->err));
	return input_read_at(&o->backing->file, segment->offset + block->offset, to, size, o->err);
}

static ow_status read_meta(struct opening *o, const struct opw_segment *segment)
{
	uint8_t has_code = o->m->has_code, streams = o->m->missing_streams, damaged = o->m->damaged;
	uint8_t frozen = 0;

	OW_TRY(read_value(o, segment, OPW_BLOCK_TIME_UNIT_NS, &o->m->time_unit_ns));
	OW_TRY(read_value(o, segment, OPW_BLOCK_HAS_CODE, &has_code));
	OW_TRY(read_value(o, segment, OPW_BLOCK_MISSING_STREAMS, &streams));
	OW_TRY(read_value(o, segment, OPW_BLOCK_DAMAGED, &damaged));
	OW_TRY(read_value(o, segment, OPW_BLOCK_FROZEN, &frozen));
	o->m->has_code = has_code;
	o->m->missing_streams = streams;
	o->m->damaged = damaged;
	o->backing->frozen = frozen;
	return OW_OK;
}

static ow_status read_block(const struct opening *o, const struct opw_segment *segment,
			    const struct opw_block *block, void *to)
{
	OW_TRY(input_read_at(&o->backing->file, segment->offset + block->offset, to,
			     (size_t)block->size, o->err));
	if (!opw_same_crc(crc32c(to, (size_t)block->size), block->crc))
		return opw_damaged(&o->st->file, segment, block, o->err);
	return OW_OK;
}

/* Points to the strings of a segment; the texts follow each other, each with a NUL. */
static ow_status add_texts(struct opening *o, const struct opw_segment *segment, const char *text,
			   uint64_t size, const uint32_t *lengths)
{
	struct strings *s = &o->m->strings;
	uint32_t count = (uint32_t)segment->head.row_count;
	uint64_t at = 0;

	if (!vec_reserve(o->m->mem, s->text, s->cap, (size_t)segment->head.first_row + count))
		return error_no_memory(o->err);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t next = at + lengths[i] + 1;

		if (next > size || text[next - 1] != '\0')
			return error_at(o->err, OW_E_CORRUPT, segment->offset,
					"%s: the opwatch file is invalid: its table of strings is "
					"inconsistent",
					o->backing->file.name);
		s->text[segment->head.first_row + i] = str_make(text + at, lengths[i]);
		at = next;
	}
	if (!segment->head.first_row && count)
		s->text[0] = STR("");
	s->count = MAX((uint32_t)segment->head.first_row + count, 1u);
	return OW_OK;
}

static ow_status read_strings(struct opening *o, const struct opw_segment *segment)
{
	const struct opw_block *length =
		opw_find_block(segment, opw_block_info[OPW_BLOCK_LENGTH].name);
	const struct opw_block *text = opw_find_block(segment, opw_block_info[OPW_BLOCK_TEXT].name);
	uint64_t rows = segment->head.row_count, first = segment->head.first_row;
	uint32_t *lengths;
	ow_status status;
	char *texts;

	if (first != (first ? o->m->strings.count : 0))
		return out_of_order(o, segment);
	if (!length || !text || length->size != rows * 4 || rows > UINT32_MAX - first ||
	    text->size < rows)
		return error_at(
			o->err, OW_E_CORRUPT, segment->offset,
			"%s: the opwatch file is invalid: its table of strings is inconsistent",
			o->backing->file.name);
	texts = arena_push_aligned(&o->m->strings.arena, (size_t)text->size, 16);
	lengths = texts ? mem_alloc(o->m->mem, (size_t)length->size) : NULL;
	if (!lengths)
		return error_no_memory(o->err);
	status = read_block(o, segment, text, texts);
	if (status == OW_OK)
		status = read_block(o, segment, length, lengths);
	if (status == OW_OK)
		status = add_texts(o, segment, texts, text->size, lengths);
	mem_free(o->m->mem, lengths, (size_t)length->size);
	return status;
}

struct table_head {
	uint32_t count, cap;
};

static struct table_head *head_of(struct model *m, int table)
{
	return (struct table_head *)(void *)((char *)m + model_tables[table].offset);
}

static void **column_of(struct model *m, int table, const struct column_info *column)
{
	return (void **)(void *)((char *)m + model_tables[table].offset + column->offset);
}

/* Replaces the columns of a table (which has its nil row only) by those of the file. */
static void set_columns(struct opening *o, int table, void *const *columns, uint32_t rows)
{
	const struct table_info *info = &model_tables[table];
	struct table_head *head = head_of(o->m, table);

	for (uint32_t c = 0; c < info->column_count; c++) {
		void **column = column_of(o->m, table, &info->columns[c]);

		mem_free(o->m->mem, *column, (size_t)head->cap * info->columns[c].size);
		*column = columns[c];
	}
	head->count = head->cap = rows;
}

static void free_columns(struct opening *o, int table, void *const *columns, uint32_t rows)
{
	const struct table_info *info = &model_tables[table];

	for (uint32_t c = 0; c < info->column_count; c++)
		if (columns[c] && !backing_has(o->m, columns[c]))
			mem_free(o->m->mem, columns[c], (size_t)rows * info->columns[c].size);
}

/* Checks a segment: its blocks must have one value per row, and at least one block one byte per row, so that a small
 * file cannot ask for much memory. */
static ow_status check_segment(const struct opening *o, const struct opw_segment *segment)
{
	uint64_t rows = segment->head.row_count;

	if (rows > segment->head.size || rows + segment->head.first_row > UINT32_MAX)
		goto unsound;
	for (uint32_t i = 0; i < segment->head.block_count; i++) {
		const struct opw_block *block = &segment->blocks[i];

		if (!block->value_size || block->size / block->value_size != rows ||
		    block->size % block->value_size)
			goto unsound;
	}
	return OW_OK;
unsound:
	return error_at(
		o->err, OW_E_CORRUPT, segment->offset,
		"%s: the opwatch file is invalid: the columns of table %s have different lengths",
		o->backing->file.name, segment->head.table);
}

static ow_status map_table(struct opening *o, int table, const struct opw_segment *segment)
{
	const struct table_info *info = &model_tables[table];
	uint32_t rows = (uint32_t)segment->head.row_count;
	void *columns[COLUMNS_MAX] = { NULL };

	for (uint32_t c = 0; c < info->column_count; c++) {
		const struct column_info *column = &info->columns[c];
		const struct opw_block *block =
			block_of_column(segment, (enum table_id)table, column);

		if (block)
			columns[c] =
				(void *)(uintptr_t)(o->st->base + segment->offset + block->offset);
		else if (column->need == NEED_ALWAYS &&
			 !(columns[c] = mem_zalloc(o->m->mem, (size_t)rows * column->size))) {
			free_columns(o, table, columns, rows);
			return error_no_memory(o->err);
		}
	}
	set_columns(o, table, columns, rows);
	o->st->in_place[table] = segment;
	return OW_OK;
}

/* Joins one column of all segments of a table. */
static ow_status join_column(struct opening *o, int table, const struct column_info *column,
			     uint32_t rows, void **values)
{
	const struct opw_file *file = &o->st->file;

	for (size_t i = 0; i < file->count; i++) {
		const struct opw_segment *segment = &file->segments[i];
		const struct opw_block *block;

		if (segment->head.kind != OPW_ROWS ||
		    strcmp(segment->head.table, model_tables[table].name) != 0)
			continue;
		block = block_of_column(segment, (enum table_id)table, column);
		if (!block)
			continue;
		if (!*values)
			*values = mem_zalloc(o->m->mem, (size_t)rows * column->size);
		if (!*values)
			return error_no_memory(o->err);
		OW_TRY(read_block(o, segment, block,
				  (char *)*values + segment->head.first_row * column->size));
	}
	if (!*values && column->need == NEED_ALWAYS &&
	    !(*values = mem_zalloc(o->m->mem, (size_t)rows * column->size)))
		return error_no_memory(o->err);
	return OW_OK;
}

static ow_status join_table(struct opening *o, int table, uint32_t rows)
{
	const struct table_info *info = &model_tables[table];
	void *columns[COLUMNS_MAX] = { NULL };

	for (uint32_t c = 0; c < info->column_count; c++) {
		ow_status status = join_column(o, table, &info->columns[c], rows, &columns[c]);

		if (status != OW_OK) {
			free_columns(o, table, columns, rows);
			return status;
		}
	}
	set_columns(o, table, columns, rows);
	return OW_OK;
}

/* Reads all segments of one table. */
static ow_status read_table(struct opening *o, int table)
{
	const struct opw_file *file = &o->st->file;
	const struct opw_segment *first = NULL;
	uint64_t rows = 0;
	size_t count = 0;

	for (size_t i = 0; i < file->count; i++) {
		const struct opw_segment *segment = &file->segments[i];

		if (segment->head.kind != OPW_ROWS ||
		    strcmp(segment->head.table, model_tables[table].name) != 0)
			continue;
		if (segment->head.first_row != rows)
			return out_of_order(o, segment);
		OW_TRY(check_segment(o, segment));
		find_unknown(o, segment, table);
		rows += segment->head.row_count;
		first = first ? first : segment;
		count++;
	}
	if (!rows)
		return OW_OK;
	OW_ASSERT(model_tables[table].column_count <= COLUMNS_MAX);
	return count == 1 && o->st->base ? map_table(o, table, first)
					 : join_table(o, table, (uint32_t)rows);
}

static ow_status verify_bytes(const struct stored *st, struct ow_error *err)
{
	for (size_t i = 0; i < st->file.count; i++) {
		const struct opw_segment *segment = &st->file.segments[i];

		for (uint32_t k = 0;
		     segment->head.kind == OPW_BYTES && k < segment->head.block_count; k++)
			OW_TRY(opw_check_block(&st->file, segment, &segment->blocks[k], err));
	}
	return OW_OK;
}

/* State while threads verify the columns of one table. */
struct verifying {
	const struct stored *st;
	const struct opw_segment *segment;
	atomic_uint next;
	atomic_uint damaged; /* 1 + index of a damaged block */
};

static void verify_blocks(void *arg, unsigned thread)
{
	struct verifying *v = arg;
	uint32_t i;

	(void)thread;
	while ((i = atomic_fetch_add(&v->next, 1)) < v->segment->head.block_count) {
		const struct opw_block *block = &v->segment->blocks[i];
		const unsigned char *at = v->st->base + v->segment->offset + block->offset;

		if (!opw_same_crc(crc32c(at, (size_t)block->size), block->crc))
			atomic_store(&v->damaged, i + 1);
	}
}

static ow_status verify(void *state, int table, struct ow_error *err)
{
	struct verifying v = { .st = state };
	unsigned threads = 1;

	if (table == TABLE_COUNT)
		return verify_bytes(v.st, err);
	v.segment = v.st->in_place[table];
	if (!v.segment)
		return OW_OK;
	if (v.segment->head.size >= PARALLEL_BYTES)
		threads = MIN(parallel_threads(), v.segment->head.block_count);
	parallel_run(threads, verify_blocks, &v);
	if (!v.damaged)
		return OW_OK;
	return opw_damaged(&v.st->file, v.segment, &v.segment->blocks[v.damaged - 1], err);
}

static void release(void *state)
{
	struct stored *st = state;
	struct mem *mem = st->mem;

	arena_release(&st->arena);
	mem_free(mem, st, sizeof(*st));
}

static uint64_t drop_beyond(const uint64_t *offset, uint32_t *size, uint32_t rows, uint64_t end)
{
	uint64_t dropped = 0;

	for (uint32_t i = 0; size && i < rows; i++) {
		uint64_t at = COLUMN_GET(offset, i);

		if (!size[i] || (at <= end && size[i] <= end - at))
			continue;
		size[i] = 0;
		dropped++;
	}
	return dropped;
}

/* Repairs a truncated file: offsets beyond its end become "none". */
static void repair(struct opening *o)
{
	uint64_t end = o->st->file.end;
	struct model *m = o->m;
	struct guard guard;

	guard_enter(&guard);
	o->remarks->repaired = model_repair(m);
	o->remarks->lost =
		drop_beyond(m->event.args_offset, m->event.args_size, m->event.count, end) +
		drop_beyond(m->event.shared_offset, m->event.shared_size, m->event.count, end) +
		drop_beyond(m->event_args.args_offset, m->event_args.args_size, m->event_args.count,
			    end) +
		drop_beyond(m->op.record_offset, m->op.record_size, m->op.count, end);
	guard_leave(&guard);
	atomic_store(&o->backing->verified, TABLES_ALL); /* repairing has read all tables */
}

/* Maps the file. A part of a shared file does not begin at a page, and cannot be mapped. */
static bool map_file(const struct input *file, struct mapping *map)
{
	int fd = file->parked ? input_reopen(file, NULL) : file->fd;
	bool mapped = fd >= 0 && !file->pool && mapping_open(map, fd, (size_t)file->size);

	if (file->parked && fd >= 0)
		close(fd);
	return mapped;
}

/* Finds where columns can stay: in the mapped file, or in memory that is ours and aligned. */
static void find_base(struct opening *o)
{
	struct backing *b = o->backing;
	struct stored *st = o->st;

	if (b->file.data) {
		if (!b->file.borrowed && (uintptr_t)b->file.data % 8 == 0)
			st->base = b->file.data;
	} else if (b->file.size <= SIZE_MAX / 2 && map_file(&b->file, &b->map)) {
		st->base = b->map.ptr;
	}
	b->begin = st->base;
	b->end = st->base ? st->base + b->file.size : NULL;
}

static ow_status read_parts(struct opening *o)
{
	const struct opw_file *file = &o->st->file;

	for (size_t i = 0; i < file->count; i++) {
		const struct opw_segment *segment = &file->segments[i];

		switch (segment->head.kind) {
		case OPW_META:
			OW_TRY(read_meta(o, segment));
			break;
		case OPW_STRINGS:
			OW_TRY(read_strings(o, segment));
			break;
		case OPW_ROWS:
			if (find_table(segment->head.table) < 0)
				remark_unknown(o, segment->head.table, "");
			break;
		case OPW_BYTES:
			break;
		default:
			remark_unknown(o, "a kind of segment", "");
		}
	}
	for (int table = 0; table < TABLE_COUNT; table++)
		OW_TRY(read_table(o, table));
	return OW_OK;
}

static ow_status open_file(struct opening *o)
{
	struct stored *st = o->st;

	OW_TRY(opw_read(&st->file, &o->backing->file, &st->arena, o->err));
	o->remarks->complete = st->file.complete;
	o->remarks->end = st->file.end;
	memcpy(o->remarks->problem, st->file.problem, sizeof(o->remarks->problem));
	if (!st->file.count)
		return error_at(o->err, OW_E_CORRUPT, st->file.end,
				"%s: the opwatch file has no usable part: %s",
				o->backing->file.name, st->file.problem);
	find_base(o);
	OW_TRY(read_parts(o));
	if (st->file.complete)
		return OW_OK;
	repair(o);
	return mapping_lost(&o->backing->map) ? model_lost(o->m, o->err) : OW_OK;
}

/* A model that contains only the backing; NULL if memory runs out. */
static struct model *new_model(struct opening *o, struct mem *mem)
{
	struct builder nil;

	o->m = model_new(mem, o->err);
	o->backing = o->m ? backing_new(mem, o->err) : NULL;
	o->st = o->backing ? mem_zalloc(mem, sizeof(*o->st)) : NULL;
	if (!o->st) {
		backing_free(o->backing, mem);
		model_free(o->m);
		error_no_memory(o->err);
		return NULL;
	}
	o->st->mem = mem;
	arena_init(&o->st->arena, mem);
	o->backing->state = o->st;
	o->backing->release = release;
	o->backing->verify = verify;
	o->m->backing = o->backing;
	builder_init(&nil, o->m, o->err);
	if (nil.status == OW_OK)
		return o->m;
	model_free(o->m);
	return NULL;
}

/* Opens a file as a model. It takes over the content of *in; *in becomes a second view of it. The model has no
 * lookups, is frozen when the file is, and has no inputs yet. *made is NULL on failure. */
static ow_status opw_open(struct input *in, struct model **made, struct opw_remarks *remarks,
			  struct ow_error *err)
{
	struct opening o = { .remarks = remarks, .err = err };
	struct input view;
	ow_status status;

	*remarks = (struct opw_remarks){ 0 };
	*made = NULL;
	if (!new_model(&o, in->mem))
		return OW_E_NO_MEMORY;
	status = input_borrow(&view, in, err);
	if (status != OW_OK) {
		model_free(o.m);
		return status;
	}
	o.backing->file = *in;
	o.backing->file.progress = NULL;
	status = open_file(&o);
	if (status == OW_OK) {
		*in = view;
		atomic_store(&o.m->no_lookups, true);
		*made = o.m;
		return OW_OK;
	}
	input_close(&view);
	/* the caller keeps the input */
	o.backing->file = (struct input){ .mem = in->mem, .fd = -1 };
	model_free(o.m);
	return status;
}

static int sniff(const struct sniff *s)
{
	return opw_is(s->head) && !opw_starts_with(s->head, OPW_LIVE) ? 100 : 0;
}

/* Whether the model has only the rows that import_prepared makes. */
static bool is_empty(const struct model *m)
{
	for (int t = 0; t < TABLE_COUNT; t++) {
		uint32_t rows =
			*(const uint32_t *)(const void *)((const char *)m + model_tables[t].offset);

		if (rows > (t == TABLE_source ? 2 : 1) && t != TABLE_note)
			return false;
	}
	return true;
}

static ow_status borrow(struct model *m, struct input **to, const struct input *file,
			struct ow_error *err)
{
	*to = mem_zalloc(m->mem, sizeof(**to));
	if (!*to)
		return error_no_memory(err);
	**to = (struct input){ .mem = m->mem, .fd = -1 };
	return input_borrow(*to, file, err);
}

/* Lets every source read its arguments and records from the file. inputs[1] is taken in any case. */
static ow_status make_inputs(struct model *m, struct input *first, const struct input *file,
			     struct ow_error *err)
{
	size_t cap = MAX(m->source.count, 2);

	m->inputs = mem_zalloc(m->mem, cap * sizeof(*m->inputs));
	if (!m->inputs)
		return error_no_memory(err);
	m->input_cap = cap;
	for (size_t i = 2; i < cap; i++)
		OW_TRY(borrow(m, &m->inputs[i], file, err));
	m->inputs[1] = first;
	return OW_OK;
}

/* Copies notes that were made before the file was read: a damaged container, files that were skipped. */
static void copy_notes(struct builder *b, const struct model *from)
{
	for (uint32_t i = 1; i < from->note.count; i++)
		builder_note_many(b, (enum note_kind)from->note.kind[i], from->note.offset[i],
				  from->note.times[i], "%s",
				  model_str(from, from->note.text[i]).ptr);
}

/* Swaps the opened model and the one being built. */
static ow_status adopt(struct import_ctx *ctx, struct model *opened)
{
	struct model *m = ctx->b->m;
	ow_status status = model_require_rows(opened, TABLE_BIT(source), ctx->err);

	if (status == OW_OK)
		status = make_inputs(opened, ctx->in, &opened->backing->file, ctx->err);
	if (status != OW_OK)
		return status;
	model_swap(m, opened);
	for (size_t i = 0; i < opened->input_cap; i++)
		if (opened->inputs[i] == ctx->in)
			opened->inputs[i] = NULL;
	ctx->b->source = (source_id){ 0 };
	copy_notes(ctx->b, opened);
	return OW_OK;
}

static void add_remarks(struct builder *b, const struct opw_remarks *r, const char *name)
{
	if (!r->complete)
		builder_note(b, NOTE_TRUNCATED, r->end,
			     "%s: the opwatch file has no usable footer: %s; everything before it "
			     "is used",
			     name, r->problem);
	if (r->repaired)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, r->repaired,
				  "%s: some rows refer to other rows that are lost", name);
	if (r->lost)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, r->lost,
				  "%s: arguments of events or definitions of ops are lost", name);
	if (r->unknown)
		builder_note_many(
			b, NOTE_INFO, OW_NO_OFFSET, r->unknown,
			"%s: written by another version of opwatch: %s is unknown and was skipped",
			name, r->first_unknown);
}

/* Keeps the input in the model that is being built, when `opened` is freed. */
static void take_back(struct import_ctx *ctx, struct model *opened)
{
	input_close(ctx->in);
	*ctx->in = opened->backing->file;
	opened->backing->file = (struct input){ .mem = opened->mem, .fd = -1 };
}

/* Lets the sources that were added read from the file as well. */
static ow_status give_inputs(struct import_ctx *ctx, source_id first)
{
	struct model *m = ctx->b->m;

	if (!vec_reserve_zero(m->mem, m->inputs, m->input_cap, m->source.count))
		return import_no_memory(ctx);
	for (uint32_t i = first.v; i < m->source.count; i++)
		OW_TRY(borrow(m, &m->inputs[i], ctx->in, ctx->err));
	return OW_OK;
}

/* Whether the file is a journal, which a running program writes record by record. */
static bool is_journal(const struct input *in)
{
	struct opw_head head;

	return in->size >= sizeof(struct opw_header) + sizeof(head) &&
	       input_read_at(in, sizeof(struct opw_header), &head, sizeof(head), NULL) == OW_OK &&
	       memcmp(head.magic, OPW_SEGMENT_MAGIC, sizeof(head.magic)) == 0 &&
	       head.kind == OPW_JOURNAL;
}

static ow_status load_saved(struct import_ctx *ctx)
{
	struct opw_remarks remarks;
	struct model *opened;
	source_id first = { 0 };
	ow_status status;
	bool alone = is_empty(ctx->b->m);

	OW_TRY(opw_open(ctx->in, &opened, &remarks, ctx->err));
	status = alone ? adopt(ctx, opened) : model_append(ctx->b, opened, &first, ctx->err);
	if (!alone || status != OW_OK)
		take_back(ctx, opened);
	model_free(opened);
	if (!alone && status == OW_OK)
		status = give_inputs(ctx, first);
	if (status == OW_OK)
		add_remarks(ctx->b, &remarks, ctx->in->name);
	return status == OW_OK ? builder_status(ctx->b) : status;
}

static ow_status load(struct import_ctx *ctx)
{
	return is_journal(ctx->in) ? journal_load(ctx) : load_saved(ctx);
}

const struct importer import_opw = {
	.name = "opw",
	.summary = "opwatch's own file: a saved profile, opened in place, or a recording",
	.extensions = "*.opw",
	.role = ROLE_GRAPH,
	.sniff = sniff,
	.load = load,
};
