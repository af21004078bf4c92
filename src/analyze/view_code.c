/*
 * view_code.c: ops by the source line that made them: call stacks become a tree of labels
 * (file:line:function), in which equal labels under one parent are one node. Gradients, which TensorFlow
 * makes in one place for everything, are put beside the line of the op whose gradient they are.
 *
 * Children keep the order in which ops, by name, first reach them; pprof output depends on it, too.
 */
#include "analyze/display.h"

#define FUNCTION_MAX 20 /* a function of so many bytes is shortened */
#define FUNCTION_KEPT 17

struct line {
	struct code_node node;
	uint32_t label;
	uint32_t last_child;
};

struct lines {
	struct account *a;
	struct model *m;
	const op_id *ops; /* by name */
	struct line *items;
	size_t count, cap;
	struct map by_label;	    /* (parent, label) → line */
	struct str *labels;	    /* numbered from 1 */
	size_t label_count, label_cap;
	struct map by_text;	    /* label text → label */
	uint32_t *frame_label[2];   /* frame → label; plain, gradient */
	uint32_t *stack_line[2];    /* stack → line */
	uint32_t *todo;		    /* stacks on the way up */
	size_t todo_cap;
	uint32_t *line_of;	    /* op → line */
	uint32_t *gradient_first;   /* forward op → its first gradient op */
	uint32_t *gradient_next;
	uint32_t forward_count;	    /* ops that are not gradients, with frames */
	int64_t unaccounted;	    /* forward names without such an op */
	int64_t *own;		    /* [line][place] */
};

static stack_id op_stack(const struct lines *l, uint32_t op)
{
	return COLUMN_GET(l->m->op.stack, op);
}

/* ---- labels ---- */

/* File name without directories. "scheme://host/path" has a path only after the host; a scheme has two
 * characters or more. */
static struct str base_name(struct str file)
{
	size_t scheme = str_find(file, STR("://")), slash;

	if (scheme != STR_NONE && scheme >= 2) {
		bool ok = true;

		for (size_t i = 0; i < scheme; i++) {
			char c = file.ptr[i];
			bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

			ok = ok && (letter || (i && ((c >= '0' && c <= '9') || c == '.')));
		}
		if (ok) {
			file = str_skip(file, scheme + 3);
			slash = str_find_char(file, '/');
			file = str_skip(file, slash == STR_NONE ? file.len : slash);
		}
	}
	slash = str_rfind_char(file, '/');
	return slash == STR_NONE ? file : str_skip(file, slash + 1);
}

/* The number of a label text, made if need be; 0 without memory. */
static uint32_t intern_label(struct lines *l, struct str text)
{
	uint64_t hash = str_hash(text);
	void *grown = l->labels;
	struct str copy;

	for (struct map_iter it = map_find(&l->by_text, hash); it.value; it = map_next(&l->by_text, it))
		if (str_eq(l->labels[it.value], text))
			return it.value;
	if (!mem_grow(l->a->mem, &grown, &l->label_cap, l->label_count + 1, sizeof(*l->labels)))
		return 0;
	l->labels = grown;
	copy = arena_str(&l->a->tree->arena, text);
	if (!copy.ptr || !map_add(&l->by_text, hash, (uint32_t)l->label_count))
		return 0;
	l->labels[l->label_count] = copy;
	return (uint32_t)l->label_count++;
}

static uint32_t make_label(struct lines *l, uint32_t frame, bool gradient)
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

static uint32_t label_of(struct lines *l, uint32_t frame, bool gradient)
{
	uint32_t *known = &l->frame_label[gradient][frame];

	if (!*known)
		*known = make_label(l, frame, gradient);
	return *known;
}

/* ---- lines ---- */

static uint32_t add_line(struct lines *l, uint32_t parent, uint32_t label, uint32_t frame,
			 bool gradient)
{
	void *grown = l->items;
	uint32_t id = (uint32_t)l->count;
	struct line *up;

	if (l->count == UINT32_MAX ||
	    !mem_grow(l->a->mem, &grown, &l->cap, l->count + 1, sizeof(*l->items)))
		return 0;
	l->items = grown;
	l->items[l->count++] = (struct line){
		.node = { .parent = parent, .frame = { frame }, .gradient = gradient,
			  .label = label ? l->labels[label] : ROOT_NAME },
		.label = label,
	};
	if (!id)
		return 0;
	up = &l->items[parent];
	*(up->last_child ? &l->items[up->last_child].node.next_sibling : &up->node.first_child) = id;
	up->last_child = id;
	return map_add(&l->by_label, map_hash_u64(parent, label), id) ? id : 0;
}

static uint32_t find_line(struct lines *l, uint32_t parent, uint32_t frame, bool gradient)
{
	uint32_t label = label_of(l, frame, gradient);
	uint64_t hash = map_hash_u64(parent, label);

	if (!label)
		return 0;
	for (struct map_iter it = map_find(&l->by_label, hash); it.value;
	     it = map_next(&l->by_label, it)) {
		const struct line *line = &l->items[it.value];

		if (line->node.parent == parent && line->label == label)
			return it.value;
	}
	return add_line(l, parent, label, frame, gradient);
}

/* The line of a call stack; 0 without memory. Stacks that share callers share the work. */
static uint32_t line_of_stack(struct lines *l, stack_id stack, bool gradient)
{
	uint32_t *known = l->stack_line[gradient];
	size_t count = 0;
	uint32_t line;

	for (; stack.v && !known[stack.v]; stack = l->m->stack.parent[stack.v]) {
		void *grown = l->todo;

		if (!mem_grow(l->a->mem, &grown, &l->todo_cap, count + 1, sizeof(*l->todo)))
			return 0;
		l->todo = grown;
		l->todo[count++] = stack.v;
	}
	line = stack.v ? known[stack.v] : 0;
	while (count) {
		uint32_t id = l->todo[--count];

		line = find_line(l, line, l->m->stack.frame[id].v, gradient);
		if (!line)
			return 0;
		known[id] = line;
	}
	return line;
}

/* ---- gradients ---- */

/* "…gradients/NAME_grad/…" is a gradient of NAME; tfprof looks for the first of each. */
static bool is_gradient(struct str name, struct str *forward)
{
	size_t begin = str_find(name, STR("gradients/"));
	size_t end = begin == STR_NONE ? STR_NONE : str_find(name, STR("_grad/"));

	if (end == STR_NONE)
		return false;
	begin += strlen("gradients/");
	if (end == begin)
		return false;
	*forward = str_skip(name, begin);
	if (end > begin)
		*forward = str_first(*forward, end - begin);
	return true;
}

/* Names of forward ops that do not exist: each is counted once. */
static bool count_missing(struct lines *l, struct map *seen, struct str **names, size_t *count,
			  size_t *cap, struct str name)
{
	uint64_t hash = str_hash(name);
	void *grown = *names;

	for (struct map_iter it = map_find(seen, hash); it.value; it = map_next(seen, it))
		if (str_eq((*names)[it.value - 1], name))
			return true;
	if (!mem_grow(l->a->mem, &grown, cap, *count + 1, sizeof(**names)))
		return false;
	*names = grown;
	(*names)[(*count)++] = name;
	l->unaccounted++;
	return map_add(seen, hash, (uint32_t)*count);
}

/* Gives every op that is no gradient its line and collects gradients by their forward op. */
static ow_status add_forward_ops(struct lines *l)
{
	struct map seen;
	struct str *names = NULL, forward;
	size_t count = 0, cap = 0;
	bool ok = true;

	map_init(&seen, l->a->mem);
	for (uint32_t i = 0; ok && i < l->m->op.count - 1; i++) {
		uint32_t op = l->ops[i].v, source;

		if (!op_stack(l, op).v)
			continue;
		if (!is_gradient(model_str(l->m, l->m->op.name[op]), &forward)) {
			l->line_of[op] = line_of_stack(l, op_stack(l, op), false);
			l->forward_count++;
			ok = l->line_of[op] != 0;
			continue;
		}
		source = model_find_op(l->m, forward).v;
		if (!source) {
			ok = count_missing(l, &seen, &names, &count, &cap, forward);
			continue;
		}
		l->gradient_next[op] = l->gradient_first[source];
		l->gradient_first[source] = op;
	}
	map_release(&seen);
	mem_free(l->a->mem, names, cap * sizeof(*names));
	return ok ? OW_OK : error_no_memory(l->a->err);
}

/* A second branch with the forward op's frames takes the gradients. */
static ow_status add_gradients(struct lines *l)
{
	for (uint32_t i = 0; i < l->m->op.count - 1; i++) {
		uint32_t source = l->ops[i].v, line;
		struct str forward;

		if (!l->gradient_first[source])
			continue;
		if (!op_stack(l, source).v ||
		    is_gradient(model_str(l->m, l->m->op.name[source]), &forward)) {
			l->unaccounted++;
			continue;
		}
		line = line_of_stack(l, op_stack(l, source), true);
		if (!line)
			return error_no_memory(l->a->err);
		for (uint32_t op = l->gradient_first[source]; op; op = l->gradient_next[op])
			l->line_of[op] = line;
	}
	if (l->unaccounted)
		return tree_message(l->a->tree, l->a->err,
				    "%" PRId64 " gradient nodes not accounted", l->unaccounted);
	return OW_OK;
}

/* ---- accounting ---- */

static struct str line_name(const void *view, uint32_t line)
{
	return ((const struct lines *)view)->items[line].node.label;
}

static const int64_t *line_own(const void *view, uint32_t line)
{
	const struct lines *l = view;

	return l->own + (size_t)line * l->a->width;
}

static uint32_t line_op_count(const void *view, uint32_t line)
{
	return ((const struct lines *)view)->items[line].node.op_count;
}

static void line_fill(const void *view, uint32_t line, struct tree_node *to)
{
	const struct code_node *node = &((const struct lines *)view)->items[line].node;

	to->code = line;
	to->op_first = node->op_first;
	to->op_count = node->op_count;
}

/* Own values of the lines, from the ops in their order in memory. */
static ow_status add_up(struct lines *l)
{
	struct account *a = l->a;
	int64_t row[METRIC_COUNT];

	l->own = arena_push_array(&a->scratch, l->count, a->width * sizeof(*l->own));
	if (!l->own)
		return error_no_memory(a->err);
	for (uint32_t op = 1; op < l->m->op.count; op++) {
		uint32_t line = l->line_of[op];

		if (!line)
			continue;
		if (!account_op(a, (op_id){ op })) {
			l->line_of[op] = 0;
			continue;
		}
		l->items[line].node.op_count++;
		account_eval(a, (op_id){ op }, row);
		row_add(l->own + (size_t)line * a->width, row, a->width);
	}
	return OW_OK;
}

/* Lists the accounted ops of each line, by name. */
static ow_status list_ops(struct lines *l)
{
	struct tree *tree = l->a->tree;
	uint32_t first = 0;

	for (size_t i = 0; i < l->count; i++) {
		struct code_node *node = &l->items[i].node;

		node->op_first = first;
		first += node->op_count;
		node->op_count = 0;
	}
	tree->code_ops = arena_push_aligned(&tree->arena, (size_t)first * sizeof(op_id), 4);
	tree->code_nodes = ARENA_ARRAY(&tree->arena, struct code_node, l->count);
	if (!tree->code_ops || !tree->code_nodes)
		return error_no_memory(l->a->err);
	for (uint32_t i = 0; i < l->m->op.count - 1; i++) {
		op_id op = l->ops[i];
		struct code_node *node = &l->items[l->line_of[op.v]].node;

		if (l->line_of[op.v])
			tree->code_ops[node->op_first + node->op_count++] = op;
	}
	for (size_t i = 0; i < l->count; i++)
		tree->code_nodes[i] = l->items[i].node;
	tree->code_node_count = (uint32_t)l->count;
	tree->ops = tree->code_ops;
	return OW_OK;
}

static ow_status account_and_display(struct lines *l)
{
	struct account *a = l->a;
	struct hierarchy h = { .a = a, .view = l, .count = (uint32_t)l->count, .name = line_name,
			       .own = line_own, .op_count = line_op_count, .fill = line_fill };

	OW_TRY(add_up(l));
	OW_TRY(list_ops(l));
	h.links = arena_push_aligned(&a->scratch, l->count * sizeof(*h.links), 4);
	h.flags = ARENA_ARRAY(&a->scratch, uint8_t, l->count);
	if (!h.links || !h.flags)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < h.count; i++) {
		const struct code_node *node = &l->items[i].node;

		h.links[i] = (struct node_link){ node->parent, node->first_child,
						 node->next_sibling };
		if (i && (a->types.everything || node->op_count))
			h.flags[i] = NODE_ACCOUNTED;
	}
	OW_TRY(hierarchy_total(&h));
	return display_hierarchy(&h);
}

/* ---- the whole ---- */

static ow_status allocate(struct lines *l)
{
	struct arena *scratch = &l->a->scratch;
	size_t ops = l->m->op.count;

	for (int i = 0; i < 2; i++) {
		l->frame_label[i] = ARENA_ARRAY(scratch, uint32_t, l->m->frame.count);
		l->stack_line[i] = ARENA_ARRAY(scratch, uint32_t, l->m->stack.count);
		if (!l->frame_label[i] || !l->stack_line[i])
			return error_no_memory(l->a->err);
	}
	l->line_of = ARENA_ARRAY(scratch, uint32_t, ops);
	l->gradient_first = ARENA_ARRAY(scratch, uint32_t, ops);
	l->gradient_next = ARENA_ARRAY(scratch, uint32_t, ops);
	if (!l->line_of || !l->gradient_first || !l->gradient_next)
		return error_no_memory(l->a->err);
	add_line(l, 0, 0, 0, false);
	return l->count ? OW_OK : error_no_memory(l->a->err);
}

static ow_status no_traces(struct lines *l)
{
	return error_set(l->a->err, OW_E_NOT_FOUND, "No code trace information");
}

static ow_status build(struct lines *l)
{
	if (!l->m->has_code || l->m->op.count <= 1)
		return no_traces(l);
	OW_TRY(model_require_stacks(l->m, l->a->err));
	l->ops = model_ops_by_name(l->m, l->a->err);
	if (!l->ops)
		return OW_E_NO_MEMORY;
	OW_TRY(allocate(l));
	OW_TRY(add_forward_ops(l));
	if (!l->forward_count)
		return no_traces(l);
	OW_TRY(add_gradients(l));
	if (l->a->options->account_displayed_op_only)
		return tree_message(l->a->tree, l->a->err,
				    "Note: code view ignores account_displayed_op_only");
	return OW_OK;
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct account a;
	struct lines l = { .a = &a, .m = m, .label_count = 1 };
	ow_status status = account_begin(&a, m, options, TREE_CODE, out, err);

	map_init(&l.by_label, out->mem);
	map_init(&l.by_text, out->mem);
	if (status == OW_OK)
		status = build(&l);
	if (status == OW_OK)
		status = account_and_display(&l);
	mem_free(a.mem, l.items, l.cap * sizeof(*l.items));
	mem_free(a.mem, l.labels, l.label_cap * sizeof(*l.labels));
	mem_free(a.mem, l.todo, l.todo_cap * sizeof(*l.todo));
	map_release(&l.by_label);
	map_release(&l.by_text);
	return account_end(&a, status);
}

const struct view view_code = {
	.name = "code",
	.summary = "operations by the source lines that made them, as a tree of calls",
	.tree = true,
	.run = run,
};
