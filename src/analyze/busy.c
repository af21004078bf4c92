/* busy.c: see busy.h. */
#include "analyze/busy.h"

/* Adds what the filter lets pass to the spans of its group, and counts it. */
static bool collect(const struct model *m, const struct event_filter *filter, const uint32_t *group,
		    struct span_list *lists, struct busy *out)
{
	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t g = group[m->event.track[i].v];
		int64_t begin = m->event.ts_ns[i], end = event_end(m, i);

		if (g == UINT32_MAX || !filter_step(filter, m->event.step[i]) ||
		    !filter_track(filter, m, m->event.track[i]) ||
		    !filter_clip(filter, &begin, &end))
			continue;
		out[g].events++;
		if (!spans_add(&lists[g], m->mem, begin, end))
			return false;
	}
	return true;
}

static bool add_up(struct mem *mem, struct span_list *lists, uint32_t count, struct busy *out)
{
	for (uint32_t g = 0; g < count; g++) {
		if (!spans_finish(&lists[g], mem))
			return false;
		for (size_t i = 0; i < lists[g].count; i++)
			out[g].busy_ns =
				span_add(out[g].busy_ns, span_length(lists[g].items[i].begin,
								     lists[g].items[i].end));
	}
	return true;
}

ow_status busy_measure(const struct model *m, const struct event_filter *filter,
		       const uint32_t *group, uint32_t count, struct busy *out, struct error *err)
{
	size_t bytes = (size_t)count * sizeof(struct span_list);
	struct span_list *lists;
	bool ok;

	if (!count || m->event.count <= 1)
		return OW_OK;
	lists = mem_zalloc(m->mem, bytes);
	if (!lists)
		return error_no_memory(err);
	ok = collect(m, filter, group, lists, out) && add_up(m->mem, lists, count, out);
	for (uint32_t g = 0; g < count; g++)
		spans_release(&lists[g], m->mem);
	mem_free(m->mem, lists, bytes);
	return ok ? OW_OK : error_no_memory(err);
}
