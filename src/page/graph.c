/*
 * graph.c: the route of the page Graph: finds the nodes and edges to draw. A file with a graph (TensorFlow, XLA) gives
 * its dataflow, with scopes as single nodes unless they are open; a trace gives which operations call or launch which
 * others. It has no costs: the page takes those from the views scope and work, so that they equal the numbers of the
 * commands.
 */
#include "page/page_int.h"

#include "base/json_escape.h"
#include "base/map.h"
#include "base/vec.h"

#define NODES_SHOWN 400u /* more nodes are not readable, and take too long to lay out */
#define CALLS_SHOWN 60u
#define OPEN_MOST 256u

struct node {
	struct str name; /* path of the scope or op */
	str_id type;	 /* type of the first op in the node */
	uint32_t ops;	 /* number of ops in the node */
	uint64_t weight; /* nodes with the largest weight are shown when there are too many */
	bool scope;	 /* the node contains more than the op with its name */
	uint32_t shown;	 /* 1 + index in the answer; 0 = left out */
};

struct edge {
	uint32_t from, to; /* node numbers */
	uint64_t count;
	bool control; /* a control dependency: no data flows */
};

struct graph {
	struct mem *mem;
	const struct model *m;
	struct str open[OPEN_MOST];
	size_t open_count;
	struct node *nodes; /* index 0 is unused */
	size_t node_count, node_cap;
	struct edge *edges; /* index 0 is unused */
	size_t edge_count, edge_cap;
	struct map node_map, edge_map;
	uint32_t *node_of; /* for each op or string: its node */
	size_t node_of_count;
	bool failed;
};

static bool graph_init(struct graph *g, struct ow_ui *ui, size_t node_of_count)
{
	*g = (struct graph){ .mem = &ui->mem, .m = ui->profile->m };
	map_init(&g->node_map, g->mem);
	map_init(&g->edge_map, g->mem);
	g->node_of_count = node_of_count + 1;
	g->node_of = mem_zalloc(g->mem, g->node_of_count * sizeof(*g->node_of));
	g->failed = !g->node_of ||
		    !vec_push(g->mem, g->nodes, g->node_count, g->node_cap, (struct node){ 0 });
	g->failed = g->failed ||
		    !vec_push(g->mem, g->edges, g->edge_count, g->edge_cap, (struct edge){ 0 });
	return !g->failed;
}

static void graph_release(struct graph *g)
{
	map_release(&g->node_map);
	map_release(&g->edge_map);
	vec_free(g->mem, g->nodes, g->node_cap);
	vec_free(g->mem, g->edges, g->edge_cap);
	mem_free(g->mem, g->node_of, g->node_of_count * sizeof(*g->node_of));
}

/* The node with this name, added if necessary; 0 if memory runs out. */
static uint32_t node_named(struct graph *g, struct str name)
{
	uint64_t hash = str_hash(name);

	for (struct map_iter it = map_find(&g->node_map, hash); it.value;
	     it = map_next(&g->node_map, it))
		if (str_eq(g->nodes[it.value].name, name))
			return it.value;
	if (!vec_push(g->mem, g->nodes, g->node_count, g->node_cap,
		      (struct node){ .name = name }) ||
	    !map_add(&g->node_map, hash, (uint32_t)(g->node_count - 1))) {
		g->failed = true;
		return 0;
	}
	return (uint32_t)(g->node_count - 1);
}

static void add_edge(struct graph *g, uint32_t from, uint32_t to, bool control)
{
	uint64_t hash = map_hash_u64((uint64_t)from << 32 | to, control);

	if (!from || !to || from == to || g->failed)
		return;
	for (struct map_iter it = map_find(&g->edge_map, hash); it.value;
	     it = map_next(&g->edge_map, it)) {
		struct edge *edge = &g->edges[it.value];

		if (edge->from == from && edge->to == to && edge->control == control) {
			edge->count++;
			return;
		}
	}
	g->failed = !vec_push(g->mem, g->edges, g->edge_count, g->edge_cap,
			      (struct edge){ from, to, 1, control }) ||
		    !map_add(&g->edge_map, hash, (uint32_t)(g->edge_count - 1));
}

static bool is_open(const struct graph *g, struct str scope)
{
	for (size_t i = 0; i < g->open_count; i++)
		if (str_eq(g->open[i], scope))
			return true;
	return false;
}

/* The part of a name that is drawn: up to the first scope that is not open. */
static struct str visible_part(const struct graph *g, struct str name)
{
	for (size_t i = 1; i < name.len; i++)
		if (name.ptr[i] == '/' && !is_open(g, str_first(name, i)))
			return str_first(name, i);
	return name;
}

static void add_ops(struct graph *g)
{
	const struct model *m = g->m;

	for (uint32_t i = 1; i < m->op.count && !g->failed; i++) {
		struct str name = model_str(m, m->op.name[i]);
		struct str part = visible_part(g, name);
		uint32_t number;
		struct node *node;

		if (!m->op.input_count[i] && !m->op.output_count[i] && !m->op.step_count[i])
			continue; /* the name of an input that no op defines */
		number = node_named(g, part);
		node = &g->nodes[number];
		g->node_of[i] = number;
		node->ops++;
		node->weight++;
		node->scope |= part.len < name.len;
		if (!node->type.v)
			node->type = m->op.type[i];
	}
}

static void add_inputs(struct graph *g)
{
	const struct model *m = g->m;

	for (uint32_t i = 1; i < m->op.count && !g->failed; i++)
		for (uint32_t k = 0; k < m->op.input_count[i]; k++) {
			uint32_t input = m->op.input_first[i] + k;

			add_edge(g, g->node_of[m->op_input.src[input].v], g->node_of[i],
				 m->op_input.port[input] < 0);
		}
}

/* The node of an event: the type of its op, by which the view work sums; without a type, its name. */
static uint32_t call_node(struct graph *g, uint32_t event)
{
	const struct model *m = g->m;
	uint32_t op = m->event.op[event].v;
	str_id name = m->op.type[op].v ? m->op.type[op] : m->op.name[op];
	uint32_t *number = &g->node_of[name.v];

	if (!name.v)
		return 0;
	if (!*number) {
		*number = node_named(g, model_str(m, name));
		g->nodes[*number].type = name;
	}
	return *number;
}

#define DEPTH_MOST 1024u

/* Adds edges between callers and callees. Events of a track are sorted by time, outer ones first: the caller of an
 * event is the last event one level above it. */
static void add_calls(struct graph *g)
{
	const struct model *m = g->m;
	uint32_t stack[DEPTH_MOST] = { 0 }, track = 0;

	for (uint32_t i = 1; i < m->event.count && !g->failed; i++) {
		uint32_t depth = COLUMN_GET(m->event.depth, i), node;

		if (!(COLUMN_GET(m->track.flags, m->event.track[i].v) & TRACK_NESTED) ||
		    depth >= DEPTH_MOST)
			continue;
		if (m->event.track[i].v != track) {
			track = m->event.track[i].v;
			stack[0] = 0;
		}
		node = call_node(g, i);
		stack[depth] = node;
		g->nodes[node].ops++;
		g->nodes[node].weight += (uint64_t)MAX(COLUMN_GET(m->event.self_ns, i), 0);
		if (depth)
			add_edge(g, stack[depth - 1], node, false);
	}
	for (uint32_t i = 1; i < m->link.count && !g->failed; i++)
		if (m->link.kind[i] != LINK_WAIT)
			add_edge(g, call_node(g, m->link.src[i].v), call_node(g, m->link.dst[i].v),
				 true);
}

static int by_weight(const void *a, const void *b, void *arg)
{
	const struct node *nodes = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (nodes[x].weight != nodes[y].weight)
		return nodes[x].weight > nodes[y].weight ? -1 : 1;
	return x < y ? -1 : 1;
}

/* Numbers the nodes with the largest weights. */
static uint32_t choose(struct graph *g, uint32_t most)
{
	size_t bytes = g->node_count * sizeof(uint32_t);
	uint32_t *order = mem_alloc(g->mem, bytes), count = 0, shown = 0;

	if (!order) {
		g->failed = true;
		return 0;
	}
	for (uint32_t i = 1; i < g->node_count; i++)
		if (g->nodes[i].ops)
			order[count++] = i;
	qsort_r(order, count, sizeof(*order), by_weight, g->nodes);
	for (uint32_t i = 0; i < count && i < most; i++)
		g->nodes[order[i]].shown = ++shown;
	mem_free(g->mem, order, bytes);
	return count - shown;
}

static void add_answer(struct graph *g, const char *kind, uint32_t left_out, struct buf *to)
{
	bool first = true;

	buf_printf(to, "{\"kind\": \"%s\", \"left_out\": %u, \"nodes\": [", kind, left_out);
	for (size_t i = 1; i < g->node_count; i++) {
		const struct node *node = &g->nodes[i];

		if (!node->shown)
			continue;
		buf_printf(to, "%s\n{\"id\": %u, \"ops\": %u, \"scope\": %s, \"name\": ",
			   first ? "" : ",", node->shown, node->ops,
			   node->scope ? "true" : "false");
		json_quote(to, node->name);
		buf_puts(to, ", \"type\": ");
		json_quote(to, model_str(g->m, node->type));
		buf_puts(to, "}");
		first = false;
	}
	buf_puts(to, "],\n\"edges\": [");
	first = true;
	for (size_t i = 1; i < g->edge_count; i++) {
		const struct edge *edge = &g->edges[i];
		uint32_t from = g->nodes[edge->from].shown, end = g->nodes[edge->to].shown;

		if (!from || !end)
			continue;
		buf_printf(to, "%s[%u, %u, %llu, %d]", first ? "" : ", ", from, end,
			   (unsigned long long)edge->count, edge->control);
		first = false;
	}
	buf_puts(to, "]}\n");
}

static ow_status draw(struct ow_ui *ui, const char *open, struct buf *to, struct ow_error *err)
{
	struct model *m = ui->profile->m;
	bool flow = m->op_input.count > 1;
	struct str rest = str_from(open ? open : ""), line;
	struct graph g;

	OW_TRY(flow ? OW_OK : model_require_nesting(m, err));
	if (graph_init(&g, ui, flow ? m->op.count : m->strings.count)) {
		while (g.open_count < OPEN_MOST && str_split(&rest, '\n', &line))
			if (line.len)
				g.open[g.open_count++] = line;
		if (flow) {
			add_ops(&g);
			add_inputs(&g);
		} else {
			add_calls(&g);
		}
	}
	if (!g.failed)
		add_answer(&g, flow ? "dataflow" : "calls",
			   choose(&g, flow ? NODES_SHOWN : CALLS_SHOWN), to);
	graph_release(&g);
	return g.failed ? error_no_memory(err) : OW_OK;
}

PAGE_HANDLER(graph)
{
	struct ow_ui *u = ui;
	struct reading reading;
	struct ow_error err = { 0 };
	ow_status status;

	if (!page_ready(u, reply))
		return;
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		status = draw(u, server_param(request, "open"), &reply->body, &err);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
}
