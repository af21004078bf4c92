/*
 * arrow_ipc.c: Arrow's IPC format; see arrow_ipc.h. Numbers of slots are the positions of the fields in Arrow's .fbs
 * files. Numbers are little-endian, as in FlatBuffers and on the machines that opwatch runs on. zstd packs the buffers
 * of bodies, each after its length.
 */
#include "table/arrow_ipc.h"

#include "base/vec.h"
#include "table/cells.h"

#define BATCH_ROWS 65536
#define BATCH_TEXT ((size_t)64 << 20) /* bytes of a column; offsets have 31 bits */
#define ALIGN 8

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are");

/* Makes room for `size` bytes before the existing ones; NULL if memory runs out. */
static unsigned char *grow(struct flat *f, size_t size)
{
	size_t cap = f->cap;
	unsigned char *ptr;

	if (f->failed)
		return NULL;
	if (!f->ptr || f->len + size > cap) {
		cap = MAX(cap * 2, f->len + size + 1024);
		ptr = mem_alloc(f->mem, cap);
		if (!ptr) {
			f->failed = true;
			return NULL;
		}
		if (f->len)
			memcpy(ptr + cap - f->len, f->ptr + f->cap - f->len, f->len);
		mem_free(f->mem, f->ptr, f->cap);
		f->ptr = ptr;
		f->cap = cap;
	}
	f->len += size;
	return f->ptr + f->cap - f->len;
}

static void flat_put(struct flat *f, const void *bytes, size_t size)
{
	unsigned char *to = grow(f, size);

	if (to && size)
		memcpy(to, bytes, size);
}

/* Adds zeros: after `size` more bytes the length will be a multiple of `align`. */
static void pad(struct flat *f, size_t size, size_t align)
{
	size_t more = (align - (f->len + size) % align) % align;
	unsigned char *to = grow(f, more);

	if (to)
		memset(to, 0, more);
}

static uint32_t here(const struct flat *f)
{
	return (uint32_t)f->len;
}

/* Writes a reference: the distance from itself to its target. */
static void put_ref(struct flat *f, uint32_t place)
{
	uint32_t distance = here(f) + (uint32_t)sizeof(place) - place;

	flat_put(f, &distance, sizeof(distance));
}

static uint32_t put_count(struct flat *f, size_t count)
{
	uint32_t n = (uint32_t)count;

	flat_put(f, &n, sizeof(n));
	return here(f);
}

static uint32_t flat_string(struct flat *f, struct str text)
{
	pad(f, text.len + 1, sizeof(uint32_t));
	flat_put(f, "", 1);
	flat_put(f, text.ptr, text.len);
	return put_count(f, text.len);
}

static uint32_t flat_refs(struct flat *f, const uint32_t *places, size_t count)
{
	pad(f, 0, sizeof(uint32_t));
	for (size_t i = count; i-- > 0;)
		put_ref(f, places[i]);
	return put_count(f, count);
}

static uint32_t flat_structs(struct flat *f, const void *bytes, size_t size, size_t count)
{
	pad(f, size * count, sizeof(uint64_t));
	flat_put(f, bytes, size * count);
	return put_count(f, count);
}

static void flat_table_begin(struct flat *f)
{
	memset(f->slots, 0, sizeof(f->slots));
	f->table = f->len;
}

static void flat_field(struct flat *f, unsigned slot, const void *value, size_t size)
{
	OW_ASSERT(slot < FLAT_SLOTS);
	pad(f, size, size);
	flat_put(f, value, size);
	f->slots[slot] = here(f);
}

static void flat_u8(struct flat *f, unsigned slot, uint8_t value)
{
	flat_field(f, slot, &value, sizeof(value));
}

static void flat_i16(struct flat *f, unsigned slot, int16_t value)
{
	flat_field(f, slot, &value, sizeof(value));
}

static void flat_i32(struct flat *f, unsigned slot, int32_t value)
{
	flat_field(f, slot, &value, sizeof(value));
}

static void flat_i64(struct flat *f, unsigned slot, int64_t value)
{
	flat_field(f, slot, &value, sizeof(value));
}

static void flat_ref(struct flat *f, unsigned slot, uint32_t place)
{
	pad(f, sizeof(place), sizeof(place));
	put_ref(f, place);
	f->slots[slot] = here(f);
}

/* Ends a table. It begins with the distance to its vtable, which lies before it and holds the places of the fields. */
static uint32_t flat_table_end(struct flat *f)
{
	uint16_t vtable[2 + FLAT_SLOTS], count = FLAT_SLOTS, size;
	uint32_t table;
	int32_t distance;

	pad(f, sizeof(distance), sizeof(distance));
	flat_put(f, "\0\0\0", sizeof(distance));
	table = here(f);
	while (count && !f->slots[count - 1])
		count--;
	size = (uint16_t)((2 + count) * sizeof(vtable[0]));
	vtable[0] = size;
	vtable[1] = (uint16_t)(table - f->table);
	for (unsigned i = 0; i < count; i++)
		vtable[2 + i] = f->slots[i] ? (uint16_t)(table - f->slots[i]) : 0;
	pad(f, size, sizeof(vtable[0]));
	flat_put(f, vtable, size);
	distance = (int32_t)(here(f) - table);
	if (!f->failed)
		memcpy(f->ptr + f->cap - table, &distance, sizeof(distance));
	return table;
}

static struct str flat_finish(struct flat *f, uint32_t root)
{
	pad(f, sizeof(root), sizeof(uint64_t));
	put_ref(f, root);
	if (f->failed)
		return (struct str){ 0 };
	return str_make(f->ptr + f->cap - f->len, f->len);
}

enum { VERSION_5 = 4 };
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { ARROW_INT = 2, ARROW_FLOAT = 3, ARROW_UTF8 = 5, ARROW_BOOL = 6 };
enum { CODEC_ZSTD = 1 };

static uint32_t int_type(struct flat *f, int32_t bits, bool is_signed)
{
	flat_table_begin(f);
	flat_i32(f, 0, bits);
	flat_u8(f, 1, is_signed);
	return flat_table_end(f);
}

static uint32_t double_type(struct flat *f)
{
	flat_table_begin(f);
	flat_i16(f, 0, 2);
	return flat_table_end(f);
}

static uint32_t plain_type(struct flat *f)
{
	flat_table_begin(f);
	return flat_table_end(f);
}

static uint32_t type_of(struct flat *f, enum column_type type, uint8_t *kind)
{
	switch (type) {
	case TYPE_BOOL:
		*kind = ARROW_BOOL;
		return plain_type(f);
	case TYPE_INT32:
		*kind = ARROW_INT;
		return int_type(f, 32, true);
	case TYPE_INT:
		*kind = ARROW_INT;
		return int_type(f, 64, true);
	case TYPE_UINT64:
		*kind = ARROW_INT;
		return int_type(f, 64, false);
	case TYPE_REAL:
	case TYPE_NUMBER:
		*kind = ARROW_FLOAT;
		return double_type(f);
	default:
		*kind = ARROW_UTF8;
		return plain_type(f);
	}
}

static uint32_t dictionary_encoding(struct flat *f, int64_t id)
{
	uint32_t index = int_type(f, 32, true);

	flat_table_begin(f);
	flat_i64(f, 0, id);
	flat_ref(f, 1, index);
	return flat_table_end(f);
}

static uint32_t key_value(struct flat *f, struct str key, const char *value)
{
	uint32_t k = flat_string(f, key), v = flat_string(f, str_from(value));

	flat_table_begin(f);
	flat_ref(f, 0, k);
	flat_ref(f, 1, v);
	return flat_table_end(f);
}

/* Writes the metadata of a column: its description, and its unit when it has one. */
static uint32_t remarks(struct flat *f, const struct table_column *c)
{
	const char *unit = c->unit == UNIT_NS ? "ns" : c->unit == UNIT_BYTES ? "bytes" : NULL;
	uint32_t pairs[2], count = 0;

	pairs[count++] = key_value(f, STR("doc"), c->doc ? c->doc : "");
	if (unit)
		pairs[count++] = key_value(f, STR("unit"), unit);
	return flat_refs(f, pairs, count);
}

static uint32_t field_of(struct flat *f, const struct arrow_column *column, int64_t number)
{
	uint8_t kind;
	uint32_t name = flat_string(f, str_from(column->name));
	uint32_t type = type_of(f, column->c->type, &kind);
	uint32_t children = flat_refs(f, NULL, 0);
	uint32_t metadata = remarks(f, column->c);
	uint32_t dictionary = column->has_dictionary ? dictionary_encoding(f, number) : 0;

	flat_table_begin(f);
	flat_ref(f, 0, name);
	flat_u8(f, 1, true);
	flat_u8(f, 2, kind);
	flat_ref(f, 3, type);
	if (dictionary)
		flat_ref(f, 4, dictionary);
	flat_ref(f, 5, children);
	flat_ref(f, 6, metadata);
	return flat_table_end(f);
}

static uint32_t schema(struct arrow_ipc *a)
{
	uint32_t places[TABLE_COLUMNS_MAX], list;
	struct flat *f = &a->meta;

	for (uint32_t i = 0; i < a->column_count; i++)
		places[i] = field_of(f, &a->columns[i], i);
	list = flat_refs(f, places, a->column_count);
	flat_table_begin(f);
	flat_i16(f, 0, 0); /* little-endian */
	flat_ref(f, 1, list);
	return flat_table_end(f);
}

static struct str message(struct flat *f, uint8_t kind, uint32_t header, int64_t body_length)
{
	flat_table_begin(f);
	flat_i64(f, 3, body_length);
	flat_ref(f, 2, header);
	flat_i16(f, 0, VERSION_5);
	flat_u8(f, 1, kind);
	return flat_finish(f, flat_table_end(f));
}

/* Writes the header of a record batch for the body. */
static uint32_t record_batch(struct arrow_ipc *a, int64_t length, size_t node_count)
{
	struct flat *f = &a->meta;
	uint32_t nodes = flat_structs(f, a->nodes, sizeof(*a->nodes), node_count);
	uint32_t buffers = flat_structs(f, a->buffers, sizeof(*a->buffers), a->buffer_count);
	uint32_t compression = 0;

	if (a->pack) {
		flat_table_begin(f);
		flat_u8(f, 0, CODEC_ZSTD);
		flat_u8(f, 1, 0);
		compression = flat_table_end(f);
	}
	flat_table_begin(f);
	flat_i64(f, 0, length);
	flat_ref(f, 1, nodes);
	flat_ref(f, 2, buffers);
	if (compression)
		flat_ref(f, 3, compression);
	return flat_table_end(f);
}

static size_t numbers_size(const struct table *t, uint32_t part, uint32_t column)
{
	return table_dict(t, part, column)->count * sizeof(uint32_t);
}

static void dictionary_release(struct arrow_dictionary *d, const struct table *t, uint32_t column)
{
	for (uint32_t p = 0; d->numbers && p < t->part_count; p++)
		if (d->numbers[p])
			mem_free(d->mem, d->numbers[p], numbers_size(t, p, column));
	mem_free(d->mem, d->numbers, (t->part_count + 1) * sizeof(*d->numbers));
	mem_free(d->mem, d->texts, d->cap * sizeof(*d->texts));
	map_release(&d->map);
}

static ow_status make_numbers(struct arrow_dictionary *d, const struct rows *rows, uint32_t part,
			      uint32_t column, struct ow_error *err)
{
	if (!d->numbers) {
		d->numbers = mem_zalloc(d->mem, (rows->t->part_count + 1) * sizeof(*d->numbers));
		if (!d->numbers)
			return error_no_memory(err);
	}
	if (d->numbers[part])
		return OW_OK;
	d->numbers[part] = mem_zalloc(d->mem, numbers_size(rows->t, part, column));
	return d->numbers[part] ? OW_OK : error_no_memory(err);
}

/* The number + 1 of a text; the dictionary of another run may have the same text. */
static ow_status number_text(struct arrow_dictionary *d, struct str text, uint32_t *number,
			     struct ow_error *err)
{
	uint64_t hash = str_hash(text);
	struct map_iter it;

	for (it = map_find(&d->map, hash); it.value; it = map_next(&d->map, it))
		if (str_eq(d->texts[it.value - 1], text)) {
			*number = it.value;
			return OW_OK;
		}
	if (d->count >= INT32_MAX - 1)
		return error_set(err, OW_E_LIMIT, "more than 2^31 texts in a column");
	if (!vec_reserve(d->mem, d->texts, d->cap, d->count + 1) ||
	    !map_add(&d->map, hash, (uint32_t)d->count + 1))
		return error_no_memory(err);
	d->texts[d->count++] = text;
	*number = (uint32_t)d->count;
	return OW_OK;
}

static ow_status dictionary_add(struct arrow_dictionary *d, const struct rows *rows,
				const struct rows_column *column, struct ow_error *err)
{
	const uint32_t *codes = column->values;
	uint32_t last = UINT32_MAX;

	for (uint32_t i = 0; i < rows->n; i++) {
		uint32_t part = rows_part(rows, i), *number;

		if (part != last)
			OW_TRY(make_numbers(d, rows, part, column->index, err));
		last = part;
		number = &d->numbers[part][codes[i]];
		if (codes[i] && !*number)
			OW_TRY(number_text(d, rows_text(rows, column, i), number, err));
	}
	return OW_OK;
}

/* The number of the text in row i of a collected block; UINT32_MAX when it is unknown. */
static uint32_t dictionary_number(const struct arrow_dictionary *d, const struct rows *rows,
				  const struct rows_column *column, uint32_t i)
{
	uint32_t code = ((const uint32_t *)column->values)[i];

	return code ? d->numbers[rows_part(rows, i)][code] - 1 : UINT32_MAX;
}

ow_status arrow_ipc_init(struct arrow_ipc *a, const struct rows *rows, const char *const *names,
			 bool dictionaries, bool pack, struct ow_error *err)
{
	struct mem *mem = rows->t->mem;
	uint32_t n = rows->column_count;

	*a = (struct arrow_ipc){ .mem = mem, .t = rows->t, .column_count = n, .pack = pack };
	a->meta = (struct flat){ .mem = mem };
	buf_init(&a->body, mem);
	buf_init(&a->packed, mem);
	a->columns = mem_zalloc(mem, (n + 1) * sizeof(*a->columns));
	a->nodes = mem_zalloc(mem, (n + 1) * sizeof(*a->nodes));
	a->buffers = mem_zalloc(mem, (3 * n + 3) * sizeof(*a->buffers));
	if (!a->columns || !a->nodes || !a->buffers)
		return error_no_memory(err);
	for (uint32_t i = 0; i < n; i++) {
		const struct rows_column *from = &rows->columns[i];
		struct arrow_column *c = &a->columns[i];

		c->c = from->c;
		c->index = from->index;
		c->name = names ? names[from->index] : from->c->name;
		buf_init(&c->values, mem);
		buf_init(&c->offsets, mem);
		buf_init(&c->valid, mem);
		c->dictionary = (struct arrow_dictionary){ .mem = mem };
		map_init(&c->dictionary.map, mem);
		c->has_dictionary =
			dictionaries && from->c->type == TYPE_TEXT && from->c->dict != DICT_NONE;
	}
	return OW_OK;
}

void arrow_ipc_release(struct arrow_ipc *a)
{
	uint32_t n = a->column_count;

	if (!a->mem)
		return;
	for (uint32_t i = 0; a->columns && i < n; i++) {
		struct arrow_column *c = &a->columns[i];

		if (!c->values.mem)
			continue;
		buf_release(&c->values);
		buf_release(&c->offsets);
		buf_release(&c->valid);
		dictionary_release(&c->dictionary, a->t, c->index);
	}
	mem_free(a->mem, a->columns, (n + 1) * sizeof(*a->columns));
	mem_free(a->mem, a->nodes, (n + 1) * sizeof(*a->nodes));
	mem_free(a->mem, a->buffers, (3 * n + 3) * sizeof(*a->buffers));
	zstd_packer_release(&a->zstd);
	buf_release(&a->body);
	buf_release(&a->packed);
	mem_free(a->mem, a->meta.ptr, a->meta.cap);
	*a = (struct arrow_ipc){ 0 };
}

ow_status arrow_ipc_collect(struct arrow_ipc *a, const struct rows *rows, struct ow_error *err)
{
	for (uint32_t i = 0, from = 0; i < a->column_count; i++)
		if (a->columns[i].has_dictionary)
			OW_TRY(dictionary_add(&a->columns[i].dictionary, rows,
					      &rows->columns[from++], err));
	return OW_OK;
}

static void put_message(struct buf *to, struct str meta)
{
	uint32_t head[2] = { UINT32_MAX, (uint32_t)meta.len };

	buf_add(to, head, sizeof(head));
	buf_add_str(to, meta);
}

ow_status arrow_ipc_schema(struct arrow_ipc *a, struct buf *to, struct ow_error *err)
{
	struct str meta;

	a->meta.len = 0;
	meta = message(&a->meta, HEADER_SCHEMA, schema(a), 0);
	if (!meta.ptr)
		return error_no_memory(err);
	put_message(to, meta);
	return OW_OK;
}

/* Adds a buffer to the body, plain, or compressed after its length. */
static ow_status add_buffer(struct arrow_ipc *a, struct str bytes, struct ow_error *err)
{
	struct arrow_buffer *buffer = &a->buffers[a->buffer_count++];
	int64_t len = (int64_t)bytes.len;

	buffer->offset = (int64_t)a->body.len;
	if (a->pack && bytes.len) {
		buf_clear(&a->packed);
		OW_TRY(zstd_pack(&a->zstd, bytes, true, &a->packed, err));
		buf_add(&a->body, &len, sizeof(len));
		bytes = buf_str(&a->packed);
	}
	buf_add_str(&a->body, bytes);
	buffer->length = (int64_t)a->body.len - buffer->offset;
	buf_add_repeat(&a->body, 0, (ALIGN - a->body.len % ALIGN) % ALIGN);
	return a->body.failed || a->packed.failed ? error_no_memory(err) : OW_OK;
}

/* Writes the message of a batch or, with a dictionary's number, of a dictionary; the body follows. */
static ow_status put_batch(struct arrow_ipc *a, int64_t length, size_t nodes, int64_t dictionary,
			   struct buf *to, struct arrow_block *block, struct ow_error *err)
{
	int64_t body = (int64_t)a->body.len;
	uint32_t data, table;
	struct str meta;

	a->meta.len = 0;
	data = record_batch(a, length, nodes);
	if (dictionary < 0) {
		meta = message(&a->meta, HEADER_BATCH, data, body);
	} else {
		flat_table_begin(&a->meta);
		flat_i64(&a->meta, 0, dictionary);
		flat_ref(&a->meta, 1, data);
		table = flat_table_end(&a->meta);
		meta = message(&a->meta, HEADER_DICTIONARY, table, body);
	}
	if (!meta.ptr)
		return error_no_memory(err);
	*block = (struct arrow_block){ .offset = (int64_t)to->len,
				       .meta_length = (int32_t)(meta.len + 2 * sizeof(uint32_t)),
				       .body_length = body };
	put_message(to, meta);
	buf_add_str(to, buf_str(&a->body));
	buf_clear(&a->body);
	a->buffer_count = 0;
	return to->failed ? error_no_memory(err) : OW_OK;
}

ow_status arrow_ipc_dictionary(struct arrow_ipc *a, uint32_t column, struct buf *to,
			       struct arrow_block *block, struct ow_error *err)
{
	const struct arrow_dictionary *d = &a->columns[column].dictionary;
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
					 a->t->name, a->columns[column].name);
		at = (int32_t)texts->len;
		buf_add(offsets, &at, sizeof(at));
	}
	if (offsets->failed || texts->failed)
		return error_no_memory(err);
	a->nodes[0] = (struct arrow_node){ (int64_t)d->count, 0 };
	OW_TRY(add_buffer(a, (struct str){ 0 }, err));
	OW_TRY(add_buffer(a, buf_str(offsets), err));
	OW_TRY(add_buffer(a, buf_str(texts), err));
	buf_clear(offsets);
	buf_clear(texts);
	return put_batch(a, (int64_t)d->count, 1, column, to, block, err);
}

ow_status arrow_ipc_flush(struct arrow_ipc *a, struct buf *to, struct arrow_block *block,
			  struct ow_error *err)
{
	int64_t rows = a->rows;

	*block = (struct arrow_block){ 0 };
	if (!rows)
		return OW_OK;
	for (uint32_t i = 0; i < a->column_count; i++) {
		struct arrow_column *c = &a->columns[i];
		bool text = c->c->type == TYPE_TEXT;

		if (c->values.failed || c->offsets.failed || c->valid.failed)
			return error_no_memory(err);
		a->nodes[i] = (struct arrow_node){ rows, c->nulls };
		OW_TRY(add_buffer(a, c->nulls ? buf_str(&c->valid) : (struct str){ 0 }, err));
		if (text && !c->has_dictionary)
			OW_TRY(add_buffer(a, buf_str(&c->offsets), err));
		OW_TRY(add_buffer(a, buf_str(&c->values), err));
		buf_clear(&c->values);
		buf_clear(&c->offsets);
		buf_clear(&c->valid);
		c->nulls = 0;
	}
	a->rows = 0;
	return put_batch(a, rows, a->column_count, -1, to, block, err);
}

void arrow_ipc_end_stream(struct buf *to)
{
	static const uint32_t end_of_stream[2] = { UINT32_MAX, 0 };

	buf_add(to, end_of_stream, sizeof(end_of_stream));
}

ow_status arrow_ipc_footer(struct arrow_ipc *a, struct buf *to,
			   const struct arrow_block *dictionaries, size_t dictionary_count,
			   const struct arrow_block *batches, size_t batch_count,
			   struct ow_error *err)
{
	struct flat *f = &a->meta;
	uint32_t top, first, second;
	struct str footer;
	uint32_t len;

	f->len = 0;
	top = schema(a);
	first = flat_structs(f, dictionaries, sizeof(*dictionaries), dictionary_count);
	second = flat_structs(f, batches, sizeof(*batches), batch_count);
	flat_table_begin(f);
	flat_ref(f, 1, top);
	flat_ref(f, 2, first);
	flat_ref(f, 3, second);
	flat_i16(f, 0, VERSION_5);
	footer = flat_finish(f, flat_table_end(f));
	if (!footer.ptr)
		return error_no_memory(err);
	buf_add_str(to, footer);
	len = (uint32_t)footer.len;
	buf_add(to, &len, sizeof(len));
	return OW_OK;
}

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
		if (from->c->type == TYPE_BOOL)
			add_bit(&c->values, row + i, known && ((const bool *)from->values)[i]);
	}
	if (from->c->type != TYPE_BOOL)
		buf_add(&c->values, from->values, rows->n * column_value_size(from->c));
}

/* Adds digits as numbers; those that do not fit into an integer become the nearest float64. */
static void add_digits(const struct rows *rows, const struct rows_column *from,
		       struct arrow_column *c, int64_t row)
{
	for (uint32_t i = 0; i < rows->n; i++) {
		struct str text = rows_text(rows, from, i);
		double value = text.ptr ? strtod(text.ptr, NULL) : 0;

		add_bit(&c->valid, row + i, text.ptr != NULL);
		c->nulls += !text.ptr;
		buf_add(&c->values, &value, sizeof(value));
	}
}

ow_status arrow_ipc_add(struct arrow_ipc *a, const struct rows *rows, bool *full,
			struct ow_error *err)
{
	for (uint32_t i = 0; i < a->column_count; i++) {
		const struct rows_column *from = &rows->columns[i];
		struct arrow_column *c = &a->columns[i];

		if (c->has_dictionary)
			add_numbers(rows, from, c, a->rows);
		else if (from->c->type == TYPE_TEXT)
			add_texts(rows, from, c, a->rows);
		else if (from->c->type == TYPE_NUMBER)
			add_digits(rows, from, c, a->rows);
		else
			add_values(rows, from, c, a->rows);
		if (c->values.len > INT32_MAX)
			return error_set(err, OW_E_LIMIT,
					 "%s.%s: more than 2 GB of text in a few rows; Arrow files "
					 "cannot hold that: use Parquet",
					 a->t->name, c->name);
		*full |= c->values.len >= BATCH_TEXT;
	}
	a->rows += rows->n;
	*full |= a->rows >= BATCH_ROWS;
	return OW_OK;
}
