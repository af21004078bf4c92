/*
 * view_op.c: the view `op`: ops by type, a flat list. Totals run from the end of the sorted list to its beginning, as in tfprof, so percentages
 * add up to the rows below. It needs no order of op names, which makes it the fastest view.
 */
#include "analyze/tfprof/account.h"

#include "base/vec.h"
#include "analyze/samples/samples.h"

#include "table/tree/tree_text.h"

/* All ops of one type. */
struct group {
	str_id type;
	uint32_t op_first, op_count; /* range of the accounted ops in tree.ops */
	bool shown;
};

struct groups {
	struct account *a;
	struct group *items;
	size_t count, cap;
	int64_t *own, *totals; /* values: [group][place] */
	size_t own_cap;	       /* capacity of `own` in values */
	uint32_t *group_of;    /* for each string: its group + 1 */
	uint32_t *order;       /* accounted groups, sorted */
	uint32_t order_count;
};

static bool add_group(struct groups *g, str_id type)
{
	uint32_t width = g->a->width;

	if (!vec_reserve(g->a->mem, g->items, g->cap, g->count + 1))
		return false;
	if (!vec_reserve(g->a->mem, g->own, g->own_cap, (g->count + 1) * width))
		return false;
	g->items[g->count] = (struct group){ .type = type };
	memset(g->own + g->count * width, 0, width * sizeof(*g->own));
	g->group_of[type.v] = (uint32_t)++g->count;
	return true;
}

/* Returns the type that is shown: for a kernel its shortened name, or with full_names the whole
 * name. */
static str_id shown_type(const struct account *a, uint32_t op)
{
	bool full = a->options->full_names && a->m->op.flags[op] & OP_SHORT_TYPE;

	return full ? a->m->op.name[op] : a->m->op.type[op];
}

/* Adds up the accounted ops of each type. Types without accounted ops are left out. */
static ow_status add_up(struct groups *g)
{
	struct account *a = g->a;
	struct model *m = a->m;
	int64_t row[METRIC_COUNT];

	g->group_of = ARENA_ARRAY(&a->scratch, uint32_t, m->strings.count);
	if (!g->group_of)
		return error_no_memory(a->err);
	for (uint32_t op = 1; op < m->op.count; op++) {
		str_id type = shown_type(a, op);
		uint32_t group;

		if (!account_op(a, (op_id){ op }))
			continue;
		if (!g->group_of[type.v] && !add_group(g, type))
			return error_no_memory(a->err);
		group = g->group_of[type.v] - 1;
		OW_ASSERT(g->items && group < g->count);
		g->items[group].op_count++;
		account_eval(a, (op_id){ op }, row);
		row_add(g->own + (size_t)group * a->width, row, a->width);
	}
	return OW_OK;
}

/* Lists the ops of each type in tree.ops. */
static ow_status list_ops(struct groups *g)
{
	struct account *a = g->a;
	struct model *m = a->m;
	uint32_t first = 0;

	for (size_t i = 0; i < g->count; i++) {
		g->items[i].op_first = first;
		first += g->items[i].op_count;
		g->items[i].op_count = 0;
	}
	a->tree->ops = arena_push_aligned(&a->tree->arena, (size_t)first * sizeof(op_id), 4);
	if (!a->tree->ops)
		return error_no_memory(a->err);
	for (uint32_t op = 1; op < m->op.count; op++) {
		struct group *group;

		if (!account_op(a, (op_id){ op }))
			continue;
		group = &g->items[g->group_of[shown_type(a, op).v] - 1];
		a->tree->ops[group->op_first + group->op_count++] = (op_id){ op };
	}
	return OW_OK;
}

static struct str group_name(const struct groups *g, uint32_t group)
{
	return model_str(g->a->m, g->items[group].type);
}

static int64_t sort_value(const struct groups *g, uint32_t group)
{
	const struct account *a = g->a;

	if (a->order == ORDER_OPS)
		return g->items[group].op_count;
	if (a->order == ORDER_METRIC)
		return g->own[(size_t)group * a->width + a->places[a->order_metric]];
	return 0;
}

/* Sorts groups by name first, because ties keep this order. */
static ow_status sort_groups(struct groups *g)
{
	struct account names = { .order = ORDER_NAME };
	struct sort_key *keys = ARENA_ARRAY(&g->a->scratch, struct sort_key, g->count);

	g->order = ARENA_ARRAY(&g->a->scratch, uint32_t, g->count);
	if (!keys || !g->order)
		return error_no_memory(g->a->err);
	for (uint32_t i = 0; i < g->count; i++)
		keys[i] = (struct sort_key){ .name = group_name(g, i), .row = i };
	display_sort(&names, keys, g->count);
	for (uint32_t i = 0; i < g->count; i++) {
		keys[i].value = sort_value(g, keys[i].row);
		keys[i].name = group_name(g, keys[i].row);
	}
	if (g->a->order != ORDER_NONE)
		display_sort(g->a, keys, g->count);
	for (uint32_t i = 0; i < g->count; i++)
		g->order[i] = keys[i].row;
	g->order_count = (uint32_t)g->count;
	return OW_OK;
}

/* Computes total(i) = own(i) + total(i + 1) over all or over the shown groups; returns the first
 * total, which is the root's. */
static const int64_t *cumulate(struct groups *g, bool shown_only)
{
	uint32_t width = g->a->width;
	const int64_t *below = NULL;

	for (uint32_t i = g->order_count; i-- > 0;) {
		uint32_t group = g->order[i];
		int64_t *total = g->totals + (size_t)group * width;

		if (shown_only && !g->items[group].shown)
			continue;
		memcpy(total, g->own + (size_t)group * width, width * sizeof(*total));
		if (below)
			row_add(total, below, width);
		below = total;
	}
	return below;
}

static uint32_t find_start(struct groups *g)
{
	uint32_t i = 0;

	if (!g->a->options->start_name_regexes.count)
		return 0;
	while (i < g->order_count && !regex_match(&g->a->start, group_name(g, g->order[i])))
		i++;
	return i;
}

static bool visible(struct groups *g, uint32_t group)
{
	struct account *a = g->a;
	const int64_t *own = g->own + (size_t)group * a->width;

	return display_reaches(a, own, g->totals + (size_t)group * a->width) &&
	       (uint64_t)a->options->min_occurrence <= g->items[group].op_count &&
	       display_named(a, group_name(g, group));
}

/* Marks the shown groups; returns their number. */
static uint32_t choose(struct groups *g, uint32_t start)
{
	struct account *a = g->a;
	uint32_t count = 0;

	for (uint32_t i = start; i < g->order_count; i++) {
		uint32_t group = g->order[i];

		if ((int64_t)i - start > a->options->max_depth ||
		    regex_match(&a->trim, group_name(g, group)))
			break;
		g->items[group].shown = visible(g, group);
		count += g->items[group].shown;
	}
	return count;
}

struct signatures {
	struct account *a;
	struct tree_signature *items;
	size_t count, cap;
	struct map map;
	struct buf text;
};

static struct tree_signature *find_signature(struct signatures *s, size_t first)
{
	struct str text = buf_str(&s->text);
	uint64_t hash = str_hash(text);
	struct str copy;

	for (struct map_iter it = map_find(&s->map, hash); it.value; it = map_next(&s->map, it))
		if (it.value > first && str_eq(s->items[it.value - 1].text, text))
			return &s->items[it.value - 1];
	copy = arena_str(&s->a->tree->arena, text);
	if (!copy.ptr || !vec_reserve(s->a->mem, s->items, s->cap, s->count + 1))
		return NULL;
	if (!map_add(&s->map, hash, (uint32_t)s->count + 1))
		return NULL;
	s->items[s->count] = (struct tree_signature){ .text = copy };
	return &s->items[s->count++];
}

static int by_runs_and_text(const void *a, const void *b)
{
	const struct tree_signature *x = a, *y = b;
	int order = (x->run_count < y->run_count) - (x->run_count > y->run_count);

	return order ? order : str_cmp(x->text, y->text);
}

/* Lists the distinct input shapes of a row's ops, the most frequently run first. */
static bool sign_group(struct signatures *s, struct tree_group *node)
{
	struct account *a = s->a;
	size_t first = s->count;
	int64_t values[METRIC_COUNT];

	map_release(&s->map);
	map_init(&s->map, a->mem);
	for (uint32_t i = 0; i < node->op_count; i++) {
		op_id op = a->tree->ops[node->op_first + i];
		struct tree_signature *sign;

		buf_clear(&s->text);
		tree_text_inputs(a->m, op, ",\t", &s->text);
		sign = s->text.failed ? NULL : find_signature(s, first);
		if (!sign)
			return false;
		metric_eval(&a->plan, op, values);
		sign->run_count = sum_add(sign->run_count, values[METRIC_RUN_COUNT]);
		sign->exec_time = sum_add(sign->exec_time, values[METRIC_MICROS]);
		sign->defined++;
	}
	node->signature_first = (uint32_t)first;
	node->signature_count = (uint32_t)(s->count - first);
	if (node->signature_count)
		qsort(s->items + first, node->signature_count, sizeof(*s->items), by_runs_and_text);
	return true;
}

static ow_status sign(struct account *a)
{
	struct signatures s = { .a = a };
	struct tree *tree = a->tree;
	bool ok = true;

	if (!(tree->select & SELECT_INPUT_SHAPES))
		return OW_OK;
	buf_init(&s.text, a->mem);
	map_init(&s.map, a->mem);
	for (uint32_t i = 1; ok && i < tree->node_count; i++)
		ok = sign_group(&s, &tree->groups[i]);
	tree->signatures = ok ? ARENA_ARRAY(&tree->arena, struct tree_signature, s.count) : NULL;
	if (tree->signatures && s.count)
		memcpy(tree->signatures, s.items, s.count * sizeof(*s.items));
	mem_free(a->mem, s.items, s.cap * sizeof(*s.items));
	map_release(&s.map);
	buf_release(&s.text);
	return tree->signatures ? OW_OK : error_no_memory(a->err);
}

/* Copies values into the rows of a tree node; own may be NULL. */
static void store(struct account *a, uint32_t node, const int64_t *own, const int64_t *total)
{
	for (uint32_t i = 0; i < a->width; i++)
		tree_set(a->tree, node, (enum metric)a->metrics[i], own ? own[i] : 0, total[i]);
}

static ow_status emit(struct groups *g, const int64_t *root, uint32_t shown)
{
	struct account *a = g->a;
	struct tree *tree = a->tree;

	OW_TRY(tree_reserve(tree, shown + 1, true, a->err));
	tree->groups = ARENA_ARRAY(&tree->arena, struct tree_group, (size_t)shown + 1);
	if (!tree->groups)
		return error_no_memory(a->err);
	tree->nodes[0] = (struct tree_node){ .name = ROOT_NAME, .child_count = shown };
	if (root)
		store(a, 0, NULL, root);
	tree->node_count = 1;
	for (uint32_t i = 0; i < g->order_count; i++) {
		const struct group *group = &g->items[g->order[i]];
		size_t row = (size_t)g->order[i] * a->width;

		if (!group->shown)
			continue;
		tree->nodes[tree->node_count] = (struct tree_node){
			.name = group_name(g, g->order[i]), .depth = 1, .accounted = true
		};
		tree->groups[tree->node_count] = (struct tree_group){ .op_first = group->op_first,
								      .op_count = group->op_count };
		store(a, tree->node_count++, g->own + row, g->totals + row);
	}
	return sign(a);
}

static ow_status choose_and_emit(struct groups *g)
{
	struct account *a = g->a;
	const int64_t *root;
	int64_t all[METRIC_COUNT];
	uint32_t shown;

	g->totals = arena_push_aligned(&a->scratch, g->count * a->width * sizeof(int64_t), 16);
	if (!g->totals)
		return error_no_memory(a->err);
	root = cumulate(g, false);
	if (root) /* the row may be recomputed below */
		root = memcpy(all, root, a->width * sizeof(*all));
	shown = choose(g, find_start(g));
	if (a->options->account_displayed_op_only)
		root = cumulate(g, true);
	return emit(g, root, shown);
}

static ow_status run_op_view(struct model *m, const struct view_options *options, struct table *out,
			     struct ow_error *err)
{
	struct account a;
	struct groups g = { .a = &a };
	ow_status status;

	if (samples_only(m)) /* a profile of samples has functions in place of ops */
		return view_functions.run(m, options, out, err);
	status = account_begin(&a, m, options, TREE_OP, out, err);
	if (status == OW_OK)
		status = add_up(&g);
	if (status == OW_OK)
		status = list_ops(&g);
	if (status == OW_OK)
		status = sort_groups(&g);
	if (status == OW_OK)
		status = choose_and_emit(&g);
	mem_free(a.mem, g.items, g.cap * sizeof(*g.items));
	mem_free(a.mem, g.own, g.own_cap * sizeof(*g.own));
	return account_end(&a, status);
}

const struct view view_op = {
	.name = "op",
	.summary = "operations by type: which kinds cost most",
	.tree = true,
	.uses = VIEW_USES_PART | VIEW_USES_OPS | VIEW_USES_OCCURRENCE | VIEW_USES_FULL_NAMES |
		VIEW_USES_METRIC | VIEW_USES_STYLE,
	.run = run_op_view,
};
