/*
 * rule_collective_wait.c: time in collectives that is waiting for the last rank. It needs the recordings of several ranks. Which collectives are one and the
 * same, how far the clocks are apart and how long each rank waits is what src/ranks finds; where that is not certain, nothing is said. The
 * saving is that of a replay in which the rank that waits least does its work like its peers; without such a replay it is the mean wait: with equal
 * ranks no rank waits.
 */
#include "advise/advice.h"
#include "ranks/ranks.h"

#define LEAST_PART 0.06 /* smallest wait that is reported, as a part of a step */

struct waits {
	bool known;
	char why[320];	 /* reason why the waits are unknown */
	int64_t mean_ns; /* mean wait per steady step and rank */
	int32_t rank;	 /* rank that waits least, so the others wait for it; -1 = unknown */
	/* "; " and the line in which that rank spends more time than its peers, if it is known */
	char line[160];
};

static void find_waits(const struct ranks_job *job, struct waits *w)
{
	int64_t sum = 0, least = INT64_MAX;
	size_t count = 0;

	*w = (struct waits){ .rank = -1 };
	for (size_t i = 0; i < job->worker_count && job->waits_known; i++) {
		const struct worker *one = &job->workers[i];
		struct rank_means mean;

		if (one->left_out || !one->has_clock || !ranks_means(job, one, &mean))
			continue;
		sum = span_add(sum, mean.wait_ns);
		if (mean.wait_ns < least) {
			least = mean.wait_ns;
			w->rank = one->rank;
			*w->line = '\0';
			if (one->straggler != STRAGGLER_NONE && one->slow_line.len)
				snprintf(w->line, sizeof(w->line), "; %.*s",
					 (int)MIN(one->slow_line.len, sizeof(w->line) - 3),
					 one->slow_line.ptr);
		}
		count++;
	}
	for (size_t i = 0; i < job->worker_count; i++)
		if (job->workers[i].task.len) {
			/* servers wait for workers and workers for servers, also in a healthy job */
			snprintf(w->why, sizeof(w->why),
				 "TensorFlow tasks exchange messages, not collectives; `opwatch "
				 "ranks` compares them");
			return;
		}
	w->known = count >= 2;
	w->mean_ns = count ? sum / (int64_t)count : 0;
	snprintf(w->why, sizeof(w->why), "waits are not known: %s",
		 *job->waits_why   ? job->waits_why
		 : *job->clock_why ? job->clock_why
				   : "the ranks have no steps with the same collectives");
}

static ow_status measure_waits(struct advice *a, struct waits *w)
{
	struct ranks_job job;
	ow_status status;

	ranks_init(&job, a->m->mem);
	status = ranks_add(&job, a->m, STR(""), a->err);
	if (status == OW_OK && job.worker_count)
		status = ranks_finish(&job, a->err);
	if (status == OW_OK)
		find_waits(&job, w);
	ranks_release(&job);
	return status;
}

/* Replays the steps with the slow rank's work reduced to that of its peers. */
static ow_status report_slow_rank(struct advice *a, const struct waits *w, struct report *report)
{
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_SCALE };
	char time[TIME_TEXT];
	double *factors;
	int32_t rank = w->rank;

	OW_TRY(rank_factors(&a->s, rank, &a->scratch, &factors, a->err));
	if (rank < 0 || !factors)
		return OW_OK;
	for (uint32_t l = 0; l < g->lane_count; l++)
		for (uint32_t i = g->lanes[l].first; i < g->lanes[l].first + g->lanes[l].count; i++)
			if (is_of_rank(g, &g->lanes[l], i, rank) && factors[node_op(g, i).v] != 1)
				OW_TRY(cost_add(a, &cost, i));
	cost.factors = ARENA_ARRAY(&a->scratch, double, cost.count + 1);
	if (!cost.factors)
		return error_no_memory(a->err);
	for (size_t i = 0; i < cost.count; i++)
		cost.factors[i] = factors[node_op(g, cost.nodes[i]).v];
	report->where = advice_text(a, "rank %d arrives last%s", rank, w->line);
	report->what = advice_text(a,
				   "ranks wait for each other in collectives: %s per step in the "
				   "mean, above all for rank %d",
				   time_text(time, w->mean_ns), rank);
	return advice_report(a, &cost, report);
}

/* Without a replay: reports the exposed part of the time that other ranks wait for this rank. */
static ow_status report_waits(struct advice *a, const struct waits *w, struct report *report)
{
	struct cost none = { 0 };
	char time[TIME_TEXT];
	uint32_t ranks = MAX(a->m->source.count - 1, 2u);
	int64_t wait;

	wait = MIN(w->mean_ns / (ranks - 1) * ranks, a->share_ns[CLASS_COMMUNICATION]);
	if (w->rank < 0 || (double)wait < LEAST_PART * (double)a->step_ns)
		return OW_OK;
	report->class = CLASS_COMMUNICATION;
	report->where = advice_text(a, "rank %d arrives last%s", w->rank, w->line);
	report->what = advice_text(a,
				   "ranks wait for each other in collectives: %s per step, above "
				   "all for rank %d",
				   time_text(time, wait), w->rank);
	return advice_report_part(a, &none, wait, report);
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("give every rank the same work: equal batches and sequence "
			      "lengths, the same input speed; 'opwatch phases' shows the ranks"),
		.falsified_by = STR("swap the data of two ranks: if another rank is slow then, the "
				    "data is the cause; if not, the machine is"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};
	struct waits w;
	int64_t wait;
	char time[TIME_TEXT];

	(void)err;
	if (!advice_has_nodes(a) || a->m->source.count <= 2)
		return advice_not_checked(a, "needs the recordings of several ranks of the job");
	OW_TRY(measure_waits(a, &w));
	if (!w.known)
		return advice_not_checked(a, "%s", w.why);
	if (a->s.g.joined_count)
		return advice_replays(a) ? report_slow_rank(a, &w, &report)
					 : report_waits(a, &w, &report);
	/* Waits that overlap with compute cost nothing. */
	wait = MIN(w.mean_ns, a->mean_ns[CLASS_COMMUNICATION]);
	if ((double)wait < LEAST_PART * (double)a->step_ns)
		return OW_OK;
	report.where = w.rank >= 0 ? advice_text(a, "rank %d arrives last%s", w.rank, w.line)
				   : STR("one of the ranks arrives last");
	report.what =
		advice_text(a, "ranks wait for each other in collectives: %s per step in the mean",
			    time_text(time, wait));
	return advice_remark(a, SEVERITY_MEDIUM, 0, wait, true, &report, (struct str){ 0 });
}

const struct rule rule_collective_wait = {
	.name = "collective_wait",
	.summary = "time in collectives that is waiting for the last rank",
	.doc = "collective_wait",
	.advise = advise,
};
