/*
 * tree_fold.c: unfolds code trees; see tree.h. The code view folds them (analyze/tfprof/code_fold.c), because folding
 * must avoid making the nodes in the first place.
 */
#include "table/tree/tree.h"

/* The frame of the last line of a chain, then, with each call, of the line before; *at is initially chain_end. */
static frame_id chain_frame(const struct tree *tree, uint32_t *at)
{
	const struct stack_table *stacks = &tree->model->stack;
	frame_id frame;

	if (tree->traces)
		return tree->traces->frames[(*at)--];
	frame = stacks->frame[*at];
	*at = stacks->parent[*at].v;
	return frame;
}

void tree_chain(const struct tree *tree, const struct code_node *head,
		uint32_t labels[CODE_CHAIN_MAX])
{
	const uint32_t *label = tree->frame_label[head->gradient];
	uint32_t at = head->chain_end.v;

	OW_ASSERT(head->chain_count <= CODE_CHAIN_MAX);
	for (uint32_t i = head->chain_count; i-- > 0;)
		labels[i] = label[chain_frame(tree, &at).v];
}

void tree_fetch_ahead(const struct tree *tree, uint32_t node)
{
	const struct stack_table *stacks = &tree->model->stack;
	const struct tree_node *soon;

	if (node + 16 >= tree->node_count)
		return;
	soon = &tree->nodes[node + 8];
	__builtin_prefetch(soon->name.ptr);
	if (tree->own_rows && tree->total_rows) {
		__builtin_prefetch(&tree->own_rows[(size_t)soon->own_row * tree->width]);
		__builtin_prefetch(&tree->total_rows[(size_t)soon->total_row * tree->width]);
	}
	if (!tree->folded)
		return;
	__builtin_prefetch(&tree->code_nodes[tree->nodes[node + 16].code].chain_end);
	if (soon->chain) {
		uint32_t end = tree->code_nodes[soon->code].chain_end.v;

		if (tree->traces) {
			__builtin_prefetch(&tree->traces->frames[end]);
		} else {
			__builtin_prefetch(&stacks->parent[end]);
			__builtin_prefetch(&stacks->frame[end]);
		}
	}
}

/* Makes nodes from the lines of a chain, from index `first` on. */
static void unfold_chain(const struct tree *tree, struct code_node *nodes, uint32_t head,
			 uint32_t first)
{
	uint32_t count = nodes[head].chain_count, at = nodes[head].chain_end.v;
	uint32_t labels[CODE_CHAIN_MAX];

	tree_chain(tree, &nodes[head], labels);
	for (uint32_t i = count; i-- > 0;)
		nodes[first + i] = (struct code_node){
			.parent = i ? first + i - 1 : head,
			.first_child = i + 1 < count ? first + i + 1 : 0,
			.frame = chain_frame(tree, &at),
			.label = labels[i] & 0x7fffffffu,
			.gradient = nodes[head].gradient,
			.op_first = nodes[head].op_first,
			.op_count = i + 1 < count ? 0 : nodes[head].op_count,
		};
	nodes[head].first_child = first;
	nodes[head].op_count = 0;
	nodes[head].chain_count = 0;
}

static ow_status unfold_code(struct tree *tree, struct mem *mem, struct ow_error *err)
{
	uint64_t all = tree->code_node_count;
	uint32_t next = tree->code_node_count;
	struct code_node *nodes;

	for (uint32_t i = 0; i < tree->code_node_count; i++)
		all += tree->code_nodes[i].chain_count;
	nodes = all < UINT32_MAX
			? arena_push_aligned(&tree->arena, (size_t)all * sizeof(*nodes), 16)
			: NULL;
	if (!nodes)
		return error_no_memory(err);
	memcpy(nodes, tree->code_nodes, tree->code_node_count * sizeof(*nodes));
	for (uint32_t i = 0; i < tree->code_node_count; i++) {
		uint32_t count = nodes[i].chain_count;

		if (count)
			unfold_chain(tree, nodes, i, next);
		next += count;
	}
	if (tree->code_node_cap)
		mem_free(mem, tree->code_nodes, tree->code_node_cap * sizeof(*nodes));
	tree->code_node_cap = 0;
	tree->code_nodes = nodes;
	tree->code_node_count = next;
	return OW_OK;
}

/* Makes the nodes of a shown node and its chain, from index `at` on. Code nodes are unfolded already. */
static void unfold_shown(const struct tree *tree, const struct tree_node *from,
			 struct tree_node *nodes, uint32_t at)
{
	uint32_t code = from->code;

	nodes[at] = *from;
	nodes[at].chain = 0;
	for (uint32_t i = 1; i <= from->chain; i++) {
		code = tree->code_nodes[code].first_child;
		nodes[at + i] = nodes[at];
		nodes[at + i].name = tree->labels[tree->code_nodes[code].label];
		nodes[at + i].parent = at + i - 1;
		nodes[at + i].depth = from->depth + i;
		nodes[at + i].child_count = i < from->chain;
		nodes[at + i].own_row = tree_code_row(&tree->code_nodes[code]);
		nodes[at + i].code = code;
	}
}

static ow_status unfold_nodes(struct tree *tree, struct mem *mem, struct ow_error *err)
{
	size_t size = (size_t)tree->node_count * sizeof(uint32_t);
	uint32_t *place = mem_alloc(mem, size), next = 0;
	uint64_t all = tree->node_count;
	struct tree_node *nodes;

	for (uint32_t i = 0; i < tree->node_count; i++)
		all += tree->nodes[i].chain;
	nodes = place && all < UINT32_MAX
			? arena_push_aligned(&tree->arena, (size_t)all * sizeof(*nodes), 16)
			: NULL;
	for (uint32_t i = 0; nodes && i < tree->node_count; i++) {
		const struct tree_node *from = &tree->nodes[i];

		place[i] = next;
		unfold_shown(tree, from, nodes, next);
		nodes[next].parent = place[from->parent];
		next += from->chain + 1u;
	}
	mem_free(mem, place, size);
	if (!nodes)
		return error_no_memory(err);
	tree->nodes = nodes;
	tree->node_count = next;
	return OW_OK;
}

ow_status tree_unfold(struct tree *tree, struct mem *mem, struct ow_error *err)
{
	if (!tree->folded)
		return OW_OK;
	OW_TRY(unfold_code(tree, mem, err));
	OW_TRY(unfold_nodes(tree, mem, err));
	tree->folded = false;
	return OW_OK;
}
