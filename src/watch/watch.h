/*
 * watch.h: recordings that are followed (live/follow/follow.h) and what is known about them: for each rank the last
 * steps and their phases, the operations, and CPU use. Each turn reads the new records and analyses them once. jobs.c
 * makes struct ow_job from it; anomaly.c waits for anomalies. The cost of an analysis is proportional to the records;
 * it is postponed where needed, to use only a small part of one processor.
 */
#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

#include "analyze/steps/phases.h"
#include "base/buf.h"
#include "live/follow/follow.h"
#include "opwatch/live.h"
#include "live/proc/metrics.h"
#include "model/builder.h"

#define WINDOW_NAME_MAX 96

/* What the ends of steps were derived from; later values are more certain. */
enum step_marker { STEPS_NONE, STEPS_REPEATED, STEPS_LOADER, STEPS_OPTIMIZER, STEPS_GIVEN };

struct window_step {
	int32_t rank; /* -1: the process has no rank */
	uint32_t pid; /* process that makes the steps; 0: unknown */
	enum step_marker marker;
	int64_t start_ns, end_ns; /* ns since 1970 */
	int64_t share[CLASS_COUNT];
	int64_t device_busy_ns;
	bool has_device;
	bool first; /* the first step of its rank in the analysed part: it may be cut short */
};

struct window_op {
	char name[WINDOW_NAME_MAX]; /* UTF-8 */
	int64_t self_ns;
	int64_t runs;
};

struct window_summary {
	struct arena arena;
	struct mem *mem;
	struct model *m;
	struct phases phases;
	/* sorted by rank, then by time; without markers one for each rank, for the whole time */
	struct window_step *steps;
	uint32_t count;
};

/* Analyses a whole file in memory, which must live as long as the summary. OW_E_EMPTY: it has no records. The caller
 * calls window_summary_release, also after a failure. */
ow_status window_summary_make(struct window_summary *look, struct mem *mem, const struct buf *file,
			      const char *step_marker, struct ow_error *err);
/* Analyses a file that a program wrote about itself. */
ow_status window_summary_read(struct window_summary *look, struct mem *mem, const char *path,
			      const char *step_marker, struct ow_error *err);
void window_summary_release(struct window_summary *look);

/* Finds the operations with the longest self time in a range of time, for one rank or all (-1): on devices if there
 * are any. At most `cap`; *count receives their number. */
ow_status window_summary_ops(struct window_summary *look, int64_t from_ns, int64_t to_ns,
			     int32_t rank, struct window_op *ops, size_t cap, size_t *count,
			     struct ow_error *err);

#define WATCH_STEPS 256u /* steps that are remembered for each rank */
#define WATCH_OPS 64u
#define WATCH_KEEP_NS (130 * 1000000000LL)
#define WATCH_SPAN_NS (10 * 1000000000LL)

struct watch_step {
	int64_t start_ns, end_ns;
	int64_t share[CLASS_COUNT];
	int64_t device_busy_ns;
};

/* A rank, or a process without a rank that makes steps: two trainings in one recording are two of these. */
struct watch_rank {
	int32_t rank;
	uint32_t pid; /* the latest process of the rank; 0: unknown */
	enum step_marker marker;
	bool has_device;
	int64_t last_end_ns; /* TIME_UNKNOWN: no step was seen yet */
	/* number of steps seen; the last WATCH_STEPS are in `steps`, number n at n % WATCH_STEPS */
	uint64_t count;
	struct watch_step steps[WATCH_STEPS];
	struct watch_step all; /* if there are no steps: the part that was analysed last */
};

struct watch_op {
	char name[WINDOW_NAME_MAX];
	double self_ns, runs;
};

struct watch_file {
	struct follow follow;
	/* a program writes the file about itself: steps_file.h reads it, not follow.h */
	bool own_steps;
	char name[96]; /* command of the recorded program */
	/* recordings with the same text belong to one job; empty: a job of its own */
	char group[160];
	struct watch_rank **ranks; /* sorted by rank, then pid */
	size_t rank_count, rank_cap;
	bool optimizer; /* its steps end with a call of the optimizer */
	/* sums in which older operations have less and less weight */
	struct watch_op ops[WATCH_OPS];
	size_t op_count;
	double op_steps; /* number of steps (or seconds) by which the sums are divided */
	double op_ns;	 /* total time of these steps, over all ranks */
	uint64_t looked_records;
	uint32_t restarts;
	int64_t looked_ns, due_ns; /* monotonic times of the last and the next analysis */
	int64_t ops_until_ns;	   /* wall-clock time up to which operations were added */
	int64_t look_cost_ns, look_gap_ns;
	uint64_t look_bytes; /* limit of records in one analysis, in bytes */
	struct job_meter meter;
	int64_t metered_ns;
	double cpu; /* number of processors used; negative: unknown */
	uint32_t alive;
	char problem[160]; /* why the last analysis failed; empty when it did not */
};

struct watch {
	struct mem *mem;
	int64_t span_ns;
	const char *step_marker;
	struct watch_file **files;
	size_t count, cap;
	struct nvml nvml;
	bool has_nvml;
	double gpu;
	char host[64];
	struct buf cut;
	/* Results of jobs.c. */
	struct arena arena; /* memory of the jobs */
	struct ow_job *jobs;
	size_t *job_files; /* for each job: its first file */
	size_t job_count;
};

void watch_init(struct watch *w, struct mem *mem, int64_t span_ns, const char *step_marker);
void watch_release(struct watch *w);
ow_status watch_add(struct watch *w, const char *path, struct ow_error *err);
/* Reads new records and analyses them when that is due. *more: there is more to read at once. */
ow_status watch_turn(struct watch *w, bool *more, struct ow_error *err);
/* Reads and analyses regardless of the cost. */
ow_status watch_turn_now(struct watch *w, struct ow_error *err);

/* Adds the results of an analysis. *taken: number of new steps. */
ow_status watch_take_summary(struct watch *w, struct watch_file *f, struct window_summary *look,
			     int64_t begin_ns, uint32_t *taken, struct ow_error *err);

/* Makes jobs from the results. */
ow_status watch_make_jobs(struct watch *w, struct ow_error *err);

/* A step by its number, from 0; it must be among the last WATCH_STEPS. */
static inline const struct watch_step *watch_step_at(const struct watch_rank *r, uint64_t number)
{
	return &r->steps[number % WATCH_STEPS];
}

/* The number of a rank's last steps that ended after a time; at least `least`, if there are that many. */
uint32_t watch_recent(const struct watch_rank *r, int64_t after_ns, uint32_t least);
/* The median of values; the array is reordered. */
int64_t watch_median(int64_t *values, size_t count);
/* The median duration of steps [from, to) of a rank. */
int64_t watch_step_median(const struct watch_rank *r, uint64_t from, uint64_t to);

#endif
