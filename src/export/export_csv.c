/*
 * export_csv.c: comma-separated values as RFC 4180 has them: a header, CR LF, quotes where needed. Unknown
 * values are empty; no relation has empty texts. Nothing is done about cells that a spreadsheet takes for
 * formulas.
 */
#include "export/format.h"

#include <math.h>

static bool needs_quotes(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == ',' || s.ptr[i] == '"' || s.ptr[i] == '\n' || s.ptr[i] == '\r')
			return true;
	return !s.len || s.ptr[0] == ' ' || s.ptr[s.len - 1] == ' ';
}

static void put_text(struct buf *to, struct str s)
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

static void put_csv_real(struct buf *to, double value)
{
	if (isnan(value))
		buf_puts(to, "NaN");
	else if (isinf(value))
		buf_puts(to, value < 0 ? "-Infinity" : "Infinity");
	else
		put_real(to, value);
}

static void put_value(struct buf *to, const struct rows *rows, const struct rows_column *column,
		      uint32_t i)
{
	if (column->c->type == RELATION_TEXT) {
		put_text(to, rows_text(rows, column, i));
		return;
	}
	if (!rows_known(column, i))
		return;
	switch (column->c->type) {
	case RELATION_BOOL:
		buf_puts(to, ((const bool *)column->values)[i] ? "true" : "false");
		return;
	case RELATION_INT32:
		put_int(to, ((const int32_t *)column->values)[i]);
		return;
	case RELATION_INT64:
		put_int(to, ((const int64_t *)column->values)[i]);
		return;
	case RELATION_UINT64:
		put_uint(to, ((const uint64_t *)column->values)[i]);
		return;
	default:
		put_csv_real(to, ((const double *)column->values)[i]);
	}
}

static ow_status begin(struct export_table *table, struct error *err)
{
	struct buf *to = &table->stream.in;

	(void)err;
	for (uint32_t c = 0; c < table->rows.column_count; c++) {
		buf_puts(to, c ? "," : "");
		put_text(to, str_from(table->names[table->rows.columns[c].index]));
	}
	buf_puts(to, "\r\n");
	return OW_OK;
}

static ow_status block(struct export_table *table, struct error *err)
{
	const struct rows *rows = &table->rows;
	struct buf *to = &table->stream.in;

	for (uint32_t i = 0; i < rows->n; i++) {
		for (uint32_t c = 0; c < rows->column_count; c++) {
			if (c)
				buf_add_char(to, ',');
			put_value(to, rows, &rows->columns[c], i);
		}
		buf_puts(to, "\r\n");
	}
	return stream_flush(&table->stream, err);
}

static ow_status end(struct export_table *table, struct error *err)
{
	(void)table;
	(void)err;
	return OW_OK;
}

const struct export_format export_csv = {
	.name = "csv",
	.extension = ".csv",
	.doc = "comma-separated values (RFC 4180)",
	.packings = 1u << PACKING_NONE | 1u << PACKING_GZIP | 1u << PACKING_ZSTD,
	.usual = PACKING_NONE,
	.begin = begin,
	.block = block,
	.end = end,
};
