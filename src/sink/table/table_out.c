/*
 * table_out.c: reading rows and writing bytes for the sinks csv, json, ndjson and arrow; see table_out.h. Knows no
 * format.
 */
#include "sink/table/table_out.h"

#define MUCH ((size_t)1 << 16)

ow_status table_out_begin(struct table_out *o, struct table *table, const struct out *out,
			  struct ow_error *err)
{
	*o = (struct table_out){ .out = out };
	arena_init(&o->arena, table->mem);
	buf_init(&o->to, table->mem);
	OW_TRY(table_prepare(table, err));
	OW_TRY(rows_open(&o->rows, table, NULL, err));
	rows_start(&o->rows, 0, table->part_count);
	return OW_OK;
}

ow_status table_out_begin_levels(struct table_out *o, struct table *table, const struct out *out,
				 struct ow_error *err)
{
	struct table *levels;
	ow_status status;

	/* the caller calls table_out_end even when this function fails */
	*o = (struct table_out){ .out = out };
	if (!table->depth)
		return table_out_begin(o, table, out, err);
	OW_TRY(table_levels(table, &levels, err));
	status = table_out_begin(o, levels, out, err);
	o->levels = levels;
	return status;
}

static ow_status write_out(struct table_out *o, struct ow_error *err)
{
	ow_status status = OW_OK;

	if (o->to.failed)
		return error_no_memory(err);
	if (o->to.len)
		status = o->out->write(o->out->arg, o->to.ptr, o->to.len, err);
	buf_clear(&o->to);
	return status;
}

ow_status table_out_flush(struct table_out *o, struct ow_error *err)
{
	return o->to.len >= MUCH || o->to.failed ? write_out(o, err) : OW_OK;
}

ow_status table_out_end(struct table_out *o, ow_status status, struct ow_error *err)
{
	if (status == OW_OK)
		status = write_out(o, err);
	if (o->rows.t)
		rows_close(&o->rows);
	if (o->to.mem)
		buf_release(&o->to);
	if (o->arena.mem)
		arena_release(&o->arena);
	table_free(o->levels);
	return status;
}
