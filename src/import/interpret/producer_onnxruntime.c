/*
 * producer_onnxruntime.c: interprets traces of ONNX Runtime: a list of slices, written when they end. A node's slice is
 * called <node>_kernel_time and has its type and execution provider; a run is one step. If several sessions share a
 * profile and take turns, a step is one round of them.
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

/* Makes ops of the nodes; the arguments of a node's first run hold for all of its runs. */
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

/* The position of a slice in the file, where kernels follow the node that launched them. */
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

#define MODELS_MOST 8
#define ALIKE 50 /* two runs belong to the same model if this percentage of their nodes is equal */

/* The nodes of all runs, run by run, and the model of each run. */
struct runs {
	struct interpret_marker *list; /* sorted by time */
	uint32_t count;
	/* for each run: index of its first node in names; one more entry marks the end */
	uint32_t *first;
	str_id *names;
	uint8_t *model;
	uint32_t models, of_model[MODELS_MOST];
};

static int by_start(const void *a, const void *b)
{
	const struct interpret_marker *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static bool do_overlap(const struct runs *r)
{
	for (uint32_t i = 1; i < r->count; i++)
		if (r->list[i].start < r->list[i - 1].end)
			return true;
	return false;
}

/* The run at time t, or `count`. */
static uint32_t run_at(const struct runs *r, int64_t t)
{
	uint32_t low = 0, high = r->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->list[middle].end <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->count && r->list[low].start <= t ? low : r->count;
}

static ow_status list_nodes(struct interpret *x, struct runs *r)
{
	uint32_t *next = ARENA_ARRAY(&x->scratch, uint32_t, (size_t)r->count + 1), sum = 0;

	r->first = ARENA_ARRAY(&x->scratch, uint32_t, (size_t)r->count + 1);
	r->names = ARENA_ARRAY(&x->scratch, str_id, (size_t)(x->last_event - x->first_event) + 1);
	if (!next || !r->first || !r->names)
		return interpret_no_memory(x);
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t e = x->first_event; e < x->last_event; e++) {
			uint32_t run = interpret_category(x, e) == CATEGORY_ORT_NODE
					       ? run_at(r, x->m->event.ts_ns[e])
					       : r->count;

			if (run < r->count && pass)
				r->names[next[run]++] = interpret_name(x, e);
			else if (run < r->count)
				next[run]++;
		}
		for (uint32_t i = 0; i < r->count && !pass; i++) {
			r->first[i] = sum;
			sum += next[i];
			next[i] = r->first[i];
		}
	}
	r->first[r->count] = sum;
	return OW_OK;
}

/* Finds the model of each run, by comparing its nodes with those of each model's first run. */
static ow_status find_models(struct interpret *x, struct runs *r)
{
	uint32_t *seen = ARENA_ARRAY(&x->scratch, uint32_t, x->m->strings.count);
	uint8_t *of = ARENA_ARRAY(&x->scratch, uint8_t, x->m->strings.count);
	uint32_t size[MODELS_MOST] = { 0 };

	r->model = ARENA_ARRAY(&x->scratch, uint8_t, r->count);
	if (!seen || !of || !r->model)
		return interpret_no_memory(x);
	for (uint32_t i = 0; i < r->count; i++) {
		uint32_t own = 0, common[MODELS_MOST] = { 0 }, k = 0;

		for (uint32_t n = r->first[i]; n < r->first[i + 1]; n++) {
			uint32_t name = r->names[n].v;

			if (seen[name] == i + 1)
				continue;
			seen[name] = i + 1;
			own++;
			for (uint32_t m = 0; m < r->models; m++)
				common[m] += of[name] >> m & 1;
		}
		while (k < r->models &&
		       (uint64_t)common[k] * 100 < (uint64_t)(own + size[k] - common[k]) * ALIKE)
			k++;
		if (k == MODELS_MOST) { /* too many models for turns */
			r->models = 0;
			return OW_OK;
		}
		if (k == r->models) {
			size[r->models++] = own;
			for (uint32_t n = r->first[i]; n < r->first[i + 1]; n++)
				of[r->names[n].v] |= (uint8_t)(1u << k);
		}
		r->model[i] = (uint8_t)k;
		r->of_model[k]++;
	}
	return OW_OK;
}

/* Finds the model that begins rounds: the first that runs again, if at least every other run of it is followed by
 * another model. */
static bool find_leader(const struct runs *r, uint8_t *leader)
{
	uint32_t again = 0, first = 0, followed = 0;

	for (uint32_t k = 0; k < r->models; k++)
		again += r->of_model[k] > 1;
	while (first < r->count && r->of_model[r->model[first]] < 2)
		first++;
	if (again < 2)
		return false;
	*leader = r->model[first];
	for (uint32_t i = first; i + 1 < r->count; i++)
		followed += r->model[i] == *leader && r->model[i + 1] != *leader;
	return followed * 2 >= r->of_model[*leader];
}

static ow_status mark_rounds(struct interpret *x)
{
	struct interpret_markers *m = &x->markers;
	struct runs r = { .list = m->list, .count = (uint32_t)m->count };
	uint32_t kept = 0;
	uint8_t leader;

	if (r.count < 4)
		return OW_OK;
	qsort(r.list, r.count, sizeof(*r.list), by_start);
	if (do_overlap(&r))
		return OW_OK;
	OW_TRY(list_nodes(x, &r));
	OW_TRY(find_models(x, &r));
	if (!find_leader(&r, &leader))
		return OW_OK;
	for (uint32_t i = 0; i < r.count; i++) {
		if (r.model[i] == leader)
			m->list[kept++] = r.list[i];
		else if (kept)
			m->list[kept - 1].end = r.list[i].end;
	}
	m->count = kept;
	builder_note(x->b, NOTE_INFO, OW_NO_OFFSET,
		     "runs of %u models take turns: a step is a run of the first one and the runs "
		     "that follow it",
		     r.models);
	return builder_status(x->b);
}

static ow_status onnxruntime_steps(struct interpret *x)
{
	OW_TRY(interpret_mark_slices(x, is_run, NULL));
	return mark_rounds(x);
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
