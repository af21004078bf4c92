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
	uint32_t *parent; /* place of the shown parent in this list; later: in the tree */
	uint32_t count;
	uint32_t *tops; /* where the walk starts; NULL = at the top level */
	uint32_t top_count;
	uint32_t *above; /* per depth of the walk: the shown node at or above */
	size_t above_cap;
	bool lifted; /* some node is not shown below its own parent */
	/* children of shown node i are list[first[i]] … list[first[i + 1]] */
	uint32_t *first, *list;
	struct sort_key *keys;
	size_t key_count;
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

	for (size_t i = 0; i < count; i++) {
		keys[i].position = (uint32_t)i;
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
		return h->rank ? -(int64_t)h->rank(h->view, node) : 0;
	}
}

/* Sorts the children of one shown node. */
static void sort_children(struct shown *s, uint32_t shown)
{
	struct hierarchy *h = s->h;
	bool names = (s->a->order == ORDER_NAME && !h->rank) || s->a->has_root_name;
	uint32_t *list = s->list + s->first[shown], count = s->first[shown + 1] - s->first[shown];

	if (count < 2 || s->a->order == ORDER_NONE)
		return;
	if (s->a->order == ORDER_NAME && h->by_name && !s->lifted && !s->a->has_root_name)
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t node = s->node[list[i]];

		s->keys[i] = (struct sort_key){ .row = list[i], .value = sort_value(h, node) };
		if (names)
			s->keys[i].name = h->name(h->view, node);
	}
	display_sort(s->a, s->keys, count);
	for (uint32_t i = 0; i < count; i++)
		list[i] = s->keys[i].row;
}

/* ---- walking ---- */

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

/* The next node in pre-order after the subtree of `node`; 0 at the end. */
static uint32_t after_subtree(const struct hierarchy *h, uint32_t node)
{
	for (; node; node = hierarchy_link(h, node)->parent) {
		uint32_t next = next_kept(h, node);

		if (next)
			return next;
	}
	return 0;
}

/* With start_name_regexes the walk starts at the first match on each branch. */
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

	if (a->test_count && !display_reaches(a, hierarchy_own(h, node),
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
	} else {
		s->lifted = true;
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
		uint32_t next = 0;

		if (!room_for_depth(s, depth))
			return error_no_memory(s->a->err);
		if (visit(s, node, depth, max_depth))
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
			return OW_OK;
		node = next;
	}
}

static ow_status choose(struct shown *s)
{
	struct account *a = s->a;
	struct hierarchy *h = s->h;
	int32_t max_depth = a->options->max_depth;

	s->node = arena_push_aligned(&a->scratch, (size_t)h->count * sizeof(uint32_t), 4);
	s->parent = arena_push_aligned(&a->scratch, (size_t)h->count * sizeof(uint32_t), 4);
	if (!s->node || !s->parent || !room_for_depth(s, 2))
		return error_no_memory(a->err);
	s->node[0] = s->parent[0] = 0;
	s->count = 1;
	s->above[1] = 0;
	if (max_depth < 2 || regex_match(&a->trim, ROOT_NAME))
		return OW_OK;
	for (uint32_t i = 0; i < s->top_count; i++)
		OW_TRY(walk(s, s->tops[i], (uint32_t)max_depth));
	if (s->tops)
		return OW_OK;
	for (uint32_t top = first_kept(h, 0); top; top = next_kept(h, top))
		OW_TRY(walk(s, top, (uint32_t)max_depth));
	return OW_OK;
}

/* account_displayed_op_only: totals of what is shown. The root counts as a definition in the graph. */
static void total_shown(struct shown *s)
{
	struct hierarchy *h = s->h;
	uint32_t width = s->a->width;

	for (uint32_t i = 0; i < s->count; i++) {
		int64_t *total = h->totals + (size_t)s->node[i] * width;

		memset(total, 0, width * sizeof(*total));
		if (h->flags[s->node[i]] & NODE_ACCOUNTED)
			row_add(total, hierarchy_own(h, s->node[i]), width);
	}
	for (uint32_t i = s->count; i-- > 1;)
		row_add(h->totals + (size_t)s->node[s->parent[i]] * width,
			h->totals + (size_t)s->node[i] * width, width);
	if (s->a->tree->kind == TREE_GRAPH &&
	    s->a->plan.mask & METRIC_BIT(METRIC_DEFINITION_COUNT))
		h->totals[s->a->places[METRIC_DEFINITION_COUNT]]++;
}

/* ---- the tree ---- */

static ow_status group_children(struct shown *s)
{
	struct arena *arena = &s->a->scratch;
	uint32_t longest = 0;

	s->first = ARENA_ARRAY(arena, uint32_t, (size_t)s->count + 2);
	s->list = arena_push_aligned(arena, (size_t)s->count * sizeof(uint32_t), 4);
	if (!s->first || !s->list)
		return error_no_memory(s->a->err);
	for (uint32_t i = 1; i < s->count; i++) {
		uint32_t count = ++s->first[s->parent[i] + 2];

		longest = MAX(longest, count);
	}
	for (uint32_t i = 2; i <= s->count; i++)
		s->first[i] += s->first[i - 1];
	for (uint32_t i = 1; i < s->count; i++)
		s->list[s->first[s->parent[i] + 1]++] = i;
	s->key_count = longest;
	s->keys = mem_alloc(s->a->mem, s->key_count * sizeof(*s->keys));
	return s->keys ? OW_OK : error_no_memory(s->a->err);
}

static void fill_node(struct shown *s, uint32_t shown, uint32_t place)
{
	struct hierarchy *h = s->h;
	struct tree *tree = s->a->tree;
	struct tree_node *to = &tree->nodes[place];
	uint32_t node = s->node[shown];

	to->parent = s->parent[shown];
	if (place) {
		to->depth = tree->nodes[to->parent].depth + 1;
		tree->nodes[to->parent].child_count++;
	}
	to->total_row = node;
	if (!node) {
		to->name = ROOT_NAME;
		return;
	}
	to->name = h->name(h->view, node);
	to->accounted = h->flags[node] & NODE_ACCOUNTED;
	to->own_row = h->own_row(h->view, node);
	h->fill(h->view, node, to);
}

/* Pre-order with an explicit stack. Children are sorted when their parent is reached, so that a limit
 * saves the rest. The list of parents is reused for their places in the tree. */
static ow_status emit(struct shown *s)
{
	struct tree *tree = s->a->tree;
	uint32_t rows = tree->limit ? MIN(tree->limit, s->count) : s->count;
	uint32_t *stack = arena_push_aligned(&s->a->scratch, (size_t)s->count * sizeof(*stack), 4);
	uint32_t top = 0;

	if (!stack)
		return error_no_memory(s->a->err);
	OW_TRY(tree_reserve(tree, rows, false, s->a->err));
	stack[top++] = 0;
	while (top && tree->node_count < rows) {
		uint32_t shown = stack[--top], place = tree->node_count++;

		fill_node(s, shown, place);
		sort_children(s, shown);
		for (uint32_t i = s->first[shown + 1]; i-- > s->first[shown];) {
			s->parent[s->list[i]] = place;
			stack[top++] = s->list[i];
		}
	}
	return OW_OK;
}

ow_status display_hierarchy(struct hierarchy *h)
{
	struct shown s = { .h = h, .a = h->a };
	ow_status status = OW_OK;

	if (!s.a->start.everything)
		status = find_tops(&s);
	if (status == OW_OK)
		status = choose(&s);
	mem_free(s.a->mem, s.above, s.above_cap * sizeof(*s.above));
	OW_TRY(status);
	if (s.a->options->account_displayed_op_only && s.a->tree->kind != TREE_CODE)
		total_shown(&s);
	status = group_children(&s);
	if (status == OW_OK)
		status = emit(&s);
	mem_free(s.a->mem, s.keys, s.key_count * sizeof(*s.keys));
	return status;
}
