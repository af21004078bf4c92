/*
 * blame.c: why a straggler is slow, and who is to blame for the length of the step (judge.h): ranks, a host, a pipeline stage, an expert, or a slow link; the one
 * without which the replay gains most. "None" is an answer.
 */
#include "ranks/judge.h"

#include "base/vec.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

enum part { PART_INPUT, PART_COMPUTE, PART_HOST, PARTS };

static double part_ns(const struct worker_step *s, enum part part)
{
	const int64_t *c = s->class_ns;

	switch (part) {
	case PART_INPUT:
		return (double)c[CLASS_INPUT];
	case PART_COMPUTE:
		return (double)(c[CLASS_COMPUTE] + c[CLASS_HOST_TO_DEVICE] +
				c[CLASS_DEVICE_TO_HOST]);
	default:
		return (double)(c[CLASS_HOST] + c[CLASS_LAUNCH] + c[CLASS_ALLOCATION] +
				c[CLASS_INITIALISATION] + c[CLASS_SYNCHRONISATION] + c[CLASS_IDLE]);
	}
}

/* How many ns longer a part of the step (computation, input, …) takes on a worker, in its slow
 * steps, than on the median of its peers. */
static double part_excess(struct judge *j, size_t worker, enum part part)
{
	struct ranks_job *job = j->job;
	const double *excess = &j->excess[worker * job->step_count];
	double sum = 0, limit = job->workers[worker].straggler == STRAGGLER_PERSISTENT
					? j->usual
					: j->threshold;

	for (size_t s = 0; s < job->step_count; s++) {
		const struct worker_step *mine = step_at(j, worker, s);
		size_t count = 0;

		if (!mine || !(excess[s] > limit))
			continue;
		for (size_t i = 0; i < job->worker_count; i++) {
			const struct worker_step *other = step_at(j, i, s);

			if (other && is_peer(j, i, worker))
				j->scratch[count++] = part_ns(other, part);
		}
		if (count)
			sum += part_ns(mine, part) - ranks_median_real(j->scratch, count);
	}
	return sum;
}

/* A number of a worker (calls, float operations, bytes) summed over all its operations, per
 * step. */
struct work_sum {
	double count, flops, ns;
};

static struct work_sum work_of(const struct worker *w)
{
	struct work_sum sum = { 0 };

	for (size_t i = 0; i < w->op_count; i++) {
		sum.count += (double)w->ops[i].count;
		sum.flops += (double)w->ops[i].float_ops * (double)w->ops[i].count;
		sum.ns += (double)w->ops[i].ns;
	}
	sum.count /= fmax((double)w->step_count, 1);
	sum.flops /= fmax((double)w->step_count, 1);
	return sum;
}

/* The ratio of a worker's calls, float operations or all-to-all bytes to the median of its
 * peers; 1 when unknown. */
static double work_ratio(struct judge *j, size_t worker, unsigned which)
{
	double mine = 0, others;
	size_t count = 0;

	for (size_t i = 0; i < j->job->worker_count; i++) {
		const struct worker *w = &j->job->workers[i];
		struct work_sum sum;
		double value = 0;

		if (i != worker && !is_peer(j, i, worker))
			continue;
		sum = work_of(w);
		value = which == 0 ? sum.count : sum.flops;
		for (size_t k = 0; which == 2 && k < w->collective_count; k++)
			if (w->collectives[k].kind == COLLECTIVE_ALL_TO_ALL &&
			    w->collectives[k].bytes > 0)
				value += (double)w->collectives[k].bytes;
		if (which == 2)
			value -= sum.flops;
		if (i == worker)
			mine = value;
		else
			j->scratch[count++] = value;
	}
	others = ranks_median_real(j->scratch, count);
	return others > 0 && mine > 0 ? mine / others : 1;
}

/* The median device frequency of the peers divided by that of the worker; 1 when unknown. */
static double frequency_ratio(struct judge *j, size_t worker)
{
	size_t count = 0;

	for (size_t i = 0; i < j->job->worker_count; i++)
		if (is_peer(j, i, worker) && j->job->workers[i].frequency > 0)
			j->scratch[count++] = j->job->workers[i].frequency;
	if (!count || !(j->job->workers[worker].frequency > 0))
		return 1;
	return ranks_median_real(j->scratch, count) / j->job->workers[worker].frequency;
}

/* The operation of a worker whose time exceeds the peers' time for the same operation by most. */
static const struct worker_op *worst_op(struct judge *j, size_t worker, double *ratio)
{
	const struct worker *w = &j->job->workers[worker];
	const struct worker_op *worst = NULL;
	double most = 0;

	for (size_t i = 0; i < w->op_count; i++) {
		double mine = (double)w->ops[i].ns, others;
		size_t count = 0;

		for (size_t k = 0; k < j->job->worker_count; k++) {
			const struct worker *other = &j->job->workers[k];

			if (!is_peer(j, k, worker))
				continue;
			j->scratch[count] = 0;
			for (size_t o = 0; o < other->op_count; o++)
				if (other->ops[o].name == w->ops[i].name)
					j->scratch[count] += (double)other->ops[o].ns;
			count++;
		}
		others = ranks_median_real(j->scratch, count);
		if (mine - others > most) {
			most = mine - others;
			*ratio = others > 0 ? mine / others : HUGE_VAL;
			worst = &w->ops[i];
		}
	}
	return worst;
}

/* Time that a line of code takes in a steady step, on the device or on the host. */
static double line_ns(const struct worker *w, const struct worker_line *line, bool device)
{
	size_t steady = 0;

	for (size_t s = 0; s < w->step_count; s++)
		steady += w->steps[s].use == STEP_STEADY;
	return (double)(device ? line->device_ns : line->host_ns) / fmax((double)steady, 1);
}

/* The line of code in which the worker spends most time beyond the median of its peers: work of the device that it launched, unless the host is the cause. */
static void find_line(struct judge *j, size_t worker)
{
	struct worker *w = &j->job->workers[worker];
	bool device = w->cause != CAUSE_INPUT && w->cause != CAUSE_HOST && w->has_device;
	double most = 0;

	for (size_t i = 0; i < w->line_count; i++) {
		double mine = line_ns(w, &w->lines[i], device), more;
		size_t count = 0;

		if (mine <= most)
			continue;
		for (size_t k = 0; k < j->job->worker_count; k++) {
			const struct worker *other = &j->job->workers[k];

			if (!is_peer(j, k, worker))
				continue;
			j->scratch[count] = 0;
			for (size_t l = 0; l < other->line_count; l++)
				if (other->lines[l].name == w->lines[i].name)
					j->scratch[count] +=
						line_ns(other, &other->lines[l], device);
			count++;
		}
		more = mine - (count ? ranks_median_real(j->scratch, count) : mine);
		if (more > most) {
			most = more;
			w->slow_line = w->lines[i].text;
			w->line_excess_ns = llround(more);
		}
	}
}

static enum cause cause_by_op(const struct worker_op *op)
{
	static const struct {
		const char *word;
		enum cause cause;
	} words[] = { { "gc", CAUSE_HOST },	   { "garbage", CAUSE_HOST },
		      { "load", CAUSE_INPUT },	   { "batch", CAUSE_INPUT },
		      { "input", CAUSE_INPUT },	   { "data", CAUSE_INPUT },
		      { "compute", CAUSE_COMPUTE } };

	if (!op)
		return CAUSE_UNKNOWN;
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (str_has(op->text, str_from(words[i].word)))
			return words[i].cause;
	return CAUSE_COMPUTE;
}

static enum cause cause_of(struct judge *j, size_t worker, const struct worker_op *op,
			   double middle)
{
	double parts[PARTS];
	enum part largest = PART_INPUT;

	for (unsigned p = 0; p < PARTS; p++) {
		parts[p] = part_excess(j, worker, (enum part)p);
		if (parts[p] > parts[largest])
			largest = (enum part)p;
	}
	if (parts[largest] > 0 && largest != PART_COMPUTE)
		return largest == PART_INPUT ? CAUSE_INPUT : CAUSE_HOST;
	if (!(parts[largest] > 0) && cause_by_op(op) != CAUSE_COMPUTE)
		return cause_by_op(op);
	if (work_ratio(j, worker, 0) > 1.03 || work_ratio(j, worker, 1) > 1.03 ||
	    work_ratio(j, worker, 2) > 1.10)
		return CAUSE_MORE_WORK;
	/* A lower device frequency is the cause when it explains at least half of the worker's
	 * excess time. */
	if (frequency_ratio(j, worker) - 1 > fmax(0.02, middle / 2))
		return CAUSE_CLOCK_FREQUENCY;
	return CAUSE_COMPUTE;
}

/* Appends formatted text to a buffer of `size` bytes; text that does not fit is cut off. */
static __attribute__((format(printf, 3, 4))) void add_text(char *text, size_t size,
							   const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, size - len, format, args);
	va_end(args);
}

void judge_find_cause(struct judge *j, size_t worker)
{
	struct worker *w = &j->job->workers[worker];
	double ratio = 1, noise, middle = judge_middle_excess(j, worker, &noise);
	const struct worker_op *op = worst_op(j, worker, &ratio);

	w->cause = cause_of(j, worker, op, middle);
	find_line(j, worker);
	add_text(
		w->evidence, sizeof(w->evidence),
		"%s own work than its peers%s: %+.1f %% in the median step, slow in %u of %u steps",
		middle >= 0 ? "more" : "less", j->apart[worker] ? " on other hosts" : "",
		100 * middle, w->slow_steps, w->judged_steps);
	if (w->cause == CAUSE_CLOCK_FREQUENCY)
		add_text(w->evidence, sizeof(w->evidence),
			 "; its device runs at %.0f %% of the peers' clock",
			 100 / frequency_ratio(j, worker));
	else if (op && w->cause != CAUSE_INPUT && w->cause != CAUSE_HOST && isfinite(ratio))
		add_text(w->evidence, sizeof(w->evidence), "; %.*s takes %.2f times as long",
			 (int)MIN(op->text.len, 80u), op->text.ptr, ratio);
	if (w->slow_line.len)
		add_text(w->evidence, sizeof(w->evidence), "; %.2f ms more per step in %.*s",
			 (double)w->line_excess_ns / 1e6, (int)MIN(w->slow_line.len, 80u),
			 w->slow_line.ptr);
	if (w->slow_with_others)
		add_text(w->evidence, sizeof(w->evidence),
			 "; with the other slow ranks it makes the step %.2f times as long",
			 j->job->slowdown_together);
}

static ow_status add_blamed(struct judge *j, int64_t number)
{
	struct ranks_job *job = j->job;

	return vec_push(job->mem, job->blamed, job->blamed_count, job->blamed_cap, number)
		       ? OW_OK
		       : error_no_memory(j->err);
}

/* Whether the stragglers are exactly the workers of hosts that are slow as a whole. */
static bool are_hosts(const struct judge *j)
{
	for (size_t i = 0; i < j->job->worker_count; i++)
		if (j->job->workers[i].straggler != STRAGGLER_NONE && !j->apart[i])
			return false;
	return true;
}

static ow_status blame_workers(struct judge *j)
{
	struct ranks_job *job = j->job;
	const struct worker *worst = NULL;

	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];

		if (w->straggler == STRAGGLER_NONE)
			continue;
		if (!worst || w->slowdown_caused > worst->slowdown_caused)
			worst = w;
		OW_TRY(add_blamed(j, w->rank >= 0 ? w->rank : (int64_t)i));
	}
	if (!worst)
		return OW_OK;
	job->blame = are_hosts(j) ? BLAME_HOST
		     : worst->cause == CAUSE_MORE_WORK &&
				     work_ratio(j, (size_t)(worst - job->workers), 2) > 1.10
			     ? BLAME_EXPERT
			     : BLAME_RANK;
	if (job->blame == BLAME_HOST)
		add_text(job->blame_why, sizeof(job->blame_why),
			 "host %.*s: ", (int)MIN(worst->host.len, 60u), worst->host.ptr);
	add_text(job->blame_why, sizeof(job->blame_why), "%s", worst->evidence);
	return OW_OK;
}

/* How much longer the recorded step is than a replayed step in which slow groups move data as
 * fast as groups like them, and a hot parameter server as fast as the other servers. */
static double slowdown_by_links(struct judge *j)
{
	if (!j->job->slow_link_count && !j->job->hot.found)
		return 1;
	for (size_t s = 0; s < j->job->step_count; s++)
		j->replayed[s] =
			(double)MAX(job_replay_step(j->replay, s, NULL, TRANSFER_LIKE_OTHERS), 0);
	return judge_gain(j, j->bases, j->replayed, false);
}

static bool is_member(const struct ranks_job *job, const struct slow_link *link, size_t worker)
{
	const struct meeting *m = &job->meetings[link->meeting];

	for (uint32_t i = 0; i < m->count; i++)
		if (job->members[m->first + i].worker == worker)
			return true;
	return false;
}

/* The time that a slow group loses in all its collectives against groups like it. */
static double link_loss(const struct ranks_job *job, const struct slow_link *link)
{
	double loss = 0;

	for (size_t i = 0; i < job->slow_link_count; i++) {
		const struct slow_link *other = &job->slow_links[i];
		const struct meeting *a = &job->meetings[link->meeting],
				     *b = &job->meetings[other->meeting];
		bool same = a->count == b->count;

		for (uint32_t k = 0; k < a->count && same; k++)
			same = job->members[a->first + k].worker ==
			       job->members[b->first + k].worker;
		if (same)
			loss += other->median_ns - other->others_ns;
	}
	return loss;
}

/* The rank that is a member of all slow groups, if there are two or more groups of different
 * ranks; else SIZE_MAX. */
static size_t shared_member(const struct ranks_job *job)
{
	size_t found = SIZE_MAX, whole = 0;

	for (size_t w = 0; w < job->worker_count; w++) {
		size_t in = 0;

		for (size_t i = 0; i < job->slow_link_count; i++)
			in += is_member(job, &job->slow_links[i], w);
		if (in == job->slow_link_count) {
			found = w;
			whole++;
		}
	}
	return whole == 1 && job->slow_link_count > 1 ? found : SIZE_MAX;
}

static ow_status blame_link_member(struct judge *j, size_t worker, const struct slow_link *link,
				   double slowdown)
{
	struct worker *w = &j->job->workers[worker];

	OW_TRY(add_blamed(j, w->rank));
	if (w->straggler == STRAGGLER_NONE)
		w->slowdown_caused = slowdown;
	w->straggler = STRAGGLER_PERSISTENT;
	w->cause = CAUSE_COMMUNICATION;
	w->slow_line = STR("");
	w->evidence[0] = '\0';
	add_text(w->evidence, sizeof(w->evidence), "%s", collective_names[link->kind]);
	if (link->bytes > 0)
		add_text(w->evidence, sizeof(w->evidence), " of %.1f MB",
			 (double)link->bytes / 1e6);
	add_text(w->evidence, sizeof(w->evidence),
		 " takes its group %.2f ms after the last rank has arrived, %.2f times as long as ",
		 link->median_ns / 1e6, link->median_ns / link->others_ns);
	if (link->alike == 1)
		add_text(w->evidence, sizeof(w->evidence), "the one group like it");
	else
		add_text(w->evidence, sizeof(w->evidence), "the %zu groups like it", link->alike);
	return OW_OK;
}

static ow_status blame_link(struct judge *j, double slowdown)
{
	struct ranks_job *job = j->job;
	const struct slow_link *worst = &job->slow_links[0];
	size_t shared = shared_member(job);

	for (size_t i = 1; i < job->slow_link_count; i++)
		if (link_loss(job, &job->slow_links[i]) > link_loss(job, worst))
			worst = &job->slow_links[i];
	job->blame = shared == SIZE_MAX ? BLAME_LINK : BLAME_RANK;
	for (size_t i = 0; i < job->worker_count; i++)
		if (shared == SIZE_MAX ? is_member(job, worst, i) : i == shared)
			OW_TRY(blame_link_member(j, i, worst, slowdown));
	snprintf(job->blame_why, sizeof(job->blame_why), "%s",
		 job->workers[job->members[job->meetings[worst->meeting].first].worker].evidence);
	if (shared != SIZE_MAX)
		snprintf(job->blame_why, sizeof(job->blame_why), "%s",
			 job->workers[shared].evidence);
	return OW_OK;
}

static ow_status blame_server(struct judge *j, double slowdown)
{
	struct ranks_job *job = j->job;
	const struct hot_server *hot = &job->hot;
	struct worker *w = &job->workers[hot->worker];
	/* Bytes are the cause when they explain at least half of the excess. */
	bool larger =
		hot->others_bytes > 0 && hot->bytes / hot->others_bytes - 1 >
						 fmax(0.1, (hot->busy_ns / hot->others_ns - 1) / 2);

	OW_TRY(add_blamed(j, w->rank));
	job->blame = BLAME_RANK;
	if (w->straggler == STRAGGLER_NONE || w->slowdown_caused < slowdown)
		w->slowdown_caused = slowdown;
	w->straggler = STRAGGLER_PERSISTENT;
	w->cause = larger ? CAUSE_MORE_WORK : CAUSE_COMMUNICATION;
	w->slow_line = STR("");
	w->evidence[0] = '\0';
	add_text(w->evidence, sizeof(w->evidence),
		 "messages of %.*s are under way for %.2f ms of a step, %.2f times as long as ",
		 (int)MIN(w->task.len, 60u), w->task.ptr, hot->busy_ns / 1e6,
		 hot->busy_ns / hot->others_ns);
	if (hot->alike == 1)
		add_text(w->evidence, sizeof(w->evidence), "those of the other parameter server");
	else
		add_text(w->evidence, sizeof(w->evidence),
			 "those of the %zu other parameter servers", hot->alike);
	if (hot->others_bytes > 0)
		add_text(w->evidence, sizeof(w->evidence),
			 "; they have %.2f times as many bytes (%.1f MB)",
			 hot->bytes / hot->others_bytes, hot->bytes / 1e6);
	snprintf(job->blame_why, sizeof(job->blame_why), "%s", w->evidence);
	return OW_OK;
}

ow_status judge_blame(struct judge *j)
{
	struct ranks_job *job = j->job;
	double ratio, even = 0, rank = 1, link;
	int32_t stage = judge_heavy_stage(j, &ratio);

	for (size_t i = 0; i < job->worker_count; i++)
		if (job->workers[i].straggler != STRAGGLER_NONE)
			rank = fmax(rank, job->workers[i].slow_with_others
						  ? job->slowdown_together
						  : job->workers[i].slowdown_caused);
	if (stage >= 0) {
		double peers = judge_slowdown(j, false);

		even = peers > 0 ? job->slowdown / peers : 0;
	}
	link = slowdown_by_links(j);
	if (link >= LEAST_SLOWDOWN && link > rank && link > even)
		return job->hot.found ? blame_server(j, link) : blame_link(j, link);
	/* A pipeline stage that does more work only while it would wait anyway does not make the
	 * step longer. */
	if (stage < 0 || !(even >= LEAST_SLOWDOWN) || even < rank ||
	    !(job->slowdown >= LEAST_SLOWDOWN))
		return blame_workers(j);
	job->blame = BLAME_STAGE;
	snprintf(job->blame_why, sizeof(job->blame_why),
		 "stage %d does %.2f times the own work of the mean of the other stages", stage,
		 ratio);
	return add_blamed(j, stage);
}
