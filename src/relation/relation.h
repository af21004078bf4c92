/*
 * relation.h: the tables that people query. A relation has a name, a sentence and typed columns, over one
 * or more runs (a frozen model each), and is read column by column in ranges of rows. SQL, export and push
 * are made on this; it knows no SQL and writes nothing.
 *
 *	relation_open(relation_find("event"), runs, 2, NULL, 0, mem, &table, err);	columns are known
 *	relation_prepare(table, err);					rows are known
 *	for (part = 0; part < table->part_count; part++)		one part per run
 *		for (row = 0; row < table->parts[part].rows; row += n)
 *			relation_fill(table, part, column, row, n, &vec, err);
 *	relation_close(table);
 *
 * Nothing is copied when a table is opened. After relation_prepare any number of threads may read at once,
 * each with a vector and a scratch arena of its own. The models must outlive the table.
 *
 * Conventions of all relations: `run` is the name of the run. `id` numbers the rows so that ids of several
 * runs differ: (run - 1) << 32, plus the row of the model. A column x_id refers to `id` of another relation
 * and is unknown (NULL) when there is nothing; x, without _id, is its name in text, or a step's number.
 * Times are nanoseconds; unknown times, ranks and the like are NULL, and so is an empty text.
 */
#ifndef RELATION_RELATION_H
#define RELATION_RELATION_H

#include "model/model.h"

struct relation_run {
	struct model *m; /* frozen */
	const char *name;
	uint32_t number; /* from 1, each its own */
};

enum relation_type {
	RELATION_BOOL,	 /* bool */
	RELATION_INT32,	 /* int32_t */
	RELATION_INT64,	 /* int64_t */
	RELATION_UINT64, /* uint64_t */
	RELATION_REAL,	 /* double */
	RELATION_TEXT	 /* uint32_t, a code of the dictionary; or struct str when there is none */
};

/* Texts by code. texts[0] stands for NULL. All others are UTF-8, differ from each other and are not empty,
 * and live as long as the table. Two columns with the same `texts` have the same dictionary. */
struct relation_dict {
	const struct str *texts;
	uint32_t count; /* texts[0] included */
};

/* What a fill may keep for the next columns of the same rows; its data are in the scratch arena. The caller
 * zeroes it whenever it clears that. */
struct relation_memo {
	const void *owner;
	uint64_t first;
	uint32_t n;
	void *data;
};

/* Where values go; the caller's, one per thread. */
struct relation_vec {
	void *values; /* room for n values of the column's type, aligned for it */
	/* Room for (n + 63) / 64 words; bit i: row i is known. Written if has_nulls. */
	uint64_t *valid;
	/* Set by fill. Of texts NULL is code 0, or a str whose ptr is NULL, and not told here. */
	bool has_nulls;
	struct arena *scratch; /* texts without dictionary are made here; the caller clears it */
	struct relation_memo *memo; /* may be NULL */
};

struct relation_part;
struct relation_column;
typedef ow_status (*relation_fill_fn)(const struct relation_part *part,
				      const struct relation_column *column, uint64_t first,
				      uint32_t n, struct relation_vec *out, struct error *err);

enum relation_dict_kind {
	DICT_NONE,    /* struct str */
	DICT_STRINGS, /* the strings of the model */
	DICT_WORDS,   /* column.words */
	DICT_RUN,     /* the name of the run */
	DICT_PART     /* one that prepare made: part.dicts[column.number] */
};

struct relation_column {
	const char *name, *doc;
	enum relation_type type;
	enum column_unit unit;
	/* ---- for the relations themselves ---- */
	relation_fill_fn fill;
	enum relation_dict_kind dict;
	const struct relation_dict *words;
	const struct relation_path *path;
	uint32_t number; /* free for fill */
	uint32_t stride;
	bool refers; /* values are ids of rows */
};

/* A relation of one run. */
struct relation_part {
	const struct relation_run *run;
	struct model *m;
	uint64_t rows;	 /* after relation_prepare */
	int64_t id_base; /* id of the model's row 0 */
	struct arena arena;
	void *state;	      /* what prepare made */
	const void *row_data; /* likewise; see rows.h */
	const struct relation_dict *dicts;
	struct relation_dict strings, run_name;
	struct str run_texts[2];
};

/* A named option of a relation, such as order_by of op_view. */
struct relation_param {
	const char *name, *doc;
	enum relation_type type;
};

/* Its value. */
struct relation_arg {
	const struct relation_param *param;
	int64_t number; /* also BOOL */
	struct str text;
};

#define RELATION_COLUMNS_MAX 96

struct relation;

struct relation_table {
	const struct relation *relation;
	struct mem *mem;
	struct arena arena;
	struct relation_column *columns;
	uint32_t column_count, column_cap;
	struct relation_part *parts; /* one per run */
	uint32_t part_count;
	uint64_t tables; /* of the model that are read, a bit each */
	const struct relation_arg *args;
	size_t arg_count;
	pthread_mutex_t lock;
	bool prepared;
	bool needed[RELATION_COLUMNS_MAX];
};

struct relation {
	const char *name, *doc;
	bool is_table; /* rows and first columns are those of `table` */
	enum table_id table;
	const struct relation_param *params; /* ends with a NULL name; may be NULL */
	/* Adds columns; see columns.h. May be NULL. */
	ow_status (*describe)(struct relation_table *table, struct error *err);
	/* Sets part->rows, and whatever fill needs. May be NULL for a table. */
	ow_status (*prepare)(struct relation_table *table, struct relation_part *part,
			     struct error *err);
	/* Makes what a column needs beyond that; may be NULL. Once for each column, while others are read. */
	ow_status (*need)(struct relation_part *part, const struct relation_column *column,
			  struct error *err);
	void (*release)(struct relation_part *part); /* may be NULL */
};

/* All of them, in the order of relations.def, then one per view; NULL beyond the last. */
const struct relation *relation_at(size_t index);
/* Without regard to case; NULL when there is none. */
const struct relation *relation_find(struct str name);

/* Columns become known. The runs and args are copied, their models and names are not. Without runs there
 * are no rows. */
ow_status relation_open(const struct relation *relation, const struct relation_run *runs,
			size_t run_count, const struct relation_arg *args, size_t arg_count,
			struct mem *mem, struct relation_table **table, struct error *err);
void relation_close(struct relation_table *table);

/* Verifies what is read of an opwatch file and makes what needs computing (advice, views, phases); once,
 * from any thread. After a failure it may be tried again. */
ow_status relation_prepare(struct relation_table *table, struct error *err);
/* The same for whoever reads few columns: rows are known after the first, and each column that is going to be
 * read, or whose dictionary is asked for, goes through the second. */
ow_status relation_start(struct relation_table *table, struct error *err);
ow_status relation_need(struct relation_table *table, uint32_t column, struct error *err);

uint64_t relation_rows(const struct relation_table *table); /* of all parts */
/* The same before relation_prepare, for a relation that is a table; 0 for others. */
uint64_t relation_estimate(const struct relation_table *table);
/* The column of that name without regard to case, or UINT32_MAX. */
uint32_t relation_find_column(const struct relation_table *table, struct str name);
/* NULL when values of the column are struct str, or no text. */
const struct relation_dict *relation_dict(const struct relation_table *table, uint32_t part,
					  uint32_t column);
/* Bytes of a value in relation_vec.values. */
size_t relation_value_size(const struct relation_column *column);

/* Rows [first, first + n) of a part, which must exist. */
ow_status relation_fill(const struct relation_table *table, uint32_t part, uint32_t column,
			uint64_t first, uint32_t n, struct relation_vec *out, struct error *err);

/* Whether opwatch files under the table are as they were; after reading, before results are believed. */
ow_status relation_check(const struct relation_table *table, struct error *err);

#endif
