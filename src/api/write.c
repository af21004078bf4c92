/*
 * write.c: the bodies of the functions that write a profile, or a result to a file: timelines for chrome://tracing and Perfetto,
 * TensorFlow's own messages, facts about the inputs. Formats are in src/sink. ow_result_write is in result.c.
 */
#include "api/api_int.h"

#include "analyze/samples/samples.h"
#include "base/atomic_file.h"
#include "import/own/record.h"
#include "import/tensorflow/run/traced_steps.h"
#include "sink/proto/profile_proto.h"
#include "sink/stacks/gzip_out.h"
#include "sink/table/facts_json.h"
#include "replay/session.h"
#include "sink/timeline/event_trace.h"
#include "sink/timeline/step_timeline.h"

#include <errno.h>
#include <sys/stat.h>

ow_status api_write_bytes(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	const struct api_writer *writer = arg;

	if (writer->write(writer->arg, bytes, len))
		return OW_OK;
	return error_set(err, OW_E_INTERRUPTED, "the output was closed");
}

bool api_write_to_file(void *arg, const void *bytes, size_t len)
{
	return atomic_write(arg, bytes, len);
}

ow_status ow_result_write_file(ow_result *result, const char *sink,
			       const struct ow_write_options *options, const char *path,
			       struct ow_error *err)
{
	struct atomic_file file;

	error_clear(err);
	OW_TRY(atomic_open(&file, result->r->mem, path, err));
	return atomic_finish(
		&file, ow_result_write(result, sink, options, api_write_to_file, &file, err), err);
}

/* Sets the defaults. Traced steps of TensorFlow are drawn from their records as its class Timeline draws
 * them; everything else is drawn from events. */

void ow_timeline_options_init(struct ow_timeline_options *options)
{
	*options = (struct ow_timeline_options){ .size = sizeof(*options),
						 .show_dataflow = true,
						 .step = -1,
						 .time_from_ns = INT64_MIN,
						 .time_to_ns = INT64_MAX,
						 .rank = -1 };
}

/* Draws the steps one at a time to save memory: each is read once for its devices, and once to
 * be drawn. */
static ow_status draw_each_step(ow_profile *p, const struct tf_traced_steps *steps,
				const struct ow_timeline_options *options, struct step_timeline *t,
				bool devices, struct ow_error *err)
{
	ow_status status = OW_OK;

	for (size_t i = 0; i < steps->count && status == OW_OK && t->events.w.status == OW_OK;
	     i++) {
		struct step_stats stats;
		struct arena arena;

		arena_init(&arena, &p->mem);
		status = tf_traced_step_read(p->m, steps->items[i],
					     options->show_memory && !devices, &arena, &stats, err);
		if (status == OW_OK && devices)
			step_timeline_devices(t, &stats);
		else if (status == OW_OK)
			step_timeline_draw(t, &stats);
		arena_release(&arena);
	}
	return status;
}

static void report_memory(void *arg, struct str allocator, struct str tensor, int64_t ts_us,
			  int64_t bytes)
{
	const struct ow_timeline_options *options = arg;
	const struct ow_timeline_memory change = { .size = sizeof(change),
						   .allocator = allocator.ptr,
						   .tensor = tensor.ptr,
						   .allocator_len = allocator.len,
						   .tensor_len = tensor.len,
						   .ts_us = ts_us,
						   .bytes = bytes };

	options->memory(options->memory_arg, &change);
}

static ow_status draw_steps(ow_profile *p, const struct tf_traced_steps *steps,
			    const struct ow_timeline_options *options, const struct out *out,
			    struct ow_error *err)
{
	struct step_timeline t;
	ow_status status;

	step_timeline_begin(&t, &p->mem, out, options->show_dataflow, options->show_memory, err);
	t.memory = options->memory ? report_memory : NULL;
	t.memory_arg = (void *)(uintptr_t)options;
	status = draw_each_step(p, steps, options, &t, true, err);
	if (status == OW_OK)
		status = draw_each_step(p, steps, options, &t, false, err);
	writer_fail(&t.events.w, status);
	return step_timeline_finish(&t);
}

/* Finds the critical path of the chosen step; the caller calls table_free on *out in any case. */
static ow_status find_path(ow_profile *p, const struct ow_timeline_options *options,
			   const struct event_filter *filter, struct table **out,
			   struct ow_error *err)
{
	struct event_filter all_steps = *filter;
	ow_status status;

	*out = table_new(&p->mem, "path", err);
	if (!*out)
		return OW_E_NO_MEMORY;
	all_steps.step = 0;
	status = path_table(p->m, &all_steps, options->step < 0 ? TIME_UNKNOWN : options->step,
			    NULL, *out, err);
	if (status == OW_OK && (*out)->status != OW_OK)
		status = error_no_memory(err);
	if (status == OW_OK && !(*out)->row_count)
		status = error_set(err, OW_E_UNSUPPORTED, "%s",
				   (*out)->footer ? (*out)->footer : "no critical path");
	return status;
}

static ow_status write_timeline(ow_profile *p, const struct ow_timeline_options *options,
				const struct out *out, struct ow_error *err)
{
	struct event_trace_options plain = { .show_dataflow = options->show_dataflow };
	struct sample_choice choice;
	struct table *path = NULL;
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
	if (status == OW_OK && options->show_path)
		status = find_path(p, options, &plain.filter, &path, err);
	plain.path = path;
	if (status == OW_OK)
		status = tf_traced_steps(p->m, options->step, &arena, &steps, err);
	if (status == OW_OK)
		status = steps.count && !path && plain.filter.rank < 0 &&
					 !filter_has_time(&plain.filter)
				 ? draw_steps(p, &steps, options, out, err)
				 : event_trace_write(p->m, &plain, out, err);
	table_free(path);
	arena_release(&arena);
	return status;
}

static ow_status write_packed(ow_profile *p, const struct ow_timeline_options *options,
			      const struct out *out, struct ow_error *err)
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
			    ow_write_fn write, void *arg, struct ow_error *err)
{
	struct api_writer writer = { write, arg };
	const struct out out = { api_write_bytes, &writer };
	struct ow_timeline_options full;
	struct reading reading;

	error_clear(err);
	OW_TRY(api_check_frozen(p, err));
	ow_timeline_options_init(&full);
	SIZED_IN(&full, options);
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	return api_read_end(p, &reading, write_packed(p, &full, &out, err), err);
}

ow_status ow_timeline_write_file(ow_profile *p, const struct ow_timeline_options *options,
				 const char *path, struct ow_error *err)
{
	struct atomic_file file;

	error_clear(err);
	OW_TRY(atomic_open(&file, &p->mem, path, err));
	return atomic_finish(&file, ow_timeline_write(p, options, api_write_to_file, &file, err),
			     err);
}

static ow_status append_attrs(void *arg, op_id op, struct buf *to, struct ow_error *err)
{
	return record_attrs(arg, op, to, err);
}

ow_status ow_tf_profile_write(ow_profile *p, ow_write_fn write, void *arg, struct ow_error *err)
{
	struct api_writer writer = { write, arg };
	const struct out out = { api_write_bytes, &writer };
	struct record_reader records;
	const struct profile_proto_options options = { .attrs = p->options.redact ? NULL
										  : append_attrs,
						       .arg = &records };
	struct reading reading;
	ow_status status;

	error_clear(err);
	OW_TRY(api_check_frozen(p, err));
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	record_reader_init(&records, p->m);
	status = profile_proto_write(p->m, &options, &out, err);
	record_reader_release(&records);
	return api_read_end(p, &reading, status, err);
}

ow_status ow_tf_op_log_write(ow_profile *p, ow_write_fn write, void *arg, struct ow_error *err)
{
	struct api_writer writer = { write, arg };
	const struct out out = { api_write_bytes, &writer };
	struct reading reading;

	error_clear(err);
	OW_TRY(api_check_frozen(p, err));
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	return api_read_end(p, &reading, op_log_write(p->m, &out, err), err);
}

typedef ow_status (*tf_write_fn)(ow_profile *p, ow_write_fn write, void *arg, struct ow_error *err);

static ow_status write_tf_file(ow_profile *p, tf_write_fn write, const char *path,
			       struct ow_error *err)
{
	struct atomic_file file;

	error_clear(err);
	OW_TRY(atomic_open(&file, &p->mem, path, err));
	return atomic_finish(&file, write(p, api_write_to_file, &file, err), err);
}

ow_status ow_tf_profile_write_file(ow_profile *p, const char *path, struct ow_error *err)
{
	return write_tf_file(p, ow_tf_profile_write, path, err);
}

ow_status ow_tf_op_log_write_file(ow_profile *p, const char *path, struct ow_error *err)
{
	return write_tf_file(p, ow_tf_op_log_write, path, err);
}

ow_status ow_info_json(ow_profile *p, ow_write_fn write, void *arg, struct ow_error *err)
{
	struct api_writer writer = { write, arg };
	struct out out = { api_write_bytes, &writer };
	struct reading reading;
	ow_status status;

	error_clear(err);
	OW_TRY(api_check_frozen(p, err));
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	status = model_require_stacks(p->m, err); /* otherwise no stack would be counted */
	if (status == OW_OK)
		status = facts_write_json(p->m, &out, err);
	return api_read_end(p, &reading, status, err);
}

ow_status api_save_table(struct table *table, const char *path, struct ow_error *err)
{
	const struct sink *sink = sink_find("json");
	struct sink_options options = { 0 };
	struct atomic_file file;
	struct api_writer writer = { api_write_to_file, &file };
	const struct out out = { api_write_bytes, &writer };
	ow_status status;

	OW_TRY(atomic_open(&file, table->mem, path, err));
	status = fchmod(file.fd, 0600) == 0 ? OW_OK : error_errno(err, errno, "%s", path);
	if (status == OW_OK)
		status = sink->write(table, &options, &out, err);
	return atomic_finish(&file, status, err);
}
