/*
 * name_order.c: model_ops_by_name, the ops in byte order of their names. Half a million names with
 * long common prefixes are usual, so this is a quicksort on eight bytes at a time (cached), going on
 * to the next eight only within equal groups. Made on first use: not every view needs it.
 */
#include "model/model.h"

struct item {
	uint64_t key; /* the eight bytes at the current depth, big-endian, zero-padded */
	uint32_t op;
};

struct group {
	struct item *at;
	size_t count;
	size_t depth;
};

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

static void insertion_sort(const struct model *m, struct item *items, size_t count, size_t depth)
{
	for (size_t i = 1; i < count; i++) {
		struct item item = items[i];
		struct str name = str_skip(model_str(m, m->op.name[item.op]), depth);
		size_t k = i;

		for (; k > 0; k--) {
			struct str other =
				str_skip(model_str(m, m->op.name[items[k - 1].op]), depth);

			if (items[k - 1].key < item.key ||
			    (items[k - 1].key == item.key && str_cmp(other, name) <= 0))
				break;
			items[k] = items[k - 1];
		}
		items[k] = item;
	}
}

/* A zero-padded key cannot tell "a" from "a\0": such groups are few, and sorted by comparing. */
static bool ends_inside(const struct model *m, const struct item *items, size_t count, size_t depth)
{
	for (size_t i = 0; i < count; i++)
		if (model_str(m, m->op.name[items[i].op]).len < depth + 8)
			return true;
	return false;
}

/* In a group whose keys are equal, the names that end go first, by length; returns how many. */
static size_t short_names_first(const struct model *m, struct item *items, size_t count,
				size_t depth)
{
	size_t ended = 0;

	for (size_t i = 0; i < count; i++) {
		struct item item = items[i];

		if (model_str(m, m->op.name[item.op]).len >= depth + 8)
			continue;
		items[i] = items[ended];
		items[ended++] = item;
	}
	for (size_t i = 1; i < ended; i++) {
		struct item item = items[i];
		size_t len = model_str(m, m->op.name[item.op]).len, k = i;

		for (; k > 0 && model_str(m, m->op.name[items[k - 1].op]).len > len; k--)
			items[k] = items[k - 1];
		items[k] = item;
	}
	return ended;
}

static bool push_group(struct mem *mem, struct group **stack, size_t *cap, size_t *top,
		       struct group group)
{
	void *grown = *stack;

	if (!mem_grow(mem, &grown, cap, *top + 1, sizeof(group)))
		return false;
	*stack = grown;
	(*stack)[(*top)++] = group;
	return true;
}

static bool sort_names(const struct model *m, struct item *items, size_t count)
{
	struct group *stack = NULL;
	size_t cap = 0, top = 0;
	bool ok = push_group(m->mem, &stack, &cap, &top, (struct group){ items, count, 0 });

	while (ok && top) {
		struct group group = stack[--top];

		for (size_t i = 0; i < group.count; i++)
			group.at[i].key =
				key_at(model_str(m, m->op.name[group.at[i].op]), group.depth);
		if (group.count < 24) {
			insertion_sort(m, group.at, group.count, group.depth);
			continue;
		}
		qsort(group.at, group.count, sizeof(*group.at), compare_items);
		for (size_t i = 0, end; ok && i < group.count; i = end) {
			struct item *run = group.at + i;
			size_t ended = 0;

			for (end = i + 1; end < group.count && group.at[end].key == run->key;)
				end++;
			if (end - i < 2)
				continue;
			if (ends_inside(m, run, end - i, group.depth))
				ended = short_names_first(m, run, end - i, group.depth);
			if (end - i - ended > 1)
				ok = push_group(m->mem, &stack, &cap, &top,
						(struct group){ run + ended, end - i - ended,
								group.depth + 8 });
		}
	}
	mem_free(m->mem, stack, cap * sizeof(*stack));
	return ok;
}

static op_id *make_order(const struct model *m)
{
	size_t count = m->op.count - 1;
	struct item *items = mem_alloc(m->mem, count * sizeof(*items));
	op_id *order = items ? mem_alloc(m->mem, count * sizeof(*order)) : NULL;

	if (order) {
		for (size_t i = 0; i < count; i++)
			items[i].op = (uint32_t)i + 1;
		if (sort_names(m, items, count)) {
			for (size_t i = 0; i < count; i++)
				order[i].v = items[i].op;
		} else {
			mem_free(m->mem, order, count * sizeof(*order));
			order = NULL;
		}
	}
	mem_free(m->mem, items, count * sizeof(*items));
	return order;
}

const op_id *model_ops_by_name(struct model *m, struct error *err)
{
	pthread_mutex_lock(&m->lock);
	if (!m->ops_by_name)
		m->ops_by_name = make_order(m);
	pthread_mutex_unlock(&m->lock);
	if (!m->ops_by_name)
		error_no_memory(err);
	return m->ops_by_name;
}
