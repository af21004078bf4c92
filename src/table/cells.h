/*
 * cells.h: values of any table as text for programs. The sinks csv, json and ndjson and the exports of the same names
 * write their cells here, so a value looks the same in all of them. Blocks of rows come from rows.h. Text for people is
 * sink/table/sink_text.c.
 */
#ifndef TABLE_CELLS_H
#define TABLE_CELLS_H

#include "base/buf.h"
#include "table/rows.h"

/* Write the shortest text that reads back as the same number. */
void put_int(struct buf *to, int64_t value);
void put_uint(struct buf *to, uint64_t value);
void put_real(struct buf *to, double value); /* the value must be finite */
/* Writes UTF-8; each invalid byte becomes U+FFFD. */
void put_utf8(struct buf *to, struct str text);

enum cell_style {
	CELL_PLAIN,  /* infinities and NaN are written as NULL */
	CELL_EXPORT, /* in CSV infinities and NaN have names: Infinity, NaN */
	/* for BigQuery's loader: names in quotes, also for integers that it would round */
	CELL_BIGQUERY,
};

/* Write a value of row i of the block. NULL is an empty cell in CSV and null in JSON. */
void cell_csv(struct buf *to, const struct rows *rows, const struct rows_column *column, uint32_t i,
	      enum cell_style style);
void cell_json(struct buf *to, const struct rows *rows, const struct rows_column *column,
	       uint32_t i, enum cell_style style);
/* Writes a text as a CSV cell, quoted if necessary; for headers. */
void cell_csv_text(struct buf *to, struct str s);

/* Members of a JSON object, for each row. json_names makes the text before each value once: begin or between, the
 * name in quotes, after. `names` are those of all columns of the table, NULL = their own. Returns NULL if memory
 * runs out. */
struct str *json_names(const struct rows *rows, const char *const *names, const char *begin,
		       const char *between, const char *after, struct arena *arena,
		       struct ow_error *err);
void row_json(struct buf *to, const struct rows *rows, const struct str *heads, uint32_t i,
	      enum cell_style style);

#endif
