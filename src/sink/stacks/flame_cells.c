/*
 * flame_cells.c: makes the boxes of a flame graph from a tree (flame_cells.h): copied, sorted by size, or inverted. It
 * does not know pixels.
 */
#include "sink/stacks/flame_cells.h"

#include "base/map.h"
#include "base/vec.h"

#include <stdlib.h>

#define CALLERS_MAX 1000 /* if a leaf has more callers than this, the rest is left out */

void flame_cells_release(struct flame_cells *c)
{
	mem_free(c->mem, c->items, c->cap * sizeof(*c->items));
	c->items = NULL;
}

bool flame_cells_add(struct flame_cells *c, const struct flame_cell *cell)
{
	if (c->count >= UINT32_MAX - 1 || !vec_push(c->mem, c->items, c->count, c->cap, *cell))
		return false;
	return true;
}

static bool copy_tree(struct flame_cells *c, const struct tree *tree, enum metric metric,
		      const int64_t *child_sums)
{
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		int64_t total = tree_out_total(tree, node, metric);

		if (!flame_cells_add(
			    c, &(struct flame_cell){ .node = i,
						     .parent = node->parent,
						     .depth = node->depth,
						     .total = total,
						     .own = total - MIN(total, child_sums[i]) }))
			return false;
	}
	return true;
}

static bool caller_cell(struct flame_cells *c, struct map *map, const struct tree *tree,
			uint32_t parent, uint32_t node, uint32_t *cell)
{
	uint64_t hash = map_hash_u64(parent, str_hash(tree->nodes[node].name));

	for (struct map_iter it = map_find(map, hash); it.value; it = map_next(map, it)) {
		const struct flame_cell *other = &c->items[it.value];

		if (other->parent == parent &&
		    str_eq(tree->nodes[other->node].name, tree->nodes[node].name)) {
			*cell = it.value;
			return true;
		}
	}
	*cell = (uint32_t)c->count;
	return flame_cells_add(c, &(struct flame_cell){ .node = node,
							.parent = parent,
							.depth = c->items[parent].depth + 1 }) &&
	       map_add(map, hash, *cell);
}

int64_t flame_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Inverts the tree: every node's own value is added to a box with its name at the first level, then to its caller
 * below that, and so on. */
static bool invert(struct flame_cells *c, const struct tree *tree, enum metric metric,
		   const int64_t *child_sums, struct map *map)
{
	if (!flame_cells_add(c, &(struct flame_cell){ 0 }))
		return false;
	for (uint32_t i = 1; i < tree->node_count; i++) {
		int64_t total = tree_out_total(tree, &tree->nodes[i], metric);
		int64_t own = total - MIN(total, child_sums[i]);
		uint32_t cell = 0, levels = 0;

		if (own <= 0)
			continue;
		c->items[0].total = flame_add(c->items[0].total, own);
		for (uint32_t at = i; at && levels < CALLERS_MAX;
		     at = tree->nodes[at].parent, levels++) {
			if (!caller_cell(c, map, tree, cell, at, &cell))
				return false;
			c->items[cell].total = flame_add(c->items[cell].total, own);
		}
		c->items[cell].own = flame_add(c->items[cell].own, own);
	}
	return true;
}

struct keyed {
	int64_t total;
	uint32_t parent, cell;
};

static int by_parent_and_size(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x->cell > y->cell) - (x->cell < y->cell);
}

/* Sorts the boxes into pre-order with the largest child first: siblings are chained, then the chains are walked. */
static bool reorder(struct flame_cells *c, uint32_t *first, uint32_t *next, uint32_t *place,
		    struct keyed *keys, struct flame_cell *sorted)
{
	uint32_t count = (uint32_t)c->count, at = 0, out = 0;

	for (uint32_t i = 1; i < count; i++)
		keys[i] = (struct keyed){ c->items[i].total, c->items[i].parent, i };
	qsort(keys + 1, count - 1, sizeof(*keys), by_parent_and_size);
	for (uint32_t i = count - 1; i > 0; i--) {
		next[keys[i].cell] = first[keys[i].parent];
		first[keys[i].parent] = keys[i].cell;
	}
	for (;;) {
		sorted[out] = c->items[at];
		sorted[out].parent = at ? place[c->items[at].parent] : 0;
		place[at] = out++;
		if (first[at]) {
			at = first[at];
			continue;
		}
		while (at && !next[at])
			at = c->items[at].parent;
		if (!at)
			break;
		at = next[at];
	}
	return out == count;
}

static bool sort_cells(struct flame_cells *c)
{
	size_t count = c->count;
	struct arena arena;
	uint32_t *first, *next, *place;
	struct keyed *keys;
	struct flame_cell *sorted;
	bool ok;

	if (count < 2)
		return true;
	arena_init(&arena, c->mem);
	first = ARENA_ARRAY(&arena, uint32_t, count);
	next = ARENA_ARRAY(&arena, uint32_t, count);
	place = ARENA_ARRAY(&arena, uint32_t, count);
	keys = ARENA_ARRAY(&arena, struct keyed, count);
	sorted = ARENA_ARRAY(&arena, struct flame_cell, count);
	ok = first && next && place && keys && sorted &&
	     reorder(c, first, next, place, keys, sorted);
	if (ok)
		memcpy(c->items, sorted, count * sizeof(*sorted));
	arena_release(&arena);
	return ok;
}

ow_status flame_cells_make(struct flame_cells *c, const struct tree *tree, enum metric metric,
			   unsigned style, struct mem *mem, struct ow_error *err)
{
	int64_t *child_sums;
	struct map map;
	bool ok;

	*c = (struct flame_cells){ .mem = mem };
	OW_TRY(tree_out_child_sums(tree, metric, mem, &child_sums, err));
	map_init(&map, mem);
	if (style & FLAME_INVERTED)
		ok = invert(c, tree, metric, child_sums, &map);
	else
		ok = copy_tree(c, tree, metric, child_sums);
	map_release(&map);
	tree_out_release(tree, mem, child_sums);
	if (ok && style & (FLAME_INVERTED | FLAME_LEFT_HEAVY))
		ok = sort_cells(c);
	return ok ? OW_OK : error_no_memory(err);
}
