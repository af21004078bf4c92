/*
 * view_tracks.c: the view `tracks`: host threads, streams, executors of devices and copy engines, with the number of events, the busy time with
 * overlapping events counted once, and the number of samples of the default metric. Sorted by process and name, so the order does
 * not depend on how the inputs were read.
 */
#include "analyze/steps/spans.h"
#include "analyze/samples/samples.h"
#include "model/names.h"

enum {
	COLUMN_NAME,
	COLUMN_PROCESS,
	COLUMN_KIND,
	COLUMN_DEVICE,
	COLUMN_PID,
	COLUMN_TID,
	COLUMN_EVENTS,
	COLUMN_BUSY,
	COLUMN_RANK,
	COLUMN_SAMPLES
};

static void add_columns(struct table *out)
{
	table_add_column(out, "name", "track", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "process", "process", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "kind", "kind", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "device", "device", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "pid", "pid", TYPE_INT, UNIT_NONE);
	table_add_column(out, "tid", "tid", TYPE_INT, UNIT_NONE);
	table_add_column(out, "events", "events", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "busy_ns", "busy", TYPE_INT, UNIT_NS);
	table_add_column(out, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(out, "samples", "samples", TYPE_INT, UNIT_COUNT);
}

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int by_process_and_name(const void *a, const void *b, void *arg)
{
	const struct model *m = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = str_cmp(model_str(m, m->track.process[x]), model_str(m, m->track.process[y]));

	if (!order)
		order = compare_numbers(m->track.pid[x], m->track.pid[y]);
	if (!order)
		order = str_cmp(model_str(m, m->track.name[x]), model_str(m, m->track.name[y]));
	if (!order)
		order = compare_numbers(m->track.tid[x], m->track.tid[y]);
	return order ? order : compare_numbers(x, y);
}

/* Sets an id column. An id may be missing, or be a text, which the name shows. */
static void set_id(struct table *out, uint32_t row, uint32_t column, int64_t id)
{
	if (id > MODEL_TEXT_NUMBER + UINT32_MAX)
		table_set_int(out, row, column, id);
	else
		table_set_unknown(out, row, column);
}

/* The contents of a track. */
struct content {
	const struct busy *busy;
	int64_t samples;
};

/* Sets the columns of events and samples; they stay unknown if the profile has none. */
static void set_content(struct table *out, uint32_t row, const struct model *m,
			const struct content *content)
{
	if (m->event.count > 1 || m->sample.count <= 1) {
		table_set_int(out, row, COLUMN_EVENTS, (int64_t)content->busy->events);
		table_set_int(out, row, COLUMN_BUSY, content->busy->busy_ns);
	} else {
		table_set_unknown(out, row, COLUMN_EVENTS);
		table_set_unknown(out, row, COLUMN_BUSY);
	}
	if (m->sample.count > 1)
		table_set_int(out, row, COLUMN_SAMPLES, content->samples);
	else
		table_set_unknown(out, row, COLUMN_SAMPLES);
}

static void add_track(struct table *out, const struct model *m, uint32_t track,
		      const struct content *content)
{
	uint32_t row = table_add_row(out, 0);
	device_id device = m->track.device[track];
	source_id source = m->track.source[track];

	table_set_model_text(out, row, COLUMN_NAME, model_str(m, m->track.name[track]));
	table_set_model_text(out, row, COLUMN_PROCESS, model_str(m, m->track.process[track]));
	table_set_model_text(out, row, COLUMN_KIND,
			     str_from(track_kind_name(m->track.kind[track])));
	table_set_model_text(out, row, COLUMN_DEVICE, model_str(m, m->device.name[device.v]));
	set_id(out, row, COLUMN_PID, m->track.pid[track]);
	set_id(out, row, COLUMN_TID, m->track.tid[track]);
	set_content(out, row, m, content);
	if (source.v && m->source.rank[source.v] >= 0)
		table_set_int(out, row, COLUMN_RANK, m->source.rank[source.v]);
	else
		table_set_unknown(out, row, COLUMN_RANK);
}

/* Returns whether a track is shown; an empty track is shown only without a filter. */
static bool is_asked_for(const struct event_filter *filter, const struct model *m, uint32_t track,
			 const struct content *content)
{
	if (!filter_track(filter, m, (track_id){ track }))
		return false;
	return content->busy->events || content->samples ||
	       (!filter->step && !filter_has_time(filter));
}

/* Returns whether samples of a metric count: the user chose it, or it is the default of its
 * source. */
static bool is_counted(const struct model *m, const struct view_options *options, uint32_t metric)
{
	if (options->metric)
		return str_eq(model_str(m, m->metric.name[metric]), str_from(options->metric));
	return m->metric.is_default[metric];
}

static int64_t *count_samples(const struct model *m, const struct view_options *options,
			      const struct event_filter *filter, struct arena *scratch)
{
	int64_t *counts = ARENA_ARRAY(scratch, int64_t, m->track.count);
	uint8_t *wanted = ARENA_ARRAY(scratch, uint8_t, m->metric.count);
	bool unfiltered = filter_is_all(filter);

	if (!counts || !wanted)
		return NULL;
	for (uint32_t i = 0; i < m->metric.count; i++)
		wanted[i] = is_counted(m, options, i);
	for (uint32_t i = 1; i < m->sample.count; i++)
		if (wanted[m->sample.metric[i].v] && (unfiltered || sample_inside(filter, m, i)))
			counts[m->sample.track[i].v]++;
	return counts;
}

static ow_status list_tracks(struct model *m, const struct view_options *options,
			     struct arena *scratch, struct table *out, struct ow_error *err)
{
	uint32_t count = m->track.count;
	uint32_t *group = ARENA_ARRAY(scratch, uint32_t, count);
	uint32_t *order = ARENA_ARRAY(scratch, uint32_t, count);
	struct busy *busy = ARENA_ARRAY(scratch, struct busy, count);
	struct event_filter filter;
	int64_t *samples;

	OW_TRY(view_filter(m, options, &filter, err));
	samples = count_samples(m, options, &filter, scratch);
	if (!group || !order || !busy || !samples)
		return error_no_memory(err);
	for (uint32_t i = 0; i < count; i++)
		group[i] = order[i] = i;
	OW_TRY(busy_measure(m, &filter, group, count, NULL, busy, err));
	qsort_r(order + 1, count - 1, sizeof(*order), by_process_and_name, m);
	for (uint32_t i = 1; i < count; i++) {
		struct content content = { &busy[order[i]], samples[order[i]] };

		if (is_asked_for(&filter, m, order[i], &content))
			add_track(out, m, order[i], &content);
	}
	return OW_OK;
}

static ow_status run_tracks_view(struct model *m, const struct view_options *options,
				 struct table *out, struct ow_error *err)
{
	struct arena scratch;
	ow_status status;

	add_columns(out);
	arena_init(&scratch, m->mem);
	status = list_tracks(m, options, &scratch, out, err);
	arena_release(&scratch);
	OW_TRY(status);
	if (options->limit)
		table_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_tracks = {
	.name = "tracks",
	.summary = "threads, streams and devices: events, busy time, samples",
	.uses = VIEW_USES_PART | VIEW_USES_METRIC,
	.run = run_tracks_view,
};
