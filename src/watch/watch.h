/*
 * watch.h: recordings that are followed (live/follow/follow.h) and what is known of them: per rank the last steps
 * and their phases, the operations, and CPU use. Each turn reads what is new and analyses it once. jobs.c makes
 * struct ow_job of it; anomaly.c waits for anomalies.
 *
 * Analysing costs time in proportion to the records; it is postponed where needed to use only a small part of one
 * processor.
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

/* What the ends of steps were taken from; a later one is surer. */
enum step_marker { STEPS_NONE, STEPS_REPEATED, STEPS_LOADER, STEPS_OPTIMIZER, STEPS_GIVEN };

struct window_step {
	int32_t rank; /* -1: there are none */
	uint32_t pid; /* of the process that takes the steps; 0: not known */
	enum step_marker marker;
	int64_t start_ns, end_ns; /* since 1970 */
	int64_t share[CLASS_COUNT];
	int64_t device_busy_ns;
	bool has_device;
	bool first; /* of its rank in what was looked at: it may be cut short */
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
	struct window_step
		*steps; /* by rank, then by time; without markers one per rank, of all the time */
	uint32_t count;
};

/* A whole file in memory, which must live as long as the look. OW_E_EMPTY: nothing was recorded in it. window_summary_release is
 * due in any case. */
ow_status window_summary_make(struct window_summary *look, struct mem *mem, const struct buf *file,
			      const char *step_marker, struct ow_error *err);
/* The same of a file that a program wrote of itself. */
ow_status window_summary_read(struct window_summary *look, struct mem *mem, const char *path,
			      const char *step_marker, struct ow_error *err);
void window_summary_release(struct window_summary *look);

/* The operations that took longest by themselves in a part of the time, of one rank or of all (-1): of devices where
 * there are any. At most `cap`; how many there are. */
ow_status window_summary_ops(struct window_summary *look, int64_t from_ns, int64_t to_ns,
			     int32_t rank, struct window_op *ops, size_t cap, size_t *count,
			     struct ow_error *err);

#define WATCH_STEPS 256u /* that are remembered, per rank */
#define WATCH_OPS 64u
#define WATCH_KEEP_NS (130 * 1000000000LL)
#define WATCH_SPAN_NS (10 * 1000000000LL)

struct watch_step {
	int64_t start_ns, end_ns;
	int64_t share[CLASS_COUNT];
	int64_t device_busy_ns;
};

/* A rank, or a process that takes steps and has none: two trainings in one recording are two of these. */
struct watch_rank {
	int32_t rank;
	uint32_t pid; /* the last one of a rank; 0: not known */
	enum step_marker marker;
	bool has_device;
	int64_t last_end_ns; /* TIME_UNKNOWN: no step was seen yet */
	uint64_t count; /* seen; the last WATCH_STEPS are in steps, number n at n % WATCH_STEPS */
	struct watch_step steps[WATCH_STEPS];
	struct watch_step all; /* without steps: what was looked at last */
};

struct watch_op {
	char name[WINDOW_NAME_MAX];
	double self_ns, runs;
};

struct watch_file {
	struct follow follow;
	bool own_steps;	 /* a program writes it of itself: steps_file.h reads it, not follow.h */
	char name[96];	 /* what it runs */
	char group[160]; /* recordings with the same one belong to one job; empty: by itself */
	struct watch_rank **ranks; /* by rank, then pid */
	size_t rank_count, rank_cap;
	bool optimizer;			/* its steps end with a call of the optimizer */
	struct watch_op ops[WATCH_OPS]; /* what was seen long ago counts less and less */
	size_t op_count;
	double op_steps; /* or seconds: what their times are divided by */
	double op_ns;	 /* how long these steps took, all ranks together */
	uint64_t looked_records;
	uint32_t restarts;
	int64_t looked_ns, due_ns; /* monotonic */
	int64_t ops_until_ns;	   /* wall: operations up to there were added */
	int64_t look_cost_ns, look_gap_ns;
	uint64_t look_bytes; /* of records, in one look */
	struct job_meter meter;
	int64_t metered_ns;
	double cpu; /* processors; negative: not known */
	uint32_t alive;
	char problem[160]; /* why the last look failed; empty when it did not */
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
	/* jobs.c */
	struct arena arena; /* of the jobs */
	struct ow_job *jobs;
	size_t *job_files; /* of each: its first file */
	size_t job_count;
};

void watch_init(struct watch *w, struct mem *mem, int64_t span_ns, const char *step_marker);
void watch_release(struct watch *w);
ow_status watch_add(struct watch *w, const char *path, struct ow_error *err);
/* Reads what is new and looks at it when it is due. *more: there is more to read at once. */
ow_status watch_turn(struct watch *w, bool *more, struct ow_error *err);
/* Reads and looks regardless of what it costs. */
ow_status watch_turn_now(struct watch *w, struct ow_error *err);

/* Adds what was looked at to what is known. *taken: steps that were not seen before. */
ow_status watch_take_summary(struct watch *w, struct watch_file *f, struct window_summary *look,
			     int64_t begin_ns, uint32_t *taken, struct ow_error *err);

/* Makes jobs of what was seen. */
ow_status watch_make_jobs(struct watch *w, struct ow_error *err);

/* A step by its number, from 0; it must be among the last WATCH_STEPS. */
static inline const struct watch_step *watch_step_at(const struct watch_rank *r, uint64_t number)
{
	return &r->steps[number % WATCH_STEPS];
}

/* The last n steps of a rank that ended after some time; at least `least` as far as there are this many. */
uint32_t watch_recent(const struct watch_rank *r, int64_t after_ns, uint32_t least);
/* The median of values, which are put in another order. */
int64_t watch_median(int64_t *values, size_t count);
/* Of the durations of steps [from, to) of a rank. */
int64_t watch_step_median(const struct watch_rank *r, uint64_t from, uint64_t to);

#endif
