/* arrow.c: see arrow.h. Numbers of slots are the positions of the fields in Arrow's .fbs files. */
#include "export/arrow.h"

enum { VERSION_5 = 4 };
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { TYPE_INT = 2, TYPE_FLOAT = 3, TYPE_UTF8 = 5, TYPE_BOOL = 6 };
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

static uint32_t type_of(struct flat *f, enum relation_type type, uint8_t *kind)
{
	switch (type) {
	case RELATION_BOOL:
		*kind = TYPE_BOOL;
		return plain_type(f);
	case RELATION_INT32:
		*kind = TYPE_INT;
		return int_type(f, 32, true);
	case RELATION_INT64:
		*kind = TYPE_INT;
		return int_type(f, 64, true);
	case RELATION_UINT64:
		*kind = TYPE_INT;
		return int_type(f, 64, false);
	case RELATION_REAL:
		*kind = TYPE_FLOAT;
		return double_type(f);
	default:
		*kind = TYPE_UTF8;
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

/* What the column means, and its unit when it has one. */
static uint32_t remarks(struct flat *f, const struct relation_column *c)
{
	const char *unit = c->unit == UNIT_NS ? "ns" : c->unit == UNIT_BYTES ? "bytes" : NULL;
	uint32_t pairs[2], count = 0;

	pairs[count++] = key_value(f, STR("doc"), c->doc ? c->doc : "");
	if (unit)
		pairs[count++] = key_value(f, STR("unit"), unit);
	return flat_refs(f, pairs, count);
}

static uint32_t field(struct flat *f, const struct arrow_field *field)
{
	uint8_t kind;
	uint32_t name = flat_string(f, str_from(field->name));
	uint32_t type = type_of(f, field->column->type, &kind);
	uint32_t children = flat_refs(f, NULL, 0);
	uint32_t metadata = remarks(f, field->column);
	uint32_t dictionary = field->dictionary < 0 ? 0 : dictionary_encoding(f, field->dictionary);

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

static uint32_t schema(struct flat *f, const struct arrow_field *fields, size_t count)
{
	uint32_t places[RELATION_COLUMNS_MAX], list;

	OW_ASSERT(count <= RELATION_COLUMNS_MAX);
	for (size_t i = 0; i < count; i++)
		places[i] = field(f, &fields[i]);
	list = flat_refs(f, places, count);
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

struct str arrow_schema_message(struct flat *f, const struct arrow_field *fields, size_t count)
{
	flat_clear(f);
	return message(f, HEADER_SCHEMA, schema(f, fields, count), 0);
}

static uint32_t record_batch(struct flat *f, const struct arrow_batch *batch)
{
	uint32_t nodes = flat_structs(f, batch->nodes, sizeof(*batch->nodes), batch->node_count);
	uint32_t buffers =
		flat_structs(f, batch->buffers, sizeof(*batch->buffers), batch->buffer_count);
	uint32_t compression = 0;

	if (batch->zstd) {
		flat_table_begin(f);
		flat_u8(f, 0, CODEC_ZSTD);
		flat_u8(f, 1, 0);
		compression = flat_table_end(f);
	}
	flat_table_begin(f);
	flat_i64(f, 0, batch->length);
	flat_ref(f, 1, nodes);
	flat_ref(f, 2, buffers);
	if (compression)
		flat_ref(f, 3, compression);
	return flat_table_end(f);
}

struct str arrow_batch_message(struct flat *f, const struct arrow_batch *batch)
{
	uint32_t data, dictionary;

	flat_clear(f);
	data = record_batch(f, batch);
	if (batch->dictionary < 0)
		return message(f, HEADER_BATCH, data, batch->body_length);
	flat_table_begin(f);
	flat_i64(f, 0, batch->dictionary);
	flat_ref(f, 1, data);
	dictionary = flat_table_end(f);
	return message(f, HEADER_DICTIONARY, dictionary, batch->body_length);
}

struct str arrow_footer(struct flat *f, const struct arrow_field *fields, size_t count,
			const struct arrow_block *dictionaries, size_t dictionary_count,
			const struct arrow_block *batches, size_t batch_count)
{
	uint32_t top, first, second;

	flat_clear(f);
	top = schema(f, fields, count);
	first = flat_structs(f, dictionaries, sizeof(*dictionaries), dictionary_count);
	second = flat_structs(f, batches, sizeof(*batches), batch_count);
	flat_table_begin(f);
	flat_ref(f, 1, top);
	flat_ref(f, 2, first);
	flat_ref(f, 3, second);
	flat_i16(f, 0, VERSION_5);
	return flat_finish(f, flat_table_end(f));
}
