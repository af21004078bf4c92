/*
 * timeline.c: ow_timeline_write: the runs of a profile for chrome://tracing and Perfetto. Traced steps of
 * TensorFlow are drawn as its Timeline class draws them, from their records; anything else from its
 * events.
 */
#include "api/api_int.h"

#include "analyze/samples.h"
#include "api/atomic_file.h"
#include "import/tf_step_stats.h"
#include "sink/event_trace.h"
#include "sink/gzip_out.h"
#include "sink/step_timeline.h"

void ow_timeline_options_init(struct ow_timeline_options *options)
{
	*options = (struct ow_timeline_options){ .size = sizeof(*options),
						 .show_dataflow = true,
						 .step = -1,
						 .time_from_ns = INT64_MIN,
						 .time_to_ns = INT64_MAX,
						 .rank = -1 };
}

struct timeline_writer {
	ow_write_fn write;
	void *arg;
};

static ow_status write_bytes(void *arg, const void *bytes, size_t len, struct error *err)
{
	struct timeline_writer *writer = arg;

	if (writer->write(writer->arg, bytes, len))
		return OW_OK;
	return error_set(err, OW_E_INTERRUPTED, "the output was closed");
}

/* One step at a time is in memory: each is read once for its devices, and once to be drawn. */
static ow_status draw(ow_profile *p, const struct tf_traced_steps *steps,
		      const struct ow_timeline_options *options, struct step_timeline *t,
		      bool devices, struct error *err)
{
	ow_status status = OW_OK;

	for (size_t i = 0; i < steps->count && status == OW_OK && t->events.w.status == OW_OK;
	     i++) {
		struct step_stats stats;
		struct arena arena;

		arena_init(&arena, &p->mem);
		status = tf_step_stats_read(p->m, steps->items[i], options->show_memory && !devices,
					    &arena, &stats, err);
		if (status == OW_OK && devices)
			step_timeline_devices(t, &stats);
		else if (status == OW_OK)
			step_timeline_draw(t, &stats);
		arena_release(&arena);
	}
	return status;
}

static void tell_memory(void *arg, struct str allocator, struct str tensor, int64_t ts_us,
			int64_t bytes)
{
	const struct ow_timeline_options *options = arg;
	const struct ow_timeline_memory change = { .allocator = allocator.ptr,
						   .tensor = tensor.ptr,
						   .allocator_len = allocator.len,
						   .tensor_len = tensor.len,
						   .ts_us = ts_us,
						   .bytes = bytes };

	options->memory(options->memory_arg, &change);
}

static ow_status draw_steps(ow_profile *p, const struct tf_traced_steps *steps,
			    const struct ow_timeline_options *options, const struct out *out,
			    struct error *err)
{
	struct step_timeline t;
	ow_status status;

	step_timeline_begin(&t, &p->mem, out, options->show_dataflow, options->show_memory, err);
	t.memory = options->memory ? tell_memory : NULL;
	t.memory_arg = (void *)(uintptr_t)options;
	status = draw(p, steps, options, &t, true, err);
	if (status == OW_OK)
		status = draw(p, steps, options, &t, false, err);
	writer_fail(&t.events.w, status);
	return step_timeline_finish(&t);
}

static ow_status write_timeline(ow_profile *p, const struct ow_timeline_options *options,
				const struct out *out, struct error *err)
{
	struct event_trace_options plain = { .show_dataflow = options->show_dataflow };
	struct sample_choice choice;
	struct tf_traced_steps steps;
	struct view_options part;
	struct arena arena;
	ow_status status = OW_OK;

	view_options_init(&part);
	part.metric = options->metric;
	part.step = options->step;
	part.rank = options->rank;
	part.time_from_ns = options->time_from_ns;
	part.time_to_ns = options->time_to_ns;
	OW_TRY(view_filter(p->m, &part, &plain.filter, err));
	arena_init(&arena, &p->mem);
	if (part.metric) {
		status = samples_choose(p->m, &part, &arena, &choice, err);
		plain.metrics = choice.wanted;
	}
	if (status == OW_OK)
		status = tf_traced_steps(p->m, options->step, &arena, &steps, err);
	if (status == OW_OK)
		status = steps.count && plain.filter.rank < 0 && !filter_has_time(&plain.filter)
				 ? draw_steps(p, &steps, options, out, err)
				 : event_trace_write(p->m, &plain, out, err);
	arena_release(&arena);
	return status;
}

static ow_status write_packed(ow_profile *p, const struct ow_timeline_options *options,
			      const struct out *out, struct error *err)
{
	struct gzip_out gzip;
	struct out packed;

	if (!options->gzip)
		return write_timeline(p, options, out, err);
	OW_TRY(gzip_out_init(&gzip, &p->mem, out, err));
	packed = gzip_out_stream(&gzip);
	return gzip_out_finish(&gzip, write_timeline(p, options, &packed, err), err);
}

ow_status ow_timeline_write(ow_profile *p, const struct ow_timeline_options *options,
			    ow_write_fn write, void *arg, struct error *err)
{
	struct timeline_writer writer = { write, arg };
	const struct out out = { write_bytes, &writer };
	struct ow_timeline_options full;
	struct reading reading;

	error_clear(err);
	if (!p->frozen)
		return error_set(err, OW_E_USAGE,
				 "the profile is still being loaded: freeze it first");
	ow_timeline_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	return api_read_end(p, &reading, write_packed(p, &full, &out, err), err);
}

static bool write_to_file(void *arg, const void *bytes, size_t len)
{
	return atomic_write(arg, bytes, len);
}

ow_status ow_timeline_write_file(ow_profile *p, const struct ow_timeline_options *options,
				 const char *path, struct error *err)
{
	struct atomic_file file;

	error_clear(err);
	OW_TRY(atomic_open(&file, &p->mem, path, err));
	return atomic_finish(&file, ow_timeline_write(p, options, write_to_file, &file, err), err);
}
