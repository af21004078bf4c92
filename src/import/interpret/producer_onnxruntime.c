/*
 * producer_onnxruntime.c: ONNX Runtime. A list of slices, written when they end. A node's slice is called
 * <node>_kernel_time and has its type and execution provider; a run is one step.
 */
#include "import/interpret/interpret_int.h"

static bool is_session(struct str name)
{
	return str_starts(name, STR("model_loading_")) ||
	       str_eq(name, STR("session_initialization")) || str_eq(name, STR("model_run"));
}

static bool is_node(struct str name)
{
	return str_ends(name, STR("_kernel_time")) || str_ends(name, STR("_fence_before")) ||
	       str_ends(name, STR("_fence_after"));
}

#define OUR_CATEGORIES                                                                             \
	(1u << CATEGORY_ORT_SESSION | 1u << CATEGORY_ORT_NODE | 1u << CATEGORY_KERNEL)

static bool recognise_onnxruntime(const struct interpret *x)
{
	return x->in->array_form && x->in->only_slices && x->categories &&
	       !(x->categories & ~OUR_CATEGORIES) &&
	       (interpret_has_name(x, is_session) || interpret_has_name(x, is_node));
}

static ow_status onnxruntime_tracks(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		if (interpret_on_device(x, t))
			x->m->track.device[t] = builder_device(x->b, STR("GPU 0"));
	return builder_status(x->b);
}

/* ---- ops ---- */

static str_id provider_device(struct interpret *x, struct json_value value)
{
	static const struct str suffix = { "ExecutionProvider", 17 };
	struct str provider = json_text(value);
	char lower[64];

	if (value.kind != JSON_STRING || provider.len >= sizeof(lower))
		return (str_id){ 0 };
	if (str_ends(provider, suffix))
		provider.len -= suffix.len;
	for (size_t i = 0; i < provider.len; i++)
		lower[i] = (char)(provider.ptr[i] |
				  (provider.ptr[i] >= 'A' && provider.ptr[i] <= 'Z' ? 0x20 : 0));
	return builder_str(x->b, str_make(lower, provider.len));
}

static void take_node(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	static const struct str suffix = { "_kernel_time", 12 };
	str_id *to = arg, old = interpret_name(x, event), name;
	struct str text = model_str(x->m, old);
	struct op_draft *draft;

	if (!str_ends(text, suffix))
		return;
	name = builder_str(x->b, str_first(text, text.len - suffix.len));
	draft = interpret_draft(x, name);
	if (!draft)
		return;
	draft->type = interpret_string(x, json_find(args, "op_name"));
	draft->device = provider_device(x, json_find(args, "provider"));
	to[old.v] = name;
}

/* The arguments of the first run of each node hold for all of its runs. */
static ow_status onnxruntime_ops(struct interpret *x)
{
	str_id *to = ARENA_ARRAY(&x->scratch, str_id, x->string_count);
	struct interpret_rows rows = { 0 };
	ow_status status = to ? OW_OK : interpret_no_memory(x);

	for (uint32_t i = 1; i < x->string_count && status == OW_OK; i++)
		if (x->first_of[i] && interpret_category(x, x->first_of[i]) == CATEGORY_ORT_NODE)
			status = interpret_rows_add(x, &rows, x->first_of[i]);
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, take_node, to);
	interpret_rows_release(x, &rows);
	if (status == OW_OK)
		status = interpret_rename_all(x, to);
	return status == OW_OK ? interpret_shorten_kernels(x) : status;
}

/* ---- links ---- */

/* In the file kernels follow the node that launched them. */
struct place {
	uint64_t offset;
	uint32_t event;
	bool kernel;
};

static int by_offset(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static ow_status onnxruntime_links(struct interpret *x)
{
	size_t size = (size_t)(x->last_event - x->first_event) * sizeof(struct place), count = 0;
	struct place *places;
	ow_status status = OW_OK;
	uint32_t node = 0;

	if (!x->has_device || !x->m->event.args_offset)
		return OW_OK;
	places = mem_alloc(x->mem, size);
	if (!places)
		return interpret_no_memory(x);
	for (uint32_t e = x->first_event; e < x->last_event; e++) {
		enum category_class category = interpret_category(x, e);

		if (category == CATEGORY_ORT_NODE || category == CATEGORY_KERNEL)
			places[count++] = (struct place){ x->m->event.args_offset[e], e,
							  category == CATEGORY_KERNEL };
	}
	qsort(places, count, sizeof(*places), by_offset);
	for (size_t i = 0; i < count && status == OW_OK; i++) {
		if (!places[i].kernel)
			node = places[i].event;
		else if (node)
			status = interpret_add_link(x, node, places[i].event, LINK_LAUNCH);
	}
	mem_free(x->mem, places, size);
	return status;
}

static bool is_run(void *arg, struct str name)
{
	(void)arg;
	return str_eq(name, STR("model_run"));
}

static ow_status onnxruntime_steps(struct interpret *x)
{
	return interpret_mark_slices(x, is_run, NULL);
}

static enum event_phase onnxruntime_host_phase(const struct interpret *x, uint32_t event)
{
	uint32_t op = x->m->event.op[event].v;
	struct str type = model_str(x->m, x->m->op.type[op]);

	if (interpret_category(x, event) != CATEGORY_ORT_NODE)
		return PHASE_HOST;
	if (str_eq(type, STR("MemcpyToHost")))
		return PHASE_DEVICE_TO_HOST;
	if (str_eq(type, STR("MemcpyFromHost")))
		return PHASE_HOST_TO_DEVICE;
	if (x->has_device && !str_eq(model_str(x->m, x->m->op.device[op]), STR("cpu")))
		return PHASE_LAUNCH;
	return PHASE_COMPUTE;
}

const struct producer producer_onnxruntime = {
	.name = "onnxruntime",
	.title = "ONNX Runtime",
	.recognise = recognise_onnxruntime,
	.tracks = onnxruntime_tracks,
	.ops = onnxruntime_ops,
	.links = onnxruntime_links,
	.steps = onnxruntime_steps,
	.host_phase = onnxruntime_host_phase,
};
