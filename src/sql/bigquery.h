/*
 * bigquery.h: makes queries written for BigQuery run on the relations. Pure text: a small tokenizer that knows
 * strings, comments and quoted names, and leaves everything it does not know alone.
 *
 *	`project.dataset.table`		the last part: a relation; a table that the session made; the name of a run
 *					or file, whose trace_events are meant. With one run any other name means its
 *					trace_events, with several it is an error
 *	FROM t, UNNEST(t.traceEvents) AS e WITH OFFSET AS i
 *					trace_events AS e; its `index` is also called i. e.args.name and e.args.op are
 *					the columns arg_name and arg_op, e.args.x is arg_value(e.args, 'x')
 *	"text" beside back-ticks	a text, as it is there; else DuckDB takes it for a name
 *	%%bigquery --project …		the line of a notebook is left out, and so are comments with #
 *	list[OFFSET(2)], r"\d+", * EXCEPT (a), SAFE_CAST
 *					DuckDB's forms of these
 *	SAFE_DIVIDE(a, b), FLOAT64	stay; the caller creates what bigquery_names.functions asks for
 *	LOG, FORMAT, REGEXP_EXTRACT, …	beside back-ticks: functions that do the same as there
 *	"a\"b\n", '''text'''		beside back-ticks: escapes and three quotes mean what they do there
 *	`p`.`d`.`t`, p.d.t		the same as `p.d.t`
 * A list called traceEvents of any other table is plain SQL and stays.
 */
#ifndef SQL_BIGQUERY_H
#define SQL_BIGQUERY_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* The names that a query can use, and what was found in its text. */
struct bigquery_names {
	struct ow_list runs;
	struct ow_list files;  /* paths of the runs' inputs */
	struct ow_list tables; /* tables that statements of the session created */
	uint64_t functions;    /* result: functions of BigQuery in the text, see bigquery_create */
	bool defines;	       /* set by the rewriting: the SQL text contains CREATE FUNCTION */
};

/* Appends the text, rewritten where necessary. */
ow_status bigquery_rewrite(struct str text, struct bigquery_names *names, struct arena *scratch,
			   struct buf *out, struct ow_error *err);

/* The text without the first lines that belong to a notebook. */
struct str bigquery_body(struct str text);

/* bigquery_functions.c: the bit of a function or type of BigQuery that a statement can create; 0 for all others. */
uint64_t bigquery_function(struct str name);
/* The statement that creates the function with this bit number, or NULL. */
const char *bigquery_create(unsigned bit);
/* If DuckDB's function of this name and number of arguments behaves differently from BigQuery's: the name of a
 * function that behaves like BigQuery's; else NULL. */
const char *bigquery_renamed(struct str name, size_t arguments);
/* What to write instead of a BigQuery function for which there is no macro; empty if there is no replacement; NULL
 * for other names. */
const char *bigquery_instead(struct str name);

/* The n-th statement of a text (from 0), without its semicolon; empty beyond the last. Statements of blanks and
 * comments alone do not count. */
struct str bigquery_statement(struct str text, size_t n);

/* The first word of a statement, after blanks and comments; empty when it begins with something else. */
struct str bigquery_first_word(struct str statement);

#endif
