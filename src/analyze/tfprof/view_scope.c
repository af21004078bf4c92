/*
 * view_scope.c: the view `scope`: ops by name. Each / opens a scope, and scopes without an op of their own become pseudo nodes. Ops come in byte
 * order of their names, where the members of a scope need not be neighbours ("a", "a-1", "a/x": '-' sorts before '/'). So the path to the
 * previous op is kept, and a scope that was left is searched among its parent's last children.
 */
#include "analyze/tfprof/account.h"

#include "base/vec.h"

/* A scope. A pseudo scope has no op; its name is the beginning of the name of an op in it. */
struct scope_node {
	struct node_link link;
	uint32_t last, previous; /* last child, and previous sibling */
	uint32_t op;		 /* op of the scope; 0 for a pseudo scope */
	struct str name;
};

struct scopes {
	struct account *a;
	struct scope_node *nodes;
	size_t count, cap;
	uint32_t *path; /* nodes from the root to the last op added */
	size_t depth, path_cap;
	struct str name; /* name of the last op added */
	bool traced;	 /* the names come from a trace: a leading / is part of the first scope */
};

static struct str node_name(const void *view, uint32_t node)
{
	return ((const struct scopes *)view)->nodes[node].name;
}

static bool is_traced(const struct model *m)
{
	for (uint32_t t = 1; t < m->track.count; t++)
		if (COLUMN_GET(m->track.flags, t) & TRACK_SLICES)
			return true;
	return false;
}

/* Returns the row of a node's own values: that of its op; pseudo scopes share one row with a
 * definition only. */
static uint32_t node_own_row(const void *view, uint32_t node)
{
	const struct scopes *s = view;
	uint32_t op = s->nodes[node].op;

	return op ? op : s->a->m->op.count;
}

static void node_fill(const void *view, uint32_t node, struct tree_node *to)
{
	to->op.v = ((const struct scopes *)view)->nodes[node].op;
}

static uint32_t add_node(struct scopes *s, uint32_t parent, uint32_t after, uint32_t op,
			 struct str name)
{
	struct scope_node *n;
	uint32_t id = (uint32_t)s->count;

	if (s->count == UINT32_MAX || !vec_reserve(s->a->mem, s->nodes, s->cap, s->count + 1))
		return 0;
	n = &s->nodes[s->count++];
	*n = (struct scope_node){
		.link.parent = parent, .previous = after, .op = op, .name = name
	};
	if (!id)
		return 0;
	n->link.next = after ? s->nodes[after].link.next : s->nodes[parent].link.first;
	*(after ? &s->nodes[after].link.next : &s->nodes[parent].link.first) = id;
	*(n->link.next ? &s->nodes[n->link.next].previous : &s->nodes[parent].last) = id;
	return id;
}

/* The child of `parent` with that name, added if necessary; 0 if memory runs out. Siblings are sorted; those that
 * sort after it here start with its name. */
static uint32_t find_child(struct scopes *s, uint32_t parent, uint32_t op, struct str name)
{
	uint32_t at = s->nodes[parent].last;

	while (at) {
		int order = str_cmp(s->nodes[at].name, name);

		if (order == 0)
			return at;
		if (order < 0)
			break;
		at = s->nodes[at].previous;
	}
	return add_node(s, parent, at, op, name);
}

static size_t common_prefix(struct str a, struct str b)
{
	size_t len = MIN(a.len, b.len), i = 0;

	for (; i + 8 <= len && memcmp(a.ptr + i, b.ptr + i, 8) == 0;)
		i += 8;
	while (i < len && a.ptr[i] == b.ptr[i])
		i++;
	return i;
}

/* Moves up to the deepest scope that also contains `name`. */
static void leave_scopes(struct scopes *s, struct str name)
{
	size_t common = common_prefix(s->name, name);

	for (; s->depth > 1; s->depth--) {
		size_t len = s->nodes[s->path[s->depth - 1]].name.len;

		if (len <= common && len < name.len && name.ptr[len] == '/')
			return;
	}
}

static bool push_path(struct scopes *s, uint32_t node)
{
	return vec_push(s->a->mem, s->path, s->depth, s->path_cap, node);
}

static bool add_op(struct scopes *s, uint32_t op)
{
	struct str name = model_str(s->a->m, s->a->m->op.name[op]);
	size_t begin;

	leave_scopes(s, name);
	begin = s->depth > 1 ? s->nodes[s->path[s->depth - 1]].name.len + 1 : 0;
	s->name = name;
	for (;;) {
		/* ONNX and TensorRT write /layer1/conv: the scope is /layer1, not one without a name. In a graph of
		 * TensorFlow it is one without a name, as the original has it. */
		size_t from = begin + (s->traced && !begin && name.len > 1 && name.ptr[0] == '/');
		size_t slash = str_find_char(str_skip(name, from), '/');
		size_t len = slash == STR_NONE ? name.len : from + slash;
		uint32_t node = find_child(s, s->path[s->depth - 1], slash == STR_NONE ? op : 0,
					   str_first(name, len));

		if (!node || !push_path(s, node))
			return false;
		if (slash == STR_NONE)
			return true;
		begin = len + 1;
	}
}

/* Prefetches names that come soon, in three steps, because names are scattered in memory. */
static void fetch_ahead(const struct model *m, const op_id *ops, uint32_t at, uint32_t count)
{
	if (at + 24 < count)
		__builtin_prefetch(&m->op.name[ops[at + 24].v]);
	if (at + 16 < count)
		__builtin_prefetch(&m->strings.text[m->op.name[ops[at + 16].v].v]);
	if (at + 8 < count)
		__builtin_prefetch(model_str(m, m->op.name[ops[at + 8].v]).ptr);
}

static ow_status build_scopes(struct scopes *s)
{
	struct model *m = s->a->m;
	const op_id *ops;

	add_node(s, 0, 0, 0, STR(""));
	if (!s->count || !push_path(s, 0))
		return error_no_memory(s->a->err);
	if (m->op.count <= 1)
		return OW_OK;
	ops = model_ops_by_name(m, s->a->err);
	if (!ops)
		return OW_E_NO_MEMORY;
	for (uint32_t i = 0; i < m->op.count - 1; i++) {
		fetch_ahead(m, ops, i, m->op.count - 1);
		if (!add_op(s, ops[i].v))
			return error_no_memory(s->a->err);
	}
	return OW_OK;
}

static ow_status make_hierarchy(struct scopes *s, struct hierarchy *h)
{
	struct account *a = s->a;
	bool pseudo = a->types.everything || regex_match(&a->types, STR("_kTFScopeParent"));

	h->count = (uint32_t)s->count;
	h->links = s->nodes;
	h->link_stride = sizeof(*s->nodes);
	h->flags = ARENA_ARRAY(&a->scratch, uint8_t, s->count);
	if (!h->flags)
		return error_no_memory(a->err);
	OW_TRY(account_eval_all(a, 1));
	if (a->plan.mask & METRIC_BIT(METRIC_DEFINITION_COUNT))
		a->tree->own_rows[(size_t)a->m->op.count * a->width +
				  a->places[METRIC_DEFINITION_COUNT]] = 1;
	for (uint32_t i = 0; i < h->count; i++) {
		uint32_t op = s->nodes[i].op;
		bool accounted = op ? account_op(a, (op_id){ op }) : pseudo;

		h->flags[i] = i && accounted ? NODE_ACCOUNTED : 0;
	}
	return hierarchy_total(h);
}

static ow_status run_scope_view(struct model *m, const struct view_options *options,
				struct table *out, struct ow_error *err)
{
	struct account a;
	struct scopes s = { .a = &a, .traced = is_traced(m) };
	struct hierarchy h = { .a = &a,
			       .view = &s,
			       .name = node_name,
			       .own_row = node_own_row,
			       .fill = node_fill,
			       .by_name = true };
	ow_status status = account_begin(&a, m, options, TREE_SCOPE, out, err);

	if (status == OW_OK)
		status = build_scopes(&s);
	if (status == OW_OK)
		status = make_hierarchy(&s, &h);
	if (status == OW_OK)
		status = display_hierarchy(&h);
	mem_free(a.mem, s.nodes, s.cap * sizeof(*s.nodes));
	mem_free(a.mem, s.path, s.path_cap * sizeof(*s.path));
	return account_end(&a, status);
}

const struct view view_scope = {
	.name = "scope",
	.summary = "operations by name scope, with totals per scope",
	.tree = true,
	.uses = VIEW_USES_PART | VIEW_USES_OPS | VIEW_USES_OCCURRENCE | VIEW_USES_FULL_NAMES,
	.run = run_scope_view,
};
