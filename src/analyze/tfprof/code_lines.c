/*
 * code_lines.c: makes the tree of source lines of the code view (code_lines.h). Stacks are added in the order of the model, callers before
 * callees, which keeps neighbours together in memory; then siblings are sorted in tfprof's order, that of the first op by name below them.
 *
 * The second half makes the same tree with folded chains, when no option needs single lines. Below the first few levels nearly every line
 * belongs to one op only: of three million lines of a large program half a million remain. Stacks are added one by one; where a stack
 * leaves a chain, the chain is unrolled that far. Chains are short (CODE_CHAIN_MAX), so unrolling stays linear, and each stack on the way
 * remembers its line, so no stack is climbed twice.
 */
#include "analyze/tfprof/code_lines.h"

#include "analyze/view.h"
#include "base/vec.h"

/* Defined in the second half of this file. */
static bool code_fold_possible(const struct model *m);
static ow_status code_fold_add(struct code_lines *l, bool gradients);

#define FUNCTION_MAX 20 /* a function name longer than this is shortened */
#define FUNCTION_KEPT 17
#define FEW 4 /* up to this many children are searched linearly */
#define LABEL_MAX 0x7fffffffu

static stack_id op_stack(const struct code_lines *l, uint32_t op)
{
	return COLUMN_GET(l->m->op.stack, op);
}

static bool has_code(const struct code_lines *l, uint32_t op)
{
	return l->traces ? l->traces->len[op] != 0 : op_stack(l, op).v != 0;
}

static ow_status no_memory(struct code_lines *l)
{
	return error_no_memory(l->a->err);
}

static bool is_scheme(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && (!i || !((c >= '0' && c <= '9') || c == '.')))
			return false;
	}
	return s.len >= 2;
}

/* Returns the file name without directories. "scheme://host/path" has a path only after the
 * host. */
static struct str base_name(struct str file)
{
	size_t scheme = str_find(file, STR("://")), slash;

	if (scheme != STR_NONE && is_scheme(str_first(file, scheme))) {
		file = str_skip(file, scheme + 3);
		slash = str_find_char(file, '/');
		file = str_skip(file, slash == STR_NONE ? file.len : slash);
	}
	slash = str_rfind_char(file, '/');
	return slash == STR_NONE ? file : str_skip(file, slash + 1);
}

/* Returns the number of a label text and adds it if it is new; 0 if memory runs out. */
static uint32_t intern_label(struct code_lines *l, struct str text)
{
	uint64_t hash = str_hash(text);
	struct str copy;

	for (struct map_iter it = map_find(&l->by_text, hash); it.value;
	     it = map_next(&l->by_text, it))
		if (str_eq(l->labels[it.value], text))
			return it.value;
	if (l->label_count > LABEL_MAX ||
	    !vec_reserve(l->a->mem, l->labels, l->label_cap, l->label_count + 1))
		return 0;
	copy = arena_str(&l->a->tree->arena, text);
	if (!copy.ptr || !map_add(&l->by_text, hash, (uint32_t)l->label_count))
		return 0;
	l->labels[l->label_count] = copy;
	return (uint32_t)l->label_count++;
}

static uint32_t make_label(struct code_lines *l, uint32_t frame, bool gradient)
{
	struct model *m = l->m;
	struct str file = base_name(model_str(m, m->frame.file[frame]));
	struct str function = model_str(m, m->frame.function[frame]);
	bool cut = function.len >= FUNCTION_MAX;
	struct buf text;
	uint32_t label;

	buf_init(&text, l->a->mem);
	buf_add_str(&text, file);
	buf_printf(&text, ":%" PRId32 ":", m->frame.line[frame]);
	buf_add_str(&text, cut ? str_first(function, FUNCTION_KEPT) : function);
	buf_puts(&text, cut ? "..." : "");
	buf_puts(&text, gradient ? " (gradient)" : "");
	label = text.failed ? 0 : intern_label(l, buf_str(&text));
	buf_release(&text);
	return label;
}

/* Returns the label of a frame and makes it if necessary; 0 if memory runs out. */
static uint32_t code_lines_label(struct code_lines *l, uint32_t frame, bool gradient)
{
	uint32_t *known = &l->frame_label[gradient][frame];

	if (!*known)
		*known = make_label(l, frame, gradient);
	return *known;
}

static int by_label(const void *a, const void *b, void *arg)
{
	const struct code_lines *l = arg;

	return str_cmp(l->labels[*(const uint32_t *)a], l->labels[*(const uint32_t *)b]);
}

/* Renumbers the labels in the order of their texts. */
static void renumber_labels(struct code_lines *l)
{
	for (uint32_t i = 1; i < l->label_count; i++)
		l->a->tree->labels[l->label_rank[i]] = l->labels[i];
	memcpy(l->labels, l->a->tree->labels, l->label_count * sizeof(*l->labels));
	for (uint32_t i = 1; i < l->m->frame.count; i++)
		for (int gradient = 0; gradient < 2; gradient++)
			l->frame_label[gradient][i] = l->label_rank[l->frame_label[gradient][i]];
	for (uint32_t i = 1; i < l->label_count; i++)
		l->label_rank[i] = i;
}

/* Moves the labels into the tree and determines their order by name. */
static ow_status finish_labels(struct code_lines *l)
{
	struct arena *scratch = &l->a->scratch;
	struct tree *tree = l->a->tree;
	uint32_t *order = ARENA_ARRAY(scratch, uint32_t, l->label_count);

	l->label_rank = ARENA_ARRAY(scratch, uint32_t, l->label_count);
	tree->labels = ARENA_ARRAY(&tree->arena, struct str, l->label_count);
	if (!order || !l->label_rank || !tree->labels)
		return no_memory(l);
	if (l->label_count > 1)
		memcpy(tree->labels + 1, l->labels + 1, (l->label_count - 1) * sizeof(*l->labels));
	tree->labels[0] = ROOT_NAME;
	tree->label_count = (uint32_t)l->label_count;
	for (uint32_t i = 1; i < l->label_count; i++)
		order[i] = i;
	qsort_r(order + 1, l->label_count - 1, sizeof(*order), by_label, l);
	for (uint32_t i = 1; i < l->label_count; i++)
		l->label_rank[order[i]] = i;
	if (l->traces)
		renumber_labels(l);
	return OW_OK;
}

static uint32_t find_many(struct code_lines *l, uint32_t parent, uint32_t label)
{
	uint64_t hash = map_hash_u64(parent, label);

	for (struct map_iter it = map_find(&l->many, hash); it.value; it = map_next(&l->many, it))
		if (l->nodes[it.value].parent == parent && l->nodes[it.value].label == label)
			return it.value;
	return 0;
}

/* Returns the child with that label; 0 if there is none. */
static uint32_t code_lines_find(struct code_lines *l, uint32_t parent, uint32_t label)
{
	uint32_t child = l->nodes[parent].first_child;

	if (l->children[parent] > FEW)
		return find_many(l, parent, label);
	while (child && l->nodes[child].label != label)
		child = l->nodes[child].next_sibling;
	return child;
}

bool code_lines_reserve(struct code_lines *l, uint32_t more)
{
	size_t need = (size_t)l->count + more;

	if (need >= NO_RANK / 2 || !vec_reserve(l->a->mem, l->nodes, l->node_cap, need))
		return false;
	if (!vec_reserve(l->a->mem, l->children, l->child_cap, need))
		return false;
	l->cap = (uint32_t)MIN(MIN(l->node_cap, l->child_cap), NO_RANK);
	return true;
}

/* Makes room for a line. With folding, the number of lines is not known in advance. */
static bool room_for_line(struct code_lines *l)
{
	return !l->fold || code_lines_reserve(l, 1);
}

bool code_lines_root(struct code_lines *l)
{
	if (!room_for_line(l))
		return false;
	l->nodes[0] = (struct code_node){ 0 };
	l->children[0] = 0;
	l->count = 1;
	return true;
}

uint32_t code_lines_append(struct code_lines *l, uint32_t parent, uint32_t label, bool gradient)
{
	uint32_t id = l->count++;

	OW_ASSERT(id < l->cap);
	l->nodes[id] = (struct code_node){ .parent = parent,
					   .next_sibling = l->nodes[parent].first_child,
					   .label = label & LABEL_MAX,
					   .gradient = gradient,
					   .op_first = NO_RANK };
	l->nodes[parent].first_child = id;
	l->children[id] = 0;
	if (l->children[parent] <= FEW)
		l->children[parent]++;
	return id;
}

/* Adds a line in front of its siblings; 0 if memory runs out. */
static uint32_t code_lines_add(struct code_lines *l, uint32_t parent, uint32_t label, bool gradient)
{
	uint8_t before = l->count ? l->children[parent] : 0;
	bool ok = true;
	uint32_t id;

	if (!room_for_line(l))
		return 0;
	id = code_lines_append(l, parent, label, gradient);
	if (before < FEW)
		return id;
	if (before > FEW)
		return map_add(&l->many, map_hash_u64(parent, label), id) ? id : 0;
	for (uint32_t child = id; ok && child; child = l->nodes[child].next_sibling)
		ok = map_add(&l->many, map_hash_u64(parent, l->nodes[child].label), child);
	return ok ? id : 0;
}

/* Passes the least rank of each stack on to its callers. Returns the number of stacks that an op
 * passes. */
static uint32_t spread_ranks(struct code_lines *l)
{
	const stack_id *parent = l->m->stack.parent;
	uint32_t used = 0;

	for (uint32_t i = l->m->stack.count; i-- > 1;) {
		if (l->of_stack[i] == NO_RANK)
			continue;
		used++;
		l->of_stack[parent[i].v] = MIN(l->of_stack[parent[i].v], l->of_stack[i]);
	}
	return used;
}

static bool room_for_lines(struct code_lines *l, uint32_t more)
{
	struct arena *scratch = &l->a->scratch;
	size_t cap = (size_t)l->count + more;
	struct code_node *nodes = arena_push_aligned(&l->a->tree->arena, cap * sizeof(*nodes), 16);
	uint8_t *children = arena_push_aligned(scratch, cap, 1);

	if (!nodes || !children || cap >= NO_RANK)
		return false;
	if (l->count) {
		memcpy(nodes, l->nodes, l->count * sizeof(*nodes));
		memcpy(children, l->children, l->count);
	} else {
		nodes[0] = (struct code_node){ 0 };
		children[0] = 0;
		l->count = 1;
	}
	l->nodes = nodes;
	l->children = children;
	l->cap = (uint32_t)cap;
	return true;
}

/* Makes lines for all stacks that an op passes. A line keeps the frame of its first op by name. */
static ow_status add_lines(struct code_lines *l, bool gradient)
{
	const struct stack_table *stacks = &l->m->stack;

	if (l->fold)
		return code_fold_add(l, gradient);
	if (!room_for_lines(l, spread_ranks(l) + !l->count))
		return no_memory(l);
	l->of_stack[0] = 0;
	for (uint32_t i = 1; i < stacks->count; i++) {
		uint32_t frame = stacks->frame[i].v, least = l->of_stack[i], parent, label, line;

		if (least == NO_RANK)
			continue;
		parent = l->of_stack[stacks->parent[i].v];
		label = code_lines_label(l, frame, gradient);
		line = label ? code_lines_find(l, parent, label) : 0;
		if (label && !line)
			line = code_lines_add(l, parent, label, gradient);
		if (!line)
			return no_memory(l);
		l->of_stack[i] = line;
		if (least < l->nodes[line].op_first) {
			l->nodes[line].op_first = least;
			l->nodes[line].frame.v = frame;
		}
	}
	return OW_OK;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void relink(struct code_lines *l, uint32_t parent, uint64_t *keys, size_t count)
{
	uint32_t *link = &l->nodes[parent].first_child;

	OW_ASSERT(keys && count >= 2);
	if (count == 2) {
		if (keys[0] > keys[1]) {
			uint64_t swap = keys[0];

			keys[0] = keys[1];
			keys[1] = swap;
		}
	} else {
		qsort(keys, count, sizeof(*keys), by_value);
	}
	for (size_t i = 0; i < count; i++) {
		*link = (uint32_t)keys[i];
		link = &l->nodes[*link].next_sibling;
	}
	*link = 0;
}

/* Orders siblings as ops, sorted by name, first reach them. */
static ow_status order_children(struct code_lines *l)
{
	uint64_t *keys = NULL;
	size_t cap = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		size_t count = 0;

		if (l->children[i] < 2)
			continue;
		for (uint32_t child = l->nodes[i].first_child; child;
		     child = l->nodes[child].next_sibling) {
			if (!vec_push(l->a->mem, keys, count, cap,
				      (uint64_t)l->nodes[child].op_first << 32 | child)) {
				mem_free(l->a->mem, keys, cap * sizeof(*keys));
				return no_memory(l);
			}
		}
		relink(l, i, keys, count);
	}
	mem_free(l->a->mem, keys, cap * sizeof(*keys));
	return OW_OK;
}

static struct str op_name(const struct code_lines *l, uint32_t op)
{
	return model_str(l->m, l->m->op.name[op]);
}

/* Names of forward ops that do not exist; each is counted once. */
struct missing {
	struct map map;
	struct str *names;
	size_t count, cap;
};

static bool count_missing(struct code_lines *l, struct missing *missing, struct str name)
{
	uint64_t hash = str_hash(name);

	for (struct map_iter it = map_find(&missing->map, hash); it.value;
	     it = map_next(&missing->map, it))
		if (str_eq(missing->names[it.value - 1], name))
			return true;
	if (!vec_push(l->a->mem, missing->names, missing->count, missing->cap, name))
		return false;
	l->unaccounted++;
	return map_add(&missing->map, hash, (uint32_t)missing->count);
}

/* Ranks the stacks of ops that are not gradients, and groups gradients by their forward op. */
static bool sort_out(struct code_lines *l, struct missing *missing)
{
	for (uint32_t op = 1; op < l->m->op.count; op++) {
		uint32_t stack = op_stack(l, op).v, source;
		struct str forward;

		if (!has_code(l, op) || stack_runs_has(&l->runs, op))
			continue;
		if (!gradient_of(op_name(l, op), &forward)) {
			l->of_stack[stack] = MIN(l->of_stack[stack], l->rank[op]);
			l->line_of[op] = 1; /* placeholder until the lines are known */
			l->forward_count++;
			continue;
		}
		source = model_find_op(l->m, forward).v;
		if (!source && !count_missing(l, missing, forward))
			return false;
		if (!source)
			continue;
		l->gradient_next[op] = l->gradient_first[source];
		l->gradient_first[source] = op;
	}
	return true;
}

static ow_status add_forward_ops(struct code_lines *l)
{
	struct missing missing = { 0 };
	bool ok;

	memset(l->of_stack, 0xff, (size_t)l->m->stack.count * sizeof(*l->of_stack));
	map_init(&missing.map, l->a->mem);
	ok = sort_out(l, &missing);
	map_release(&missing.map);
	mem_free(l->a->mem, missing.names, missing.cap * sizeof(*missing.names));
	if (!ok)
		return no_memory(l);
	for (uint32_t i = 0; i < l->runs.count; i++) {
		uint32_t *least = &l->of_stack[l->runs.list[i].stack.v];

		*least = MIN(*least, l->rank[l->runs.list[i].op.v]);
		l->forward_count++;
	}
	if (!l->forward_count)
		return error_set(l->a->err, OW_E_NOT_FOUND, "No code trace information");
	if (l->traces)
		return OW_OK;
	OW_TRY(add_lines(l, false));
	for (uint32_t op = 1; op < l->m->op.count; op++)
		if (l->line_of[op])
			l->line_of[op] = l->of_stack[op_stack(l, op).v];
	for (uint32_t i = 0; i < l->runs.count; i++)
		l->line_of_run[i] = l->of_stack[l->runs.list[i].stack.v];
	return OW_OK;
}

/* Adds second branches with the forward ops' frames for the gradients; they come after all other
 * lines. */
static ow_status add_gradients(struct code_lines *l)
{
	struct str forward;
	bool any = false;

	for (uint32_t source = 1; source < l->m->op.count; source++) {
		uint32_t stack = op_stack(l, source).v;

		if (!l->gradient_first[source])
			continue;
		if (!has_code(l, source) || gradient_of(op_name(l, source), &forward)) {
			l->gradient_first[source] = 0;
			l->unaccounted++;
			continue;
		}
		if (!any)
			memset(l->of_stack, 0xff, (size_t)l->m->stack.count * sizeof(*l->of_stack));
		any = true;
		l->of_stack[stack] = MIN(l->of_stack[stack], l->m->op.count + l->rank[source]);
	}
	l->any_gradient = any;
	if (!any || l->traces)
		return OW_OK;
	OW_TRY(add_lines(l, true));
	for (uint32_t source = 1; source < l->m->op.count; source++)
		for (uint32_t op = l->gradient_first[source]; op; op = l->gradient_next[op])
			l->line_of[op] = l->of_stack[op_stack(l, source).v];
	return OW_OK;
}

void code_lines_init(struct code_lines *l, struct account *a)
{
	*l = (struct code_lines){ .a = a, .m = a->m };
	map_init(&l->by_text, a->mem);
	map_init(&l->many, a->mem);
}

void code_lines_release(struct code_lines *l)
{
	struct mem *mem = l->a->mem;

	mem_free(mem, l->labels, l->label_cap * sizeof(*l->labels));
	if (l->node_cap && l->a->tree->code_nodes != l->nodes)
		mem_free(mem, l->nodes, l->node_cap * sizeof(*l->nodes));
	if (l->child_cap)
		mem_free(mem, l->children, l->child_cap * sizeof(*l->children));
	map_release(&l->by_text);
	map_release(&l->many);
}

static ow_status allocate(struct code_lines *l)
{
	struct arena *scratch = &l->a->scratch, *tree = &l->a->tree->arena;
	size_t ops = l->m->op.count, stacks = l->m->stack.count;
	void *labels = NULL;

	l->frame_label[0] = ARENA_ARRAY(tree, uint32_t, l->m->frame.count);
	l->frame_label[1] = ARENA_ARRAY(tree, uint32_t, l->m->frame.count);
	l->of_stack = arena_push_aligned(scratch, stacks * sizeof(*l->of_stack), 4);
	l->rank = arena_push_aligned(scratch, ops * sizeof(*l->rank), 4);
	l->line_of = ARENA_ARRAY(scratch, uint32_t, ops);
	l->gradient_first = ARENA_ARRAY(scratch, uint32_t, ops);
	l->gradient_next = ARENA_ARRAY(scratch, uint32_t, ops);
	l->line_of_run = ARENA_ARRAY(scratch, uint32_t, l->runs.count);
	if (!l->line_of_run || !l->frame_label[0] || !l->frame_label[1] || !l->of_stack ||
	    !l->rank || !l->line_of || !l->gradient_first || !l->gradient_next ||
	    !mem_grow(l->a->mem, &labels, &l->label_cap, 1, sizeof(*l->labels)))
		return no_memory(l);
	l->labels = labels;
	l->labels[0] = ROOT_NAME;
	l->label_count = 1;
	for (uint32_t i = 0; i < ops - 1; i++)
		l->rank[l->ops[i].v] = i;
	return OW_OK;
}

/* Requires code. Undecoded traces are enough for ops that are called from one place, if chains
 * can be folded. */
static ow_status require_code(struct code_lines *l)
{
	struct account *a = l->a;

	if (l->fold && !l->m->event.stack)
		OW_TRY(model_require_traces(l->m, &l->traces, a->err));
	if (l->traces && code_fold_possible(l->m))
		return OW_OK;
	l->traces = NULL;
	OW_TRY(model_require_stacks(l->m, a->err));
	OW_TRY(stack_runs_make(l->m, a->options, &a->scratch, &l->runs, a->err));
	l->fold = l->fold && !l->runs.count && code_fold_possible(l->m);
	return OW_OK;
}

static ow_status sort_lines(struct code_lines *l)
{
	for (uint32_t i = 1; i < l->m->frame.count; i++)
		if (!code_lines_label(l, i, false) ||
		    (l->any_gradient && !code_lines_label(l, i, true)))
			return no_memory(l);
	OW_TRY(finish_labels(l));
	OW_TRY(code_sorted_add(l));
	return order_children(l);
}

ow_status code_lines_build(struct code_lines *l)
{
	struct account *a = l->a;

	if (!l->m->has_code || l->m->op.count <= 1)
		return error_set(a->err, OW_E_NOT_FOUND, "No code trace information");
	OW_TRY(require_code(l));
	l->ops = model_ops_by_name(l->m, a->err);
	if (!l->ops)
		return OW_E_NO_MEMORY;
	OW_TRY(allocate(l));
	OW_TRY(add_forward_ops(l));
	OW_TRY(add_gradients(l));
	if (l->unaccounted)
		OW_TRY(tree_message(a->tree, a->err, "%" PRId64 " gradient nodes not accounted",
				    l->unaccounted));
	if (l->traces)
		return sort_lines(l);
	OW_TRY(order_children(l));
	return finish_labels(l);
}

#define KNOWN 0x80000000u /* flag in of_stack: the value is a line */
#define GRADIENT STR(" (gradient)")

struct fold {
	struct code_lines *l;
	bool gradient;
	uint32_t *path; /* a stack and its callers that have no line yet, innermost first */
	size_t count, cap;
};

/* Returns whether lines can be folded: no label of a gradient is also the label of a line. */
static bool code_fold_possible(const struct model *m)
{
	if (m->op.count >= KNOWN / 4 || m->stack.count >= KNOWN / 2)
		return false;
	for (uint32_t i = 1; i < m->frame.count; i++)
		if (str_ends(model_str(m, m->frame.function[i]), GRADIENT))
			return false;
	return true;
}

static bool is_known(uint32_t line)
{
	return line & KNOWN && line != NO_RANK;
}

/* Adds a line. While folding, `frame` of a line holds the stack of its first op by name. */
static uint32_t add_line(struct fold *f, uint32_t parent, uint32_t stack, uint32_t rank)
{
	struct code_lines *l = f->l;
	uint32_t label = code_lines_label(l, l->m->stack.frame[stack].v, f->gradient);
	uint32_t line = label ? code_lines_add(l, parent, label, f->gradient) : 0;

	if (!line)
		return 0;
	l->nodes[line].op_first = rank;
	l->nodes[line].frame.v = stack;
	l->of_stack[stack] = KNOWN | line;
	return line;
}

/* Sets a chain. Its rank is kept in op_count of its head for now. */
static void set_chain(struct code_lines *l, uint32_t head, stack_id end, uint32_t count,
		      uint32_t rank)
{
	l->nodes[head].chain_end = end;
	l->nodes[head].chain_count = count;
	l->nodes[head].op_count = count ? rank : 0;
	l->of_stack[end.v] = KNOWN | head;
}

/* Turns the first line of a chain into a node. */
static uint32_t unroll(struct fold *f, uint32_t head)
{
	const stack_id *caller = f->l->m->stack.parent;
	stack_id end = f->l->nodes[head].chain_end, stack = end;
	uint32_t count = f->l->nodes[head].chain_count, rank = f->l->nodes[head].op_count, line;

	for (uint32_t i = 1; i < count; i++)
		stack = caller[stack.v];
	line = add_line(f, head, stack.v, rank);
	if (!line)
		return 0;
	f->l->nodes[head].chain_count = f->l->nodes[head].op_count = 0;
	set_chain(f->l, line, end, count - 1, rank);
	return line;
}

static bool push(struct fold *f, uint32_t stack)
{
	return vec_push(f->l->a->mem, f->path, f->count, f->cap, stack);
}

/* Puts a stack and its callers on the path, up to the first with a known line, which becomes
 * *line. */
static bool climb(struct fold *f, uint32_t stack, uint32_t *line)
{
	struct code_lines *l = f->l;

	f->count = 0;
	*line = 0;
	for (; stack && !is_known(l->of_stack[stack]); stack = l->m->stack.parent[stack].v)
		if (!push(f, stack))
			return false;
	if (!stack)
		return true;
	*line = l->of_stack[stack] & ~KNOWN;
	while (l->nodes[*line].chain_count && l->nodes[*line].chain_end.v == stack)
		if (!(*line = unroll(f, *line)))
			return false;
	return true;
}

/* Follows existing lines down the path; the rest of the path has no lines. */
static bool descend(struct fold *f, uint32_t *line, uint32_t rank)
{
	struct code_lines *l = f->l;

	while (f->count) {
		uint32_t stack = f->path[f->count - 1], child;
		uint32_t label = code_lines_label(l, l->m->stack.frame[stack].v, f->gradient);

		if (!label || (l->nodes[*line].chain_count && !unroll(f, *line)))
			return false;
		child = code_lines_find(l, *line, label);
		if (!child)
			return true;
		if (rank < l->nodes[child].op_first) {
			l->nodes[child].op_first = rank;
			l->nodes[child].frame.v = stack;
		}
		l->of_stack[stack] = KNOWN | child;
		*line = child;
		f->count--;
	}
	/* the ops are at the beginning of the chain */
	return !l->nodes[*line].chain_count || unroll(f, *line);
}

static bool add_stack(struct fold *f, uint32_t stack, uint32_t rank)
{
	struct code_lines *l = f->l;
	uint32_t line;

	if (!climb(f, stack, &line) || !descend(f, &line, rank))
		return false;
	for (; f->count > CODE_CHAIN_MAX + 1; f->count--)
		if (!(line = add_line(f, line, f->path[f->count - 1], rank)))
			return false;
	if (!f->count)
		return true;
	line = add_line(f, line, f->path[--f->count], rank);
	for (size_t i = 0; line && i < f->count; i++)
		if (!code_lines_label(l, l->m->stack.frame[f->path[i]].v, f->gradient))
			return false;
	if (line)
		set_chain(l, line, (stack_id){ stack }, (uint32_t)f->count, rank);
	return line != 0;
}

/* Passes ranks on to callers; lines get the frames of their first ops. */
static void finish(struct code_lines *l, uint32_t first)
{
	const struct stack_table *stacks = &l->m->stack;

	for (uint32_t i = l->count; i-- > first;) {
		struct code_node *node = &l->nodes[i], *parent = &l->nodes[node->parent];

		if (node->chain_count)
			node->op_count = 0;
		if (node->parent && node->op_first < parent->op_first) {
			parent->op_first = node->op_first;
			parent->frame.v = stacks->parent[node->frame.v].v;
		}
		node->frame = stacks->frame[node->frame.v];
	}
	for (uint32_t i = 1; i < stacks->count; i++)
		if (is_known(l->of_stack[i]))
			l->of_stack[i] &= ~KNOWN;
}

/* Adds the lines of all stacks with a rank in of_stack, where the line is put then: for a chain, that of
 * its first line. */
static ow_status code_fold_add(struct code_lines *l, bool gradient)
{
	struct fold f = { .l = l, .gradient = gradient };
	uint32_t first;
	bool ok = true;

	if (!l->count)
		ok = code_lines_root(l);
	first = l->count;
	for (uint32_t i = 1; ok && i < l->m->stack.count; i++)
		if (l->of_stack[i] != NO_RANK)
			ok = add_stack(&f, i, l->of_stack[i]);
	mem_free(l->a->mem, f.path, f.cap * sizeof(*f.path));
	if (!ok)
		return error_no_memory(l->a->err);
	finish(l, first);
	return OW_OK;
}
