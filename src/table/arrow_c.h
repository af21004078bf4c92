/*
 * arrow_c.h: a held table in the form of Arrow's C data interface: the bodies of ow_result_arrow and
 * ow_result_arrow_stream (opwatch/sql.h), which fill the table first. The table must live until options->release is
 * called.
 */
#ifndef TABLE_ARROW_C_H
#define TABLE_ARROW_C_H

#include "opwatch/sql.h"
#include "table/table.h"

/* Exports a table; schema or array may be NULL. options are complete. */
ow_status arrow_c_export(const struct table *t, const struct ow_arrow_options *options,
			 struct ArrowSchema *schema, struct ArrowArray *array,
			 struct ow_error *err);
ow_status arrow_c_stream(const struct table *t, const struct ow_arrow_options *options,
			 struct ArrowArrayStream *stream, struct ow_error *err);

#endif
