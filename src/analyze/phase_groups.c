/*
 * phase_groups.c: phases added up over steps, per job, rank and device and in all; see phases.h. Used by the
 * view `phases` and by the verdict.
 */
#include "analyze/phases.h"

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

/* One per distinct (job, rank, device) of the lanes. */
static ow_status make_groups(const struct model *m, const struct phases *p, struct arena *arena,
			     struct phase_groups *out, struct error *err)
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

/* Counts steps left out; false when that would leave nothing. */
static bool leave_out(const struct phases *p, struct phase_groups *out)
{
	uint32_t counts = 0;

	for (uint32_t i = 0; i < p->window_count; i++) {
		counts += p->windows[i].use == WINDOW_COUNTS;
		out->first_left_out += p->windows[i].use == WINDOW_FIRST;
		out->incomplete_left_out += p->windows[i].use == WINDOW_INCOMPLETE;
	}
	if (counts)
		return true;
	out->first_left_out = out->incomplete_left_out = 0;
	return false;
}

ow_status phases_group(const struct model *m, const struct phases *p, struct arena *arena,
		       struct phase_groups *out, struct error *err)
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

		if (choosy && w->use != WINDOW_COUNTS)
			continue;
		group->has_device |= lane->has_device;
		out->all.has_device |= lane->has_device;
		add_row(group, w, row);
		add_row(&out->all, w, row);
	}
	for (uint32_t i = 0; i < out->count; i++) { /* those of which the filter left nothing */
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
