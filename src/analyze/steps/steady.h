/*
 * steady.h: which steps a recording has, which of them are typical, and how long a typical step takes. This is the only definition: the views
 * `steps` and `phases`, the overview, the verdict, advice, replay, SQL and the named queries all read it. A step is steady if it is whole, after the
 * warm-up and not the last one. Call phases_analyse (phases.h), which finds the windows, then steady_find.
 *
 * Where nothing in an input says where steps begin, its only window is the whole recording and is not known as a step: `known` is false.
 */
#ifndef ANALYZE_STEADY_H
#define ANALYZE_STEADY_H

#include "analyze/steps/spans.h"

struct phases;

enum step_use {
	STEP_STEADY,
	/* the first of many steps, or an early step that is much longer than the others */
	STEP_WARM_UP,
	STEP_LAST,	 /* the last of many steps, or a last step unlike the others */
	STEP_INCOMPLETE, /* the recording begins or ends within the step */
	STEP_USES
};

/* Words for people that say why a step is left out: "warm-up". Empty for STEP_STEADY. */
extern const char *const step_use_words[STEP_USES];

/* A step of an input. */
struct phase_window {
	step_id step;
	source_id source;
	int64_t start_ns, end_ns;
	/* time since the end of the previous step; TIME_UNKNOWN for the first step */
	int64_t between_ns;
	uint64_t device_slices; /* number of device slices that start in the step */
	enum step_use use;
	bool known; /* false: nothing marks the steps, so this is the whole recording */
	uint32_t row_first, row_count; /* one row per lane of the input */
};

/* A step's marker on the host; work_end_ns is the end of the last device work launched in it, or
 * TIME_UNKNOWN. Markers come by begin. */
struct phase_marker {
	int64_t begin_ns, end_ns, work_end_ns;
	step_id step;
	bool known;
};

/* Makes windows of markers. `extended`: they end with the work that was launched in them; then the first begins after `backlog_ns`, the
 * end of work that was launched before the recording, or TIME_UNKNOWN. */
void steady_windows_make(const struct phase_marker *markers, uint32_t count, bool extended,
			 int64_t backlog_ns, struct phase_window *out);

/* Sets `use` of the windows of one rank, which are sorted by time. */
void steady_choose(struct phase_window *const *windows, uint32_t count);

/* Whether the first of a few steps is warm-up although it is not longer than the others: it spends much more time than they do on one thing other
 * than compute. `shares` are those of each step in turn, CLASS_COUNT each; they come by time. */
bool steady_first_is_cold(struct phase_window *const *windows, const int64_t *shares,
			  uint32_t count);
/* Up to this number of steps count as few; steady_first_is_cold is for them. */
#define STEADY_FEW 5

/* Steady steps of a job, or of one of its inputs. */

struct steady_steps {
	bool known; /* there are steps; otherwise step_ns is the whole recording */
	/* indices of the steady windows of the analysis, or of all windows if none is steady */
	uint32_t *used;
	uint32_t used_count; /* number of entries in `used` */
	uint32_t *left_out;  /* indices of left-out windows; their `use` says why */
	uint32_t left_out_count;
	int64_t step_ns; /* median duration of the used steps; TIME_UNKNOWN if there are none */
	int64_t mean_ns; /* mean duration of the used steps */
	/* length of the recording, from the first to the last slice, added up over inputs */
	int64_t span_ns;
	int64_t covered_ns; /* part of span_ns that lies in a step, left out or not */
	double coverage;    /* covered_ns / span_ns, 0 … 1 */
	bool chosen;	    /* some steps are steady; false: `used` has all steps */
};

/* Finds the steady steps. run 0: of all jobs; source nil: of all inputs. Arrays are in `arena`. */
ow_status steady_find(const struct model *m, const struct phases *p, uint32_t run, source_id source,
		      struct arena *arena, struct steady_steps *out, struct ow_error *err);

/* Times of a row of the model's table `step`, in the first input that has it. */
struct step_times {
	int64_t start_ns, end_ns; /* TIME_UNKNOWN if no part of the step has a time */
	enum step_use use;
	bool known; /* false: the row is a whole recording */
};

/* Returns the times of all steps (m->step.count items in `arena`). Steps of inputs without phases have the
 * times of their markers, or else of their events. */
ow_status steady_times(const struct model *m, const struct phases *p, struct arena *arena,
		       struct step_times **out, struct ow_error *err);

#endif
