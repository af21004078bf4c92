/*
 * rows.c: the rows of a comparison, made of the cells of all runs (diff.h): a row for each phase, op, line and rank, of what both sides know. Where
 * one side has no lines, ops are compared without them; where the sides know different operators, as a trace of PyTorch and an export of
 * Nsight Systems do, device work is compared by kernel. match.c joins rows that are the same thing. Called by diff.c.
 */
#include "diff/diff.h"

#include "base/map.h"
#include "diff/arguments.h"

#include <math.h>
#include <stdlib.h>

#define PARTS_MOST 256u	  /* limit of kernels and calls that are compared in a row */
#define ONCE_A_STEP 0.999 /* at least once in each step; means are rounded */
/* kernels are compared if they match this share more of the device's time than operators */
#define KERNELS_WORTH 0.1

static unsigned side_of(const struct diff_rows *d, size_t run)
{
	return run >= d->runs[0];
}

static bool has_format(const struct diff_run *run, struct str value)
{
	for (size_t i = 0; i < run->setting_count; i++)
		if (str_eq(run->settings[i].name, STR("format")) &&
		    str_eq(run->settings[i].value, value))
			return true;
	return false;
}

/* Whether some run of the new side has a format that the base's first run does not have. */
static bool has_other_format(const struct diff_rows *d)
{
	for (size_t r = 1; r < d->runs[0] + d->runs[1]; r++)
		for (size_t i = 0; i < d->all[r].setting_count; i++)
			if (str_eq(d->all[r].settings[i].name, STR("format")) &&
			    !has_format(&d->all[0], d->all[r].settings[i].value))
				return true;
	return false;
}

static struct str device_name(const struct diff_cell *cell, bool by_kernel)
{
	return by_kernel && cell->part.len ? cell->part : cell->op;
}

/* Sums of the device's time by name. */
struct names {
	struct map map;
	struct str *items;
	double (*ns)[2];
	size_t count;
};

static bool add_name(struct names *n, struct str name, unsigned side, double ns)
{
	uint64_t hash = str_hash(name);

	for (struct map_iter it = map_find(&n->map, hash); it.value; it = map_next(&n->map, it))
		if (str_eq(n->items[it.value - 1], name)) {
			n->ns[it.value - 1][side] += ns;
			return true;
		}
	n->items[n->count] = name;
	n->ns[n->count++][side] = ns;
	return map_add(&n->map, hash, (uint32_t)n->count);
}

/* The share of the device's time whose names both sides have, in the first run of each side: 0 … 1; -1 if memory
 * runs out. */
static double common_part(struct diff_rows *d, bool by_kernel)
{
	const struct diff_run *sides[2] = { &d->all[0], &d->all[d->runs[0]] };
	size_t most = sides[0]->cell_count + sides[1]->cell_count + 1;
	struct names n = { .items = ARENA_ARRAY(&d->arena, struct str, most),
			   .ns = arena_push(&d->arena, most * sizeof(*n.ns)) };
	double all = 0, common = 0;
	bool good = n.items && n.ns;

	map_init(&n.map, d->mem);
	for (size_t i = 0; good && i < most; i++)
		n.ns[i][0] = n.ns[i][1] = 0;
	for (unsigned side = 0; side < 2; side++)
		for (size_t i = 0; good && i < sides[side]->cell_count; i++) {
			const struct diff_cell *cell = &sides[side]->cells[i];

			if (cell->device)
				good = add_name(&n, device_name(cell, by_kernel), side,
						(double)cell->ns);
		}
	for (size_t i = 0; good && i < n.count; i++) {
		all += n.ns[i][0] + n.ns[i][1];
		common += n.ns[i][0] > 0 && n.ns[i][1] > 0 ? n.ns[i][0] + n.ns[i][1] : 0;
	}
	map_release(&n.map);
	return !good ? -1 : all > 0 ? common / all : 0;
}

/* Whether the cells of a side have lines of code, and the operators that launched device work. */
struct knowledge {
	bool cells, lines, device, operators;
};

static void look_at_cells(const struct diff_rows *d, struct knowledge *sides)
{
	for (size_t r = 0; r < d->runs[0] + d->runs[1]; r++)
		for (size_t i = 0; i < d->all[r].cell_count; i++) {
			const struct diff_cell *cell = &d->all[r].cells[i];
			struct knowledge *k = &sides[side_of(d, r)];

			k->cells = true;
			k->lines = k->lines || cell->line.len;
			k->device = k->device || cell->device;
			k->operators = k->operators || (cell->device && cell->part.len);
		}
}

static ow_status find_common(struct diff_rows *d, struct ow_error *err)
{
	struct knowledge sides[2] = { { 0 }, { 0 } };
	double by_operator, by_kernel;

	look_at_cells(d, sides);
	d->without_lines = sides[0].cells && sides[1].cells && sides[0].lines != sides[1].lines;
	if (!sides[0].device || !sides[1].device ||
	    (sides[0].operators == sides[1].operators && !has_other_format(d)))
		return OW_OK;
	by_operator = common_part(d, false);
	by_kernel = common_part(d, true);
	if (by_operator < 0 || by_kernel < 0)
		return error_no_memory(err);
	d->by_kernel = by_kernel > by_operator + KERNELS_WORTH;
	return OW_OK;
}

static uint64_t cell_hash(const struct diff_cell *cell)
{
	return map_hash_u64(map_hash_u64(str_hash(cell->op), str_hash(cell->line)),
			    (uint64_t)cell->class << 32 | (uint32_t)cell->rank);
}

static struct diff_row *find_row(struct diff_rows *d, const struct map *map,
				 const struct diff_cell *cell)
{
	for (struct map_iter it = map_find(map, cell_hash(cell)); it.value;
	     it = map_next(map, it)) {
		struct diff_row *row = &d->items[it.value - 1];

		if (row->class == cell->class && row->rank == cell->rank &&
		    str_eq(row->op, cell->op) && str_eq(row->own_line, cell->line))
			return row;
	}
	return NULL;
}

static struct diff_row *add_row(struct diff_rows *d, struct map *map, const struct diff_cell *cell)
{
	size_t runs = d->runs[0] + d->runs[1];
	struct diff_row *grown =
		arena_grow(&d->arena, d->items, d->count, &d->cap, sizeof(*d->items));
	double *ns = ARENA_ARRAY(&d->arena, double, runs);

	if (!grown || !ns || !map_add(map, cell_hash(cell), (uint32_t)d->count + 1))
		return NULL;
	d->items = grown;
	d->items[d->count] = (struct diff_row){ .class = cell->class,
						.rank = cell->rank,
						.op = cell->op,
						.own_op = cell->op,
						.line = cell->line,
						.own_line = cell->line,
						.file = cell->file,
						.line_number = cell->line_number,
						.ns = ns,
						.q = (double)NAN };
	return &d->items[d->count++];
}

/* Whether ranks are compared one by one: every run must have the same ranks. Else the cells of all ranks are joined. */
static bool has_same_ranks(const struct diff_rows *d)
{
	size_t runs = d->runs[0] + d->runs[1];

	for (size_t r = 1; r < runs; r++) {
		if (d->all[r].rank_count != d->all[0].rank_count)
			return false;
		for (size_t i = 0; i < d->all[r].rank_count; i++)
			if (d->all[r].ranks[i] != d->all[0].ranks[i])
				return false;
	}
	return true;
}

/* Changes the line of a cell to the line that it had in the base. */
static ow_status move_line(struct diff_rows *d, int32_t shift, struct diff_cell *cell,
			   struct ow_error *err)
{
	struct str prefix, suffix;
	char *text;
	size_t size;

	if (!shift || !diff_line_split(cell, &prefix, &suffix))
		return OW_OK;
	size = prefix.len + suffix.len + 16;
	text = arena_push(&d->arena, size);
	if (!text)
		return error_no_memory(err);
	snprintf(text, size, "%.*s%d%.*s", STR_ARG(prefix), (int)(cell->line_number - shift),
		 STR_ARG(suffix));
	cell->line = str_from(text);
	return OW_OK;
}

/* A cell with only the properties that both sides know, named as in the base. */
static ow_status common_cell(struct diff_rows *d, bool by_rank, int32_t shift,
			     struct diff_cell *cell, struct ow_error *err)
{
	if (!by_rank)
		cell->rank = -1;
	if (d->by_kernel && cell->device && cell->part.len) {
		cell->op = cell->part;
		cell->part = STR("");
	}
	if (d->without_lines)
		cell->line = STR("");
	return move_line(d, shift, cell, err);
}

/* Where lines are not compared, keeps the line of the side that has lines, if there is only one. */
static void keep_line(struct diff_row *row, const struct diff_cell *from)
{
	if (!from->line.len || row->several_lines || str_eq(row->line, from->line))
		return;
	row->several_lines = row->line.len > 0;
	row->line = row->several_lines ? STR("") : from->line;
	row->file = row->several_lines ? STR("") : from->file;
	row->line_number = row->several_lines ? 0 : from->line_number;
}

static bool add_part(struct diff_rows *d, struct diff_row *row, unsigned side, struct str name,
		     double ns)
{
	struct row_part *part = row->parts;
	size_t count = 0;

	while (part && !str_eq(part->name, name)) {
		part = part->next;
		count++;
	}
	if (!part && count < PARTS_MOST) {
		part = ARENA_ARRAY(&d->arena, struct row_part, 1);
		if (!part)
			return false;
		*part = (struct row_part){ .name = name, .next = row->parts };
		row->parts = part;
	}
	if (part)
		part->ns[side] += ns;
	return true;
}

static bool add_arguments(struct diff_rows *d, struct argument_list *to,
			  const struct argument_list *from)
{
	to->more = to->more || from->more;
	for (size_t i = 0; i < from->count; i++)
		if (!arguments_add(&d->arena, to, &from->items[i]))
			return false;
	return true;
}

static bool add_cell(struct diff_rows *d, struct diff_row *row, size_t run,
		     const struct diff_cell *cell)
{
	unsigned side = side_of(d, run);
	double steps = d->all[run].steps ? (double)d->all[run].steps : 1;
	double ns = (double)cell->ns / steps;

	row->ns[run] += ns;
	/* sum over all runs; set_means divides it */
	row->count[side] += (double)cell->count / steps;
	row->on[side] = true;
	row->counts_unknown = row->counts_unknown || d->all[run].counts_unknown;
	if (side && cell->line_number && cell->line.len) {
		row->file = cell->file;
		row->line_number = cell->line_number;
	}
	return add_arguments(d, &row->arguments[side], &cell->arguments) &&
	       (!cell->part.len || add_part(d, row, side, cell->part, ns / (double)d->runs[side]));
}

static ow_status add_cells(struct diff_rows *d, struct map *map, size_t run, struct ow_error *err)
{
	const struct diff_run *from = &d->all[run];
	bool by_rank = has_same_ranks(d);

	d->row_of[run] = ARENA_ARRAY(&d->arena, uint32_t, from->cell_count + 1);
	if (!d->row_of[run])
		return error_no_memory(err);
	for (size_t i = 0; i < from->cell_count; i++) {
		struct diff_cell cell = from->cells[i];
		int32_t shift = d->shifts[run] && !d->without_lines ? d->shifts[run][i] : 0;
		struct diff_row *row;

		OW_TRY(common_cell(d, by_rank, shift, &cell, err));
		row = find_row(d, map, &cell);
		if (!row)
			row = add_row(d, map, &cell);
		if (!row)
			return error_no_memory(err);
		d->row_of[run][i] = (uint32_t)(row - d->items);
		row->moved = row->moved || shift;
		if (d->without_lines)
			keep_line(row, &from->cells[i]);
		if (!add_cell(d, row, run, &cell))
			return error_no_memory(err);
	}
	return OW_OK;
}

static void set_means(struct diff_rows *d)
{
	for (size_t i = 0; i < d->count; i++) {
		struct diff_row *row = &d->items[i];

		for (unsigned side = 0; side < 2; side++) {
			row->mean[side] =
				stat_mean(row->ns + (side ? d->runs[0] : 0), d->runs[side]);
			row->count[side] /= (double)d->runs[side];
		}
		if (row->on[0] && row->on[1])
			row->matched_by = row->moved	      ? "op and moved line"
					  : row->own_line.len ? "op and line"
							      : "op";
	}
}

ow_status diff_rows_make(struct diff_rows *d, struct mem *mem, const struct diff_run *runs,
			 size_t base, size_t other, struct ow_error *err)
{
	struct map map;
	ow_status status = OW_OK;

	*d = (struct diff_rows){ .mem = mem, .runs = { base, other }, .all = runs };
	arena_init(&d->arena, mem);
	d->row_of = ARENA_ARRAY(&d->arena, uint32_t *, base + other);
	if (!d->row_of)
		return error_no_memory(err);
	OW_TRY(find_common(d, err));
	OW_TRY(diff_lines_align(d, err));
	map_init(&map, mem);
	for (size_t r = 0; status == OW_OK && r < base + other; r++)
		status = add_cells(d, &map, r, err);
	map_release(&map);
	if (status == OW_OK)
		set_means(d);
	return status;
}

void diff_rows_release(struct diff_rows *d)
{
	arena_release(&d->arena);
}

bool diff_row_add(struct diff_rows *d, struct diff_row *to, const struct diff_row *from,
		  unsigned side)
{
	size_t first = side ? d->runs[0] : 0;
	bool good = add_arguments(d, &to->arguments[side], &from->arguments[side]);

	for (size_t r = first; r < first + d->runs[side]; r++)
		to->ns[r] += from->ns[r];
	to->mean[side] += from->mean[side];
	to->count[side] += from->count[side];
	to->on[side] = true;
	for (const struct row_part *p = from->parts; good && p; p = p->next)
		if (p->ns[side] > 0)
			good = add_part(d, to, side, p->name, p->ns[side]);
	return good;
}

/* How often an operator ran with these arguments in a step. */
static double times_per_step(const struct argument_list *list, const struct diff_arguments *a,
			     uint64_t steps)
{
	for (size_t i = 0; steps && i < list->count; i++)
		if (arguments_equal(&list->items[i], a))
			return (double)list->items[i].count / (double)steps;
	return 0;
}

/* The arguments that a side has in every step at least once more than the other side; NULL when there are none.
 * Shapes that change with every step do not count, because each of them is rare. */
static const struct diff_arguments *own_arguments(const struct diff_row *row, unsigned side,
						  const uint64_t *steps)
{
	const struct argument_list *list = &row->arguments[side], *other = &row->arguments[!side];
	const struct diff_arguments *best = NULL;
	double most = 0;

	for (size_t i = 0; !list->more && !other->more && i < list->count; i++) {
		const struct diff_arguments *a = &list->items[i];
		double more = times_per_step(list, a, steps[side]) -
			      times_per_step(other, a, steps[!side]);

		if (more >= ONCE_A_STEP && more > most) {
			best = a;
			most = more;
		}
	}
	return best;
}

static void explain_arguments(struct diff_row *row, const uint64_t *steps)
{
	const struct diff_arguments *own[2];

	for (unsigned side = 0; side < 2; side++)
		own[side] = own_arguments(row, side, steps);
	row->arguments_changed = own[0] && own[1];
	for (unsigned side = 0; side < 2; side++) {
		const struct argument_list *list = &row->arguments[side];
		const struct diff_arguments *shown = row->arguments_changed ? own[side]
						     : list->count	    ? &list->items[0]
									    : NULL;

		row->shapes[side] = shown ? shown->shapes : STR("");
		row->types[side] = shown ? shown->types : STR("");
	}
}

/* Finds the kernel or call that changed most. A kernel that replaced another one is named on both sides if that
 * changed more than any kernel that both have. */
static void explain_parts(struct diff_row *row)
{
	const struct row_part *only[2] = { NULL, NULL }, *most = NULL;

	for (const struct row_part *p = row->parts; p; p = p->next) {
		double change = fabs(p->ns[1] - p->ns[0]);

		for (unsigned side = 0; side < 2; side++)
			if (p->ns[side] > 0 && p->ns[!side] <= 0 &&
			    (!only[side] || p->ns[side] > only[side]->ns[side]))
				only[side] = p;
		if (p->ns[0] > 0 && p->ns[1] > 0 &&
		    (!most || change > fabs(most->ns[1] - most->ns[0])))
			most = p;
	}
	if (only[0] && only[1] && most &&
	    fabs(only[1]->ns[1] - only[0]->ns[0]) < fabs(most->ns[1] - most->ns[0]))
		only[0] = only[1] = NULL;
	for (unsigned side = 0; side < 2; side++) {
		const struct row_part *shown = only[0] && only[1] ? only[side] : most;

		if (!shown)
			shown = only[side];
		row->part[side] = shown ? shown->name : STR("");
	}
}

void diff_rows_explain(struct diff_rows *d)
{
	uint64_t steps[2] = { 0, 0 };

	for (size_t r = 0; r < d->runs[0] + d->runs[1]; r++)
		steps[side_of(d, r)] += d->all[r].argument_steps;
	for (size_t i = 0; i < d->count; i++) {
		explain_arguments(&d->items[i], steps);
		explain_parts(&d->items[i]);
	}
}
