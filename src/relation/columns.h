/*
 * columns.h: what the files of relations describe their columns with. Most columns are paths through the
 * model's tables: "track.device.name" from an event goes to its track, the track's device and the device's
 * name. Types, units, sentences and NULLs come from model/schema.def, so that schema and SQL agree.
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
	NULL_NEGATIVE, /* below 0 */
	NULL_ABSENT,   /* a rare column is not there */
	NULL_NO_ID,    /* MODEL_NO_ID, and text in place of a number */
	NULL_MAX       /* all bits set */
};

struct relation_path {
	struct {
		enum table_id table;
		const struct column_info *info;
	} hops[PATH_HOPS]; /* all but the last refer to the next table */
	uint32_t count;
	enum null_rule null_rule;
	bool needs_stacks;  /* code traces must have been decoded */
	bool needs_nesting; /* self times and depths must be there */
};

/* `id` and all columns of a table but those that only mean something inside the model. */
ow_status columns_of_table(struct relation_table *t, enum table_id table, struct error *err);
/* `id` alone. */
ow_status columns_id(struct relation_table *t, struct error *err);
/* A path from the table; doc NULL: that of the last column. */
ow_status columns_path(struct relation_table *t, enum table_id from, const char *name,
		       const char *path, const char *doc, struct error *err);
/* Bits of a flags column as BOOL. */
ow_status columns_flag(struct relation_table *t, enum table_id table, const char *name,
		       uint32_t bit, const char *doc, struct error *err);
/* Any other. */
ow_status columns_add(struct relation_table *t, const struct relation_column *column,
		      struct error *err);
/* Tables that fill reads beside the paths. */
void columns_need(struct relation_table *t, uint64_t tables);

/* Names, paths and sentences of several columns; ends with a NULL name. */
struct path_column {
	const char *name, *path, *doc;
};
ow_status columns_paths(struct relation_table *t, enum table_id from,
			const struct path_column *columns, struct error *err);
/* Of what belongs to an op in a step: which op, which step. */
extern const struct path_column columns_op_step[];

/* The number of rows of a table less its nil row; for relations that are a table. */
uint64_t table_rows(const struct model *m, enum table_id table);

/* ---- inside fill ---- */

static inline void vec_null(struct relation_vec *out, uint32_t n, uint32_t i)
{
	if (!out->has_nulls) {
		memset(out->valid, 0xff, (n + 63) / 64 * sizeof(uint64_t));
		out->has_nulls = true;
	}
	out->valid[i / 64] &= ~((uint64_t)1 << i % 64);
}

/* The value of a column in row `row` of the model. */
static inline const void *column_values(const struct model *m, enum table_id table,
					const struct column_info *info)
{
	return *(void *const *)((const char *)m + model_tables[table].offset + info->offset);
}

/* fill_path.c: the fill of every path. */
ow_status fill_path(const struct relation_part *p, const struct relation_column *c, uint64_t first,
		    uint32_t n, struct relation_vec *out, struct error *err);

/* words.c: dictionaries of the model's enums, and of single letters. */
extern const struct relation_dict words_device_kind, words_track_kind, words_event_phase,
	words_link_kind, words_heap_kind, words_fact_kind, words_note_kind, words_letters,
	words_severity, words_phase_class;
/* The one for an ENUM column by its sentence ("enum device_kind"); NULL when there is none. */
const struct relation_dict *words_of(const char *doc);

/* views.c: the relations that are views, after those of the table; NULL beyond the last. */
const struct relation *view_relation_at(size_t index);

#endif
