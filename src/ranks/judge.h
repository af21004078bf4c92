/*
 * judge.h: what the parts of the search for stragglers share: peers.c finds who is compared with whom, straggler.c who is slow and what it costs, blame.c why, and
 * who is to blame. Only they include it; ranks.h has the rest.
 */
#ifndef RANKS_JUDGE_H
#define RANKS_JUDGE_H

#include "ranks/ranks.h"

#define LEAST_EXCESS 0.03 /* of the peers' own work */
#define LEAST_SLOWDOWN 1.02
#define PERSISTENT_PART 0.7
#define STEPS_LEAST 3

/* A value of a worker among those of its role. */
struct peer {
	uint32_t role, worker;
	double value;
};

struct judge {
	struct ranks_job *job;
	struct ow_error *err;
	struct arena arena;
	struct job_replay *replay;
	uint32_t *role; /* per worker: number of its role, from 1 */
	uint32_t role_count;
	uint32_t *host; /* per worker: number of its host, from 0 */
	uint32_t host_count;
	bool *apart; /* per worker: of a host that differs from the others as a whole, and no one's peer */
	bool *like;		     /* per worker: like its peers in the next replay */
	struct peer *peers;	     /* of one step */
	double *excess;		     /* per worker and step */
	double *scratch;	     /* per worker or step */
	double *scale;		     /* per worker and kind of work */
	double *bases;		     /* per step: replayed as recorded */
	double *replayed, *all_like; /* per step, of weigh_together */
	double threshold;
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

/* ---- peers.c ---- */

void judge_find_roles(struct judge *j);
/* Workers of hosts that are slow as a whole: j->apart. */
ow_status judge_find_hosts(struct judge *j);
/* Own work of each worker and step against its peers: j->excess and worker_step.others_ns. */
void judge_measure(struct judge *j);
/* For qsort: by role and value. */
int peer_compare(const void *a, const void *b);
/* Of a sorted list, the part of one role: its begin. */
size_t peers_of_role(const struct peer *peers, size_t count, uint32_t role, size_t *end);
/* The median of the values of [first, end) without the one at `skip`; NaN without any. */
double peers_median(const struct peer *peers, size_t first, size_t end, size_t skip);

/* ---- straggler.c ---- */

/* The median of the excess of a worker over the steps; *noise: the median distance from it. */
double judge_middle_excess(struct judge *j, size_t worker, double *noise);
/* How much longer the steps of `with` are than those of `without`: in the median, or of the sums where only some steps differ. */
double judge_gain(struct judge *j, const double *with, const double *without, bool mean);
/* The step as recorded, against the step with every worker like its peers; balanced: also every stage like the others. */
double judge_slowdown(struct judge *j, bool balanced);
/* The stage whose own work is above the mean of the others in most steps, and how far; -1 when none is. */
int32_t judge_heavy_stage(struct judge *j, double *ratio);

/* ---- blame.c ---- */

void judge_find_cause(struct judge *j, size_t worker);
ow_status judge_blame(struct judge *j);

#endif
