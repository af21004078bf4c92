/*
 * sampler.h: the Python stacks of several processes, and of those that they start, sampled repeatedly. The caller
 * says when (sampler_tick), or lets it run by the clock (sampler_run). One thread; sampled processes are never
 * stopped.
 *
 * sample_rows adds samples to the model: one track per thread, metrics `wall` and `cpu`.
 */
#ifndef LIVE_SAMPLER_H
#define LIVE_SAMPLER_H

#include "live/pystack/py_process.h"
#include "model/builder.h"

struct sampled; /* one process (private to sampler.c) */

struct sampler {
	struct mem *mem;
	bool children; /* also sample child processes */
	struct sampled **items;
	size_t count, cap;
	int64_t scanned_ns; /* time of the last search for children */
	/* Processor time that sampling may use per tick; 0: no limit. Unused time is saved up; without any left, ticks are
	 * left out and counted. */
	int64_t allowance_ns;
	bool own_thread; /* sampling runs on its own thread, so its whole CPU time counts */
	int64_t credit_ns, cpu_mark_ns;
	uint32_t left_out_in_row; /* number of skipped ticks before this one */
	/* Sums of ended processes; see sampler_sums. */
	uint64_t samples, torn, reads;
	uint64_t left_out;
	uint32_t processes;
};

struct sampler_sums {
	uint64_t samples, torn, reads;
	uint64_t left_out;  /* number of skipped ticks */
	uint32_t processes; /* number of processes that were ever sampled */
	uint32_t alive;	    /* number of processes that are sampled now */
};

void sampler_init(struct sampler *s, struct mem *mem, bool children);
void sampler_release(struct sampler *s);
/* Adds a process, which must be a readable Python process. One that is just starting is waited for, at
 * most two seconds. */
ow_status sampler_add(struct sampler *s, pid_t pid, struct ow_error *err);

/* Adds any process; it is sampled as soon as it runs Python. False if memory runs out. */
bool sampler_watch(struct sampler *s, pid_t pid);

/* Limits sampling to 1 % of a processor at up to 100 ticks a second; above, in proportion. */
void sampler_limit(struct sampler *s, uint32_t hz, bool own_thread);

/* Takes one sample of all processes. Times are nanoseconds of any monotonic clock. Fails only if memory runs out;
 * ended processes are forgotten. */
ow_status sampler_tick(struct sampler *s, int64_t now_ns, py_take_fn take, void *arg,
		       struct ow_error *err);
/* Returns a process that is sampled as a Python process now; or NULL. */
struct py_process *sampler_find(const struct sampler *s, pid_t pid);
void sampler_sums(const struct sampler *s, struct sampler_sums *sums);

/* Adds all processes of the jobs, also those without Python. False if memory runs out. */
bool sampler_pids(const struct sampler *s, struct pid_list *list);

struct sampler_clock {
	uint32_t hz;
	int64_t for_ns; /* how long to sample; 0: until all processes have ended */
	/* called before every sample, returns false to stop; NULL: never stop */
	bool (*go_on)(void *arg);
	int64_t (*now)(void *arg); /* returns the times of the samples; steady */
	/* Waits until that time of the steady clock, or a signal; NULL: sleeps. */
	void (*wait)(void *arg, int64_t until_ns);
	void *arg;
	/* number of ticks, and of ticks missed because the machine was busy */
	uint64_t ticks, late_ticks;
};
/* Samples until the time is over, all processes have ended, or go_on returns false. Ticks vary randomly by a quarter
 * of their interval, so that they do not synchronise with the sampled program. */
ow_status sampler_run(struct sampler *s, struct sampler_clock *clock, py_take_fn take, void *arg,
		      struct ow_error *err);

struct sample_rows {
	struct builder *b;
	const struct sampler *sampler;
	struct sample_row_thread *threads; /* threads; item 0 is not used */
	size_t count, cap;
	metric_id wall, cpu;
	int64_t period_ns;
	int64_t now_ns; /* set by the caller before a tick */
};

/* Prepares rows; samples belong to b->source. */
void sample_rows_init(struct sample_rows *rows, struct builder *b, const struct sampler *sampler,
		      int64_t period_ns);
void sample_rows_release(struct sample_rows *rows);
/* Adds a sample; a py_take_fn whose arg is the struct sample_rows. Failures are reported by the
 * builder. */
void sample_rows_take(void *arg, struct py_process *p, struct py_thread *thread);

#endif
