/*
 * watch.h: recordings that are followed (live/follow.h) and what was seen of them: per rank the times of the last steps
 * and their phases, operations, use of processors. Each turn reads what is new and looks at it once (look.h); steps that
 * were seen before are not looked at again. jobs.c makes struct ow_job of it, attention.c waits for trouble.
 *
 * Looking costs time with the records that come; it is put off such that it takes a small part of a processor.
 */
#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

#include "live/follow.h"
#include "live/metrics.h"
#include "watch/look.h"

#define WATCH_STEPS 256u /* that are remembered, per rank */
#define WATCH_OPS 64u
#define WATCH_KEEP_NS (130 * 1000000000LL)
#define WATCH_SPAN_NS (10 * 1000000000LL)

struct watch_step {
	int64_t start_ns, end_ns;
	int64_t share[CLASS_COUNT];
	int64_t device_busy_ns;
};

struct watch_rank {
	int32_t rank;
	enum look_marker marker;
	bool has_device;
	int64_t last_end_ns; /* TIME_UNKNOWN: no step was seen yet */
	uint64_t count; /* seen; the last WATCH_STEPS are in steps, number n at n % WATCH_STEPS */
	struct watch_step steps[WATCH_STEPS];
	struct watch_step all; /* without steps: what was looked at last */
};

struct watch_op {
	char name[LOOK_NAME];
	double self_ns, runs;
};

struct watch_file {
	struct follow follow;
	char name[96];	 /* what it runs */
	char group[160]; /* recordings with the same one are of one job; empty: by itself */
	struct watch_rank **ranks; /* by rank */
	size_t rank_count, rank_cap;
	bool optimizer;			/* its steps end with one */
	struct watch_op ops[WATCH_OPS]; /* what was seen long ago counts less and less */
	size_t op_count;
	double op_steps; /* or seconds: what their times are divided by */
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
ow_status watch_add(struct watch *w, const char *path, struct error *err);
/* Reads what is new and looks at it when it is due. *more: there is more to read at once. */
ow_status watch_turn(struct watch *w, bool *more, struct error *err);
/* Reads and looks regardless of what it costs. */
ow_status watch_turn_now(struct watch *w, struct error *err);

/* Makes jobs of what was seen. */
ow_status watch_make_jobs(struct watch *w, struct error *err);

/* A step by its number, from 0; it must be among the last WATCH_STEPS. */
static inline const struct watch_step *watch_step_at(const struct watch_rank *r, uint64_t number)
{
	return &r->steps[number % WATCH_STEPS];
}

/* The last n steps of a rank that ended after some time; at least `least` as far as there are so many. */
uint32_t watch_recent(const struct watch_rank *r, int64_t after_ns, uint32_t least);
/* The median of values, which are put in another order. */
int64_t watch_median(int64_t *values, size_t count);
/* Of the durations of steps [from, to) of a rank. */
int64_t watch_step_median(const struct watch_rank *r, uint64_t from, uint64_t to);

#endif
