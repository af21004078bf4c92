/*
 * straggler.c: finds workers that do more own work than their peers (peers.c), and what that costs the job. A long
 * collective does not make a rank a straggler, and neither does being the slowest: a straggler has to stand out from
 * its peers and from chance, step after step, and a replay in which it works like its peers has to be faster. Causes
 * and blame are in blame.c.
 */
#include "ranks/judge.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_TRANSIENT 0.10
#define LEAST_OF_TWO 0.05 /* least excess over a single peer, which may itself be the unusual one */
#define LEAST_STAGE 1.05
#define TRANSIENT_LEAST 6 /* with fewer steps than this, a single slow step says little */
#define WORK_MOST 2e8	  /* limit of items in all replays: above it only suspects are replayed */
/* above this number of items, workers that are not suspects are replayed in some steps only */
#define WORK_USUAL 2e7
#define REPLAYED_LEAST 8 /* at least this many steps are replayed */
#define MEDIAN_SURE                                                                                \
	6 /* a median over n steps differs by less than this times the noise / sqrt(n) */
/* above this error of the replay, slowdowns of jobs with servers of several sessions are unknown */
#define REPLAY_ERROR_MOST 0.1

double judge_middle_excess(struct judge *j, size_t worker, double *noise)
{
	const double *excess = &j->excess[worker * j->job->step_count];
	size_t count = 0;
	double middle;

	for (size_t s = 0; s < j->job->step_count; s++)
		if (!isnan(excess[s]))
			j->scratch[count++] = excess[s];
	middle = ranks_median_real(j->scratch, count);
	for (size_t i = 0; i < count; i++)
		j->scratch[i] = fabs(j->scratch[i] - middle);
	*noise = ranks_median_real(j->scratch, count);
	return middle;
}

/* Whether the excess of a worker is counted. If two workers are compared only with each other, one is above the
 * median by as much as the other is below it, so the pair counts once. */
static bool is_counted(const struct judge *j, size_t worker, size_t *peers)
{
	size_t first = worker;

	*peers = 0;
	for (size_t i = 0; i < j->job->worker_count; i++)
		if (is_peer(j, i, worker)) {
			++*peers;
			first = MIN(first, i);
		}
	return *peers != 1 || first == worker;
}

/* Among three workers one slow worker moves the median of the two others' peers, and all three seem to differ. The distance from the median of all three does not
 * have this fault; it is 0 for one of them, which the factor makes up for. */
static double distance_of_three(struct judge *j, size_t worker)
{
	size_t count = 0;

	for (size_t s = 0; s < j->job->step_count; s++) {
		const struct worker_step *mine = step_at(j, worker, s);
		double own[3] = { mine ? (double)mine->own_ns : 0 };
		size_t n = 1;

		for (size_t i = 0; i < j->job->worker_count && n < 3; i++) {
			const struct worker_step *other = step_at(j, i, s);

			if (other && is_peer(j, i, worker))
				own[n++] = (double)other->own_ns;
		}
		if (mine && n == 3 && ranks_median_real(own, n) > 0)
			j->scratch[count++] = fabs((double)mine->own_ns / own[1] - 1);
	}
	return count ? 1.5 * ranks_median_real(j->scratch, count) : 0;
}

/* Sets the excess from which a step counts as slow: above the random variation between steps, and above the usual
 * difference between workers. */
static ow_status find_threshold(struct judge *j)
{
	double *noise = ARENA_ARRAY(&j->arena, double, j->job->worker_count + 1);
	double *middle = ARENA_ARRAY(&j->arena, double, j->job->worker_count + 1), cross;
	size_t count = 0, most = 0, peers;

	if (!noise || !middle)
		return error_no_memory(j->err);
	for (size_t i = 0; i < j->job->worker_count; i++) {
		double own = 0,
		       one = is_judged(&j->job->workers[i]) ? judge_middle_excess(j, i, &own) : NAN;

		if (isnan(one) || j->apart[i] || !is_counted(j, i, &peers))
			continue;
		most = MAX(most, peers);
		noise[count] = own;
		middle[count++] = peers == 2 ? distance_of_three(j, i) : fabs(one);
	}
	j->threshold = j->usual = most == 1 ? LEAST_OF_TWO : LEAST_EXCESS;
	if (!count)
		return OW_OK;
	cross = 1.4826 * ranks_median_real(middle, count);
	if (count >= 4)
		j->usual = fmax(j->usual, 4 * cross);
	j->noise = 1.4826 * ranks_median_real(noise, count);
	j->threshold = fmax(j->usual, 5 * j->noise);
	return OW_OK;
}

/* Whether slow steps come at equal intervals. */
static bool is_periodic(const double *excess, size_t steps, double threshold)
{
	size_t last = SIZE_MAX, gap = 0, found = 0;

	for (size_t s = 0; s < steps; s++) {
		if (!(excess[s] > threshold))
			continue;
		if (last != SIZE_MAX) {
			if (gap && s - last != gap)
				return false;
			gap = s - last;
		}
		last = s;
		found++;
	}
	return found >= 3 && gap >= 2;
}

/* Whether a worker is slower in most steps, and by more in the median than chance moves a median of so many steps. Single steps may
 * vary by as much, for example with the lengths of batches. */
static bool is_slow_in_median(struct judge *j, size_t worker, uint32_t *slow)
{
	const double *excess = &j->excess[worker * j->job->step_count];
	uint32_t judged = j->job->workers[worker].judged_steps;
	double noise, middle = judge_middle_excess(j, worker, &noise);

	*slow = 0;
	for (size_t s = 0; s < j->job->step_count; s++)
		*slow += excess[s] > j->usual;
	return judged >= TRANSIENT_LEAST && *slow >= PERSISTENT_PART * judged &&
	       middle > fmax(j->usual, MEDIAN_SURE * j->noise / sqrt(judged));
}

static void classify(struct judge *j, size_t worker)
{
	struct worker *w = &j->job->workers[worker];
	const double *excess = &j->excess[worker * j->job->step_count];
	double high = fmax(j->threshold, LEAST_TRANSIENT);
	uint32_t slow = 0, far = 0, most = 0;

	for (size_t s = 0; s < j->job->step_count; s++) {
		if (isnan(excess[s]))
			continue;
		w->judged_steps++;
		slow += excess[s] > j->threshold;
		far += excess[s] > high;
	}
	w->slow_steps = slow;
	if (w->judged_steps < STEPS_LEAST)
		return;
	if (slow >= PERSISTENT_PART * w->judged_steps) {
		w->straggler = STRAGGLER_PERSISTENT;
		return;
	}
	if (is_slow_in_median(j, worker, &most)) {
		w->straggler = STRAGGLER_PERSISTENT;
		w->slow_steps = most;
		return;
	}
	if (w->judged_steps < TRANSIENT_LEAST)
		return;
	else if (is_periodic(excess, j->job->step_count, high))
		w->straggler = STRAGGLER_PERIODIC;
	else if (far)
		w->straggler = STRAGGLER_TRANSIENT;
	if (w->straggler == STRAGGLER_TRANSIENT || w->straggler == STRAGGLER_PERIODIC)
		w->slow_steps = far;
}

/* The length of a step in which the workers in j->like do as much work as their peers; -1 when the step cannot be
 * replayed. */
static int64_t replay_like(struct judge *j, size_t step)
{
	struct ranks_job *job = j->job;

	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker_step *s = j->like[i] ? step_at(j, i, step) : NULL;
		bool known = s && s->own_ns > 0 && s->others_ns != TIME_UNKNOWN;

		for (unsigned k = 0; k < LABELS; k++)
			j->scale[i * LABELS + k] =
				known ? (double)s->others_ns / (double)s->own_ns : 1;
	}
	return job_replay_step(j->replay, step, j->scale, TRANSFER_RECORDED);
}

/* Replays every `stride`-th step with the workers in j->like doing as much work as their peers; `out` receives the
 * lengths in ns, 0 where unknown. */
static void replay_some(struct judge *j, double *out, size_t stride)
{
	for (size_t s = 0; s < j->job->step_count; s++)
		out[s] = s % stride ? 0 : (double)MAX(replay_like(j, s), 0);
}

static void replay_steps(struct judge *j, double *out)
{
	replay_some(j, out, 1);
}

double judge_gain(struct judge *j, const double *with, const double *without, bool mean)
{
	double sum_with = 0, sum_without = 0;
	size_t count = 0;

	for (size_t s = 0; s < j->job->step_count; s++) {
		if (!(with[s] > 0) || !(without[s] > 0))
			continue;
		sum_with += with[s];
		sum_without += without[s];
		j->scratch[count++] = with[s] / without[s];
	}
	if (!count)
		return NAN;
	return mean ? sum_with / sum_without : ranks_median_real(j->scratch, count);
}

static bool is_rare(const struct worker *w)
{
	return w->straggler == STRAGGLER_TRANSIENT || w->straggler == STRAGGLER_PERIODIC;
}

static bool is_comparable(const struct judge *j, size_t worker)
{
	for (size_t s = 0; s < j->job->step_count; s++) {
		const struct worker_step *step = step_at(j, worker, s);

		if (step && step->own_ns > 0 && step->others_ns != TIME_UNKNOWN)
			return true;
	}
	return false;
}

/* How much longer the recorded step is than a step in which worker `one` does as much work as its peers. */
static double slowdown_of(struct judge *j, size_t one, size_t stride)
{
	if (!is_comparable(j, one))
		return NAN;
	memset(j->like, 0, j->job->worker_count * sizeof(*j->like));
	j->like[one] = true;
	replay_some(j, j->replayed, stride);
	return judge_gain(j, j->bases, j->replayed, is_rare(&j->job->workers[one]));
}

/* Prepares the replay for workers that may be stragglers: they get their peers' work between two collectives each. */
static ow_status compare_parts(struct judge *j)
{
	for (size_t i = 0; i < j->job->worker_count; i++)
		j->like[i] = j->job->workers[i].straggler != STRAGGLER_NONE;
	return job_replay_compare(j->replay, j->role, j->apart, j->like, j->err);
}

static double replay_items(const struct judge *j)
{
	double items = 0;

	for (size_t i = 0; i < j->job->worker_count; i++)
		items += (double)j->job->workers[i].collective_count;
	return items;
}

/* When several workers are slow at the same time, speeding up one alone gains nothing, because the others still hold up the job.
 * Such a worker counts if it makes the step longer when all others are as fast as their peers. */
static void weigh_together(struct judge *j)
{
	struct ranks_job *job = j->job;
	size_t suspects = 0;

	memset(j->like, 0, job->worker_count * sizeof(*j->like));
	for (size_t i = 0; i < job->worker_count; i++)
		if (job->workers[i].straggler != STRAGGLER_NONE) {
			j->like[i] = true;
			suspects++;
		}
	if (suspects < 2)
		return;
	replay_steps(j, j->all_like);
	for (size_t i = 0; i < job->worker_count; i++) {
		struct worker *w = &job->workers[i];

		if (w->straggler == STRAGGLER_NONE || w->slowdown_caused >= LEAST_SLOWDOWN)
			continue;
		j->like[i] = false;
		replay_steps(j, j->replayed);
		j->like[i] = true;
		w->slow_with_others =
			judge_gain(j, j->replayed, j->all_like, is_rare(w)) >= LEAST_SLOWDOWN;
	}
	job->slowdown_together = judge_gain(j, j->bases, j->all_like, false);
}

static void weigh(struct judge *j)
{
	double work = replay_items(j) * 6 * (double)j->job->worker_count;
	size_t most = MAX(j->job->step_count / REPLAYED_LEAST, (size_t)1),
	       stride = (size_t)fmin(fmax(ceil(work / WORK_USUAL), 1), (double)most);
	bool all = work / (double)stride < WORK_MOST;

	for (size_t i = 0; i < j->job->worker_count; i++) {
		struct worker *w = &j->job->workers[i];

		if (is_judged(w) && (all || w->straggler != STRAGGLER_NONE))
			w->slowdown_caused =
				slowdown_of(j, i, w->straggler != STRAGGLER_NONE ? 1 : stride);
	}
	weigh_together(j);
	for (size_t i = 0; i < j->job->worker_count; i++) {
		struct worker *w = &j->job->workers[i];

		if (!(w->slowdown_caused >= LEAST_SLOWDOWN) && !w->slow_with_others)
			w->straggler = STRAGGLER_NONE;
	}
}

static int32_t stage_count(const struct ranks_job *job)
{
	int32_t most = -1;

	for (size_t i = 0; i < job->worker_count; i++)
		if (is_judged(&job->workers[i])) {
			if (job->workers[i].stage < 0)
				return 0;
			most = MAX(most, job->workers[i].stage);
		}
	return most + 1;
}

static double stage_own(struct judge *j, int32_t stage, size_t step)
{
	size_t count = 0;

	for (size_t i = 0; i < j->job->worker_count; i++) {
		const struct worker_step *s = step_at(j, i, step);

		if (is_judged(&j->job->workers[i]) && j->job->workers[i].stage == stage && s)
			j->scratch[count++] = (double)s->own_ns;
	}
	return ranks_median_real(j->scratch, count);
}

/* Fills j->scale: for each worker, the factor that turns its work of one kind in a step into the median of its role.
 * `balanced`: into the mean of all workers that do this kind of work, because work can be moved between stages but does
 * not vanish.
 */
static void scale_to_peers(struct judge *j, size_t step, unsigned label, bool balanced)
{
	size_t workers = j->job->worker_count, count = 0, doing = 0, end;
	double sum = 0;

	for (size_t i = 0; i < workers; i++) {
		double own = (double)job_replay_own(j->replay, step, i)[label];

		if (!is_judged(&j->job->workers[i]) || own <= 0)
			continue;
		sum += own;
		doing++;
		if (!j->apart[i])
			j->peers[count++] = (struct peer){ j->role[i], (uint32_t)i, own };
	}
	if (count)
		qsort(j->peers, count, sizeof(*j->peers), peer_compare);
	for (size_t i = 0; i < workers; i++) {
		double own = (double)job_replay_own(j->replay, step, i)[label], target;
		size_t first = peers_of_role(j->peers, count, j->role[i], &end);

		target = balanced ? sum / (double)doing
				  : peers_median(j->peers, first, end, SIZE_MAX);
		j->scale[i * LABELS + label] =
			is_judged(&j->job->workers[i]) && own > 0 && target > 0 ? target / own : 1;
	}
}

double judge_slowdown(struct judge *j, bool balanced)
{
	struct ranks_job *job = j->job;
	double *ratio = ARENA_ARRAY(&j->arena, double, job->step_count + 1);
	size_t count = 0;

	for (size_t s = 0; ratio && s < job->step_count; s++) {
		int64_t replayed;

		for (unsigned label = 0; label < LABELS; label++)
			scale_to_peers(j, s, label, balanced);
		replayed = job_replay_step(j->replay, s, j->scale,
					   balanced ? TRANSFER_EVEN : TRANSFER_LIKE_OTHERS);
		if (replayed > 0 && j->bases[s] > 0)
			ratio[count++] = j->bases[s] / (double)replayed;
	}
	return ratio ? ranks_median_real(ratio, count) : NAN;
}

int32_t judge_heavy_stage(struct judge *j, double *ratio)
{
	int32_t stages = stage_count(j->job), heavy = -1;

	*ratio = 0;
	for (int32_t k = 0; k < stages; k++) {
		double *over = ARENA_ARRAY(&j->arena, double, j->job->step_count + 1), middle;
		size_t slow = 0, count = 0;

		for (size_t s = 0; over && s < j->job->step_count; s++) {
			double mine = stage_own(j, k, s), sum = 0;
			int32_t others = 0;

			for (int32_t o = 0; o < stages; o++) {
				double own = o == k ? NAN : stage_own(j, o, s);

				if (own > 0) {
					sum += own;
					others++;
				}
			}
			if (!others || !(mine > 0))
				continue;
			over[count] = mine / (sum / others);
			slow += over[count++] > LEAST_STAGE;
		}
		if (!count || (double)slow < PERSISTENT_PART * (double)count)
			continue;
		middle = ranks_median_real(over, count);
		if (middle > *ratio) {
			*ratio = middle;
			heavy = k;
		}
	}
	return heavy;
}

static ow_status replay_bases(struct judge *j)
{
	struct ranks_job *job = j->job;
	size_t count = 0;

	OW_TRY(job_replay_open(job, &j->replay, j->err));
	for (size_t s = 0; s < job->step_count; s++) {
		int64_t longest = 0;

		j->bases[s] = (double)job_replay_step(j->replay, s, NULL, TRANSFER_RECORDED);
		for (size_t i = 0; i < job->worker_count; i++) {
			const struct worker_step *step = step_at(j, i, s);

			if (step && is_judged(&job->workers[i]) && !job->workers[i].overlaps)
				longest = MAX(longest, span_length(step->start_ns, step->end_ns));
		}
		if (j->bases[s] > 0 && longest > 0)
			j->scratch[count++] = fabs(j->bases[s] / (double)longest - 1);
	}
	job->replay_error = ranks_median_real(j->scratch, count);
	return OW_OK;
}

/* A server that works for several sessions at once is not one program. Where the replay shows this, how much longer the step takes is not known. */
static void forget_slowdowns(struct ranks_job *job)
{
	bool overlaps = false;

	for (size_t i = 0; i < job->worker_count; i++)
		overlaps |= job->workers[i].overlaps;
	if (!overlaps || !(job->replay_error > REPLAY_ERROR_MOST))
		return;
	job->slowdown = NAN;
	for (size_t i = 0; i < job->worker_count; i++)
		job->workers[i].slowdown_caused = NAN;
}

static ow_status judge_all(struct judge *j)
{
	struct ranks_job *job = j->job;
	size_t workers = job->worker_count, steps = job->step_count;

	j->role = ARENA_ARRAY(&j->arena, uint32_t, workers + 1);
	j->host = ARENA_ARRAY(&j->arena, uint32_t, workers + 1);
	j->apart = ARENA_ARRAY(&j->arena, bool, workers + 1);
	j->like = ARENA_ARRAY(&j->arena, bool, workers + 1);
	j->peers = ARENA_ARRAY(&j->arena, struct peer, workers + 1);
	j->replayed = ARENA_ARRAY(&j->arena, double, steps + 1);
	j->all_like = ARENA_ARRAY(&j->arena, double, steps + 1);
	j->excess = ARENA_ARRAY(&j->arena, double, (workers + 1) * (steps + 1));
	j->scratch = ARENA_ARRAY(&j->arena, double, workers + steps + 1);
	j->scale = ARENA_ARRAY(&j->arena, double, (workers + 1) * LABELS);
	j->bases = ARENA_ARRAY(&j->arena, double, steps + 1);
	if (!j->role || !j->host || !j->apart || !j->like || !j->peers || !j->replayed ||
	    !j->all_like || !j->excess || !j->scratch || !j->scale || !j->bases)
		return error_no_memory(j->err);
	OW_TRY(replay_bases(j));
	judge_find_roles(j);
	OW_TRY(judge_find_hosts(j));
	judge_measure(j);
	OW_TRY(find_threshold(j));
	for (size_t i = 0; i < workers; i++)
		if (is_judged(&job->workers[i]))
			classify(j, i);
	OW_TRY(compare_parts(j));
	weigh(j);
	job->slowdown = judge_slowdown(j, stage_count(job) >= 2);
	for (size_t i = 0; i < workers; i++)
		if (job->workers[i].straggler != STRAGGLER_NONE)
			judge_find_cause(j, i);
	OW_TRY(judge_blame(j));
	forget_slowdowns(job);
	return OW_OK;
}

ow_status ranks_stragglers(struct ranks_job *job, struct ow_error *err)
{
	struct judge j = { .job = job, .err = err };
	size_t judged = 0;
	ow_status status;

	for (size_t i = 0; i < job->worker_count; i++)
		judged += is_judged(&job->workers[i]);
	if (job->clock == CLOCK_IMPOSSIBLE || judged < 2 || !job->step_count) {
		snprintf(job->blame_why, sizeof(job->blame_why), "%s",
			 judged < 2 || !job->step_count
				 ? "fewer than two ranks have the same steady steps"
				 : "the collectives of the ranks cannot be compared");
		return OW_OK;
	}
	arena_init(&j.arena, job->mem);
	status = judge_all(&j);
	job_replay_close(j.replay);
	arena_release(&j.arena);
	return status;
}
