/*
 * lines.c: finds lines that moved (diff.h): an edit above a function moves all of its lines by the same number. For
 * each function of a file it finds the shift that maps most lines of the new runs to lines of the base, so that a line
 * is compared with its old self. Called by match.c before it makes rows. It knows line numbers only, not the source.
 */
#include "diff/diff.h"

#include "base/map.h"

#include <stdlib.h>

#define LINES_MOST 256u /* limit of lines in a function; longer lists are not compared */
#define AGREE_LEAST 2u	/* a shift needs this many matching lines: one alone is not evidence */
#define TRIED 16u	/* this many lines of the new runs are tried with each line of the base */

/* The recorded lines of one function. */
struct group {
	struct str prefix, suffix,
		/* prefix "model.py:", suffix " forward"; op if the line does not name the function */
		op;
	int32_t *lines[2];
	size_t count[2], cap[2];
	int32_t shift;
};

struct groups {
	struct diff_rows *d;
	struct group *items;
	size_t count, cap;
	struct map map;
};

bool diff_line_split(const struct diff_cell *cell, struct str *prefix, struct str *suffix)
{
	char number[16];
	size_t len = (size_t)snprintf(number, sizeof(number), ":%d", (int)cell->line_number);
	struct str line = cell->line;

	for (size_t at = line.len; cell->line_number > 0 && at-- > 0;) {
		size_t end = at + len;

		if (line.ptr[at] == ':' && end <= line.len &&
		    memcmp(line.ptr + at, number, len) == 0 &&
		    (end == line.len || line.ptr[end] == ' ')) {
			*prefix = str_first(line, at + 1);
			*suffix = str_skip(line, end);
			return true;
		}
	}
	return false;
}

static struct group *find_group(struct groups *g, const struct diff_cell *cell, bool add)
{
	struct group new = { 0 }, *grown;
	uint64_t hash;

	if (!diff_line_split(cell, &new.prefix, &new.suffix))
		return NULL;
	new.op = new.suffix.len ? STR("") : cell->op;
	hash = map_hash_u64(map_hash_u64(str_hash(new.prefix), str_hash(new.suffix)),
			    str_hash(new.op));
	for (struct map_iter it = map_find(&g->map, hash); it.value; it = map_next(&g->map, it)) {
		struct group *item = &g->items[it.value - 1];

		if (str_eq(item->prefix, new.prefix) && str_eq(item->suffix, new.suffix) &&
		    str_eq(item->op, new.op))
			return item;
	}
	if (!add)
		return NULL;
	grown = arena_grow(&g->d->arena, g->items, g->count, &g->cap, sizeof(*grown));
	if (!grown || !map_add(&g->map, hash, (uint32_t)g->count + 1))
		return NULL;
	g->items = grown;
	g->items[g->count] = new;
	return &g->items[g->count++];
}

static bool add_line(struct groups *g, const struct diff_cell *cell, unsigned side)
{
	struct str prefix, suffix;
	struct group *group;
	int32_t *grown;

	if (!diff_line_split(cell, &prefix, &suffix))
		return true;
	group = find_group(g, cell, true);
	if (!group)
		return false;
	for (size_t i = 0; i < group->count[side]; i++)
		if (group->lines[side][i] == cell->line_number)
			return true;
	if (group->count[side] >= LINES_MOST)
		return true;
	grown = arena_grow(&g->d->arena, group->lines[side], group->count[side], &group->cap[side],
			   sizeof(*grown));
	if (!grown)
		return false;
	group->lines[side] = grown;
	grown[group->count[side]++] = cell->line_number;
	return true;
}

static int by_value(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* The number of lines of the new runs that become lines of the base when they are moved back by `shift`. Both lists
 * ascend. */
static size_t count_agreeing(const struct group *g, int32_t shift)
{
	size_t a = 0, b = 0, count = 0;

	while (a < g->count[0] && b < g->count[1]) {
		int64_t x = g->lines[0][a], y = (int64_t)g->lines[1][b] - shift;

		count += x == y;
		a += x <= y;
		b += y <= x;
	}
	return count;
}

/* Finds the shift of a function: none, unless another shift explains more lines; among equal ones the smallest. */
static void find_shift(struct group *g)
{
	size_t best;

	for (unsigned side = 0; side < 2; side++) {
		if (g->count[side] < AGREE_LEAST || g->count[side] >= LINES_MOST)
			return;
		qsort(g->lines[side], g->count[side], sizeof(int32_t), by_value);
	}
	best = MAX(count_agreeing(g, 0), AGREE_LEAST - 1);
	for (size_t a = 0; a < g->count[0]; a++)
		for (size_t b = 0; b < g->count[1]; b += 1 + g->count[1] / TRIED) {
			int64_t shift = (int64_t)g->lines[1][b] - g->lines[0][a];
			size_t count;

			if (shift < INT32_MIN || shift > INT32_MAX)
				continue;
			count = count_agreeing(g, (int32_t)shift);
			if (count > best ||
			    (count == best && g->shift && llabs(shift) < llabs(g->shift))) {
				best = count;
				g->shift = (int32_t)shift;
			}
		}
}

static bool set_shifts(struct groups *g, size_t run)
{
	const struct diff_run *from = &g->d->all[run];
	int32_t *shifts = ARENA_ARRAY(&g->d->arena, int32_t, from->cell_count + 1);

	if (!shifts)
		return false;
	g->d->shifts[run] = shifts;
	for (size_t i = 0; i < from->cell_count; i++) {
		const struct group *group = find_group(g, &from->cells[i], false);

		shifts[i] = group ? group->shift : 0;
	}
	return true;
}

ow_status diff_lines_align(struct diff_rows *d, struct ow_error *err)
{
	struct groups g = { .d = d };
	size_t runs = d->runs[0] + d->runs[1];
	bool good = true;

	map_init(&g.map, d->mem);
	d->shifts = ARENA_ARRAY(&d->arena, int32_t *, runs);
	good = d->shifts != NULL;
	for (size_t r = 0; good && r < runs; r++)
		for (size_t i = 0; good && i < d->all[r].cell_count; i++)
			good = add_line(&g, &d->all[r].cells[i], r >= d->runs[0]);
	for (size_t i = 0; i < g.count; i++)
		find_shift(&g.items[i]);
	for (size_t r = d->runs[0]; good && r < runs; r++)
		good = set_shifts(&g, r);
	map_release(&g.map);
	return good ? OW_OK : error_no_memory(err);
}
