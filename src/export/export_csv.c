/*
 * export_csv.c: comma-separated values as in RFC 4180: a header, CR LF, quotes where needed. Unknown values are empty;
 * no relation has empty texts. Cells that a spreadsheet would take for formulas are not changed.
 */
#include "export/format.h"

static ow_status begin(struct export_table *table, struct ow_error *err)
{
	struct buf *to = &table->stream.in;

	(void)err;
	for (uint32_t c = 0; c < table->rows.column_count; c++) {
		buf_puts(to, c ? "," : "");
		cell_csv_text(to, str_from(table->names[table->rows.columns[c].index]));
	}
	buf_puts(to, "\r\n");
	return OW_OK;
}

static ow_status block(struct export_table *table, struct ow_error *err)
{
	const struct rows *rows = &table->rows;
	struct buf *to = &table->stream.in;

	for (uint32_t i = 0; i < rows->n; i++) {
		for (uint32_t c = 0; c < rows->column_count; c++) {
			if (c)
				buf_add_char(to, ',');
			cell_csv(to, rows, &rows->columns[c], i, CELL_EXPORT);
		}
		buf_puts(to, "\r\n");
	}
	return stream_flush(&table->stream, err);
}

static ow_status end(struct export_table *table, struct ow_error *err)
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
