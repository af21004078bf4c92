/*
 * code_lines.h: call stacks as a tree of source lines for the code view: labels (file:line:function), where equal labels under one parent are
 * one line, and gradients beside the line of the op that they belong to. view_code.c decides what is accounted and shown.
 */
#ifndef ANALYZE_CODE_LINES_H
#define ANALYZE_CODE_LINES_H

#include "analyze/tfprof/account.h"
#include "analyze/samples/stack_runs.h"

struct code_lines {
	struct account *a;
	struct model *m;
	const op_id *ops; /* ops, sorted by name */
	uint32_t *rank;	  /* for each op: its place by name */

	struct str *labels; /* label texts, from index 1; item 0 belongs to the root */
	size_t label_count, label_cap;
	struct map by_text;	  /* maps a label text to its label */
	uint32_t *frame_label[2]; /* label of each frame: [0] plain, [1] gradient */
	uint32_t *label_rank;

	/* Lines. Until ops are listed, op_first is the least rank of the ops that pass the line. */
	struct code_node *nodes;
	uint32_t count, cap;
	uint8_t *children; /* number of children of each line, up to FEW + 1 */
	bool fold;	   /* chains of lines are not made nodes; set before building */
	/* with folding: capacity of nodes and children, which are separate blocks */
	size_t node_cap, child_cap;
	/* maps (parent, label) to the line, for lines with more than FEW children */
	struct map many;

	/* undecoded traces that lines are made of, if they are not made of stacks */
	const struct code_traces *traces;
	/* for each stack: least rank of the ops that pass it, later its line */
	uint32_t *of_stack;
	uint32_t *line_of; /* line of each op; with traces, the row of own values */
	/* With traces: ops sorted by line and then by name, and the line of the first op of
	 * each. */
	op_id *sorted_ops;
	uint32_t *sorted_line, sorted_count;
	struct code_traces *kept; /* frames that chains are made of */
	struct stack_runs runs;	  /* runs of ops that are called from several places */
	uint32_t *line_of_run;
	uint32_t *gradient_first, *gradient_next; /* for each forward op: list of its gradients */
	bool any_gradient;
	uint32_t forward_count; /* number of ops with frames that are not gradients */
	int64_t unaccounted;	/* number of forward names without an op */
};

/* Builds the lines of all ops with stacks: nodes, labels (also the tree's) and line_of. OW_E_NOT_FOUND when there
 * are none. The caller calls code_lines_release in any case. */
void code_lines_init(struct code_lines *l, struct account *a);
ow_status code_lines_build(struct code_lines *l);
void code_lines_release(struct code_lines *l);

/* Declarations that code_lines.c, code_fold.c and code_sorted.c share. */

#define NO_RANK UINT32_MAX

/* Makes the root line, with folding. */
bool code_lines_root(struct code_lines *l);
/* Makes room for that many more lines, with folding. */
bool code_lines_reserve(struct code_lines *l, uint32_t more);
/* Adds a line into reserved room, without an entry for lookups. */
uint32_t code_lines_append(struct code_lines *l, uint32_t parent, uint32_t label, bool gradient);

/* Makes the lines of all ops in line_of and of gradients, in the order in which they are shown by name; a line's
 * label is its place by name. */
ow_status code_sorted_add(struct code_lines *l);

#endif
