/*
 * what_if.c: predicts the length of a step with changes, as a table: the numbers are extra values, the new critical
 * path is the rows. Called by the library for `opwatch what-if`. The interval has three parts: how the prediction
 * varies between steps, the effect of inferred dependencies, and the measured error of predictions for this kind of
 * recording.
 */
#include "replay/change.h"

#include <math.h>

/* Error of predictions, as a share of the change, for kinds of recordings that were never changed and measured
 * again. */
#define CALIBRATION_NONE 0.30

static const struct calibration {
	const char *producer;
	bool device;
	double error;
	int jobs;
	const char *what, *date;
} calibrations[] = {
#define CALIBRATION(producer, device, error, jobs, what, date)                                     \
	{ producer, device, error, jobs, what, date },
#include "replay/calibration.def"
#undef CALIBRATION
};

/* The calibration for this kind of recording; NULL when there is none. */
static const struct calibration *find_calibration(const struct session *s)
{
	const struct model *m = s->g.m;

	for (size_t i = 0; i < ARRAY_COUNT(calibrations); i++)
		for (uint32_t k = 1; k < m->source.count; k++)
			if (calibrations[i].device == s->g.has_device &&
			    str_has(model_str(m, m->source.producer[k]),
				    str_from(calibrations[i].producer)))
				return &calibrations[i];
	return NULL;
}

static void add_calibration(const struct calibration *c, struct table *out)
{
	char text[200];

	if (c)
		snprintf(text, sizeof(text),
			 "%d changes of %s, measured on %s: 90 %% were within %.0f %% of the "
			 "change, "
			 "which are added to the interval",
			 c->jobs, c->what, c->date, 100 * c->error);
	else
		snprintf(text, sizeof(text),
			 "not measured for this kind of recording: %.0f %% of the change are added "
			 "to the interval",
			 100 * CALIBRATION_NONE);
	table_add_extra_text(out, "calibration", text);
}

struct outcome {
	double low, high; /* limits of the ratio new / recorded */
	int64_t median_ns;
};

/* Computes the interval of 90 % of the medians that result when each step is left out once. */
static ow_status leave_one_out(const struct session *s, const struct replay *r, struct outcome *out,
			       struct ow_error *err)
{
	const struct graph *g = &s->g;
	struct arena scratch;
	int64_t *times;
	uint32_t steps = 0;

	arena_init(&scratch, g->m->mem);
	times = ARENA_ARRAY(&scratch, int64_t, (size_t)g->step_count + 1);
	if (!times) {
		arena_release(&scratch);
		return error_no_memory(err);
	}
	*out = (struct outcome){ INFINITY, 0, r->median_ns };
	for (uint32_t i = 0; i < g->step_count; i++)
		steps += g->steps[i].used && g->steps[i].steady;
	for (uint32_t skip = 0; skip < g->step_count && steps > 1 && steps <= 400; skip++) {
		uint32_t count = 0;
		int64_t median;

		if (!g->steps[skip].used || !g->steps[skip].steady)
			continue;
		for (uint32_t i = 0; i < g->step_count; i++)
			if (i != skip && g->steps[i].used && g->steps[i].steady)
				times[count++] = r->step_ns[i];
		median = median_of(times, count);
		out->low = fmin(out->low, (double)median);
		out->high = fmax(out->high, (double)median);
	}
	if (out->low > out->high)
		out->low = out->high = (double)r->median_ns;
	arena_release(&scratch);
	return OW_OK;
}

static void add_numbers(const struct session *s, const struct outcome *with,
			const struct outcome *without, struct table *out)
{
	const struct calibration *calibration = find_calibration(s);
	double base = (double)s->g.step_ns;
	double off = calibration ? calibration->error : CALIBRATION_NONE;
	double low = fmin(with->low, without->low), high = fmax(with->high, without->high);
	double change = fabs((double)s->base.median_ns - (double)with->median_ns);
	/* The error of a prediction: a share of the change, plus the error of a replay without any change. */
	double wide = off * change + fmax(s->replay_error, 0) * (double)with->median_ns;
	int64_t fresh = s->g.step_ns - (s->base.median_ns - with->median_ns);

	low = fmax(low - wide, 0);
	high = high + wide;
	if (with->median_ns <= s->base.median_ns)
		high = fmin(high, fmax(base, (double)with->high) + wide / 2);
	table_add_extra(out, "new_step_ns", "%lld", (long long)MAX(fresh, 0));
	table_add_extra(out, "new_low_ns", "%lld", (long long)llround(fmin(low, (double)fresh)));
	table_add_extra(out, "new_high_ns", "%lld", (long long)llround(fmax(high, (double)fresh)));
	add_calibration(calibration, out);
	table_add_extra_text(out, "not_modelled",
			     "contention for memory, caches, clock frequency, and limits of the "
			     "launch queue");
}

static void add_refusal(const struct session *s, const char *why, struct table *out)
{
	static const char *const names[] = { "new_step_ns", "new_low_ns", "new_high_ns" };

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		table_add_extra(out, names[i], "null");
	table_add_extra_text(out, "refused", why);
	out->footer = arena_printf(&out->arena, "refused: %s", why);
	if (!out->footer)
		out->status = OW_E_NO_MEMORY;
	(void)s;
}

static const char *why_refused(const struct session *s, const struct change *changes, size_t count,
			       const uint64_t *matched, const char *const *texts, char *why,
			       size_t size)
{
	for (size_t i = 0; i < count; i++) {
		if (!matched[i] && changes[i].pattern) {
			snprintf(why, size, "'%s' matches nothing in the steps of this recording",
				 texts[i]);
			return why;
		}
		if (!matched[i] && changes[i].kind == CHANGE_RANK) {
			snprintf(why, size,
				 "rank %d and other ranks of its job are not among the files",
				 changes[i].rank);
			return why;
		}
		if (changes[i].kind == CHANGE_RANK && !s->g.joined_count) {
			snprintf(why, size,
				 "the ranks have no steps with the same collectives, so it is "
				 "unknown when they wait for each other");
			return why;
		}
	}
	return *s->g.refused ? s->g.refused : NULL;
}

static ow_status add_path(const struct session *s, const struct replay *r, struct arena *scratch,
			  struct table *out, struct ow_error *err)
{
	uint32_t step = median_step(&s->g);
	struct critical_path path;

	if (step == UINT32_MAX)
		return OW_OK;
	OW_TRY(path_find(r, step, scratch, &path, err));
	return path_rows(s, &path, step, NULL, out, err);
}

static ow_status predict(const struct session *s, const struct change *changes, size_t count,
			 const char *const *texts, struct arena *scratch, struct table *out,
			 struct ow_error *err)
{
	uint64_t *matched = ARENA_ARRAY(scratch, uint64_t, count + 1);
	struct outcome with, without;
	struct scenario scenario;
	struct replay r, plain;
	const char *refused;
	char why[400];

	if (!matched)
		return error_no_memory(err);
	OW_TRY(scenario_make(&s->g, scratch, &scenario, err));
	for (size_t i = 0; i < count; i++)
		OW_TRY(change_apply(s, &changes[i], &scenario, &matched[i], err));
	refused = why_refused(s, changes, count, matched, texts, why, sizeof(why));
	if (refused) {
		add_refusal(s, refused, out);
		return OW_OK;
	}
	OW_TRY(replay_run(&s->g, &scenario, scratch, &r, err));
	OW_TRY(leave_one_out(s, &r, &with, err));
	scenario.no_inferred = true;
	OW_TRY(replay_run(&s->g, &scenario, scratch, &plain, err));
	OW_TRY(leave_one_out(s, &plain, &without, err));
	add_numbers(s, &with, &without, out);
	table_add_extra_text(out, "refused", NULL);
	return add_path(s, &r, scratch, out, err);
}

ow_status what_if_table(struct model *m, const struct event_filter *filter,
			const char *const *changes, size_t count, struct table *out,
			struct ow_error *err)
{
	struct arena scratch;
	struct change *parsed;
	struct session s;
	ow_status status;

	arena_init(&scratch, m->mem);
	parsed = ARENA_ARRAY(&scratch, struct change, count + 1);
	status = parsed ? OW_OK : error_no_memory(err);
	for (size_t i = 0; status == OW_OK && i < count; i++)
		status = change_parse(changes[i], &scratch, &parsed[i], err);
	if (status != OW_OK) {
		arena_release(&scratch);
		return status;
	}
	status = session_open(m, filter, &(struct graph_extent){ .until = TIME_UNKNOWN }, &s, err);
	path_columns(out);
	table_add_extra(out, "schema_version", "1");
	if (status == OW_OK) {
		if (s.g.steady_count)
			table_add_extra(out, "base_step_ns", "%lld", (long long)s.g.step_ns);
		else
			table_add_extra(out, "base_step_ns", "null");
		if (session_replays(&s))
			table_add_extra(out, "replayed_step_ns", "%lld",
					(long long)s.base.median_ns);
		else
			table_add_extra(out, "replayed_step_ns", "null");
		session_extras(&s, session_replays(&s), out);
		if (session_replays(&s))
			status = predict(&s, parsed, count, changes, &scratch, out, err);
		else
			add_refusal(&s, s.g.refused, out);
	}
	session_close(&s);
	arena_release(&scratch);
	return status;
}
