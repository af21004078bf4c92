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

struct sampled; /* one process */

struct sampler {
	struct mem *mem;
	bool children; /* follow what is started */
	struct sampled **items;
	size_t count, cap;
	int64_t scanned_ns; /* when children were looked for */
	/* Processor time that sampling may use per tick; 0: no limit. Unused time is saved up; without any left, ticks are
	 * left out and counted. */
	int64_t allowance_ns;
	bool own_thread; /* sampling includes everything that this thread does between two ticks */
	int64_t credit_ns, cpu_mark_ns;
	uint32_t left_out_in_row; /* ticks before this one */
	/* sums of the processes that have ended; see sampler_sums */
	uint64_t samples, torn, reads;
	uint64_t left_out;
	uint32_t processes;
};

struct sampler_sums {
	uint64_t samples, torn, reads;
	uint64_t left_out;  /* ticks */
	uint32_t processes; /* ever sampled */
	uint32_t alive;	    /* are sampled now */
};

void sampler_init(struct sampler *s, struct mem *mem, bool children);
void sampler_release(struct sampler *s);
/* A process must be a Python one that we may read. One that is just starting is waited for, two seconds at most. */
ow_status sampler_add(struct sampler *s, pid_t pid, struct ow_error *err);

/* The same for any process, whatever it runs: it is sampled as soon as it is a Python one. False without memory. */
bool sampler_watch(struct sampler *s, pid_t pid);

/* Looking takes no more than a hundredth of a processor at 100 ticks a second or fewer; of more, as much for each. */
void sampler_limit(struct sampler *s, uint32_t hz, bool own_thread);

/* Times are nanoseconds of any clock that does not go backwards. Only memory fails; a process that has ended is
 * forgotten. */
ow_status sampler_tick(struct sampler *s, int64_t now_ns, py_take_fn take, void *arg,
		       struct ow_error *err);
/* One that is sampled as a Python process at present; or NULL. */
struct py_process *sampler_find(const struct sampler *s, pid_t pid);
void sampler_sums(const struct sampler *s, struct sampler_sums *sums);

/* Adds all processes of the jobs, also those that do not run Python. False without memory. */
bool sampler_pids(const struct sampler *s, struct pid_list *list);

struct sampler_clock {
	uint32_t hz;
	int64_t for_ns;		   /* 0: until all have ended */
	bool (*go_on)(void *arg);  /* asked before every sample; NULL: always */
	int64_t (*now)(void *arg); /* what the samples' times are; steady */
	/* Waits until that time of the steady clock, or a signal; NULL: sleeps. */
	void (*wait)(void *arg, int64_t until_ns);
	void *arg;
	uint64_t ticks, late_ticks; /* late: the machine was too busy for them */
};
/* Samples until the time is over, all processes have ended, or go_on says no. Ticks are spread by a quarter of their
 * distance, so that they do not fall into step with what they measure. */
ow_status sampler_run(struct sampler *s, struct sampler_clock *clock, py_take_fn take, void *arg,
		      struct ow_error *err);

struct sample_rows {
	struct builder *b;
	const struct sampler *sampler;
	struct sample_row_thread *threads; /* 0 is not used */
	size_t count, cap;
	metric_id wall, cpu;
	int64_t period_ns;
	int64_t now_ns; /* set by the caller before a tick */
};

/* Samples belong to b->source. */
void sample_rows_init(struct sample_rows *rows, struct builder *b, const struct sampler *sampler,
		      int64_t period_ns);
void sample_rows_release(struct sample_rows *rows);
/* A py_take_fn; arg is the struct sample_rows. Failures are the builder's. */
void sample_rows_take(void *arg, struct py_process *p, struct py_thread *thread);

#endif
