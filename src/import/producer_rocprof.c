/*
 * producer_rocprof.c: rocprof v1 of AMD. Processes say what their slices are; flows called "dep" lead from
 * the call to the device.
 */
#include "import/mean_int.h"

/* "GPU0" and so on. */
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

static bool recognise(const struct meaning *x)
{
	return mean_has_process(x, is_api) ||
	       (mean_has_process(x, is_gpu) && mean_has_process(x, is_marker));
}

static ow_status tracks(struct meaning *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct str process = mean_process(x, t);

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

static ow_status ops(struct meaning *x)
{
	return mean_shorten_kernels(x);
}

static enum event_phase host_phase(const struct meaning *x, uint32_t event)
{
	return is_api(mean_process(x, x->m->event.track[event].v)) ? PHASE_LAUNCH : PHASE_HOST;
}

static int flow_link(const struct meaning *x, struct str category)
{
	(void)x;
	return str_eq(category, STR("DataFlow")) ? LINK_LAUNCH : LINK_FLOW;
}

const struct producer producer_rocprof = {
	.name = "rocprof",
	.title = "rocprof",
	.recognise = recognise,
	.tracks = tracks,
	.ops = ops,
	.host_phase = host_phase,
	.flow_link = flow_link,
};
