/*
 * rule_launch_bound.c: a device that waits because the host launches its work too slowly: many short kernels, each with an operator and a call.
 * The cost is the host's short pieces between launches, the calls and their latency; the floor is none of it, as with a captured
 * graph. Long pieces of host code are the rule host_code.
 */
#include "advise/advice.h"

/* a gap between host events of at most this length is part of launching */
#define DISPATCH_NS 100000
#define OPERATOR_NS 1000000 /* a piece of an operator of at most this length is part of launching */
#define LEAST_KERNELS 20    /* smallest number of kernels per step for which the rule applies */
#define TINY_NS 20000	    /* median duration of kernels that count as tiny */
/* with more kernels than this per launch, the program already launches graphs */
#define OF_A_GRAPH 3

static bool is_dispatch(const struct graph *g, const struct lane *lane, uint32_t i)
{
	if (g->flags[i] & (NODE_IN_INPUT | NODE_ONCE))
		return false;
	if (g->kind[i] == NODE_LAUNCH)
		return true;
	if (g->kind[i] != NODE_HOST && g->kind[i] != NODE_GAP)
		return false;
	if (gap_is_long(g, lane, i, DISPATCH_NS))
		return false;
	return g->weight_ns[i] < (node_is_operator(g, i) ? OPERATOR_NS : DISPATCH_NS);
}

enum { LAUNCHES = 1, STARVES = 2 };

/* Returns whether a stream had no work left when the launch of its next work ended. */
static bool is_starving(const struct graph *g, const struct lane *lane, uint32_t node)
{
	uint32_t call = g->launch[node] - 1;

	return node == lane->first ||
	       node_end(g, node - 1) <= node_end(g, call) + g->launch_latency_ns;
}

/* Marks each host node that launches work for which a stream is waiting. */
static ow_status find_starving(struct advice *a, uint8_t **out)
{
	const struct graph *g = &a->s.g;
	uint8_t *marks = ARENA_ARRAY(&a->scratch, uint8_t, (size_t)g->node_count + 1);

	if (!marks)
		return error_no_memory(a->err);
	for (uint32_t l = 0; l < g->lane_count; l++)
		for (uint32_t i = g->lanes[l].first; i < g->lanes[l].first + g->lanes[l].count;
		     i++) {
			uint32_t call = g->launch[i] ? g->launch[i] - 1 : 0;

			if (!g->launch[i])
				continue;
			marks[call] |= LAUNCHES;
			if (is_starving(g, &g->lanes[l], i))
				marks[call] |= STARVES;
		}
	*out = marks;
	return OW_OK;
}

/* Selects the work of a thread before each launch for which a stream waited. */
static ow_status select_dispatch(struct advice *a, struct cost *cost)
{
	const struct graph *g = &a->s.g;
	uint8_t *marks;

	OW_TRY(find_starving(a, &marks));
	for (uint32_t l = 0; l < g->lane_count; l++) {
		bool starves = false;

		for (uint32_t i = g->lanes[l].first + g->lanes[l].count; i-- > g->lanes[l].first;) {
			if (marks[i] & LAUNCHES)
				starves = marks[i] & STARVES;
			if (g->lanes[l].device ? g->launch[i] && marks[g->launch[i] - 1] & STARVES
					       : starves && is_dispatch(g, &g->lanes[l], i))
				OW_TRY(cost_add(a, cost, i));
		}
	}
	return OW_OK;
}

static ow_status median_kernel(struct advice *a, int64_t *median, double *per_step)
{
	const struct graph *g = &a->s.g;
	int64_t *times;
	uint32_t count = 0, room = 0;

	for (uint32_t i = 0; i < g->node_count; i++)
		room += (g->flags[i] & NODE_DEVICE) != 0;
	times = ARENA_ARRAY(&a->scratch, int64_t, (size_t)room + 1);
	if (!times)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->flags[i] & NODE_DEVICE && node_is_steady(a, i))
			times[count++] = g->weight_ns[i];
	*per_step = (double)count / a->steps;
	*median = median_of_many(times, count);
	return OW_OK;
}

/* Returns in *graphs whether most kernels are launched together by one call, so that there is no
 * call per kernel to save. */
static ow_status find_graphs(struct advice *a, bool *graphs)
{
	const struct graph *g = &a->s.g;
	uint8_t *seen = ARENA_ARRAY(&a->scratch, uint8_t, (size_t)g->node_count + 1);
	uint64_t kernels = 0, calls = 0;

	if (!seen)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < g->node_count; i++) {
		if (!(g->flags[i] & NODE_DEVICE) || !g->launch[i] || !node_is_steady(a, i))
			continue;
		kernels++;
		calls += !seen[g->launch[i]];
		seen[g->launch[i]] = 1;
	}
	*graphs = calls && kernels / calls >= OF_A_GRAPH;
	return OW_OK;
}

/* Returns the host time per kernel, without the time of the device. */
static int64_t host_per_kernel(const struct advice *a, const struct cost *cost, double kernels)
{
	const struct graph *g = &a->s.g;
	double sum = 0;

	for (size_t i = 0; i < cost->count; i++)
		if (!(g->flags[cost->nodes[i]] & NODE_DEVICE) && node_is_steady(a, cost->nodes[i]))
			sum += (double)g->weight_ns[cost->nodes[i]];
	return (int64_t)(sum / a->steps / kernels);
}

/* Used without a replay: host code between launches also delays them. If launching is a smaller part of that time
 * than this percentage, the host does something else. */
#define LAUNCH_PART 10

static ow_status report_shares(struct advice *a, struct report *report)
{
	struct cost cost = { .effect = EFFECT_LAUNCH };
	int64_t kernel,
		part = span_add(span_add(a->share_ns[CLASS_LAUNCH], a->share_ns[CLASS_HOST]),
				a->share_ns[CLASS_IDLE]);
	char text[TIME_TEXT];
	bool between;
	double count;

	OW_TRY(median_kernel(a, &kernel, &count));
	between = count >= LEAST_KERNELS && a->share_ns[CLASS_LAUNCH] >= part / LAUNCH_PART;
	if (!between)
		part = a->share_ns[CLASS_LAUNCH];
	report->class = between ? CLASS_HOST : CLASS_LAUNCH;
	report->what = advice_text(
		a, "the device waits for %s of a step while the host launches work%s",
		time_text(text, part), between ? ", or runs code between launches" : "");
	return advice_report_part(a, &cost, part, report);
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = a->framework == FRAMEWORK_TORCH
				  ? STR("capture the work in a CUDA graph, or torch.compile(mode="
					"'reduce-overhead'); a fused or foreach optimizer; larger "
					"batches")
				  : STR("compile or fuse the work into fewer kernels, launch it as "
					"a graph, "
					"use larger batches"),
		.falsified_by =
			STR("double the batch: if the step takes as long, the device was waiting "
			    "for launches; if it takes twice as long, it was not"),
		.most = CONFIDENCE_HIGH,
		.class = CLASS_LAUNCH
	};
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_LAUNCH };
	char kernel_text[TIME_TEXT], host_text[TIME_TEXT];
	int64_t kernel, host;
	double count;
	bool graphs;

	(void)err;
	if (!a->has_steps)
		return advice_not_checked(a, "no steps with timed work");
	if (!advice_replays(a)) {
		report.where = STR("launches");
		if (advice_has_nodes(a) && g->has_device &&
		    (double)a->share_ns[CLASS_LAUNCH] >= a->settings.medium * (double)a->step_ns)
			return report_shares(a, &report);
		report.what = advice_text(a, "%s of a step launch work while the device waits",
					  time_text(host_text, a->share_ns[CLASS_LAUNCH]));
		return advice_report_share(a, CLASS_LAUNCH, &report);
	}
	if (!g->has_device)
		return advice_not_checked(a, "no device work is in this recording");
	OW_TRY(median_kernel(a, &kernel, &count));
	OW_TRY(find_graphs(a, &graphs));
	if (count < LEAST_KERNELS || graphs)
		return OW_OK;
	OW_TRY(select_dispatch(a, &cost));
	report.where = advice_text(a, "%.0f kernels per step", count);
	host = host_per_kernel(a, &cost, count);
	time_text(host_text, host);
	if (kernel <= host)
		report.what = advice_text(a,
					  "the device waits for launches: %.0f %skernels per step, "
					  "half of them shorter than %s, while the host needs %s "
					  "for each",
					  count, kernel <= TINY_NS ? "tiny " : "",
					  time_text(kernel_text, kernel), host_text);
	else
		report.what =
			advice_text(a,
				    "the device waits for launches: %.0f kernels per step, and "
				    "the host needs %s for each while the device has no work",
				    count, host_text);
	return advice_report(a, &cost, &report);
}

const struct rule rule_launch_bound = {
	.name = "launch_bound",
	.summary = "a device that waits because the host launches work too slowly",
	.doc = "launch_bound",
	.advise = advise,
};
