/*
 * display.c: see display.h. The order of the tests is tfprof's and shows in its results: a hidden
 * node's visible descendants take its place, a trimmed node stays in scope and graph but goes in code,
 * minimums look at totals from before account_displayed_op_only. Nothing here recurses: names of a
 * hundred thousand levels and chains of as many nodes are just long lists.
 */
#include "analyze/display.h"

/* Nodes that are shown, in walking order; 0 is the root. */
struct shown {
	struct hierarchy *h;
	struct account *a;
	uint32_t *node;	  /* in the hierarchy */
	uint32_t *parent; /* place of the shown parent in this list */
	uint32_t count;
	uint32_t *tops; /* where the walk starts */
	uint32_t top_count;
	uint32_t *above; /* per depth of the walk: the shown node at or above */
	size_t above_cap;
};

bool display_reaches(const struct account *a, const int64_t *own, const int64_t *total)
{
	for (uint32_t i = 0; i < a->test_count; i++) {
		const struct min_test *t = &a->tests[i];
		uint8_t place = a->places[t->metric];
		int64_t value = t->own ? (own ? own[place] : 0) : total[place];

		if (value < t->min)
			return false;
	}
	return true;
}

bool display_named(struct account *a, struct str name)
{
	return regex_match(&a->show, name) && !regex_match(&a->hide, name);
}

/* ---- sorting ---- */

static int by_key(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;
	int order = (x->value < y->value) - (x->value > y->value);

	if (!order)
		order = str_cmp(x->name, y->name);
	return order ? order : (x->position > y->position) - (x->position < y->position);
}

/* Values sort downwards, names upwards; a key has one or the other. */
void display_sort(const struct account *a, struct sort_key *keys, size_t count)
{
	bool sorted = true;

	if (a->order == ORDER_NONE)
		return;
	for (size_t i = 0; i < count; i++) {
		keys[i].position = (uint32_t)i;
		if (a->order == ORDER_NAME)
			keys[i].value = 0;
		if (a->has_root_name && str_eq(keys[i].name, ROOT_NAME))
			keys[i].value = INT64_MAX; /* before everything else */
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
		return h->totals[(size_t)node * a->width + a->places[a->order_metric]];
	case ORDER_OPS:
		return h->op_count(h->view, node);
	default:
		return 0;
	}
}

/* ---- walking ---- */

static uint32_t kept_from(const struct hierarchy *h, uint32_t node)
{
	while (node && !(h->flags[node] & NODE_KEPT))
		node = h->links[node].next;
	return node;
}

static uint32_t first_kept(const struct hierarchy *h, uint32_t node)
{
	return kept_from(h, h->links[node].first);
}

static uint32_t next_kept(const struct hierarchy *h, uint32_t node)
{
	return kept_from(h, h->links[node].next);
}

/* The next node in pre-order after the subtree of `node`; 0 at the end. */
static uint32_t after_subtree(const struct hierarchy *h, uint32_t node)
{
	for (; node; node = h->links[node].parent) {
		uint32_t next = next_kept(h, node);

		if (next)
			return next;
	}
	return 0;
}

/* The nodes from which the walk starts: the top level, or the first match on each branch. */
static ow_status find_tops(struct shown *s)
{
	struct hierarchy *h = s->h;
	bool all = s->a->start.everything;
	uint32_t count = 0;

	s->tops = arena_push_aligned(&s->a->scratch, (size_t)h->count * sizeof(*s->tops),
				     sizeof(*s->tops));
	if (!s->tops)
		return error_no_memory(s->a->err);
	for (uint32_t node = first_kept(h, 0); node;) {
		uint32_t child = all ? 0 : first_kept(h, node);

		if (all || regex_match(&s->a->start, h->name(h->view, node))) {
			s->tops[count++] = node;
			child = 0;
		}
		node = child ? child : after_subtree(h, node);
	}
	s->top_count = count;
	return OW_OK;
}

static bool visible(struct shown *s, uint32_t node)
{
	struct hierarchy *h = s->h;
	struct account *a = s->a;

	if (a->test_count && !display_reaches(a, h->own(h->view, node),
					      h->totals + (size_t)node * a->width))
		return false;
	return (a->show.everything && !a->hide.regex) || display_named(a, h->name(h->view, node));
}

/* Shows the node or not, and remembers for its depth what is above its children. Returns whether to
 * go on below it. */
static bool visit(struct shown *s, uint32_t node, uint32_t depth, uint32_t max_depth)
{
	struct hierarchy *h = s->h;
	bool trimmed = s->a->trim.regex && regex_match(&s->a->trim, h->name(h->view, node));

	s->above[depth] = s->above[depth - 1];
	if (trimmed && s->a->tree->kind == TREE_CODE)
		return false;
	if (visible(s, node)) {
		s->node[s->count] = node;
		s->parent[s->count] = s->above[depth - 1];
		s->above[depth] = s->count++;
	}
	return !trimmed && depth < max_depth;
}

static bool room_for_depth(struct shown *s, uint32_t depth)
{
	void *grown = s->above;

	if (!mem_grow(s->a->mem, &grown, &s->above_cap, (size_t)depth + 1, sizeof(*s->above)))
		return false;
	s->above = grown;
	return true;
}

/* Walks one top-level node and what is below it. The root has depth 1. */
static ow_status walk(struct shown *s, uint32_t top, uint32_t max_depth)
{
	struct hierarchy *h = s->h;
	uint32_t node = top, depth = 2;

	for (;;) {
		uint32_t child = 0;

		if (!room_for_depth(s, depth))
			return error_no_memory(s->a->err);
		if (visit(s, node, depth, max_depth))
			child = first_kept(h, node);
		if (child) {
			node = child;
			depth++;
			continue;
		}
		while (depth > 2 && !next_kept(h, node)) {
			node = h->links[node].parent;
			depth--;
		}
		if (depth == 2)
			return OW_OK;
		node = next_kept(h, node);
	}
}

static ow_status choose(struct shown *s)
{
	struct account *a = s->a;
	int32_t max_depth = a->options->max_depth;

	s->node = arena_push_aligned(&a->scratch, (size_t)s->h->count * sizeof(uint32_t), 4);
	s->parent = arena_push_aligned(&a->scratch, (size_t)s->h->count * sizeof(uint32_t), 4);
	if (!s->node || !s->parent || !room_for_depth(s, 2))
		return error_no_memory(a->err);
	s->node[0] = s->parent[0] = 0;
	s->count = 1;
	s->above[1] = 0;
	if (max_depth < 2 || regex_match(&a->trim, ROOT_NAME))
		return OW_OK;
	for (uint32_t i = 0; i < s->top_count; i++)
		OW_TRY(walk(s, s->tops[i], (uint32_t)max_depth));
	return OW_OK;
}

/* account_displayed_op_only: totals of what is shown. The root counts as a definition in the graph. */
static void total_shown(struct shown *s)
{
	struct hierarchy *h = s->h;
	uint32_t width = s->a->width;

	for (uint32_t i = 0; i < s->count; i++) {
		int64_t *total = h->totals + (size_t)s->node[i] * width;
		const int64_t *own = h->flags[s->node[i]] & NODE_ACCOUNTED ?
					     h->own(h->view, s->node[i]) :
					     NULL;

		memset(total, 0, width * sizeof(*total));
		if (own)
			row_add(total, own, width);
	}
	for (uint32_t i = s->count; i-- > 1;)
		row_add(h->totals + (size_t)s->node[s->parent[i]] * width,
			h->totals + (size_t)s->node[i] * width, width);
	if (s->a->tree->kind == TREE_GRAPH &&
	    s->a->plan.mask & METRIC_BIT(METRIC_DEFINITION_COUNT))
		h->totals[s->a->places[METRIC_DEFINITION_COUNT]]++;
}

/* ---- the tree ---- */

/* Children of each shown node, sorted: those of i are at [first[i], first[i + 1]). */
struct children {
	uint32_t *first, *list;
};

static ow_status group_children(struct shown *s, struct children *c)
{
	struct arena *arena = &s->a->scratch;

	c->first = ARENA_ARRAY(arena, uint32_t, (size_t)s->count + 2);
	c->list = arena_push_aligned(arena, (size_t)s->count * sizeof(uint32_t), 4);
	if (!c->first || !c->list)
		return error_no_memory(s->a->err);
	for (uint32_t i = 1; i < s->count; i++)
		c->first[s->parent[i] + 2]++;
	for (uint32_t i = 2; i <= s->count; i++)
		c->first[i] += c->first[i - 1];
	for (uint32_t i = 1; i < s->count; i++)
		c->list[c->first[s->parent[i] + 1]++] = i;
	return OW_OK;
}

static void sort_range(struct shown *s, uint32_t *list, uint32_t count, struct sort_key *keys)
{
	struct hierarchy *h = s->h;
	bool names = s->a->order == ORDER_NAME || s->a->has_root_name;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t node = s->node[list[i]];

		keys[i] = (struct sort_key){ .row = list[i], .value = sort_value(h, node) };
		if (names)
			keys[i].name = h->name(h->view, node);
	}
	display_sort(s->a, keys, count);
	for (uint32_t i = 0; i < count; i++)
		list[i] = keys[i].row;
}

static ow_status sort_children(struct shown *s, struct children *c)
{
	uint32_t longest = 0;
	struct sort_key *keys;

	if (s->a->order == ORDER_NONE)
		return OW_OK;
	for (uint32_t i = 0; i < s->count; i++)
		longest = MAX(longest, c->first[i + 1] - c->first[i]);
	keys = mem_alloc(s->a->mem, (size_t)longest * sizeof(*keys));
	if (!keys)
		return error_no_memory(s->a->err);
	for (uint32_t i = 0; i < s->count; i++)
		if (c->first[i + 1] - c->first[i] > 1)
			sort_range(s, c->list + c->first[i], c->first[i + 1] - c->first[i], keys);
	mem_free(s->a->mem, keys, (size_t)longest * sizeof(*keys));
	return OW_OK;
}

static void fill_node(struct shown *s, uint32_t shown, struct tree_node *to)
{
	struct hierarchy *h = s->h;
	uint32_t node = s->node[shown];
	const int64_t *own = h->own(h->view, node);

	to->name = node ? h->name(h->view, node) : ROOT_NAME;
	to->accounted = h->flags[node] & NODE_ACCOUNTED;
	row_spread(s->a, h->totals + (size_t)node * s->a->width, to->total);
	if (own && node)
		row_spread(s->a, own, to->own);
	if (node)
		h->fill(h->view, node, to);
}

/* Pre-order with an explicit stack, which reuses the list of parents: a node's final place is needed
 * by its children only after it has been popped. */
static ow_status emit(struct shown *s, const struct children *c)
{
	struct tree *tree = s->a->tree;
	uint32_t *stack = arena_push_aligned(&s->a->scratch, (size_t)s->count * sizeof(*stack), 4);
	uint32_t top = 0;

	tree->nodes = ARENA_ARRAY(&tree->arena, struct tree_node, s->count);
	if (!stack || !tree->nodes)
		return error_no_memory(s->a->err);
	stack[top++] = 0;
	while (top) {
		uint32_t shown = stack[--top], place = tree->node_count++;
		struct tree_node *node = &tree->nodes[place];

		fill_node(s, shown, node);
		node->parent = s->parent[shown];
		node->depth = shown ? tree->nodes[node->parent].depth + 1 : 0;
		node->child_count = c->first[shown + 1] - c->first[shown];
		for (uint32_t i = c->first[shown + 1]; i-- > c->first[shown];) {
			s->parent[c->list[i]] = place;
			stack[top++] = c->list[i];
		}
	}
	return OW_OK;
}

ow_status display_hierarchy(struct hierarchy *h)
{
	struct shown s = { .h = h, .a = h->a };
	struct children c = { 0 };
	ow_status status = find_tops(&s);

	if (status == OW_OK)
		status = choose(&s);
	mem_free(s.a->mem, s.above, s.above_cap * sizeof(*s.above));
	OW_TRY(status);
	if (s.a->options->account_displayed_op_only && s.a->tree->kind != TREE_CODE)
		total_shown(&s);
	OW_TRY(group_children(&s, &c));
	OW_TRY(sort_children(&s, &c));
	return emit(&s, &c);
}
