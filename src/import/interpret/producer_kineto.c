/*
 * producer_kineto.c: interprets traces of PyTorch's profiler since 2020, and others that write through Kineto.
 * Categories give the kind of a slice; processes and their labels do not, because the host's may be called GPU 1. Calls
 * and device work have a correlation number. docs/producers.md lists the generations.
 */
#include "import/interpret/interpret_int.h"

static bool recognise_kineto(const struct interpret *x)
{
	const uint32_t both = MEMBER_SCHEMA_VERSION | MEMBER_DEVICE_PROPERTIES;

	return (x->in->members & both) == both || x->kineto_categories;
}

static bool has_category(const struct interpret *x, const char *category)
{
	str_id id = model_find_str(x->m, str_from(category));

	return id.v && id.v < x->string_count && x->category_of[id.v];
}

static bool has_flow(const struct interpret *x, const char *beginning)
{
	str_id last = { 0 };

	for (uint32_t i = x->first_flow; i < x->last_flow; i++) {
		if (x->m->flow.category[i].v == last.v)
			continue;
		last = x->m->flow.category[i];
		if (str_starts(model_str(x->m, last), str_from(beginning)))
			return true;
	}
	return false;
}

static bool has_fractions(const struct interpret *x)
{
	for (uint32_t e = x->first_event; e < x->last_event; e++)
		if (x->m->event.ts_ns[e] % 1000 != 0)
			return true;
	return false;
}

/* Reads the arguments of the first slice of a class. */
static ow_status sample_args(struct interpret *x, enum category_class class, struct buf *args)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!(track->categories & 1u << class))
			continue;
		for (uint32_t e = track->first; e < track->last; e++)
			if (interpret_category(x, e) == class)
				return interpret_args_of(x, e, args);
	}
	buf_clear(args);
	return OW_OK;
}

static bool has_key(const struct buf *args, const char *key)
{
	return args->len && json_find(buf_str(args), key).kind != JSON_NONE;
}

static ow_status find_generation(struct interpret *x)
{
	const char *years = "2022–23";
	struct buf op, kernel;
	ow_status status;

	buf_init(&op, x->mem);
	buf_init(&kernel, x->mem);
	status = sample_args(x, CATEGORY_OPERATOR, &op);
	if (status == OW_OK)
		status = sample_args(x, CATEGORY_KERNEL, &kernel);
	if (has_category(x, "Operator") || has_category(x, "Runtime") || has_category(x, "Memcpy"))
		years = "2020–21";
	else if (has_key(&kernel, "graph node id") || has_key(&kernel, "occupancy"))
		years = "2025–";
	else if (x->in->members & MEMBER_BASE_TIME)
		years = "2024–";
	else if (has_fractions(x))
		years = "early 2024";
	else if (has_key(&op, "Profiler Event Index") || has_key(&op, "Trace iteration") ||
		 has_flow(x, "async"))
		years = "2021–22";
	snprintf(x->title, sizeof(x->title), "PyTorch Kineto (%s)", years);
	buf_release(&op);
	buf_release(&kernel);
	return status;
}

/* Whether a text is a word and a number: "GPU 3", "MTIA 17". */
static bool is_label(struct str text)
{
	size_t space = str_find_char(text, ' ');

	return space != STR_NONE && space && trailing_number(str_skip(text, space + 1)) >= 0;
}

static device_id device_of(struct interpret *x, uint32_t track, struct str args)
{
	struct str labels = model_str(x->m, COLUMN_GET(x->m->track.labels, track));
	char name[32];
	int64_t number;

	if (str_starts(labels, STR("MTIA")))
		return builder_device(x->b, labels);
	if (args.len && interpret_number(json_find(args, "device"), &number) && number >= 0) {
		snprintf(name, sizeof(name), "GPU %" PRId64, number);
		return builder_device(x->b, str_from(name));
	}
	if (is_label(labels))
		return builder_device(x->b, labels);
	number = x->m->track.pid[track];
	snprintf(name, sizeof(name), "GPU %" PRId64, number >= 0 ? number : 0);
	return builder_device(x->b, str_from(name));
}

static void name_stream(struct interpret *x, uint32_t track)
{
	char name[32];

	if (x->m->track.tid[track] < 0 || !str_starts(interpret_thread(x, track), STR("thread ")))
		return;
	snprintf(name, sizeof(name), "stream %" PRId64, x->m->track.tid[track]);
	x->m->track.name[track] = builder_cstr(x->b, name);
}

static ow_status kineto_tracks(struct interpret *x)
{
	ow_status status = find_generation(x);
	struct buf args;

	buf_init(&args, x->mem);
	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++) {
		const struct interpret_track *track = interpret_track(x, t);
		bool derived = x->m->track.kind[t] == TRACK_DERIVED;

		if ((!interpret_on_device(x, t) && !derived) || track->first == track->last)
			continue;
		status = interpret_args_of(x, track->first, &args);
		if (status != OW_OK)
			break;
		x->m->track.device[t] = device_of(x, t, buf_str(&args));
		if (!derived)
			name_stream(x, t);
	}
	buf_release(&args);
	return status;
}

static int64_t type_size(struct str type)
{
	static const struct {
		const char *name;
		int64_t size;
	} types[] = {
		{ "Byte", 1 },		 { "Char", 1 },	    { "Bool", 1 },  { "Float8", 1 },
		{ "Half", 2 },		 { "BFloat16", 2 }, { "Short", 2 }, { "Int", 4 },
		{ "Float", 4 },		 { "Double", 8 },   { "Long", 8 },  { "ComplexFloat", 8 },
		{ "ComplexDouble", 16 },
	};

	for (size_t i = 0; i < ARRAY_COUNT(types); i++)
		if (str_eq(type, str_from(types[i].name)))
			return types[i].size;
	return str_starts(type, STR("Float8")) ? 1 : 0;
}

static void take_bytes(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	int64_t bytes, in = 0, out = 0, size;

	(void)arg;
	if (!interpret_number(json_find(args, "bytes"), &bytes) &&
	    !interpret_number(json_find(args, "size"), &bytes)) {
		size = type_size(json_text(json_find(args, "dtype")));
		interpret_number(json_find(args, "In msg nelems"), &in);
		interpret_number(json_find(args, "Out msg nelems"), &out);
		if (__builtin_mul_overflow(MAX(in, out), size, &bytes))
			return;
	}
	if (bytes > 0)
		BUILDER_SET(x->b, event, bytes, (event_id){ event }, bytes);
}

/* Whether an event moves bytes: copies and communication; for communication the host's record has the sizes, too. */
static bool moves_bytes(struct interpret *x, uint32_t event, bool device)
{
	enum category_class category = interpret_category(x, event);
	struct name_class class;

	if (category == CATEGORY_COPY || category == CATEGORY_MEMSET)
		return true;
	class = interpret_name_class(x, interpret_name(x, event));
	if (device)
		return class.device == DEVICE_COMMUNICATION || category == CATEGORY_COLLECTIVE;
	return class.host == HOST_ENQUEUE && category == CATEGORY_OPERATOR;
}

static ow_status find_bytes(struct interpret *x)
{
	struct interpret_rows rows = { 0 };
	ow_status status = OW_OK;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);
		bool device = interpret_on_device(x, t);

		if (!device && !interpret_on_host(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last && status == OW_OK; e++)
			if (moves_bytes(x, e, device))
				status = interpret_rows_add(x, &rows, e);
	}
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, take_bytes, NULL);
	interpret_rows_release(x, &rows);
	return status;
}

static void take_direction(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	struct str direction = json_text(json_find(args, "direction"));
	int64_t bytes;

	(void)arg;
	if (str_eq(direction, STR("HOST_TO_DEVICE")))
		interpret_rename(x, event, builder_cstr(x->b, "Memcpy HtoD (dma_request)"));
	else if (str_eq(direction, STR("DEVICE_TO_HOST")))
		interpret_rename(x, event, builder_cstr(x->b, "Memcpy DtoH (dma_request)"));
	if (interpret_number(json_find(args, "size"), &bytes) && bytes > 0)
		BUILDER_SET(x->b, event, bytes, (event_id){ event }, bytes);
}

static ow_status find_directions(struct interpret *x)
{
	str_id request = model_find_str(x->m, STR("dma_request"));
	struct interpret_rows rows = { 0 };
	ow_status status = OW_OK;

	if (!request.v)
		return OW_OK;
	for (uint32_t e = x->first_event; e < x->last_event && status == OW_OK; e++)
		if (interpret_name(x, e).v == request.v)
			status = interpret_rows_add(x, &rows, e);
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, take_direction, NULL);
	interpret_rows_release(x, &rows);
	return status;
}

/* Gives all step markers, whose names are numbered, one type. */
static ow_status type_markers(struct interpret *x)
{
	for (size_t i = 0; i < x->names.count; i++) {
		str_id name = { x->names.list[i] };
		struct op_draft *draft;

		if (!str_starts(model_str(x->m, name), STR("ProfilerStep#")))
			continue;
		draft = interpret_draft(x, name);
		if (!draft)
			break;
		draft->type = builder_cstr(x->b, "ProfilerStep");
	}
	return builder_status(x->b);
}

static ow_status kineto_ops(struct interpret *x)
{
	OW_TRY(type_markers(x));
	OW_TRY(find_directions(x));
	OW_TRY(find_bytes(x));
	return interpret_shorten_kernels(x);
}

/* The phase of a device event. Some generations name transfers by their direction, in addition to their name. */
static enum event_phase kineto_device_phase(const struct interpret *x, uint32_t event)
{
	struct str op = model_str(x->m, interpret_op_name(x, event));

	if (!COLUMN_GET(x->m->event.name, event).v)
		return PHASE_IDLE;
	return str_starts(op, STR("Memcpy HtoD"))   ? PHASE_HOST_TO_DEVICE
	       : str_starts(op, STR("Memcpy DtoH")) ? PHASE_DEVICE_TO_HOST
						    : PHASE_IDLE;
}

/* The sequence number of an event; 0 = none. */
static uint32_t sequence_of(const struct interpret *x, uint32_t event)
{
	const uint32_t *sequence = x->in->draft->sequence;

	return sequence ? sequence[event - x->first_event] : 0;
}

/* Collects sequence numbers. Ops that call each other share a number: the innermost, which starts last, counts. */
static bool take_sequences(const struct interpret *x, struct interpret_numbers *sequences)
{
	const int64_t *ts = x->m->event.ts_ns;
	uint32_t last = x->last_event;

	for (uint32_t e = x->first_event; e < last; e++) {
		uint32_t number = sequence_of(x, e);

		if (number)
			interpret_numbers_see(sequences, number);
	}
	if (!interpret_numbers_start(x, sequences))
		return false;
	for (uint32_t e = x->first_event; e < last; e++) {
		uint32_t number = sequence_of(x, e), *place;

		interpret_numbers_prefetch(
			sequences, last - e > INTERPRET_FAR ? sequence_of(x, e + INTERPRET_FAR) : 0,
			last - e > INTERPRET_NEAR ? sequence_of(x, e + INTERPRET_NEAR) : 0);
		if (!number)
			continue;
		place = interpret_numbers_place(sequences, number);
		if (!place)
			return false;
		if (!*place || ts[*place] <= ts[e])
			*place = e;
	}
	return true;
}

struct last_forward {
	struct interpret *x;
	uint32_t number, event;
};

/* Links the two events of a sequence number; the backward op comes second, see trace_sequence. */
static ow_status link_sequence(void *arg, uint32_t number, uint32_t event)
{
	struct last_forward *last = arg;

	if (number & 1 && last->event && last->number == number - 1)
		return interpret_add_link(last->x, last->event, event, LINK_FORWARD_BACKWARD);
	*last = (struct last_forward){ last->x, number, event };
	return OW_OK;
}

/* Two independent jobs, for two threads; only the one for launches uses the builder. */
struct linking {
	struct interpret *x;
	struct interpret_numbers sequences;
	bool wanted; /* false for later generations, which draw arrows instead */
	bool no_memory;
	ow_status launches;
	atomic_uint next;
};

static void run_links(void *arg, unsigned thread)
{
	struct linking *l = arg;

	(void)thread;
	for (;;) {
		unsigned job = atomic_fetch_add(&l->next, 1);

		if (job > 1)
			return;
		if (job == 0)
			l->launches = interpret_link_correlations(l->x);
		else if (l->wanted)
			l->no_memory = !take_sequences(l->x, &l->sequences);
	}
}

static ow_status kineto_links(struct interpret *x)
{
	struct linking l = { .x = x, .wanted = !has_flow(x, "fwdbwd") };
	struct last_forward last = { .x = x };
	ow_status status;

	if (!x->m->event.correlation)
		return OW_OK;
	parallel_run(interpret_threads(x), run_links, &l);
	status = l.launches;
	if (status == OW_OK && l.no_memory)
		status = interpret_no_memory(x);
	if (status == OW_OK)
		status = interpret_link_waits(x);
	if (status == OW_OK)
		status = interpret_numbers_each(&l.sequences, link_sequence, &last);
	interpret_numbers_release(&l.sequences);
	return status;
}

/* The kind of a flow. Arrows from call to kernel repeat the correlation, with many loose ends. */
static int kineto_flow_link(const struct interpret *x, struct str category)
{
	bool launch = str_eq(category, STR("ac2g")) || str_starts(category, STR("async"));

	if (str_eq(category, STR("fwdbwd")))
		return LINK_FORWARD_BACKWARD;
	if (launch)
		return x->m->link.count > x->first_link ? -1 : LINK_LAUNCH;
	return LINK_FLOW;
}

static bool is_profiler_step(void *arg, struct str name)
{
	(void)arg;
	return str_starts(name, STR("ProfilerStep#"));
}

/* Whether a range is numbered: "train step 7", "iteration#12". */
static bool is_numbered_range(void *arg, struct str name)
{
	static const char *const words[] = { "step", "iter", "batch", "epoch" };

	(void)arg;
	if (trailing_number(name) < 0 || name.len > 64)
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (str_has_ignoring_case(name, words[i]))
			return true;
	return false;
}

/* Marks numbered annotations as steps, if they are on one thread, one after the other. */
static ow_status mark_numbered(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track && !x->markers.count; t++) {
		const struct interpret_track *track = interpret_track(x, t);
		int64_t end = INT64_MIN, last = -1;
		bool fits = true;

		if (!(track->categories & 1u << CATEGORY_ANNOTATION) || !interpret_on_host(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last && fits; e++) {
			struct interpret_marker m = { x->m->event.ts_ns[e], interpret_end(x, e), 0,
						      interpret_name(x, e) };

			if (interpret_category(x, e) != CATEGORY_ANNOTATION ||
			    !is_numbered_range(NULL, model_str(x->m, m.name)))
				continue;
			m.number = trailing_number(model_str(x->m, m.name));
			fits = m.start >= end && m.number > last;
			end = m.end;
			last = m.number;
			OW_TRY(interpret_add_marker(x, &m));
		}
		if (!fits || x->markers.count < 2)
			x->markers.count = 0;
	}
	return OW_OK;
}

static ow_status kineto_steps(struct interpret *x)
{
	OW_TRY(interpret_mark_slices(x, is_profiler_step, NULL));
	if (!x->markers.count)
		OW_TRY(mark_numbered(x));
	if (!x->markers.count)
		OW_TRY(interpret_mark_optimizer_steps(x));
	return OW_OK;
}

const struct producer producer_kineto = {
	.name = "kineto",
	.title = "PyTorch Kineto",
	.recognise = recognise_kineto,
	.tracks = kineto_tracks,
	.ops = kineto_ops,
	.links = kineto_links,
	.steps = kineto_steps,
	.device_phase = kineto_device_phase,
	.flow_link = kineto_flow_link,
	.memory = interpret_torch_memory,
	.costs = interpret_torch_flops,
};

static bool is_cpu(struct str process)
{
	return str_eq(process, STR("CPU functions"));
}

static bool is_cuda(struct str process)
{
	return str_eq(process, STR("CUDA functions"));
}

static bool recognise_legacy(const struct interpret *x)
{
	return interpret_has_process(x, is_cpu) || interpret_has_process(x, is_cuda);
}

/* Makes devices from the threads of the device process, in the legacy format. */
static ow_status legacy_tracks(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		char device[32];

		if (!is_cuda(interpret_process(x, t)))
			continue;
		snprintf(device, sizeof(device), "GPU %" PRId64,
			 MAX(x->m->track.tid[t], (int64_t)0));
		x->m->track.kind[t] = TRACK_STREAM;
		x->m->track.device[t] = builder_device(x->b, str_from(device));
	}
	return builder_status(x->b);
}

static ow_status legacy_ops(struct interpret *x)
{
	return interpret_shorten_kernels(x);
}

static ow_status legacy_steps(struct interpret *x)
{
	return interpret_mark_optimizer_steps(x);
}

static int legacy_flow_link(const struct interpret *x, struct str category)
{
	(void)x;
	return str_eq(category, STR("cpu_to_cuda")) ? LINK_LAUNCH : LINK_FLOW;
}

/* The phase of a host event in the legacy format, in which ranges have no category. */
static enum event_phase legacy_host_phase(const struct interpret *x, uint32_t event)
{
	struct str name = model_str(x->m, interpret_name(x, event));

	return str_find_char(name, '#') != STR_NONE ? PHASE_HOST : PHASE_IDLE;
}

const struct producer producer_torch_legacy = {
	.name = "torch_legacy",
	.title = "PyTorch autograd profiler",
	.recognise = recognise_legacy,
	.tracks = legacy_tracks,
	.ops = legacy_ops,
	.steps = legacy_steps,
	.host_phase = legacy_host_phase,
	.flow_link = legacy_flow_link,
};
