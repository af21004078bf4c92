/*
 * diff.h: compares the steps of two groups of runs. Every instant of a steady step belongs to one cell (phase, op, line, rank), so that the
 * differences of the cells and of the time in which nothing was recorded sum to the difference of the steps, exactly. Called by the library
 * for `opwatch diff`. Reads the cells of run.h; match.c says which are the same thing, statistics.c whether a difference is one.
 */
#ifndef DIFF_DIFF_H
#define DIFF_DIFF_H

#include "diff/run.h"
#include "diff/statistics.h"
#include "table/table.h"

enum diff_change {
	CHANGE_NONE,
	CHANGE_NEW,
	CHANGE_GONE,
	CHANGE_COUNT,
	CHANGE_DURATION,
	CHANGE_RENAMED,
	CHANGE_SPLIT,
	CHANGE_FUSED
};

/* A kernel or call in an op. */
struct row_part {
	struct str name;
	double ns[2]; /* of a step, means of the runs of a side */
	struct row_part *next;
};

/* A cell of both sides. */
struct diff_row {
	enum phase_class class;
	int32_t rank;
	struct str op, line; /* of the base side, if it has it; "a + b" of ops that were fused */
	struct str own_op;   /* its name before it was joined with others */
	struct str own_line; /* the line that it was made for; empty where lines are not compared */
	bool several_lines;  /* of code that has it, where lines are not compared */
	struct str file;     /* of the line, whole; in the new runs, if they have it */
	int32_t line_number; /* in that file; 0: unknown */
	struct argument_list arguments[2]; /* of the operator on a side */
	struct str shapes[2], types[2];	   /* those that changed, or else the first ones */
	bool arguments_changed; /* every step of each side has some more often than the other side */
	struct str new_op;	/* of the other one, when it is called differently there */
	struct row_part *parts; /* the kernels and calls in it, the last one first */
	struct str part[2];	/* the one that changed most, on each side */
	double *ns;		/* per run, the base's first: of a mean steady step */
	double mean[2];		/* of the runs of a side */
	double count[2];
	bool on[2];		/* some run of that side has it */
	bool counts_unknown;	/* samples do not say how often something ran */
	bool moved;		/* its line has another number in the new runs */
	const char *matched_by; /* NULL: the other side does not have it */
	enum diff_change change;
	enum diff_change parts_by; /* how it got its first part from the order: split, fused */
	uint32_t merged;	   /* 1 + the row that includes this one; 0 = none */
	double q;		   /* false discovery rate; NaN when unknown */
};

struct diff_rows {
	struct arena arena;
	struct mem *mem;
	struct diff_row *items;
	size_t count, cap;
	size_t runs[2];
	const struct diff_run *all; /* the base's first */
	uint32_t **row_of;	    /* per run: the row of each cell */
	struct str *normal;	    /* per row that one side has: its normalised name */
	uint32_t *order
		[2]; /* rows of one class, in the order of a step of the first run of each side */
	size_t order_count[2];
	bool failed;	    /* without memory */
	bool without_lines; /* one side has none, so they are not compared */
	bool by_kernel; /* device work is compared by kernel: the sides do not know the same operators */
	int32_t **shifts; /* per run of the new side: by how much the line of each cell moved */
};

/* rows.c: makes rows of the cells of all runs, of what both sides know. diff_rows_release is due in any case. */
ow_status diff_rows_make(struct diff_rows *d, struct mem *mem, const struct diff_run *runs,
			 size_t base, size_t other, struct ow_error *err);
/* match.c: joins rows of one side with rows of the other that are the same thing under another name or line. */
ow_status diff_rows_match(struct diff_rows *d, struct ow_error *err);
void diff_rows_release(struct diff_rows *d);
/* rows.c: adds what is in a row of the new side to one of the base, or of another row of the base; false without memory. */
bool diff_row_add(struct diff_rows *d, struct diff_row *to, const struct diff_row *from,
		  unsigned side);
/* rows.c: says for each row which arguments and which kernel or call changed most. */
void diff_rows_explain(struct diff_rows *d);
/* lines.c: fills d->shifts. */
ow_status diff_lines_align(struct diff_rows *d, struct ow_error *err);
/* "model.py:41 forward" around its number: "model.py:", " forward"; false when there is none. */
bool diff_line_split(const struct diff_cell *cell, struct str *prefix, struct str *suffix);

/* A limit: "step_time > 3%", "op:conv2d > 5ms". */
struct diff_limit {
	const char *text;
	const char *metric; /* step_time, peak_memory, launches, op, phase */
	struct str name;    /* of op and phase */
	double amount;
	bool relative;
};

enum diff_gate { GATE_NONE, GATE_WITHIN, GATE_BEYOND, GATE_INCONCLUSIVE, GATE_NOT_COMPARABLE };

struct diff_options {
	const char *const *limits;
	size_t limit_count;
	bool frames; /* rows are the frames of a flame graph instead of cells; runs were read with theirs */
	double frames_least; /* leaves out frames that are less than this part of a step */
};

/* Parses a limit; OW_E_USAGE says what is wrong. The name lives in `arena`. */
ow_status diff_limit_parse(const char *text, struct arena *arena, struct diff_limit *limit,
			   struct ow_error *err);

/* setup.c: what a run was made with, a row for each setting: `what`, `value`. Fills a table without columns. */
ow_status diff_settings_table(const struct diff_run *run, struct table *out);

/* Only the columns, with their sentences; `unit` is that of the costs. */
void diff_columns(struct table *t, enum column_unit unit);

/* Fills a table without columns. *gate is the worst of all limits. */
ow_status diff_table(const struct diff_run *runs, size_t base, size_t other,
		     const struct diff_options *options, struct table *out, enum diff_gate *gate,
		     struct ow_error *err);

#endif
