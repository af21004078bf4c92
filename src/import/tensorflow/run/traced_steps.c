/*
 * traced_steps.c: copies the records of traced steps, decoded by tf_node_stats.c, into the caller's arena, for a
 * timeline (traced_steps.h). Damaged records are skipped: the import has reported them.
 */
#include "import/tensorflow/run/traced_steps.h"

#include "import/tensorflow/run/tf_node_stats.h"
#include "import/tensorflow/tf_message.h"
#include "wire/own/opw.h"
#include "wire/protobuf/pbtxt.h"
#include "wire/protobuf/pb_stream.h"
#include "wire/tensorflow/tf_schema.h"

struct reader {
	const struct model *m;
	bool descriptions;
	struct arena *arena;
	struct step_stats *out;
	struct tf_node_reader read;
	struct buf text;
	ow_status status; /* keeps OW_E_NO_MEMORY once it is set */
};

static struct stats_device *add_device(struct reader *r, struct str name)
{
	struct step_stats *s = r->out;
	struct stats_device *devices =
		arena_grow(r->arena, s->devices, s->count, &s->cap, sizeof(*devices));

	if (!devices) {
		r->status = OW_E_NO_MEMORY;
		return NULL;
	}
	s->devices = devices;
	devices[s->count] = (struct stats_device){ .name = arena_str(r->arena, name) };
	if (!devices[s->count].name.ptr)
		r->status = OW_E_NO_MEMORY;
	return &devices[s->count++];
}

static struct str copy_text(struct reader *r, struct str text)
{
	struct str copy = arena_str(r->arena, text);

	if (!copy.ptr)
		r->status = OW_E_NO_MEMORY;
	return copy.ptr ? copy : STR("");
}

/* The tensor's description as text, without quotes as in the original. */
static struct str describe(struct reader *r, struct str description)
{
	size_t len = 0;

	buf_clear(&r->text);
	pb_print_text(&r->text, &tf_tensor_description, description);
	for (size_t i = 0; i < r->text.len; i++)
		if (r->text.ptr[i] != '"')
			r->text.ptr[len++] = r->text.ptr[i];
	r->text.len = len;
	if (r->text.failed)
		r->status = OW_E_NO_MEMORY;
	return copy_text(r, buf_str(&r->text));
}

static void copy_outputs(struct reader *r, struct stats_node *node)
{
	node->outputs = ARENA_ARRAY(r->arena, struct stats_output, r->read.output_count);
	if (!node->outputs || r->read.no_memory) {
		r->status = OW_E_NO_MEMORY;
		return;
	}
	for (size_t i = 0; i < r->read.output_count; i++) {
		const struct tf_output *out = &r->read.outputs[i];

		node->outputs[i] = (struct stats_output){ .allocator = copy_text(r, out->allocator),
							  .requested = out->requested,
							  .description = STR("") };
		if (r->descriptions && out->description.ptr)
			node->outputs[i].description = describe(r, out->description);
	}
	node->output_count = (uint32_t)r->read.output_count;
}

static void add_node(struct reader *r, struct stats_device *device, const struct tf_node_stats *rec)
{
	struct stats_node *nodes =
		arena_grow(r->arena, device->nodes, device->count, &device->cap, sizeof(*nodes));

	if (!nodes) {
		r->status = OW_E_NO_MEMORY;
		return;
	}
	device->nodes = nodes;
	nodes += device->count++;
	*nodes = (struct stats_node){ .name = copy_text(r, rec->name),
				      .label = copy_text(r, rec->label),
				      .start_us = rec->start_us,
				      .dur_us = rec->all_end_us };
	if (r->read.output_count)
		copy_outputs(r, nodes);
}

static void read_device(struct reader *r, struct pb_stream *s, const struct pb_stream_field *f)
{
	struct stats_device *device;
	struct tf_node_stats rec;
	struct str name;

	if (!tf_device_stats_name(s, f, &name))
		return;
	device = add_device(r, name);
	if (!device || !pb_stream_enter(s, f))
		return;
	tf_node_stats_begin(&r->read, s);
	while (r->status == OW_OK && tf_node_stats_next(&r->read, &rec))
		add_node(r, device, &rec);
	pb_stream_leave(s);
}

static void read_devices(struct reader *r, struct pb_stream *s)
{
	struct pb_stream_field f;

	while (r->status == OW_OK && pb_stream_next(s, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			read_device(r, s, &f);
}

static bool is_bare(struct window *window)
{
	struct str head = str_first(window_peek(window, 0, 64 << 10), 64 << 10);

	return head.ptr &&
	       tf_sniff_binary(head, TF_STEP_STATS) > tf_sniff_binary(head, TF_RUN_METADATA);
}

static ow_status read_whole(struct reader *r, const struct input *in, struct ow_error *err)
{
	struct ow_error problem = { 0 };
	struct pb_stream stream;
	struct pb_stream_field f;
	struct window window;

	window_init(&window, in, &problem);
	pb_stream_init(&stream, &window, 0, in->size);
	if (is_bare(&window))
		read_devices(r, &stream);
	else
		while (r->status == OW_OK && pb_stream_next(&stream, &f)) {
			if (f.tag != PB_TAG(1, PB_BYTES) || !pb_stream_enter(&stream, &f))
				continue;
			read_devices(r, &stream);
			pb_stream_leave(&stream);
		}
	window_release(&window);
	if (r->status == OW_OK && stream.status != OW_OK && stream.status != OW_E_CORRUPT) {
		if (err)
			*err = problem;
		return stream.status;
	}
	return r->status;
}

static void decode_event(struct reader *r, struct stats_device *device, struct str bytes)
{
	struct tf_node_stats rec;
	struct pb pb;

	tf_node_stats_decode(&r->read, bytes, 0, &rec, &pb);
	if (!pb.problem)
		add_node(r, device, &rec);
}

static ow_status read_events(struct reader *r, struct tf_traced_step which, const struct input *in,
			     struct ow_error *err)
{
	const struct model *m = r->m;
	struct stats_device *device = NULL;
	uint32_t last = UINT32_MAX;
	struct window window;
	ow_status status = OW_OK;

	window_init(&window, in, err);
	for (uint32_t i = 1; i < m->event.count && r->status == OW_OK && status == OW_OK; i++) {
		uint32_t track = m->event.track[i].v, size = COLUMN_GET(m->event.args_size, i);
		const unsigned char *bytes;

		if (m->track.source[track].v != which.source.v ||
		    m->event.step[i].v != which.step.v || !size)
			continue;
		if (m->track.device[track].v != last)
			device = add_device(r,
					    model_str(m, m->device.name[m->track.device[track].v]));
		last = m->track.device[track].v;
		bytes = window_at(&window, COLUMN_GET(m->event.args_offset, i), size);
		if (!bytes)
			status = window.status;
		else if (device)
			decode_event(r, device, str_make(bytes, size));
	}
	window_release(&window);
	return status != OW_OK ? status : r->status;
}

static bool has_format(const struct model *m, uint32_t source, const char *format)
{
	return str_eq(model_str(m, m->source.format[source]), str_from(format));
}

/* Whether the input is the RunMetadata itself, not an .opw file that has parts of it. */
static bool is_whole_source(const struct model *m, uint32_t source)
{
	char head[8];

	if (!has_format(m, source, "runmeta"))
		return false;
	return input_read_at(m->inputs[source], 0, head, sizeof(head), NULL) != OW_OK ||
	       !opw_is(str_make(head, sizeof(head)));
}

static bool has_records(const struct model *m, uint32_t source)
{
	return source < m->input_cap && m->inputs[source] &&
	       (has_format(m, source, "runmeta") || has_format(m, source, "tfevents"));
}

static ow_status add_step(struct tf_traced_steps *steps, struct arena *arena,
			  struct tf_traced_step step, struct ow_error *err)
{
	struct tf_traced_step *items =
		arena_grow(arena, steps->items, steps->count, &steps->cap, sizeof(*items));

	if (!items)
		return error_no_memory(err);
	steps->items = items;
	items[steps->count++] = step;
	return OW_OK;
}

static bool is_known(const struct tf_traced_steps *steps, struct tf_traced_step step)
{
	for (size_t i = steps->count; i-- > 0;)
		if (steps->items[i].source.v == step.source.v &&
		    steps->items[i].step.v == step.step.v)
			return true;
	return false;
}

/* Finds the steps of a source whose records are referenced by its events. */
static ow_status find_in_events(const struct model *m, uint32_t source, int64_t number,
				struct arena *arena, struct tf_traced_steps *steps,
				struct ow_error *err)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < m->event.count; i++) {
		struct tf_traced_step step = { { source }, m->event.step[i] };

		if (m->track.source[m->event.track[i].v].v != source || step.step.v == last ||
		    !COLUMN_GET(m->event.args_size, i))
			continue;
		last = step.step.v;
		if (number >= 0 && m->step.number[step.step.v] != number)
			continue;
		if (!is_known(steps, step))
			OW_TRY(add_step(steps, arena, step, err));
	}
	return OW_OK;
}

ow_status tf_traced_steps(const struct model *m, int64_t number, struct arena *arena,
			  struct tf_traced_steps *steps, struct ow_error *err)
{
	*steps = (struct tf_traced_steps){ 0 };
	for (uint32_t source = 1; source < m->source.count; source++) {
		step_id step = m->source.step[source];

		if (!has_records(m, source))
			continue;
		if (!is_whole_source(m, source))
			OW_TRY(find_in_events(m, source, number, arena, steps, err));
		else if (step.v && (number < 0 || m->step.number[step.v] == number))
			OW_TRY(add_step(steps, arena, (struct tf_traced_step){ { source }, step },
					err));
	}
	return OW_OK;
}

ow_status tf_traced_step_read(const struct model *m, struct tf_traced_step which, bool descriptions,
			      struct arena *arena, struct step_stats *out, struct ow_error *err)
{
	struct reader r = {
		.m = m, .descriptions = descriptions, .arena = arena, .out = out, .read.mem = m->mem
	};
	const struct input *in = m->inputs[which.source.v];
	ow_status status;

	*out = (struct step_stats){ .step = m->step.number[which.step.v] };
	buf_init(&r.text, m->mem);
	status = is_whole_source(m, which.source.v) ? read_whole(&r, in, err)
						    : read_events(&r, which, in, err);
	buf_release(&r.text);
	tf_node_reader_release(&r.read);
	return status == OW_E_NO_MEMORY ? error_no_memory(err) : status;
}
