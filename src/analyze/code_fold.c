/*
 * code_fold.c: the tree of code_lines.h with chains folded. Below the first few levels nearly every line
 * is passed by one op only: of three million lines of a large program half a million remain. Stacks go
 * into the tree one by one; where one leaves a chain, the chain is unrolled that far. Chains are short
 * (CODE_CHAIN_MAX), so that unrolling step by step stays linear, and lines are remembered for the
 * stacks on the way, so that none is climbed again and again. Used by code_lines.c when no option looks at
 * single lines.
 */
#include "analyze/code_lines.h"

#define KNOWN 0x80000000u /* in of_stack: this is a line */
#define GRADIENT STR(" (gradient)")

struct fold {
	struct code_lines *l;
	bool gradient;
	uint32_t *path; /* a stack and its callers without a line, innermost first */
	size_t count, cap;
};

bool code_fold_possible(const struct model *m)
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

/* While folding, `frame` of a line is the stack that the first op by name has there. */
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

/* A chain's rank waits in op_count of its head. */
static void set_chain(struct code_lines *l, uint32_t head, stack_id end, uint32_t count,
		      uint32_t rank)
{
	l->nodes[head].chain_end = end;
	l->nodes[head].chain_count = count;
	l->nodes[head].op_count = count ? rank : 0;
	l->of_stack[end.v] = KNOWN | head;
}

/* Makes the first line of a chain a node. */
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
	void *path = f->path;

	if (!mem_grow(f->l->a->mem, &path, &f->cap, f->count + 1, sizeof(*f->path)))
		return false;
	f->path = path;
	f->path[f->count++] = stack;
	return true;
}

/* Puts a stack and its callers on the path, up to one whose line is known: that is *line. */
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

/* Goes down as far as there are lines; what is left of the path has none. */
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
	return !l->nodes[*line].chain_count || unroll(f, *line); /* the ops are at its beginning */
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

/* Ranks are passed on to callers, and lines get the frames of their first ops. */
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

ow_status code_fold_add(struct code_lines *l, bool gradient)
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
