/*
 * tree.h: the typed result of the scope, graph, op and code views: displayed nodes in pre-order, each
 * with its own and its total values, plus what timeline and pprof output need.
 *
 * Node 0 is the root ("_TFProfRoot"). In the op view the tree is flat: the root's children in display
 * order, totals cumulative from the end (tfprof's way).
 */
#ifndef TABLE_TREE_H
#define TABLE_TREE_H

#include "model/metrics.h"
#include "table/table.h"

enum tree_kind { TREE_SCOPE, TREE_GRAPH, TREE_OP, TREE_CODE };

/* Bits of a selection; the order is tfprof's alphabetical one. */
enum select_bit {
	SELECT_ACCELERATOR_MICROS = 1 << 0,
	SELECT_BYTES = 1 << 1,
	SELECT_CPU_MICROS = 1 << 2,
	SELECT_DEVICE = 1 << 3,
	SELECT_FLOAT_OPS = 1 << 4,
	SELECT_INPUT_SHAPES = 1 << 5,
	SELECT_MICROS = 1 << 6,
	SELECT_OCCURRENCE = 1 << 7,
	SELECT_OP_TYPES = 1 << 8,
	SELECT_OUTPUT_BYTES = 1 << 9,
	SELECT_PARAMS = 1 << 10,
	SELECT_PEAK_BYTES = 1 << 11,
	SELECT_RESIDUAL_BYTES = 1 << 12,
	SELECT_TENSOR_VALUE = 1 << 13
};
#define SELECT_COUNT 14
/* names of the selectable columns, in bit order */
extern const char *const select_names[SELECT_COUNT];

/* Input signature of an op type: op view with input_shapes. */
struct tree_signature {
	struct str text; /* text of the shapes: "0:2x3,\t1:4" */
	int64_t run_count, defined;
	int64_t exec_time; /* execution time; see tree_shown */
};

/* One node of the complete code tree (before selection), for pprof. */
struct code_node {
	/* indices of nodes; 0 = none; node 0 is the root */
	uint32_t parent, first_child, next_sibling;
	frame_id frame;
	uint32_t label : 31; /* index in tree.labels */
	uint32_t gradient : 1;
	/* range of the matching ops, in name order, in tree.code_ops */
	uint32_t op_first, op_count;
	/* In a folded tree: the number of lines that follow without a branch. They end with this stack or, if the
	 * tree has traces, at this index among their frames. The last of them has the ops, and none of them is a
	 * node. */
	stack_id chain_end;
	uint32_t chain_count;
};
#define CODE_CHAIN_MAX 64

struct tree_node {
	struct str name;
	uint32_t parent; /* displayed parent; 0 for top-level nodes and the root */
	uint32_t depth;	 /* number of displayed ancestors; 0 for the root */
	uint32_t child_count;
	/* rows of values, see struct tree; read with tree_own and tree_total */
	uint32_t own_row, total_row;
	/* for scope and graph: the op, nil for pseudo scopes and the root */
	op_id op;
	uint32_t code; /* for the code view: its node in code_nodes */
	bool accounted;
	/* if folded: number of shown lines below this one, each a child of the one before */
	uint8_t chain;
};

/* Additional data of a node of the op view. */
struct tree_group {
	uint32_t op_first, op_count;		   /* range of the matching ops in tree.ops */
	uint32_t signature_first, signature_count; /* range in tree.signatures */
};

#define TREE_NO_VALUE 255

struct tree {
	struct arena arena;
	enum tree_kind kind;
	uint32_t select;       /* selected columns, bits of enum select_bit */
	char **unknown_select; /* words of the selection that are not columns; tfprof prints them */
	uint32_t unknown_select_count;
	int64_t step;	/* step as given: negative = average */
	uint32_t limit; /* number of rows that tree_flatten makes; 0 = all */
	struct model *model;
	struct tree_node *nodes;
	uint32_t node_count;
	/* Values lie apart from the nodes, in rows of the metrics that were computed: trees of millions
	 * of nodes are common, and many share a row of zeros. */
	int64_t *own_rows, *total_rows;
	uint32_t width; /* number of values in a row */
	/* times are in microseconds, because nanoseconds would overflow */
	bool in_micros;
	/* number of steps that the times are means of: metric_all_steps */
	uint32_t all_steps;
	uint8_t places[METRIC_COUNT];  /* place of each metric in a row, or TREE_NO_VALUE */
	const struct event_sums *sums; /* values cover only these events; NULL = all */
	bool empty_store;	       /* the profile has no ops */
	/* For sampled stacks, which have METRIC_WEIGHT and no ops; ptr is NULL in other trees. */
	struct str weight_name, weight_source_unit;
	enum column_unit weight_unit;
	struct tree_group *groups; /* for the op view only: data of each node */
	op_id *ops;		   /* for the op view only */
	struct tree_signature *signatures;
	struct code_node *code_nodes; /* for the code view only */
	uint32_t code_node_count;
	size_t code_node_cap; /* not 0: code_nodes is a separate block of that many nodes */
	bool folded;	      /* there may be chains; see tree_unfold */
	/* if folded: where chains are; NULL = in the stacks of the model */
	const struct code_traces *traces;
	uint32_t *frame_label[2]; /* if folded: label of each frame: [0] plain, [1] gradient */
	struct str *labels;	  /* labels of code nodes; 0 is the root's */
	uint32_t label_count;
	op_id *code_ops;
	uint8_t *op_accounted; /* for the graph view: whether each op matched the account regexes */
	/* Writes the tensor of that name in a checkpoint, on one line; NULL without a checkpoint. */
	void (*tensor)(void *arg, struct str name, struct buf *to);
	void *tensor_arg;
	struct str *messages; /* lines that tfprof prints on stderr, in order */
	uint32_t message_count;
};

/* Sets which metrics have values: mask has 1 << metric for each. */
void tree_set_metrics(struct tree *tree, uint32_t mask);
/* Makes room for `nodes` nodes, zeroed, in the tree's arena; node_count stays 0. With `rows`, each node gets its own
 * row for tree_set. */
ow_status tree_reserve(struct tree *tree, uint32_t nodes, bool rows, struct ow_error *err);

/* Return values of a node of tree->nodes as stored in the rows; 0 for values that were not
 * computed. */
static inline int64_t tree_own_stored(const struct tree *tree, const struct tree_node *node,
				      enum metric metric)
{
	return tree->places[metric] == TREE_NO_VALUE
		       ? 0
		       : tree->own_rows[(size_t)node->own_row * tree->width + tree->places[metric]];
}
static inline int64_t tree_total_stored(const struct tree *tree, const struct tree_node *node,
					enum metric metric)
{
	return tree->places[metric] == TREE_NO_VALUE
		       ? 0
		       : tree->total_rows[(size_t)node->total_row * tree->width +
					  tree->places[metric]];
}
/* Return values with times in nanoseconds; times that do not fit become the largest value. */
static inline int64_t tree_own(const struct tree *tree, const struct tree_node *node,
			       enum metric metric)
{
	int64_t value = tree_own_stored(tree, node, metric);

	return OW_UNLIKELY(tree->in_micros) && metric_is_time(metric) ? us_to_ns(value) : value;
}
static inline int64_t tree_total(const struct tree *tree, const struct tree_node *node,
				 enum metric metric)
{
	int64_t value = tree_total_stored(tree, node, metric);

	return OW_UNLIKELY(tree->in_micros) && metric_is_time(metric) ? us_to_ns(value) : value;
}
/* Returns a stored value as tfprof shows it: times in whole microseconds, exact. */
static inline int64_t tree_shown(const struct tree *tree, enum metric metric, int64_t stored)
{
	return metric_is_time(metric) && !tree->in_micros ? stored / 1000 : stored;
}
static inline int64_t tree_own_shown(const struct tree *tree, const struct tree_node *node,
				     enum metric metric)
{
	return tree_shown(tree, metric, tree_own_stored(tree, node, metric));
}
static inline int64_t tree_total_shown(const struct tree *tree, const struct tree_node *node,
				       enum metric metric)
{
	return tree_shown(tree, metric, tree_total_stored(tree, node, metric));
}
/* The matching ops of a node in the code and op views; NULL when it has none. Ops of a code node are sorted by name. */
static inline const op_id *tree_ops(const struct tree *tree, const struct tree_node *node,
				    uint32_t *count)
{
	if (tree->kind == TREE_CODE) {
		*count = tree->code_nodes[node->code].op_count;
		return *count ? tree->code_ops + tree->code_nodes[node->code].op_first : NULL;
	}
	*count = tree->groups[node - tree->nodes].op_count;
	return *count ? tree->ops + tree->groups[node - tree->nodes].op_first : NULL;
}
/* Sets a value in a tree with its own rows; the metric must have a place. */
static inline void tree_set(struct tree *tree, uint32_t node, enum metric metric, int64_t own,
			    int64_t total)
{
	size_t at = ((size_t)node + 1) * tree->width + tree->places[metric];

	tree->nodes[node].own_row = tree->nodes[node].total_row = node + 1;
	tree->own_rows[at] = own;
	tree->total_rows[at] = total;
}

/* Returns the labels of the lines that follow a folded node. */
void tree_chain(const struct tree *tree, const struct code_node *head,
		uint32_t labels[CODE_CHAIN_MAX]);
/* Prefetches a node and its chain, for readers that visit nodes in order, because they are scattered in memory. */
void tree_fetch_ahead(const struct tree *tree, uint32_t node);
/* Returns the row of own values of a code node's ops. */
static inline uint32_t tree_code_row(const struct code_node *node)
{
	return node->op_count ? node->op_first + 1 : 0;
}
/* Turns folded chains into nodes. Most lines of large programs are in chains, and only few outputs need a node for
 * each: the code view returns folded trees, and readers that do not know chains call this. */
ow_status tree_unfold(struct tree *tree, struct mem *mem, struct ow_error *err);

/* Makes the generic columns of r from r->tree, for the sinks that write tables. */
ow_status tree_flatten(struct table *r, struct ow_error *err);
void tree_free(struct tree *tree, struct mem *mem);

/* Adds a line to tree->messages, copied. */
ow_status tree_message(struct tree *tree, struct ow_error *err, const char *format, ...)
	OW_PRINTF(3, 4);

/* Computes tfprof's metrics of an op at the step of a tree (negative = average over its own steps), as
 * stored. */
void tree_op_metrics(const struct tree *tree, op_id op, int64_t out[METRIC_COUNT]);

#endif
