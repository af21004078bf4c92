/*
 * jobs.c: makes struct ow_job, which `opwatch top` shows, from watched recordings. Recordings of the same job are
 * combined. Called after each turn (watch.h); it reads no files.
 */
#include "watch/watch.h"

#include "base/clock.h"

#include "base/error.h"

#include <math.h>
#include <time.h>

#define LEAST_STEPS 5	/* at least this many steps count as recent, however long they took */
#define TREND_STEPS 8	/* the trend compares this many last steps with TREND_BEFORE earlier ones */
#define TREND_BEFORE 64 /* number of earlier steps for the trend */
/* the slowest rank is reported if it is slower than the middle one by this share */
#define STANDS_OUT 0.05
#define FAR_LONGER 4
#define SHOWN_OPS 12
#define SHOWN_STEPS 240
#define THROUGHPUT_NS 10e9
#define THROUGHPUT_STEPS 3

static bool find_value(struct str identity, const char *name, struct str *value)
{
	struct str word;

	while (str_split(&identity, '\0', &word))
		if (str_starts(word, str_from(name)) && word.len > strlen(name)) {
			*value = str_skip(word, strlen(name));
			return true;
		}
	return false;
}

static void find_group(struct watch_file *f)
{
	for (size_t i = 0; i < f->follow.process_count && !f->group[0]; i++) {
		struct str identity = follow_text(&f->follow.processes[i], LIVE_IDENTITY), a, b;

		if (!identity.len)
			continue;
		if (find_value(identity, "OPWATCH_JOB=", &a))
			snprintf(f->group, sizeof(f->group), "job %.*s", STR_ARG(a));
		else if (find_value(identity, "SLURM_JOB_ID=", &a))
			snprintf(f->group, sizeof(f->group), "slurm %.*s", STR_ARG(a));
		else if (find_value(identity, "MASTER_ADDR=", &a) &&
			 find_value(identity, "MASTER_PORT=", &b))
			snprintf(f->group, sizeof(f->group), "master %.*s:%.*s", STR_ARG(a),
				 STR_ARG(b));
	}
}

struct gather {
	struct watch *w;
	struct ow_job *job;
	struct watch_file **files;
	size_t file_count;
	struct watch_rank **ranks;
	size_t rank_count;
	bool has_device;
};

static int64_t newest_wall(const struct gather *g)
{
	int64_t newest = INT64_MIN;

	for (size_t i = 0; i < g->file_count; i++)
		if (g->files[i]->follow.newest_ns != INT64_MIN)
			newest = MAX(newest, follow_wall(&g->files[i]->follow,
							 g->files[i]->follow.newest_ns));
	return newest;
}

/* The current time, for a job whose processes live; else the time of its newest record. */
static int64_t present_wall(const struct gather *g)
{
	int64_t present = newest_wall(g), now = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < g->file_count; i++)
		if (g->files[i]->alive && g->files[i]->follow.newest_ns != INT64_MIN)
			present = MAX(present, follow_wall(&g->files[i]->follow, now));
	return present;
}

/* Means of the phases. Steps that took several times as long as most (a checkpoint, a stall) are left out, because
 * they would hide the others. */
static void mean_phases(const struct watch_rank *r, uint32_t recent, int64_t step_ns,
			int64_t *phases, double *device)
{
	double sums[CLASS_COUNT] = { 0 }, busy = 0, time = 0, count = 0;

	for (uint32_t i = 0; i < MAX(recent, 1u); i++) {
		const struct watch_step *s = recent ? watch_step_at(r, r->count - 1 - i) : &r->all;

		if (recent && s->end_ns - s->start_ns > step_ns * FAR_LONGER)
			continue;
		for (unsigned c = 0; c < CLASS_COUNT; c++)
			sums[c] += (double)s->share[c];
		busy += (double)s->device_busy_ns;
		time += (double)(s->end_ns - s->start_ns);
		count++;
	}
	for (unsigned k = 0; k < CLASS_COUNT; k++)
		phases[k] = (int64_t)(sums[phase_class_order[k]] / MAX(count, 1));
	*device = r->has_device && time > 0 ? busy / time : -1;
}

/* Time of a rank's step without waiting for other ranks. */
static int64_t own_time(const struct ow_job_rank *rank)
{
	int64_t own = 0;

	for (unsigned k = 0; k < CLASS_COUNT; k++)
		if (phase_class_order[k] != CLASS_COMMUNICATION)
			own += rank->phase_ns[k];
	return own;
}

/* Steps per second, over the last ten seconds, at least over three steps. */
static double throughput(const struct watch_rank *r)
{
	uint64_t kept = MIN(r->count, (uint64_t)WATCH_STEPS), n = 0;
	double sum = 0;

	while (n < kept && (n < THROUGHPUT_STEPS || sum < THROUGHPUT_NS)) {
		const struct watch_step *s = watch_step_at(r, r->count - ++n);

		sum += (double)(s->end_ns - s->start_ns);
	}
	return n && sum > 0 ? (double)n * 1e9 / sum : -1;
}

static void fill_rank(const struct gather *g, const struct watch_rank *r, int64_t now,
		      struct ow_job_rank *to, double *device)
{
	uint32_t recent = watch_recent(r, now - g->w->span_ns, LEAST_STEPS);

	*to = (struct ow_job_rank){ .rank = r->rank,
				    .pid = r->pid,
				    .steps = r->count,
				    .step_ns = -1,
				    .last_ns = -1,
				    .steps_per_s = throughput(r) };
	if (recent) {
		const struct watch_step *last = watch_step_at(r, r->count - 1);

		to->step_ns = watch_step_median(r, r->count - recent, r->count);
		to->last_ns = last->end_ns - last->start_ns;
	}
	mean_phases(r, recent, to->step_ns, to->phase_ns, device);
	to->own_ns = own_time(to);
}

static int by_own(const void *a, const void *b)
{
	const struct ow_job_rank *x = *(const struct ow_job_rank *const *)a;
	const struct ow_job_rank *y = *(const struct ow_job_rank *const *)b;

	return (x->own_ns > y->own_ns) - (x->own_ns < y->own_ns);
}

static ow_status find_slowest(struct gather *g, struct ow_error *err)
{
	struct ow_job *job = g->job;
	const struct ow_job_rank **order =
		ARENA_ARRAY(&g->w->arena, const struct ow_job_rank *, job->rank_count + 1);
	const struct ow_job_rank *slowest, *middle;

	job->slowest_rank = -1;
	if (!order)
		return error_no_memory(err);
	if (job->rank_count < 2)
		return OW_OK;
	for (size_t i = 0; i < job->rank_count; i++)
		order[i] = &job->ranks[i];
	qsort(order, job->rank_count, sizeof(*order), by_own);
	slowest = order[job->rank_count - 1];
	middle = order[(job->rank_count - 1) / 2]; /* with two ranks, the other one */
	if (middle->own_ns <= 0 || slowest->rank < 0)
		return OW_OK;
	job->slowest_by = (double)slowest->own_ns / (double)middle->own_ns - 1;
	if (job->slowest_by > STANDS_OUT)
		job->slowest_rank = slowest->rank;
	return OW_OK;
}

/* The change of the step time: the last steps against those before. */
static double trend_of(const struct watch_rank *r)
{
	uint64_t kept = MIN(r->count, (uint64_t)WATCH_STEPS);
	int64_t last, before;

	if (kept < TREND_STEPS * 2)
		return NAN;
	last = watch_step_median(r, r->count - TREND_STEPS, r->count);
	before = watch_step_median(r, r->count - MIN(kept, (uint64_t)TREND_BEFORE),
				   r->count - TREND_STEPS);
	return before > 0 ? (double)last / (double)before - 1 : NAN;
}

static ow_status fill_recent(struct gather *g, const struct watch_rank *r, struct ow_error *err)
{
	size_t count = (size_t)MIN(r->count, (uint64_t)SHOWN_STEPS);
	int64_t *recent = ARENA_ARRAY(&g->w->arena, int64_t, count + 1);

	if (!recent)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		const struct watch_step *s = watch_step_at(r, r->count - count + i);

		recent[i] = s->end_ns - s->start_ns;
	}
	g->job->recent = recent;
	g->job->recent_count = count;
	return OW_OK;
}

static ow_status fill_ranks(struct gather *g, struct ow_error *err)
{
	struct ow_job *job = g->job;
	struct ow_job_rank *ranks =
		ARENA_ARRAY(&g->w->arena, struct ow_job_rank, g->rank_count + 1);
	int64_t *times = ARENA_ARRAY(&g->w->arena, int64_t, g->rank_count + 1);
	int64_t newest = newest_wall(g), present = present_wall(g), sums[CLASS_COUNT] = { 0 };
	const struct watch_rank *first = NULL;
	size_t timed = 0, devices = 0;
	double busy = 0;

	if (!ranks || !times)
		return error_no_memory(err);
	for (size_t i = 0; i < g->rank_count; i++) {
		const struct watch_rank *r = g->ranks[i];
		double device;

		fill_rank(g, r, newest, &ranks[i], &device);
		/* of several processes without a rank, the one with the newest step is used */
		if (r->count &&
		    (!first || (first->rank < 0 && r->last_end_ns > first->last_end_ns)))
			first = r;
		if (r->count) {
			times[timed++] = ranks[i].step_ns;
			job->last_ns = MAX(job->last_ns, ranks[i].last_ns);
			job->since_ns = job->since_ns < 0
						? present - r->last_end_ns
						: MIN(job->since_ns, present - r->last_end_ns);
		}
		job->steps = MAX(job->steps, r->count);
		for (unsigned k = 0; k < CLASS_COUNT; k++)
			sums[k] += ranks[i].phase_ns[k] / (int64_t)g->rank_count;
		busy += device >= 0 ? device : 0;
		devices += device >= 0;
	}
	if (job->since_ns < 0 && newest != INT64_MIN)
		job->since_ns = present - newest;
	memcpy(job->phase_ns, sums, sizeof(sums));
	job->ranks = ranks;
	job->rank_count = g->rank_count;
	job->has_steps = first != NULL;
	job->step_ns = watch_median(times, timed);
	job->device = devices ? busy / (double)devices : -1;
	OW_TRY(find_slowest(g, err));
	if (!first)
		return OW_OK;
	job->trend = trend_of(first);
	return fill_recent(g, first, err);
}

static int by_time(const void *a, const void *b)
{
	const struct ow_job_op *x = a, *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Adds the operations of all recordings together; times are per step, or per second without steps. */
static ow_status fill_ops(struct gather *g, struct ow_error *err)
{
	struct ow_job *job = g->job;
	struct ow_job_op *ops =
		ARENA_ARRAY(&g->w->arena, struct ow_job_op, g->file_count * WATCH_OPS + 1);
	size_t count = 0;

	if (!ops)
		return error_no_memory(err);
	for (size_t i = 0; i < g->file_count; i++)
		for (size_t k = 0; k < g->files[i]->op_count && g->files[i]->op_steps > 0; k++) {
			const struct watch_op *op = &g->files[i]->ops[k];
			double files = (double)g->file_count, per = g->files[i]->op_steps * files;
			size_t at = 0;

			while (at < count && strcmp(ops[at].name, op->name) != 0)
				at++;
			count += at == count;
			ops[at].name = op->name;
			ops[at].self_ns += (int64_t)(op->self_ns / per);
			ops[at].runs += op->runs / per;
			/* the share refers to the steps that the operations were counted in, not to those of the
			 * phases */
			ops[at].share += g->files[i]->op_ns > 0
						 ? op->self_ns / g->files[i]->op_ns / files
						 : 0;
		}
	qsort(ops, count, sizeof(*ops), by_time);
	job->ops = ops;
	job->op_count = MIN(count, (size_t)SHOWN_OPS);
	return OW_OK;
}

static void fill_files(const struct gather *g)
{
	struct ow_job *job = g->job;
	bool ended = true, lost = true;

	for (size_t i = 0; i < g->file_count; i++) {
		const struct watch_file *f = g->files[i];
		size_t gone = 0;

		for (size_t k = 0; k < f->follow.process_count; k++)
			gone += f->follow.processes[k].ended;
		job->processes += (uint32_t)(f->follow.process_count - gone);
		job->records += f->follow.records;
		job->dropped += follow_dropped(&f->follow);
		job->damaged += f->follow.damaged;
		ended &= follow_has_ended(&f->follow) ||
			 (f->follow.process_count && gone == f->follow.process_count) ||
			 (f->follow.process_count && !f->alive &&
			  strcmp(f->follow.session.host, g->w->host) == 0);
		lost &= f->follow.removed;
		if (f->cpu >= 0)
			job->cpu = MAX(job->cpu, 0) + f->cpu;
		if (f->look_gap_ns > 0)
			job->cost += (double)f->look_cost_ns /
				     (double)MAX(f->look_gap_ns, (int64_t)1000000);
	}
	job->state = ended ? OW_JOB_ENDED : lost ? OW_JOB_LOST : OW_JOB_RUNS;
}

static ow_status fill_pids(const struct gather *g, struct ow_error *err)
{
	struct ow_job *job = g->job;
	int64_t *pids = ARENA_ARRAY(&g->w->arena, int64_t, job->processes + 1);

	if (!pids)
		return error_no_memory(err);
	for (size_t i = 0; i < g->file_count; i++) {
		const struct follow *f = &g->files[i]->follow;

		for (size_t k = 0; k < f->process_count && g->files[i]->alive; k++)
			if (!f->processes[k].ended)
				pids[job->pid_count++] = f->processes[k].row.pid;
	}
	job->pids = pids;
	return OW_OK;
}

static int by_rank(const void *a, const void *b)
{
	const struct watch_rank *x = *(const struct watch_rank *const *)a;
	const struct watch_rank *y = *(const struct watch_rank *const *)b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static ow_status fill_job(struct gather *g, struct ow_error *err)
{
	struct watch_file *first = g->files[0];
	const char *slash = strrchr(first->follow.path, '/');
	size_t count = 0;

	*g->job = (struct ow_job){ .size = sizeof(*g->job),
				   .path = first->follow.path,
				   .recordings = (uint32_t)g->file_count,
				   .step_ns = -1,
				   .last_ns = -1,
				   .since_ns = -1,
				   .trend = NAN,
				   .cpu = -1,
				   .device = -1,
				   .gpu = g->w->gpu,
				   .slowest_rank = -1 };
	g->job->name = first->name[0] ? first->name : slash ? slash + 1 : first->follow.path;
	for (size_t i = 0; i < g->file_count; i++)
		count += g->files[i]->rank_count;
	g->ranks = ARENA_ARRAY(&g->w->arena, struct watch_rank *, count + 1);
	if (!g->ranks)
		return error_no_memory(err);
	for (size_t i = 0; i < g->file_count; i++)
		for (size_t k = 0; k < g->files[i]->rank_count; k++)
			g->ranks[g->rank_count++] = g->files[i]->ranks[k];
	qsort(g->ranks, g->rank_count, sizeof(*g->ranks), by_rank);
	fill_files(g);
	OW_TRY(fill_pids(g, err));
	OW_TRY(fill_ranks(g, err));
	return fill_ops(g, err);
}

static bool same_job(const struct watch_file *a, const struct watch_file *b)
{
	return a->group[0] && strcmp(a->group, b->group) == 0;
}

ow_status watch_make_jobs(struct watch *w, struct ow_error *err)
{
	struct watch_file **files;
	bool *used;

	arena_clear(&w->arena);
	w->job_count = 0;
	w->jobs = ARENA_ARRAY(&w->arena, struct ow_job, w->count + 1);
	w->job_files = ARENA_ARRAY(&w->arena, size_t, w->count + 1);
	files = ARENA_ARRAY(&w->arena, struct watch_file *, w->count + 1);
	used = ARENA_ARRAY(&w->arena, bool, w->count + 1);
	if (!w->jobs || !w->job_files || !files || !used)
		return error_no_memory(err);
	for (size_t i = 0; i < w->count; i++)
		find_group(w->files[i]);
	for (size_t i = 0; i < w->count; i++) {
		struct gather g = { .w = w, .job = &w->jobs[w->job_count], .files = files };

		if (used[i])
			continue;
		for (size_t k = i; k < w->count; k++)
			if (k == i || (!used[k] && same_job(w->files[i], w->files[k]))) {
				used[k] = true;
				files[g.file_count++] = w->files[k];
			}
		OW_TRY(fill_job(&g, err));
		w->job_files[w->job_count++] = i;
	}
	return OW_OK;
}
