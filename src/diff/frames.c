/*
 * frames.c: a comparison as a tree for a differential flame graph (diff_int.h): profiles of samples by call stack, other recordings by rank, phase,
 * line, op and kernel or call. Frames of both sides are the same where the rows of the comparison are. Own values round running sums, so the
 * values of a frame are those of its children and its own, exactly, and the root's are the steps. Called by diff.c instead of its rows.
 */
#include "diff/diff_int.h"

#include "base/map.h"

#include <math.h>
#include <stdlib.h>

enum frame_kind {
	FRAME_ALL,
	FRAME_RANK,
	FRAME_PHASE,
	FRAME_LINE,
	FRAME_OP,
	FRAME_PART,
	FRAME_FUNCTION,
	FRAME_NOTHING
};

static const char *const kind_words[] = {
	[FRAME_ALL] = "all",
	[FRAME_RANK] = "rank",
	[FRAME_PHASE] = "phase",
	[FRAME_LINE] = "line",
	[FRAME_OP] = "op",
	[FRAME_PART] = "part",
	[FRAME_FUNCTION] = "function",
	[FRAME_NOTHING] = "nothing recorded",
};

struct node {
	struct str name, new_name; /* new_name: name in the new runs; empty when it is the same */
	enum frame_kind kind;
	uint32_t parent, first, next; /* node numbers: 0 = none; node 0 is the root */
	double self[2], total[2];     /* means over the runs of each side */
	int64_t self_ns[2], total_ns[2];
	bool on[2];
};

struct frames {
	struct comparison *c;
	struct node *nodes;
	size_t count, cap;
	/* renamed: name in the new runs → 1 + row that has the base's name */
	struct map map, renamed;
};

static ow_status child_of(struct frames *f, uint32_t parent, enum frame_kind kind, struct str name,
			  uint32_t *child)
{
	uint64_t hash = map_hash_u64(map_hash_u64(parent, kind), str_hash(name));
	struct node *grown;

	for (struct map_iter it = map_find(&f->map, hash); it.value; it = map_next(&f->map, it)) {
		const struct node *n = &f->nodes[it.value];

		if (n->parent == parent && n->kind == kind && str_eq(n->name, name)) {
			*child = it.value;
			return OW_OK;
		}
	}
	grown = f->count < UINT32_MAX - 1
			? arena_grow(&f->c->scratch, f->nodes, f->count, &f->cap, sizeof(*grown))
			: NULL;
	if (!grown)
		return error_no_memory(f->c->err);
	f->nodes = grown;
	*child = (uint32_t)f->count;
	f->nodes[f->count++] = (struct node){ .name = name, .kind = kind, .parent = parent };
	if (parent || *child)
		if (!map_add(&f->map, hash, *child))
			return error_no_memory(f->c->err);
	return OW_OK;
}

static void charge(struct frames *f, uint32_t node, unsigned side, double ns)
{
	f->nodes[node].self[side] += ns;
	for (;; node = f->nodes[node].parent) {
		f->nodes[node].on[side] = true;
		if (!node)
			break;
	}
}

static ow_status rank_frame(struct frames *f, int32_t rank, uint32_t *at)
{
	char text[32];
	struct str name;

	snprintf(text, sizeof(text), "rank %d", (int)rank);
	name = arena_str(&f->c->scratch, str_from(text));
	return name.ptr ? child_of(f, *at, FRAME_RANK, name, at) : error_no_memory(f->c->err);
}

static ow_status add_cell(struct frames *f, size_t run, size_t cell, bool ranks)
{
	struct comparison *c = f->c;
	const struct diff_cell *from = &c->runs[run].cells[cell];
	const struct diff_row *row = &c->rows.items[c->rows.row_of[run][cell]];
	unsigned side = run >= c->base;
	/* the row itself stands for the kernel */
	bool kernel = c->rows.by_kernel && from->device && from->part.len;
	double part = (double)(side ? c->other : c->base) * (double)c->runs[run].steps;
	uint32_t at = 0;

	if (row->merged)
		row = &c->rows.items[row->merged - 1];
	if (ranks && row->rank >= 0)
		OW_TRY(rank_frame(f, row->rank, &at));
	OW_TRY(child_of(f, at, FRAME_PHASE, str_from(phase_class_names[row->class]), &at));
	if (row->line.len)
		OW_TRY(child_of(f, at, FRAME_LINE, row->line, &at));
	OW_TRY(child_of(f, at, FRAME_OP, row->op, &at));
	if (side && !str_eq(kernel ? from->part : from->op, row->op))
		f->nodes[at].new_name = row->new_op.len ? row->new_op : from->op;
	if (from->part.len && !kernel)
		OW_TRY(child_of(f, at, FRAME_PART, from->part, &at));
	if (from->ns > 0 && part > 0)
		charge(f, at, side, (double)from->ns / part);
	return OW_OK;
}

/* Joins two parts of an op if one is only in the base and one only in the new runs: the kernel or call was renamed. */
static void join_renamed_parts(struct frames *f)
{
	for (uint32_t i = 1; i < f->count; i++) {
		struct node *parent = &f->nodes[i];

		/* first: the part that only the base has; next: the part that only the new runs have; UINT32_MAX:
		 * more than one */
		if (parent->kind == FRAME_PART && f->nodes[parent->parent].kind == FRAME_OP &&
		    parent->on[0] != parent->on[1]) {
			uint32_t *place = parent->on[0] ? &f->nodes[parent->parent].first
							: &f->nodes[parent->parent].next;

			*place = *place ? UINT32_MAX : i;
		}
	}
	for (uint32_t i = 1; i < f->count; i++) {
		struct node *op = &f->nodes[i];

		if (op->kind == FRAME_OP && op->first && op->next && op->first != UINT32_MAX &&
		    op->next != UINT32_MAX) {
			struct node *old = &f->nodes[op->first], *new = &f->nodes[op->next];

			old->new_name = new->name;
			old->self[1] = new->self[1];
			old->on[1] = true;
			*new = (struct node){ .parent = UINT32_MAX };
		}
		op->first = op->next = 0;
	}
}

static ow_status add_cells(struct frames *f)
{
	struct comparison *c = f->c;
	bool ranks = c->runs[0].rank_count > 1;

	for (size_t r = 0; r < c->base + c->other; r++)
		for (size_t i = 0; i < c->runs[r].cell_count; i++)
			OW_TRY(add_cell(f, r, i, ranks));
	join_renamed_parts(f);
	return OW_OK;
}

static ow_status find_renamed(struct frames *f)
{
	const struct diff_rows *d = &f->c->rows;

	for (size_t i = 0; i < d->count; i++)
		if (!d->items[i].merged && d->items[i].new_op.len &&
		    !map_add(&f->renamed, str_hash(d->items[i].new_op), (uint32_t)i + 1))
			return error_no_memory(f->c->err);
	return OW_OK;
}

/* The base's name of a function of the new runs. */
static struct str base_name(const struct frames *f, struct str name)
{
	for (struct map_iter it = map_find(&f->renamed, str_hash(name)); it.value;
	     it = map_next(&f->renamed, it))
		if (str_eq(f->c->rows.items[it.value - 1].new_op, name))
			return f->c->rows.items[it.value - 1].op;
	return name;
}

static ow_status add_stacks(struct frames *f, size_t run)
{
	struct comparison *c = f->c;
	const struct diff_run *from = &c->runs[run];
	unsigned side = run >= c->base;
	uint32_t *node_of = ARENA_ARRAY(&c->scratch, uint32_t, from->frame_count + 1);

	if (!node_of)
		return error_no_memory(c->err);
	for (size_t i = 0; i < from->frame_count; i++) {
		const struct diff_frame *frame = &from->frames[i];
		struct str name = side ? base_name(f, frame->name) : frame->name;
		uint32_t *at = &node_of[i + 1];

		OW_TRY(child_of(f, node_of[frame->parent], FRAME_FUNCTION, name, at));
		if (!str_eq(name, frame->name))
			f->nodes[*at].new_name = frame->name;
		f->nodes[*at].on[side] = true;
		f->nodes[*at].self[side] +=
			(double)frame->self / (double)(side ? c->other : c->base);
	}
	return OW_OK;
}

struct keyed {
	double most, other;
	uint32_t parent, node;
};

static int by_parent_and_size(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->most != y->most)
		return x->most > y->most ? -1 : 1;
	if (x->other != y->other)
		return x->other > y->other ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Sums the totals from the last node to the first; children have higher numbers than their parents. */
static void add_totals(struct frames *f)
{
	for (size_t i = f->count; i-- > 0;) {
		struct node *n = &f->nodes[i];

		for (unsigned side = 0; side < 2 && n->parent != UINT32_MAX; side++) {
			n->total[side] += n->self[side];
			if (i)
				f->nodes[n->parent].total[side] += n->total[side];
		}
	}
}

static ow_status chain_children(struct frames *f)
{
	struct keyed *keys = ARENA_ARRAY(&f->c->scratch, struct keyed, f->count + 1);
	size_t count = 0;

	if (!keys)
		return error_no_memory(f->c->err);
	for (uint32_t i = 1; i < f->count; i++)
		if (f->nodes[i].parent != UINT32_MAX)
			keys[count++] = (struct keyed){ f->nodes[i].total[1], f->nodes[i].total[0],
							f->nodes[i].parent, i };
	if (count)
		qsort(keys, count, sizeof(*keys), by_parent_and_size);
	while (count-- > 0) {
		f->nodes[keys[count].node].next = f->nodes[keys[count].parent].first;
		f->nodes[keys[count].parent].first = keys[count].node;
	}
	return OW_OK;
}

/* The node after `at` in pre-order; 0 at the end. */
static uint32_t next_node(const struct frames *f, uint32_t at, bool below, uint32_t *depth)
{
	if (below && f->nodes[at].first) {
		++*depth;
		return f->nodes[at].first;
	}
	while (at && !f->nodes[at].next) {
		at = f->nodes[at].parent;
		--*depth;
	}
	return at ? f->nodes[at].next : 0;
}

/* Rounds to whole numbers: own values first, then sums. The rounding error is added to "nothing recorded". */
static void round_values(struct frames *f, uint32_t nothing)
{
	double sum[2] = { 0, 0 };
	int64_t before[2] = { 0, 0 };
	uint32_t at = 0, depth = 0;

	do {
		for (unsigned side = 0; side < 2; side++) {
			sum[side] += f->nodes[at].self[side];
			f->nodes[at].self_ns[side] = llround(sum[side]) - before[side];
			before[side] = llround(sum[side]);
		}
	} while ((at = next_node(f, at, true, &depth)));
	for (unsigned side = 0; side < 2; side++)
		f->nodes[nothing].self_ns[side] += f->c->step_ns[side] - before[side];
	for (size_t i = f->count; i-- > 0;) {
		struct node *n = &f->nodes[i];

		for (unsigned side = 0; side < 2 && n->parent != UINT32_MAX; side++) {
			n->total_ns[side] += n->self_ns[side];
			if (i)
				f->nodes[n->parent].total_ns[side] += n->total_ns[side];
		}
	}
}

enum {
	COLUMN_NAME,
	COLUMN_KIND,
	COLUMN_BASE,
	COLUMN_NEW,
	COLUMN_DELTA,
	COLUMN_BASE_SELF,
	COLUMN_NEW_SELF,
	COLUMN_CHANGE,
	COLUMN_NEW_NAME
};

static void add_columns(struct table *t, enum column_unit unit)
{
	table_make_tree(t);
	table_add_column(t, "name", "frame", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "kind", "kind", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "base_ns", "base", TYPE_INT, unit);
	table_add_column(t, "new_ns", "new", TYPE_INT, unit);
	table_add_column(t, "delta_ns", "delta", TYPE_INT, unit);
	table_add_column(t, "base_self_ns", "base itself", TYPE_INT, unit);
	table_add_column(t, "new_self_ns", "new itself", TYPE_INT, unit);
	table_add_column(t, "change", "change", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "new_name", "called now", TYPE_TEXT, UNIT_NONE);
}

static struct str change_of(const struct node *n)
{
	if (n->kind == FRAME_NOTHING)
		return STR("");
	if (n->new_name.len)
		return STR("renamed");
	return n->on[0] == n->on[1] ? STR("") : n->on[0] ? STR("gone") : STR("new");
}

static void fill_row(struct table *t, const struct node *n, uint32_t depth)
{
	uint32_t at = table_add_row(t, depth);

	table_set_text(t, at, COLUMN_NAME, n->name);
	table_set_text(t, at, COLUMN_KIND, str_from(kind_words[n->kind]));
	table_set_int(t, at, COLUMN_BASE, n->total_ns[0]);
	table_set_int(t, at, COLUMN_NEW, n->total_ns[1]);
	table_set_int(t, at, COLUMN_DELTA, n->total_ns[1] - n->total_ns[0]);
	table_set_int(t, at, COLUMN_BASE_SELF, n->self_ns[0]);
	table_set_int(t, at, COLUMN_NEW_SELF, n->self_ns[1]);
	table_set_known_text(t, at, COLUMN_CHANGE, change_of(n));
	table_set_known_text(t, at, COLUMN_NEW_NAME, n->new_name);
}

static void fill_rows(struct frames *f, double least)
{
	double step = (double)MAX(f->c->step_ns[0], f->c->step_ns[1]);
	uint32_t at = 0, depth = 0;
	uint64_t left_out = 0;
	bool shown;

	do {
		const struct node *n = &f->nodes[at];

		/* "nothing recorded" is shown even if it is small, for the sum */
		shown = !at || ((n->total_ns[0] || n->total_ns[1]) &&
				(double)MAX(n->total_ns[0], n->total_ns[1]) >= least * step);
		if (shown)
			fill_row(f->c->out, n, depth);
		else
			left_out += n->total_ns[0] || n->total_ns[1];
	} while ((at = next_node(f, at, shown, &depth)));
	table_add_extra(f->c->out, "frames_left_out", "%" PRIu64, left_out);
}

static ow_status make_frames(struct frames *f, double least)
{
	struct comparison *c = f->c;
	uint32_t root, nothing;

	OW_TRY(child_of(f, 0, FRAME_ALL, STR("all"), &root));
	if (c->runs[0].frame_count || c->runs[c->base].frame_count) {
		OW_TRY(find_renamed(f));
		for (size_t r = 0; r < c->base + c->other; r++)
			OW_TRY(add_stacks(f, r));
	} else {
		OW_TRY(add_cells(f));
	}
	OW_TRY(child_of(f, root, FRAME_NOTHING, STR("nothing recorded"), &nothing));
	for (size_t r = 0; r < c->base + c->other; r++) {
		unsigned side = r >= c->base;

		if (c->runs[r].steps)
			f->nodes[nothing].self[side] += (double)c->runs[r].idle_ns /
							(double)c->runs[r].steps /
							(double)(side ? c->other : c->base);
	}
	f->nodes[root].on[0] = f->nodes[root].on[1] = true;
	add_totals(f);
	OW_TRY(chain_children(f));
	round_values(f, nothing);
	add_columns(c->out, diff_unit(c));
	fill_rows(f, least);
	return OW_OK;
}

ow_status diff_fill_frames(struct comparison *c, double least)
{
	struct frames f = { .c = c };
	ow_status status;

	map_init(&f.map, c->mem);
	map_init(&f.renamed, c->mem);
	status = make_frames(&f, least);
	map_release(&f.renamed);
	map_release(&f.map);
	return status;
}
