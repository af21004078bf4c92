/*
 * run.h: what one run contributes to a comparison: for each cell (phase, op, line, rank) the time of its steady steps that belongs to it,
 * and how often it began. Each instant of a step belongs to one cell or to none (nothing was recorded), so that cells and rest sum to the
 * steps. diff.c compares runs; match.c finds which cells are the same thing.
 */
#ifndef DIFF_RUN_H
#define DIFF_RUN_H

#include "analyze/steps/phases.h"

/* What a run was made with, such as "device": a name may have several values, one for each source. */
struct diff_setting {
	struct str name, value;
};

/* Shapes and types of the arguments of an operator, as the source writes them, and how often it ran with them. */
struct diff_arguments {
	struct str shapes, types;
	uint32_t count;
};

#define ARGUMENTS_MOST                                                                             \
	16u /* of a cell: an operator with more is called with other shapes in every step */

struct argument_list {
	struct diff_arguments *items;
	size_t count, cap;
	bool more; /* some are not in the list */
};

struct diff_cell {
	enum phase_class class;
	int32_t rank;			/* -1: unknown */
	struct str op;			/* the operator that it is part of, or else what ran */
	struct str part;		/* what ran, when that is not the op: a kernel, a call */
	struct str line;		/* of the user's code; empty when unknown */
	struct str file;		/* of that line, whole */
	int32_t line_number;		/* in it; 0: unknown */
	struct argument_list arguments; /* of its operator, in the first steps */
	bool device;			/* a device ran it */
	int64_t ns;			/* of all steps that are used */
	int64_t count;			/* how often something of it began in them */
};

/* A frame of the call stacks of a profile of samples. */
struct diff_frame {
	uint32_t
		parent; /* the calling frame: 1 + its number, which is smaller than this frame's; 0 = none */
	struct str name;  /* of the function */
	int64_t ns, self; /* with and without the functions that it calls */
};

struct diff_run {
	struct arena arena;
	struct diff_cell *cells;
	size_t cell_count, cell_cap;
	uint64_t steps;		   /* that are used, of all ranks */
	int64_t total_ns, idle_ns; /* of these */
	bool known;		   /* they are steps; else whole recordings */
	bool whole;	    /* it has steps, but was read as a whole, since other runs have none */
	uint64_t all_steps; /* also those that are left out: warm-up, the last one */
	int64_t all_steps_ns;	 /* of these */
	uint64_t argument_steps; /* of those used: the arguments of operators were read */
	uint64_t launches;	 /* calls that start device work, in those used */
	bool launches_known;
	double float_ops; /* in those used; 0: unknown */
	/* cells in the order in which they begin, in the step nearest the median */
	uint32_t *sequence;
	size_t sequence_count, sequence_cap;
	int64_t peak_memory; /* bytes, the largest of its heaps; -1: unknown */
	int32_t *ranks;	     /* of its sources that have steps, ascending */
	size_t rank_count, rank_cap;
	struct diff_setting *settings; /* by name */
	size_t setting_count, setting_cap;
	struct str metric, unit;   /* of profiles of samples and of memory; empty: time */
	struct str own_metric;	   /* what its samples measure, although they are only counted */
	bool counts_unknown;	   /* of cells: samples do not say how often something ran */
	struct diff_frame *frames; /* of these, when asked for: callers first */
	size_t frame_count, frame_cap;
};

struct diff_read_options {
	const char *metric; /* of profiles of samples; NULL = their default */
	bool frames;	    /* read the call stacks of samples, too */
	bool whole;	    /* as one step from the first event to the last */
};

/* The metric that every profile of samples has: how many they are, whatever each stands for. */
#define METRIC_SAMPLES "samples"
#define METRIC_MEMORY "peak_memory"

/* Reads a frozen model; OW_E_USAGE when a profile of samples does not have the metric. diff_run_release is due in any case. */
ow_status diff_run_read(struct model *m, const struct diff_read_options *options,
			struct diff_run *run, struct ow_error *err);
/* run_samples.c: the cells of a profile of samples. */
ow_status diff_samples_read(const struct model *m, const struct diff_read_options *options,
			    struct diff_run *run, struct ow_error *err);
/* run_memory.c: the peak of the largest heap; with `cells` also what was in use then, in bytes, for recordings of memory alone. */
ow_status diff_memory_read(struct model *m, bool cells, struct diff_run *run, struct ow_error *err);
/* setup.c: what the facts of its sources say. */
ow_status diff_settings_read(const struct model *m, struct diff_run *run, struct ow_error *err);
void diff_run_release(struct diff_run *run);

#endif
