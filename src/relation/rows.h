/*
 * rows.h: relations whose rows are computed, not stored: a struct per row, made by prepare, and columns that
 * are its members. For relations of few rows: phases, findings, runs.
 */
#ifndef RELATION_ROWS_H
#define RELATION_ROWS_H

#include "relation/columns.h"

/* A member of the row struct as a column. Integers: int64_t, INT64_MIN = NULL. Reals: double, NaN = NULL.
 * Texts: struct str, ptr NULL = NULL; with words: uint32_t codes. */
struct row_member {
	const char *name, *doc;
	enum relation_type type;
	enum column_unit unit;
	uint32_t offset;
	const struct relation_dict *words;
};

#define ROW_UNKNOWN INT64_MIN

/* Ends with a NULL name. */
ow_status rows_describe(struct relation_table *t, const struct row_member *members, size_t row_size,
			struct error *err);
/* Hands the rows over; they must live in part->arena or as long as the part. */
void rows_set(struct relation_part *part, const void *rows, uint64_t count);

#endif
