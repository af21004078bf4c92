/*
 * run.h: what one run contributes to a comparison: for each cell (phase, op, line, rank) the time of its steady steps that belongs to it,
 * and how often it began. Each instant of a step belongs to one cell or to none (nothing was recorded), so that cells and rest sum to the
 * steps. diff.c compares runs; match.c finds which cells are the same thing.
 */
#ifndef DIFF_RUN_H
#define DIFF_RUN_H

#include "analyze/steps/phases.h"

/* A setting of a run, such as "device"; a name may have several values, one for each source. */
struct diff_setting {
	struct str name, value;
};

/* Shapes and types of an operator's arguments, as the source writes them, and how often the operator ran with them. */
struct diff_arguments {
	struct str shapes, types;
	uint32_t count;
};

#define ARGUMENTS_MOST                                                                             \
	16u /* limit for a cell: an operator with more is called with other shapes in every step */

struct argument_list {
	struct diff_arguments *items;
	size_t count, cap;
	bool more; /* some arguments are not in the list */
};

struct diff_cell {
	enum phase_class class;
	int32_t rank; /* -1: unknown */
	/* the operator that contains the work, or else the name of the work */
	struct str op;
	struct str part;		/* name of the kernel or call, if it is not the op */
	struct str line;		/* line of the user's code; empty when unknown */
	struct str file;		/* whole path of that line's file */
	int32_t line_number;		/* line number in the file; 0: unknown */
	struct argument_list arguments; /* arguments of the operator, in the first steps */
	bool device;			/* a device ran the work */
	int64_t ns;			/* time in all steps that are used */
	int64_t count;			/* how often an event of the cell began in them */
};

/* A frame of the call stacks in a profile of samples. */
struct diff_frame {
	/* parent: 1 + number of the calling frame, which is smaller than this frame's; 0 = none */
	uint32_t parent;
	struct str name;  /* name of the function */
	int64_t ns, self; /* with and without the functions that it calls */
};

struct diff_run {
	struct arena arena;
	struct diff_cell *cells;
	size_t cell_count, cell_cap;
	uint64_t steps; /* number of steps that are used, of all ranks */
	/* time of the used steps; time of them in which nothing was recorded */
	int64_t total_ns, idle_ns;
	bool known; /* the values are per step; false: per whole recording */
	/* the run has steps, but was read as a whole, because other runs have none */
	bool whole;
	/* number of all steps, including those left out: warm-up, the last one */
	uint64_t all_steps;
	int64_t all_steps_ns; /* time of all steps */
	/* number of used steps in which the arguments of operators were read */
	uint64_t argument_steps;
	uint64_t launches; /* calls that launch device work, in the used steps */
	bool launches_known;
	double float_ops; /* in the used steps; 0: unknown */
	/* cells in the order in which they begin, in the step nearest to the median */
	uint32_t *sequence;
	size_t sequence_count, sequence_cap;
	int64_t peak_memory; /* peak in bytes of the largest heap; -1: unknown */
	int32_t *ranks;	     /* ranks of the sources that have steps, ascending */
	size_t rank_count, rank_cap;
	struct diff_setting *settings; /* sorted by name */
	size_t setting_count, setting_cap;
	/* metric and unit of profiles of samples and of memory; empty: time */
	struct str metric, unit;
	/* the metric that the samples measure, if they are only counted */
	struct str own_metric;
	bool counts_unknown;	   /* for cells: samples do not show how often something ran */
	struct diff_frame *frames; /* frames of samples, if asked for: callers first */
	size_t frame_count, frame_cap;
};

struct diff_read_options {
	const char *metric; /* metric for profiles of samples; NULL = their default */
	bool frames;	    /* read the call stacks of samples, too */
	bool whole;	    /* read the recording as one step, from the first event to the last */
};

/* The metric that every profile of samples has: the number of samples, whatever each stands for. */
#define METRIC_SAMPLES "samples"
#define METRIC_MEMORY "peak_memory"

/* Reads a frozen model; OW_E_USAGE when a profile of samples does not have the metric. The caller calls
 * diff_run_release, also after a failure. */
ow_status diff_run_read(struct model *m, const struct diff_read_options *options,
			struct diff_run *run, struct ow_error *err);
/* run_samples.c: reads the cells of a profile of samples. */
ow_status diff_samples_read(const struct model *m, const struct diff_read_options *options,
			    struct diff_run *run, struct ow_error *err);
/* run_memory.c: reads the peak of the largest heap; with `cells` also the memory in use at the peak, in bytes, for
 * recordings of memory alone. */
ow_status diff_memory_read(struct model *m, bool cells, struct diff_run *run, struct ow_error *err);
/* setup.c: reads the settings from the facts of the run's sources. */
ow_status diff_settings_read(const struct model *m, struct diff_run *run, struct ow_error *err);
void diff_run_release(struct diff_run *run);

#endif
