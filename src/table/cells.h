/*
 * cells.h: values of any table as text for programs. The sinks csv, json and ndjson and the exports of the same names
 * write their cells here, so a value looks the same in all of them. Blocks of rows come from rows.h. Text for people is
 * sink/table/sink_text.c.
 */
#ifndef TABLE_CELLS_H
#define TABLE_CELLS_H

#include "base/buf.h"
#include "table/rows.h"

/* The shortest text that reads back as the same number. */
void put_int(struct buf *to, int64_t value);
void put_uint(struct buf *to, uint64_t value);
void put_real(struct buf *to, double value); /* finite */
/* UTF-8; each invalid byte becomes U+FFFD. */
void put_utf8(struct buf *to, struct str text);

enum cell_style {
	CELL_PLAIN,    /* infinities and NaN are written like NULL */
	CELL_EXPORT,   /* in CSV they have names: Infinity, NaN */
	CELL_BIGQUERY, /* for BigQuery's loader: names in quotes, also integers that it would round */
};

/* A value of row i of the block. NULL is an empty cell of CSV, null in JSON. */
void cell_csv(struct buf *to, const struct rows *rows, const struct rows_column *column, uint32_t i,
	      enum cell_style style);
void cell_json(struct buf *to, const struct rows *rows, const struct rows_column *column,
	       uint32_t i, enum cell_style style);
/* A text as a cell of CSV, quoted where needed; for headers. */
void cell_csv_text(struct buf *to, struct str s);

/* Members of a JSON object per row. json_names makes the text before each value once: begin or between, the name in
 * quotes, after. `names` are those of all columns of the table, NULL = their own. NULL without memory. */
struct str *json_names(const struct rows *rows, const char *const *names, const char *begin,
		       const char *between, const char *after, struct arena *arena,
		       struct ow_error *err);
void row_json(struct buf *to, const struct rows *rows, const struct str *heads, uint32_t i,
	      enum cell_style style);

#endif
