/*
 * producer_torch_legacy.c: what torch.autograd.profiler exported before Kineto, and still does: a list of
 * slices without arguments, in processes called "CPU functions" and "CUDA functions".
 */
#include "import/mean_int.h"

static bool is_cpu(struct str process)
{
	return str_eq(process, STR("CPU functions"));
}

static bool is_cuda(struct str process)
{
	return str_eq(process, STR("CUDA functions"));
}

static bool recognise(const struct meaning *x)
{
	return mean_has_process(x, is_cpu) || mean_has_process(x, is_cuda);
}

/* Threads of the device process are devices. */
static ow_status tracks(struct meaning *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		char device[32];

		if (!is_cuda(mean_process(x, t)))
			continue;
		snprintf(device, sizeof(device), "GPU %" PRId64,
			 MAX(x->m->track.tid[t], (int64_t)0));
		x->m->track.kind[t] = TRACK_STREAM;
		x->m->track.device[t] = builder_device(x->b, str_from(device));
	}
	return builder_status(x->b);
}

static ow_status ops(struct meaning *x)
{
	return mean_shorten_kernels(x);
}

static bool is_optimizer_step(void *arg, struct str name)
{
	(void)arg;
	return str_starts(name, STR("Optimizer.step#"));
}

static ow_status steps(struct meaning *x)
{
	return mean_mark_ends(x, is_optimizer_step, NULL);
}

static int flow_link(const struct meaning *x, struct str category)
{
	(void)x;
	return str_eq(category, STR("cpu_to_cuda")) ? LINK_LAUNCH : LINK_FLOW;
}

/* Ranges have no category of their own here. */
static enum event_phase host_phase(const struct meaning *x, uint32_t event)
{
	struct str name = model_str(x->m, mean_name(x, event));

	return str_find_char(name, '#') != STR_NONE ? PHASE_HOST : PHASE_IDLE;
}

const struct producer producer_torch_legacy = {
	.name = "torch_legacy",
	.title = "PyTorch autograd profiler",
	.recognise = recognise,
	.tracks = tracks,
	.ops = ops,
	.steps = steps,
	.host_phase = host_phase,
	.flow_link = flow_link,
};
