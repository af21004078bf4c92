/*
 * cells.c: values of any table as text for programs: the only CSV writer, JSON writer and number format of sinks and
 * exports; see cells.h. Numbers for people are in base/human.h.
 */
#include "table/cells.h"

#include "base/json_escape.h"

#include <math.h>

void put_uint(struct buf *to, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char text[20], *at = text + sizeof(text);

	for (; value >= 100; value /= 100)
		memcpy(at -= 2, pairs + value % 100 * 2, 2);
	if (value >= 10)
		memcpy(at -= 2, pairs + value * 2, 2);
	else
		*--at = (char)('0' + value);
	buf_add(to, at, (size_t)(text + sizeof(text) - at));
}

void put_int(struct buf *to, int64_t value)
{
	if (value >= 0) {
		put_uint(to, (uint64_t)value);
		return;
	}
	buf_add_char(to, '-');
	put_uint(to, -(uint64_t)value);
}

void put_real(struct buf *to, double value)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf_puts(to, text);
}

void put_utf8(struct buf *to, struct str text)
{
	while (text.len) {
		size_t valid = utf8_valid_prefix(text);

		buf_add(to, text.ptr, valid);
		if (valid == text.len)
			return;
		buf_puts(to, "\xef\xbf\xbd");
		text = str_skip(text, valid + 1);
	}
}

static void put_infinity(struct buf *to, double value)
{
	buf_puts(to, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
}

/* Writes an integer of any width. */
static void put_whole(struct buf *to, const struct rows_column *column, uint32_t i)
{
	if (column->c->type == TYPE_INT32)
		put_int(to, ((const int32_t *)column->values)[i]);
	else if (column->c->type == TYPE_UINT64)
		put_uint(to, ((const uint64_t *)column->values)[i]);
	else
		put_int(to, ((const int64_t *)column->values)[i]);
}

static bool needs_quotes(struct str s)
{
	if (!s.len)
		return true; /* an empty text differs from an unknown one */
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == ',' || s.ptr[i] == '"' || s.ptr[i] == '\n' || s.ptr[i] == '\r')
			return true;
	return s.ptr[0] == ' ' || s.ptr[s.len - 1] == ' ';
}

void cell_csv_text(struct buf *to, struct str s)
{
	struct str piece;

	if (!s.ptr)
		return;
	if (!needs_quotes(s)) {
		put_utf8(to, s);
		return;
	}
	buf_add_char(to, '"');
	for (bool first = true; str_split(&s, '"', &piece); first = false) {
		buf_puts(to, first ? "" : "\"\"");
		put_utf8(to, piece);
	}
	buf_add_char(to, '"');
}

void cell_csv(struct buf *to, const struct rows *rows, const struct rows_column *column, uint32_t i,
	      enum cell_style style)
{
	enum column_type type = column->c->type;
	double real;

	if (type == TYPE_TEXT) {
		cell_csv_text(to, rows_text(rows, column, i));
	} else if (type == TYPE_NUMBER) {
		buf_add_str(to, rows_text(rows, column, i));
	} else if (!rows_known(column, i)) {
		return;
	} else if (type == TYPE_BOOL) {
		buf_puts(to, ((const bool *)column->values)[i] ? "true" : "false");
	} else if (type == TYPE_REAL) {
		real = ((const double *)column->values)[i];
		if (isfinite(real))
			put_real(to, real);
		else if (style != CELL_PLAIN)
			put_infinity(to, real);
	} else {
		put_whole(to, column, i);
	}
}

#define EXACT ((uint64_t)1 << 53)

/* Whether BigQuery's loader would round an integer. */
static bool is_inexact(const struct rows_column *column, uint32_t i)
{
	int64_t value;

	if (column->c->type == TYPE_UINT64)
		return ((const uint64_t *)column->values)[i] >= EXACT;
	if (column->c->type != TYPE_INT)
		return false;
	value = ((const int64_t *)column->values)[i];
	return value >= (int64_t)EXACT || value <= -(int64_t)EXACT;
}

static void json_real(struct buf *to, double value, enum cell_style style)
{
	if (isfinite(value)) {
		put_real(to, value);
	} else if (style != CELL_BIGQUERY) {
		buf_puts(to, "null"); /* JSON has no infinity */
	} else {
		buf_add_char(to, '"');
		put_infinity(to, value);
		buf_add_char(to, '"');
	}
}

void cell_json(struct buf *to, const struct rows *rows, const struct rows_column *column,
	       uint32_t i, enum cell_style style)
{
	enum column_type type = column->c->type;
	struct str text;
	bool quoted;

	if (type == TYPE_TEXT || type == TYPE_NUMBER) {
		text = rows_text(rows, column, i);
		if (!text.ptr || (column->c->json && !text.len))
			buf_puts(to, "null");
		else if (type == TYPE_TEXT && !column->c->json)
			json_quote(to, text);
		else
			buf_add_str(to, text);
	} else if (!rows_known(column, i)) {
		buf_puts(to, "null");
	} else if (type == TYPE_BOOL) {
		buf_puts(to, ((const bool *)column->values)[i] ? "true" : "false");
	} else if (type == TYPE_REAL) {
		json_real(to, ((const double *)column->values)[i], style);
	} else {
		quoted = style == CELL_BIGQUERY && is_inexact(column, i);
		if (quoted)
			buf_add_char(to, '"');
		put_whole(to, column, i);
		if (quoted)
			buf_add_char(to, '"');
	}
}

struct str *json_names(const struct rows *rows, const char *const *names, const char *begin,
		       const char *between, const char *after, struct arena *arena,
		       struct ow_error *err)
{
	struct str *heads = ARENA_ARRAY(arena, struct str, rows->column_count + 1);
	struct buf text;

	buf_init(&text, arena->mem);
	for (uint32_t c = 0; heads && c < rows->column_count; c++) {
		uint32_t column = rows->columns[c].index;

		buf_clear(&text);
		buf_puts(&text, c ? between : begin);
		json_quote(&text, str_from(names ? names[column] : rows->t->columns[column].name));
		buf_puts(&text, after);
		heads[c] = arena_str(arena, buf_str(&text));
		if (text.failed || !heads[c].ptr)
			heads = NULL;
	}
	buf_release(&text);
	if (!heads)
		error_no_memory(err);
	return heads;
}

void row_json(struct buf *to, const struct rows *rows, const struct str *heads, uint32_t i,
	      enum cell_style style)
{
	for (uint32_t c = 0; c < rows->column_count; c++) {
		buf_add_str(to, heads[c]);
		cell_json(to, rows, &rows->columns[c], i, style);
	}
}
