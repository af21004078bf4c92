/*
 * bigquery.h: makes queries written for BigQuery run on the relations. Pure text: a small tokenizer that knows
 * strings, comments and quoted names, and leaves everything it does not know alone.
 *
 *	`project.dataset.table`		the last part: a relation; a run's name, whose trace_events are meant; any
 *					other name with dots means the trace_events of all runs
 *	FROM t, UNNEST(t.traceEvents) AS e WITH OFFSET AS i
 *					trace_events AS e; its `index` is also called i. e.args.name and e.args.op are
 *					the columns arg_name and arg_op, e.args.x is arg_value(e.args, 'x')
 *	"text" beside back-ticks	a text, as it is there; else DuckDB takes it for a name
 *	%%bigquery --project …		the line of a notebook is left out
 */
#ifndef SQL_BIGQUERY_H
#define SQL_BIGQUERY_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* Appends the text, rewritten where it has to be. */
ow_status bigquery_rewrite(struct str text, const struct ow_list *runs, struct arena *scratch,
			   struct buf *out, struct error *err);

/* The n-th statement of a text (from 0), without its semicolon; empty when there is none. Statements of blanks
 * and comments alone do not count. */
struct str bigquery_statement(struct str text, size_t n);

#endif
