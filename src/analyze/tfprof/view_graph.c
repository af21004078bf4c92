/*
 * view_graph.c: the view `graph`: ops by data flow. The inputs of an op are its children, starting from the ops that no
 * other op reads. Each op is counted once, under the first op that reaches it. Ops that are not accounted are left out,
 * and their inputs move up. Cycles that nothing outside reads are not reached. A trace without a graph gets edges from
 * its links (link_edges.h); these may form cycles, and all of the time must be shown, so ops that are not reached
 * become starts, too.
 */
#include "analyze/tfprof/account.h"

#include "base/vec.h"

#include "analyze/views/link_edges.h"
#include "table/tree/tree_text.h"

struct graph {
	struct account *a;
	uint32_t *op_of; /* op of each node */
	uint32_t count;
	uint32_t *last; /* last child so far of each node */
	struct node_link *links;
	uint8_t *visited;
	struct op_edges edges; /* inputs of each op, ordered by index */
	bool linked;	       /* the edges are made from links */
	struct input_order order;
	uint32_t *rank; /* for each op: its place by name */
};

/* An op whose inputs are being visited. */
struct step {
	uint32_t op;
	uint32_t node; /* node below which accounted descendants are put */
	uint32_t next; /* position among the op's inputs */
};

struct steps {
	struct step *items;
	size_t count, cap;
};

static struct str node_name(const void *view, uint32_t node)
{
	const struct graph *g = view;

	return model_str(g->a->m, g->a->m->op.name[g->op_of[node]]);
}

static uint32_t node_rank(const void *view, uint32_t node)
{
	const struct graph *g = view;

	return g->rank[g->op_of[node]];
}

static uint32_t node_own_row(const void *view, uint32_t node)
{
	const struct graph *g = view;

	return g->op_of[node];
}

static void node_fill(const void *view, uint32_t node, struct tree_node *to)
{
	const struct graph *g = view;

	to->op.v = g->op_of[node];
}

static bool in_order(const struct model *m, uint32_t op)
{
	const int32_t *index = m->op_input.index + m->op.input_first[op];

	for (uint32_t i = 1; i < m->op.input_count[op]; i++)
		if (index[i - 1] > index[i])
			return false;
	return true;
}

/* Sorts the inputs of each op by index, because rows of op_input may come in any order. */
static ow_status sort_inputs(struct graph *g)
{
	const struct model *m = g->a->m;
	op_id *copy = NULL;

	g->edges = (struct op_edges){ m->op.input_first, m->op.input_count, m->op_input.src,
				      m->op_input.count };
	for (uint32_t op = 1; op < m->op.count; op++) {
		uint32_t first = m->op.input_first[op];
		bool sorted;

		if (in_order(m, op))
			continue;
		if (!copy) {
			copy = ARENA_ARRAY(&g->a->scratch, op_id, m->op_input.count);
			if (!copy)
				return error_no_memory(g->a->err);
			memcpy(copy, m->op_input.src, m->op_input.count * sizeof(*copy));
			g->edges.src = copy;
		}
		if (!tree_input_order(m, (op_id){ op }, &g->order, &sorted))
			return error_no_memory(g->a->err);
		for (uint32_t i = 0; i < m->op.input_count[op]; i++)
			copy[first + i] = m->op_input.src[(uint32_t)g->order.rows[i]];
	}
	return OW_OK;
}

static bool push(struct graph *g, struct steps *s, struct step step)
{
	return vec_push(g->a->mem, s->items, s->count, s->cap, step);
}

/* Enters an op: if it is accounted, it becomes a node below `parent`. */
static bool enter(struct graph *g, struct steps *s, uint32_t op, uint32_t parent)
{
	uint32_t node = parent;

	g->visited[op] = 1;
	if (account_op(g->a, (op_id){ op })) {
		node = g->count++;
		g->op_of[node] = op;
		g->a->tree->op_accounted[op] = 1;
		g->links[node].parent = parent;
		*(g->last[parent] ? &g->links[g->last[parent]].next : &g->links[parent].first) =
			node;
		g->last[parent] = node;
	}
	return push(g, s, (struct step){ .op = op, .node = node });
}

/* Walks depth first from an op that no other op reads. */
static bool walk_inputs(struct graph *g, struct steps *s, uint32_t top)
{
	const struct op_edges *e = &g->edges;
	bool ok = g->visited[top] || enter(g, s, top, 0);

	while (ok && s->count) {
		struct step *step = &s->items[s->count - 1];
		uint32_t input;

		if (step->next == e->count[step->op]) {
			s->count--;
			continue;
		}
		input = e->src[e->first[step->op] + step->next++].v;
		if (input && !g->visited[input])
			ok = enter(g, s, input, step->node);
	}
	return ok;
}

/* Ops that no top reaches lie before a cycle or in it. Following readers from one of them ends in the cycle, from
 * where all of it is reached. These readers are not visited either, because visiting an op visits its inputs. */
static bool walk_cycles(struct graph *g, struct steps *s, const op_id *ops)
{
	const struct op_edges *e = &g->edges;
	uint32_t count = g->a->m->op.count;
	uint32_t *reader = ARENA_ARRAY(&g->a->scratch, uint32_t, count);
	uint32_t *round = ARENA_ARRAY(&g->a->scratch, uint32_t, count);
	bool ok = reader && round;

	for (uint32_t op = 1; ok && op < count; op++)
		for (uint32_t i = 0; i < e->count[op]; i++)
			reader[e->src[e->first[op] + i].v] = op;
	for (uint32_t i = 0; ok && i < count - 1; i++) {
		uint32_t op = ops[i].v;

		if (g->visited[op])
			continue;
		while (round[op] != i + 1) {
			round[op] = i + 1;
			op = reader[op];
		}
		ok = walk_inputs(g, s, op);
	}
	return ok;
}

static ow_status allocate(struct graph *g)
{
	struct account *a = g->a;
	size_t count = a->m->op.count;

	g->op_of = ARENA_ARRAY(&a->scratch, uint32_t, count);
	g->last = ARENA_ARRAY(&a->scratch, uint32_t, count);
	g->links = ARENA_ARRAY(&a->scratch, struct node_link, count);
	g->visited = ARENA_ARRAY(&a->scratch, uint8_t, count);
	a->tree->op_accounted = ARENA_ARRAY(&a->tree->arena, uint8_t, count);
	if (!g->op_of || !g->last || !g->links || !g->visited || !a->tree->op_accounted)
		return error_no_memory(a->err);
	g->count = 1;
	return account_eval_all(a, 0);
}

static ow_status build_graph(struct graph *g)
{
	struct model *m = g->a->m;
	struct steps steps = { 0 };
	const op_id *ops;
	uint8_t *read;
	bool ok = true;

	OW_TRY(allocate(g));
	g->linked = link_edges_only(m);
	if (g->linked)
		OW_TRY(link_edges_make(m, &g->a->scratch, &g->edges, g->a->err));
	else
		OW_TRY(sort_inputs(g));
	if (m->op.count <= 1)
		return OW_OK;
	read = ARENA_ARRAY(&g->a->scratch, uint8_t, m->op.count);
	g->rank = arena_push_aligned(&g->a->scratch, m->op.count * sizeof(*g->rank), 4);
	ops = model_ops_by_name(m, g->a->err);
	if (!read || !g->rank || !ops)
		return error_no_memory(g->a->err);
	for (uint32_t i = 0; i < m->op.count - 1; i++)
		g->rank[ops[i].v] = i;
	for (uint32_t i = 1; i < g->edges.edges; i++)
		read[g->edges.src[i].v] = 1;
	for (uint32_t i = 0; ok && i < m->op.count - 1; i++)
		if (!read[ops[i].v])
			ok = walk_inputs(g, &steps, ops[i].v);
	if (ok && g->linked)
		ok = walk_cycles(g, &steps, ops);
	mem_free(g->a->mem, steps.items, steps.cap * sizeof(*steps.items));
	return ok ? OW_OK : error_no_memory(g->a->err);
}

static ow_status total_and_display(struct graph *g, struct hierarchy *h)
{
	h->count = g->count;
	h->links = g->links;
	h->link_stride = sizeof(*g->links);
	h->flags = arena_push(&g->a->scratch, g->count);
	if (!h->flags)
		return error_no_memory(g->a->err);
	memset(h->flags + 1, NODE_ACCOUNTED, g->count - 1);
	OW_TRY(hierarchy_total(h));
	return display_hierarchy(h);
}

static ow_status run_graph_view(struct model *m, const struct view_options *options,
				struct table *out, struct ow_error *err)
{
	struct account a;
	struct graph g = { .a = &a, .order.mem = out->mem };
	struct hierarchy h = { .a = &a,
			       .view = &g,
			       .name = node_name,
			       .rank = node_rank,
			       .own_row = node_own_row,
			       .fill = node_fill };
	ow_status status = account_begin(&a, m, options, TREE_GRAPH, out, err);

	if (status == OW_OK)
		status = build_graph(&g);
	if (status == OW_OK)
		status = total_and_display(&g, &h);
	mem_free(a.mem, g.order.rows, g.order.cap * sizeof(*g.order.rows));
	return account_end(&a, status);
}

const struct view view_graph = {
	.name = "graph",
	.summary = "operations by data flow: what reads what, from the outputs down",
	.tree = true,
	.uses = VIEW_USES_PART | VIEW_USES_OPS | VIEW_USES_OCCURRENCE | VIEW_USES_FULL_NAMES,
	.run = run_graph_view,
};
