/*
 * order.h: rows of a table in another order than its own: sorted by a column, or step by step. An order is
 * a list of rows, made by a stable radix sort on keys; unknown values come last.
 */
#ifndef EXPORT_ORDER_H
#define EXPORT_ORDER_H

#include "base/error.h"
#include "relation/relation.h"

#define ORDER_NONE UINT32_MAX

struct order_item {
	uint64_t key;	/* ascending; that of the step when there is one */
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

/* Whether both have the same key. */
static inline bool order_same(struct order_item a, struct order_item b)
{
	return a.key == b.key && !((a.where ^ b.where) & ORDER_UNKNOWN);
}

/* The number that a key of an integer column was made from. */
static inline int64_t order_number(struct order_item item)
{
	return (int64_t)(item.key ^ (uint64_t)1 << 63);
}

struct order {
	struct mem *mem;
	struct order_item *items;
	size_t count, size; /* size: of the allocation */
};

/* Rows of the parts [first, end) by column `sort`, then, stably, by column `step`; either may be ORDER_NONE.
 * A step needs end == first + 1. The table is prepared. */
ow_status order_make(const struct relation_table *t, uint32_t first, uint32_t end, uint32_t sort,
		     uint32_t step, struct order *order, struct error *err);
void order_release(struct order *order);

/* Whether rows can be sorted by the column. */
bool order_can_sort(const struct relation_column *column);

/* Sorts by bytes of key and where; `spare` has room for as many. Returns the one of both that has the result. */
enum order_by { ORDER_BY_KEY, ORDER_BY_WHERE };
struct order_item *order_sort(struct order_item *items, struct order_item *spare, size_t count,
			      enum order_by by);

#endif
