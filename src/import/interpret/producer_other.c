/*
 * producer_other.c: interprets producers with few rules: rocprof (the process gives the kind of a slice; flows "dep"
 * lead from the call to the device), clang -ftime-trace ("Total X" slices are sums, not events), V8, Chrome, and
 * `other`, which accepts every other trace: threads are threads, a name is an op.
 */
#include "import/interpret/interpret_int.h"

/* Whether a process is a GPU: "GPU0" and so on. */
static bool is_gpu(struct str process)
{
	return process.len > 3 && str_starts(process, STR("GPU")) && process.ptr[3] >= '0' &&
	       process.ptr[3] <= '9';
}

static bool is_api(struct str process)
{
	return str_eq(process, STR("CPU HIP API")) || str_eq(process, STR("CPU HSA API")) ||
	       str_eq(process, STR("CPU KFD API"));
}

static bool is_marker(struct str process)
{
	return str_eq(process, STR("Markers and Ranges"));
}

static bool recognise_rocprof(const struct interpret *x)
{
	return interpret_has_process(x, is_api) ||
	       (interpret_has_process(x, is_gpu) && interpret_has_process(x, is_marker));
}

static ow_status rocprof_tracks(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct str process = interpret_process(x, t);

		if (is_gpu(process)) {
			x->m->track.kind[t] = TRACK_STREAM;
			x->m->track.device[t] = builder_device(x->b, process);
		} else if (str_eq(process, STR("COPY"))) {
			x->m->track.kind[t] = TRACK_COPY;
			x->m->track.device[t] = builder_device(x->b, STR("GPU0"));
		}
	}
	return builder_status(x->b);
}

static ow_status rocprof_ops(struct interpret *x)
{
	return interpret_shorten_kernels(x);
}

static enum event_phase rocprof_host_phase(const struct interpret *x, uint32_t event)
{
	return is_api(interpret_process(x, x->m->event.track[event].v)) ? PHASE_LAUNCH : PHASE_HOST;
}

static int rocprof_flow_link(const struct interpret *x, struct str category)
{
	(void)x;
	return str_eq(category, STR("DataFlow")) ? LINK_LAUNCH : LINK_FLOW;
}

const struct producer producer_rocprof = {
	.name = "rocprof",
	.title = "rocprof",
	.recognise = recognise_rocprof,
	.tracks = rocprof_tracks,
	.ops = rocprof_ops,
	.host_phase = rocprof_host_phase,
	.flow_link = rocprof_flow_link,
};

static bool is_total(struct str name)
{
	return str_starts(name, STR("Total "));
}

static bool is_compiler(struct str name)
{
	return str_eq(name, STR("ExecuteCompiler")) || str_eq(name, STR("Total ExecuteCompiler"));
}

static bool recognise_clang(const struct interpret *x)
{
	return x->in->members & MEMBER_BEGINNING_OF_TIME || interpret_has_name(x, is_compiler);
}

static ow_status clang_tracks(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);
		bool totals = track->first < track->last;

		for (uint32_t e = track->first; e < track->last && totals; e++)
			totals = is_total(model_str(x->m, interpret_name(x, e)));
		if (totals)
			x->m->track.kind[t] = TRACK_DERIVED;
	}
	return OW_OK;
}

const struct producer producer_clang = {
	.name = "clang",
	.title = "clang -ftime-trace",
	.recognise = recognise_clang,
	.tracks = clang_tracks,
	.host_phase = interpret_no_phase,
};

static bool recognise_v8(const struct interpret *x)
{
	return x->categories & 1u << CATEGORY_V8 && !(x->categories & 1u << CATEGORY_CHROME);
}

const struct producer producer_v8 = {
	.name = "v8",
	.title = "V8 or Node.js",
	.recognise = recognise_v8,
	.host_phase = interpret_no_phase,
};

static bool recognise_chrome(const struct interpret *x)
{
	return x->categories & 1u << CATEGORY_CHROME ||
	       x->in->members & (MEMBER_CLIENT_INFO | MEMBER_HIGHRES_TICKS);
}

const struct producer producer_chrome = {
	.name = "chrome",
	.title = "Chrome",
	.recognise = recognise_chrome,
	.host_phase = interpret_no_phase,
};

static bool recognise_other(const struct interpret *x)
{
	(void)x;
	return true;
}

const struct producer producer_other = {
	.name = "other",
	.title = "unknown",
	.recognise = recognise_other,
	.steps = interpret_mark_by_args,
	.host_phase = interpret_no_phase,
};
