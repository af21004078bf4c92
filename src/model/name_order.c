/*
 * name_order.c: model_ops_by_name, the ops in byte order of their names. Half a million names with long common prefixes
 * are usual, so this sorts by eight bytes at a time, and by the next eight only within equal groups. Large groups are
 * distributed by the bytes in which they differ. Computed on first use: not every view needs it.
 */
#include "base/radix.h"
#include "base/vec.h"
#include "model/model.h"

#define FEW 24	 /* up to this many are sorted by inserting */
#define MANY 256 /* from this many on distributing is faster than comparing */

struct item {
	uint64_t key; /* the eight bytes at the current depth, big-endian, zero-padded */
	const char *name;
	uint32_t len;
	uint32_t op;
};

struct group {
	struct item *at;
	size_t count;
	size_t depth;
};

static struct str name_of(const struct item *item)
{
	return str_make(item->name, item->len);
}

static uint64_t key_at(struct str s, size_t depth)
{
	uint64_t key = 0;

	if (depth + 8 <= s.len) {
		memcpy(&key, s.ptr + depth, 8);
		return __builtin_bswap64(key);
	}
	for (size_t i = depth; i < s.len; i++)
		key |= (uint64_t)(unsigned char)s.ptr[i] << (56 - 8 * (i - depth));
	return key;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Sorts items by key. `spare` has room for as many items. */
static void sort_by_key(struct item *items, struct item *spare, size_t count)
{
	if (count < MANY)
		qsort(items, count, sizeof(*items), compare_items);
	else
		radix_sort_in_place(items, spare, count, key, 8);
}

static void insertion_sort(struct item *items, size_t count, size_t depth)
{
	for (size_t i = 1; i < count; i++) {
		struct item item = items[i];
		struct str name = str_skip(name_of(&item), depth);
		size_t k = i;

		for (; k > 0; k--) {
			if (items[k - 1].key < item.key ||
			    (items[k - 1].key == item.key &&
			     str_cmp(str_skip(name_of(&items[k - 1]), depth), name) <= 0))
				break;
			items[k] = items[k - 1];
		}
		items[k] = item;
	}
}

/* Whether a name ends inside the key: a zero-padded key cannot distinguish "a" from "a\0". Groups with such names
 * are few, and sorted by comparing. */
static bool ends_inside(const struct item *items, size_t count, size_t depth)
{
	for (size_t i = 0; i < count; i++)
		if (items[i].len < depth + 8)
			return true;
	return false;
}

/* In a group with equal keys, moves the names that end to the front, sorted by length; returns their number. */
static size_t short_names_first(struct item *items, size_t count, size_t depth)
{
	size_t ended = 0;

	for (size_t i = 0; i < count; i++) {
		struct item item = items[i];

		if (item.len >= depth + 8)
			continue;
		items[i] = items[ended];
		items[ended++] = item;
	}
	for (size_t i = 1; i < ended; i++) {
		struct item item = items[i];
		size_t k = i;

		for (; k > 0 && items[k - 1].len > item.len; k--)
			items[k] = items[k - 1];
		items[k] = item;
	}
	return ended;
}

static bool push_group(struct mem *mem, struct group **stack, size_t *cap, size_t *top,
		       struct group group)
{
	return vec_push(mem, *stack, *top, *cap, group);
}

static bool sort_names(const struct model *m, struct item *items, struct item *spare, size_t count)
{
	struct group *stack = NULL;
	size_t cap = 0, top = 0;
	bool ok = push_group(m->mem, &stack, &cap, &top, (struct group){ items, count, 0 });

	while (ok && top) {
		struct group group = stack[--top];

		for (size_t i = 0; i < group.count; i++)
			group.at[i].key = key_at(name_of(&group.at[i]), group.depth);
		if (group.count < FEW) {
			insertion_sort(group.at, group.count, group.depth);
			continue;
		}
		sort_by_key(group.at, spare, group.count);
		for (size_t i = 0, end; ok && i < group.count; i = end) {
			struct item *run = group.at + i;
			size_t ended = 0;

			for (end = i + 1; end < group.count && group.at[end].key == run->key;)
				end++;
			if (end - i < 2)
				continue;
			if (ends_inside(run, end - i, group.depth))
				ended = short_names_first(run, end - i, group.depth);
			if (end - i - ended > 1)
				ok = push_group(m->mem, &stack, &cap, &top,
						(struct group){ run + ended, end - i - ended,
								group.depth + 8 });
		}
	}
	mem_free(m->mem, stack, cap * sizeof(*stack));
	return ok;
}

/* Fills the sorted order; false if memory runs out. */
static bool fill_order(const struct model *m, op_id *order, size_t count)
{
	struct item *items = mem_alloc(m->mem, 2 * count * sizeof(*items));
	bool ok = items != NULL;

	for (size_t i = 0; ok && i < count; i++) {
		struct str name = model_str(m, m->op.name[i + 1]);

		items[i] = (struct item){ .name = name.ptr,
					  .len = (uint32_t)name.len,
					  .op = (uint32_t)i + 1 };
	}
	ok = ok && sort_names(m, items, items + count, count);
	for (size_t i = 0; ok && i < count; i++)
		order[i].v = items[i].op;
	mem_free(m->mem, items, 2 * count * sizeof(*items));
	return ok;
}

ow_status name_order_make(struct model *m, struct ow_error *err)
{
	size_t count = m->op.count - 1;
	op_id *order = mem_alloc(m->mem, count * sizeof(*order));

	if (order && fill_order(m, order, count)) {
		m->ops_by_name = order;
		return OW_OK;
	}
	mem_free(m->mem, order, count * sizeof(*order));
	return error_no_memory(err);
}
