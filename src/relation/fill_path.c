/*
 * fill_path.c: reads columns that are paths (columns.h). References are followed for a block of rows at a time, then
 * one loop for each type reads the values; a column of the relation's own table is read directly.
 */
#include "base/buf.h"
#include "table/tree/tree_text.h"
#include "relation/columns.h"

/* Rows of the path's last table: rows[i], or first + i when rows is NULL. */
struct block {
	const struct table_part *p;
	const struct table_column *c;
	const struct column_info *info;
	const void *values; /* NULL: a rare column that was not allocated */
	const uint32_t *rows;
	uint32_t first, n;
	uint32_t at; /* index in the output at which the block begins */
	uint32_t total;
};

static inline uint32_t row_of(const struct block *b, uint32_t i)
{
	return b->rows ? b->rows[i] : b->first + i;
}

static bool follow(const struct table_part *p, const struct model_path *path, uint32_t first,
		   uint32_t n, uint32_t *rows)
{
	for (uint32_t i = 0; i < n; i++)
		rows[i] = first + i;
	for (uint32_t h = 0; h + 1 < path->count; h++) {
		const uint32_t *ids = column_values(p->m, path->hops[h].table, path->hops[h].info);

		for (uint32_t i = 0; i < n; i++)
			rows[i] = ids ? ids[rows[i]] : 0;
	}
	return path->count > 1;
}

static bool stands_for_nothing(enum null_rule rule, int64_t value, bool there)
{
	switch (rule) {
	case NULL_TIME:
		return value == TIME_UNKNOWN;
	case NULL_ZERO:
	case NULL_COUNTED:
		return value == 0;
	case NULL_NEGATIVE:
		return value < 0;
	case NULL_ABSENT:
		return !there;
	case NULL_NO_ID:
		return value <= MODEL_TEXT_NUMBER + UINT32_MAX;
	case NULL_MAX:
		return value == -1;
	default:
		return false;
	}
}

static int64_t number_at(const struct block *b, uint32_t row)
{
	if (!b->values)
		return 0;
	switch (b->info->size) {
	case 1:
		return ((const uint8_t *)b->values)[row];
	case 2:
		return ((const uint16_t *)b->values)[row];
	case 4:
		return b->info->type[0] == 'i' ? ((const int32_t *)b->values)[row]
					       : (int64_t)((const uint32_t *)b->values)[row];
	default:
		return ((const int64_t *)b->values)[row];
	}
}

/* The most common case: a column of times or counts whose values are copied unchanged. */
static void fill_plain(const struct block *b, struct table_vec *out)
{
	const int64_t *from = (const int64_t *)b->values + b->first;
	int64_t *to = (int64_t *)out->values + b->at;
	bool unknown = false;

	memcpy(to, from, b->n * sizeof(*to));
	if (b->c->path->null_rule == NULL_NEVER)
		return;
	for (uint32_t i = 0; i < b->n; i++)
		unknown |= from[i] == TIME_UNKNOWN;
	for (uint32_t i = 0; unknown && i < b->n; i++)
		if (from[i] == TIME_UNKNOWN)
			vec_null(out, b->total, b->at + i);
}

static void put_number(const struct block *b, uint32_t i, int64_t value, struct table_vec *out)
{
	switch (b->c->type) {
	case TYPE_BOOL:
		((bool *)out->values)[i] = value != 0;
		return;
	case TYPE_INT32:
		((int32_t *)out->values)[i] = (int32_t)value;
		return;
	default:
		((int64_t *)out->values)[i] = value;
	}
}

static void fill_numbers(const struct block *b, struct table_vec *out)
{
	enum null_rule rule = b->c->path->null_rule;
	/* Only damaged input has unsigned counts above 2^63; they are clamped. */
	bool clamp = b->c->type == TYPE_INT && strcmp(b->info->type, "uint64_t") == 0;

	if (b->c->type == TYPE_INT && b->info->size == 8 && !b->rows && b->values && !clamp &&
	    (rule == NULL_NEVER || rule == NULL_TIME)) {
		fill_plain(b, out);
		return;
	}
	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t row = row_of(b, i);
		int64_t value = number_at(b, row);

		if (!row || stands_for_nothing(rule, value, b->values)) {
			vec_null(out, b->total, b->at + i);
			value = 0;
		} else if (clamp && value < 0) {
			value = INT64_MAX;
		}
		put_number(b, b->at + i, value - (value && rule == NULL_COUNTED), out);
	}
}

static void fill_reals(const struct block *b, struct table_vec *out)
{
	const double *from = b->values;
	double *to = (double *)out->values + b->at;

	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t row = row_of(b, i);

		to[i] = from ? from[row] : 0;
		if (!row)
			vec_null(out, b->total, b->at + i);
	}
}

/* Converts row numbers of another table to ids. */
static void fill_ids(const struct block *b, struct table_vec *out)
{
	const uint32_t *from = b->values;
	int64_t *to = (int64_t *)out->values + b->at, base = b->p->id_base;

	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t id = from ? from[row_of(b, i)] : 0;

		to[i] = base + id;
		if (!id)
			vec_null(out, b->total, b->at + i);
	}
}

static void fill_codes(const struct block *b, struct table_vec *out)
{
	const uint32_t *from = b->values;
	uint32_t *to = (uint32_t *)out->values + b->at;

	if (!from)
		memset(to, 0, b->n * sizeof(*to));
	else if (!b->rows)
		memcpy(to, from + b->first, b->n * sizeof(*to));
	else
		for (uint32_t i = 0; i < b->n; i++)
			to[i] = from[b->rows[i]];
}

static void fill_words(const struct block *b, struct table_vec *out)
{
	const uint8_t *from = b->values;
	uint32_t *to = (uint32_t *)out->values + b->at;

	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t row = row_of(b, i);
		uint32_t code = row ? (from ? from[row] : 0) + b->c->number : 0;

		to[i] = code < b->c->words->count && b->c->words->texts[code].ptr ? code : 0;
	}
}

static void put_set(const struct model *m, strset_id id, struct buf *to)
{
	uint32_t count;
	const str_id *items = model_strset(m, id, &count);

	for (uint32_t i = 0; i < count; i++) {
		if (i)
			buf_add_char(to, '|');
		buf_add_str(to, model_str(m, items[i]));
	}
}

static ow_status fill_texts(const struct block *b, struct table_vec *out, struct ow_error *err)
{
	bool shapes = strcmp(b->info->type, "shape_id") == 0;
	struct str *to = (struct str *)out->values + b->at;
	const uint32_t *from = b->values;
	ow_status status = OW_OK;
	uint32_t last = 0;
	struct buf text;

	buf_init(&text, out->scratch->mem);
	for (uint32_t i = 0; i < b->n && status == OW_OK; i++) {
		uint32_t id = from ? from[row_of(b, i)] : 0;

		to[i] = (struct str){ 0 };
		if (i && id == last) {
			to[i] = to[i - 1];
			continue;
		}
		last = id;
		buf_clear(&text);
		if (shapes)
			tree_text_shape(b->p->m, (shape_id){ id }, &text);
		else
			put_set(b->p->m, (strset_id){ id }, &text);
		if (text.len && !text.failed)
			to[i] = arena_str(out->scratch, buf_str(&text));
		if (text.failed || (text.len && !to[i].ptr))
			status = error_no_memory(err);
	}
	buf_release(&text);
	return status;
}

static ow_status fill_block(const struct block *b, struct table_vec *out, struct ow_error *err)
{
	if (b->c->type == TYPE_TEXT && b->c->dict == DICT_STRINGS)
		fill_codes(b, out);
	else if (b->c->type == TYPE_TEXT && b->c->dict == DICT_WORDS)
		fill_words(b, out);
	else if (b->c->type == TYPE_TEXT)
		return fill_texts(b, out, err);
	else if (b->c->type == TYPE_REAL)
		fill_reals(b, out);
	else if (b->c->refers)
		fill_ids(b, out);
	else
		fill_numbers(b, out);
	return OW_OK;
}

ow_status fill_path(const struct table_part *p, const struct table_column *c, uint64_t first,
		    uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct model_path *path = c->path;
	uint32_t rows[FILL_BLOCK];
	struct block b = { .p = p, .c = c, .info = path->hops[path->count - 1].info, .total = n };

	if (path->needs_stacks)
		OW_TRY(model_require_stacks(p->m, err));
	if (path->needs_nesting)
		OW_TRY(model_require_nesting(p->m, err));
	b.values = column_values(p->m, path->hops[path->count - 1].table, b.info);
	for (b.at = 0; b.at < n; b.at += b.n) {
		b.first = (uint32_t)first + 1 + b.at;
		b.n = MIN(n - b.at, FILL_BLOCK);
		if (path->count > 1 && follow(p, path, b.first, b.n, rows))
			b.rows = rows;
		OW_TRY(fill_block(&b, out, err));
	}
	return OW_OK;
}
