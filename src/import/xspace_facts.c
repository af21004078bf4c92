/* xspace_facts.c: what `opwatch info` tells about an XSpace: its planes and lines, with counts and exact sums. */
#include "import/xspace_int.h"

#define TOP 5
#define LINES_MAX 20000 /* listed; a file has a line per thread */

void xspace_line_facts(struct xspace *x, const struct xline *line, fact_id list, uint64_t events,
		       int64_t sum_ps)
{
	fact_id object;

	if (x->line_total > LINES_MAX)
		return;
	object = fact_object(x->b, list, NULL);
	fact_int(x->b, object, "id", line->id);
	fact_text(x->b, object, "name", model_str(x->b->m, xspace_text(x, line->name)));
	if (line->display.len)
		fact_text(x->b, object, "display_name",
			  model_str(x->b->m, xspace_text(x, line->display)));
	fact_int(x->b, object, "timestamp_ns", line->timestamp_ns);
	fact_int(x->b, object, "events", (int64_t)events);
	fact_int(x->b, object, "sum_duration_ps", sum_ps);
}

/* Whether a comes before b: the longest first, then by name. */
static bool before(const struct xplane *plane, uint32_t a, uint32_t b)
{
	if (plane->events[a].sum_ps != plane->events[b].sum_ps)
		return plane->events[a].sum_ps > plane->events[b].sum_ps;
	return str_cmp(plane->texts[a].name, plane->texts[b].name) < 0;
}

static void top_facts(struct xspace *x, const struct xplane *plane, fact_id object)
{
	uint32_t top[TOP + 1];
	fact_id list = fact_list(x->b, object, "top5_duration_ps");
	size_t count = 0;

	for (uint32_t i = 1; i < plane->event_ids.count; i++) {
		size_t at = count;

		if (!plane->events[i].runs)
			continue;
		for (; at && before(plane, i, top[at - 1]); at--)
			top[at] = top[at - 1];
		top[at] = i;
		count = MIN(count + 1, (size_t)TOP);
	}
	for (size_t i = 0; i < count; i++) {
		fact_id item = fact_list(x->b, list, NULL);

		fact_text(x->b, item, NULL,
			  model_str(x->b->m, xspace_text(x, plane->texts[top[i]].name)));
		fact_int(x->b, item, NULL, plane->events[top[i]].sum_ps);
		fact_int(x->b, item, NULL, (int64_t)plane->events[top[i]].runs);
	}
}

/* What the plane says about itself: capabilities of a device, versions, times. */
static void value_facts(struct xspace *x, const struct xplane *plane, fact_id object)
{
	fact_id values = { 0 };

	for (size_t i = 0; i < plane->value_count; i++) {
		const struct xvalue *v = &plane->values[i];
		uint32_t row = xids_find(&plane->stat_ids, v->stat);
		const char *name;

		if (!row || !plane->stats[row].name.len || v->field == 6 || !v->field)
			continue;
		if (!values.v)
			values = fact_object(x->b, object, "capabilities");
		name = model_str(x->b->m, xspace_text(x, plane->stats[row].name)).ptr;
		if (v->field == 2)
			fact_real(x->b, values, name, pb_double(v->bits));
		else if (v->field == 5 || v->field == 7)
			fact_text(x->b, values, name,
				  model_str(x->b->m, xspace_text(x, xvalue_text(plane, v))));
		else
			fact_int(x->b, values, name, (int64_t)v->bits);
	}
}

void xspace_plane_facts(struct xspace *x, struct xplane *plane, fact_id object)
{
	bool any = plane->min_start_ps != INT64_MAX;

	fact_text(x->b, object, "name", model_str(x->b->m, xspace_text(x, plane->name)));
	fact_int(x->b, object, "id", plane->id);
	fact_int(x->b, object, "lines", (int64_t)plane->line_count);
	fact_int(x->b, object, "events", (int64_t)plane->event_count);
	fact_int(x->b, object, "event_stats", (int64_t)plane->event_stats);
	fact_int(x->b, object, "event_metadata", plane->entries);
	fact_int(x->b, object, "stat_metadata", (int64_t)plane->stat_ids.count - 1);
	fact_int(x->b, object, "stats", (int64_t)plane->value_count);
	if (any) {
		fact_int(x->b, object, "min_start_ps", plane->min_start_ps);
		fact_int(x->b, object, "max_end_ps", plane->max_end_ps);
	}
	top_facts(x, plane, object);
	value_facts(x, plane, object);
}

ow_status xspace_facts(struct xspace *x)
{
	fact_id nil = { 0 }, others, hosts;

	fact_int(x->b, nil, "planes", (int64_t)x->plane_count);
	fact_int(x->b, nil, "lines", (int64_t)x->line_total);
	fact_int(x->b, nil, "events", (int64_t)x->event_total);
	others = fact_object(x->b, nil, "other_toplevel_fields");
	for (unsigned i = 0; i < ARRAY_COUNT(x->others); i++) {
		char number[8];

		snprintf(number, sizeof(number), "%u", i);
		if (x->others[i])
			fact_int(x->b, others, i ? number : "other", (int64_t)x->others[i]);
	}
	hosts = fact_list(x->b, nil, "hostnames");
	for (size_t i = 0; i < x->hostname_count; i++)
		fact_text(x->b, hosts, NULL, model_str(x->b->m, x->hostnames[i]));
	if (x->start_ns)
		fact_int(x->b, nil, "profile_start_time", x->start_ns);
	if (x->stop_ns)
		fact_int(x->b, nil, "profile_stop_time", x->stop_ns);
	return builder_status(x->b);
}
