/*
 * arrow.c: ow_result_arrow: results in the form of Arrow's C data interface, for Python's data frames, DuckDB
 * and whoever else takes it. Numbers are handed out where they are; texts, truth values and which values are
 * known have another form in Arrow and are copied.
 */
#include "api/arrow_int.h"

#include <errno.h>

void ow_arrow_options_init(struct ow_arrow_options *options)
{
	*options = (struct ow_arrow_options){ .size = sizeof(*options) };
}

/* ---- arrays ---- */

/* What an array owns. */
struct array_block {
	const void *buffers[3];
	void *owned[3]; /* those of the buffers that are copies */
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

/* A buffer of the array's own. Never of no bytes: some consumers look at the address. */
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

/* Digits that do not fit into an integer: as near as a float64 comes. */
static bool make_numbers(struct array_block *block, const struct result_column *column, size_t rows)
{
	double *values = buffer_new(block, 1, rows * sizeof(*values));

	if (!values)
		return false;
	for (size_t i = 0; i < rows; i++)
		values[i] =
			column->known && !column->known[i] ? 0 : strtod(column->texts[i].ptr, NULL);
	return true;
}

/* ---- texts ---- */

static uint64_t total_bytes(const struct str *texts, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += texts[i].len;
	return bytes;
}

bool export_is_large(const struct result_column *column, uint32_t rows)
{
	return total_bytes(column->texts, rows) > INT32_MAX;
}

/* Consumers trust that texts are UTF-8: a byte that is not becomes a question mark. */
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

/* ---- columns and rows ---- */

static bool fill_column(struct array_block *block, struct ArrowArray *array,
			const struct result_column *column)
{
	uint32_t rows = (uint32_t)array->length;

	if (!make_known(block, array, column->known))
		return false;
	switch (column->type) {
	case RESULT_TEXT:
		array->n_buffers = 3;
		return make_texts(block, column->texts, rows, export_is_large(column, rows));
	case RESULT_NUMBER:
		return make_numbers(block, column, rows);
	case RESULT_BOOL:
		return make_bools(block, column->ints, rows);
	default: /* where they are */
		block->buffers[1] = column->ints;
		return column->ints || buffer_new(block, 1, 0);
	}
}

static bool make_column(struct export *e, const struct result_column *column,
			struct ArrowArray *array)
{
	struct array_block *block = array_new(e, array, e->result->r->row_count, 2, 0);

	if (!block)
		return false;
	if (fill_column(block, array, column))
		return true;
	release_array(array);
	return false;
}

bool arrow_array_make(struct export *e, struct ArrowArray *array)
{
	const struct result *r = e->result->r;
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
		if (!make_column(e, &r->columns[i], &structs[i])) {
			release_array(array);
			return false;
		}
		block->children[i] = &structs[i];
		array->n_children = i + 1;
	}
	return true;
}

static ow_status begin(ow_result *result, const struct ow_arrow_options *options, struct export **e,
		       struct error *err)
{
	struct ow_arrow_options full;

	error_clear(err);
	ow_arrow_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	OW_TRY(ow_result_fill(result, err));
	return export_new(result, &full, e, err);
}

ow_status ow_result_arrow(ow_result *result, const struct ow_arrow_options *options,
			  struct ArrowSchema *schema, struct ArrowArray *array, struct error *err)
{
	struct export *e;

	OW_TRY(begin(result, options, &e, err));
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

/* ---- streams ---- */

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
		*out = (struct ArrowArray){ 0 }; /* released: the end */
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

ow_status ow_result_arrow_stream(ow_result *result, const struct ow_arrow_options *options,
				 struct ArrowArrayStream *stream, struct error *err)
{
	struct stream_block *block;
	struct export *e;

	OW_TRY(begin(result, options, &e, err));
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
