/*
 * account.h: what the four tfprof views share: prepared options (regular expressions, wanted metrics, tests, order), which ops are accounted,
 * and a hierarchy with totals. Each view builds its hierarchy and calls display_hierarchy, which chooses and sorts the rows: start, trim,
 * show, hide, depth, minimums, order. The op view has a list of its own.
 */
#ifndef ANALYZE_ACCOUNT_H
#define ANALYZE_ACCOUNT_H

#include "analyze/view.h"
#include "base/regex/regex.h"
#include "model/metrics.h"

#define ROOT_NAME STR("_TFProfRoot")

/* A row is shown only if its value reaches `min`. */
struct min_test {
	enum metric metric;
	int64_t min;
	bool own; /* the own value is tested, not the total */
};

enum order { ORDER_NONE, ORDER_NAME, ORDER_METRIC, ORDER_OPS };

struct account {
	struct model *m;
	const struct view_options *options;
	struct mem *mem;
	struct arena scratch; /* memory that is freed when the view is done */
	struct tree *tree;    /* the tree, which belongs to the result */
	struct ow_error *err;
	ow_status message_status; /* status of messages about regular expressions */

	struct regex_list types, start, trim, show, hide;
	uint8_t *set_matches; /* for each strset: 0 = not tested yet, 1 = no match, 2 = match */

	struct metric_plan plan;
	uint32_t width;		       /* number of values in a row, as in the tree */
	uint8_t metrics[METRIC_COUNT]; /* metric of each place in a row */
	const uint8_t *places;	       /* place of each metric in a row, as in the tree */

	struct min_test tests[METRIC_COUNT];
	uint32_t test_count;
	uint32_t negatives; /* metrics that can be negative */
	enum order order;
	enum metric order_metric;
	bool has_root_name; /* an op is called _TFProfRoot; it sorts first */
};

/* Checks the options and makes out->tree with its messages so far. The caller calls account_end
 * in any case. */
ow_status account_begin(struct account *a, struct model *m, const struct view_options *options,
			enum tree_kind kind, struct table *out, struct ow_error *err);
/* Sets the metrics that have a place in rows, as METRIC_BITs. For trees whose nodes are not ops. */
void account_set_metrics(struct account *a, uint32_t mask);
/* Frees the memory of the view; turns OW_OK into the failure of a regular expression, if there
 * was one. */
ow_status account_end(struct account *a, ow_status status);

/* Returns whether one of the op's types matches the account regular expressions. */
bool account_types(struct account *a, strset_id types);
static inline bool account_op(struct account *a, op_id op)
{
	return account_types(a, a->m->op.types[op.v]);
}

/* Computes the values of one op, in a row of a->width values. */
void account_eval(const struct account *a, op_id op, int64_t *row);
/* Makes tree.own_rows: one row per op, and `more` rows of zeros behind them. */
ow_status account_eval_all(struct account *a, uint32_t more);

/* Hierarchies of nodes. */

enum node_flag {
	NODE_ACCOUNTED = 1,
	NODE_KEPT = 2,
	NODE_SHOWN = 4, /* the node is shown (set by the display) */
	NODE_OPEN = 8,	/* the display examines the nodes below it */
	NODE_TOP = 16	/* the display starts at this node */
};

struct node_link {
	uint32_t parent, first, next; /* indices of nodes; 0 = none; node 0 is the root */
};

/* A tree whose nodes have larger numbers than their parents. */
struct hierarchy {
	struct account *a;
	uint32_t count;
	const void *links; /* nodes of the view, each of which begins with a struct node_link */
	size_t link_stride;
	uint8_t *flags;
	int64_t *totals;     /* rows of totals; they become tree.total_rows */
	uint32_t *total_row; /* total row of each node; NULL if it is the node's number */
	bool by_name;	     /* siblings are ordered by name */
	/* all nodes up to the wanted depth are shown, in their order in memory */
	bool in_order;
	const void *view; /* argument of the functions below */
	struct str (*name)(const void *view, uint32_t node);
	/* Returns the position of the node's name among all names; NULL: names are compared
	 * directly. */
	uint32_t (*rank)(const void *view, uint32_t node);
	/* Returns the row of a node's own values in tree.own_rows; row 0 is zero. */
	uint32_t (*own_row)(const void *view, uint32_t node);
	/* number of ops of a node, for ORDER_OPS */
	uint32_t (*op_count)(const void *view, uint32_t node);
	void (*fill)(const void *view, uint32_t node, struct tree_node *to);
	/* How many nodes follow in a chain that is folded into this one; NULL when none are. Everything is
	 * shown then, as far as the depth and the limit allow. */
	uint32_t (*chain)(const void *view, uint32_t node);
};

static inline const struct node_link *hierarchy_link(const struct hierarchy *h, uint32_t node)
{
	return (const void *)((const char *)h->links + node * h->link_stride);
}

/* Allocates totals, a row per node, and adds up: own values of accounted nodes, totals of kept children.
 * A node is kept if it is accounted or has a kept child. */
ow_status hierarchy_total(struct hierarchy *h);
/* Like hierarchy_total, for hierarchies of long chains: a node that adds nothing to its only child shares its row.
 * total_row has one (zeroed) entry per node; at most `rows` rows are made, row 0 of zeros among them. */
ow_status hierarchy_total_shared(struct hierarchy *h, uint32_t *total_row, size_t rows);

static inline void row_add(int64_t *to, const int64_t *from, uint32_t width)
{
	for (uint32_t i = 0; i < width; i++)
		to[i] = wrap_add(to[i], from[i]);
}

static inline int64_t *hierarchy_totals(const struct hierarchy *h, uint32_t node)
{
	return h->totals + (size_t)(h->total_row ? h->total_row[node] : node) * h->a->width;
}

static inline const int64_t *hierarchy_own(const struct hierarchy *h, uint32_t node)
{
	return h->a->tree->own_rows + (size_t)h->own_row(h->view, node) * h->a->width;
}

/* display.c: makes the shown tree from a hierarchy with totals. */

/* Fills the nodes of a->tree. */
ow_status display_hierarchy(struct hierarchy *h);

/* Returns whether rows of values reach the minimums. */
bool display_reaches(const struct account *a, const int64_t *own, const int64_t *total);
/* Returns whether the show and hide patterns let a name pass. */
bool display_named(struct account *a, struct str name);

/* The key of a row for sorting; rows with equal keys keep their order. */
struct sort_key {
	struct str name;
	int64_t value;
	uint32_t row, position;
};
/* Sorts by a->order and sets positions. Equal keys keep their order. */
void display_sort(const struct account *a, struct sort_key *keys, size_t count);

#endif
