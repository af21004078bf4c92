/*
 * verdict.c: writes one sentence on where the time goes (verdict.h). The largest share above its limit is the verdict; if there is none, the
 * device does what it should, and the sentence names its costliest kernel. Limits are percent of a step. Profiles of samples only
 * have a sentence of their own (verdict_samples.c), and so has memory without durations (verdict_memory.c). Two parts may follow: which line of the
 * user's code runs while nothing is recorded (from sampled stacks), and which rank the others wait for. Ranks that work together end
 * their steps together, so ranks are compared by their time without communication.
 */
#include "analyze/verdict/verdict_int.h"

#include "analyze/samples/samples.h"
#include "analyze/steps/phases.h"
#include "analyze/steps/steady.h"
#include "analyze/views/work.h"
#include "base/human.h"
#include "model/metrics.h"

#define JOBS_SHOWN 3 /* largest number of jobs in one verdict */
/* coverage of a recorded run, in percent, below which the unrecorded part may be larger */
#define LITTLE 50.0
#define NAME_COLUMNS 60 /* largest width of a name in the sentence */
#define STEPS_COVER                                                                                \
	0.9 /* smallest part of the recording that steps cover without being mentioned */

static void add_name(struct buf *text, struct str name)
{
	struct str shown = utf8_fit(name, NAME_COLUMNS);

	buf_add_str(text, shown);
	buf_puts(text, shown.len < name.len ? "…" : "");
}

#define NOTICED 0.10 /* smallest part of a step that other ranks wait for a slow rank */

/* Sums of one rank over its devices. */
struct rank_sums {
	int32_t rank;
	double step_ns, own_ns; /* duration of a step; own_ns: without communication */
	const struct phase_group *group;
};

/* Adds up the groups [first, end), which belong to one job and are sorted by rank. */
static uint32_t add_up_ranks(const struct phase_groups *groups, uint32_t first, uint32_t end,
			     struct rank_sums *ranks)
{
	uint32_t count = 0;

	for (uint32_t i = first; i < end; i++) {
		const struct phase_group *g = &groups->items[i];
		double step, own;

		if (g->rank < 0 || !g->steps || g->time_ns <= 0)
			continue;
		step = (double)g->time_ns / g->steps;
		own = step - (double)g->sums.share[CLASS_COMMUNICATION] / g->steps;
		if (!count || ranks[count - 1].rank != g->rank)
			ranks[count++] = (struct rank_sums){ .rank = g->rank };
		if (own >= ranks[count - 1].own_ns) { /* of several devices the slowest counts */
			ranks[count - 1].own_ns = own;
			ranks[count - 1].step_ns = step;
			ranks[count - 1].group = g;
		}
	}
	return count;
}

static int by_own(const void *a, const void *b)
{
	const struct rank_sums *x = a, *y = b;

	return (x->own_ns > y->own_ns) - (x->own_ns < y->own_ns);
}

/* Returns the class of which the slow rank has more than the middle rank. */
static enum phase_class what_is_more(const struct rank_sums *slow, const struct rank_sums *middle)
{
	enum phase_class most = CLASS_COUNT;
	double most_ns = 0;

	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		double more = (double)slow->group->sums.share[c] / slow->group->steps -
			      (double)middle->group->sums.share[c] / middle->group->steps;

		if (c != CLASS_COMMUNICATION && more > most_ns) {
			most_ns = more;
			most = (enum phase_class)c;
		}
	}
	return most;
}

/* Compares the ranks of one job. */
static void compare_ranks(const struct model *m, const struct phase_groups *groups,
			  struct rank_sums *ranks, uint32_t count, struct buf *text)
{
	static const char *const words[CLASS_COUNT] = {
		[CLASS_COMPUTE] = "computes",
		[CLASS_DEVICE_TO_HOST] = "copies to the host",
		[CLASS_HOST_TO_DEVICE] = "copies to the device",
		[CLASS_INPUT] = "waits for input",
		[CLASS_SYNCHRONISATION] = "synchronises",
		[CLASS_INITIALISATION] = "initialises",
		[CLASS_ALLOCATION] = "allocates and frees device memory",
		[CLASS_LAUNCH] = "launches work",
		[CLASS_HOST] = "runs host code",
		[CLASS_RUN_QUEUE] = "waits for processors",
		[CLASS_IDLE] = "does something that was not recorded",
	};
	const struct rank_sums *slow, *middle;
	enum phase_class more;

	if (count < 2)
		return;
	qsort(ranks, count, sizeof(*ranks), by_own);
	slow = &ranks[count - 1];
	middle = &ranks[(count - 1) / 2];
	more = what_is_more(slow, middle);
	/* without communication, ranks do not wait for each other */
	if (slow->own_ns - middle->own_ns < NOTICED * slow->step_ns || more == CLASS_COUNT ||
	    middle->step_ns - middle->own_ns < (slow->own_ns - middle->own_ns) / 2)
		return;
	buf_printf(text, " Rank %d ", slow->rank);
	if (groups->runs > 1)
		buf_printf(text, "of %.*s ", STR_ARG(phase_group_job(m, slow->group)));
	buf_printf(text,
		   "is slow: it %s for %.1f ms of a step, rank %d for %.1f ms, and the others "
		   "wait for it in communication.",
		   words[more], (double)slow->group->sums.share[more] / slow->group->steps / 1e6,
		   middle->rank,
		   (double)middle->group->sums.share[more] / middle->group->steps / 1e6);
}

/* Adds a sentence if one rank makes the others wait: " Rank 3 is the slow one: …". */
static ow_status verdict_ranks(const struct model *m, const struct phase_groups *groups,
			       struct arena *scratch, struct buf *text, struct ow_error *err)
{
	struct rank_sums *ranks = ARENA_ARRAY(scratch, struct rank_sums, groups->count);

	if (!ranks)
		return groups->count ? error_no_memory(err) : OW_OK;
	for (uint32_t first = 0, end; first < groups->count; first = end) {
		end = first + 1;
		while (end < groups->count && groups->items[end].run == groups->items[first].run)
			end++;
		compare_ranks(m, groups, ranks, add_up_ranks(groups, first, end, ranks), text);
	}
	return OW_OK;
}

#define COMPUTE_FIRST 50.0 /* known and larger parts are named before unrecorded time */
#define COMPUTE_BOUND 66.0
#define ALMOST_ALL 95.0
#define FEW_STEPS 3

/* The costliest type of op, and its costliest op. */
struct top {
	uint32_t type, op;
	int64_t type_ns, op_ns, all_ns;
};

struct search {
	struct model *m;
	const struct event_filter *filter;
	struct arena *scratch;
	struct ow_error *err;
	const char *metric; /* metric of samples, or NULL */
	const struct phases *p;
	int64_t *op_ns; /* time of each op */
	int64_t sum_ns; /* time of all ops, outliers included */
	bool wrappers;	/* ops that only contain other ops count, too */
};

/* Of things that take the same time the first by name leads, whatever the order of events. */
static bool is_more(const struct model *m, int64_t time_ns, str_id name, int64_t than_ns,
		    str_id than)
{
	if (time_ns != than_ns)
		return time_ns > than_ns;
	return time_ns > 0 && str_cmp(model_str(m, name), model_str(m, than)) < 0;
}

static ow_status find_top(struct search *s, struct top *top)
{
	const struct model *m = s->m;
	int64_t *type_ns = ARENA_ARRAY(s->scratch, int64_t, m->strings.count);

	*top = (struct top){ 0 };
	if (!type_ns)
		return error_no_memory(s->err);
	for (uint32_t op = 1; op < m->op.count; op++) {
		uint32_t type = m->op.type[op].v;

		type_ns[type] = span_add(type_ns[type], s->op_ns[op]);
		top->all_ns = span_add(top->all_ns, s->op_ns[op]);
	}
	for (uint32_t op = 1; op < m->op.count; op++) {
		uint32_t type = m->op.type[op].v;

		if (type != top->type && is_more(m, type_ns[type], m->op.type[op], top->type_ns,
						 (str_id){ top->type })) {
			top->type_ns = type_ns[type];
			top->type = type;
		}
	}
	for (uint32_t op = 1; op < m->op.count; op++)
		if (m->op.type[op].v == top->type &&
		    is_more(m, s->op_ns[op], m->op.name[op], top->op_ns, m->op.name[top->op])) {
			top->op_ns = s->op_ns[op];
			top->op = op;
		}
	return OW_OK;
}

static bool is_stage(const struct model *m, uint32_t op)
{
	return str_starts(model_str(m, m->op.name[op]), STR("Iterator/")) ||
	       str_starts(model_str(m, m->op.type[op]), STR("Iterator::"));
}

/* Returns the own time of an event if events nest, else its duration. */
static int64_t own_ns(const struct search *s, uint32_t event)
{
	const struct model *m = s->m;
	int64_t begin = m->event.ts_ns[event], end = event_end(m, event), len;

	if (!filter_clip(s->filter, &begin, &end))
		return 0;
	len = span_length(begin, end);
	return m->event.self_ns ? MIN(len, MAX(m->event.self_ns[event], 0)) : len;
}

/* Returns whether some events belong to steps. In that case events without a step are outside of
 * all steps. */
static bool has_steps(const struct model *m)
{
	for (uint32_t i = 1; i < m->event.count; i++)
		if (m->event.step[i].v)
			return true;
	return false;
}

static uint32_t count_steps(const struct model *m, const int64_t *row_ns, uint8_t *seen)
{
	uint32_t steps = 0;

	for (uint32_t i = 1; i < m->op_step.count; i++) {
		uint32_t step = m->op_step.step[i].v;

		steps += row_ns[i] && step && !seen[step];
		seen[step] |= row_ns[i] > 0;
	}
	return steps;
}

/* Computes s->op_ns from the times of ops in steps without outliers; if nothing remains, all times count. */
static ow_status add_up_steps(struct search *s, const int64_t *row_ns)
{
	const struct model *m = s->m;
	int64_t *values = ARENA_ARRAY(s->scratch, int64_t, (size_t)m->step.count + 1), all = 0;
	uint8_t *seen = ARENA_ARRAY(s->scratch, uint8_t, m->step.count);
	uint32_t steps;

	if (!values || !seen)
		return error_no_memory(s->err);
	steps = count_steps(m, row_ns, seen);
	for (int pass = 0; pass < 2 && !all; pass++) {
		for (uint32_t op = 1; op < m->op.count; op++) {
			uint32_t first = m->op.step_first[op], ran = 0;
			int64_t sum = 0;

			for (uint32_t i = first; i < first + m->op.step_count[op]; i++) {
				if (row_ns[i])
					values[ran++] = row_ns[i];
				sum = span_add(sum, row_ns[i]);
			}
			if (ran)
				s->op_ns[op] = sum - (pass ? 0 : work_outliers(values, ran, steps));
			all = span_add(all, s->op_ns[op]);
		}
	}
	return OW_OK;
}

/* Times of ops whose events have the phase, on devices or on the host; of stages of an input pipeline
 * when `stages`, whatever their phase. Outliers do not count, as in the view `work`, but for one-off
 * initialisation. */
static ow_status add_events(struct search *s, enum event_phase phase, enum track_work work,
			    bool stages)
{
	const struct model *m = s->m;
	bool in_steps = has_steps(m), once = phase == PHASE_INITIALISATION;
	int64_t *row_ns;

	OW_TRY(model_require_nesting(s->m, s->err));
	s->op_ns = ARENA_ARRAY(s->scratch, int64_t, m->op.count);
	row_ns = ARENA_ARRAY(s->scratch, int64_t, m->op_step.count);
	if (!s->op_ns || !row_ns)
		return error_no_memory(s->err);
	s->sum_ns = 0;
	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t op = m->event.op[i].v, step = m->event.step[i].v, row;
		int64_t own;

		if (!op || (!s->wrappers && m->op.flags[op] & OP_WRAPS) || (in_steps && !step) ||
		    (stages ? !is_stage(m, op) : m->event.phase[i] != phase) ||
		    !event_is_slice(m, i) || track_work(m, m->event.track[i]) != work ||
		    !filter_step(s->filter, m->event.step[i]) ||
		    !filter_track(s->filter, m, m->event.track[i]))
			continue;
		row = once ? 0 : op_step_find(m, op, step);
		own = own_ns(s, i);
		s->sum_ns = span_add(s->sum_ns, own);
		if (row)
			row_ns[row] = span_add(row_ns[row], own);
		else
			s->op_ns[op] = span_add(s->op_ns[op], own);
	}
	return once ? OW_OK : add_up_steps(s, row_ns);
}

/* Adds the name of an op; a gradient is named after its forward op. */
static void add_op(struct buf *text, struct str name)
{
	struct str forward;

	if (gradient_of(name, &forward)) {
		buf_puts(text, "the gradient of ");
		name = forward;
	}
	add_name(text, name);
}

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* Adds a share such as "82 %". A small share is "under 1 %", not 0 %, and only the whole is 100
 * %. */
static void add_percent(struct buf *text, double share)
{
	if (share > 0 && share < 0.5)
		buf_puts(text, text->len ? "under 1 %" : "Under 1 %");
	else if (share > 99.5 && share < 99.995)
		buf_puts(text, text->len ? "over 99 %" : "Over 99 %");
	else
		buf_printf(text, "%.0f %%", share);
}

/* Adds "; the costliest kernel is X (37 % of compute)". */
static void add_top(struct search *s, struct buf *text, const struct top *top, const char *what,
		    const char *of)
{
	const struct model *m = s->m;
	struct str type = model_str(m, (str_id){ top->type });
	struct str name = model_str(m, m->op.name[top->op]);

	if (!top->type_ns)
		return;
	buf_printf(text, "; %s ", what);
	add_name(text, type);
	if (of)
		buf_printf(text, " (%.0f %% of %s%s)", percent(top->type_ns, top->all_ns), of,
			   (double)top->all_ns < (1 - WORK_OUTLIERS_APART) * (double)s->sum_ns
				   ? ", outliers apart"
				   : "");
	if (!str_eq(type, name) && top->op && !(m->op.flags[top->op] & OP_SHORT_TYPE)) {
		buf_puts(text, top->op_ns == top->type_ns ? ", " : ", above all ");
		add_op(text, name);
	}
}

/* Returns the last part of a name such as Iterator::Model::ParallelMap. */
static struct str stage_name(struct str name)
{
	size_t colon = str_rfind_char(name, ':');

	return colon == STR_NONE || colon + 1 == name.len ? name : str_skip(name, colon + 1);
}

static ow_status add_stage(struct search *s, struct buf *text)
{
	struct top top;

	OW_TRY(add_events(s, PHASE_INPUT, WORK_HOST, true));
	OW_TRY(find_top(s, &top));
	if (top.op_ns) {
		buf_puts(text, "; the slowest stage is ");
		add_name(text, stage_name(model_str(s->m, s->m->op.name[top.op])));
		return OW_OK;
	}
	OW_TRY(add_events(s, PHASE_INPUT, WORK_HOST, false));
	OW_TRY(find_top(s, &top));
	add_top(s, text, &top, "the slowest stage is", NULL);
	return OW_OK;
}

/* Adds the number of launches if launching itself takes the time; else the slowest call. */
static ow_status add_launches(struct search *s, struct buf *text, const struct phase_group *all)
{
	struct top top;

	OW_TRY(add_events(s, PHASE_LAUNCH, WORK_HOST, false));
	OW_TRY(find_top(s, &top));
	if (all->queued && (top.type_ns < top.all_ns - top.type_ns ||
			    str_has(model_str(s->m, (str_id){ top.type }), STR("aunch"))))
		buf_printf(text, "; it starts %.0f kernels and copies",
			   (double)all->queued / MAX(all->steps, 1u));
	else
		add_top(s, text, &top, "the costliest call is", "launching");
	return OW_OK;
}

static bool has_frames(const struct model *m)
{
	for (uint32_t t = 1; t < m->track.count; t++)
		if (m->track.kind[t] == TRACK_FRAMES)
			return true;
	return false;
}

/* Returns whether work is launched but no device work is in the file, so that operators on the
 * host are not the compute. */
static bool is_unseen(const struct phase_group *g)
{
	return !g->has_device && g->sums.total[CLASS_LAUNCH] > 0;
}

static ow_status add_detail(struct search *s, struct buf *text, enum phase_class class,
			    const struct phase_group *all)
{
	static const uint8_t phases[CLASS_COUNT] = {
		[CLASS_COMPUTE] = PHASE_COMPUTE,
		[CLASS_COMMUNICATION] = PHASE_COMMUNICATION,
		[CLASS_DEVICE_TO_HOST] = PHASE_DEVICE_TO_HOST,
		[CLASS_HOST_TO_DEVICE] = PHASE_HOST_TO_DEVICE,
		[CLASS_SYNCHRONISATION] = PHASE_SYNCHRONISATION,
		[CLASS_INITIALISATION] = PHASE_INITIALISATION,
		[CLASS_ALLOCATION] = PHASE_ALLOCATION,
		[CLASS_LAUNCH] = PHASE_LAUNCH,
		[CLASS_HOST] = PHASE_HOST,
	};
	bool on_device = class < CLASS_INPUT && all->has_device;
	const char *what = "the costliest call is", *of = NULL;
	struct top top;

	if (class == CLASS_INPUT)
		return add_stage(s, text);
	if (class == CLASS_IDLE)
		return verdict_idle(s->m, s->filter, s->p, s->scratch, text, s->err);
	if (class == CLASS_RUN_QUEUE)
		return OW_OK;
	if (class == CLASS_LAUNCH)
		return add_launches(s, text, all);
	if (class == CLASS_COMPUTE) {
		what = on_device ? "the costliest kernel is" : "the costliest op is";
		of = is_unseen(all) ? "their own time" : "compute";
	} else if (class == CLASS_HOST) {
		what = "the costliest operator is";
	}
	OW_TRY(add_events(s, (enum event_phase)phases[class], on_device ? WORK_DEVICE : WORK_HOST,
			  false));
	OW_TRY(find_top(s, &top));
	/* if no such op ran on a device, the host is searched */
	if (!top.type_ns && class == CLASS_COMMUNICATION) {
		OW_TRY(add_events(s, PHASE_COMMUNICATION, WORK_HOST, false));
		OW_TRY(find_top(s, &top));
	}
	if (!top.type_ns && class == CLASS_HOST) { /* if there is no such op, ranges are searched */
		s->wrappers = true;
		OW_TRY(add_events(s, PHASE_HOST, WORK_HOST, false));
		OW_TRY(find_top(s, &top));
		s->wrappers = false;
		what = "the costliest range is";
	}
	if (class == CLASS_HOST && s->sum_ns < all->sums.total[CLASS_HOST] / 2 && has_frames(s->m))
		buf_puts(text, ", most of it Python between operators");
	else
		add_top(s, text, &top, what, of);
	if (class == CLASS_COMMUNICATION && top.op)
		return verdict_collective_wait(s->m, s->filter, top.op, text, s->err);
	return OW_OK;
}

/* Returns the class with the largest share above its limit; CLASS_COUNT if there is none. */
static enum phase_class worst_class(const struct phase_group *g, bool high, enum phase_class but)
{
	enum phase_class found = CLASS_COUNT;

	for (unsigned c = CLASS_COMMUNICATION; c < CLASS_COUNT; c++) {
		double limit = high ? verdict_limits[c].high : verdict_limits[c].moderate;

		if (c == but || percent(g->sums.share[c], g->time_ns) < limit)
			continue;
		if (found == CLASS_COUNT || g->sums.share[c] > g->sums.share[found])
			found = (enum phase_class)c;
	}
	return found;
}

static double share_of(const struct phase_group *g, enum phase_class class)
{
	return percent(g->sums.share[class], g->time_ns);
}

/* Adds "; 38 % computes". Without any record of compute its share is unknown, not 0 %. */
static void add_compute(const struct phase_group *g, const char *computes, struct buf *text)
{
	if (!g->has_device && !g->sums.total[CLASS_COMPUTE]) {
		buf_puts(text, "; no work of a device is in the file");
		return;
	}
	buf_puts(text, "; ");
	add_percent(text, share_of(g, CLASS_COMPUTE));
	buf_printf(text, " %s", computes);
}

/* Adds large shares of runtime calls inside operators: ", 44 % of it in calls that launch work". */
static void add_calls(const struct phase_group *g, struct buf *text)
{
	static const struct {
		enum phase_class class;
		const char *what;
	} calls[] = {
		{ CLASS_LAUNCH, "in calls that launch work" },
		{ CLASS_INITIALISATION, "in one-off initialisation" },
		{ CLASS_ALLOCATION, "in calls that allocate and free device memory" },
	};

	for (size_t i = 0; i < ARRAY_COUNT(calls); i++)
		if (percent(g->sums.total[calls[i].class], g->time_ns) >= VERDICT_OTHER_HIGH)
			buf_printf(text, ", %.0f %% %s",
				   percent(g->sums.total[calls[i].class], g->time_ns),
				   calls[i].what);
}

static const char *class_words(enum phase_class class, const struct phase_group *g)
{
	const struct verdict_limit *limit = &verdict_limits[class];

	if (g->has_device || !limit->alone)
		return limit->what;
	if (class == CLASS_HOST && !g->sums.total[CLASS_COMPUTE]) /* no operator was recorded */
		return limit->short_what;
	return limit->alone;
}

static ow_status from_phases(struct search *s, const struct phase_group *g, struct buf *text)
{
	enum phase_class problem = worst_class(g, true, CLASS_COUNT), second;
	double compute = share_of(g, CLASS_COMPUTE);

	bool unseen = is_unseen(g);
	const char *computes = unseen ? "runs operators on the host" : "computes";
	const char *whole = g->known ? "a step" : "the recording";

	if (problem == CLASS_IDLE && compute >= COMPUTE_FIRST && g->has_device)
		problem = CLASS_COUNT;
	if (unseen)
		buf_puts(text, "The file does not show what the device did; ");
	if (problem == CLASS_COUNT) {
		second = worst_class(g, false, CLASS_COUNT);
		buf_puts(text, compute >= COMPUTE_BOUND && !unseen ? "Compute-bound: " : "");
		add_percent(text, compute);
		buf_printf(text, " of %s %s", whole, computes);
		if (unseen)
			add_calls(g, text);
		OW_TRY(add_detail(s, text, CLASS_COMPUTE, g));
	} else {
		second = worst_class(g, true, problem);
		add_percent(text, share_of(g, problem));
		buf_printf(text, " of %s %s", whole, class_words(problem, g));
		OW_TRY(add_detail(s, text, problem, g));
		if (second == CLASS_COUNT)
			add_compute(g, computes, text);
	}
	if (second != CLASS_COUNT) {
		buf_puts(text, "; ");
		add_percent(text, share_of(g, second));
		buf_printf(text, " %s", verdict_limits[second].short_what);
	}
	buf_add_char(text, '.');
	if (g->has_device)
		verdict_sync_calls(s->m, s->filter, text);
	return OW_OK;
}

/* Returns whether the samples cover more than the events: a few marks beside a profile of
 * samples are not representative. */
static bool samples_cover_more(const struct model *m, int64_t ops_ns)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (uint32_t i = 1; i < m->sample.count; i++)
		if (m->sample.ts_ns[i] != TIME_UNKNOWN) {
			first = MIN(first, m->sample.ts_ns[i]);
			last = MAX(last, m->sample.ts_ns[i]);
		}
	return first < last && ops_ns < span_length(first, last) / 10;
}

bool verdict_is_live(const struct model *m)
{
	return m->source.count > 1 && str_eq(model_str(m, m->source.format[1]), STR("live"));
}

/* Returns the time from the first to the last record. */
static int64_t recorded_span(const struct search *s)
{
	const struct model *m = s->m;
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (uint32_t i = 1; s->p && i < m->source.count; i++) {
		first = MIN(first, s->p->inputs[i].first_ns);
		last = MAX(last, s->p->inputs[i].last_ns);
	}
	for (uint32_t i = 1; i < m->sample.count; i++)
		if (m->sample.ts_ns[i] != TIME_UNKNOWN) {
			first = MIN(first, m->sample.ts_ns[i]);
			last = MAX(last, m->sample.ts_ns[i]);
		}
	return last > first ? last - first : 0;
}

/* Adds "Recorded calls cover 0.01 % of the run (154us of 1.02s)". Calls of all threads count as one, so
 * the share is rather too low. */
static bool add_coverage(const struct search *s, int64_t calls_ns, struct buf *text)
{
	char part[HUMAN_SIZE], all[HUMAN_SIZE];
	int64_t span = verdict_is_live(s->m) ? recorded_span(s) : 0;

	if (span <= 0 || percent(calls_ns, span) >= LITTLE)
		return false;
	human_int(part, calls_ns, HUMAN_UNIT_NS, false);
	human_int(all, span, HUMAN_UNIT_NS, false);
	buf_printf(text, "%sRecorded calls cover %.2g %% of ", text->len ? " " : "",
		   percent(calls_ns, span));
	if (s->m->sample.count > 1)
		buf_printf(text, "the run (%s of %s)", part, all);
	else /* the begin and end of the run are unknown */
		buf_printf(text, "the %s from the first to the last of them (%s)", all, part);
	return true;
}

static ow_status sum_ops(struct search *s, struct top *top)
{
	struct model *m = s->m;
	int64_t values[METRIC_COUNT];
	struct event_sums sums;
	struct metric_plan plan;

	s->op_ns = ARENA_ARRAY(s->scratch, int64_t, m->op.count);
	if (!s->op_ns)
		return error_no_memory(s->err);
	metric_plan_init(&plan, m, s->filter->step ? m->step.number[s->filter->step] : -1,
			 METRIC_BIT(METRIC_MICROS));
	if (s->filter->rank >= 0 || s->filter->run || filter_has_time(s->filter)) {
		OW_TRY(event_sums_make(m, s->filter, s->scratch, &sums, s->err));
		metric_plan_filter(&plan, &sums);
	}
	plan.all_steps = metric_all_steps(&plan, s->filter->rank);
	for (uint32_t op = 1; op < m->op.count; op++) {
		metric_eval(&plan, (op_id){ op }, values);
		s->op_ns[op] = MAX(values[METRIC_MICROS], 0);
	}
	return find_top(s, top);
}

/* Judges a recorded program without steps: by its samples, and by how little the recorded calls
 * cover. */
static ow_status from_live_samples(struct search *s, struct buf *text)
{
	struct top top;

	OW_TRY(verdict_samples(s->m, s->filter, s->metric, text, s->err));
	OW_TRY(sum_ops(s, &top));
	if (add_coverage(s, top.all_ns, text))
		buf_add_char(text, '.');
	return OW_OK;
}

/* Returns a text about an input without times. */
static const char *why_untimed(const struct model *m)
{
	bool variables_only = m->op.count > 1;

	if (m->event.count > 1)
		return "No work on a thread or a device has a duration: the input has only points "
		       "in time, counters or asynchronous events.";
	if (m->op.count <= 1)
		return "The input has nothing to profile: neither operations nor times.";
	for (uint32_t i = 1; i < m->source.count && variables_only; i++)
		variables_only = str_eq(model_str(m, m->source.format[i]), STR("checkpoint"));
	return variables_only
		       ? "The input has no times: it has the variables of a model, not a run."
		       : "The input has no times: it describes a program, not a run.";
}

/* "; as much is c", "; as much is each of 3 others": the first of several is named by its place in the alphabet only. */
static void add_equal(struct buf *text, uint32_t equal, struct str other)
{
	if (equal == 1) {
		buf_puts(text, "; as much is ");
		add_name(text, other);
	} else if (equal) {
		buf_printf(text, "; as much is each of %u others", equal);
	}
}

static ow_status from_ops(struct search *s, struct buf *text)
{
	struct model *m = s->m;
	struct work_top work;
	struct top top;

	OW_TRY(sum_ops(s, &top));
	if (!top.type_ns) {
		bool written;

		if (m->sample.count > 1)
			return verdict_samples(m, s->filter, s->metric, text, s->err);
		OW_TRY(verdict_memory(m, s->filter, text, &written, s->err));
		if (written)
			return OW_OK;
		buf_puts(text, why_untimed(m));
		return OW_OK;
	}
	if (samples_cover_more(m, top.all_ns))
		return verdict_samples(m, s->filter, s->metric, text, s->err);
	if (add_coverage(s, top.all_ns, text))
		buf_puts(text, "; what it did otherwise is not in the file. ");
	OW_TRY(work_top_find(m, s->filter, s->scratch, &work, s->err));
	buf_printf(text, "%.0f %% of op time%s is ", percent(work.type_ns, work.all_ns),
		   work.apart ? ", outliers apart," : "");
	add_name(text, model_str(m, (str_id){ work.type }));
	if (m->op.name[work.op].v != work.type) {
		bool only = work.op_ns == work.type_ns;

		buf_puts(text, only ? ", all of it in " : "; the costliest is ");
		add_op(text, model_str(m, m->op.name[work.op]));
		if (!only)
			buf_printf(text, " (%.0f %%)", percent(work.op_ns, work.all_ns));
	}
	add_equal(text, work.equal, model_str(m, (str_id){ work.other }));
	buf_add_char(text, '.');
	return OW_OK;
}

static bool has_live_steps(const struct model *m, const struct phase_group *g)
{
	return g->steps >= FEW_STEPS && verdict_is_live(m);
}

/* Returns whether nothing marks the steps, so that the span of the records is not a step. */
static bool is_shapeless(const struct model *m, const struct phase_group *g)
{
	return verdict_is_live(m) && m->window.count <= 1 && !g->has_device;
}

/* Returns whether there is enough to judge a program; a few classified names alone are not. */
static bool has_evidence(const struct model *m, const struct phase_group *g)
{
	return g->time_ns > 0 &&
	       (g->has_device || share_of(g, CLASS_IDLE) < ALMOST_ALL || has_live_steps(m, g));
}

/* Returns whether something was recorded outside of steps. Programs that trace single steps record nothing in between. */
static bool has_more_than_steps(const struct model *m)
{
	for (uint32_t i = 1; i < m->event.count; i++)
		if (!m->event.step[i].v && event_is_slice(m, i) &&
		    track_work(m, m->event.track[i]) != WORK_NONE)
			return true;
	return false;
}

/* Adds "Steps cover 23 % of the recording." where a good part of it is in no step. */
static ow_status add_steps_covered(struct search *s, const struct phase_group *g, struct buf *text)
{
	struct steady_steps steady;

	if (!g->known || s->filter->step || filter_has_time(s->filter))
		return OW_OK;
	OW_TRY(steady_find(s->m, s->p, s->filter->run, (source_id){ 0 }, s->scratch, &steady,
			   s->err));
	if (steady.span_ns <= 0 || steady.coverage >= STEPS_COVER || !has_more_than_steps(s->m))
		return OW_OK;
	buf_puts(text, " Steps cover ");
	add_percent(text, 100 * steady.coverage);
	buf_puts(text, " of the recording.");
	return OW_OK;
}

static ow_status judge_job(struct search *s, struct phases *p, struct buf *text)
{
	struct phase_groups groups;

	OW_TRY(phases_analyse(s->m, s->filter, p, s->err));
	OW_TRY(phases_group(s->m, p, &p->arena, &groups, s->err));
	s->p = p;
	if (is_shapeless(s->m, &groups.all) && s->m->sample.count > 1)
		return from_live_samples(s, text);
	if (is_shapeless(s->m, &groups.all) || !has_evidence(s->m, &groups.all))
		return from_ops(s, text);
	OW_TRY(from_phases(s, &groups.all, text));
	OW_TRY(add_steps_covered(s, &groups.all, text));
	return verdict_ranks(s->m, &groups, s->scratch, text, s->err);
}

/* Finds the first input with events of each job; returns the number of jobs. */
static uint32_t find_jobs(const struct search *s, source_id *first)
{
	const struct model *m = s->m;
	uint8_t *timed = ARENA_ARRAY(s->scratch, uint8_t, m->source.count);
	uint32_t count = 0;

	if (!timed || s->filter->run || m->source.count <= 2)
		return 0;
	for (uint32_t i = 1; i < m->event.count; i++)
		timed[m->track.source[m->event.track[i].v].v] = 1;
	for (uint32_t i = 1; i < m->source.count; i++) {
		bool known = !timed[i] || !filter_source(s->filter, m, (source_id){ i });

		for (uint32_t k = 0; k < count && !known; k++)
			known = m->source.run[first[k].v] == m->source.run[i];
		if (!known)
			first[count++] = (source_id){ i };
	}
	return count;
}

/* Judges unrelated jobs separately: one sentence for each of the first few. */
static ow_status judge_each(const struct search *s, const source_id *first, uint32_t count,
			    struct buf *text)
{
	uint32_t shown = MIN(count, (uint32_t)JOBS_SHOWN);

	buf_printf(text, "%u different jobs, each judged by itself.", count);
	for (uint32_t i = 0; i < shown; i++) {
		struct phase_group group = { .source = first[i] };
		struct event_filter filter = *s->filter;
		struct search part = *s;
		struct phases p = { 0 };
		ow_status status;

		filter.run = s->m->source.run[first[i].v];
		part.filter = &filter;
		buf_printf(text, " %.*s: ", STR_ARG(phase_group_job(s->m, &group)));
		status = judge_job(&part, &p, text);
		phases_release(&p);
		OW_TRY(status);
	}
	if (shown < count)
		buf_printf(text, " … and %u more: open them one by one.", count - shown);
	return OW_OK;
}

static ow_status write_verdict(struct search *s, struct phases *p, struct buf *text)
{
	source_id *first = ARENA_ARRAY(s->scratch, source_id, s->m->source.count);
	uint32_t jobs;

	if (!first)
		return error_no_memory(s->err);
	jobs = find_jobs(s, first);
	return jobs > 1 ? judge_each(s, first, jobs, text) : judge_job(s, p, text);
}

ow_status verdict_write(struct model *m, const struct event_filter *filter, const char *metric,
			struct buf *text, struct ow_error *err)
{
	struct arena scratch;
	struct search s = {
		.m = m, .filter = filter, .metric = metric, .scratch = &scratch, .err = err
	};
	struct phases p = { 0 };
	ow_status status;

	if (samples_only(m)) {
		OW_TRY(verdict_samples(m, filter, metric, text, err));
		return text->failed ? error_no_memory(err) : OW_OK;
	}
	arena_init(&scratch, m->mem);
	status = write_verdict(&s, &p, text);
	phases_release(&p);
	arena_release(&scratch);
	if (status == OW_OK && text->failed)
		status = error_no_memory(err);
	return status;
}
