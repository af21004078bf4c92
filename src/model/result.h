/*
 * result.h: what views, rules and queries give and sinks write: a table of typed columns, possibly a
 * tree (depth per row, rows in pre-order). Lives in its own arena and does not point into the view
 * that made it; texts may point into the model's strings, which outlive it.
 *
 * The four tfprof views (scope, graph, op, code) give a struct tree (tree.h) as well, from which the
 * columns are made; sinks that draw trees or need the ops behind a row use that.
 */
#ifndef MODEL_RESULT_H
#define MODEL_RESULT_H

#include "model/model.h"

enum result_type {
	RESULT_INT,
	RESULT_REAL,
	RESULT_TEXT,
	RESULT_BOOL,
	RESULT_NUMBER /* digits as text: exact, beyond 64 bits or with decimals; of queries only */
};

/* What a number means; sinks for people format it accordingly, sinks for programs print it as it is. */
enum result_unit {
	RESULT_PLAIN,
	RESULT_NS,
	RESULT_MICROS, /* tfprof's unit: columns named *_micros */
	RESULT_BYTES,
	RESULT_COUNT, /* may be abbreviated: 1.20k */
	RESULT_PERCENT
};

struct result_column {
	const char *name;  /* for programs: total_micros */
	const char *title; /* for people: "total time" */
	enum result_type type;
	enum result_unit unit;
	union {
		int64_t *ints; /* RESULT_INT, RESULT_BOOL */
		double *reals;
		struct str *texts; /* RESULT_TEXT, RESULT_NUMBER */
	};
	uint8_t *known; /* NULL = all known; else 0 marks a missing value (JSON null, text "-") */
	bool fixed;	/* a text that must not be shortened, such as a bar */
	bool for_programs; /* means nothing to people: the sink text leaves it out */
};

#define RESULT_COLUMNS_MAX 256

struct tree;

struct result {
	struct mem *mem;
	struct arena arena;
	const char *name; /* of the view: "op" */
	struct result_column columns[RESULT_COLUMNS_MAX];
	uint32_t column_count;
	uint32_t row_count, row_cap;
	uint32_t *depth; /* per row, from 0; NULL when the result is flat */
	struct tree *tree;
	ow_status status; /* of the first failed append */
	char *footer;	  /* a sentence to be shown below, or NULL */
};

struct result *result_new(struct mem *mem, const char *name, struct error *err);
void result_free(struct result *r);

/* Adds a column before any row; returns its number. name and title must be literals. */
uint32_t result_column(struct result *r, const char *name, const char *title, enum result_type type,
		       enum result_unit unit);
/* Drops columns and rows, and what failed when they were made. */
void result_clear_columns(struct result *r);
/* Makes the result a tree; before any row. */
void result_make_tree(struct result *r);

/* Room for that many rows in all; false (and sticky) when there is none. */
bool result_reserve(struct result *r, uint32_t rows);
/* Adds a row whose values are zero/empty and returns its number; on failure UINT32_MAX and sticky. */
uint32_t result_row(struct result *r, uint32_t depth);
void result_set_int(struct result *r, uint32_t row, uint32_t column, int64_t value);
void result_set_real(struct result *r, uint32_t row, uint32_t column, double value);
/* The text is copied. */
void result_set_text(struct result *r, uint32_t row, uint32_t column, struct str value);
/* Without copying, for texts of the model. */
void result_set_model_text(struct result *r, uint32_t row, uint32_t column, struct str value);
void result_set_unknown(struct result *r, uint32_t row, uint32_t column);

/* Columns of digits all of which fit into 64 bits become columns of integers: sums of a query are such. Without
 * memory they stay what they are. */
void result_narrow(struct result *r);

/* Keeps the first `rows` rows. */
void result_limit(struct result *r, uint32_t rows);

#endif
