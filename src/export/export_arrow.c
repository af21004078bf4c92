/*
 * export_arrow.c: Arrow's IPC file format: a schema, a dictionary per text column, batches of rows, and a
 * footer that says where they are. A dictionary is written once, before all batches, because many readers
 * know no other way; so texts are looked through before the first file of a group. Texts that have no
 * dictionary in the relation are written as they are. zstd packs the buffers of bodies, not the file.
 */
#include "export/arrow.h"
#include "export/dictionary.h"
#include "export/format.h"

#define BATCH_ROWS 65536
#define BATCH_TEXT ((size_t)64 << 20) /* bytes of a column; offsets have 31 bits */
#define ALIGN 8

static const char magic[8] = "ARROW1\0";

/* Values of a column that wait for their batch. */
struct arrow_column {
	struct buf values, offsets, valid;
	int64_t nulls;
	struct dictionary dictionary;
	bool has_dictionary;
};

struct arrow_blocks {
	struct arrow_block *items;
	size_t count, cap;
};

struct arrow_file {
	struct mem *mem;
	struct arrow_column *columns;
	struct arrow_field *fields;
	uint32_t column_count;
	int64_t rows; /* in the columns */
	struct flat meta;
	struct buf body, packed;
	struct zstd_packer zstd;
	struct arrow_node *nodes;
	struct arrow_buffer *buffers;
	size_t buffer_count;
	struct arrow_blocks dictionaries, batches;
};

/* ---- what a group has ---- */

static ow_status make_columns(struct export_table *table, struct arrow_file *a, struct error *err)
{
	uint32_t n = a->column_count;

	a->columns = mem_zalloc(a->mem, (n + 1) * sizeof(*a->columns));
	a->fields = mem_zalloc(a->mem, (n + 1) * sizeof(*a->fields));
	a->nodes = mem_zalloc(a->mem, (n + 1) * sizeof(*a->nodes));
	a->buffers = mem_zalloc(a->mem, (3 * n + 3) * sizeof(*a->buffers));
	if (!a->columns || !a->fields || !a->nodes || !a->buffers)
		return error_no_memory(err);
	for (uint32_t i = 0; i < n; i++) {
		const struct rows_column *from = &table->rows.columns[i];
		struct arrow_column *c = &a->columns[i];

		buf_init(&c->values, a->mem);
		buf_init(&c->offsets, a->mem);
		buf_init(&c->valid, a->mem);
		dictionary_init(&c->dictionary, a->mem);
		c->has_dictionary = from->c->type == RELATION_TEXT && from->c->dict != DICT_NONE;
		a->fields[i] = (struct arrow_field){ table->names[from->index], from->c,
						     c->has_dictionary ? (int64_t)i : -1 };
	}
	return OW_OK;
}

/* Reads the columns that have dictionaries. */
static ow_status collect_texts(struct export_table *table, struct arrow_file *a, struct error *err)
{
	bool skip[RELATION_COLUMNS_MAX];
	uint32_t of[RELATION_COLUMNS_MAX], count = 0;
	struct rows rows;
	ow_status status;

	memset(skip, true, sizeof(skip));
	for (uint32_t i = 0; i < a->column_count; i++)
		if (a->columns[i].has_dictionary) {
			skip[table->rows.columns[i].index] = false;
			of[count++] = i;
		}
	OW_TRY(rows_open(&rows, table->t, skip, err));
	group_start(&rows, table->group);
	while ((status = rows_next(&rows, err)) == OW_OK && rows.n) {
		for (uint32_t i = 0; i < count && status == OW_OK; i++)
			status = dictionary_add(&a->columns[of[i]].dictionary, &rows,
						&rows.columns[i], err);
		if (status == OW_OK)
			status = export_progress(table, err);
		if (status != OW_OK)
			break;
	}
	rows_close(&rows);
	return status;
}

static ow_status prepare(struct export_table *table, struct error *err)
{
	struct arrow_file *a = mem_zalloc(table->t->mem, sizeof(*a));

	if (!a)
		return error_no_memory(err);
	table->state = a;
	a->mem = table->t->mem;
	a->column_count = table->rows.column_count;
	flat_init(&a->meta, a->mem);
	buf_init(&a->body, a->mem);
	buf_init(&a->packed, a->mem);
	OW_TRY(make_columns(table, a, err));
	return collect_texts(table, a, err);
}

static void release_columns(struct export_table *table, struct arrow_file *a)
{
	for (uint32_t i = 0; i < a->column_count; i++) {
		struct arrow_column *c = &a->columns[i];

		if (!c->values.mem)
			continue;
		buf_release(&c->values);
		buf_release(&c->offsets);
		buf_release(&c->valid);
		dictionary_release(&c->dictionary, table->t, table->rows.columns[i].index);
	}
}

static void release(struct export_table *table)
{
	struct arrow_file *a = table->state;
	uint32_t n;

	if (!a)
		return;
	n = a->column_count;
	if (a->columns)
		release_columns(table, a);
	mem_free(a->mem, a->columns, (n + 1) * sizeof(*a->columns));
	mem_free(a->mem, a->fields, (n + 1) * sizeof(*a->fields));
	mem_free(a->mem, a->nodes, (n + 1) * sizeof(*a->nodes));
	mem_free(a->mem, a->buffers, (3 * n + 3) * sizeof(*a->buffers));
	mem_free(a->mem, a->dictionaries.items,
		 a->dictionaries.cap * sizeof(*a->dictionaries.items));
	mem_free(a->mem, a->batches.items, a->batches.cap * sizeof(*a->batches.items));
	zstd_packer_release(&a->zstd);
	buf_release(&a->body);
	buf_release(&a->packed);
	flat_release(&a->meta);
	mem_free(a->mem, a, sizeof(*a));
	table->state = NULL;
}

/* ---- messages ---- */

static void put_padding(struct buf *to)
{
	buf_add_repeat(to, 0, (ALIGN - to->len % ALIGN) % ALIGN);
}

static void put_message(struct buf *to, struct str meta)
{
	uint32_t head[2] = { UINT32_MAX, (uint32_t)meta.len };

	buf_add(to, head, sizeof(head));
	buf_add_str(to, meta);
}

/* Adds a buffer to the body, as it is or packed behind its length. */
static ow_status add_buffer(struct arrow_file *a, struct str bytes, bool zstd, struct error *err)
{
	struct arrow_buffer *buffer = &a->buffers[a->buffer_count++];
	int64_t len = (int64_t)bytes.len;

	buffer->offset = (int64_t)a->body.len;
	if (zstd && bytes.len) {
		buf_clear(&a->packed);
		OW_TRY(zstd_pack(&a->zstd, bytes, true, &a->packed, err));
		buf_add(&a->body, &len, sizeof(len));
		bytes = buf_str(&a->packed);
	}
	buf_add_str(&a->body, bytes);
	buffer->length = (int64_t)a->body.len - buffer->offset;
	put_padding(&a->body);
	return a->body.failed || a->packed.failed ? error_no_memory(err) : OW_OK;
}

static ow_status put_batch(struct export_table *table, struct arrow_file *a,
			   struct arrow_batch *batch, struct arrow_blocks *blocks,
			   struct error *err)
{
	struct arrow_block block = { .offset = (int64_t)stream_tell(&table->stream) };
	struct buf *to = &table->stream.in;
	struct str meta;

	batch->nodes = a->nodes;
	batch->buffers = a->buffers;
	batch->buffer_count = a->buffer_count;
	batch->body_length = (int64_t)a->body.len;
	batch->zstd = table->packing == PACKING_ZSTD;
	meta = arrow_batch_message(&a->meta, batch);
	if (!meta.ptr || !mem_grow(a->mem, (void **)&blocks->items, &blocks->cap, blocks->count + 1,
				   sizeof(*blocks->items)))
		return error_no_memory(err);
	block.meta_length = (int32_t)(meta.len + 2 * sizeof(uint32_t));
	block.body_length = batch->body_length;
	blocks->items[blocks->count++] = block;
	put_message(to, meta);
	buf_add_str(to, buf_str(&a->body));
	buf_clear(&a->body);
	a->buffer_count = 0;
	return stream_flush(&table->stream, err);
}

/* ---- dictionaries ---- */

static ow_status put_dictionary(struct export_table *table, struct arrow_file *a, uint32_t column,
				struct error *err)
{
	const struct dictionary *d = &a->columns[column].dictionary;
	bool zstd = table->packing == PACKING_ZSTD;
	struct arrow_batch batch = { .length = (int64_t)d->count,
				     .node_count = 1,
				     .dictionary = column };
	struct buf *offsets = &a->columns[column].offsets, *texts = &a->columns[column].values;
	int32_t at = 0;

	buf_clear(offsets);
	buf_clear(texts);
	buf_add(offsets, &at, sizeof(at));
	for (size_t i = 0; i < d->count; i++) {
		put_utf8(texts, d->texts[i]);
		if (texts->len > INT32_MAX)
			return error_set(err, OW_E_LIMIT,
					 "the texts of %s.%s have more than 2 GB; Arrow files "
					 "cannot hold them: use Parquet",
					 table->t->relation->name, a->fields[column].name);
		at = (int32_t)texts->len;
		buf_add(offsets, &at, sizeof(at));
	}
	if (offsets->failed || texts->failed)
		return error_no_memory(err);
	a->nodes[0] = (struct arrow_node){ batch.length, 0 };
	OW_TRY(add_buffer(a, (struct str){ 0 }, zstd, err));
	OW_TRY(add_buffer(a, buf_str(offsets), zstd, err));
	OW_TRY(add_buffer(a, buf_str(texts), zstd, err));
	buf_clear(offsets);
	buf_clear(texts);
	return put_batch(table, a, &batch, &a->dictionaries, err);
}

static ow_status begin(struct export_table *table, struct error *err)
{
	struct arrow_file *a = table->state;
	struct str meta = arrow_schema_message(&a->meta, a->fields, a->column_count);

	if (!meta.ptr)
		return error_no_memory(err);
	a->rows = 0;
	a->dictionaries.count = a->batches.count = 0;
	buf_add(&table->stream.in, magic, sizeof(magic));
	put_message(&table->stream.in, meta);
	for (uint32_t i = 0; i < a->column_count; i++)
		if (a->columns[i].has_dictionary)
			OW_TRY(put_dictionary(table, a, i, err));
	return OW_OK;
}

/* ---- rows ---- */

static void add_bit(struct buf *bits, int64_t at, bool bit)
{
	if (at % 8 == 0)
		buf_add_char(bits, 0);
	if (bit && !bits->failed)
		bits->ptr[at / 8] = (char)(bits->ptr[at / 8] | 1 << at % 8);
}

static void add_texts(const struct rows *rows, const struct rows_column *from,
		      struct arrow_column *c, int64_t row)
{
	int32_t at = 0;

	if (!row)
		buf_add(&c->offsets, &at, sizeof(at));
	for (uint32_t i = 0; i < rows->n; i++) {
		struct str text = rows_text(rows, from, i);

		add_bit(&c->valid, row + i, text.ptr != NULL);
		c->nulls += !text.ptr;
		put_utf8(&c->values, text);
		at = (int32_t)c->values.len;
		buf_add(&c->offsets, &at, sizeof(at));
	}
}

static void add_numbers(const struct rows *rows, const struct rows_column *from,
			struct arrow_column *c, int64_t row)
{
	for (uint32_t i = 0; i < rows->n; i++) {
		uint32_t number = dictionary_number(&c->dictionary, rows, from, i);
		bool known = number != UINT32_MAX;
		int32_t index = known ? (int32_t)number : 0;

		add_bit(&c->valid, row + i, known);
		c->nulls += !known;
		buf_add(&c->values, &index, sizeof(index));
	}
}

static void add_values(const struct rows *rows, const struct rows_column *from,
		       struct arrow_column *c, int64_t row)
{
	for (uint32_t i = 0; i < rows->n; i++) {
		bool known = rows_known(from, i);

		add_bit(&c->valid, row + i, known);
		c->nulls += !known;
		if (from->c->type == RELATION_BOOL)
			add_bit(&c->values, row + i, known && ((const bool *)from->values)[i]);
	}
	if (from->c->type != RELATION_BOOL)
		buf_add(&c->values, from->values, rows->n * relation_value_size(from->c));
}

static ow_status flush_batch(struct export_table *table, struct arrow_file *a, struct error *err)
{
	struct arrow_batch batch = { .length = a->rows,
				     .node_count = a->column_count,
				     .dictionary = -1 };
	bool zstd = table->packing == PACKING_ZSTD;

	if (!a->rows)
		return OW_OK;
	for (uint32_t i = 0; i < a->column_count; i++) {
		struct arrow_column *c = &a->columns[i];
		bool plain_text =
			table->rows.columns[i].c->type == RELATION_TEXT && !c->has_dictionary;

		if (c->values.failed || c->offsets.failed || c->valid.failed)
			return error_no_memory(err);
		a->nodes[i] = (struct arrow_node){ a->rows, c->nulls };
		OW_TRY(add_buffer(a, c->nulls ? buf_str(&c->valid) : (struct str){ 0 }, zstd, err));
		if (plain_text)
			OW_TRY(add_buffer(a, buf_str(&c->offsets), zstd, err));
		OW_TRY(add_buffer(a, buf_str(&c->values), zstd, err));
		buf_clear(&c->values);
		buf_clear(&c->offsets);
		buf_clear(&c->valid);
		c->nulls = 0;
	}
	a->rows = 0;
	return put_batch(table, a, &batch, &a->batches, err);
}

static ow_status block(struct export_table *table, struct error *err)
{
	struct arrow_file *a = table->state;
	bool full = false;

	for (uint32_t i = 0; i < a->column_count; i++) {
		const struct rows_column *from = &table->rows.columns[i];
		struct arrow_column *c = &a->columns[i];

		if (c->has_dictionary)
			add_numbers(&table->rows, from, c, a->rows);
		else if (from->c->type == RELATION_TEXT)
			add_texts(&table->rows, from, c, a->rows);
		else
			add_values(&table->rows, from, c, a->rows);
		if (c->values.len > INT32_MAX)
			return error_set(err, OW_E_LIMIT,
					 "%s.%s: more than 2 GB of text in a few rows; Arrow files "
					 "cannot hold that: use Parquet",
					 table->t->relation->name, a->fields[i].name);
		full |= c->values.len >= BATCH_TEXT;
	}
	a->rows += table->rows.n;
	return a->rows >= BATCH_ROWS || full ? flush_batch(table, a, err) : OW_OK;
}

static ow_status end(struct export_table *table, struct error *err)
{
	static const uint32_t end_of_stream[2] = { UINT32_MAX, 0 };
	struct arrow_file *a = table->state;
	struct buf *to = &table->stream.in;
	struct str footer;
	uint32_t len;

	OW_TRY(flush_batch(table, a, err));
	buf_add(to, end_of_stream, sizeof(end_of_stream));
	footer = arrow_footer(&a->meta, a->fields, a->column_count, a->dictionaries.items,
			      a->dictionaries.count, a->batches.items, a->batches.count);
	if (!footer.ptr)
		return error_no_memory(err);
	len = (uint32_t)footer.len;
	buf_add_str(to, footer);
	buf_add(to, &len, sizeof(len));
	buf_add(to, magic, 6);
	return OW_OK;
}

const struct export_format export_arrow = {
	.name = "arrow",
	.extension = ".arrow",
	.doc = "Arrow's IPC file format (Feather 2)",
	.packings = 1u << PACKING_NONE | 1u << PACKING_ZSTD,
	.usual = PACKING_NONE,
	.packs_itself = true,
	.prepare = prepare,
	.begin = begin,
	.block = block,
	.end = end,
	.release = release,
};
