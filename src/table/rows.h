/*
 * rows.h: blocks of rows of any table, column by column, in the table's order or in another one. Everything that writes
 * tables as text or files reads them through this. Memory is that of one block; an order that is not the table's own
 * costs 32 bytes per row. Values become text in cells.h.
 *
 *	rows_open(&rows, t, NULL, err);
 *	rows_start(&rows, 0, t->part_count);
 *	while ((status = rows_next(&rows, err)) == OW_OK && rows.n)
 *		…
 *	rows_close(&rows);
 */
#ifndef TABLE_ROWS_H
#define TABLE_ROWS_H

#include "base/arena.h"
#include "table/table.h"

/* Orders: lists of rows, made by a stable radix sort on keys; unknown values come last. */

#define ORDER_NONE UINT32_MAX

struct order_item {
	uint64_t key;	/* sort key, ascending; the key of the step if there is one */
	uint64_t where; /* from the top: unknown key (1 bit), part (31), row (32) */
};

#define ORDER_UNKNOWN ((uint64_t)1 << 63)

static inline uint32_t order_part(struct order_item item)
{
	return (uint32_t)(item.where >> 32 & INT32_MAX);
}

static inline uint32_t order_row(struct order_item item)
{
	return (uint32_t)item.where;
}

/* Returns whether both items have the same key. */
static inline bool order_same(struct order_item a, struct order_item b)
{
	return a.key == b.key && !((a.where ^ b.where) & ORDER_UNKNOWN);
}

/* Returns the number from which a key of an integer column was made. */
static inline int64_t order_number(struct order_item item)
{
	return (int64_t)(item.key ^ (uint64_t)1 << 63);
}

struct order {
	struct mem *mem;
	struct order_item *items;
	size_t count, size; /* number of items, and size of the allocation */
};

/* Sorts the rows of the parts [first, end) by column `sort`, then, stably, by column `step`; either may be
 * ORDER_NONE. A step needs end == first + 1. The table must be prepared. */
ow_status order_make(const struct table *t, uint32_t first, uint32_t end, uint32_t sort,
		     uint32_t step, struct order *order, struct ow_error *err);
void order_release(struct order *order);

/* Returns whether rows can be sorted by the column. */
bool order_can_sort(const struct table_column *column);

#define ROWS_BLOCK 4096

struct rows_column {
	const struct table_column *c;
	uint32_t index; /* index of the column in the table */
	void *values;	/* values in the form that table.h describes */
	uint64_t *valid;
	bool has_nulls;
};

struct rows {
	const struct table *t;
	struct rows_column *columns;
	uint32_t column_count;
	uint32_t block; /* number of rows of the largest block */
	/* The current block: */
	uint32_t n;
	uint32_t part;	 /* part of all rows of the block; unused if `parts` is set */
	uint32_t *parts; /* part of each row; NULL if all rows have the same */
	struct arena scratch;
	/* State between blocks: */
	uint32_t part_end;
	uint64_t row;
	/* items of the order; NULL: the table's order */
	const struct order_item *items, *items_end;
	/* Buffers for reading in a sorted order. */
	struct arena arena; /* memory of all buffers */
	struct order_item *sorted, *spare;
	uint32_t *part_of;
	struct table_vec piece;
};

/* Opens all columns of a prepared table except those with skip[column] set (NULL: none). */
ow_status rows_open(struct rows *rows, const struct table *t, const bool *skip,
		    struct ow_error *err);
void rows_close(struct rows *rows);

/* Restarts with the parts [first, end) in the table's order. */
void rows_start(struct rows *rows, uint32_t first, uint32_t end);
/* Starts reading with the items of an order. */
ow_status rows_start_order(struct rows *rows, const struct order_item *items, size_t count,
			   struct ow_error *err);

/* Reads the next block; n is 0 at the end. */
ow_status rows_next(struct rows *rows, struct ow_error *err);

static inline uint32_t rows_part(const struct rows *rows, uint32_t i)
{
	return rows->parts ? rows->parts[i] : rows->part;
}

/* Returns the text of a cell; ptr is NULL if it is unknown. */
struct str rows_text(const struct rows *rows, const struct rows_column *column, uint32_t i);

/* Returns whether a cell is known; not for texts. */
static inline bool rows_known(const struct rows_column *column, uint32_t i)
{
	return !column->has_nulls || (column->valid[i / 64] >> i % 64 & 1);
}

#endif
