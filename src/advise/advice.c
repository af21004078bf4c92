/*
 * advice.c: runs the rules of the advisor, replays what they found, ranks it and adds it up; advice.h explains the numbers. Called by
 * the library for `opwatch advise`, the overview and SQL. Which costs there are is up to the rules.
 */
#include "advise/advice.h"

#include "base/vec.h"

#include <math.h>
#include <stdarg.h>

/* error of a saving without a replay, as a part of it: the ends of a share are known to
 * microseconds only */
#define SHARE_ERROR 0.1
/* a cost belongs to the first of two steps if the second has less than a tenth of it */
#define ONLY_FIRST 10
/* number of steps at the ends of a recording that may or may not count in the mean */
#define STEPS_OF_MEAN 2.0
/* upper limit of the margin of a mean, as a part of the saving: a cost that occurs once says little
 * about how often it occurs */
#define MEAN_MARGIN_MOST 0.5

const char *const severity_names[] = { "info", "low", "medium", "high" };
const char *const confidence_names[] = { "low", "medium", "high" };

struct str advice_text(struct advice *a, const char *format, ...)
{
	char text[1200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return arena_str(a->arena, str_from(text));
}

const char *time_text(char to[TIME_TEXT], int64_t ns)
{
	double value = (double)ns;
	static const struct {
		double from, unit;
		const char *name;
	} units[] = { { 1e9, 1e9, "s" }, { 1e6, 1e6, "ms" }, { 1e3, 1e3, "us" } };

	for (size_t i = 0; i < ARRAY_COUNT(units); i++)
		if (fabs(value) >= units[i].from) {
			snprintf(to, TIME_TEXT, "%.3g %s", value / units[i].unit, units[i].name);
			return to;
		}
	snprintf(to, TIME_TEXT, "%.0f ns", value);
	return to;
}

/* The texts of rules speak of steps. In a recording without known steps the whole recording was judged,
 * and this function changes the texts accordingly. */
static struct str say_recording(struct advice *a, struct str text)
{
	static const struct {
		struct str from, to;
	} words[] = { { STR(" per step"), STR("") },
		      { STR(" in every step"), STR("") },
		      { STR("every 100 steps"), STR("rarely") },
		      { STR("one warm-up step"), STR("it once as a warm-up") },
		      { STR("the only recorded step"), STR("the recording") },
		      { STR("record steps after"), STR("record after") },
		      { STR("record later steps"), STR("record later") },
		      { STR("from step to step"), STR("from run to run") },
		      { STR("steady steps"), STR("parts of the recording") },
		      { STR(" out of the step, into"), STR(" into") },
		      { STR(" out of the step"), STR(" out") },
		      { STR("the mean step"), STR("the recording") },
		      { STR("a few steps"), STR("a part of it") },
		      { STR("a step"), STR("the recording") },
		      { STR("the step"), STR("the recording") } };
	struct buf out;
	struct str kept;

	buf_init(&out, a->m->mem);
	for (size_t at = 0; at < text.len;) {
		size_t i = 0;

		while (i < ARRAY_COUNT(words) && !str_starts(str_skip(text, at), words[i].from))
			i++;
		if (i < ARRAY_COUNT(words)) {
			buf_add_str(&out, words[i].to);
			at += words[i].from.len;
		} else {
			buf_add_char(&out, text.ptr[at++]);
		}
	}
	kept = out.failed ? text : arena_str(a->arena, str_make(out.ptr, out.len));
	buf_release(&out);
	return kept.ptr ? kept : text;
}

static ow_status add_row(struct advice *a, const struct advice_row *row)
{
	struct advice_row *rows =
		arena_grow(a->arena, a->rows, a->row_count, &a->row_cap, sizeof(*rows));

	if (!rows)
		return error_no_memory(a->err);
	a->rows = rows;
	rows += a->row_count++;
	*rows = *row;
	rows->rule = a->rule;
	if (row->checked && !a->steady.known && !a->rule->check) {
		rows->what = say_recording(a, row->what);
		rows->where = say_recording(a, row->where);
		rows->advice = say_recording(a, row->advice);
		rows->falsified_by = say_recording(a, row->falsified_by);
	}
	return OW_OK;
}

ow_status advice_not_checked(struct advice *a, const char *format, ...)
{
	char text[400];
	va_list args;
	struct str why;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	why = arena_str(a->arena, str_from(text));
	if (!why.ptr)
		return error_no_memory(a->err);
	return add_row(a, &(struct advice_row){ .why_not = why });
}

static enum severity severity_of(const struct advice *a, int64_t saving)
{
	int64_t step_ns = a->ahead_ns ? a->ahead_ns : a->step_ns;
	double part = step_ns > 0 ? (double)saving / (double)step_ns : 0;

	return part >= a->settings.high	    ? SEVERITY_HIGH
	       : part >= a->settings.medium ? SEVERITY_MEDIUM
	       : part >= a->settings.remark ? SEVERITY_LOW
					    : SEVERITY_INFO;
}

/* A single step that initialises is the first one; later steps will not have this cost. */
static bool is_warm_up(const struct advice *a)
{
	return a->steady.used_count < 2 &&
	       (double)a->share_ns[CLASS_INITIALISATION] >= a->settings.high * (double)a->step_ns;
}

/* With two steps, a cost that only the first one has is warm-up, although nothing shows which of the two
 * is the usual one. */
static bool is_only_in_first(const struct advice *a, const struct cost *cost)
{
	const struct graph *g = &a->s.g;
	int64_t sums[2] = { 0 };
	uint32_t first = UINT32_MAX;

	if (a->steady.used_count != 2 || a->steps != 2)
		return false;
	for (uint32_t i = 0; i < g->step_count; i++)
		if (g->steps[i].used && g->steps[i].steady &&
		    (first == UINT32_MAX || g->steps[i].begin_ns < g->steps[first].begin_ns))
			first = i;
	for (size_t i = 0; i < cost->count; i++)
		if (node_is_steady(a, cost->nodes[i])) {
			int64_t *sum = &sums[g->step[cost->nodes[i]] - 1 != first];

			*sum = span_add(*sum, g->weight_ns[cost->nodes[i]]);
		}
	return sums[1] < sums[0] / ONLY_FIRST;
}

static enum confidence confidence_of(const struct advice *a, enum confidence most)
{
	enum confidence c = CONFIDENCE_HIGH;

	if (!advice_replays(a) || a->steps < 2 || a->s.replay_error < 0 ||
	    a->s.replay_error > TRUSTED_ERROR || a->m->damaged)
		c = CONFIDENCE_MEDIUM;
	return MIN(c, most);
}

static ow_status keep_cost(struct advice *a, const struct cost *cost, struct cost *out)
{
	*out = *cost;
	out->nodes = ARENA_ARRAY(a->arena, uint32_t, cost->count + 1);
	if (!out->nodes)
		return error_no_memory(a->err);
	if (cost->count)
		memcpy(out->nodes, cost->nodes, cost->count * sizeof(*out->nodes));
	if (!cost->factors)
		return OW_OK;
	out->factors = ARENA_ARRAY(a->arena, double, cost->count + 1);
	if (!out->factors)
		return error_no_memory(a->err);
	if (cost->count)
		memcpy(out->factors, cost->factors, cost->count * sizeof(*out->factors));
	return OW_OK;
}

static bool has_texts(const struct report *r)
{
	return r->what.ptr && r->where.ptr && r->advice.ptr && r->falsified_by.ptr;
}

/* A step of TensorFlow's executor ends with all of its work, so the shares of its phases are
 * exact. */
static bool has_executors_only(const struct model *m)
{
	for (uint32_t i = 1; i < m->track.count; i++)
		if (m->track.kind[i] == TRACK_HOST || m->track.kind[i] == TRACK_LOADER)
			return false;
	return true;
}

static int64_t share_most(const struct advice *a, int64_t part_ns)
{
	int64_t step_ns = a->ahead_ns ? a->ahead_ns : a->step_ns;
	int64_t rest_ns = MAX(step_ns - part_ns, 0);

	/* Without steps the share is the one measured time, so the saving cannot be larger. */
	if (has_executors_only(a->m) || !a->steady.known)
		return part_ns;

	/* the saving never is the whole rest of the step, because the other phases need time as
	 * well */
	return part_ns + MIN(llround((double)part_ns * SHARE_ERROR), rest_ns / 2);
}

#define SAME 0.02 /* two times that differ by less than this part are shown as one time */

static struct verdict_subject subject_of(const struct advice *a, enum phase_class class,
					 int64_t named_ns)
{
	int64_t all_ns = class < CLASS_COUNT ? a->share_ns[class] : 0;

	return (struct verdict_subject){
		.class = class,
		.whole = class < CLASS_COUNT &&
			 (double)llabs(named_ns - all_ns) <= SAME * (double)all_ns,
		/* findings about host code and launches leave out a part of their phase class */
		.hidden = class < CLASS_LAUNCH && named_ns > all_ns
	};
}

/* Reports a saving of the mean step, without a replay. */
static ow_status report_by_mean(struct advice *a, int64_t part_ns, const struct report *report,
				struct str evidence)
{
	struct report of_mean = *report;

	of_mean.most = MIN(report->most, CONFIDENCE_MEDIUM);
	if (severity_of(a, part_ns) == SEVERITY_INFO)
		return OW_OK;
	return advice_remark(a, SEVERITY_LOW, 0, share_most(a, part_ns), true, &of_mean, evidence);
}

ow_status advice_report_part(struct advice *a, const struct cost *cost, int64_t part_ns,
			     const struct report *report)
{
	struct advice_row row = { .checked = true,
				  .what = report->what,
				  .where = report->where,
				  .advice = report->advice,
				  .falsified_by = report->falsified_by,
				  .has_saving = true,
				  .share_ns = part_ns,
				  .share_class = report->class,
				  .subject = subject_of(a, report->class, part_ns),
				  .high_ns = part_ns,
				  .confidence = MIN(report->most, CONFIDENCE_MEDIUM) };

	if (!has_texts(report))
		return error_no_memory(a->err);
	OW_TRY(cost->count ? evidence_of_cost(a, cost, &row.evidence)
			   : evidence_of_class(a, report->class, &row.evidence));
	if (a->ahead_ns)
		return report_by_mean(a, MIN(part_ns, a->ahead_ns), report, row.evidence);
	if ((double)part_ns < a->settings.remark * (double)a->step_ns)
		return OW_OK;
	row.severity = severity_of(a, part_ns);
	row.high_ns = share_most(a, part_ns);
	if (is_warm_up(a) || report->maybe_once)
		row.severity = MIN(row.severity, SEVERITY_LOW);
	return add_row(a, &row);
}

#define IN_TURNS 6 /* a cost that only one of up to this many steps has is reported, too */

/* Data loader workers that load one batch each finish together, so only one step in as many as
 * there are workers waits. */
static bool is_in_turns(const struct advice *a, const struct cost *cost,
			const struct saving *saving)
{
	return (double)saving->mean_ns >= a->settings.medium * (double)a->step_ns &&
	       saving->mean_ns / 2 > saving->median_ns && saving->steps >= 2 &&
	       (cost->in_pairs || saving->steps * IN_TURNS >= a->steps);
}

/* A host that runs ahead of its device and waits for it in every fifth step, say: the median step does not get shorter, the mean step
 * does. Hidden behind other work the cost saves nothing; what single steps have is the matter of other rules. */
static ow_status report_in_turns(struct advice *a, const struct cost *cost,
				 const struct report *report, const struct saving *saving)
{
	struct report of_mean = *report;
	struct str evidence;

	if (!is_in_turns(a, cost, saving))
		return OW_OK;
	of_mean.in_steps = saving->steps;
	OW_TRY(evidence_of_cost(a, cost, &evidence));
	return advice_remark(a, SEVERITY_LOW, 0, saving->mean_ns, true, &of_mean, evidence);
}

static ow_status report_cost(struct advice *a, const struct cost *cost, const struct report *report,
			     bool is_bound)
{
	struct advice_row row = { .checked = true, .has_saving = true, .is_bound = is_bound };
	struct saving all, part;
	double factor;

	if (!has_texts(report))
		return error_no_memory(a->err);
	if (!cost->count)
		return OW_OK;
	if (!advice_replays(a))
		return advice_report_part(
			a, cost,
			MIN(a->ahead_ns ? cost_ahead_per_step(a, cost)
					: cost_per_step(a, cost, NULL),
			    report->class < CLASS_COUNT ? a->share_ns[report->class] : a->step_ns),
			report);
	cost_replay(a, cost, 0, &all);
	row.high_ns = row.alone_ns = all.median_ns;
	if ((double)row.high_ns < a->settings.remark * (double)a->step_ns ||
	    (!is_bound && is_in_turns(a, cost, &all)))
		return is_bound ? OW_OK : report_in_turns(a, cost, report, &all);
	OW_TRY(cost_best_factor(a, cost, &factor));
	if (factor < 1 && cost->effect != EFFECT_UNBLOCK && cost->effect != EFFECT_SCALE) {
		cost_replay(a, cost, factor, &part);
		row.low_ns = MAX(MIN(part.median_ns, row.high_ns) - part.off_ns, 0);
	}
	row.what = report->what;
	row.where = report->where;
	row.advice = report->advice;
	row.falsified_by = report->falsified_by;
	row.subject = subject_of(a, report->class,
				 report->names_share ? a->share_ns[report->class]
						     : cost_per_step(a, cost, NULL));
	row.severity = severity_of(a, row.high_ns);
	if (all.mean_ns > row.high_ns) /* the host ran ahead of the device in half of the steps */
		row.high_ns = MIN(all.mean_ns, row.high_ns + row.high_ns / 2);
	row.high_ns = MIN(span_add(row.high_ns, all.off_ns), a->step_ns);
	if (is_warm_up(a) || is_bound || report->maybe_once || is_only_in_first(a, cost))
		row.severity = MIN(row.severity, SEVERITY_LOW);
	row.confidence = confidence_of(a, report->most);
	if (!is_bound)
		OW_TRY(keep_cost(a, cost, &row.cost));
	OW_TRY(report->whole_events ? evidence_of_class(a, report->class, &row.evidence)
				    : evidence_of_cost(a, cost, &row.evidence));
	return add_row(a, &row);
}

ow_status advice_report(struct advice *a, const struct cost *cost, const struct report *report)
{
	return report_cost(a, cost, report, false);
}

ow_status advice_report_bound(struct advice *a, const struct cost *cost,
			      const struct report *report)
{
	return report_cost(a, cost, report, true);
}

/* By how much the mean step may have more of what some steps have: steps at the ends of the recording are left out, and one of them may
 * have it as well. */
static double mean_margin(const struct advice *a, const struct report *report)
{
	double margin = STEPS_OF_MEAN / MAX(a->steps, 1u);

	if (report->in_steps)
		margin = fmax(margin, fmin(1.0 / report->in_steps, MEAN_MARGIN_MOST));
	return replay_margin(a) + margin;
}

ow_status advice_remark(struct advice *a, enum severity severity, int64_t low_ns, int64_t high_ns,
			bool by_mean, const struct report *report, struct str evidence)
{
	struct advice_row row = { .checked = true,
				  .severity = severity,
				  .what = report->what,
				  .where = report->where,
				  .advice = report->advice,
				  .falsified_by = report->falsified_by,
				  .has_saving = high_ns >= 0,
				  .by_mean = by_mean,
				  .low_ns = MAX(low_ns, 0),
				  .high_ns = high_ns,
				  .subject = { .class = CLASS_COUNT },
				  .confidence = MIN(report->most, CONFIDENCE_HIGH),
				  .evidence = evidence.ptr ? evidence : STR("[]") };

	if (!has_texts(report))
		return error_no_memory(a->err);
	if (high_ns >= 0)
		row.severity = severity_of(a, high_ns);
	if (high_ns > 0 && by_mean) /* the mean also depends on which steps are counted */
		row.high_ns += llround((double)high_ns * mean_margin(a, report));
	return add_row(a, &row);
}

ow_status advice_report_mean(struct advice *a, const struct cost *cost, int64_t saving_ns,
			     const char *what, struct report *report)
{
	const char *place = strstr(what, "%s");
	char time[TIME_TEXT];
	struct str evidence;

	if ((double)saving_ns < a->settings.remark * (double)a->step_ns || !place)
		return OW_OK;
	report->what = advice_text(a, "%.*s%s%s", (int)(place - what), what,
				   time_text(time, saving_ns), place + 2);
	OW_TRY(evidence_of_cost(a, cost, &evidence));
	return advice_remark(a, SEVERITY_LOW, 0, saving_ns, true, report, evidence);
}

ow_status advice_report_words(struct advice *a, const char *const *words, const char *what,
			      struct report *report)
{
	struct cost cost = { .effect = EFFECT_WAIT };
	int64_t mean;

	if (!advice_has_nodes(a))
		return advice_not_checked(a, "needs host threads with their events");
	OW_TRY(cost_add_inside(a, &cost, words, false));
	if (!cost.count)
		return OW_OK;
	report->where = cost_where(a, &cost);
	mean = cost_idle_per_step(a, &cost);
	if (advice_replays(a)) {
		struct saving saving;

		cost_replay(a, &cost, 0, &saving);
		mean = saving.mean_ns;
		report->in_steps = saving.steps;
	}
	return advice_report_mean(a, &cost, mean, what, report);
}

bool share_is_large(const struct advice *a, enum phase_class class)
{
	return a->step_ns > 0 &&
	       (double)a->share_ns[class] >= a->settings.remark * (double)a->step_ns;
}

/* Returns whether only some steps, in turns, have the cost: the median step has little of the
 * cost of the mean step. */
static bool is_share_in_turns(const struct advice *a, enum phase_class class)
{
	return (double)a->mean_ns[class] >= a->settings.medium * (double)a->step_ns &&
	       a->mean_ns[class] / 2 > a->share_ns[class] && a->steady.used_count > 2;
}

struct str advice_share(struct advice *a, enum phase_class class)
{
	bool of_mean = is_share_in_turns(a, class);
	char time[TIME_TEXT];

	return advice_text(a, "%s of %s step",
			   time_text(time, of_mean ? a->mean_ns[class] : a->share_ns[class]),
			   of_mean ? "the mean" : "a");
}

ow_status advice_report_share(struct advice *a, enum phase_class class, const struct report *report)
{
	struct advice_row row = { .checked = true,
				  .what = report->what,
				  .where = report->where,
				  .advice = report->advice,
				  .falsified_by = report->falsified_by,
				  .has_saving = true,
				  .share_ns = a->share_ns[class],
				  .share_class = class,
				  .subject = subject_of(a, class, a->share_ns[class]),
				  .high_ns = a->share_ns[class],
				  .confidence = MIN(report->most, CONFIDENCE_MEDIUM) };

	if (!has_texts(report))
		return error_no_memory(a->err);
	if (a->ahead_ns || is_share_in_turns(a, class)) {
		OW_TRY(evidence_of_class(a, class, &row.evidence));
		return report_by_mean(a, a->mean_ns[class], report, row.evidence);
	}
	if (!share_is_large(a, class))
		return OW_OK;
	row.severity = severity_of(a, row.high_ns);
	row.high_ns = share_most(a, row.high_ns);
	if (is_warm_up(a) || report->maybe_once)
		row.severity = MIN(row.severity, SEVERITY_LOW);
	OW_TRY(evidence_of_class(a, class, &row.evidence));
	return add_row(a, &row);
}

static int rank_of(const struct advice_row *row)
{
	return row->checked && row->is_bound			  ? 2
	       : row->checked && row->has_saving && !row->by_mean ? 0
	       : row->checked && row->has_saving		  ? 1
	       : row->checked && row->severity > SEVERITY_INFO	  ? 2
	       : row->checked					  ? 3
								  : 4;
}

/* Orders findings by saving: first findings of the median step, which add up, then findings of the mean
 * step, then remarks. */
static int by_saving(const void *x, const void *y)
{
	const struct advice_row *a = x, *b = y;
	int ra = rank_of(a), rb = rank_of(b);

	if (ra != rb)
		return ra < rb ? -1 : 1;
	if (ra <= 1 && a->high_ns != b->high_ns)
		return a->high_ns > b->high_ns ? -1 : 1;
	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	return strcmp(a->rule->name, b->rule->name);
}

static void add_up_replays(struct advice *a)
{
	int64_t now = a->s.base.median_ns, shares = 0; /* parts of a step that are not replayed */
	bool replayed = false;

	scenario_reset(&a->s.g, &a->s.changed);
	for (size_t i = 0; i < a->row_count; i++) {
		struct advice_row *row = &a->rows[i];

		if (row->share_ns > 0) {
			row->after_ns = MIN(row->share_ns, now - shares);
			row->has_after = true;
			shares += row->after_ns;
		}
		if (!row->cost.count)
			continue;
		cost_apply(a, &a->s.changed, &row->cost, 0);
		if (!replayed) { /* the first one was replayed alone */
			row->after_ns = MIN(row->alone_ns, now - shares);
		} else {
			replay_again(&a->s.trial, &a->s.changed);
			row->after_ns = MIN(MAX(now - a->s.trial.median_ns, 0), now - shares);
		}
		replayed = true;
		row->has_after = true;
		now -= row->after_ns;
	}
	a->if_all_ns = a->step_ns - (a->s.base.median_ns - now) - shares;
}

/* Whether a class is host time during which the device waits: findings about any of these classes may be about the
 * same time (host_code, launch_bound, synchronization). */
static bool is_of_host(enum phase_class class)
{
	return class == CLASS_HOST || class == CLASS_IDLE || class == CLASS_LAUNCH ||
	       class == CLASS_SYNCHRONISATION;
}

/* Shares of phases do not overlap, so they add up. Several findings about the same share count once. */
static void add_up_shares(struct advice *a)
{
	int64_t left[CLASS_COUNT + 1], of_host = 0;

	memcpy(left, a->share_ns, sizeof(a->share_ns));
	left[CLASS_COUNT] = a->step_ns;
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		if (is_of_host((enum phase_class)c))
			of_host = span_add(of_host, a->share_ns[c]);
	a->if_all_ns = a->step_ns;
	for (size_t i = 0; i < a->row_count; i++) {
		struct advice_row *row = &a->rows[i];
		int64_t *rest = is_of_host(row->share_class) ? &of_host : &left[row->share_class];

		if (row->share_ns <= 0)
			continue;
		row->after_ns = MIN(row->share_ns, MIN(a->if_all_ns, *rest));
		row->has_after = true;
		*rest -= row->after_ns;
		a->if_all_ns -= row->after_ns;
	}
}

/* The files themselves do not name their producer; only TensorFlow writes files of these
 * formats. */
static bool is_tensorflow(const struct model *m, uint32_t source)
{
	struct str format = model_str(m, m->source.format[source]);

	return str_eq(format, STR("profile")) || str_eq(format, STR("runmeta"));
}

static enum framework find_framework(const struct model *m)
{
	for (uint32_t i = 1; i < m->source.count; i++) {
		struct str producer = model_str(m, m->source.producer[i]);

		if (str_has(producer, STR("orch")) || str_has(producer, STR("ineto")))
			return FRAMEWORK_TORCH;
		if (str_has(producer, STR("JAX")) || str_has(producer, STR("jax")))
			return FRAMEWORK_JAX;
		if (str_has(producer, STR("TF")) || str_has(producer, STR("TensorFlow")) ||
		    str_has(producer, STR("tfprof")) || is_tensorflow(m, i))
			return FRAMEWORK_TENSORFLOW;
	}
	return FRAMEWORK_UNKNOWN;
}

/* Computes the median, mean and smallest share of each phase class over the steady steps. If a step has
 * several devices, their mean counts. */
static ow_status measure_shares(struct advice *a)
{
	const struct phases *p = &a->s.g.phases;
	int64_t *values = ARENA_ARRAY(&a->scratch, int64_t, (size_t)a->steady.used_count + 1);

	if (!values)
		return error_no_memory(a->err);
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		uint32_t count = 0;
		int64_t sum = 0;

		for (uint32_t i = 0; i < a->steady.used_count; i++) {
			const struct phase_window *w = &p->windows[a->steady.used[i]];
			struct phase_row mean;

			if (!w->row_count)
				continue;
			phases_mean(p->rows + w->row_first, w->row_count, &mean);
			values[count++] = mean.sums.share[c];
			sum = span_add(sum, mean.sums.share[c]);
		}
		a->mean_ns[c] = count ? sum / count : 0;
		a->share_ns[c] = median_of(values, count);
		a->least_ns[c] = count ? values[0] : 0;
	}
	return OW_OK;
}

/* Steps of different jobs are not compared, and no replay covers several jobs. */
static bool has_several_jobs(const struct advice *a)
{
	const struct phases *p = &a->s.g.phases;

	for (uint32_t i = 1; i < p->window_count; i++)
		if (a->m->source.run[p->windows[i].source.v] !=
		    a->m->source.run[p->windows[0].source.v])
			return true;
	return false;
}

static ow_status prepare_facts(struct advice *a)
{
	struct event_filter all = EVENT_FILTER_ALL;

	OW_TRY(session_open(a->m, &all,
			    &(struct graph_extent){ .until = TIME_UNKNOWN, .shares = true }, &a->s,
			    a->err));
	OW_TRY(steady_find(a->m, &a->s.g.phases, 0, (source_id){ 0 }, &a->s.arena, &a->steady,
			   a->err));
	a->several_jobs = has_several_jobs(a);
	a->has_steps =
		a->s.g.phases.window_count && a->steady.step_ns != TIME_UNKNOWN && !a->several_jobs;
	a->step_ns = a->has_steps ? a->steady.step_ns : 0;
	a->framework = find_framework(a->m);
	for (uint32_t i = 0; i < a->s.g.step_count; i++)
		a->steps += a->s.g.steps[i].used && a->s.g.steps[i].steady;
	a->launches = ARENA_ARRAY(&a->s.arena, uint8_t, (size_t)a->s.g.node_count + 1);
	a->launch_sum = ARENA_ARRAY(&a->s.arena, uint32_t, (size_t)a->s.g.node_count + 1);
	if (!a->launches || !a->launch_sum)
		return error_no_memory(a->err);
	for (uint32_t i = 0; i < a->s.g.node_count; i++)
		if (a->s.g.launch[i])
			a->launches[a->s.g.launch[i] - 1] = 1;
	for (uint32_t i = 0; i < a->s.g.node_count; i++)
		a->launch_sum[i + 1] =
			a->launch_sum[i] + (a->launches[i] || a->s.g.kind[i] == NODE_LAUNCH);
	OW_TRY(measure_shares(a));
	return a->has_steps ? ahead_measure(a) : OW_OK;
}

static bool is_muted(const struct advice *a, const struct rule *rule)
{
	for (size_t i = 0; i < a->settings.muted_count; i++)
		if (strcmp(a->settings.muted[i], rule->name) == 0)
			return true;
	return false;
}

static bool is_wanted(const struct rule *rule, const struct ow_list *names)
{
	for (size_t i = 0; names && i < names->count; i++)
		if (strcmp(names->items[i], rule->name) == 0 ||
		    (rule->checker && strcmp(names->items[i], rule->checker) == 0))
			return true;
	return !names;
}

/* The rules of tfprof say less than a replay. They run only if no other rule found something, or
 * if the caller names them. */
static ow_status run_tfprof(struct advice *a, const struct rule *rule, bool named,
			    struct findings *found)
{
	size_t first = found->count;

	found->not_checked = STR("");
	OW_TRY(rule->check(a->m, found, a->err));
	for (size_t i = first; i < found->count; i++) {
		const struct finding *f = &found->items[i];

		/* tfprof prints an empty line for a finding without text */
		if (!f->what.len && !named)
			continue;
		OW_TRY(add_row(a, &(struct advice_row){ .checked = true,
							.severity = SEVERITY_INFO,
							.what = f->what,
							.where = f->where,
							.advice = f->advice,
							.confidence = CONFIDENCE_LOW,
							.evidence = STR("[]") }));
	}
	if (found->not_checked.len)
		return advice_not_checked(a, "%.*s", STR_ARG(found->not_checked));
	return OW_OK;
}

static bool has_findings(const struct advice *a)
{
	for (size_t i = 0; i < a->row_count; i++)
		if (a->rows[i].checked && a->rows[i].severity >= SEVERITY_LOW)
			return true;
	return advice_replays(a);
}

/* Returns whether the caller names only rules of tfprof, which need no replay. */
static bool only_tfprof(const struct ow_list *names)
{
	for (size_t i = 0; i < rule_count; i++)
		if (rules[i]->advise && is_wanted(rules[i], names))
			return false;
	return true;
}

ow_status advice_make(struct model *m, const struct ow_list *names, struct arena *arena,
		      struct advice *a, struct findings *tfprof, struct ow_error *err)
{
	ow_status status;

	memset(a, 0, sizeof(*a));
	a->m = m;
	a->arena = arena;
	a->err = err;
	a->settings = m->advice ? *m->advice : (struct advice_settings)ADVICE_SETTINGS_DEFAULT;
	arena_init(&a->scratch, m->mem);
	arena_init(&a->s.arena, m->mem);
	arena_init(&a->s.g.arena, m->mem);
	status = only_tfprof(names) ? OW_OK : prepare_facts(a);
	for (size_t i = 0; status == OW_OK && i < rule_count; i++) {
		a->rule = rules[i];
		arena_clear(&a->scratch);
		a->words = NULL;
		if (!rules[i]->advise || !is_wanted(rules[i], names) ||
		    (!names && is_muted(a, rules[i])))
			continue;
		if (a->several_jobs && rules[i] != &rule_data_quality)
			status = advice_not_checked(
				a, "the files belong to different jobs: give the files of one job");
		else
			status = rules[i]->advise(a, err);
	}
	if (status == OW_OK && a->row_count)
		qsort(a->rows, a->row_count, sizeof(*a->rows), by_saving);
	if (status == OW_OK && advice_replays(a))
		add_up_replays(a);
	else
		add_up_shares(a);
	if (status == OW_OK && !names && has_findings(a))
		return OW_OK;
	for (size_t i = 0; status == OW_OK && i < rule_count; i++) {
		a->rule = rules[i];
		if (rules[i]->check && is_wanted(rules[i], names) &&
		    (names || !is_muted(a, rules[i])))
			status = run_tfprof(a, rules[i], names != NULL, tfprof);
	}
	return status;
}

void advice_close(struct advice *a)
{
	session_close(&a->s);
	arena_release(&a->scratch);
}
