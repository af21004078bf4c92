/*
 * table.h: the tables that everything after the model works with. A table has typed, documented columns and rows.
 * Views, rules and queries make tables; SQL, export, push, the sinks, Arrow and Python read them. This header knows
 * no view, no SQL and no output format.
 *
 * The rows of a table come from one of two places:
 *	held	in memory, filled by table_add_row and table_set_*: results of views, rules and servers.
 *		A tree is a table with a depth per row, rows in pre-order. It may have a struct tree (tree/tree.h), from
 *		which tree_flatten makes the columns when they are needed.
 *	read	from a source (struct table_source): columns of one or several models, found by a path, computed or
 *		made on first use. Opening one copies nothing. See relation/relation.h.
 *
 * Both are read in the same way, column by column in ranges of rows:
 *
 *	table_prepare(t, err);						rows are known
 *	for (part = 0; part < t->part_count; part++)			one part per run; a held table has one
 *		for (row = 0; row < t->parts[part].rows; row += n)
 *			table_read(t, part, column, row, n, &vec, err);
 *	table_free(t);
 *
 * After table_prepare any number of threads may read at once, each with a vector and a scratch arena of its own. The
 * models must outlive the table.
 *
 * NULL, one rule: a text is NULL when its ptr is NULL (its code is 0), any other value when its bit in `valid` is 0.
 */
#ifndef TABLE_TABLE_H
#define TABLE_TABLE_H

#include "model/model.h"

#include <pthread.h>

/* Types of columns. The first five are also the types of the public header. */
enum column_type {
	TYPE_INT,  /* values are int64_t */
	TYPE_REAL, /* values are double */
	TYPE_TEXT, /* values are struct str, or uint32_t codes of the column's dictionary */
	TYPE_BOOL, /* values are bool; int64_t in a held table */
	/* struct str of exact digits, beyond 64 bits or with decimals; only in query results */
	TYPE_NUMBER,
	TYPE_INT32, /* values are int32_t; never held */
	TYPE_UINT64 /* values are uint64_t; never held */
};

/* Texts by code. texts[0] stands for NULL. All others are UTF-8, differ from each other and are not empty,
 * and live as long as the table. Two columns with the same `texts` have the same dictionary. */
struct table_dict {
	const struct str *texts;
	uint32_t count; /* number of texts, including texts[0] */
};

/* Data that a fill may keep for the next columns of the same rows, in the scratch arena. The caller zeroes it
 * whenever it clears that arena. */
struct table_memo {
	const void *owner;
	uint64_t first;
	uint32_t n;
	void *data;
};

/* Output buffers of table_read; the caller has one per thread. */
struct table_vec {
	void *values; /* room for n values of the column's type, aligned for it */
	/* Room for (n + 63) / 64 words; bit i: row i is known. Written if has_nulls. */
	uint64_t *valid;
	bool has_nulls;		 /* set by table_read; never for texts and numbers as text */
	struct arena *scratch;	 /* memory for texts without dictionary; the caller clears it */
	struct table_memo *memo; /* cache between calls; may be NULL */
};

struct table;
struct table_part;
struct table_column;
struct tree;

typedef ow_status (*table_fill_fn)(const struct table_part *part, const struct table_column *column,
				   uint64_t first, uint32_t n, struct table_vec *out,
				   struct ow_error *err);

enum dict_kind {
	DICT_NONE,    /* no dictionary: struct str */
	DICT_STRINGS, /* the strings of the model */
	DICT_WORDS,   /* the words in column.words */
	DICT_RUN,     /* the name of the run */
	DICT_PART     /* a dictionary that prepare made: part.dicts[column.number] */
};

struct table_column {
	const char *name;  /* name for programs: total_micros */
	const char *title; /* title for people: "total time"; NULL = the name */
	const char *doc;   /* sentence that describes the values; may be NULL */
	enum column_type type;
	enum column_unit unit;
	/* type that a text stands for: timestamp, date, list, …; NULL: a text */
	const char *logical;
	/* Values of a held table: */
	union {
		int64_t *ints; /* for TYPE_INT and TYPE_BOOL */
		double *reals;
		struct str *texts; /* for TYPE_TEXT and TYPE_NUMBER */
	};
	uint8_t *known; /* NULL = all known; else 0 marks a missing value (JSON null, text "-") */
	bool fixed;	/* a text that must not be shortened, such as a bar */
	/* the sink text leaves the column out, because it is only for programs */
	bool for_programs;
	bool json; /* the texts are JSON values, which JSON outputs write unchanged */
	/* Members of a column whose table has a source. */
	bool refers; /* values are ids of rows */
	enum dict_kind dict;
	table_fill_fn fill;
	const struct table_dict *words;
	const struct model_path *path;
	uint32_t number; /* free for use by fill */
	uint32_t stride;
};

/* An extra value of a table, which JSON outputs write next to the rows. */
struct table_extra {
	const char *name;
	const char *json; /* value as JSON text */
};

struct table_run {
	struct model *m; /* frozen model of the run */
	const char *name;
	uint32_t number; /* number of the run, from 1 */
};

/* The rows of one run; all rows of a held table. */
struct table_part {
	const struct table_run *run; /* run of the rows; NULL in a held table, as is m */
	struct model *m;
	uint64_t rows;	 /* number of rows, known after table_prepare */
	int64_t id_base; /* id of the model's row 0 */
	struct arena arena;
	void *state;	      /* state that prepare made */
	const void *row_data; /* rows that prepare made; see relation/columns.h */
	const struct table_dict *dicts;
	struct table_dict strings, run_name;
	struct str run_texts[2];
};

/* A named option of a source, such as order_by of op_view. */
struct table_param {
	const char *name, *doc;
	enum column_type type;
};

/* The value of an option. */
struct table_arg {
	const struct table_param *param;
	int64_t number; /* value of TYPE_INT or TYPE_BOOL */
	struct str text;
};

/* The source of the rows of a table that does not hold them. */
struct table_source {
	const char *name, *doc;
	bool is_table; /* rows and first columns are those of the model's `table` */
	enum table_id table;
	const struct table_param *params; /* options; ends with a NULL name; may be NULL */
	/* Adds columns; see relation/columns.h. May be NULL. */
	ow_status (*describe)(struct table *table, struct ow_error *err);
	/* Sets part->rows, and the state that fill needs. May be NULL for a table of the model. */
	ow_status (*prepare)(struct table *table, struct table_part *part, struct ow_error *err);
	/* Prepares one more column; may be NULL. Called once for each column, while others are
	 * read. */
	ow_status (*need)(struct table_part *part, const struct table_column *column,
			  struct ow_error *err);
	void (*release)(struct table_part *part); /* releases a part; may be NULL */
};

#define TABLE_COLUMNS_MAX 256

struct table {
	struct mem *mem;
	struct arena arena;
	const char *name; /* name of the view or source: "op" */
	struct table_column columns[TABLE_COLUMNS_MAX];
	uint32_t column_count;
	/* Members of a held table: */
	uint32_t row_count, row_cap;
	uint32_t *depth; /* depth of each row, from 0; NULL if the table is not a tree */
	struct tree *tree;
	ow_status status; /* status of the first failed append */
	char *footer;	  /* sentence below the rows, or NULL */
	struct table_extra *extras;
	size_t extra_count, extra_cap;
	/* Members for reading. */
	struct table_part *parts;
	uint32_t part_count;
	bool prepared;
	/* Members of a table with a source: */
	const struct table_source *source; /* source; NULL: the values are held */
	uint64_t tables;		   /* one bit per table of the model that is read */
	const struct table_arg *args;
	size_t arg_count;
	bool needed[TABLE_COLUMNS_MAX];
	const struct table *tree_rows; /* the tree, if table_levels made this table */
	pthread_mutex_t lock;
	struct table_part held;
};

/* Makes a held table without columns. */
struct table *table_new(struct mem *mem, const char *name, struct ow_error *err);
/* Makes a table whose columns and rows come from a source. The runs and args are copied, their models and names are
 * not. Without runs the table has no rows. The source has not described its columns yet. */
ow_status table_open(const struct table_source *source, const struct table_run *runs,
		     size_t run_count, const struct table_arg *args, size_t arg_count,
		     struct mem *mem, struct table **table, struct ow_error *err);
void table_free(struct table *t);

/* Makes a held table from a tree, for formats without nesting: the columns `depth` and `parent` (the row of the
 * parent, from 0; NULL for rows without one), then those of t, whose values are not copied. t must outlive it and
 * not change. */
ow_status table_levels(const struct table *t, struct table **levels, struct ow_error *err);

/* Sets the sentences of columns from the first one on, in order; `count` columns must exist. */
void table_document(struct table *t, const char *const *sentences, uint32_t count);
/* Adds a column before any row; returns its number. name and title must be literals. */
uint32_t table_add_column(struct table *t, const char *name, const char *title,
			  enum column_type type, enum column_unit unit);
/* Drops columns and rows, and forgets earlier failures. */
void table_clear_columns(struct table *t);
/* Makes the table a tree; before any row. */
void table_make_tree(struct table *t);
/* Makes room for that many rows in all; if memory runs out, returns false and stores the failure. */
bool table_reserve(struct table *t, uint32_t rows);
/* Adds a row whose values are zero or empty and returns its number; UINT32_MAX on failure, which is
 * stored. */
uint32_t table_add_row(struct table *t, uint32_t depth);
void table_set_int(struct table *t, uint32_t row, uint32_t column, int64_t value);
void table_set_real(struct table *t, uint32_t row, uint32_t column, double value);
/* Sets a text, which is copied. */
void table_set_text(struct table *t, uint32_t row, uint32_t column, struct str value);
/* Sets a text; an empty text is unknown. */
void table_set_known_text(struct table *t, uint32_t row, uint32_t column, struct str value);
/* Sets a text of the model without copying it. */
void table_set_model_text(struct table *t, uint32_t row, uint32_t column, struct str value);
void table_set_unknown(struct table *t, uint32_t row, uint32_t column);
/* Adds an extra value; the name must be a literal. */
void table_add_extra(struct table *t, const char *name, const char *json_format, ...)
	OW_PRINTF(3, 4);
/* Adds an extra value of type text, which is quoted; NULL becomes null. */
void table_add_extra_text(struct table *t, const char *name, const char *text);
/* Returns the JSON text of an extra value, or NULL. */
const char *table_extra(const struct table *t, const char *name);
/* Adds the columns of another table, whose names are copied, or fails with OW_E_LIMIT. */
ow_status table_add_columns_of(struct table *t, const struct table *from, struct ow_error *err);
/* Adds the rows of a held table with the same columns; texts are copied. */
ow_status table_append(struct table *t, const struct table *from, struct ow_error *err);
/* Converts columns of digits that all fit into 64 bits to columns of integers, for example sums in a query. If
 * memory runs out they stay unchanged. */
void table_narrow(struct table *t);
/* Keeps the first `rows` rows. */
void table_limit(struct table *t, uint32_t rows);

/* Verifies the parts of an opwatch file that are read, and computes advice, views and phases; once, from any thread.
 * After a failure it may be tried again. */
ow_status table_prepare(struct table *t, struct ow_error *err);
/* Like table_prepare, for a reader of few columns. After table_start rows are known; table_need is called for each
 * column before it, or its dictionary, is read. */
ow_status table_start(struct table *t, struct ow_error *err);
ow_status table_need(struct table *t, uint32_t column, struct ow_error *err);

uint64_t table_row_count(const struct table *t); /* number of rows of all parts */
/* Estimates the number of rows before table_prepare, for a source that is a table of the model;
 * 0 for others. */
uint64_t table_estimate(const struct table *t);
/* Returns the column of that name, ignoring case, or UINT32_MAX. */
uint32_t table_find_column(const struct table *t, struct str name);
/* Returns the dictionary of a column; NULL if its values are struct str, or not texts. */
const struct table_dict *table_dict(const struct table *t, uint32_t part, uint32_t column);
/* Returns the size of a value in table_vec.values. */
size_t column_value_size(const struct table_column *column);

/* Reads rows [first, first + n) of a part, which must exist. */
ow_status table_read(const struct table *t, uint32_t part, uint32_t column, uint64_t first,
		     uint32_t n, struct table_vec *out, struct ow_error *err);

/* Checks that the opwatch files under the table are unchanged; call it after reading, before using
 * results. */
ow_status table_check(const struct table *t, struct ow_error *err);

/* Returns the number of rows of a table of the model without its nil row. */
uint64_t model_table_rows(const struct model *m, enum table_id table);

/* Returns "int", "real", "text", "bool" or "number". */
const char *column_type_name(enum column_type type);
/* Returns "ns", "us", "bytes", "count" or "percent"; NULL for a plain number. */
const char *column_unit_name(enum column_unit unit);

static inline void vec_null(struct table_vec *out, uint32_t n, uint32_t i)
{
	if (!out->has_nulls) {
		memset(out->valid, 0xff, (n + 63) / 64 * sizeof(uint64_t));
		out->has_nulls = true;
	}
	out->valid[i / 64] &= ~((uint64_t)1 << i % 64);
}

#endif
