/*
 * columns.h: describes the columns of relations. Most columns are paths through the model's tables: "track.device.name"
 * from an event goes to its track, the track's device and the device's name. Types, units, sentences and NULLs come
 * from model/schema.def, so schema and SQL agree.
 */
#ifndef RELATION_COLUMNS_H
#define RELATION_COLUMNS_H

#include "relation/relation.h"

#define PATH_HOPS 5
#define FILL_BLOCK 2048 /* rows that are looked at together */

/* When a value stands for nothing. */
enum null_rule {
	NULL_NEVER,
	NULL_TIME,     /* TIME_UNKNOWN */
	NULL_ZERO,     /* 0, also when a rare column is not there */
	NULL_COUNTED,  /* 0; other values count from 1 in the model, from 0 here */
	NULL_NEGATIVE, /* below 0 */
	NULL_ABSENT,   /* a rare column is not there */
	NULL_NO_ID,    /* MODEL_NO_ID, and text in place of a number */
	NULL_MAX       /* all bits set */
};

struct model_path {
	struct {
		enum table_id table;
		const struct column_info *info;
	} hops[PATH_HOPS]; /* all but the last refer to the next table */
	uint32_t count;
	enum null_rule null_rule;
	bool needs_stacks;  /* code traces must have been decoded */
	bool needs_nesting; /* self times and depths must be there */
};

/* `id` and all columns of a table except those with a meaning only inside the model. */
ow_status columns_of_table(struct table *t, enum table_id table, struct ow_error *err);
/* `id` alone. */
ow_status columns_id(struct table *t, struct ow_error *err);
/* A path from the table; doc NULL: that of the last column. */
ow_status columns_path(struct table *t, enum table_id from, const char *name, const char *path,
		       const char *doc, struct ow_error *err);
/* Bits of a flags column as BOOL. */
ow_status columns_flag(struct table *t, enum table_id table, const char *name, uint32_t bit,
		       const char *doc, struct ow_error *err);
/* Any other. */
ow_status columns_add(struct table *t, const struct table_column *column, struct ow_error *err);
/* Tables that fill reads beside the paths. */
void columns_need(struct table *t, uint64_t tables);

/* Names, paths and sentences of several columns; ends with a NULL name. */
struct path_column {
	const char *name, *path, *doc;
};
ow_status columns_paths(struct table *t, enum table_id from, const struct path_column *columns,
			struct ow_error *err);
/* Of what belongs to an op in a step: which op, which step. */
extern const struct path_column columns_op_step[];

/* ---- relations whose rows are computed, not stored ----
 * A struct per row, made by prepare, and columns that are its members. For relations of few rows: phases, findings,
 * runs. */

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

/* Ends with a NULL name. */
ow_status rows_describe(struct table *t, const struct row_member *members, size_t row_size,
			struct ow_error *err);
/* Sets the rows of a part; they must live in part->arena or as long as the part. */
void rows_set(struct table_part *part, const void *rows, uint64_t count);
/* For tables whose rows come from the analysis of steps: runs it, and `make` on its result. */
struct phases;
ow_status rows_of_phases(struct table_part *part,
			 ow_status (*make)(struct table_part *part, struct phases *p,
					   struct ow_error *err),
			 struct ow_error *err);

/* ---- inside fill ---- */

/* The value of a column in row `row` of the model. */
static inline const void *column_values(const struct model *m, enum table_id table,
					const struct column_info *info)
{
	return *(void *const *)((const char *)m + model_tables[table].offset + info->offset);
}

/* fill_path.c: the fill of every path. */
ow_status fill_path(const struct table_part *p, const struct table_column *c, uint64_t first,
		    uint32_t n, struct table_vec *out, struct ow_error *err);

/* words.c: dictionaries of the model's enums, and of single letters. */
extern const struct table_dict words_device_kind, words_track_kind, words_event_phase,
	words_link_kind, words_heap_kind, words_fact_kind, words_note_kind, words_letters,
	words_severity, words_phase_class;
/* The dictionary of an ENUM column by its sentence ("enum device_kind"); NULL without one. */
const struct table_dict *words_of(const char *doc);

/* views.c: the relations that are views, after those of the table; NULL beyond the last. */
const struct table_source *view_relation_at(size_t index);

#endif
