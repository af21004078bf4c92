/*
 * change.c: parses the changes of what-if and applies them to a scenario (change.h). Called by what_if.c. A change sets durations and
 * drops waits of single nodes; the replay decides what that means for the step.
 */
#include "replay/change.h"

#include "base/regex/regex.h"

#include <errno.h>
#include <math.h>

static const struct {
	const char *text;
	enum change_kind kind;
} fixed[] = {
	{ "input=0", CHANGE_INPUT }, { "transfer=async", CHANGE_TRANSFER },
	{ "sync=0", CHANGE_SYNC },   { "launch=0", CHANGE_LAUNCH },
	{ "host=0", CHANGE_HOST },
};

static ow_status bad(const char *text, struct ow_error *err)
{
	return error_set(err, OW_E_USAGE,
			 "'%s' is not a change; try op:REGEX*0.5, kernel:REGEX*0, input=0, "
			 "transfer=async, sync=0, launch=0, host=0, network*2, rank:3=median or "
			 "fuse:REGEX",
			 text);
}

/* Reads the number after the last '*' and cuts it off the text. */
static bool take_factor(char *text, double *factor)
{
	char *star = strrchr(text, '*'), *end;

	if (!star || !star[1])
		return false;
	errno = 0;
	*factor = strtod(star + 1, &end);
	*star = '\0';
	return !*end && !errno && isfinite(*factor) && *factor >= 0;
}

static ow_status check_pattern(const char *pattern, struct arena *arena, struct ow_error *err);

ow_status change_parse(const char *text, struct arena *arena, struct change *out,
		       struct ow_error *err)
{
	char *copy = arena_cstr(arena, str_from(text)), *end;

	if (!copy)
		return error_no_memory(err);
	*out = (struct change){ .factor = 0 };
	for (size_t i = 0; i < ARRAY_COUNT(fixed); i++)
		if (strcmp(text, fixed[i].text) == 0) {
			out->kind = fixed[i].kind;
			return OW_OK;
		}
	if (strncmp(copy, "fuse:", 5) == 0 && copy[5]) {
		out->kind = CHANGE_FUSE;
		out->pattern = copy + 5;
		return check_pattern(out->pattern, arena, err);
	}
	if (strncmp(copy, "rank:", 5) == 0) {
		long rank = strtol(copy + 5, &end, 10);

		out->kind = CHANGE_RANK;
		out->rank = (int32_t)rank;
		return end > copy + 5 && strcmp(end, "=median") == 0 && rank >= 0 &&
				       rank < INT32_MAX
			       ? OW_OK
			       : bad(text, err);
	}
	if (!take_factor(copy, &out->factor))
		return bad(text, err);
	if (strcmp(copy, "network") == 0) {
		out->kind = CHANGE_NETWORK;
		return out->factor > 0 ? OW_OK : bad(text, err);
	}
	out->kind = strncmp(copy, "op:", 3) == 0 ? CHANGE_OP : CHANGE_KERNEL;
	out->pattern = copy + (out->kind == CHANGE_OP ? 3 : 7);
	if ((out->kind == CHANGE_KERNEL && strncmp(copy, "kernel:", 7) != 0) || !*out->pattern)
		return bad(text, err);
	return check_pattern(out->pattern, arena, err);
}

struct invalid {
	char why[200];
};

static void keep_reason(void *arg, struct str pattern, const char *why)
{
	struct invalid *invalid = arg;

	snprintf(invalid->why, sizeof(invalid->why), "'%.*s' is not a valid regular expression: %s",
		 STR_ARG(pattern), why);
}

/* Compiles a pattern that may match anywhere in a name, because kernel names are long. */
static ow_status compile(const char *pattern, struct mem *mem, struct regex_list *list,
			 struct invalid *invalid, struct ow_error *err)
{
	char text[1000];
	const char *patterns[1] = { text };
	int len = snprintf(text, sizeof(text), "(?s).*(?:%s).*", pattern);

	if (len < 0 || (size_t)len >= sizeof(text))
		return error_set(err, OW_E_USAGE, "a pattern has at most %zu bytes",
				 sizeof(text) - 20);
	return regex_list_init(list, mem, patterns, 1, keep_reason, invalid, err);
}

static ow_status check_pattern(const char *pattern, struct arena *arena, struct ow_error *err)
{
	struct invalid invalid = { "" };
	struct regex_list list = { 0 };

	OW_TRY(regex_list_init(&list, arena->mem, &pattern, 1, keep_reason, &invalid, err));
	regex_list_release(&list);
	if (!*invalid.why) {
		OW_TRY(compile(pattern, arena->mem, &list, &invalid, err));
		regex_list_release(&list);
	}
	return *invalid.why ? error_set(err, OW_E_USAGE, "%s", invalid.why) : OW_OK;
}

/* For each op, whether its name or type matches. */
static ow_status match_ops(const struct model *m, const char *pattern, struct arena *scratch,
			   uint8_t **out, struct ow_error *err)
{
	struct invalid invalid = { "" };
	struct regex_list list = { 0 };
	uint8_t *matches = ARENA_ARRAY(scratch, uint8_t, m->op.count + 1);
	ow_status status;

	if (!matches)
		return error_no_memory(err);
	OW_TRY(compile(pattern, m->mem, &list, &invalid, err));
	for (uint32_t i = 1; i < m->op.count; i++)
		matches[i] = regex_match(&list, model_str(m, m->op.name[i])) ||
			     regex_match(&list, model_str(m, m->op.type[i]));
	status = regex_list_status(&list, err);
	regex_list_release(&list);
	*out = matches;
	return status;
}

void scenario_scale(const struct graph *g, struct scenario *scenario, uint32_t node, double factor)
{
	scenario->weight_ns[node] = llround((double)scenario->weight_ns[node] * factor);
	if (factor == 0 && g->flags[node] & NODE_DEVICE)
		scenario->drop[node] |= DROP_LAGS | DROP_SLACK;
}

void scenario_no_wait(const struct graph *g, struct scenario *scenario, uint32_t node,
		      double factor)
{
	scenario->drop[node] |= DROP_WAITS | DROP_SLACK;
	scenario_scale(g, scenario, node, factor);
}

static bool is_marked(const struct model *m, uint32_t event, const uint8_t *ops,
		      const uint8_t *names)
{
	uint32_t op = m->event.op[event].v;

	return op ? ops[op] : names && names[COLUMN_GET(m->event.name, event).v];
}

ow_status mark_inside(const struct graph *g, const uint8_t *ops, const uint8_t *names,
		      struct arena *scratch, uint8_t **out, struct ow_error *err)
{
	const struct model *m = g->m;
	uint8_t *inside = ARENA_ARRAY(scratch, uint8_t, (size_t)g->node_count + 1);
	uint32_t *lanes = ARENA_ARRAY(scratch, uint32_t, (size_t)m->track.count + 1);

	*out = inside;
	if (!inside || !lanes)
		return error_no_memory(err);
	for (uint32_t l = 0; l < g->lane_count; l++)
		if (!g->lanes[l].device) {
			lanes[g->lanes[l].track.v] = l + 1;
			lanes[g->lanes[l].functions.v] = l + 1;
		}
	lanes[0] = 0;
	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t number = lanes[m->event.track[i].v];
		int64_t start = m->event.ts_ns[i];
		const struct lane *lane;

		if (!number || !is_marked(m, i, ops, names) || !event_is_slice(m, i))
			continue;
		lane = &g->lanes[number - 1];
		if (start < g->start_ns[lane->first])
			continue;
		for (uint32_t n = lane_at(g, lane, start);
		     n < lane->first + lane->count && !inside[n] &&
		     node_end(g, n) <= event_end(m, i) + GRAPH_ROUNDING_NS;
		     n++)
			inside[n] = 1;
	}
	return OW_OK;
}

static ow_status apply_op(const struct session *s, const struct change *c,
			  struct scenario *scenario, uint64_t *matched, struct ow_error *err)
{
	const struct graph *g = &s->g;
	struct arena scratch;
	uint8_t *ops, *inside;
	ow_status status;

	arena_init(&scratch, g->m->mem);
	status = match_ops(g->m, c->pattern, &scratch, &ops, err);
	if (status == OW_OK)
		status = mark_inside(g, ops, NULL, &scratch, &inside, err);
	for (uint32_t i = 0; status == OW_OK && i < g->node_count; i++)
		if (inside[i] || (g->launch[i] && inside[g->launch[i] - 1]) ||
		    (g->flags[i] & NODE_DEVICE && ops[node_op(g, i).v])) {
			scenario_scale(g, scenario, i, c->factor);
			++*matched;
		}
	arena_release(&scratch);
	return status;
}

static ow_status apply_kernel(const struct session *s, const struct change *c,
			      struct scenario *scenario, uint64_t *matched, struct ow_error *err)
{
	const struct graph *g = &s->g;
	struct arena scratch;
	uint8_t *ops;
	ow_status status;

	arena_init(&scratch, g->m->mem);
	status = match_ops(g->m, c->pattern, &scratch, &ops, err);
	for (uint32_t i = 0; status == OW_OK && i < g->node_count; i++)
		if (g->flags[i] & NODE_DEVICE && ops[node_op(g, i).v]) {
			scenario_scale(g, scenario, i, c->factor);
			++*matched;
		}
	arena_release(&scratch);
	return status;
}

/* Fuses consecutive matching kernels of a stream: the first takes as long as the longest of them; the others and
 * their launches take no time. */
static ow_status apply_fuse(const struct session *s, const struct change *c,
			    struct scenario *scenario, uint64_t *matched, struct ow_error *err)
{
	const struct graph *g = &s->g;
	struct arena scratch;
	uint8_t *ops;
	ow_status status;

	arena_init(&scratch, g->m->mem);
	status = match_ops(g->m, c->pattern, &scratch, &ops, err);
	for (uint32_t l = 0; status == OW_OK && l < g->lane_count; l++) {
		const struct lane *lane = &g->lanes[l];
		uint32_t head = UINT32_MAX;

		for (uint32_t i = lane->first; lane->device && i < lane->first + lane->count; i++) {
			if (g->kind[i] != NODE_KERNEL || !ops[node_op(g, i).v]) {
				head = UINT32_MAX;
				continue;
			}
			++*matched;
			if (head == UINT32_MAX) {
				head = i;
				continue;
			}
			scenario->weight_ns[head] =
				MAX(scenario->weight_ns[head], scenario->weight_ns[i]);
			scenario_scale(g, scenario, i, 0);
			scenario->drop[i] |= DROP_LAUNCH;
			if (g->launch[i])
				scenario->weight_ns[g->launch[i] - 1] = 0;
		}
	}
	arena_release(&scratch);
	return status;
}

static bool is_own_work(const struct graph *g, uint32_t node)
{
	return g->kind[node] != NODE_COMMUNICATION && g->kind[node] != NODE_HOST_COMMUNICATION &&
	       g->kind[node] != NODE_SYNC;
}

/* Adds the own time of each op of a source to `sums`. */
static void add_own_work(const struct graph *g, uint32_t source, double *sums)
{
	memset(sums, 0, g->m->op.count * sizeof(*sums));
	for (uint32_t l = 0; l < g->lane_count; l++)
		for (uint32_t i = g->lanes[l].first; i < g->lanes[l].first + g->lanes[l].count; i++)
			if (g->lanes[l].source.v == source && is_own_work(g, i))
				sums[node_op(g, i).v] += (double)g->weight_ns[i];
}

static double median_of_few(double *values, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t k = i; k && values[k - 1] > values[k]; k--) {
			double swap = values[k];

			values[k] = values[k - 1];
			values[k - 1] = swap;
		}
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

#define PEERS_MOST 64 /* limit of ranks that one rank is compared with */

ow_status rank_factors(const struct session *s, int32_t rank, struct arena *arena, double **out,
		       struct ow_error *err)
{
	const struct graph *g = &s->g;
	const struct model *m = g->m;
	uint32_t ops = m->op.count, own = 0, peers[PEERS_MOST], count = 0;
	double *sums[PEERS_MOST], *mine = ARENA_ARRAY(arena, double, ops);
	double values[PEERS_MOST];

	*out = NULL;
	for (uint32_t i = 1; i < m->source.count; i++)
		if (m->source.rank[i] == rank)
			own = i;
	for (uint32_t l = 0; l < g->lane_count; l++) {
		uint32_t source = g->lanes[l].source.v;
		bool known =
			!source || source == own || m->source.run[source] != m->source.run[own];

		for (uint32_t k = 0; k < count; k++)
			known |= peers[k] == source;
		if (!known && count < PEERS_MOST)
			peers[count++] = source;
	}
	if (!own || !count)
		return OW_OK;
	for (uint32_t k = 0; k < count; k++) {
		sums[k] = ARENA_ARRAY(arena, double, ops);
		if (!sums[k])
			return error_no_memory(err);
		add_own_work(g, peers[k], sums[k]);
	}
	if (!mine)
		return error_no_memory(err);
	add_own_work(g, own, mine);
	for (uint32_t i = 0; i < ops; i++) {
		for (uint32_t k = 0; k < count; k++)
			values[k] = sums[k][i];
		mine[i] = mine[i] > 0 && median_of_few(values, count) > 0
				  ? median_of_few(values, count) / mine[i]
				  : 1;
	}
	*out = mine;
	return OW_OK;
}

bool is_of_rank(const struct graph *g, const struct lane *lane, uint32_t node, int32_t rank)
{
	return lane->source.v && g->m->source.rank[lane->source.v] == rank && is_own_work(g, node);
}

static ow_status apply_rank(const struct session *s, const struct change *c,
			    struct scenario *scenario, uint64_t *matched, struct ow_error *err)
{
	const struct graph *g = &s->g;
	struct arena scratch;
	double *factors;
	ow_status status;

	arena_init(&scratch, g->m->mem);
	status = rank_factors(s, c->rank, &scratch, &factors, err);
	for (uint32_t l = 0; status == OW_OK && factors && l < g->lane_count; l++) {
		const struct lane *lane = &g->lanes[l];

		for (uint32_t i = lane->first; i < lane->first + lane->count; i++)
			if (is_of_rank(g, lane, i, c->rank)) {
				scenario_scale(g, scenario, i, factors[node_op(g, i).v]);
				++*matched;
			}
	}
	arena_release(&scratch);
	return status;
}

static bool change_node(const struct graph *g, const struct change *c, struct scenario *scenario,
			uint32_t i)
{
	enum node_kind kind = (enum node_kind)g->kind[i];

	switch (c->kind) {
	case CHANGE_INPUT:
		if (!(g->flags[i] & NODE_IN_INPUT) && kind != NODE_INPUT)
			return false;
		scenario_no_wait(g, scenario, i, 0);
		return true;
	case CHANGE_SYNC:
		if (kind != NODE_SYNC)
			return false;
		scenario_no_wait(g, scenario, i, 0);
		return true;
	case CHANGE_TRANSFER:
		if (kind != NODE_TO_DEVICE && kind != NODE_TO_HOST)
			return false;
		scenario_scale(g, scenario, i, 0);
		if (g->flags[i] & NODE_BLOCKS && g->launch[i])
			/* the call that launched the work does not wait any more */
			scenario->drop[g->launch[i]] |= DROP_WAITS;
		return true;
	case CHANGE_LAUNCH:
		if (g->flags[i] & NODE_DEVICE && g->launch[i])
			scenario->drop[i] |= DROP_LAGS;
		if (kind != NODE_LAUNCH)
			return false;
		scenario_scale(g, scenario, i, 0);
		return true;
	case CHANGE_HOST:
		if (kind != NODE_HOST && kind != NODE_GAP)
			return false;
		scenario_scale(g, scenario, i, 0);
		return true;
	default:
		if (kind != NODE_COMMUNICATION && kind != NODE_HOST_COMMUNICATION)
			return false;
		scenario_scale(g, scenario, i, 1 / c->factor);
		return true;
	}
}

ow_status change_apply(const struct session *s, const struct change *change,
		       struct scenario *scenario, uint64_t *matched, struct ow_error *err)
{
	*matched = 0;
	switch (change->kind) {
	case CHANGE_OP:
		return apply_op(s, change, scenario, matched, err);
	case CHANGE_KERNEL:
		return apply_kernel(s, change, scenario, matched, err);
	case CHANGE_FUSE:
		return apply_fuse(s, change, scenario, matched, err);
	case CHANGE_RANK:
		return apply_rank(s, change, scenario, matched, err);
	default:
		for (uint32_t i = 0; i < s->g.node_count; i++)
			*matched += change_node(&s->g, change, scenario, i);
		return OW_OK;
	}
}
