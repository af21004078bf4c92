/*
 * sink_parquet.c: any table as a Parquet file; a tree has the columns depth and parent. DuckDB writes it; this layer
 * does not know DuckDB, so the caller passes the function (api/result.c). Results of SQL are written by
 * ow_sql_write_parquet.
 */
#include "sink/sink.h"

static ow_status parquet_write(struct table *table, const struct sink_options *options,
			       const struct out *out, struct ow_error *err)
{
	struct table *levels = NULL;
	ow_status status;

	if (!options->parquet)
		return error_set(err, OW_E_USAGE, "this result cannot be written as Parquet");
	if (table->depth)
		OW_TRY(table_levels(table, &levels, err));
	status = options->parquet(levels ? levels : table, out, err);
	table_free(levels);
	return status;
}

const struct sink sink_parquet = {
	.name = "parquet",
	.summary = "a Parquet file, by DuckDB",
	.extension = "parquet",
	.accepts = SINK_RESULT | SINK_TREES,
	.binary = true,
	.write = parquet_write,
};
