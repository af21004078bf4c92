/*
 * view_code.c: the view `code`: ops by the source line that created them, as a tree of calls. code_lines.c makes the tree; this file gives its
 * lines their ops and values and passes them to display.c.
 */
#include "analyze/tfprof/code_lines.h"
#include "analyze/tfprof/account.h"
#include "analyze/samples/samples.h"

#define AHEAD 16 /* number of ops ahead for which memory is prefetched */

static struct str line_name(const void *view, uint32_t line)
{
	const struct code_lines *l = view;

	return l->labels[l->nodes[line].label];
}

static uint32_t line_rank(const void *view, uint32_t line)
{
	const struct code_lines *l = view;

	return l->label_rank[l->nodes[line].label];
}

/* Returns the row of a line's own values, which is that of its first op. Values of a chain count
 * for its first line. */
static uint32_t line_own_row(const void *view, uint32_t line)
{
	return tree_code_row(&((const struct code_lines *)view)->nodes[line]);
}

static uint32_t line_op_count(const void *view, uint32_t line)
{
	const struct code_node *node = &((const struct code_lines *)view)->nodes[line];

	return node->chain_count ? 0 : node->op_count;
}

static uint32_t line_chain(const void *view, uint32_t line)
{
	return ((const struct code_lines *)view)->nodes[line].chain_count;
}

static void line_fill(const void *view, uint32_t line, struct tree_node *to)
{
	to->code = line;
	if (line_chain(view, line))
		to->own_row = 0;
}

/* Prefetches the lines of ops that come some places later, because lines are scattered in
 * memory. */
static void fetch_line(const struct code_lines *l, uint32_t op)
{
	if (op < l->m->op.count)
		__builtin_prefetch(&l->nodes[l->line_of[op]].op_first);
}

/* Counts the accounted ops of each line and forgets the other ops; returns their number. */
static uint32_t count_ops(struct code_lines *l)
{
	uint32_t count = 0;

	for (uint32_t op = 1; op < l->m->op.count; op++) {
		fetch_line(l, op + AHEAD);
		if (!l->line_of[op])
			continue;
		if (account_op(l->a, (op_id){ op }))
			l->nodes[l->line_of[op]].op_count++;
		else
			l->line_of[op] = 0;
		count += l->line_of[op] != 0;
	}
	for (uint32_t i = 0; i < l->runs.count; i++) {
		if (account_op(l->a, l->runs.list[i].op)) {
			l->nodes[l->line_of_run[i]].op_count++;
			count++;
		} else {
			l->line_of_run[i] = 0;
		}
	}
	return count;
}

/* Adds up the parts of ops that are called from several places. */
static void add_up_runs(struct code_lines *l)
{
	struct account *a = l->a;
	int64_t row[METRIC_COUNT], whole[METRIC_COUNT], value[METRIC_COUNT];
	struct metric_plan plan = a->plan;
	uint32_t op = 0;

	/* times are divided by place, also if only their sum is wanted */
	plan.mask |= METRIC_BIT(METRIC_CPU_MICROS) | METRIC_BIT(METRIC_ACCELERATOR_MICROS) |
		     METRIC_BIT(METRIC_RUN_COUNT);
	plan.times = true;
	for (uint32_t i = 0; i < l->runs.count; i++) {
		const struct stack_run *run = &l->runs.list[i];

		if (!l->line_of_run[i])
			continue;
		if (run->op.v != op) {
			op = run->op.v;
			memset(whole, 0, sizeof(whole));
			metric_eval(&plan, run->op, whole);
		}
		memcpy(value, whole, sizeof(value));
		stack_run_share(&l->runs, run, value);
		for (uint32_t k = 0; k < a->width; k++)
			row[k] = value[a->metrics[k]];
		row_add(a->tree->own_rows + (size_t)line_own_row(l, l->line_of_run[i]) * a->width,
			row, a->width);
	}
}

static int64_t *own_row_of(const struct code_lines *l, uint32_t op)
{
	uint32_t row = l->traces ? l->line_of[op] : line_own_row(l, l->line_of[op]);

	return l->a->tree->own_rows + (size_t)row * l->a->width;
}

/* Adds up own values of lines with ops, which are few among all lines. */
static ow_status add_up(struct code_lines *l, uint32_t ops)
{
	struct account *a = l->a;
	int64_t row[METRIC_COUNT];
	size_t rows = (size_t)ops + 1;

	a->tree->own_rows = arena_push_array(&a->tree->arena, rows, a->width * sizeof(int64_t));
	if (!a->tree->own_rows)
		return error_no_memory(l->a->err);
	for (uint32_t op = 1; op < l->m->op.count; op++) {
		if (!l->traces)
			fetch_line(l, op + AHEAD);
		if (op + AHEAD / 2 < l->m->op.count)
			__builtin_prefetch(own_row_of(l, op + AHEAD / 2), 1);
		if (!l->line_of[op])
			continue;
		account_eval(a, (op_id){ op }, row);
		row_add(own_row_of(l, op), row, a->width);
	}
	add_up_runs(l);
	return OW_OK;
}

static void list_runs(struct code_lines *l, op_id op)
{
	for (uint32_t i = l->runs.first ? l->runs.first[op.v] : 0;
	     l->runs.first && i < l->runs.first[op.v + 1]; i++) {
		struct code_node *node = &l->nodes[l->line_of_run[i]];

		if (l->line_of_run[i])
			l->a->tree->code_ops[node->op_first + node->op_count++] = op;
	}
}

/* Lists ops in the order of their lines, which traces already have. */
static void list_sorted(struct code_lines *l)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		struct code_node *node = &l->nodes[i];

		node->op_first = at;
		if (at < l->sorted_count && l->sorted_line[at] == i)
			for (at++; at < l->sorted_count && l->sorted_line[at] > l->count;)
				at++;
		node->op_count = at - node->op_first;
	}
	l->a->tree->code_ops = l->sorted_ops;
}

/* Lists the accounted ops of each line, sorted by name. */
static ow_status list_ops(struct code_lines *l, uint32_t ops)
{
	struct tree *tree = l->a->tree;
	uint32_t first = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		l->nodes[i].op_first = first;
		first += l->nodes[i].op_count;
		l->nodes[i].op_count = 0;
	}
	tree->code_ops = arena_push_aligned(&tree->arena, (size_t)ops * sizeof(op_id), 4);
	if (!tree->code_ops)
		return error_no_memory(l->a->err);
	for (uint32_t i = 0; i < l->m->op.count - 1; i++) {
		struct code_node *node = &l->nodes[l->line_of[l->ops[i].v]];

		if (i + AHEAD < l->m->op.count - 1)
			fetch_line(l, l->ops[i + AHEAD].v);
		if (l->line_of[l->ops[i].v])
			tree->code_ops[node->op_first + node->op_count++] = l->ops[i];
		list_runs(l, l->ops[i]);
	}
	return OW_OK;
}

static void hand_over(struct code_lines *l)
{
	struct tree *tree = l->a->tree;

	tree->code_nodes = l->nodes;
	tree->code_node_count = l->count;
	tree->code_node_cap = l->node_cap;
	tree->folded = l->fold;
	tree->traces = l->kept;
	tree->frame_label[0] = l->frame_label[0];
	tree->frame_label[1] = l->frame_label[1];
}

static ow_status account_and_display(struct code_lines *l)
{
	struct account *a = l->a;
	struct hierarchy h = { .a = a,
			       .view = l,
			       .count = l->count,
			       .links = l->nodes,
			       .name = line_name,
			       .link_stride = sizeof(*l->nodes),
			       .rank = line_rank,
			       .op_count = line_op_count,
			       .chain = l->fold ? line_chain : NULL,
			       .in_order = l->traces && a->order == ORDER_NAME && !a->has_root_name,
			       .own_row = line_own_row,
			       .fill = line_fill };
	size_t rows = 1, size = (size_t)l->count * sizeof(uint32_t);
	uint32_t ops = l->traces ? l->sorted_count : count_ops(l), *total_row;

	if (l->traces)
		list_sorted(l);
	else
		OW_TRY(list_ops(l, ops));
	hand_over(l);
	OW_TRY(add_up(l, ops));
	h.flags = ARENA_ARRAY(&a->scratch, uint8_t, l->count);
	if (!h.flags)
		return error_no_memory(l->a->err);
	for (uint32_t i = 0; i < h.count; i++) {
		if (i && (a->types.everything || l->nodes[i].op_count))
			h.flags[i] = NODE_ACCOUNTED;
		rows += l->nodes[i].op_count ? 1 : 0;
		rows += l->children[i] > 1 ? 1 : 0;
	}
	/* the lines of stacks are no longer needed, so their memory is reused */
	total_row = l->count <= l->m->stack.count ? l->of_stack
						  : arena_push_aligned(&a->scratch, size, 4);
	if (!total_row)
		return error_no_memory(l->a->err);
	memset(total_row, 0, size);
	OW_TRY(hierarchy_total_shared(&h, total_row, rows));
	return display_hierarchy(&h);
}

/* Returns whether chains can be folded: no option needs the name or the values of a single line. */
static bool can_fold(const struct account *a)
{
	return a->types.everything && a->start.everything && a->show.everything && !a->trim.regex &&
	       !a->hide.regex && !a->test_count;
}

static ow_status run_code_view(struct model *m, const struct view_options *options,
			       struct table *out, struct ow_error *err)
{
	struct account a;
	struct code_lines l;
	ow_status status;

	if (samples_show_code(m, options))
		return sample_tree_run(m, options, out, err);
	status = account_begin(&a, m, options, TREE_CODE, out, err);
	code_lines_init(&l, &a);
	l.fold = status == OW_OK && can_fold(&a);
	if (status == OW_OK)
		status = code_lines_build(&l);
	if (status == OW_OK && options->account_displayed_op_only)
		status = tree_message(a.tree, err,
				      "Note: code view ignores account_displayed_op_only");
	if (status == OW_OK)
		status = account_and_display(&l);
	code_lines_release(&l);
	return account_end(&a, status);
}

const struct view view_code = {
	.name = "code",
	.summary = "operations by the source lines that made them, as a tree of calls",
	.tree = true,
	.uses = VIEW_USES_PART | VIEW_USES_OPS | VIEW_USES_METRIC | VIEW_USES_STYLE,
	.run = run_code_view,
};
