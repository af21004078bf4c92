/*
 * code_lines.h: call stacks as a tree of source lines, as the code view shows them: labels
 * (file:line:function), equal labels under one parent being one line, and gradients beside the line of
 * the op whose gradient they are. What is accounted and shown is view_code.c's business.
 */
#ifndef ANALYZE_CODE_LINES_H
#define ANALYZE_CODE_LINES_H

#include "analyze/account.h"
#include "analyze/stack_runs.h"

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
	bool fold;		    /* chains of lines are no nodes; set before building */
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

/* The label of a frame, made if need be; 0 without memory. */
uint32_t code_lines_label(struct code_lines *l, uint32_t frame, bool gradient);
/* The child of that label; 0 when there is none. */
uint32_t code_lines_find(struct code_lines *l, uint32_t parent, uint32_t label);
/* Makes the first line, when folding. */
bool code_lines_root(struct code_lines *l);
/* Adds a line in front of its siblings; 0 without memory. */
uint32_t code_lines_add(struct code_lines *l, uint32_t parent, uint32_t label, bool gradient);
/* Room for that many more lines, when folding. */
bool code_lines_reserve(struct code_lines *l, uint32_t more);
/* Adds a line for which there is room and which nobody will look for. */
uint32_t code_lines_append(struct code_lines *l, uint32_t parent, uint32_t label, bool gradient);

/* Whether lines can be folded: no gradient's label is also that of a line. */
bool code_fold_possible(const struct model *m);
/* Adds the lines of all stacks with a rank in of_stack, where the line is put then: for a chain, that of
 * its first line. */
ow_status code_fold_add(struct code_lines *l, bool gradient);

/* Makes the lines of all ops in line_of and of gradients, in the order in which they are shown by name; a line's
 * label is its place by name. */
ow_status code_sorted_add(struct code_lines *l);

#endif
