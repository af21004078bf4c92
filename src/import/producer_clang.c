/*
 * producer_clang.c: clang -ftime-trace. "Total X" slices, each on a thread of its own, are sums of slices
 * elsewhere, not events.
 */
#include "import/mean_int.h"

static bool is_total(struct str name)
{
	return str_starts(name, STR("Total "));
}

static bool is_compiler(struct str name)
{
	return str_eq(name, STR("ExecuteCompiler")) || str_eq(name, STR("Total ExecuteCompiler"));
}

static bool recognise(const struct meaning *x)
{
	return x->in->members & MEMBER_BEGINNING_OF_TIME || mean_has_name(x, is_compiler);
}

static ow_status tracks(struct meaning *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);
		bool totals = track->first < track->last;

		for (uint32_t e = track->first; e < track->last && totals; e++)
			totals = is_total(model_str(x->m, mean_name(x, e)));
		if (totals)
			x->m->track.kind[t] = TRACK_DERIVED;
	}
	return OW_OK;
}

const struct producer producer_clang = {
	.name = "clang",
	.title = "clang -ftime-trace",
	.recognise = recognise,
	.tracks = tracks,
	.host_phase = mean_no_phase,
};
