/*
 * stream.c: provides any table as a view that DuckDB reads through an Arrow stream, for COPY. Rows from a table
 * function have no known position, so DuckDB writes them on one core to keep their order; batches of a stream are
 * numbered, and DuckDB encodes and compresses several concurrently. Queries use the table functions (scan.c), which
 * need no copies. The stream is read once, by one thread at a time; any thread may release its batches.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "opwatch/sql.h"
#include "sql/sql_int.h"

#include <errno.h>

#define BATCH_ROWS 30720 /* fifteen vectors; four batches make a row group of a Parquet file */

struct block {
	struct mem *mem;
	size_t size;
};

static void *block_new(struct mem *mem, size_t size)
{
	struct block *b = mem_alloc(mem, sizeof(*b) + size);

	if (!b)
		return NULL;
	*b = (struct block){ mem, sizeof(*b) + size };
	return b + 1;
}

static void block_free(void *data)
{
	struct block *b = data ? (struct block *)data - 1 : NULL;

	if (b)
		mem_free(b->mem, b, b->size);
}

struct stream_dict {
	struct stream_dict *next;
	const struct str *texts;
	const void *buffers[3];
	struct ArrowArray array; /* Arrow array; the stream releases it */
};

struct sql_stream {
	struct sql_stream *next; /* next stream of the session */
	struct sql *sql;
	struct table *t;
	struct ArrowArrayStream arrow;
	struct arena arena, scratch;
	struct column_schema *columns;
	struct ArrowSchema **children; /* children of the schema */
	struct stream_dict *dicts;
	uint32_t part;
	uint64_t row;
	struct ow_error err;
};

/* Only marks the schema as released: DuckDB never releases the schema that it requests for a view, so the stream owns all of it. */
static void release_schema(struct ArrowSchema *schema)
{
	schema->release = NULL;
}

static const char *format_of(enum column_type type)
{
	static const char *const formats[] = {
		[TYPE_BOOL] = "b", [TYPE_INT32] = "i",	[TYPE_INT] = "l", [TYPE_UINT64] = "L",
		[TYPE_REAL] = "g", [TYPE_NUMBER] = "g", [TYPE_TEXT] = "U"
	};

	return formats[type];
}

struct column_schema {
	struct ArrowSchema schema, dictionary;
};

static void describe_column(const struct table_column *c, struct column_schema *to)
{
	*to = (struct column_schema){ .schema = { .format = format_of(c->type),
						  .name = c->name,
						  .flags = ARROW_FLAG_NULLABLE,
						  .release = release_schema } };
	if (c->type != TYPE_TEXT || c->dict == DICT_NONE)
		return;
	to->dictionary = to->schema;
	to->schema.format = "i";
	to->schema.dictionary = &to->dictionary;
}

static int get_schema(struct ArrowArrayStream *arrow, struct ArrowSchema *out)
{
	struct sql_stream *s = arrow->private_data;
	const struct table *t = s->t;

	for (uint32_t i = 0; i < t->column_count; i++) {
		describe_column(&t->columns[i], &s->columns[i]);
		s->children[i] = &s->columns[i].schema;
	}
	*out = (struct ArrowSchema){ .format = "+s",
				     .name = "",
				     .n_children = t->column_count,
				     .children = s->children,
				     .release = release_schema };
	return 0;
}

static void keep_array(struct ArrowArray *array)
{
	array->release = NULL;
}

static bool put_texts(const struct str *texts, uint32_t count, int64_t *offsets, char *bytes)
{
	bool known = true;
	int64_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		offsets[i] = at;
		known &= texts[i].ptr != NULL;
		if (texts[i].ptr)
			memcpy(bytes + at, texts[i].ptr, texts[i].len);
		at += (int64_t)texts[i].len;
	}
	offsets[count] = at;
	return known;
}

static size_t total_bytes(const struct str *texts, uint32_t count)
{
	size_t total = 0;

	for (uint32_t i = 0; i < count; i++)
		total += texts[i].len;
	return total;
}

static struct stream_dict *dict_new(struct sql_stream *s, const struct table_dict *from)
{
	struct stream_dict *dict = ARENA_NEW(&s->arena, struct stream_dict);
	int64_t *offsets = ARENA_ARRAY(&s->arena, int64_t, (size_t)from->count + 1);
	size_t words = from->count / 64 + 1;
	uint64_t *valid = ARENA_ARRAY(&s->arena, uint64_t, words);
	char *bytes = ARENA_ARRAY(&s->arena, char, total_bytes(from->texts, from->count) + 1);

	if (!dict || !offsets || !valid || !bytes)
		return NULL;
	put_texts(from->texts, from->count, offsets, bytes);
	memset(valid, 0xff, words * sizeof(*valid));
	valid[0] &= ~(uint64_t)1;
	*dict = (struct stream_dict){ .next = s->dicts,
				      .texts = from->texts,
				      .buffers = { valid, offsets, bytes } };
	dict->array = (struct ArrowArray){ .length = from->count,
					   .null_count = 1,
					   .n_buffers = 3,
					   .buffers = dict->buffers,
					   .release = keep_array };
	s->dicts = dict;
	return dict;
}

static struct ArrowArray *dictionary_of(struct sql_stream *s, const struct table_dict *from)
{
	struct stream_dict *dict = s->dicts;

	while (dict && dict->texts != from->texts)
		dict = dict->next;
	if (!dict)
		dict = dict_new(s, from);
	return dict ? &dict->array : NULL;
}

struct column_array {
	struct ArrowArray array;
	const void *buffers[3];
	void *owned[3];
};

static void release_batch(struct ArrowArray *batch)
{
	struct column_array *columns = batch->private_data;

	for (int64_t i = 0; i < batch->n_children; i++)
		for (int k = 0; k < 3; k++)
			block_free(columns[i].owned[k]);
	block_free(columns);
	batch->release = NULL;
}

static void *buffer_new(struct sql_stream *s, struct column_array *to, int place, size_t size)
{
	to->buffers[place] = to->owned[place] = block_new(s->sql->mem, size + 8);
	return to->owned[place];
}

/* Packs truth values to bits, as Arrow requires. */
static void pack_bools(uint8_t *bits, const bool *values, uint32_t n)
{
	memset(bits, 0, (n + 7) / 8);
	for (uint32_t i = 0; i < n; i++)
		bits[i / 8] |= (uint8_t)(values[i] << (i % 8));
}

/* Writes the validity bits of texts, if some are NULL. */
static bool put_known(struct sql_stream *s, struct column_array *to, const struct str *texts,
		      uint32_t n)
{
	uint8_t *valid = buffer_new(s, to, 0, (n + 7) / 8);

	if (!valid)
		return false;
	memset(valid, 0, (n + 7) / 8);
	for (uint32_t i = 0; i < n; i++)
		valid[i / 8] |= (uint8_t)((texts[i].ptr != NULL) << (i % 8));
	to->array.null_count = -1;
	return true;
}

static bool put_strs(struct sql_stream *s, struct column_array *to, const struct str *texts,
		     uint32_t n)
{
	int64_t *offsets = buffer_new(s, to, 1, ((size_t)n + 1) * sizeof(*offsets));
	char *bytes = buffer_new(s, to, 2, total_bytes(texts, n));

	to->array.n_buffers = 3;
	if (!offsets || !bytes)
		return false;
	return put_texts(texts, n, offsets, bytes) || put_known(s, to, texts, n);
}

/* Converts exact digits to the nearest double. */
static bool put_digits(struct sql_stream *s, struct column_array *to, const struct str *texts,
		       uint32_t n)
{
	double *values = buffer_new(s, to, 1, n * sizeof(*values));

	if (!values)
		return false;
	for (uint32_t i = 0; i < n; i++)
		values[i] = texts[i].ptr ? strtod(texts[i].ptr, NULL) : 0;
	return put_known(s, to, texts, n);
}

static ow_status fill_column(struct sql_stream *s, uint32_t column, uint32_t n,
			     struct table_memo *memo, struct column_array *to)
{
	const struct table *t = s->t;
	const struct table_column *c = &t->columns[column];
	const struct table_dict *dict = table_dict(t, s->part, column);
	bool apart =
		c->type == TYPE_BOOL || c->type == TYPE_NUMBER || (c->type == TYPE_TEXT && !dict);
	size_t size = n * column_value_size(c);
	struct table_vec vec = { .scratch = &s->scratch, .memo = memo };

	vec.valid = buffer_new(s, to, 0, (n + 63) / 64 * sizeof(uint64_t));
	vec.values = apart ? arena_push(&s->scratch, size) : buffer_new(s, to, 1, size);
	if (!vec.valid || !vec.values)
		return error_no_memory(&s->err);
	OW_TRY(table_read(t, s->part, column, s->row, n, &vec, &s->err));
	if (!vec.has_nulls) {
		block_free(to->owned[0]);
		to->buffers[0] = to->owned[0] = NULL;
	}
	to->array.null_count = vec.has_nulls ? -1 : 0;
	if (dict) {
		to->array.dictionary = dictionary_of(s, dict);
		return to->array.dictionary ? OW_OK : error_no_memory(&s->err);
	}
	if (c->type == TYPE_TEXT)
		return put_strs(s, to, vec.values, n) ? OW_OK : error_no_memory(&s->err);
	if (c->type == TYPE_NUMBER)
		return put_digits(s, to, vec.values, n) ? OW_OK : error_no_memory(&s->err);
	if (c->type == TYPE_BOOL) {
		if (!buffer_new(s, to, 1, (n + 7) / 8))
			return error_no_memory(&s->err);
		pack_bools(to->owned[1], vec.values, n);
	}
	return OW_OK;
}

static ow_status fill_batch(struct sql_stream *s, uint32_t n, struct ArrowArray *out)
{
	uint32_t count = s->t->column_count;
	struct column_array *columns = block_new(
		s->sql->mem, count * (sizeof(*columns) + sizeof(void *)) + sizeof(void *));
	struct table_memo memo = { 0 };
	struct ArrowArray **children;
	const void **buffers;

	if (!columns)
		return error_no_memory(&s->err);
	children = (struct ArrowArray **)(columns + count);
	buffers = (const void **)(children + count);
	buffers[0] = NULL;
	*out = (struct ArrowArray){ .length = n,
				    .n_buffers = 1,
				    .buffers = buffers,
				    .children = children,
				    .release = release_batch,
				    .private_data = columns };
	for (uint32_t i = 0; i < count; i++) {
		columns[i] = (struct column_array){ .array = { .length = n,
							       .n_buffers = 2,
							       .buffers = columns[i].buffers,
							       .release = keep_array } };
		children[i] = &columns[i].array;
		out->n_children = i + 1;
		OW_TRY(fill_column(s, i, n, &memo, &columns[i]));
	}
	return OW_OK;
}

static int get_next(struct ArrowArrayStream *arrow, struct ArrowArray *out)
{
	struct sql_stream *s = arrow->private_data;
	const struct table *t = s->t;
	ow_status status;
	uint32_t n;

	*out = (struct ArrowArray){ 0 };
	while (s->part < t->part_count && s->row == t->parts[s->part].rows) {
		s->part++;
		s->row = 0;
	}
	if (s->part == t->part_count)
		return 0; /* a released array marks the end */
	if (sql_is_cancelled(s->sql))
		return error_set(&s->err, OW_E_INTERRUPTED, "cancelled"), ECANCELED;
	n = (uint32_t)MIN(t->parts[s->part].rows - s->row, BATCH_ROWS);
	status = fill_batch(s, n, out);
	if (s->scratch.blocks)
		arena_clear(&s->scratch);
	s->row += n;
	if (status == OW_OK)
		return 0;
	if (out->release)
		out->release(out);
	return EIO;
}

static const char *last_error(struct ArrowArrayStream *arrow)
{
	return ((struct sql_stream *)arrow->private_data)->err.text;
}

/* Only marks the stream as released: the session frees the stream, because DuckDB's view may outlive the reading. */
static void release_stream(struct ArrowArrayStream *arrow)
{
	arrow->release = NULL;
}

ow_status sql_stream_view(struct sql *sql, struct table *t, const char *view, struct ow_error *err)
{
	struct sql_stream *s = ARENA_NEW(&sql->arena, struct sql_stream);

	if (!s)
		return error_no_memory(err);
	*s = (struct sql_stream){ .sql = sql,
				  .arrow = { .get_schema = get_schema,
					     .get_next = get_next,
					     .get_last_error = last_error,
					     .release = release_stream,
					     .private_data = s } };
	arena_init(&s->arena, sql->mem);
	arena_init(&s->scratch, sql->mem);
	s->next = sql->streams;
	sql->streams = s;
	s->t = t;
	OW_TRY(table_prepare(t, err));
	s->columns = ARENA_ARRAY(&s->arena, struct column_schema, s->t->column_count);
	s->children = ARENA_ARRAY(&s->arena, struct ArrowSchema *, s->t->column_count);
	if (!s->columns || !s->children)
		return error_no_memory(err);
	if (sql->lib->arrow_scan(sql->connection, view, (duckdb_arrow_stream)&s->arrow) !=
	    DuckDBSuccess)
		return error_set(err, OW_E_INTERNAL, "DuckDB does not accept the table %s",
				 t->name);
	return OW_OK;
}

ow_status sql_streams_error(struct sql *sql, struct ow_error *err)
{
	for (struct sql_stream *s = sql->streams; s; s = s->next) {
		ow_status status = s->err.status;

		if (status == OW_OK)
			continue;
		if (err)
			*err = s->err;
		error_clear(&s->err);
		return status;
	}
	return OW_OK;
}

void sql_streams_free(struct sql *sql)
{
	for (struct sql_stream *s = sql->streams; s; s = s->next) {
		arena_release(&s->arena);
		arena_release(&s->scratch);
	}
}

#endif
