/*
 * rows.h: blocks of rows of a relation, column by column, in the table's order or in another one
 * (order.h); what formats write is read through this. Memory is that of one block.
 */
#ifndef EXPORT_ROWS_H
#define EXPORT_ROWS_H

#include "base/arena.h"
#include "export/order.h"

#define ROWS_BLOCK 4096

struct rows_column {
	const struct relation_column *c;
	uint32_t index; /* in the table */
	void *values;	/* as relation.h says */
	uint64_t *valid;
	bool has_nulls;
};

struct rows {
	const struct relation_table *t;
	struct rows_column *columns;
	uint32_t column_count;
	/* ---- the block ---- */
	uint32_t n;
	uint32_t part;	 /* of all rows, */
	uint32_t *parts; /* or of each; NULL when they have the same */
	struct arena scratch;
	/* ---- what is left ---- */
	uint32_t part_end;
	uint64_t row;
	const struct order_item *items, *items_end; /* NULL: the table's order */
	/* ---- for orders ---- */
	struct arena arena; /* of all buffers */
	struct order_item *sorted, *spare;
	uint32_t *part_of;
	struct relation_vec piece;
};

/* All columns of a prepared table but those of which skip[column] is set (NULL: none). */
ow_status rows_open(struct rows *rows, const struct relation_table *t, const bool *skip,
		    struct error *err);
void rows_close(struct rows *rows);

/* From here on: the parts [first, end) in the table's order, */
void rows_start(struct rows *rows, uint32_t first, uint32_t end);
/* or these. */
void rows_start_order(struct rows *rows, const struct order_item *items, size_t count);

/* The next block; n is 0 at the end. */
ow_status rows_next(struct rows *rows, struct error *err);

/* ---- values of the block ---- */

static inline uint32_t rows_part(const struct rows *rows, uint32_t i)
{
	return rows->parts ? rows->parts[i] : rows->part;
}

/* ptr is NULL when it is unknown. */
struct str rows_text(const struct rows *rows, const struct rows_column *column, uint32_t i);

/* Not for texts. */
static inline bool rows_known(const struct rows_column *column, uint32_t i)
{
	return !column->has_nulls || (column->valid[i / 64] >> i % 64 & 1);
}

#endif
