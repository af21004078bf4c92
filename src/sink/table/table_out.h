/*
 * table_out.h: what the sinks for programs (csv, json, ndjson, arrow) share: rows of any table in blocks, and the bytes
 * that go out. The sinks put text into `to` and call table_out_flush now and then. Cells are table/cells.h's.
 *
 *	status = table_out_begin(&o, table, out, err);
 *	while (status == OW_OK && (status = rows_next(&o.rows, err)) == OW_OK && o.rows.n)
 *		…
 *	return table_out_end(&o, status, err);
 */
#ifndef SINK_TABLE_OUT_H
#define SINK_TABLE_OUT_H

#include "sink/sink.h"
#include "table/cells.h"

struct table_out {
	struct rows rows;
	struct arena arena; /* memory that the sink may use until table_out_end */
	struct buf to;
	const struct out *out;
	struct table *levels; /* the table made by table_out_begin_levels */
};

/* Prepares the table. The caller calls table_out_end afterwards, also after a failure. */
ow_status table_out_begin(struct table_out *o, struct table *table, const struct out *out,
			  struct ow_error *err);
/* Like table_out_begin, for formats without nesting: a tree gets two columns at the front, depth and parent. */
ow_status table_out_begin_levels(struct table_out *o, struct table *table, const struct out *out,
				 struct ow_error *err);
/* Writes the bytes in `to` if there are many. */
ow_status table_out_flush(struct table_out *o, struct ow_error *err);
/* Writes the remaining bytes, unless `status` is a failure, and releases everything. */
ow_status table_out_end(struct table_out *o, ow_status status, struct ow_error *err);

#endif
