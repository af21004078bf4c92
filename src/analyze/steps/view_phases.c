/*
 * view_phases.c: the view `phases`: where the time of all steps went, before the device, on it and after it. One row per phase, job, rank and
 * device, in the order of a step; if a job has several ranks or devices, their mean comes first. The first half adds phases up over
 * steps, also for the verdict. phases.h explains the phases.
 */
#include "analyze/steps/phases.h"

#include "analyze/view.h"

static int32_t rank_of(const struct model *m, source_id source)
{
	return source.v ? MAX(m->source.rank[source.v], -1) : -1;
}

static int by_job_rank_and_device(const void *a, const void *b)
{
	const struct phase_group *x = a, *y = b;

	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->device.v > y->device.v) - (x->device.v < y->device.v);
}

static void add_row(struct phase_group *g, const struct phase_window *w,
		    const struct phase_row *row)
{
	g->steps++;
	g->known |= w->known;
	g->time_ns = span_add(g->time_ns, span_length(w->start_ns, w->end_ns));
	if (w->between_ns != TIME_UNKNOWN)
		g->between_ns = span_add(g->between_ns, w->between_ns);
	phases_add(&g->sums, &row->sums);
	g->launch_gap_ns = span_add(g->launch_gap_ns, row->launch_gap_ns);
	g->dependency_gap_ns = span_add(g->dependency_gap_ns, row->dependency_gap_ns);
	g->queue_delay_ns = span_add(g->queue_delay_ns, row->queue_delay_ns);
	g->queued += row->queued;
	g->device_slices += w->device_slices;
}

static struct phase_group group_of(const struct model *m, const struct phase_lane *lane)
{
	return (struct phase_group){ .run = m->source.run[lane->source.v],
				     .source = lane->source,
				     .rank = rank_of(m, lane->source),
				     .device = lane->device };
}

/* Makes one group per distinct (job, rank, device) of the lanes. */
static ow_status make_groups(const struct model *m, const struct phases *p, struct arena *arena,
			     struct phase_groups *out, struct ow_error *err)
{
	uint32_t kept = 0;

	out->items = ARENA_ARRAY(arena, struct phase_group, p->lane_count);
	if (!out->items)
		return error_no_memory(err);
	for (uint32_t i = 0; i < p->lane_count; i++)
		out->items[i] = group_of(m, &p->lanes[i]);
	qsort(out->items, p->lane_count, sizeof(*out->items), by_job_rank_and_device);
	for (uint32_t i = 0; i < p->lane_count; i++)
		if (!kept || by_job_rank_and_device(&out->items[kept - 1], &out->items[i]) != 0)
			out->items[kept++] = out->items[i];
	out->count = kept;
	return OW_OK;
}

static struct phase_group *find_group(const struct phase_groups *groups,
				      const struct phase_group *key)
{
	return bsearch(key, groups->items, groups->count, sizeof(*key), by_job_rank_and_device);
}

/* Counts left-out steps; returns false if no step would remain. */
static bool leave_out(const struct phases *p, struct phase_groups *out)
{
	for (uint32_t i = 0; i < p->window_count; i++)
		out->left_out[p->windows[i].use]++;
	if (out->left_out[STEP_STEADY])
		return true;
	memset(out->left_out, 0, sizeof(out->left_out));
	return false;
}

ow_status phases_group(const struct model *m, const struct phases *p, struct arena *arena,
		       struct phase_groups *out, struct ow_error *err)
{
	uint32_t kept = 0;
	bool choosy;

	*out = (struct phase_groups){ .all.rank = -1 };
	OW_TRY(make_groups(m, p, arena, out, err));
	choosy = leave_out(p, out);
	for (uint32_t i = 0; i < p->row_count; i++) {
		const struct phase_row *row = &p->rows[i];
		const struct phase_window *w = &p->windows[row->window];
		const struct phase_lane *lane = &p->lanes[row->lane];
		struct phase_group key = group_of(m, lane);
		struct phase_group *group = find_group(out, &key);

		if (choosy && w->use != STEP_STEADY)
			continue;
		group->has_device |= lane->has_device;
		out->all.has_device |= lane->has_device;
		group->processors = out->all.processors = p->processors;
		add_row(group, w, row);
		add_row(&out->all, w, row);
	}
	/* removes groups in which the filter left nothing */
	for (uint32_t i = 0; i < out->count; i++) {
		if (!out->items[i].steps)
			continue;
		out->runs += !kept || out->items[kept - 1].run != out->items[i].run;
		out->items[kept++] = out->items[i];
	}
	out->count = kept;
	return OW_OK;
}

struct str phase_group_job(const struct model *m, const struct phase_group *group)
{
	for (uint32_t i = 1; i < m->fact.count; i++)
		if (m->fact.source[i].v == group->source.v && !m->fact.parent[i].v &&
		    m->fact.kind[i] == FACT_TEXT &&
		    str_eq(model_str(m, m->fact.key[i]), STR("job")))
			return model_str(m, m->fact.text[i]);
	return model_str(m, m->source.path[group->source.v]);
}

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

static void add_columns(struct table *out)
{
	table_add_column(out, "phase", "phase", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "where", "where", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "percent", "of step", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "share_ns", "share", TYPE_INT, UNIT_NS);
	table_add_column(out, "total_ns", "total", TYPE_INT, UNIT_NS);
	table_add_column(out, "overlapped_ns", "hidden", TYPE_INT, UNIT_NS);
	table_add_column(out, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(out, "device", "device", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "exposed_ns", "exposed", TYPE_INT, UNIT_NS);
	table_add_column(out, "per_step_ns", "per step", TYPE_INT, UNIT_NS);
	table_add_column(out, "steps", "steps", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "job", "job", TYPE_TEXT, UNIT_NONE);
	out->columns[COLUMN_PHASE].fixed = true;
}

/* A group as it is shown: of all jobs, or with the name of its job if there are several. */
struct shown_group {
	const struct phase_group *group;
	bool all;
	struct str job;
};

/* Starts a row and sets all columns except the times. */
static uint32_t start_row(struct table *out, const struct model *m, const struct shown_group *shown,
			  const char *phase, const char *where)
{
	const struct phase_group *g = shown->group;
	uint32_t row = table_add_row(out, 0);

	table_set_model_text(out, row, COLUMN_PHASE, str_from(phase));
	if (*where)
		table_set_model_text(out, row, COLUMN_WHERE, str_from(where));
	else
		table_set_unknown(out, row, COLUMN_WHERE);
	if (g->rank >= 0)
		table_set_int(out, row, COLUMN_RANK, g->rank);
	else
		table_set_unknown(out, row, COLUMN_RANK);
	if (shown->all)
		table_set_model_text(out, row, COLUMN_DEVICE, STR("all"));
	else if (g->has_device)
		table_set_model_text(out, row, COLUMN_DEVICE,
				     model_str(m, m->device.name[g->device.v]));
	else
		table_set_unknown(out, row, COLUMN_DEVICE);
	if (g->known)
		table_set_int(out, row, COLUMN_STEPS, g->steps);
	else
		table_set_unknown(out, row, COLUMN_STEPS);
	if (shown->job.len)
		table_set_model_text(out, row, COLUMN_JOB, shown->job);
	else
		table_set_unknown(out, row, COLUMN_JOB);
	return row;
}

static void set_times(struct table *out, uint32_t row, const struct phase_group *g, int64_t share,
		      int64_t total, int64_t overlapped)
{
	if (g->time_ns > 0)
		table_set_real(out, row, COLUMN_PERCENT,
			       100.0 * (double)share / (double)g->time_ns);
	else
		table_set_unknown(out, row, COLUMN_PERCENT);
	table_set_int(out, row, COLUMN_SHARE, share);
	table_set_int(out, row, COLUMN_TOTAL, total);
	table_set_int(out, row, COLUMN_OVERLAPPED, overlapped);
	table_set_int(out, row, COLUMN_EXPOSED, total - overlapped);
	if (g->known)
		table_set_int(out, row, COLUMN_PER_STEP, share / MAX((int64_t)g->steps, 1));
	else
		table_set_unknown(out, row, COLUMN_PER_STEP);
}

static void add_group(struct table *out, const struct model *m, const struct shown_group *shown)
{
	const struct phase_group *g = shown->group;
	uint32_t row;

	for (unsigned i = 0; i < CLASS_COUNT; i++) {
		unsigned class = phase_class_order[i];

		if (class == CLASS_RUN_QUEUE && !g->processors)
			continue;
		row = start_row(out, m, shown, phase_class_names[class], phase_class_places[class]);
		set_times(out, row, g, g->sums.share[class], g->sums.total[class],
			  g->sums.overlapped[class]);
	}
	row = start_row(out, m, shown, "between", "");
	set_times(out, row, g, g->between_ns, g->between_ns, 0);
	table_set_unknown(out, row, COLUMN_PERCENT); /* the time lies outside of the steps */
}

static ow_status add_footer(struct table *out, const struct phase_groups *groups,
			    struct ow_error *err)
{
	static const char *const words[STEP_USES] = {
		[STEP_WARM_UP] = "warm-up",
		[STEP_LAST] = "last",
		[STEP_INCOMPLETE] = "incomplete",
	};
	char text[160];
	int at = 0;

	for (unsigned use = STEP_WARM_UP; use < STEP_USES; use++)
		if (groups->left_out[use])
			at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%u %s",
				       at ? ", " : "", groups->left_out[use], words[use]);
	if (!at)
		return OW_OK;
	out->footer = arena_printf(&out->arena, "steps left out: %s", text);
	return out->footer ? OW_OK : error_no_memory(err);
}

/* Returns the mean over ranks and devices: it has as many steps as the group with the most, and its shares
 * still add up. */
static struct phase_group mean_group(const struct phase_groups *groups)
{
	struct phase_group mean = groups->all;
	double part;

	mean.steps = 0;
	for (uint32_t i = 0; i < groups->count; i++)
		mean.steps = MAX(mean.steps, groups->items[i].steps);
	part = (double)mean.steps / MAX(groups->all.steps, 1u);
	mean.time_ns = 0;
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		mean.sums.share[c] = (int64_t)((double)mean.sums.share[c] * part);
		mean.sums.total[c] = (int64_t)((double)mean.sums.total[c] * part);
		mean.sums.overlapped[c] = (int64_t)((double)mean.sums.overlapped[c] * part);
		mean.time_ns = span_add(mean.time_ns, mean.sums.share[c]);
	}
	mean.between_ns = (int64_t)((double)mean.between_ns * part);
	return mean;
}

/* Explains why there is nothing to show: there are steps, but no phases. */
static ow_status explain_empty(struct table *out, const struct model *m, struct ow_error *err)
{
	uint32_t known = 0;

	for (uint32_t i = 1; i < m->step.count; i++)
		known += !COLUMN_GET(m->step.whole, i);
	if (m->step.count <= 1)
		return OW_OK;
	if (known)
		out->footer = arena_printf(
			&out->arena,
			"%u step%s known, but not where the time went: the events of this input "
			"have no phases; 'opwatch steps' lists the steps",
			known, known == 1 ? " is" : "s are");
	else
		out->footer = "no steps are known, and the events of this input have no phases";
	return out->footer ? OW_OK : error_no_memory(err);
}

static ow_status list_phases(struct model *m, const struct event_filter *filter, struct phases *p,
			     struct table *out, struct ow_error *err)
{
	struct phase_groups groups;

	OW_TRY(phases_analyse(m, filter, p, err));
	OW_TRY(phases_group(m, p, &p->arena, &groups, err));
	if (!groups.count)
		return explain_empty(out, m, err);
	if (groups.count > 1 && groups.runs == 1) { /* different jobs are not added up */
		struct phase_group mean = mean_group(&groups);

		add_group(out, m, &(struct shown_group){ &mean, true, STR("") });
	}
	for (uint32_t i = 0; i < groups.count; i++) {
		const struct phase_group *g = &groups.items[i];

		add_group(out, m,
			  &(struct shown_group){
				  g, false, groups.runs > 1 ? phase_group_job(m, g) : STR("") });
	}
	return add_footer(out, &groups, err);
}

static ow_status run_phases_view(struct model *m, const struct view_options *options,
				 struct table *out, struct ow_error *err)
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
		table_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_phases = {
	.name = "phases",
	.summary = "where the time of steps goes: before, on and after the device",
	.uses = VIEW_USES_PART,
	.run = run_phases_view,
};
