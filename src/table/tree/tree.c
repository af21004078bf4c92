/*
 * tree.c: makes and frees trees, and the metrics of one op. The views choose the rows; the columns of a tree are in
 * tree_columns.c.
 */
#include "table/tree/tree.h"

#include "model/metrics.h"

#include <stdarg.h>

const char *const select_names[SELECT_COUNT] = {
	"accelerator_micros", "bytes",	      "cpu_micros", "device",
	"float_ops",	      "input_shapes", "micros",	    "occurrence",
	"op_types",	      "output_bytes", "params",	    "peak_bytes",
	"residual_bytes",     "tensor_value",
};

void tree_free(struct tree *tree, struct mem *mem)
{
	if (!tree)
		return;
	if (tree->code_node_cap)
		mem_free(mem, tree->code_nodes, tree->code_node_cap * sizeof(*tree->code_nodes));
	arena_release(&tree->arena);
	mem_free(mem, tree, sizeof(*tree));
}

void tree_set_metrics(struct tree *tree, uint32_t mask)
{
	tree->width = 0;
	for (uint32_t i = 0; i < METRIC_COUNT; i++)
		tree->places[i] = mask & METRIC_BIT(i) ? (uint8_t)tree->width++ : TREE_NO_VALUE;
}

/* Reserves nodes and rows; row 0 stays zero, for nodes without values. */
ow_status tree_reserve(struct tree *tree, uint32_t nodes, bool rows, struct ow_error *err)
{
	size_t values = ((size_t)nodes + 1) * tree->width;

	tree->nodes = ARENA_ARRAY(&tree->arena, struct tree_node, nodes);
	if (rows) {
		tree->own_rows = ARENA_ARRAY(&tree->arena, int64_t, values);
		tree->total_rows = ARENA_ARRAY(&tree->arena, int64_t, values);
	}
	return tree->nodes && tree->own_rows && tree->total_rows ? OW_OK : error_no_memory(err);
}

ow_status tree_message(struct tree *tree, struct ow_error *err, const char *format, ...)
{
	uint32_t count = tree->message_count;
	struct str *grown = tree->messages;
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	text = arena_push_aligned(&tree->arena, (size_t)MAX(len, 0) + 1, 1);
	if (!(count & (count + 1))) /* the array is full at 0, 1, 3, 7, … */
		grown = ARENA_ARRAY(&tree->arena, struct str, 2 * (size_t)count + 1);
	if (!text || !grown)
		return error_no_memory(err);
	va_start(args, format);
	vsnprintf(text, (size_t)MAX(len, 0) + 1, format, args);
	va_end(args);
	if (grown != tree->messages && count)
		memcpy(grown, tree->messages, count * sizeof(*grown));
	tree->messages = grown;
	tree->messages[tree->message_count++] = str_from(text);
	return OW_OK;
}

void tree_op_metrics(const struct tree *tree, op_id op, int64_t out[METRIC_COUNT])
{
	struct metric_plan plan;

	metric_plan_init(&plan, tree->model, tree->step, METRIC_ALL);
	plan.in_micros = tree->in_micros;
	plan.all_steps = tree->all_steps;
	metric_eval(&plan, op, out);
}
