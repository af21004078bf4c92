/*
 * columns.h: describes the columns of relations. Most columns are paths through the model's tables: "track.device.name"
 * from an event goes to its track, the track's device and the device's name. Types, units, sentences and NULLs come
 * from model/schema.def, so schema and SQL agree.
 */
#ifndef RELATION_COLUMNS_H
#define RELATION_COLUMNS_H

#include "relation/relation.h"

#define PATH_HOPS 5
#define FILL_BLOCK 2048 /* rows that are read together */

/* Which value of a model column is NULL in SQL. */
enum null_rule {
	NULL_NEVER,
	NULL_TIME,     /* TIME_UNKNOWN is NULL */
	NULL_ZERO,     /* 0 is NULL, and so is a rare column that was not allocated */
	NULL_COUNTED,  /* 0 is NULL; other values count from 1 in the model, from 0 in SQL */
	NULL_NEGATIVE, /* values below 0 are NULL */
	NULL_ABSENT,   /* a rare column that was not allocated is NULL */
	NULL_NO_ID,    /* MODEL_NO_ID is NULL, and so is a text in place of a number */
	NULL_MAX       /* a value with all bits set is NULL */
};

struct model_path {
	struct {
		enum table_id table;
		const struct column_info *info;
	} hops[PATH_HOPS]; /* every hop but the last refers to a row of the next table */
	uint32_t count;
	enum null_rule null_rule;
	bool needs_stacks;  /* code traces must be decoded before the column is read */
	bool needs_nesting; /* self times and depths must be computed before the column is read */
};

/* Adds `id` and all columns of a model table, except those with a meaning only inside the model. */
ow_status columns_of_table(struct table *t, enum table_id table, struct ow_error *err);
/* Adds only the column `id`. */
ow_status columns_id(struct table *t, struct ow_error *err);
/* Adds a column that is a path from the table; doc NULL: the description of the path's last column. */
ow_status columns_path(struct table *t, enum table_id from, const char *name, const char *path,
		       const char *doc, struct ow_error *err);
/* Adds one bit of a flags column as a BOOL column. */
ow_status columns_flag(struct table *t, enum table_id table, const char *name, uint32_t bit,
		       const char *doc, struct ow_error *err);
/* Adds any other column. */
ow_status columns_add(struct table *t, const struct table_column *column, struct ow_error *err);
/* Declares tables that the fill functions read in addition to those of the paths. */
void columns_need(struct table *t, uint64_t tables);

/* Name, path and description of a column; a list ends with a NULL name. */
struct path_column {
	const char *name, *path, *doc;
};
ow_status columns_paths(struct table *t, enum table_id from, const struct path_column *columns,
			struct ow_error *err);
/* The columns op and step, for tables whose rows belong to an op in a step. */
extern const struct path_column columns_op_step[];

/* Relations whose rows are computed, not stored: `prepare` makes a struct for each row, and the columns are its
 * members. For relations with few rows: phases, findings, runs. */

/* A member of the row struct as a column. Integers: int64_t, INT64_MIN = NULL. Reals: double, NaN = NULL.
 * Texts: struct str, ptr NULL = NULL; with words: uint32_t codes. */
struct row_member {
	const char *name, *doc;
	enum column_type type;
	enum column_unit unit;
	uint32_t offset;
	const struct table_dict *words;
};

#define ROW_UNKNOWN INT64_MIN

/* An entry of a list of members for a file's own `struct row`. */
#define ROW_MEMBER(type, unit, name, doc)                                                          \
	{                                                                                          \
#name, doc, type, unit, offsetof(struct row, name), NULL                           \
	}

/* Adds columns for a list of members, which ends with a NULL name. */
ow_status rows_describe(struct table *t, const struct row_member *members, size_t row_size,
			struct ow_error *err);
/* Sets the rows of a part; they must be in part->arena or live as long as the part. */
void rows_set(struct table_part *part, const void *rows, uint64_t count);
/* For tables whose rows come from the analysis of steps: runs the analysis, and calls `make` with its result. */
struct phases;
ow_status rows_of_phases(struct table_part *part,
			 ow_status (*make)(struct table_part *part, struct phases *p,
					   struct ow_error *err),
			 struct ow_error *err);

/* Pointer to the value of a model column in row `row`. */
static inline const void *column_values(const struct model *m, enum table_id table,
					const struct column_info *info)
{
	return *(void *const *)((const char *)m + model_tables[table].offset + info->offset);
}

/* fill_path.c: reads any column that is a path. */
ow_status fill_path(const struct table_part *p, const struct table_column *c, uint64_t first,
		    uint32_t n, struct table_vec *out, struct ow_error *err);

/* words.c: dictionaries of the model's enums, and of single letters. */
extern const struct table_dict words_device_kind, words_track_kind, words_event_phase,
	words_link_kind, words_heap_kind, words_fact_kind, words_note_kind, words_letters,
	words_severity, words_phase_class;
/* The dictionary of an ENUM column, found by the schema's description ("enum device_kind"); NULL if there is none. */
const struct table_dict *words_of(const char *doc);

/* views.c: the relations that are made from views; they follow those of relations.def. NULL beyond the last. */
const struct table_source *view_relation_at(size_t index);

#endif
