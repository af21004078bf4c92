/*
 * sink_arrow.c: any table as a stream of Arrow's IPC format, for pyarrow, polars, DuckDB and other readers of
 * .arrows files; a tree has the columns depth and parent. Results in pieces become one stream of several batches.
 */
#include "sink/table/table_out.h"
#include "table/arrow_ipc.h"

static ow_status put_rows(struct table_out *o, struct arrow_ipc *a, struct ow_error *err)
{
	struct arrow_block block;

	for (;;) {
		bool full = false;

		OW_TRY(rows_next(&o->rows, err));
		if (o->rows.n)
			OW_TRY(arrow_ipc_add(a, &o->rows, &full, err));
		if (full || !o->rows.n)
			OW_TRY(arrow_ipc_flush(a, &o->to, &block, err));
		OW_TRY(table_out_flush(o, err));
		if (!o->rows.n)
			return OW_OK;
	}
}

static ow_status arrow_write(struct table *table, const struct sink_options *options,
			     const struct out *out, struct ow_error *err)
{
	struct arrow_ipc a = { 0 };
	struct table_out o;
	ow_status status = table_out_begin_levels(&o, table, out, err);

	if (status == OW_OK)
		status = arrow_ipc_init(&a, &o.rows, NULL, false, false, err);
	if (status == OW_OK && !options->continued)
		status = arrow_ipc_schema(&a, &o.to, err);
	if (status == OW_OK)
		status = put_rows(&o, &a, err);
	if (status == OW_OK && !options->continues)
		arrow_ipc_end_stream(&o.to);
	arrow_ipc_release(&a);
	return table_out_end(&o, status, err);
}

const struct sink sink_arrow = {
	.name = "arrow",
	.summary = "a stream of Arrow's IPC format",
	.extension = "arrows",
	.accepts = SINK_RESULT | SINK_TREES,
	.binary = true,
	.write = arrow_write,
};
