/*
 * sink_ndjson.c: any table as newline-delimited JSON: an object per row, for programs that read line by line. Values
 * are those of sink_json.c; a tree is not nested, its rows have the members depth and parent.
 */
#include "sink/table/table_out.h"

static ow_status ndjson_write(struct table *table, const struct sink_options *options,
			      const struct out *out, struct ow_error *err)
{
	struct table_out o;
	ow_status status = table_out_begin_levels(&o, table, out, err);
	struct str *names = NULL;

	(void)options;
	if (status == OW_OK) {
		names = json_names(&o.rows, NULL, "{", ",", ":", &o.arena, err);
		status = names ? OW_OK : OW_E_NO_MEMORY;
	}
	while (status == OW_OK && (status = rows_next(&o.rows, err)) == OW_OK && o.rows.n)
		for (uint32_t i = 0; i < o.rows.n && status == OW_OK; i++) {
			row_json(&o.to, &o.rows, names, i, CELL_PLAIN);
			buf_puts(&o.to, o.rows.column_count ? "}\n" : "{}\n");
			status = table_out_flush(&o, err);
		}
	return table_out_end(&o, status, err);
}

const struct sink sink_ndjson = {
	.name = "ndjson",
	.summary = "newline-delimited JSON, an object per row",
	.extension = "ndjson",
	.accepts = SINK_RESULT | SINK_TREES,
	.write = ndjson_write,
};
