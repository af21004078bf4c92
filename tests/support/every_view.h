/*
 * every_view.h: requests everything from a frozen profile: each view through each sink, advice, the verdict, facts and
 * the timeline. For tests that look for crashes and races: any status is accepted, except "a bug in opwatch". Uses the
 * public interface only.
 */
#ifndef SUPPORT_EVERY_VIEW_H
#define SUPPORT_EVERY_VIEW_H

#include <stdio.h>
#include <stdlib.h>

#include "opwatch/opwatch.h"

struct every_view {
	uint64_t bytes; /* bytes written by all sinks */
	uint64_t hash;	/* hash of the written bytes; two runs must agree */
	unsigned views; /* number of views that gave a result */
};

static inline bool every_view_take(void *arg, const void *bytes, size_t len)
{
	struct every_view *all = arg;
	const unsigned char *at = bytes;

	all->bytes += len;
	for (size_t i = 0; i < len; i++)
		all->hash = (all->hash ^ at[i]) * UINT64_C(1099511628211);
	return true;
}

static inline void every_view_line(void *arg, const char *line, size_t len)
{
	every_view_take(arg, line, len);
}

static inline void every_view_status(ow_status status, const struct ow_error *err, const char *what)
{
	if (status != OW_E_INTERNAL)
		return;
	fprintf(stderr, "%s: %s\n", what, err->text);
	abort();
}

/* Writes a result through all sinks, and frees it. */
static inline void every_view_sinks(struct every_view *all, ow_result *result)
{
	struct ow_write_options options;
	struct ow_error err = { 0 };
	struct ow_part_info sink = { .size = sizeof(sink) };

	ow_write_options_init(&options);
	options.message = options.progress = every_view_line;
	options.line_arg = all;
	for (size_t i = 0; ow_sink_info(i, &sink); i++) {
		options.width = i % 2 ? 100 : 0;
		every_view_status(
			ow_result_write(result, sink.name, &options, every_view_take, all, &err),
			&err, sink.name);
	}
	for (uint32_t i = 0; ow_result_message(result, i); i++)
		all->bytes++;
	ow_result_free(result);
}

static inline void every_view_views(struct every_view *all, ow_profile *profile,
				    const struct ow_view_options *options)
{
	struct ow_error err = { 0 };
	struct ow_part_info view = { .size = sizeof(view) };
	ow_result *result;
	ow_status status;

	for (size_t i = 0; ow_view_info(i, &view); i++) {
		result = NULL;
		status = ow_view(profile, view.name, options, &result, &err);
		every_view_status(status, &err, view.name);
		if (status != OW_OK)
			continue;
		all->views++;
		every_view_sinks(all, result);
	}
}

/* Requests everything that has no options worth varying. */
static inline void every_view_rest(struct every_view *all, ow_profile *profile)
{
	struct ow_timeline_options timeline;
	struct every_view facts = { 0 }; /* facts contain the memory in use, so their bytes vary */
	struct ow_error err = { 0 };
	ow_result *result = NULL;
	ow_status status;
	char text[500];

	status = ow_advise(profile, NULL, &result, &err);
	every_view_status(status, &err, "advise");
	if (status == OW_OK)
		every_view_sinks(all, result);
	every_view_status(ow_verdict(profile, NULL, text, sizeof(text), &err), &err, "verdict");
	every_view_status(ow_info_json(profile, every_view_take, &facts, &err), &err, "info");
	ow_timeline_options_init(&timeline);
	timeline.show_memory = true;
	every_view_status(ow_timeline_write(profile, &timeline, every_view_take, all, &err), &err,
			  "timeline");
}

/* Requests everything; `all` is initially zero. */
static inline void every_view(struct every_view *all, ow_profile *profile)
{
	static const char *const columns[] = { "bytes",	       "peak_bytes",   "residual_bytes",
					       "output_bytes", "micros",       "accelerator_micros",
					       "cpu_micros",   "params",       "float_ops",
					       "occurrence",   "tensor_value", "device",
					       "op_types",     "input_shapes" };
	struct ow_view_options options;

	ow_view_options_init(&options);
	every_view_views(all, profile, &options);
	options.select = (struct ow_list){ columns, sizeof(columns) / sizeof(*columns) };
	options.order_by = "micros";
	options.account_displayed_op_only = true;
	options.step = 0;
	options.limit = 7;
	every_view_views(all, profile, &options);
	every_view_rest(all, profile);
}

#endif
