/*
 * bigquery_format.h: BigQuery's function FORMAT, over texts: %'d, %5.2f, %-10s, %t. %T, %p and %P need the types of the
 * values and are refused. format_function.c registers it as a function of SQL.
 */
#ifndef SQL_BIGQUERY_FORMAT_H
#define SQL_BIGQUERY_FORMAT_H

#include "base/buf.h"
#include "base/error.h"

/* Appends the formatted values; a value whose ptr is NULL is NULL. *is_null: the result is NULL, because a value is
 * NULL and its specifier is not %t. */
ow_status bigquery_format(struct buf *to, struct str format, const struct str *values, size_t count,
			  bool *is_null, struct ow_error *err);

#endif
