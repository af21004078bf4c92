/*
 * arrow_c.c: exports a held table through Arrow's C data interface, for Python's data frames, DuckDB and other
 * consumers in this process; see arrow_c.h. Numbers are exported in place; texts, truth values and validity bits have
 * another form in Arrow and are copied. Arrow's files and streams are in arrow_ipc.c. A consumer may move the children
 * of a struct apart and release them in any order and from any thread. So every part owns its memory, and all of them
 * hold one `struct export`.
 */
#include "table/arrow_c.h"

#include "base/str.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Data that exported arrays share; the last one released calls the owner. */
struct export
{
	atomic_size_t refs;
	const struct table *t;
	struct mem *mem;
	void (*release)(void *owner);
	void *owner;
};

/* A block of an export: zeroed, `size` bytes after its header; holds the export. */
struct export_block {
	struct export *e;
	size_t size;
};

static void export_drop(struct export *e)
{
	void (*release)(void *owner) = e->release;
	void *owner = e->owner;

	if (atomic_fetch_sub(&e->refs, 1) != 1)
		return;
	mem_free(e->mem, e, sizeof(*e));
	if (release)
		/* the release may free the profile, and with it the account of its memory */
		release(owner);
}

/* Drops an export without calling the owner, because the call failed. */
static void export_abandon(struct export *e)
{
	e->release = NULL;
	export_drop(e);
}

static void *export_block_new(struct export *e, size_t size)
{
	struct export_block *block = mem_zalloc(e->mem, sizeof(*block) + size);

	if (!block)
		return NULL;
	atomic_fetch_add(&e->refs, 1);
	*block = (struct export_block){ e, sizeof(*block) + size };
	return block + 1;
}

static void export_block_free(void *ptr)
{
	struct export_block *block = (struct export_block *)ptr - 1;
	struct export *e = block->e;

	mem_free(e->mem, block, block->size);
	export_drop(e);
}

static uint64_t total_bytes(const struct str *texts, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += texts[i].len;
	return bytes;
}

/* Returns whether the texts of a column exceed 2 GB and need 64-bit offsets. */
static bool export_is_large(const struct table_column *column, uint32_t rows)
{
	return total_bytes(column->texts, rows) > INT32_MAX;
}

/* A schema owns a block: the structs of its children, or its texts. */
static void release_schema(struct ArrowSchema *schema)
{
	for (int64_t i = 0; i < schema->n_children; i++)
		if (schema->children[i]->release)
			schema->children[i]->release(schema->children[i]);
	schema->release = NULL;
	export_block_free(schema->private_data);
}

static const char *format_of(const struct export *e, const struct table_column *column)
{
	switch (column->type) {
	case TYPE_REAL:
	case TYPE_NUMBER:
		return "g";
	case TYPE_BOOL:
		return "b";
	case TYPE_TEXT:
		return export_is_large(column, e->t->row_count) ? "U" : "u";
	default:
		return "l";
	}
}

static const char *unit_of(const struct table_column *column)
{
	const char *unit = column_unit_name(column->unit);

	return unit ? unit : "";
}

static char *put_text(char *to, const char *text)
{
	int32_t len = (int32_t)strlen(text);

	memcpy(to, &len, sizeof(len));
	memcpy(to + sizeof(len), text, (size_t)len);
	return to + sizeof(len) + len;
}

/* Writes metadata in the specification's form: a count, then keys and values with their lengths,
 * in native byte order. */
static void put_metadata(char *to, const struct table_column *column)
{
	int32_t pairs = 2;

	memcpy(to, &pairs, sizeof(pairs));
	to = put_text(to + sizeof(pairs), "opwatch.title");
	to = put_text(to, column->title);
	to = put_text(to, "opwatch.unit");
	put_text(to, unit_of(column));
}

#define METADATA_FRAME 64 /* room for the keys and lengths */

static bool make_column(struct export *e, const struct table_column *column,
			struct ArrowSchema *schema)
{
	size_t name = strlen(column->name) + 1;
	size_t size = name + METADATA_FRAME + strlen(column->title) + strlen(unit_of(column));
	char *texts = export_block_new(e, size);

	if (!texts)
		return false;
	memcpy(texts, column->name, name);
	put_metadata(texts + name, column);
	*schema = (struct ArrowSchema){ .format = format_of(e, column),
					.name = texts,
					.metadata = texts + name,
					.flags = column->known ? ARROW_FLAG_NULLABLE : 0,
					.release = release_schema,
					.private_data = texts };
	return true;
}

static bool arrow_schema_make(struct export *e, struct ArrowSchema *schema)
{
	const struct table *r = e->t;
	size_t each = sizeof(struct ArrowSchema *) + sizeof(struct ArrowSchema);
	struct ArrowSchema **children = export_block_new(e, r->column_count * each);
	struct ArrowSchema *structs;

	if (!children)
		return false;
	structs = (struct ArrowSchema *)(children + r->column_count);
	*schema = (struct ArrowSchema){ .format = "+s",
					.name = "",
					.children = children,
					.release = release_schema,
					.private_data = children };
	for (uint32_t i = 0; i < r->column_count; i++) {
		if (!make_column(e, &r->columns[i], &structs[i])) {
			release_schema(schema);
			return false;
		}
		children[i] = &structs[i];
		schema->n_children = i + 1;
	}
	return true;
}

/* Memory that an array owns. */
struct array_block {
	const void *buffers[3];
	void *owned[3]; /* buffers that are copies and must be freed */
	size_t owned_size[3];
	struct ArrowArray **children;
};

static struct mem *mem_of(struct array_block *block)
{
	return ((struct export_block *)(void *)block - 1)->e->mem;
}

static void release_array(struct ArrowArray *array)
{
	struct array_block *block = array->private_data;

	for (int64_t i = 0; i < array->n_children; i++)
		if (array->children[i]->release)
			array->children[i]->release(array->children[i]);
	for (int i = 0; i < 3; i++)
		mem_free(mem_of(block), block->owned[i], block->owned_size[i]);
	array->release = NULL;
	export_block_free(block);
}

static struct array_block *array_new(struct export *e, struct ArrowArray *array, int64_t length,
				     int64_t buffers, size_t more)
{
	struct array_block *block = export_block_new(e, sizeof(*block) + more);

	if (!block)
		return NULL;
	*array = (struct ArrowArray){ .length = length,
				      .n_buffers = buffers,
				      .buffers = block->buffers,
				      .release = release_array,
				      .private_data = block };
	return block;
}

/* Allocates a buffer that the array owns; never empty, because some consumers check the address. */
static void *buffer_new(struct array_block *block, int place, size_t size)
{
	void *buffer = mem_alloc(mem_of(block), size + 8);

	block->owned[place] = buffer;
	block->owned_size[place] = buffer ? size + 8 : 0;
	block->buffers[place] = buffer;
	return buffer;
}

static bool make_known(struct array_block *block, struct ArrowArray *array, const uint8_t *known)
{
	size_t rows = (size_t)array->length, unknown = 0;
	uint8_t *bits;

	for (size_t i = 0; known && i < rows; i++)
		unknown += !known[i];
	if (!unknown)
		return true;
	bits = buffer_new(block, 0, (rows + 7) / 8);
	if (!bits)
		return false;
	memset(bits, 0, (rows + 7) / 8);
	for (size_t i = 0; i < rows; i++)
		bits[i / 8] |= (uint8_t)((known[i] != 0) << (i % 8));
	array->null_count = (int64_t)unknown;
	return true;
}

static bool make_bools(struct array_block *block, const int64_t *values, size_t rows)
{
	uint8_t *bits = buffer_new(block, 1, (rows + 7) / 8);

	if (!bits)
		return false;
	memset(bits, 0, (rows + 7) / 8);
	for (size_t i = 0; i < rows; i++)
		bits[i / 8] |= (uint8_t)((values[i] != 0) << (i % 8));
	return true;
}

/* Converts digits to numbers; those that do not fit into an integer become the nearest float64. */
static bool make_numbers(struct array_block *block, const struct table_column *column, size_t rows)
{
	double *values = buffer_new(block, 1, rows * sizeof(*values));

	if (!values)
		return false;
	for (size_t i = 0; i < rows; i++)
		values[i] =
			column->known && !column->known[i] ? 0 : strtod(column->texts[i].ptr, NULL);
	return true;
}

/* Copies a text; consumers expect UTF-8, so an invalid byte becomes a question mark. */
static void copy_text(char *to, struct str text)
{
	size_t good = utf8_plain_prefix(text);

	memcpy(to, text.ptr, text.len);
	while (good < text.len) {
		good += utf8_valid_prefix(str_skip(text, good));
		if (good < text.len)
			to[good++] = '?';
	}
}

static bool make_texts(struct array_block *block, const struct str *texts, uint32_t count,
		       bool large)
{
	size_t width = large ? sizeof(int64_t) : sizeof(int32_t);
	void *offsets = buffer_new(block, 1, ((size_t)count + 1) * width);
	char *bytes = buffer_new(block, 2, total_bytes(texts, count));
	uint64_t at = 0;

	if (!offsets || !bytes)
		return false;
	for (uint32_t i = 0; i <= count; i++) {
		if (large)
			((int64_t *)offsets)[i] = (int64_t)at;
		else
			((int32_t *)offsets)[i] = (int32_t)at;
		if (i < count && texts[i].len) {
			copy_text(bytes + at, texts[i]);
			at += texts[i].len;
		}
	}
	return true;
}

static bool fill_column(struct array_block *block, struct ArrowArray *array,
			const struct table_column *column)
{
	uint32_t rows = (uint32_t)array->length;

	if (!make_known(block, array, column->known))
		return false;
	switch (column->type) {
	case TYPE_TEXT:
		array->n_buffers = 3;
		return make_texts(block, column->texts, rows, export_is_large(column, rows));
	case TYPE_NUMBER:
		return make_numbers(block, column, rows);
	case TYPE_BOOL:
		return make_bools(block, column->ints, rows);
	default: /* values are used in place */
		block->buffers[1] = column->ints;
		return column->ints || buffer_new(block, 1, 0);
	}
}

static bool make_array(struct export *e, const struct table_column *column,
		       struct ArrowArray *array)
{
	struct array_block *block = array_new(e, array, e->t->row_count, 2, 0);

	if (!block)
		return false;
	if (fill_column(block, array, column))
		return true;
	release_array(array);
	return false;
}

static bool arrow_array_make(struct export *e, struct ArrowArray *array)
{
	const struct table *r = e->t;
	struct array_block *block = array_new(
		e, array, r->row_count, 1,
		r->column_count * (sizeof(struct ArrowArray *) + sizeof(struct ArrowArray)));
	struct ArrowArray *structs;

	if (!block)
		return false;
	block->children = (struct ArrowArray **)(block + 1);
	structs = (struct ArrowArray *)(block->children + r->column_count);
	array->children = block->children;
	for (uint32_t i = 0; i < r->column_count; i++) {
		if (!make_array(e, &r->columns[i], &structs[i])) {
			release_array(array);
			return false;
		}
		block->children[i] = &structs[i];
		array->n_children = i + 1;
	}
	return true;
}

static ow_status export_new(const struct table *t, const struct ow_arrow_options *options,
			    struct export **out, struct ow_error *err)
{
	struct export *e = mem_zalloc(t->mem, sizeof(*e));

	if (!e)
		return error_no_memory(err);
	*e = (struct export){ .refs = 1,
			      .t = t,
			      .mem = t->mem,
			      .release = options->release,
			      .owner = options->owner };
	*out = e;
	return OW_OK;
}

ow_status arrow_c_export(const struct table *t, const struct ow_arrow_options *options,
			 struct ArrowSchema *schema, struct ArrowArray *array, struct ow_error *err)
{
	struct export *e;

	OW_TRY(export_new(t, options, &e, err));
	if (schema && !arrow_schema_make(e, schema)) {
		export_abandon(e);
		return error_no_memory(err);
	}
	if (array && !arrow_array_make(e, array)) {
		e->release = NULL;
		if (schema)
			schema->release(schema);
		export_drop(e);
		return error_no_memory(err);
	}
	export_drop(e);
	return OW_OK;
}

struct stream_block {
	struct export *e;
	bool done;
	const char *problem;
};

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
	struct stream_block *block = stream->private_data;

	if (arrow_schema_make(block->e, out))
		return 0;
	block->problem = "out of memory";
	return ENOMEM;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
	struct stream_block *block = stream->private_data;

	if (block->done) {
		*out = (struct ArrowArray){ 0 }; /* a released array marks the end */
		return 0;
	}
	if (!arrow_array_make(block->e, out)) {
		block->problem = "out of memory";
		return ENOMEM;
	}
	block->done = true;
	return 0;
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
	return ((struct stream_block *)stream->private_data)->problem;
}

static void stream_release(struct ArrowArrayStream *stream)
{
	stream->release = NULL;
	export_block_free(stream->private_data);
}

ow_status arrow_c_stream(const struct table *t, const struct ow_arrow_options *options,
			 struct ArrowArrayStream *stream, struct ow_error *err)
{
	struct stream_block *block;
	struct export *e;

	OW_TRY(export_new(t, options, &e, err));
	block = export_block_new(e, sizeof(*block));
	if (!block) {
		export_abandon(e);
		return error_no_memory(err);
	}
	block->e = e;
	*stream = (struct ArrowArrayStream){ .get_schema = stream_schema,
					     .get_next = stream_next,
					     .get_last_error = stream_error,
					     .release = stream_release,
					     .private_data = block };
	export_drop(e);
	return OW_OK;
}
