/*
 * producer_xprof.c: interprets the trace.json.gz that TensorFlow 2, JAX and XProf write. It has no categories; all
 * facts are in the arguments, as text: long_name is "node:Type" or the path of an iterator, tf_op the op of a kernel,
 * correlation_id joins call and kernel, step_num and step_name mark steps.
 */
#include "import/interpret/interpret_int.h"

#define OLD_HOST 501

static bool is_host(struct str process)
{
	return str_eq(process, STR("/host:CPU"));
}

static bool is_device(struct str process)
{
	return str_starts(process, STR("/device:"));
}

static bool recognise_xprof(const struct interpret *x)
{
	/* Chrome's traces have this, too, but they have categories */
	return x->in->xspace || interpret_has_process(x, is_host) ||
	       interpret_has_process(x, is_device) ||
	       (x->in->members & MEMBER_HIGHRES_TICKS && !x->in->array_form &&
		!(x->categories & ~(1u << CATEGORY_NONE)));
}

/* The kind of a device's line: streams, and lines that repeat them. On TPUs the line of ops is the work. */
static uint8_t device_kind(struct str process, struct str thread)
{
	if (str_has(process, STR(":TPU:")))
		return str_eq(thread, STR("XLA Ops")) ? TRACK_STREAM : TRACK_DERIVED;
	return str_starts(thread, STR("Stream #")) || str_starts(thread, STR("stream"))
		       ? TRACK_STREAM
		       : TRACK_DERIVED;
}

static ow_status xprof_tracks(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		struct str process = interpret_process(x, t), thread = interpret_thread(x, t);

		if (is_host(process) || is_device(process))
			x->m->track.device[t] = builder_device(x->b, process);
		if (is_device(process) && x->m->track.kind[t] == TRACK_HOST)
			x->m->track.kind[t] = device_kind(process, thread);
		else if (str_starts(thread, STR("tf_data_")))
			x->m->track.kind[t] = TRACK_LOADER;
	}
	return builder_status(x->b);
}

enum step_source { STEP_NONE, STEP_GROUP, STEP_NAME, STEP_NUMBER };

/* Step markers of the best kind seen so far. */
struct reading {
	enum step_source source;
};

/* Sets the op of an event: "scope/node:Type" is an op, "Iterator::Batch::Map" a stage of tf.data. The version of
 * XProf whose files have the host as process 501 did not treat names with a hyphen as ops. */
static ow_status use_op(struct interpret *x, uint32_t event, struct str text)
{
	struct tf_op_name op = tf_op_name_parse(tf_op_name_strip(text), true);
	bool old = x->m->track.pid[x->m->event.track[event].v] == OLD_HOST;
	struct op_draft *draft;
	str_id name;

	if (op.kind == TF_OP_NONE || op.kind == TF_OP_COPY)
		return OW_OK;
	name = op.kind == TF_OP_DATA ? iterator_path(x->b, text) : builder_str(x->b, op.name);
	draft = interpret_draft(x, name);
	if (!draft)
		return builder_status(x->b);
	draft->type =
		op.kind == TF_OP_DATA ? iterator_stage(x->b, op.name) : builder_str(x->b, op.type);
	if (!old || tf_op_name_parse(text, false).kind)
		draft->flags |= OP_FRAMEWORK;
	return interpret_rename(x, event, name);
}

static void use_copy(struct interpret *x, uint32_t event, struct str details)
{
	int64_t bytes = tf_copy_bytes(details);

	if (bytes)
		BUILDER_SET(x->b, event, bytes, (event_id){ event }, bytes);
}

static void use_correlation(struct interpret *x, uint32_t event, struct json_value value)
{
	int64_t number;

	if (interpret_number(value, &number) && number > 0 && number <= UINT32_MAX)
		BUILDER_SET(x->b, event, correlation, (event_id){ event }, (uint32_t)number);
}

/* Adds a step marker; a better kind of marker replaces the earlier ones. */
static void use_step(struct interpret *x, struct reading *r, uint32_t event,
		     enum step_source source, int64_t number)
{
	if (source < r->source)
		return;
	if (source > r->source)
		x->markers.count = 0;
	r->source = source;
	interpret_add_marker(x, &(struct interpret_marker){ .start = x->m->event.ts_ns[event],
							    .end = interpret_end(x, event),
							    .number = number,
							    .name = interpret_name(x, event) });
}

/* Removes the number from the op's name: "train 12" is one run of the op "train". */
static void drop_number(struct interpret *x, uint32_t event, struct str text)
{
	size_t blank = str_rfind_char(text, ' ');
	struct op_draft *draft;
	int64_t number;
	str_id name;

	if (blank == STR_NONE || !blank || !str_to_i64(str_skip(text, blank + 1), &number))
		return;
	name = builder_str(x->b, str_first(text, blank));
	draft = interpret_draft(x, name);
	if (!draft)
		return;
	draft->type = name;
	(void)interpret_rename(x, event, name); /* the builder keeps a failure */
}

static void take_host_step(struct interpret *x, struct reading *r, uint32_t event, struct str args)
{
	struct str name = model_str(x->m, interpret_name(x, event));
	struct json_value number = json_find(args, "step_num"),
			  label = json_find(args, "step_name");
	int64_t value;

	if (interpret_number(number, &value) && str_find_char(name, '/') == STR_NONE)
		use_step(x, r, event, STEP_NUMBER, value);
	else if (label.kind == JSON_STRING)
		use_step(x, r, event, STEP_NAME,
			 interpret_number(json_find(args, "group_id"), &value) ? value : INT64_MIN);
	else if (interpret_number(json_find(args, "group_id"), &value))
		use_step(x, r, event, STEP_GROUP, value);
	if (label.kind == JSON_STRING && str_eq(json_text(label), name))
		drop_number(x, event, name);
}

static int by_number(const void *a, const void *b)
{
	const struct interpret_marker *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Makes one step from all events with the same group number. */
static void join_groups(struct interpret *x)
{
	struct interpret_markers *m = &x->markers;
	size_t kept = 0;

	qsort(m->list, m->count, sizeof(*m->list), by_number);
	for (size_t i = 0; i < m->count; i++) {
		struct interpret_marker *last = kept ? &m->list[kept - 1] : NULL;

		if (!last || last->number != m->list[i].number) {
			m->list[kept] = m->list[i];
			m->list[kept++].name.v = 0;
			continue;
		}
		last->start = MIN(last->start, m->list[i].start);
		last->end = MAX(last->end, m->list[i].end);
	}
	m->count = kept > 1 ? kept : 0;
}

static void take_args(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	uint32_t track = x->m->event.track[event].v;
	bool device = interpret_on_device(x, track);
	struct json_value op = json_find(args, device ? "tf_op" : "long_name");
	struct json_value correlation = json_find(args, "correlation_id");

	if (correlation.kind != JSON_NONE)
		use_correlation(x, event, correlation);
	if (op.kind == JSON_STRING && op.len) {
		struct str text = model_str(x->m, interpret_string(x, op));

		(void)use_op(x, event, text);
	}
	if (device)
		use_copy(x, event, json_text(json_find(args, "memcpy_details")));
	else
		take_host_step(x, arg, event, args);
}

/* Splits names that are "node:Type" although the arguments do not say so. */
static ow_status split_names(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (x->m->track.kind[t] != TRACK_HOST)
			continue;
		for (uint32_t e = track->first; e < track->last; e++) {
			str_id own = COLUMN_GET(x->m->event.name, e),
			       name = interpret_op_name(x, e);
			struct str text = model_str(x->m, name);

			if (own.v || str_has(text, STR("::")) ||
			    str_find_char(text, ' ') != STR_NONE ||
			    str_find_char(text, ':') == STR_NONE)
				continue;
			OW_TRY(use_op(x, e, text));
		}
	}
	return OW_OK;
}

static ow_status xprof_ops(struct interpret *x)
{
	struct reading reading = { STEP_NONE };
	struct interpret_rows rows = { 0 };
	ow_status status = OW_OK;

	if (x->in->xspace) /* the importer of XSpace has done all that */
		return interpret_shorten_kernels(x);
	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!interpret_on_host(x, t) && !interpret_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last && status == OW_OK; e++)
			if (COLUMN_GET(x->m->event.args_size, e))
				status = interpret_rows_add(x, &rows, e);
	}
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, take_args, &reading);
	interpret_rows_release(x, &rows);
	OW_TRY(status);
	if (reading.source == STEP_GROUP && x->markers.count)
		join_groups(x);
	OW_TRY(split_names(x));
	return interpret_shorten_kernels(x);
}

static ow_status xprof_links(struct interpret *x)
{
	return interpret_link_correlations(x);
}

/* Marks steps by the device's own line of steps, which takes precedence over the host's markers. */
static ow_status mark_device_steps(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!is_device(interpret_process(x, t)) ||
		    !str_eq(interpret_thread(x, t), STR("Steps")) || track->first == track->last)
			continue;
		x->markers.count = 0;
		for (uint32_t e = track->first; e < track->last; e++) {
			int64_t number = trailing_number(model_str(x->m, interpret_name(x, e)));

			if (interpret_is_slice(x, e))
				OW_TRY(interpret_add_marker(
					x, &(struct interpret_marker){
						   .start = x->m->event.ts_ns[e],
						   .end = interpret_end(x, e),
						   .number = number >= 0 ? number : INT64_MIN,
						   .name = interpret_name(x, e) }));
		}
		break;
	}
	return OW_OK;
}

/* Marks the programs that a TPU ran as steps, if there is no other marker. */
static ow_status mark_modules(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track && !x->markers.count; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!str_has(interpret_process(x, t), STR(":TPU:")) ||
		    !str_eq(interpret_thread(x, t), STR("XLA Modules")))
			continue;
		for (uint32_t e = track->first; e < track->last; e++)
			if (interpret_is_slice(x, e))
				OW_TRY(interpret_add_marker(
					x, &(struct interpret_marker){
						   .start = x->m->event.ts_ns[e],
						   .end = interpret_end(x, e),
						   .number = INT64_MIN,
						   .name = interpret_name(x, e) }));
	}
	return OW_OK;
}

/* Whether a name is JAX's call of a compiled function, which starts its program. */
static bool is_jitted(void *arg, struct str name)
{
	(void)arg;
	return str_starts(name, STR("PjitFunction("));
}

static ow_status xprof_steps(struct interpret *x)
{
	for (size_t i = 0; x->in->xspace && i < x->in->step_count; i++) {
		const struct recorded_step *step = &x->in->steps[i];

		OW_TRY(interpret_add_marker(x, &(struct interpret_marker){ .start = step->start_ns,
									   .end = step->end_ns,
									   .number = step->number,
									   .name = step->name }));
	}
	OW_TRY(mark_device_steps(x));
	OW_TRY(mark_modules(x));
	return x->markers.count ? OW_OK : interpret_mark_repeats(x, is_jitted, NULL);
}

/* The phase of a device event. Copies between host and TPU memory, and the waits for them, look like any other
 * instruction. */
static enum event_phase xprof_device_phase(const struct interpret *x, uint32_t event)
{
	uint32_t flags = x->m->op.flags[x->m->event.op[event].v];

	if (flags & OP_TO_HOST)
		return PHASE_DEVICE_TO_HOST;
	return flags & OP_FROM_HOST ? PHASE_HOST_TO_DEVICE : PHASE_IDLE;
}

/* The phase of a host event; those around ops belong to the runtime. */
static enum event_phase xprof_host_phase(const struct interpret *x, uint32_t event)
{
	const struct op_table *t = &x->m->op;
	uint32_t op = x->m->event.op[event].v;

	if (COLUMN_GET(x->m->event.correlation, event))
		return PHASE_LAUNCH;
	return t->flags[op] & OP_FRAMEWORK || t->type[op].v != t->name[op].v ? PHASE_IDLE
									     : PHASE_HOST;
}

const struct producer producer_xprof = {
	.name = "xprof",
	.title = "TensorFlow 2, JAX or XProf",
	.recognise = recognise_xprof,
	.tracks = xprof_tracks,
	.ops = xprof_ops,
	.links = xprof_links,
	.steps = xprof_steps,
	.device_phase = xprof_device_phase,
	.host_phase = xprof_host_phase,
};
