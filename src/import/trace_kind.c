/*
 * trace_kind.c: what kind of track a thread of a trace is, from the layer of its slices and the names of
 * process and thread. Producers differ; docs/formats/trace.md lists what is known of each.
 */
#include "import/trace_int.h"

/* TensorFlow 1 calls processes "<device> Compute" and "<device> Tensors". */
static bool tf1_device(struct str process, struct str *device)
{
	static const struct str compute = { " Compute", 8 };

	if (!str_ends(process, compute) || process.ptr[0] != '/')
		return false;
	*device = str_first(process, process.len - compute.len);
	return true;
}

/* "stream:all" and "memcpy" repeat what the numbered streams have, if there are any. */
void trace_find_streams(struct trace *t)
{
	static const char prefix[] = "/stream:";

	for (uint32_t i = 1; i < t->lane_count; i++) {
		struct str device;
		size_t at;

		if (!t->lanes[i].count ||
		    !tf1_device(model_str(t->b->m, t->processes[t->lanes[i].process].name),
				&device))
			continue;
		at = str_find(device, str_from(prefix));
		if (at != STR_NONE && at + sizeof(prefix) - 1 < device.len &&
		    device.ptr[at + sizeof(prefix) - 1] >= '0' &&
		    device.ptr[at + sizeof(prefix) - 1] <= '9')
			t->numbered_streams = true;
	}
}

static enum track_kind tf1_kind(const struct trace *t, struct str device)
{
	if (str_ends(device, STR("/stream:all")))
		return t->numbered_streams ? TRACK_DERIVED : TRACK_STREAM;
	if (str_ends(device, STR("/memcpy")))
		return t->numbered_streams ? TRACK_DERIVED : TRACK_COPY;
	if (str_has(device, STR("/stream:")))
		return TRACK_STREAM;
	return TRACK_HOST;
}

/* TensorFlow 2 has a process per device; its lines are streams and restatements of them. */
static enum track_kind tf2_kind(struct str process, struct str thread)
{
	if (str_has(process, STR(":TPU:")))
		return str_eq(thread, STR("XLA Ops")) ? TRACK_STREAM : TRACK_DERIVED;
	return str_starts(thread, STR("Stream #")) ? TRACK_STREAM : TRACK_DERIVED;
}

enum track_kind trace_lane_kind(const struct trace *t, const struct trace_lane *lane)
{
	struct str process = model_str(t->b->m, t->processes[lane->process].name);
	struct str thread = model_str(t->b->m, t->lanes[lane->thread].name), device;

	switch ((enum trace_layer)lane->key.layer) {
	case LAYER_FRAMES:
		return TRACK_FRAMES;
	case LAYER_DEVICE:
		return TRACK_STREAM;
	case LAYER_DERIVED:
		return TRACK_DERIVED;
	case LAYER_SPAN:
		return TRACK_SPAN;
	case LAYER_ASYNC:
		return TRACK_ASYNC;
	case LAYER_THREAD:
		break;
	}
	if (tf1_device(process, &device))
		return tf1_kind(t, device);
	if (str_starts(process, STR("/device:")))
		return tf2_kind(process, thread);
	if (lane->key.pid.kind == ID_TEXT &&
	    str_eq(trace_str(t, (uint32_t)lane->key.pid.value), STR("CUDA functions")))
		return TRACK_STREAM; /* PyTorch's exporter before Kineto */
	return TRACK_HOST;
}

device_id trace_lane_device(struct trace *t, const struct trace_lane *lane)
{
	struct trace_process *process = &t->processes[lane->process];
	struct str name = model_str(t->b->m, process->name), device;

	if (process->device.v)
		return process->device;
	if (tf1_device(name, &device))
		process->device = builder_device(t->b, device);
	else if (lane->key.layer == LAYER_DEVICE && process->labels.v)
		process->device = builder_device(t->b, model_str(t->b->m, process->labels));
	else if (str_starts(name, STR("/device:")) || str_starts(name, STR("/host:")))
		process->device = builder_device(t->b, name);
	return process->device;
}
