/* order.c: see order.h. */
#include "export/order.h"

#include "base/arena.h"
#include "base/str.h"

#define BLOCK 2048

/* ---- radix ---- */

static inline uint64_t word_of(const struct order_item *item, enum order_by by)
{
	return by == ORDER_BY_KEY ? item->key : item->where;
}

/* One stable pass by a byte; false when all have the same, and nothing was moved. */
static bool pass(const struct order_item *from, struct order_item *to, size_t count,
		 enum order_by by, unsigned shift)
{
	size_t at[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < count; i++)
		at[word_of(&from[i], by) >> shift & 255]++;
	if (!count || at[word_of(&from[0], by) >> shift & 255] == count)
		return false;
	for (unsigned i = 0; i < 256; i++) {
		size_t n = at[i];

		at[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		to[at[word_of(&from[i], by) >> shift & 255]++] = from[i];
	return true;
}

static void swap(struct order_item **a, struct order_item **b)
{
	struct order_item *was = *a;

	*a = *b;
	*b = was;
}

struct order_item *order_sort(struct order_item *items, struct order_item *spare, size_t count,
			      enum order_by by)
{
	for (unsigned shift = 0; shift < 64; shift += 8)
		if (pass(items, spare, count, by, shift))
			swap(&items, &spare);
	return items;
}

/* By key, what has none after all that have one. */
static void sort_keys(struct order_item **items, struct order_item **spare, size_t count)
{
	if (order_sort(*items, *spare, count, ORDER_BY_KEY) != *items)
		swap(items, spare);
	if (pass(*items, *spare, count, ORDER_BY_WHERE, 63))
		swap(items, spare);
}

/* ---- keys ---- */

bool order_can_sort(const struct relation_column *c)
{
	return c->type != RELATION_TEXT || c->dict != DICT_NONE;
}

/* A text of a dictionary, and where its rank goes. */
struct ranked {
	struct str text;
	uint32_t *rank;
};

struct ranks {
	struct arena arena;
	uint32_t **of; /* per part, by code */
};

static int compare_texts(const void *a, const void *b)
{
	return str_cmp(((const struct ranked *)a)->text, ((const struct ranked *)b)->text);
}

/* Numbers the texts of all parts' dictionaries in byte order. */
static ow_status rank_texts(const struct relation_table *t, uint32_t first, uint32_t end,
			    uint32_t column, struct ranks *ranks, struct error *err)
{
	struct ranked *all;
	size_t count = 0;
	uint32_t rank = 0;

	ranks->of = ARENA_ARRAY(&ranks->arena, uint32_t *, end);
	for (uint32_t p = first; p < end; p++)
		count += relation_dict(t, p, column)->count;
	all = ARENA_ARRAY(&ranks->arena, struct ranked, count);
	if (!ranks->of || !all)
		return error_no_memory(err);
	count = 0;
	for (uint32_t p = first; p < end; p++) {
		const struct relation_dict *dict = relation_dict(t, p, column);

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

static uint64_t key_of(const struct relation_column *c, const void *values, uint32_t i,
		       const uint32_t *ranks)
{
	const uint64_t sign = (uint64_t)1 << 63;

	switch (c->type) {
	case RELATION_BOOL:
		return ((const bool *)values)[i];
	case RELATION_INT32:
		return (uint64_t)(int64_t)((const int32_t *)values)[i] ^ sign;
	case RELATION_INT64:
		return ((const uint64_t *)values)[i] ^ sign;
	case RELATION_UINT64:
		return ((const uint64_t *)values)[i];
	case RELATION_REAL:
		return key_of_real(((const double *)values)[i]);
	default:
		OW_ASSERT(ranks);
		return ranks ? ranks[((const uint32_t *)values)[i]] : 0;
	}
}

static bool is_known(const struct relation_column *c, const struct relation_vec *vec, uint32_t i)
{
	if (c->type == RELATION_TEXT)
		return ((const uint32_t *)vec->values)[i] != 0;
	return !vec->has_nulls || (vec->valid[i / 64] >> i % 64 & 1);
}

/* Gives each row of a part its key; take(arg, row, key, known). */
struct keys {
	const struct relation_table *t;
	const struct ranks *ranks;
	void (*take)(void *arg, uint64_t row, uint64_t key, bool known);
	void *arg;
};

static ow_status read_keys(const struct keys *k, uint32_t part, uint32_t column, struct error *err)
{
	const struct relation_column *c = &k->t->columns[column];
	uint64_t values[BLOCK], valid[BLOCK / 64], rows = k->t->parts[part].rows;
	struct relation_vec vec = { .values = values, .valid = valid };
	const uint32_t *ranks = k->ranks && k->ranks->of ? k->ranks->of[part] : NULL;

	for (uint64_t row = 0; row < rows; row += BLOCK) {
		uint32_t n = (uint32_t)MIN(rows - row, BLOCK);

		OW_TRY(relation_fill(k->t, part, column, row, n, &vec, err));
		for (uint32_t i = 0; i < n; i++) {
			bool known = is_known(c, &vec, i);

			k->take(k->arg, row + i, known ? key_of(c, values, i, ranks) : 0, known);
		}
	}
	return OW_OK;
}

/* ---- making ---- */

struct making {
	struct order_item *items; /* the next one */
	uint32_t part;
};

static void take_item(void *arg, uint64_t row, uint64_t key, bool known)
{
	struct making *m = arg;

	*m->items++ = (struct order_item){ key, (known ? 0 : ORDER_UNKNOWN) |
							(uint64_t)m->part << 32 | row };
}

/* Items of all rows, with the key of the column when there is one. */
static ow_status collect(const struct relation_table *t, uint32_t first, uint32_t end,
			 uint32_t column, struct order_item *items, struct error *err)
{
	struct ranks ranks = { 0 };
	struct making m = { .items = items };
	struct keys keys = { t, &ranks, take_item, &m };
	ow_status status = OW_OK;

	arena_init(&ranks.arena, t->mem);
	if (column != ORDER_NONE && t->columns[column].type == RELATION_TEXT)
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

/* Keys of a part by row. */
struct by_row {
	uint64_t *keys;
	uint64_t *unknown; /* a bit each */
};

static void take_by_row(void *arg, uint64_t row, uint64_t key, bool known)
{
	struct by_row *b = arg;

	b->keys[row] = key;
	if (!known)
		b->unknown[row / 64] |= (uint64_t)1 << row % 64;
}

/* Gives the items, whatever their order, the keys of another column. */
static ow_status change_keys(const struct relation_table *t, uint32_t part, uint32_t column,
			     struct order_item *items, size_t count, struct error *err)
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

static ow_status count_rows(const struct relation_table *t, uint32_t first, uint32_t end,
			    size_t *count, struct error *err)
{
	*count = 0;
	for (uint32_t p = first; p < end; p++) {
		if (t->parts[p].rows > UINT32_MAX || p > INT32_MAX)
			return error_set(err, OW_E_LIMIT,
					 "%s has %" PRIu64 " rows, too many to be sorted",
					 t->relation->name, t->parts[p].rows);
		*count += t->parts[p].rows;
	}
	return OW_OK;
}

ow_status order_make(const struct relation_table *t, uint32_t first, uint32_t end, uint32_t sort,
		     uint32_t step, struct order *order, struct error *err)
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
