/*
 * rows.c: reads blocks of rows for everything that writes tables; see rows.h. In a sorted order, the rows of a block
 * are sorted by their position, and neighbours are read together. Events of a track are in the order of time, so even
 * rows sorted by time come in long pieces.
 */
#include "table/rows.h"

#include "base/radix.h"
#include "base/str.h"

#define KEYS_BLOCK 2048

static void swap(struct order_item **a, struct order_item **b)
{
	struct order_item *was = *a;

	*a = *b;
	*b = was;
}

/* Sorts items by key, stably; items without a key come after all others. */
static void sort_keys(struct order_item **items, struct order_item **spare, size_t count)
{
	size_t known = 0, unknown = 0;

	if (radix_sort(*items, *spare, count, key, 8) != *items)
		swap(items, spare);
	for (size_t i = 0; i < count; i++)
		known += !((*items)[i].where & ORDER_UNKNOWN);
	if (known == count)
		return;
	for (size_t i = 0, to = 0; i < count; i++) {
		struct order_item item = (*items)[i];

		if (item.where & ORDER_UNKNOWN)
			(*spare)[known + unknown++] = item;
		else
			(*spare)[to++] = item;
	}
	swap(items, spare);
}

bool order_can_sort(const struct table_column *c)
{
	return c->type != TYPE_TEXT || c->dict != DICT_NONE;
}

/* A text of a dictionary, and where its rank goes. */
struct ranked {
	struct str text;
	uint32_t *rank;
};

struct ranks {
	struct arena arena;
	uint32_t **of; /* for each part: an array indexed by code */
};

static int compare_texts(const void *a, const void *b)
{
	return str_cmp(((const struct ranked *)a)->text, ((const struct ranked *)b)->text);
}

/* Numbers the texts of all parts' dictionaries in byte order. */
static ow_status rank_texts(const struct table *t, uint32_t first, uint32_t end, uint32_t column,
			    struct ranks *ranks, struct ow_error *err)
{
	struct ranked *all;
	size_t count = 0;
	uint32_t rank = 0;

	ranks->of = ARENA_ARRAY(&ranks->arena, uint32_t *, end);
	for (uint32_t p = first; p < end; p++)
		count += table_dict(t, p, column)->count;
	all = ARENA_ARRAY(&ranks->arena, struct ranked, count);
	if (!ranks->of || !all)
		return error_no_memory(err);
	count = 0;
	for (uint32_t p = first; p < end; p++) {
		const struct table_dict *dict = table_dict(t, p, column);

		ranks->of[p] = ARENA_ARRAY(&ranks->arena, uint32_t, dict->count);
		if (!ranks->of[p])
			return error_no_memory(err);
		for (uint32_t i = 1; i < dict->count; i++)
			all[count++] = (struct ranked){ dict->texts[i], &ranks->of[p][i] };
	}
	qsort(all, count, sizeof(*all), compare_texts);
	for (size_t i = 0; i < count; i++) {
		rank += i && !str_eq(all[i].text, all[i - 1].text);
		*all[i].rank = rank;
	}
	return OW_OK;
}

static uint64_t key_of_real(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static uint64_t key_of(const struct table_column *c, const void *values, uint32_t i,
		       const uint32_t *ranks)
{
	const uint64_t sign = (uint64_t)1 << 63;

	switch (c->type) {
	case TYPE_BOOL:
		return ((const bool *)values)[i];
	case TYPE_INT32:
		return (uint64_t)(int64_t)((const int32_t *)values)[i] ^ sign;
	case TYPE_INT:
		return ((const uint64_t *)values)[i] ^ sign;
	case TYPE_UINT64:
		return ((const uint64_t *)values)[i];
	case TYPE_REAL:
		return key_of_real(((const double *)values)[i]);
	default:
		OW_ASSERT(ranks);
		return ranks ? ranks[((const uint32_t *)values)[i]] : 0;
	}
}

static bool is_known(const struct table_column *c, const struct table_vec *vec, uint32_t i)
{
	if (c->type == TYPE_TEXT)
		return ((const uint32_t *)vec->values)[i] != 0;
	return !vec->has_nulls || (vec->valid[i / 64] >> i % 64 & 1);
}

/* Passes the key of each row of a part to take(arg, row, key, known). */
struct keys {
	const struct table *t;
	const struct ranks *ranks;
	void (*take)(void *arg, uint64_t row, uint64_t key, bool known);
	void *arg;
};

static ow_status read_keys(const struct keys *k, uint32_t part, uint32_t column,
			   struct ow_error *err)
{
	const struct table_column *c = &k->t->columns[column];
	uint64_t values[KEYS_BLOCK], valid[KEYS_BLOCK / 64], rows = k->t->parts[part].rows;
	struct table_vec vec = { .values = values, .valid = valid };
	const uint32_t *ranks = k->ranks && k->ranks->of ? k->ranks->of[part] : NULL;

	for (uint64_t row = 0; row < rows; row += KEYS_BLOCK) {
		uint32_t n = (uint32_t)MIN(rows - row, KEYS_BLOCK);

		OW_TRY(table_read(k->t, part, column, row, n, &vec, err));
		for (uint32_t i = 0; i < n; i++) {
			bool known = is_known(c, &vec, i);

			k->take(k->arg, row + i, known ? key_of(c, values, i, ranks) : 0, known);
		}
	}
	return OW_OK;
}

struct making {
	struct order_item *items; /* where the next item is stored */
	uint32_t part;
};

static void take_item(void *arg, uint64_t row, uint64_t key, bool known)
{
	struct making *m = arg;

	*m->items++ = (struct order_item){ key, (known ? 0 : ORDER_UNKNOWN) |
							(uint64_t)m->part << 32 | row };
}

/* Makes the items of all rows, with the key of the column if there is one. */
static ow_status collect(const struct table *t, uint32_t first, uint32_t end, uint32_t column,
			 struct order_item *items, struct ow_error *err)
{
	struct ranks ranks = { 0 };
	struct making m = { .items = items };
	struct keys keys = { t, &ranks, take_item, &m };
	ow_status status = OW_OK;

	arena_init(&ranks.arena, t->mem);
	if (column != ORDER_NONE && t->columns[column].type == TYPE_TEXT)
		status = rank_texts(t, first, end, column, &ranks, err);
	for (m.part = first; m.part < end && status == OW_OK; m.part++) {
		if (column != ORDER_NONE) {
			status = read_keys(&keys, m.part, column, err);
			continue;
		}
		for (uint64_t row = 0; row < t->parts[m.part].rows; row++)
			take_item(&m, row, 0, true);
	}
	arena_release(&ranks.arena);
	return status;
}

/* The keys of a part, indexed by row. */
struct by_row {
	uint64_t *keys;
	uint64_t *unknown; /* one bit for each row without a value */
};

static void take_by_row(void *arg, uint64_t row, uint64_t key, bool known)
{
	struct by_row *b = arg;

	b->keys[row] = key;
	if (!known)
		b->unknown[row / 64] |= (uint64_t)1 << row % 64;
}

/* Sets the keys of the items, in any order, from another column. */
static ow_status change_keys(const struct table *t, uint32_t part, uint32_t column,
			     struct order_item *items, size_t count, struct ow_error *err)
{
	struct by_row b;
	struct keys keys = { t, NULL, take_by_row, &b };
	struct arena arena;
	ow_status status;

	arena_init(&arena, t->mem);
	b.keys = ARENA_ARRAY(&arena, uint64_t, count);
	b.unknown = ARENA_ARRAY(&arena, uint64_t, count / 64 + 1);
	status = b.keys && b.unknown ? read_keys(&keys, part, column, err) : error_no_memory(err);
	for (size_t i = 0; i < count && status == OW_OK; i++) {
		uint32_t row = order_row(items[i]);

		items[i].key = b.keys[row];
		items[i].where &= ~ORDER_UNKNOWN;
		if (b.unknown[row / 64] >> row % 64 & 1)
			items[i].where |= ORDER_UNKNOWN;
	}
	arena_release(&arena);
	return status;
}

static ow_status count_rows(const struct table *t, uint32_t first, uint32_t end, size_t *count,
			    struct ow_error *err)
{
	*count = 0;
	for (uint32_t p = first; p < end; p++) {
		if (t->parts[p].rows > UINT32_MAX || p > INT32_MAX)
			return error_set(err, OW_E_LIMIT,
					 "%s has %" PRIu64 " rows, too many to sort", t->name,
					 t->parts[p].rows);
		*count += t->parts[p].rows;
	}
	return OW_OK;
}

ow_status order_make(const struct table *t, uint32_t first, uint32_t end, uint32_t sort,
		     uint32_t step, struct order *order, struct ow_error *err)
{
	struct order_item *items, *spare;
	ow_status status;
	size_t size;

	*order = (struct order){ .mem = t->mem };
	OW_TRY(count_rows(t, first, end, &order->count, err));
	size = order->size = MAX(order->count, 1) * sizeof(*items);
	items = mem_alloc(t->mem, size);
	spare = items ? mem_alloc(t->mem, size) : NULL;
	status = spare ? collect(t, first, end, sort, items, err) : error_no_memory(err);
	if (status == OW_OK && sort != ORDER_NONE)
		sort_keys(&items, &spare, order->count);
	if (status == OW_OK && step != ORDER_NONE) {
		OW_ASSERT(end == first + 1);
		status = change_keys(t, first, step, items, order->count, err);
		if (status == OW_OK)
			sort_keys(&items, &spare, order->count);
	}
	mem_free(t->mem, spare, size);
	if (status == OW_OK)
		order->items = items;
	else
		mem_free(t->mem, items, size);
	return status;
}

void order_release(struct order *order)
{
	mem_free(order->mem, order->items, order->size);
	*order = (struct order){ .mem = order->mem };
}

#define NEAR 16 /* rows at most this far apart are read in one piece */

static ow_status add_column(struct rows *rows, uint32_t index, struct ow_error *err)
{
	struct rows_column *column = &rows->columns[rows->column_count++];

	column->c = &rows->t->columns[index];
	column->index = index;
	column->values = arena_push_array(&rows->arena, rows->block, column_value_size(column->c));
	column->valid = ARENA_ARRAY(&rows->arena, uint64_t, rows->block / 64);
	return column->values && column->valid ? OW_OK : error_no_memory(err);
}

static ow_status add_columns(struct rows *rows, const bool *skip, struct ow_error *err)
{
	rows->columns = ARENA_ARRAY(&rows->arena, struct rows_column, rows->t->column_count + 1);
	if (!rows->columns)
		return error_no_memory(err);
	for (uint32_t i = 0; i < rows->t->column_count; i++)
		if (!skip || !skip[i])
			OW_TRY(add_column(rows, i, err));
	return OW_OK;
}

/* The size of a block: at most the rows of the largest part, because most tables for people are small. */
static uint32_t block_rows(const struct table *t)
{
	uint64_t most = 1;

	for (uint32_t i = 0; i < t->part_count; i++)
		most = MAX(most, t->parts[i].rows);
	return (uint32_t)MIN((most + 63) / 64 * 64, ROWS_BLOCK);
}

ow_status rows_open(struct rows *rows, const struct table *t, const bool *skip,
		    struct ow_error *err)
{
	ow_status status;

	*rows = (struct rows){ .t = t, .block = block_rows(t) };
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

ow_status rows_start_order(struct rows *rows, const struct order_item *items, size_t count,
			   struct ow_error *err)
{
	rows_start(rows, 0, 0);
	rows->items = items;
	rows->items_end = items + count;
	if (rows->sorted)
		return OW_OK;
	rows->spare = ARENA_ARRAY(&rows->arena, struct order_item, rows->block);
	rows->part_of = ARENA_ARRAY(&rows->arena, uint32_t, rows->block);
	/* sized for struct str, the largest type */
	rows->piece.values = ARENA_ARRAY(&rows->arena, struct str, rows->block);
	rows->piece.valid = ARENA_ARRAY(&rows->arena, uint64_t, rows->block / 64);
	rows->piece.scratch = &rows->scratch;
	if (rows->spare && rows->part_of && rows->piece.values && rows->piece.valid)
		rows->sorted = ARENA_ARRAY(&rows->arena, struct order_item, rows->block);
	return rows->sorted ? OW_OK : error_no_memory(err);
}

static ow_status next_in_place(struct rows *rows, struct ow_error *err)
{
	rows->row += rows->n;
	rows->n = 0;
	while (rows->part < rows->part_end && rows->row == rows->t->parts[rows->part].rows) {
		rows->part++;
		rows->row = 0;
	}
	if (rows->part >= rows->part_end)
		return OW_OK;
	rows->n = (uint32_t)MIN(rows->t->parts[rows->part].rows - rows->row, rows->block);
	for (uint32_t i = 0; i < rows->column_count; i++) {
		struct rows_column *column = &rows->columns[i];
		struct table_vec vec = { .values = column->values,
					 .valid = column->valid,
					 .scratch = &rows->scratch };

		OW_TRY(table_read(rows->t, rows->part, column->index, rows->row, rows->n, &vec,
				  err));
		column->has_nulls = vec.has_nulls;
	}
	return OW_OK;
}

/* Copies values of the piece that was read from row `first` on; the key of an item is its place in the column. */
static void scatter(struct rows_column *column, const struct table_vec *piece, uint32_t first,
		    const struct order_item *items, uint32_t count)
{
	size_t size = column_value_size(column->c);

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

/* The number of items that are close enough to be read in one piece; *length is the length of the piece. */
static uint32_t near_by(const struct order_item *items, uint32_t count, uint32_t most,
			uint32_t *len)
{
	uint32_t n = 1, first = order_row(items[0]);

	while (n < count && order_part(items[n]) == order_part(items[0]) &&
	       order_row(items[n]) - order_row(items[n - 1]) <= NEAR &&
	       order_row(items[n]) - first < most)
		n++;
	*len = order_row(items[n - 1]) - first + 1;
	return n;
}

static ow_status read_piece(struct rows *rows, const struct order_item *items, uint32_t count,
			    uint32_t len, struct ow_error *err)
{
	uint32_t first = order_row(items[0]);

	for (uint32_t i = 0; i < rows->column_count; i++) {
		OW_TRY(table_read(rows->t, order_part(items[0]), rows->columns[i].index, first, len,
				  &rows->piece, err));
		scatter(&rows->columns[i], &rows->piece, first, items, count);
	}
	return OW_OK;
}

static ow_status next_in_order(struct rows *rows, struct ow_error *err)
{
	const struct order_item *sorted;
	uint32_t taken;

	rows->n = (uint32_t)MIN((size_t)(rows->items_end - rows->items), rows->block);
	for (uint32_t i = 0; i < rows->n; i++) {
		rows->sorted[i] = (struct order_item){ i, rows->items[i].where & ~ORDER_UNKNOWN };
		rows->part_of[i] = order_part(rows->items[i]);
	}
	rows->items += rows->n;
	rows->parts = rows->part_of;
	sorted = radix_sort(rows->sorted, rows->spare, rows->n, where, 8);
	for (uint32_t i = 0; i < rows->column_count; i++) {
		rows->columns[i].has_nulls = false;
		memset(rows->columns[i].valid, 0xff, rows->block / 8);
	}
	for (uint32_t i = 0; i < rows->n; i += taken) {
		uint32_t len;

		taken = near_by(sorted + i, rows->n - i, rows->block, &len);
		OW_TRY(read_piece(rows, sorted + i, taken, len, err));
	}
	return OW_OK;
}

ow_status rows_next(struct rows *rows, struct ow_error *err)
{
	arena_clear(&rows->scratch);
	return rows->items ? next_in_order(rows, err) : next_in_place(rows, err);
}

struct str rows_text(const struct rows *rows, const struct rows_column *column, uint32_t i)
{
	const struct table_dict *dict = table_dict(rows->t, rows_part(rows, i), column->index);
	uint32_t code;

	if (!dict)
		return ((const struct str *)column->values)[i];
	code = ((const uint32_t *)column->values)[i];
	return code ? dict->texts[code] : (struct str){ 0 };
}
