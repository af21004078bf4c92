/*
 * view_phases.c: what the time of all steps went to: before the device, on it and after it in one
 * table. One row per phase, per job, rank and device, in the order in which a step goes; all of them
 * together come first when there are several. What the phases are is in phases.h.
 */
#include "analyze/phases.h"
#include "analyze/view.h"

enum {
	COLUMN_PHASE,
	COLUMN_WHERE,
	COLUMN_PERCENT,
	COLUMN_SHARE,
	COLUMN_TOTAL,
	COLUMN_OVERLAPPED,
	COLUMN_RANK,
	COLUMN_DEVICE,
	COLUMN_EXPOSED,
	COLUMN_PER_STEP,
	COLUMN_STEPS,
	COLUMN_JOB
};

static void add_columns(struct result *out)
{
	result_column(out, "phase", "phase", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "where", "where", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "percent", "of step", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "share_ns", "share", RESULT_INT, RESULT_NS);
	result_column(out, "total_ns", "total", RESULT_INT, RESULT_NS);
	result_column(out, "overlapped_ns", "hidden", RESULT_INT, RESULT_NS);
	result_column(out, "rank", "rank", RESULT_INT, RESULT_PLAIN);
	result_column(out, "device", "device", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "exposed_ns", "exposed", RESULT_INT, RESULT_NS);
	result_column(out, "per_step_ns", "per step", RESULT_INT, RESULT_NS);
	result_column(out, "steps", "steps", RESULT_INT, RESULT_COUNT);
	result_column(out, "job", "job", RESULT_TEXT, RESULT_PLAIN);
	out->columns[COLUMN_PHASE].fixed = true;
}

/* A group of all of them, or with the name of its job when there are several. */
struct shown_group {
	const struct phase_group *group;
	bool all;
	struct str job;
};

/* What a row says apart from its times. */
static uint32_t start_row(struct result *out, const struct model *m,
			  const struct shown_group *shown, const char *phase, const char *where)
{
	const struct phase_group *g = shown->group;
	uint32_t row = result_row(out, 0);

	result_set_model_text(out, row, COLUMN_PHASE, str_from(phase));
	if (*where)
		result_set_model_text(out, row, COLUMN_WHERE, str_from(where));
	else
		result_set_unknown(out, row, COLUMN_WHERE);
	if (g->rank >= 0)
		result_set_int(out, row, COLUMN_RANK, g->rank);
	else
		result_set_unknown(out, row, COLUMN_RANK);
	if (shown->all)
		result_set_model_text(out, row, COLUMN_DEVICE, STR("all"));
	else if (g->has_device)
		result_set_model_text(out, row, COLUMN_DEVICE,
				      model_str(m, m->device.name[g->device.v]));
	else
		result_set_unknown(out, row, COLUMN_DEVICE);
	result_set_int(out, row, COLUMN_STEPS, g->steps);
	if (shown->job.len)
		result_set_model_text(out, row, COLUMN_JOB, shown->job);
	else
		result_set_unknown(out, row, COLUMN_JOB);
	return row;
}

static void set_times(struct result *out, uint32_t row, const struct phase_group *g, int64_t share,
		      int64_t total, int64_t overlapped)
{
	if (g->time_ns > 0)
		result_set_real(out, row, COLUMN_PERCENT,
				100.0 * (double)share / (double)g->time_ns);
	else
		result_set_unknown(out, row, COLUMN_PERCENT);
	result_set_int(out, row, COLUMN_SHARE, share);
	result_set_int(out, row, COLUMN_TOTAL, total);
	result_set_int(out, row, COLUMN_OVERLAPPED, overlapped);
	result_set_int(out, row, COLUMN_EXPOSED, total - overlapped);
	result_set_int(out, row, COLUMN_PER_STEP, share / MAX((int64_t)g->steps, 1));
}

static void add_group(struct result *out, const struct model *m, const struct shown_group *shown)
{
	const struct phase_group *g = shown->group;
	uint32_t row;

	for (unsigned i = 0; i < CLASS_COUNT; i++) {
		unsigned class = phase_class_order[i];

		row = start_row(out, m, shown, phase_class_names[class], phase_class_places[class]);
		set_times(out, row, g, g->sums.share[class], g->sums.total[class],
			  g->sums.overlapped[class]);
	}
	row = start_row(out, m, shown, "between", "");
	set_times(out, row, g, g->between_ns, g->between_ns, 0);
}

static ow_status add_footer(struct result *out, const struct phase_groups *groups,
			    struct error *err)
{
	uint32_t first = groups->first_left_out, last = groups->incomplete_left_out;

	if (!first && !last)
		return OW_OK;
	out->footer = arena_printf(
		&out->arena, "left out: %s%s%s", first ? "the first of more than five steps" : "",
		first && last ? ", and " : "",
		last ? "a last step with less than 80 % of the work of the one before" : "");
	return out->footer ? OW_OK : error_no_memory(err);
}

static ow_status list_phases(struct model *m, const struct event_filter *filter, struct phases *p,
			     struct result *out, struct error *err)
{
	struct phase_groups groups;

	OW_TRY(phases_analyse(m, filter, p, err));
	OW_TRY(phases_group(m, p, &p->arena, &groups, err));
	if (groups.count > 1)
		add_group(out, m, &(struct shown_group){ &groups.all, true, STR("") });
	for (uint32_t i = 0; i < groups.count; i++) {
		const struct phase_group *g = &groups.items[i];

		add_group(out, m,
			  &(struct shown_group){
				  g, false, groups.runs > 1 ? phase_group_job(m, g) : STR("") });
	}
	return add_footer(out, &groups, err);
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct event_filter filter;
	struct phases p = { 0 };
	ow_status status;

	OW_TRY(view_filter(m, options, &filter, err));
	add_columns(out);
	status = list_phases(m, &filter, &p, out, err);
	phases_release(&p);
	OW_TRY(status);
	if (options->limit)
		result_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_phases = {
	.name = "phases",
	.summary = "where the time of the steps goes: before, on and after the device",
	.run = run,
};
