/*
 * display.c: chooses and sorts the rows of a hierarchy (account.h). The order of the tests is tfprof's and affects the results: the visible
 * descendants of a hidden node take its place, a trimmed node stays in scope and graph but goes in code, and minimums test totals from
 * before account_displayed_op_only. Nothing here recurses, so names with a hundred thousand levels are only long lists.
 */
#include "analyze/tfprof/account.h"

#include "base/vec.h"

/* The shown part of a hierarchy. As long as every shown node is below a shown parent, its children are
 * found in the hierarchy itself. Otherwise the shown nodes are listed, and their children too. */
struct shown {
	struct hierarchy *h;
	struct account *a;
	uint32_t count; /* number of shown nodes, including the root */
	uint32_t *tops; /* nodes at which the walk starts; NULL = the top level */
	uint32_t top_count;
	bool lifted; /* some node is shown below a node that is not its parent */

	/* Arrays with an entry for each lifted node only, in walking order; entry 0 is the root. */
	uint32_t *node;		/* number of the node in the hierarchy */
	uint32_t *parent;	/* place of the shown parent in this list */
	uint32_t *first, *list; /* children of i: list[first[i]] … list[first[i + 1]] */
	/* for each depth of the walk: the nearest shown node at or above it */
	uint32_t *above;
	size_t above_cap;

	uint32_t rows, most;   /* number of rows in the tree, chains included, and its limit */
	struct sort_key *keys; /* children that are being sorted */
	size_t key_count, key_cap;
};

bool display_reaches(const struct account *a, const int64_t *own, const int64_t *total)
{
	for (uint32_t i = 0; i < a->test_count; i++) {
		const struct min_test *t = &a->tests[i];
		uint8_t place = a->places[t->metric];
		if ((t->own ? own : total)[place] < t->min)
			return false;
	}
	return true;
}

bool display_named(struct account *a, struct str name)
{
	return regex_match(&a->show, name) && !regex_match(&a->hide, name);
}

static int by_key(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;
	int order = (x->value < y->value) - (x->value > y->value);

	if (!order)
		order = str_cmp(x->name, y->name);
	return order ? order : (x->position > y->position) - (x->position < y->position);
}

/* Sorts values in descending and names in ascending order; a key has one of both. */
void display_sort(const struct account *a, struct sort_key *keys, size_t count)
{
	bool sorted = true;

	for (size_t i = 0; i < count; i++) {
		keys[i].position = (uint32_t)i;
		if (a->has_root_name && str_eq(keys[i].name, ROOT_NAME))
			keys[i].value = INT64_MAX; /* sorts before everything else */
		if (a->order != ORDER_NAME)
			keys[i].name = STR("");
		sorted = sorted && (!i || by_key(&keys[i - 1], &keys[i]) < 0);
	}
	if (!sorted)
		qsort(keys, count, sizeof(*keys), by_key);
}

static int64_t sort_value(const struct hierarchy *h, uint32_t node)
{
	const struct account *a = h->a;

	switch (a->order) {
	case ORDER_METRIC:
		return hierarchy_totals(h, node)[a->places[a->order_metric]];
	case ORDER_OPS:
		return h->op_count(h->view, node);
	default:
		return h->rank ? -(int64_t)h->rank(h->view, node) : 0;
	}
}

/* Fills in and sorts the keys of the gathered children. */
static void sort_children(struct shown *s)
{
	struct hierarchy *h = s->h;
	bool names = (s->a->order == ORDER_NAME && !h->rank) || s->a->has_root_name;

	if (s->key_count < 2 || s->a->order == ORDER_NONE)
		return;
	if (s->a->order == ORDER_NAME && h->by_name && !s->lifted && !s->a->has_root_name)
		return;
	for (size_t i = 0; i < s->key_count; i++) {
		uint32_t node = s->lifted ? s->node[s->keys[i].row] : s->keys[i].row;

		s->keys[i].value = sort_value(h, node);
		s->keys[i].name = names ? h->name(h->view, node) : STR("");
	}
	display_sort(s->a, s->keys, s->key_count);
}

static uint32_t kept_from(const struct hierarchy *h, uint32_t node)
{
	while (node && !(h->flags[node] & NODE_KEPT))
		node = hierarchy_link(h, node)->next;
	return node;
}

static uint32_t first_kept(const struct hierarchy *h, uint32_t node)
{
	return kept_from(h, hierarchy_link(h, node)->first);
}

static uint32_t next_kept(const struct hierarchy *h, uint32_t node)
{
	return kept_from(h, hierarchy_link(h, node)->next);
}

/* Returns the next node in pre-order after the subtree of `node`; 0 at the end. */
static uint32_t after_subtree(const struct hierarchy *h, uint32_t node)
{
	for (; node; node = hierarchy_link(h, node)->parent) {
		uint32_t next = next_kept(h, node);

		if (next)
			return next;
	}
	return 0;
}

/* Finds the start nodes: with start_name_regexes, the first match on each branch. */
static ow_status find_tops(struct shown *s)
{
	struct hierarchy *h = s->h;

	s->tops = arena_push_aligned(&s->a->scratch, (size_t)h->count * sizeof(*s->tops), 4);
	if (!s->tops)
		return error_no_memory(s->a->err);
	for (uint32_t node = first_kept(h, 0); node;) {
		uint32_t child = first_kept(h, node);

		if (regex_match(&s->a->start, h->name(h->view, node))) {
			s->tops[s->top_count++] = node;
			child = 0;
		}
		node = child ? child : after_subtree(h, node);
	}
	s->lifted = true;
	return OW_OK;
}

static bool visible(struct shown *s, uint32_t node)
{
	struct hierarchy *h = s->h;
	struct account *a = s->a;

	if (a->test_count && !display_reaches(a, hierarchy_own(h, node), hierarchy_totals(h, node)))
		return false;
	return (a->show.everything && !a->hide.regex) || display_named(a, h->name(h->view, node));
}

/* Decides whether a node is shown and whether the nodes below it are examined. */
static void decide(struct shown *s, uint32_t node, uint32_t depth)
{
	struct hierarchy *h = s->h;
	uint32_t parent = hierarchy_link(h, node)->parent;
	bool trimmed = s->a->trim.regex && regex_match(&s->a->trim, h->name(h->view, node));

	if (trimmed && s->a->tree->kind == TREE_CODE)
		return;
	if (visible(s, node)) {
		h->flags[node] |= NODE_SHOWN;
		s->count++;
		s->lifted |= !(h->flags[parent] & NODE_SHOWN);
	}
	if (!trimmed && (int64_t)depth < s->a->options->max_depth)
		h->flags[node] |= NODE_OPEN;
}

/* Decides on all nodes in their order in memory, because parents come before their children. The
 * root has depth 1. */
static ow_status decide_all(struct shown *s)
{
	struct hierarchy *h = s->h;
	uint32_t *depth = arena_push_aligned(&s->a->scratch, h->count * sizeof(*depth), 4);
	bool open = s->a->options->max_depth >= 2 && !regex_match(&s->a->trim, ROOT_NAME);

	if (!depth)
		return error_no_memory(s->a->err);
	h->flags[0] |= NODE_SHOWN | (open && !s->tops ? NODE_OPEN : 0);
	s->count = 1;
	depth[0] = 1;
	for (uint32_t i = 0; open && i < s->top_count; i++)
		h->flags[s->tops[i]] |= NODE_TOP;
	for (uint32_t i = 1; i < h->count; i++) {
		uint32_t parent = hierarchy_link(h, i)->parent;
		bool top = h->flags[i] & NODE_TOP;

		if (!(h->flags[i] & NODE_KEPT) || !(top || h->flags[parent] & NODE_OPEN))
			continue;
		depth[i] = top ? 2 : depth[parent] + 1;
		decide(s, i, depth[i]);
	}
	return OW_OK;
}

/* Adds a node to the list if it is shown. */
static bool list_node(struct shown *s, uint32_t node, uint32_t depth)
{
	if (!vec_reserve(s->a->mem, s->above, s->above_cap, (size_t)depth + 1))
		return false;
	s->above[depth] = s->above[depth - 1];
	if (!(s->h->flags[node] & NODE_SHOWN))
		return true;
	s->node[s->count] = node;
	s->parent[s->count] = s->above[depth - 1];
	s->above[depth] = s->count++;
	return true;
}

/* Walks through one top-level node and the open nodes below it. */
static bool list_subtree(struct shown *s, uint32_t node)
{
	struct hierarchy *h = s->h;
	uint32_t depth = 2;

	for (;;) {
		uint32_t next = 0;

		if (!list_node(s, node, depth))
			return false;
		if (h->flags[node] & NODE_OPEN)
			next = first_kept(h, node);
		depth += next != 0;
		while (!next && depth > 2) {
			next = next_kept(h, node);
			if (next)
				break;
			node = hierarchy_link(h, node)->parent;
			depth--;
		}
		if (!next)
			return true;
		node = next;
	}
}

static ow_status list_shown(struct shown *s)
{
	struct arena *arena = &s->a->scratch;
	struct hierarchy *h = s->h;
	size_t size = (size_t)s->count * sizeof(uint32_t);
	void *above = NULL;
	bool ok = true;

	s->node = arena_push_aligned(arena, size, 4);
	s->parent = arena_push_aligned(arena, size, 4);
	if (!s->node || !s->parent ||
	    !mem_grow(s->a->mem, &above, &s->above_cap, 2, sizeof(*s->above)))
		return error_no_memory(s->a->err);
	s->above = above;
	s->node[0] = s->parent[0] = s->above[1] = 0;
	s->count = 1;
	for (uint32_t i = 0; ok && i < s->top_count; i++)
		if (h->flags[s->tops[i]] & NODE_TOP)
			ok = list_subtree(s, s->tops[i]);
	if (h->flags[0] & NODE_OPEN)
		for (uint32_t top = first_kept(h, 0); ok && top; top = next_kept(h, top))
			ok = list_subtree(s, top);
	return ok ? OW_OK : error_no_memory(s->a->err);
}

/* Lists the children of each listed node. */
static ow_status list_children(struct shown *s)
{
	struct arena *arena = &s->a->scratch;

	s->first = ARENA_ARRAY(arena, uint32_t, (size_t)s->count + 2);
	s->list = arena_push_aligned(arena, (size_t)s->count * sizeof(uint32_t), 4);
	if (!s->first || !s->list)
		return error_no_memory(s->a->err);
	for (uint32_t i = 1; i < s->count; i++)
		s->first[s->parent[i] + 2]++;
	for (uint32_t i = 2; i <= s->count; i++)
		s->first[i] += s->first[i - 1];
	for (uint32_t i = 1; i < s->count; i++)
		s->list[s->first[s->parent[i] + 1]++] = i;
	return OW_OK;
}

static void total_own(struct shown *s, uint32_t node)
{
	struct hierarchy *h = s->h;
	uint32_t width = s->a->width;

	if (h->flags[node] & NODE_ACCOUNTED)
		memcpy(hierarchy_totals(h, node), hierarchy_own(h, node),
		       width * sizeof(*h->totals));
	else
		memset(hierarchy_totals(h, node), 0, width * sizeof(*h->totals));
}

/* Computes totals of the shown nodes. The root counts as a definition in the graph. */
static void total_shown(struct shown *s)
{
	struct hierarchy *h = s->h;
	uint32_t width = s->a->width;

	total_own(s, 0);
	for (uint32_t i = 1; i < h->count; i++)
		if (h->flags[i] & NODE_SHOWN)
			total_own(s, i);
	if (s->lifted)
		for (uint32_t i = s->count; i-- > 1;)
			row_add(hierarchy_totals(h, s->node[s->parent[i]]),
				hierarchy_totals(h, s->node[i]), width);
	else
		for (uint32_t i = h->count; i-- > 1;)
			if (h->flags[i] & NODE_SHOWN)
				row_add(hierarchy_totals(h, hierarchy_link(h, i)->parent),
					hierarchy_totals(h, i), width);
	if (s->a->tree->kind == TREE_GRAPH && s->a->plan.mask & METRIC_BIT(METRIC_DEFINITION_COUNT))
		h->totals[s->a->places[METRIC_DEFINITION_COUNT]]++;
}

static bool add_key(struct shown *s, uint32_t row)
{
	if (!vec_reserve(s->a->mem, s->keys, s->key_cap, s->key_count + 1))
		return false;
	s->keys[s->key_count++].row = row;
	return true;
}

/* Gathers the shown children of a node: list numbers if nodes are lifted, hierarchy numbers if
 * not. */
static bool gather_children(struct shown *s, uint32_t id)
{
	struct hierarchy *h = s->h;
	bool ok = true;

	s->key_count = 0;
	if (s->lifted) {
		for (uint32_t i = s->first[id]; ok && i < s->first[id + 1]; i++)
			ok = add_key(s, s->list[i]);
		return ok;
	}
	for (uint32_t i = hierarchy_link(h, id)->first; ok && i; i = hierarchy_link(h, i)->next)
		if (h->flags[i] & NODE_SHOWN)
			ok = add_key(s, i);
	return ok;
}

/* Returns how many lines of a folded chain are shown below a node of this depth. */
static uint8_t shown_chain(const struct shown *s, uint32_t id, uint32_t depth)
{
	int64_t deeper = (int64_t)s->a->options->max_depth - depth - 1;
	uint32_t chain = s->h->chain ? s->h->chain(s->h->view, id) : 0;

	if (deeper < chain)
		chain = deeper > 0 ? (uint32_t)deeper : 0;
	return (uint8_t)MIN(chain, s->most - s->rows);
}

/* Puts a node into the tree; until it is filled in, total_row is its number in the hierarchy. */
static void place_node(struct shown *s, uint32_t id, uint32_t parent)
{
	struct tree *tree = s->a->tree;
	uint32_t place = tree->node_count++;
	struct tree_node *to = &tree->nodes[place];

	to->total_row = s->lifted ? s->node[id] : id;
	to->parent = parent;
	s->rows++;
	if (!place)
		return;
	to->depth = tree->nodes[parent].depth + 1;
	tree->nodes[parent].child_count++;
	to->chain = shown_chain(s, id, to->depth);
	to->child_count = to->chain > 0;
	s->rows += to->chain;
}

/* Returns whether a kernel is shown by its short name, which is the default. */
static bool is_shortened(const struct account *a, op_id op)
{
	return !a->options->full_names && a->m->op.flags[op.v] & OP_SHORT_TYPE;
}

/* All nodes, one after the other and independently: most of the time goes into fetching memory, and so
 * the processor can fetch for several at once. */
static void fill_nodes(struct shown *s)
{
	struct hierarchy *h = s->h;
	struct tree *tree = s->a->tree;

	for (uint32_t i = 1; i < tree->node_count; i++) {
		struct tree_node *to = &tree->nodes[i];
		uint32_t node = to->total_row;

		to->name = h->name(h->view, node);
		to->accounted = h->flags[node] & NODE_ACCOUNTED;
		to->own_row = h->own_row(h->view, node);
		to->total_row = h->total_row ? h->total_row[node] : node;
		h->fill(h->view, node, to);
		if (to->op.v && is_shortened(s->a, to->op))
			to->name = model_str(s->a->m, s->a->m->op.type[to->op.v]);
	}
	tree->nodes[0].name = ROOT_NAME;
	tree->nodes[0].total_row = h->total_row ? h->total_row[0] : 0;
}

/* A node that must still be put into the tree. */
struct waiting {
	uint32_t id;
	uint32_t parent; /* place of the parent in the tree */
};

struct stack {
	struct waiting *items;
	size_t count, cap;
};

/* Pushes the children onto the stack, last to first. */
static bool push_children(struct shown *s, struct stack *stack, uint32_t place)
{
	if (!vec_reserve(s->a->mem, stack->items, stack->cap, stack->count + s->key_count))
		return false;
	for (size_t i = s->key_count; i-- > 0;)
		stack->items[stack->count++] = (struct waiting){ s->keys[i].row, place };
	return true;
}

/* Returns the only shown child of a node; 0 if there are none or several. */
static uint32_t only_child(const struct hierarchy *h, uint32_t node)
{
	uint32_t found = 0;

	for (uint32_t i = hierarchy_link(h, node)->first; i; i = hierarchy_link(h, i)->next) {
		if (!(h->flags[i] & NODE_SHOWN))
			continue;
		if (found)
			return 0;
		found = i;
	}
	return found;
}

/* Puts a node into the tree, and its descendants as long as there is just one child. */
static void place_chain(struct shown *s, struct waiting *at)
{
	struct tree *tree = s->a->tree;

	for (;;) {
		uint32_t child = s->lifted ? 0 : only_child(s->h, at->id);

		place_node(s, at->id, at->parent);
		if (!child || s->rows == s->most)
			return;
		*at = (struct waiting){ child, tree->node_count - 1 };
	}
}

/* Emits nodes in pre-order with an explicit stack. Children are sorted when their parent is
 * reached, so a limit saves the rest. */
static ow_status emit(struct shown *s)
{
	struct tree *tree = s->a->tree;
	struct stack stack = { 0 };
	bool ok;

	s->most = tree->limit ? tree->limit : UINT32_MAX;
	OW_TRY(tree_reserve(tree, MIN(s->most, s->count), false, s->a->err));
	s->key_count = 0;
	ok = add_key(s, 0) && push_children(s, &stack, 0);
	while (ok && stack.count && s->rows < s->most) {
		struct waiting next = stack.items[--stack.count];

		place_chain(s, &next);
		ok = gather_children(s, next.id);
		if (!ok)
			break;
		sort_children(s);
		ok = push_children(s, &stack, tree->node_count - 1);
	}
	fill_nodes(s);
	mem_free(s->a->mem, stack.items, stack.cap * sizeof(*stack.items));
	return ok ? OW_OK : error_no_memory(s->a->err);
}

/* Emits nodes that are in order already. */
static ow_status emit_in_order(struct shown *s)
{
	struct hierarchy *h = s->h;
	struct tree *tree = s->a->tree;
	int64_t depth = MAX((int64_t)s->a->options->max_depth, 1);
	uint32_t *place = arena_push_aligned(&s->a->scratch, h->count * sizeof(*place), 4);

	s->most = tree->limit ? tree->limit : UINT32_MAX;
	OW_TRY(tree_reserve(tree, MIN(s->most, h->count), false, s->a->err));
	if (!place)
		return error_no_memory(s->a->err);
	place[0] = 0;
	place_node(s, 0, 0);
	for (uint32_t i = 1; i < h->count && s->rows < s->most; i++) {
		uint32_t up = place[hierarchy_link(h, i)->parent];

		place[i] = UINT32_MAX;
		if (up == UINT32_MAX || (int64_t)tree->nodes[up].depth + 1 >= depth)
			continue;
		place[i] = tree->node_count;
		place_node(s, i, up);
	}
	fill_nodes(s);
	return OW_OK;
}

static ow_status show(struct shown *s)
{
	struct account *a = s->a;

	if (s->h->in_order)
		return emit_in_order(s);
	if (!a->start.everything)
		OW_TRY(find_tops(s));
	OW_TRY(decide_all(s));
	if (s->lifted) {
		OW_TRY(list_shown(s));
		OW_TRY(list_children(s));
	}
	if (a->options->account_displayed_op_only && a->tree->kind != TREE_CODE)
		total_shown(s);
	return emit(s);
}

ow_status display_hierarchy(struct hierarchy *h)
{
	struct shown s = { .h = h, .a = h->a };
	ow_status status = show(&s);

	mem_free(s.a->mem, s.above, s.above_cap * sizeof(*s.above));
	mem_free(s.a->mem, s.keys, s.key_cap * sizeof(*s.keys));
	return status;
}
