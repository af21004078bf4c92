/*
 * answer.c: parses the answer of a ClickHouse server (tab-separated names, types, rows) into a result table;
 * api/remote.c calls it with the whole answer in memory. Integers that do not fit 64 bits are kept as numbers in
 * text. It does not talk to the server (http.c does) and does not choose an output format: sinks do.
 */
#include "push/answer.h"

#include "base/buf.h"
#include "push/click.h"

#include <errno.h>

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Appends the field with its backslash escapes decoded. */
static void unescape(struct buf *to, struct str field)
{
	static const char from[] = "bfrnt0av", into[] = "\b\f\r\n\t\0\a\v";

	for (size_t i = 0; i < field.len; i++) {
		const char *code;

		if (field.ptr[i] != '\\' || i + 1 == field.len) {
			buf_add_char(to, field.ptr[i]);
			continue;
		}
		i++;
		if (field.ptr[i] == 'x' && i + 2 < field.len && hex_value(field.ptr[i + 1]) >= 0 &&
		    hex_value(field.ptr[i + 2]) >= 0) {
			buf_add_char(to, (char)(hex_value(field.ptr[i + 1]) * 16 +
						hex_value(field.ptr[i + 2])));
			i += 2;
			continue;
		}
		code = field.ptr[i] ? strchr(from, field.ptr[i]) : NULL;
		buf_add_char(to, code ? into[code - from] : field.ptr[i]);
	}
}

static bool is_null(struct str field)
{
	return str_eq(field, STR("\\N"));
}

static bool to_real(struct str field, double *value)
{
	char text[64], *end;

	if (!field.len || field.len >= sizeof(text))
		return false;
	memcpy(text, field.ptr, field.len);
	text[field.len] = 0;
	*value = strtod(text, &end);
	return !*end;
}

/* Strips wrappers from a type: "Nullable(LowCardinality(String))" becomes "String". */
static struct str bare_type(struct str type)
{
	static const struct str wrappers[] = { STR("Nullable("), STR("LowCardinality(") };

	for (bool found = true; found;) {
		found = false;
		for (size_t i = 0; i < ARRAY_COUNT(wrappers); i++)
			if (str_starts(type, wrappers[i]) && str_ends(type, STR(")"))) {
				type = str_skip(type, wrappers[i].len);
				type = str_first(type, type.len - 1);
				found = true;
			}
	}
	return type;
}

static bool is_one_of(struct str type, const struct str *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(type, names[i]))
			return true;
	return false;
}

static enum column_type type_of(struct str type)
{
	static const struct str ints[] = {
		STR("Int8"),  STR("Int16"),  STR("Int32"),  STR("Int64"),
		STR("UInt8"), STR("UInt16"), STR("UInt32"), STR("UInt64")
	};
	static const struct str longs[] = { STR("Int128"), STR("Int256"), STR("UInt128"),
					    STR("UInt256") };
	static const struct str reals[] = { STR("Float32"), STR("Float64"), STR("BFloat16") };

	type = bare_type(type);
	if (is_one_of(type, ints, ARRAY_COUNT(ints)))
		return TYPE_INT;
	if (is_one_of(type, reals, ARRAY_COUNT(reals)))
		return TYPE_REAL;
	if (is_one_of(type, longs, ARRAY_COUNT(longs)) || str_starts(type, STR("Decimal")))
		return TYPE_NUMBER;
	return str_eq(type, STR("Bool")) ? TYPE_BOOL : TYPE_TEXT;
}

/* Changes integer columns to text if a value does not fit 64 bits; such numbers are kept as they are written. */
static void widen(enum column_type *types, size_t count, struct str rest)
{
	struct str line, field;
	int64_t number;

	while (click_line(&rest, &line))
		for (size_t i = 0; i < count && click_field(&line, &field); i++)
			if (types[i] == TYPE_INT && !is_null(field) && !str_to_i64(field, &number))
				types[i] = TYPE_NUMBER;
}

static ow_status unreadable(struct ow_error *err)
{
	return error_set(err, OW_E_FORMAT,
			 "the answer of the server is not a table of names, types and rows; leave "
			 "FORMAT out of the text, --json and --csv choose the form");
}

static ow_status add_columns(struct table *r, struct str names, const enum column_type *types,
			     size_t count, struct ow_error *err)
{
	struct buf name;
	struct str field;

	buf_init(&name, r->mem);
	for (size_t i = 0; i < count && click_field(&names, &field); i++) {
		const char *copy;

		buf_clear(&name);
		unescape(&name, field);
		copy = name.failed ? NULL : arena_cstr(&r->arena, buf_str(&name));
		if (!copy) {
			buf_release(&name);
			return error_no_memory(err);
		}
		table_add_column(r, copy, copy, types[i], UNIT_NONE);
	}
	buf_release(&name);
	return OW_OK;
}

static bool set_cell(struct table *r, uint32_t row, uint32_t column, struct str field,
		     struct buf *text)
{
	int64_t number;
	double real;

	if (is_null(field)) {
		table_set_unknown(r, row, column);
		return true;
	}
	switch (r->columns[column].type) {
	case TYPE_INT:
		if (!str_to_i64(field, &number))
			return false;
		table_set_int(r, row, column, number);
		return true;
	case TYPE_REAL:
		if (!to_real(field, &real))
			return false;
		table_set_real(r, row, column, real);
		return true;
	case TYPE_BOOL:
		table_set_int(r, row, column,
			      str_eq(field, STR("true")) || str_eq(field, STR("1")));
		return true;
	default: /* texts, and numbers kept as text */
		break;
	}
	buf_clear(text);
	unescape(text, field);
	table_set_text(r, row, column, buf_str(text));
	return !text->failed;
}

static ow_status add_rows(struct table *r, struct str rest, struct ow_error *err)
{
	struct str line, field;
	struct buf text;
	bool good = true;

	buf_init(&text, r->mem);
	while (good && click_line(&rest, &line)) {
		uint32_t row = table_add_row(r, 0);

		if (row == UINT32_MAX)
			break;
		for (uint32_t i = 0; i < r->column_count && good; i++)
			good = click_field(&line, &field) && set_cell(r, row, i, field, &text);
		good = good && !click_field(&line, &field);
	}
	buf_release(&text);
	if (r->status != OW_OK || text.failed)
		return error_no_memory(err);
	return good ? OW_OK : unreadable(err);
}

ow_status answer_read(struct table *r, struct str text, struct ow_error *err)
{
	enum column_type types[TABLE_COLUMNS_MAX];
	struct str names, kinds, field, count_names;
	size_t count = 0;

	if (!text.len)
		return OW_OK;
	if (!click_line(&text, &names) || !click_line(&text, &kinds))
		return unreadable(err);
	for (count_names = names; click_field(&count_names, &field); count++)
		if (count == TABLE_COLUMNS_MAX)
			return error_set(err, OW_E_LIMIT,
					 "the answer has more than %d columns; name those that you "
					 "want",
					 TABLE_COLUMNS_MAX);
	for (size_t i = 0; i < count; i++) {
		if (!click_field(&kinds, &field))
			return unreadable(err);
		types[i] = type_of(field);
	}
	if (click_field(&kinds, &field))
		return unreadable(err);
	widen(types, count, text);
	OW_TRY(add_columns(r, names, types, count, err));
	return add_rows(r, text, err);
}
