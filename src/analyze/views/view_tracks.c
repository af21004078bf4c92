/*
 * view_tracks.c: the lines of events: host threads, streams, a device's executor, copy engines; how
 * many events each has and for how long it was busy, overlapping events counted once; how many samples
 * of what its source measures by default. Sorted by process and name, so that the order does not depend
 * on how the inputs were read.
 */
#include "analyze/busy.h"
#include "analyze/samples.h"
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

static void add_columns(struct result *out)
{
	result_column(out, "name", "track", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "process", "process", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "kind", "kind", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "device", "device", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "pid", "pid", RESULT_INT, RESULT_PLAIN);
	result_column(out, "tid", "tid", RESULT_INT, RESULT_PLAIN);
	result_column(out, "events", "events", RESULT_INT, RESULT_COUNT);
	result_column(out, "busy_ns", "busy", RESULT_INT, RESULT_NS);
	result_column(out, "rank", "rank", RESULT_INT, RESULT_PLAIN);
	result_column(out, "samples", "samples", RESULT_INT, RESULT_COUNT);
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

/* Ids may be missing, or be text, which the names show. */
static void set_id(struct result *out, uint32_t row, uint32_t column, int64_t id)
{
	if (id > MODEL_TEXT_NUMBER + UINT32_MAX)
		result_set_int(out, row, column, id);
	else
		result_set_unknown(out, row, column);
}

/* What there is on a track. */
struct content {
	const struct busy *busy;
	int64_t samples;
};

/* A profile without events, or without samples, has nothing to say of them. */
static void set_content(struct result *out, uint32_t row, const struct model *m,
			const struct content *content)
{
	if (m->event.count > 1 || m->sample.count <= 1) {
		result_set_int(out, row, COLUMN_EVENTS, (int64_t)content->busy->events);
		result_set_int(out, row, COLUMN_BUSY, content->busy->busy_ns);
	} else {
		result_set_unknown(out, row, COLUMN_EVENTS);
		result_set_unknown(out, row, COLUMN_BUSY);
	}
	if (m->sample.count > 1)
		result_set_int(out, row, COLUMN_SAMPLES, content->samples);
	else
		result_set_unknown(out, row, COLUMN_SAMPLES);
}

static void add_track(struct result *out, const struct model *m, uint32_t track,
		      const struct content *content)
{
	uint32_t row = result_row(out, 0);
	device_id device = m->track.device[track];
	source_id source = m->track.source[track];

	result_set_model_text(out, row, COLUMN_NAME, model_str(m, m->track.name[track]));
	result_set_model_text(out, row, COLUMN_PROCESS, model_str(m, m->track.process[track]));
	result_set_model_text(out, row, COLUMN_KIND,
			      str_from(track_kind_name(m->track.kind[track])));
	result_set_model_text(out, row, COLUMN_DEVICE, model_str(m, m->device.name[device.v]));
	set_id(out, row, COLUMN_PID, m->track.pid[track]);
	set_id(out, row, COLUMN_TID, m->track.tid[track]);
	set_content(out, row, m, content);
	if (source.v && m->source.rank[source.v] >= 0)
		result_set_int(out, row, COLUMN_RANK, m->source.rank[source.v]);
	else
		result_set_unknown(out, row, COLUMN_RANK);
}

/* A track without anything is shown only when everything is. */
static bool is_asked_for(const struct event_filter *filter, const struct model *m, uint32_t track,
			 const struct content *content)
{
	if (!filter_track(filter, m, (track_id){ track }))
		return false;
	return content->busy->events || content->samples ||
	       (!filter->step && !filter_has_time(filter));
}

/* Whether samples of a metric count: it was asked for, or is what its source measures by default. */
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
			     struct arena *scratch, struct result *out, struct error *err)
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
	OW_TRY(busy_measure(m, &filter, group, count, busy, err));
	qsort_r(order + 1, count - 1, sizeof(*order), by_process_and_name, m);
	for (uint32_t i = 1; i < count; i++) {
		struct content content = { &busy[order[i]], samples[order[i]] };

		if (is_asked_for(&filter, m, order[i], &content))
			add_track(out, m, order[i], &content);
	}
	return OW_OK;
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct arena scratch;
	ow_status status;

	add_columns(out);
	arena_init(&scratch, m->mem);
	status = list_tracks(m, options, &scratch, out, err);
	arena_release(&scratch);
	OW_TRY(status);
	if (options->limit)
		result_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_tracks = {
	.name = "tracks",
	.summary = "threads, streams and devices: events, busy time, samples",
	.run = run,
};
