/*
 * trace_tracks.c: the tracks of a Chrome trace in the model: their order, names, kinds, and which of them are needed at all. Called by
 * trace_place.c before it places the slices.
 */
#include "import/chrome/trace_int.h"

struct tracks {
	const struct trace_job *job;
	const struct trace_raw *rows;
	struct trace_names *names; /* names; lanes get their row in the model */
};

static int compare_ids(const struct tracks *t, struct trace_id a, struct trace_id b)
{
	if (a.kind != b.kind)
		return a.kind - b.kind;
	if (a.kind != ID_TEXT || a.value == b.value)
		return (a.value > b.value) - (a.value < b.value);
	return str_cmp(trace_str(t->job, t->names, (uint32_t)a.value),
		       trace_str(t->job, t->names, (uint32_t)b.value));
}

static int compare_lanes(const void *a, const void *b, void *arg)
{
	const struct tracks *t = arg;
	const struct trace_track *x = &t->names->lanes[*(const uint32_t *)a].key;
	const struct trace_track *y = &t->names->lanes[*(const uint32_t *)b].key;
	int order = compare_ids(t, x->pid, y->pid);

	if (!order)
		order = compare_ids(t, x->tid, y->tid);
	return order ? order : x->layer - y->layer;
}

ow_status trace_order_lanes(const struct trace_job *job, struct trace_names *names,
			    uint32_t **order)
{
	struct tracks t = { .job = job, .names = names };

	*order = mem_alloc(job->mem, names->lane_count * sizeof(**order));
	if (!*order)
		return trace_no_memory(job);
	for (uint32_t i = 0; i < names->lane_count; i++)
		(*order)[i] = i;
	qsort_r(*order + 1, names->lane_count - 1, sizeof(**order), compare_lanes, &t);
	return OW_OK;
}

/* Returns the kind of the slices of a layer, until more is known. */
static uint8_t layer_kind(uint8_t layer)
{
	static const uint8_t kinds[] = {
		[LAYER_THREAD] = TRACK_HOST,   [LAYER_FRAMES] = TRACK_FRAMES,
		[LAYER_DEVICE] = TRACK_STREAM, [LAYER_DERIVED] = TRACK_DERIVED,
		[LAYER_SPAN] = TRACK_SPAN,     [LAYER_ASYNC] = TRACK_ASYNC,
	};

	return kinds[layer];
}

static void find_proxies(struct tracks *t)
{
	for (uint32_t i = 1; i < t->names->lane_count; i++) {
		struct trace_lane *lane = &t->names->lanes[i],
				  *thread = &t->names->lanes[lane->thread];

		if (lane->thread == i || !lane->count)
			continue;
		if (!thread->proxy || lane->key.layer == LAYER_DEVICE)
			thread->proxy = i;
	}
}

/* Marks tracks that counters and flows need although no slice is on them. */
static void want_tracks(struct tracks *t)
{
	find_proxies(t);
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[p->worker];

		for (size_t r = p->first.points; r < p->last.points; r++)
			if (trace_is_flow(&w->points[r]))
				t->names->lanes[trace_arrow_lane(t->names, w->points[r].where.lane)]
					.wanted = true;
		for (size_t r = p->first.counters; r < p->last.counters; r++)
			t->names->lanes[w->counters[r].where.lane].wanted = true;
	}
}

static int64_t track_number(const struct tracks *t, struct trace_id id)
{
	if (id.kind == ID_NONE)
		return MODEL_NO_ID;
	if (id.kind == ID_TEXT)
		return MODEL_TEXT_NUMBER + (id.value == t->names->string_count ? 0 : id.value);
	return id.value;
}

/* Returns the name of a thread; a text in place of its number is the name. */
static str_id lane_name(struct tracks *t, const struct trace_lane *lane)
{
	const struct trace_id *tid = &lane->key.tid;
	char text[32];

	if (t->names->lanes[lane->thread].name.v)
		return t->names->lanes[lane->thread].name;
	if (tid->kind == ID_TEXT)
		return trace_str_id(t->names, (uint32_t)tid->value);
	if (tid->kind == ID_NONE)
		return (str_id){ 0 };
	snprintf(text, sizeof(text), "thread %" PRId64, tid->value);
	return builder_cstr(t->job->b, text);
}

static str_id process_name(struct tracks *t, const struct trace_process *process)
{
	char text[32];

	if (process->name.v)
		return process->name;
	if (process->pid.kind == ID_TEXT)
		return trace_str_id(t->names, (uint32_t)process->pid.value);
	if (process->pid.kind == ID_NONE)
		return (str_id){ 0 };
	snprintf(text, sizeof(text), "process %" PRId64, process->pid.value);
	return builder_cstr(t->job->b, text);
}

ow_status trace_make_tracks(const struct trace_job *job, const struct trace_raw *rows,
			    struct trace_names *names, const uint32_t *order)
{
	struct tracks t = { job, rows, names };

	want_tracks(&t);
	for (uint32_t i = 1; i < names->lane_count; i++) {
		struct trace_lane *lane = &names->lanes[order[i]];
		const struct trace_process *process = &names->processes[lane->process];

		if (!lane->count && !lane->wanted)
			continue;
		lane->id = builder_add_track(
			job->b, &(struct track_row){ .name = lane_name(&t, lane),
						     .process = process_name(&t, process),
						     .pid = track_number(&t, lane->key.pid),
						     .tid = track_number(&t, lane->key.tid),
						     .kind = layer_kind(lane->key.layer),
						     .source = job->b->source,
						     .flags = TRACK_SLICES,
						     .labels = process->labels,
						     .sort_index = names->lanes[lane->thread].sort,
						     .process_sort_index = process->sort });
	}
	return builder_status(job->b);
}
