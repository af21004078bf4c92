/*
 * sink_csv.c: any table as comma-separated values (RFC 4180: CR LF after each record, quotes where needed, a header).
 * Numbers are exact and unscaled, unknown values empty, NaN and infinities have names; a tree has its depth in a first column. Cells that a
 * spreadsheet would take for formulas are not changed.
 */
#include "sink/table/table_out.h"

static void put_header(struct buf *to, const struct table *t)
{
	if (t->depth)
		buf_puts(to, "depth");
	for (uint32_t c = 0; c < t->column_count; c++) {
		buf_puts(to, c || t->depth ? "," : "");
		cell_csv_text(to, str_from(t->columns[c].name));
	}
	buf_puts(to, "\r\n");
}

static void put_row(struct table_out *o, const struct table *t, uint32_t i)
{
	if (t->depth)
		put_int(&o->to, t->depth[o->rows.row + i]);
	for (uint32_t c = 0; c < o->rows.column_count; c++) {
		buf_puts(&o->to, c || t->depth ? "," : "");
		cell_csv(&o->to, &o->rows, &o->rows.columns[c], i, CELL_EXPORT);
	}
	buf_puts(&o->to, "\r\n");
}

static ow_status csv_write(struct table *table, const struct sink_options *options,
			   const struct out *out, struct ow_error *err)
{
	struct table_out o;
	ow_status status = table_out_begin(&o, table, out, err);

	if (status == OW_OK && !options->continued)
		put_header(&o.to, table);
	while (status == OW_OK && (status = rows_next(&o.rows, err)) == OW_OK && o.rows.n)
		for (uint32_t i = 0; i < o.rows.n && status == OW_OK; i++) {
			put_row(&o, table, i);
			status = table_out_flush(&o, err);
		}
	return table_out_end(&o, status, err);
}

const struct sink sink_csv = {
	.name = "csv",
	.summary = "comma-separated values with a header",
	.extension = "csv",
	.accepts = SINK_RESULT | SINK_TREES,
	.write = csv_write,
};
