/*
 * bigquery_format.h: FORMAT of BigQuery, over texts: %'d, %5.2f, %-10s, %t. %T, %p and %P need the types of the values and
 * are refused. format_function.c makes a function of SQL of it.
 */
#ifndef SQL_BIGQUERY_FORMAT_H
#define SQL_BIGQUERY_FORMAT_H

#include "base/buf.h"
#include "base/error.h"

/* Appends the values in that format; a value without a pointer is NULL. *is_null says that the result is NULL: a value is, and
 * its specifier is not %t. */
ow_status bigquery_format(struct buf *to, struct str format, const struct str *values, size_t count,
			  bool *is_null, struct ow_error *err);

#endif
