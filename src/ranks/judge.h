/*
 * judge.h: what the parts of the search for stragglers share. peers.c finds which workers are
 * compared with each other, straggler.c finds slow workers and their cost, blame.c finds the cause
 * and whom to blame. Only these files include it; ranks.h declares the rest.
 */
#ifndef RANKS_JUDGE_H
#define RANKS_JUDGE_H

#include "ranks/ranks.h"

#define LEAST_EXCESS 0.03 /* as a share of the peers' own work */
#define LEAST_SLOWDOWN 1.02
#define PERSISTENT_PART 0.7
#define STEPS_LEAST 3

/* A value of one worker, sorted among the values of workers with the same role. */
struct peer {
	uint32_t role, worker;
	double value;
};

struct judge {
	struct ranks_job *job;
	struct ow_error *err;
	struct arena arena;
	struct job_replay *replay;
	uint32_t *role; /* role number of each worker, from 1 */
	uint32_t role_count;
	uint32_t *host; /* host number of each worker, from 0 */
	uint32_t host_count;
	/* for each worker: its host differs from the others as a whole, so the worker is not a
	 * peer of any other */
	bool *apart;
	/* for each worker: whether the next replay gives it its peers' work */
	bool *like;
	struct peer *peers; /* values of one step */
	/* own work above the peers' median, for each worker and step */
	double *excess;
	double *scratch;	     /* working memory: one entry per worker or step */
	double *scale;		     /* factor of own work, for each worker and kind of work */
	double *bases;		     /* length of each step when replayed as recorded */
	double *replayed, *all_like; /* length of each step in the replays of weigh_together */
	double threshold;	     /* excess from which a step counts as slow */
	double usual;		     /* excess that workers have over each other in a healthy job */
	double noise;		     /* standard deviation of the excess from step to step */
};

static inline bool is_judged(const struct worker *w)
{
	return !w->left_out && w->step_count;
}

static inline const struct worker_step *step_at(const struct judge *j, size_t worker, size_t step)
{
	return worker_step_of(&j->job->workers[worker], j->job->step_numbers[step]);
}

static inline bool is_peer(const struct judge *j, size_t other, size_t worker)
{
	return other != worker && j->role[other] == j->role[worker] &&
	       is_judged(&j->job->workers[other]) && !j->apart[other];
}

void judge_find_roles(struct judge *j);
/* Finds hosts that are slow as a whole and sets j->apart for their workers. */
ow_status judge_find_hosts(struct judge *j);
/* Compares the own work of each worker and step with its peers: fills j->excess and
 * worker_step.others_ns. */
void judge_measure(struct judge *j);
/* Comparison function for qsort: by role, then by value. */
int peer_compare(const void *a, const void *b);
/* The part of a sorted list that has one role: returns its beginning; *end is its end. */
size_t peers_of_role(const struct peer *peers, size_t count, uint32_t role, size_t *end);
/* The median of the values [first, end) except the one at `skip`; NaN if no value remains. */
double peers_median(const struct peer *peers, size_t first, size_t end, size_t skip);

/* The median of a worker's excess over all steps; *noise is the median distance from that
 * median. */
double judge_middle_excess(struct judge *j, size_t worker, double *noise);
/* How much longer the steps of `with` are than those of `without`: the median ratio, or the
 * ratio of the sums if only some steps differ. */
double judge_gain(struct judge *j, const double *with, const double *without, bool mean);
/* How much longer the recorded step is than a step in which every worker does as much work as
 * its peers; `balanced`: in which also all stages do equally much. */
double judge_slowdown(struct judge *j, bool balanced);
/* The pipeline stage whose own work is above the mean of the other stages in most steps; *ratio
 * is by how much. -1 when there is none. */
int32_t judge_heavy_stage(struct judge *j, double *ratio);

void judge_find_cause(struct judge *j, size_t worker);
ow_status judge_blame(struct judge *j);

#endif
