/*
 * native.c: writes rows of a table in ClickHouse's format Native, block by block. Used by push.c for the bodies of
 * inserts, and by plan.c and schema.c for the names of types. It sends nothing.
 */
#include "push/native.h"

#include "push/http.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers are sent as they are in memory, which the server takes for little-endian"
#endif

bool native_nullable(const struct table_column *column)
{
	return strcmp(column->name, "run") != 0 && strcmp(column->name, "id") != 0;
}

const char *native_type(const struct table_column *column)
{
	static const char *const types[][2] = {
		[TYPE_BOOL] = { "UInt8", "Nullable(UInt8)" },
		[TYPE_INT32] = { "Int32", "Nullable(Int32)" },
		[TYPE_INT] = { "Int64", "Nullable(Int64)" },
		[TYPE_UINT64] = { "UInt64", "Nullable(UInt64)" },
		[TYPE_REAL] = { "Float64", "Nullable(Float64)" },
		[TYPE_TEXT] = { "String", "Nullable(String)" },
	};

	return types[column->type][native_nullable(column)];
}

ow_status native_init(struct native *native, struct mem *mem, struct ow_error *err)
{
	*native = (struct native){ .mem = mem };
	arena_init(&native->scratch, mem);
	buf_init(&native->block, mem);
	native->values = mem_alloc(mem, NATIVE_ROWS * sizeof(struct str));
	native->valid = mem_alloc(mem, NATIVE_ROWS / 8);
	return native->values && native->valid ? OW_OK : error_no_memory(err);
}

void native_release(struct native *native)
{
	if (native->values)
		mem_free(native->mem, native->values, NATIVE_ROWS * sizeof(struct str));
	if (native->valid)
		mem_free(native->mem, native->valid, NATIVE_ROWS / 8);
	buf_release(&native->block);
	arena_release(&native->scratch);
	*native = (struct native){ 0 };
}

void native_start(struct native *native, const struct table *table, uint32_t part, uint64_t first,
		  uint64_t rows, uint64_t push, uint32_t batch, struct ow_error *err)
{
	native->table = table;
	native->part = part;
	native->next = first;
	native->end = first + rows;
	native->push = push;
	native->batch = batch;
	native->err = err;
	native->taken = 0;
	buf_clear(&native->block);
	native->block.failed = false;
}

static char *put_length(char *to, size_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (char)(value | 0x80);
	*to++ = (char)value;
	return to;
}

static void add_length(struct buf *to, size_t value)
{
	char bytes[10];

	buf_add(to, bytes, (size_t)(put_length(bytes, value) - bytes));
}

static void add_text(struct buf *to, const char *text)
{
	add_length(to, strlen(text));
	buf_puts(to, text);
}

static void add_header(struct buf *to, const char *name, const char *type)
{
	add_text(to, name);
	add_text(to, type);
}

static void add_same(struct buf *to, const void *value, size_t size, uint32_t rows)
{
	if (!buf_reserve(to, size * rows))
		return;
	for (uint32_t i = 0; i < rows; i++)
		memcpy(to->ptr + to->len + i * size, value, size);
	to->len += size * rows;
}

/* Writes the null map: one byte for each row, 1 if the value is NULL. */
static void add_null_map(struct buf *to, const struct table_vec *vec, uint32_t rows)
{
	char *bytes;

	if (!buf_reserve(to, rows))
		return;
	bytes = to->ptr + to->len;
	if (vec->has_nulls)
		for (uint32_t i = 0; i < rows; i++)
			bytes[i] = (char)(~(vec->valid[i / 64] >> i % 64) & 1);
	else
		memset(bytes, 0, rows);
	to->len += rows;
}

/* Sets the bytes of NULL values, which are never read, to zero: zeros compress best. */
static void clear_nulls(void *values, size_t size, const struct table_vec *vec, uint32_t rows)
{
	if (!vec->has_nulls)
		return;
	for (uint32_t i = 0; i < rows; i++)
		if (!(vec->valid[i / 64] >> i % 64 & 1))
			memset((char *)values + i * size, 0, size);
}

static void add_numbers(struct buf *to, const struct table_column *column,
			const struct table_vec *vec, uint32_t rows)
{
	size_t size = column_value_size(column);

	if (native_nullable(column)) {
		add_null_map(to, vec, rows);
		clear_nulls(vec->values, size, vec, rows);
	}
	buf_add(to, vec->values, size * rows);
}

static struct str text_of(const struct table_dict *dict, const struct table_vec *vec, uint32_t row)
{
	if (dict)
		return dict->texts[((const uint32_t *)vec->values)[row]];
	return ((const struct str *)vec->values)[row];
}

static void add_texts(struct buf *to, const struct table_column *column,
		      const struct table_dict *dict, const struct table_vec *vec, uint32_t rows)
{
	const uint32_t *codes = vec->values;
	const struct str *texts = vec->values;
	size_t total = 0;
	char *at;

	if (!buf_reserve(to, rows))
		return;
	at = to->ptr + to->len;
	if (native_nullable(column)) {
		for (uint32_t i = 0; i < rows; i++)
			at[i] = (char)(dict ? codes[i] == 0 : texts[i].ptr == NULL);
		to->len += rows;
	}
	for (uint32_t i = 0; i < rows; i++)
		total += text_of(dict, vec, i).len + 10;
	if (!buf_reserve(to, total))
		return;
	at = to->ptr + to->len;
	for (uint32_t i = 0; i < rows; i++) {
		struct str text = text_of(dict, vec, i);

		at = put_length(at, text.len);
		if (text.len)
			memcpy(at, text.ptr, text.len);
		at += text.len;
	}
	to->len = (size_t)(at - to->ptr);
}

static ow_status add_column(struct native *n, uint32_t column, uint32_t rows)
{
	const struct table_column *info = &n->table->columns[column];
	struct table_vec vec = {
		.values = n->values, .valid = n->valid, .scratch = &n->scratch, .memo = &n->memo
	};

	OW_TRY(table_read(n->table, n->part, column, n->next, rows, &vec, n->err));
	add_header(&n->block, info->name, native_type(info));
	if (info->type == TYPE_TEXT)
		add_texts(&n->block, info, table_dict(n->table, n->part, column), &vec, rows);
	else
		add_numbers(&n->block, info, &vec, rows);
	return OW_OK;
}

static ow_status make_block(struct native *n)
{
	uint32_t rows = (uint32_t)MIN(n->end - n->next, (uint64_t)NATIVE_ROWS);
	struct buf *to = &n->block;

	arena_clear(&n->scratch);
	n->memo = (struct table_memo){ 0 };
	buf_clear(to);
	add_length(to, n->table->column_count + 2);
	add_length(to, rows);
	add_header(to, NATIVE_PUSH, "UInt64");
	add_same(to, &n->push, sizeof(n->push), rows);
	add_header(to, NATIVE_BATCH, "UInt32");
	add_same(to, &n->batch, sizeof(n->batch), rows);
	for (uint32_t i = 0; i < n->table->column_count; i++)
		OW_TRY(add_column(n, i, rows));
	n->next += rows;
	return to->failed ? error_no_memory(n->err) : OW_OK;
}

size_t native_take(void *native, void *to, size_t cap)
{
	struct native *n = native;
	size_t len;

	if (n->taken == n->block.len) {
		n->taken = 0;
		buf_clear(&n->block);
		if (n->next < n->end && make_block(n) != OW_OK)
			return HTTP_BODY_FAILED;
	}
	len = MIN(cap, n->block.len - n->taken);
	if (len)
		memcpy(to, n->block.ptr + n->taken, len);
	n->taken += len;
	return len;
}
