/*
 * producer_tfprof.c: timelines that tfprof writes (and `opwatch --to timeline`): of the graph view, with
 * threads per device; of the scope and code views, which are no timelines but trees with one process per
 * depth, whose times are made up.
 */
#include "import/mean_int.h"

#define EXECUTION "Op execution threads: "
#define SCHEDULING "Op scheduling threads: "

static bool is_scope(struct str process)
{
	return str_starts(process, STR("Scope:"));
}

static bool is_graph(struct str process)
{
	return str_starts(process, STR(EXECUTION)) || str_starts(process, STR(SCHEDULING)) ||
	       str_starts(process, STR("mem usage on:"));
}

static bool recognise(const struct meaning *x)
{
	return x->categories & 1u << CATEGORY_TF_OP &&
	       (mean_has_process(x, is_scope) || mean_has_process(x, is_graph));
}

/* All depths on one track: what is inside another slice is below it in the tree. */
static void join_depths(struct meaning *x)
{
	uint32_t first = 0;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (!is_scope(mean_process(x, t)))
			continue;
		first = first ? first : t;
		x->m->track.kind[t] = TRACK_HOST;
		for (uint32_t e = track->first; e < track->last; e++)
			x->m->event.track[e].v = first;
	}
	mean_not_as_listed(x);
	x->no_phases = true;
}

static bool is_numbered(struct str device)
{
	size_t at = str_find(device, STR("/stream:"));

	return at != STR_NONE && at + 8 < device.len && device.ptr[at + 8] >= '0' &&
	       device.ptr[at + 8] <= '9';
}

static ow_status tracks(struct meaning *x)
{
	bool numbered = false;

	if (mean_has_process(x, is_scope)) {
		join_depths(x);
		return OW_OK;
	}
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		numbered |= str_starts(mean_process(x, t), STR(EXECUTION)) &&
			    is_numbered(mean_process(x, t));
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct str process = mean_process(x, t);

		if (str_starts(process, STR(EXECUTION)))
			mean_tf_device(x, t, str_skip(process, strlen(EXECUTION)), numbered);
		else if (str_starts(process, STR(SCHEDULING)))
			mean_tf_device(x, t, str_skip(process, strlen(SCHEDULING)), numbered);
		else if (str_starts(process, STR("mem usage on:")))
			x->m->track.kind[t] = TRACK_OTHER;
	}
	return builder_status(x->b);
}

static ow_status links(struct meaning *x)
{
	return x->has_device ? mean_link_ops(x, mean_tf_schedules) : OW_OK;
}

const struct producer producer_tfprof = {
	.name = "tfprof",
	.title = "tfprof timeline",
	.recognise = recognise,
	.tracks = tracks,
	.links = links,
	.host_phase = mean_tf_phase,
};
