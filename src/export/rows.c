/*
 * rows.c: see rows.h. Rows in another order are gathered: those of a block are looked up by where they are,
 * and neighbours are read together. Events of a track lie in the order of time, so that even rows sorted by
 * time come in long pieces.
 */
#include "export/rows.h"

#define NEAR 16 /* rows between two that are read together all the same */

/* ---- opening ---- */

static ow_status add_column(struct rows *rows, uint32_t index, struct error *err)
{
	struct rows_column *column = &rows->columns[rows->column_count++];

	column->c = &rows->t->columns[index];
	column->index = index;
	column->values = arena_push_array(&rows->arena, ROWS_BLOCK, relation_value_size(column->c));
	column->valid = ARENA_ARRAY(&rows->arena, uint64_t, ROWS_BLOCK / 64);
	return column->values && column->valid ? OW_OK : error_no_memory(err);
}

static ow_status add_columns(struct rows *rows, const bool *skip, struct error *err)
{
	rows->columns = ARENA_ARRAY(&rows->arena, struct rows_column, rows->t->column_count + 1);
	if (!rows->columns)
		return error_no_memory(err);
	for (uint32_t i = 0; i < rows->t->column_count; i++)
		if (!skip || !skip[i])
			OW_TRY(add_column(rows, i, err));
	rows->sorted = ARENA_ARRAY(&rows->arena, struct order_item, ROWS_BLOCK);
	rows->spare = ARENA_ARRAY(&rows->arena, struct order_item, ROWS_BLOCK);
	rows->part_of = ARENA_ARRAY(&rows->arena, uint32_t, ROWS_BLOCK);
	rows->piece.values = ARENA_ARRAY(&rows->arena, struct str, ROWS_BLOCK); /* the largest */
	rows->piece.valid = ARENA_ARRAY(&rows->arena, uint64_t, ROWS_BLOCK / 64);
	rows->piece.scratch = &rows->scratch;
	return rows->sorted && rows->spare && rows->part_of && rows->piece.values &&
			       rows->piece.valid
		       ? OW_OK
		       : error_no_memory(err);
}

ow_status rows_open(struct rows *rows, const struct relation_table *t, const bool *skip,
		    struct error *err)
{
	ow_status status;

	*rows = (struct rows){ .t = t };
	arena_init(&rows->arena, t->mem);
	arena_init(&rows->scratch, t->mem);
	status = add_columns(rows, skip, err);
	if (status != OW_OK)
		rows_close(rows);
	return status;
}

void rows_close(struct rows *rows)
{
	arena_release(&rows->scratch);
	arena_release(&rows->arena);
}

void rows_start(struct rows *rows, uint32_t first, uint32_t end)
{
	rows->part = first;
	rows->part_end = end;
	rows->parts = NULL;
	rows->row = 0;
	rows->n = 0;
	rows->items = rows->items_end = NULL;
}

void rows_start_order(struct rows *rows, const struct order_item *items, size_t count)
{
	rows_start(rows, 0, 0);
	rows->items = items;
	rows->items_end = items + count;
}

/* ---- in the table's order ---- */

static ow_status next_in_place(struct rows *rows, struct error *err)
{
	rows->row += rows->n;
	rows->n = 0;
	while (rows->part < rows->part_end && rows->row == rows->t->parts[rows->part].rows) {
		rows->part++;
		rows->row = 0;
	}
	if (rows->part >= rows->part_end)
		return OW_OK;
	rows->n = (uint32_t)MIN(rows->t->parts[rows->part].rows - rows->row, ROWS_BLOCK);
	for (uint32_t i = 0; i < rows->column_count; i++) {
		struct rows_column *column = &rows->columns[i];
		struct relation_vec vec = { .values = column->values,
					    .valid = column->valid,
					    .scratch = &rows->scratch };

		OW_TRY(relation_fill(rows->t, rows->part, column->index, rows->row, rows->n, &vec,
				     err));
		column->has_nulls = vec.has_nulls;
	}
	return OW_OK;
}

/* ---- in another one ---- */

/* Moves values of the piece that was read from `first` on to the places of the items, whose keys they are. */
static void scatter(struct rows_column *column, const struct relation_vec *piece, uint32_t first,
		    const struct order_item *items, uint32_t count)
{
	size_t size = relation_value_size(column->c);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t from = order_row(items[i]) - first, to = (uint32_t)items[i].key;

		memcpy((char *)column->values + to * size, (char *)piece->values + from * size,
		       size);
		if (piece->has_nulls && !(piece->valid[from / 64] >> from % 64 & 1)) {
			column->valid[to / 64] &= ~((uint64_t)1 << to % 64);
			column->has_nulls = true;
		}
	}
}

/* How many of the items are near enough to be read in one piece, and how long that is. */
static uint32_t near_by(const struct order_item *items, uint32_t count, uint32_t *len)
{
	uint32_t n = 1, first = order_row(items[0]);

	while (n < count && order_part(items[n]) == order_part(items[0]) &&
	       order_row(items[n]) - order_row(items[n - 1]) <= NEAR &&
	       order_row(items[n]) - first < ROWS_BLOCK)
		n++;
	*len = order_row(items[n - 1]) - first + 1;
	return n;
}

static ow_status read_piece(struct rows *rows, const struct order_item *items, uint32_t count,
			    uint32_t len, struct error *err)
{
	uint32_t first = order_row(items[0]);

	for (uint32_t i = 0; i < rows->column_count; i++) {
		OW_TRY(relation_fill(rows->t, order_part(items[0]), rows->columns[i].index, first,
				     len, &rows->piece, err));
		scatter(&rows->columns[i], &rows->piece, first, items, count);
	}
	return OW_OK;
}

static ow_status next_in_order(struct rows *rows, struct error *err)
{
	const struct order_item *sorted;
	uint32_t taken;

	rows->n = (uint32_t)MIN((size_t)(rows->items_end - rows->items), ROWS_BLOCK);
	for (uint32_t i = 0; i < rows->n; i++) {
		rows->sorted[i] = (struct order_item){ i, rows->items[i].where & ~ORDER_UNKNOWN };
		rows->part_of[i] = order_part(rows->items[i]);
	}
	rows->items += rows->n;
	rows->parts = rows->part_of;
	sorted = order_sort(rows->sorted, rows->spare, rows->n, ORDER_BY_WHERE);
	for (uint32_t i = 0; i < rows->column_count; i++) {
		rows->columns[i].has_nulls = false;
		memset(rows->columns[i].valid, 0xff, ROWS_BLOCK / 8);
	}
	for (uint32_t i = 0; i < rows->n; i += taken) {
		uint32_t len;

		taken = near_by(sorted + i, rows->n - i, &len);
		OW_TRY(read_piece(rows, sorted + i, taken, len, err));
	}
	return OW_OK;
}

ow_status rows_next(struct rows *rows, struct error *err)
{
	arena_clear(&rows->scratch);
	return rows->items ? next_in_order(rows, err) : next_in_place(rows, err);
}

struct str rows_text(const struct rows *rows, const struct rows_column *column, uint32_t i)
{
	const struct relation_dict *dict =
		relation_dict(rows->t, rows_part(rows, i), column->index);
	uint32_t code;

	if (!dict)
		return ((const struct str *)column->values)[i];
	code = ((const uint32_t *)column->values)[i];
	return code ? dict->texts[code] : (struct str){ 0 };
}
