/*
 * diff.h: compares the steps of two groups of runs. Every instant of a steady step belongs to one cell (phase, op,
 * line, rank) or to the time in which nothing was recorded, so that the differences of all of these sum to the
 * difference of the steps exactly. Called by the library for `opwatch diff`. It reads the cells of run.h; match.c finds
 * which cells correspond, statistics.c whether a difference is significant.
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

/* A kernel or call inside an op. */
struct row_part {
	struct str name;
	double ns[2]; /* time in a step: means over the runs of each side */
	struct row_part *next;
};

/* A cell, compared between both sides. */
struct diff_row {
	enum phase_class class;
	int32_t rank;
	/* names on the base side, if it has the cell; "a + b" for ops that were fused */
	struct str op, line;
	struct str own_op;   /* name of the op before it was joined with others */
	struct str own_line; /* line of the cell; empty where lines are not compared */
	bool several_lines;  /* the op has several lines, where lines are not compared */
	/* whole path of the line's file; in the new runs, if they have the cell */
	struct str file;
	int32_t line_number;		   /* line number in the file; 0: unknown */
	struct argument_list arguments[2]; /* arguments of the operator on each side */
	struct str shapes[2], types[2];	   /* arguments that changed, or else the first ones */
	/* each side has, in every step, some arguments more often than the other side */
	bool arguments_changed;
	struct str new_op;	/* name on the new side, if it differs */
	struct row_part *parts; /* kernels and calls inside the op, the last one first */
	struct str part[2];	/* the kernel or call that changed most, on each side */
	double *ns;		/* for each run, the base's first: time in a mean steady step */
	double mean[2];		/* means over the runs of each side */
	double count[2];
	bool on[2];	     /* some run of that side has the cell */
	bool counts_unknown; /* samples do not show how often something ran */
	bool moved;	     /* the line has another number in the new runs */
	/* how the two sides were matched; NULL: only one side has the cell */
	const char *matched_by;
	enum diff_change change;
	/* how the row got its first part by the order of the step: split, fused */
	enum diff_change parts_by;
	uint32_t merged; /* 1 + index of the row that includes this one; 0 = none */
	double q;	 /* false discovery rate; NaN = unknown */
};

struct diff_rows {
	struct arena arena;
	struct mem *mem;
	struct diff_row *items;
	size_t count, cap;
	size_t runs[2];
	const struct diff_run *all; /* the base's runs come first */
	uint32_t **row_of;	    /* for each run: the row of each cell */
	struct str *normal;	    /* for each row that only one side has: its normalised name */
	/* order: rows of one class, in the order of a step of the first run of each side */
	uint32_t *order[2];
	size_t order_count[2];
	bool failed;	    /* memory has run out */
	bool without_lines; /* one side has no lines, so lines are not compared */
	/* device work is compared by kernel: the sides do not know the same operators */
	bool by_kernel;
	/* for each run of the new side: by how many lines the line of each cell moved */
	int32_t **shifts;
};

/* rows.c: makes rows from the cells of all runs, with the properties that both sides know. The caller calls
 * diff_rows_release, also after a failure. */
ow_status diff_rows_make(struct diff_rows *d, struct mem *mem, const struct diff_run *runs,
			 size_t base, size_t other, struct ow_error *err);
/* match.c: joins rows of one side with rows of the other side that correspond but have another name or line. */
ow_status diff_rows_match(struct diff_rows *d, struct ow_error *err);
void diff_rows_release(struct diff_rows *d);
/* rows.c: adds the content of a row of the new side, or of another row of the base, to a row of the base; false if
 * memory runs out. */
bool diff_row_add(struct diff_rows *d, struct diff_row *to, const struct diff_row *from,
		  unsigned side);
/* rows.c: finds for each row the arguments and the kernel or call that changed most. */
void diff_rows_explain(struct diff_rows *d);
/* lines.c: fills d->shifts. */
ow_status diff_lines_align(struct diff_rows *d, struct ow_error *err);
/* Splits "model.py:41 forward" around its line number into "model.py:" and " forward"; false when there is no
 * number. */
bool diff_line_split(const struct diff_cell *cell, struct str *prefix, struct str *suffix);

/* A limit: "step_time > 3%", "op:conv2d > 5ms". */
struct diff_limit {
	const char *text;
	const char *metric; /* step_time, peak_memory, launches, op or phase */
	struct str name;    /* name of the op or phase */
	double amount;
	bool relative;
};

enum diff_gate { GATE_NONE, GATE_WITHIN, GATE_BEYOND, GATE_INCONCLUSIVE, GATE_NOT_COMPARABLE };

struct diff_options {
	const char *const *limits;
	size_t limit_count;
	/* rows are the frames of a flame graph instead of cells; runs were read with their frames */
	bool frames;
	double frames_least; /* frames below this share of a step are left out */
};

/* Parses a limit; OW_E_USAGE with a message that names the mistake. The name is allocated in `arena`. */
ow_status diff_limit_parse(const char *text, struct arena *arena, struct diff_limit *limit,
			   struct ow_error *err);

/* setup.c: the settings of a run, one row for each: `what`, `value`. Fills a table without columns. */
ow_status diff_settings_table(const struct diff_run *run, struct table *out);

/* Adds only the columns, with their descriptions; `unit` is the unit of the costs. */
void diff_columns(struct table *t, enum column_unit unit);

/* Makes the comparison; `out` is a table without columns. *gate is the worst outcome of all limits. */
ow_status diff_table(const struct diff_run *runs, size_t base, size_t other,
		     const struct diff_options *options, struct table *out, enum diff_gate *gate,
		     struct ow_error *err);

#endif
