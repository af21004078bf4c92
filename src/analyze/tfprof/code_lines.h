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
	const op_id *ops; /* by name */
	uint32_t *rank;	  /* op → place by name */

	struct str *labels; /* from 1; 0 is the root's */
	size_t label_count, label_cap;
	struct map by_text;	  /* label text → label */
	uint32_t *frame_label[2]; /* frame → label; plain, gradient */
	uint32_t *label_rank;

	/* the lines; op_first is, until ops are listed, the least rank of the ops that pass a line */
	struct code_node *nodes;
	uint32_t count, cap;
	uint8_t *children;	    /* line → how many, up to FEW + 1 */
	bool fold;		    /* chains of lines are not nodes; set before building */
	size_t node_cap, child_cap; /* folding: room in nodes and children, blocks of their own */
	struct map many;	    /* (parent, label) → line, where there are more than FEW */

	const struct code_traces *traces; /* what lines are made of, when not of stacks */
	uint32_t *of_stack;		  /* least rank of the ops that pass it, then its line */
	uint32_t *line_of;		  /* op → line; with traces, the row of own values */
	/* With traces: ops in the order of their lines, by name in each; the line of the first of each, and */
	op_id *sorted_ops;
	uint32_t *sorted_line, sorted_count;
	struct code_traces *kept; /* the frames that chains are made of */
	struct stack_runs runs;	  /* of ops that are called from several places */
	uint32_t *line_of_run;
	uint32_t *gradient_first, *gradient_next; /* forward op → its gradients */
	bool any_gradient;
	uint32_t forward_count; /* ops that are not gradients, with frames */
	int64_t unaccounted;	/* forward names without such an op */
};

/* Builds the lines of all ops with stacks: nodes, labels (also the tree's) and line_of. OW_E_NOT_FOUND
 * when there are none. code_lines_release is due in any case. */
void code_lines_init(struct code_lines *l, struct account *a);
ow_status code_lines_build(struct code_lines *l);
void code_lines_release(struct code_lines *l);

/* ---- between code_lines.c, code_fold.c and code_sorted.c ---- */

#define NO_RANK UINT32_MAX

/* Makes the first line, when folding. */
bool code_lines_root(struct code_lines *l);
/* Room for that many more lines, when folding. */
bool code_lines_reserve(struct code_lines *l, uint32_t more);
/* Adds a line for which there is room, without an entry for lookups. */
uint32_t code_lines_append(struct code_lines *l, uint32_t parent, uint32_t label, bool gradient);

/* Makes the lines of all ops in line_of and of gradients, in the order in which they are shown by name; a line's
 * label is its place by name. */
ow_status code_sorted_add(struct code_lines *l);

#endif
