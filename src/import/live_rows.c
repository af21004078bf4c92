/*
 * live_rows.c: what live_read.c found as rows of a model: one source per rank, the tracks of its processes, events,
 * counters. What they mean is found by the same passes as for traces (meaning.h), with producer_live.c for what only
 * recordings have.
 */
#include "import/live_read.h"

#include "import/meaning.h"

static const char *const categories[RING_CATEGORIES] = {
	[RING_OTHER] = "",
	[RING_OPERATOR] = "cpu_op",
	[RING_BACKWARD] = "cpu_op",
	[RING_RANGE] = "user_annotation",
	[RING_FILE_READ] = "file_read",
	[RING_FILE_WRITE] = "file_write",
	[RING_FILE_OPEN] = "file_open",
	[RING_OPENCL_CALL] = "opencl_runtime",
	[RING_OPENCL_WAIT] = "opencl_wait",
	[RING_OPENCL_BUILD] = "opencl_build",
	[RING_CUDA_CALL] = "cuda_runtime",
	[RING_CUDA_WAIT] = "cuda_wait",
	[RING_KERNEL] = "kernel",
	[RING_COPY_TO_DEVICE] = "gpu_memcpy",
	[RING_COPY_TO_HOST] = "gpu_memcpy",
	[RING_COPY_DEVICE] = "gpu_memset",
	[RING_COLLECTIVE] = "collective_comm",
};

static const char *const counters[RING_COUNTERS] = {
	[RING_SEND] = "sockets: sent bytes/s",
	[RING_RECEIVE] = "sockets: received bytes/s",
	[RING_POLL] = "poll: calls/s",
	[RING_PIPE_READ] = "pipes: read bytes/s",
	[RING_PIPE_WRITE] = "pipes: written bytes/s",
};

/* ---- who works ahead for whom ---- */

static const struct live_job *parent_of(const struct live_data *d, const struct live_job *job)
{
	/* The latest: a process that executes another program begins anew, with the same number. */
	for (const struct live_job *p = job; p > d->jobs;)
		if ((--p)->known && p->row.pid == job->row.parent)
			return p;
	return NULL;
}

/* Its parent waits for batches, and it takes no steps of its own. */
static bool is_loader(const struct live_data *d, const struct live_job *job)
{
	const struct live_job *parent = parent_of(d, job);

	return parent && parent->seen & LIVE_NAME_LOADER && !(job->seen & LIVE_NAME_OPTIMIZER);
}

/* ---- tracks ---- */

static str_id lane_name(struct live_data *d, const struct live_lane *lane)
{
	char text[48];

	if (lane->kind == LIVE_LANE_SPANS)
		return builder_cstr(d->b, "across threads");
	if (lane->name.v)
		return lane->name;
	snprintf(text, sizeof(text), "%s %u", lane->kind == LIVE_LANE_DEVICE ? "queue" : "thread",
		 lane->id);
	return builder_cstr(d->b, text);
}

static void make_track(struct live_data *d, struct live_lane *lane)
{
	const struct live_job *job = &d->jobs[lane->job];
	struct track_row row = { .name = lane_name(d, lane),
				 .process = job->title,
				 .pid = job->row.pid,
				 .tid = lane->id,
				 .kind = job->aside	     ? TRACK_OTHER
					 : is_loader(d, job) ? TRACK_LOADER
							     : TRACK_HOST,
				 .flags = TRACK_SLICES,
				 .source = d->b->source };

	if (lane->kind == LIVE_LANE_DEVICE) {
		row.kind = TRACK_STREAM;
		row.device = builder_device(d->b, lane->device.v ? model_str(d->b->m, lane->device)
								 : STR("device"));
		if (row.device.v && d->b->m->device.kind[row.device.v] <= DEVICE_CPU)
			d->b->m->device.kind[row.device.v] = DEVICE_OTHER;
	}
	lane->track = builder_track(d->b, &row).v;
}

/* ---- events ---- */

/* By track, then time; what is around comes first. Ranks are made one after the other: lanes of others sort last. */
static int by_place(const void *a, const void *b)
{
	const struct live_slice *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->ts_ns != y->ts_ns)
		return x->ts_ns < y->ts_ns ? -1 : 1;
	return (x->dur_ns < y->dur_ns) - (x->dur_ns > y->dur_ns);
}

static void add_event(struct live_data *d, const struct live_slice *s, const str_id *names)
{
	const struct live_lane *lane = &d->lanes[s->lane];
	uint32_t base = d->jobs[lane->job].id_base;
	uint16_t category = s->category < RING_CATEGORIES ? s->category : RING_OTHER;

	builder_add_event(d->b,
			  &(struct event_row){ .ts_ns = s->ts_ns,
					       .dur_ns = s->dur_ns,
					       .op = { s->name }, /* a string; see meaning.h */
					       .track = { lane->track },
					       .category = names[category],
					       .bytes = s->bytes,
					       .correlation = s->id ? s->id + base : 0 });
}

static ow_status add_events(struct live_data *d, int32_t rank)
{
	str_id names[RING_CATEGORIES];
	uint32_t unnamed = builder_cstr(d->b, "(no name)").v;

	for (size_t i = 0; i < RING_CATEGORIES; i++)
		names[i] = categories[i] && *categories[i] ? builder_cstr(d->b, categories[i])
							   : (str_id){ 0 };
	for (size_t i = 0; i < d->slice_count && builder_status(d->b) == OW_OK; i++) {
		struct live_slice *s = &d->slices[i];

		if (d->jobs[d->lanes[s->lane].job].rank != rank)
			continue;
		s->name = s->name ? s->name : unnamed;
		add_event(d, s, names);
	}
	return builder_status(d->b);
}

/* ---- counters ---- */

static uint32_t track_of_job(const struct live_data *d, uint32_t job)
{
	uint32_t track = 0;

	for (size_t i = 0; i < d->lane_count; i++)
		if (d->lanes[i].job == job && d->lanes[i].kind == LIVE_LANE_THREAD &&
		    (!track || d->lanes[i].first))
			track = d->lanes[i].track;
	return track;
}

/* The last value of the same counter of the same process, before index i. */
static const struct live_value *value_before(const struct live_data *d, size_t i)
{
	const struct live_value *v = &d->values[i];

	while (i--)
		if (d->values[i].job == v->job && d->values[i].row.counter == v->row.counter)
			return &d->values[i];
	return NULL;
}

static uint64_t amount(const struct live_count *c)
{
	return c->counter == RING_POLL ? c->calls : c->bytes;
}

static ow_status add_counters(struct live_data *d, int32_t rank)
{
	for (size_t i = 0; i < d->value_count; i++) {
		const struct live_value *v = &d->values[i], *last = value_before(d, i);
		uint32_t track = track_of_job(d, v->job);
		double seconds;
		str_id name;

		if (d->jobs[v->job].rank != rank || !last || !track ||
		    v->row.ts_ns <= last->row.ts_ns)
			continue;
		seconds = (double)(v->row.ts_ns - last->row.ts_ns) / 1e9;
		name = builder_cstr(d->b, counters[v->row.counter]);
		builder_add_counter(
			d->b, &(struct counter_row){
				      .track = { track },
				      .name = name,
				      .series = name,
				      .ts_ns = v->row.ts_ns + d->session.wall_ns -
					       d->session.monotonic_ns,
				      .value = (double)(amount(&v->row) - amount(&last->row)) /
					       seconds });
	}
	return builder_status(d->b);
}

/* ---- one rank ---- */

static void add_facts(struct live_data *d, int32_t rank)
{
	struct builder *b = d->b;
	fact_id list = fact_list(b, (fact_id){ 0 }, "processes");

	d->session.host[sizeof(d->session.host) - 1] = '\0';
	fact_text(b, (fact_id){ 0 }, "host", str_from(d->session.host));
	for (size_t i = 0; i < d->job_count; i++) {
		const struct live_job *job = &d->jobs[i];
		fact_id object;

		if (!job->known || job->rank != rank)
			continue;
		object = fact_object(b, list, "");
		fact_int(b, object, "pid", job->row.pid);
		fact_int(b, object, "parent", job->row.parent);
		fact_text(b, object, "command", model_str(b->m, job->command));
		if (job->armed[RING_HOOK_TORCH].v)
			fact_text(b, object, "framework",
				  model_str(b->m, job->armed[RING_HOOK_TORCH]));
	}
}

static void add_notes(struct live_data *d, int32_t rank)
{
	for (size_t i = 0; i < d->job_count; i++) {
		const struct live_job *job = &d->jobs[i];

		if (!job->known || job->rank != rank)
			continue;
		if (job->row.flags & LIVE_REFUSED)
			builder_note(
				d->b, NOTE_MISSING, OW_NO_OFFSET,
				"process %u was not recorded: its recorder is of another version",
				job->row.pid);
		if (job->dropped)
			builder_note_many(
				d->b, NOTE_DROPPED, OW_NO_OFFSET, job->dropped,
				"records of process %u came faster than they were taken: dropped",
				job->row.pid);
		if (job->texts_lost)
			builder_note_many(d->b, NOTE_MISSING, OW_NO_OFFSET, job->texts_lost,
					  "names of process %u had no room", job->row.pid);
		if (job->rings_lost)
			builder_note_many(d->b, NOTE_MISSING, OW_NO_OFFSET, job->rings_lost,
					  "threads of process %u could not be recorded",
					  job->row.pid);
	}
}

static ow_status add_rank(struct live_data *d, int32_t rank)
{
	struct model *m = d->b->m;
	struct meaning_input in = { .source = d->b->source,
				    .input = d->ctx->in,
				    .options = d->ctx->options,
				    .first_event = m->event.count,
				    .first_track = m->track.count,
				    .first_flow = m->flow.count,
				    .only_slices = true,
				    .live = true };

	m->source.rank[d->b->source.v] = rank;
	add_facts(d, rank);
	add_notes(d, rank);
	for (size_t i = 0; i < d->lane_count; i++)
		if (d->jobs[d->lanes[i].job].rank == rank &&
		    (d->lanes[i].used || d->lanes[i].first))
			make_track(d, &d->lanes[i]);
	OW_TRY(add_events(d, rank));
	OW_TRY(add_counters(d, rank));
	return trace_meaning(d->b, &in);
}

/* ---- all ---- */

static void number_ids(struct live_data *d)
{
	uint64_t base = 0;

	for (size_t i = 0; i < d->job_count; i++) {
		d->jobs[i].id_base = (uint32_t)base;
		base += d->jobs[i].highest_id;
	}
}

/* What starts the ranks of a job has none itself: it is shown with the first rank, beside what counts. */
static void give_ranks(struct live_data *d)
{
	int32_t lowest = INT32_MAX;

	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i].known && d->jobs[i].rank >= 0)
			lowest = MIN(lowest, d->jobs[i].rank);
	for (size_t i = 0; i < d->job_count && lowest < INT32_MAX; i++) {
		d->jobs[i].aside = d->jobs[i].rank < 0;
		d->jobs[i].rank = d->jobs[i].aside ? lowest : d->jobs[i].rank;
	}
}

/* The next rank that has records, after this one. */
static bool next_rank(const struct live_data *d, int64_t after, int32_t *rank)
{
	bool found = false;

	for (size_t i = 0; i < d->lane_count; i++) {
		int32_t r = d->jobs[d->lanes[i].job].rank;

		if (r > after && (!found || r < *rank)) {
			*rank = r;
			found = true;
		}
	}
	return found;
}

/* Further ranks are sources of their own, of the same file. */
static ow_status add_source(struct live_data *d, int32_t rank)
{
	struct model *m = d->b->m;
	uint32_t first = d->b->source.v;
	struct source_row row = { .format = m->source.format[first],
				  .container = m->source.container[first],
				  .size = m->source.size[first],
				  .packed_size = m->source.packed_size[first],
				  .rank = rank,
				  .run = m->source.run[first] };
	struct str path = model_str(m, m->source.path[first]);
	struct buf name;

	buf_init(&name, d->mem);
	buf_printf(&name, "%.*s!rank %d", STR_ARG(path), rank);
	row.path = builder_str(d->b, buf_str(&name));
	buf_release(&name);
	builder_new_source(d->b, &row);
	return builder_status(d->b);
}

static ow_status add_ranks(struct live_data *d)
{
	source_id first = d->b->source;
	int32_t rank = -1;
	ow_status status = OW_OK;
	bool any = false;

	for (int64_t after = -2; status == OW_OK && next_rank(d, after, &rank); after = rank) {
		if (any) {
			d->b->source = first;
			status = add_source(d, rank);
		}
		any = true;
		if (status == OW_OK)
			status = add_rank(d, rank);
	}
	d->b->source = first;
	return status;
}

ow_status live_rows(struct live_data *d)
{
	if (!d->slice_count && !d->value_count)
		return error_set(d->ctx->err, OW_E_EMPTY,
				 "%s: a recording in which nothing was recorded yet",
				 d->ctx->in->name);
	if (d->slice_count)
		qsort(d->slices, d->slice_count, sizeof(*d->slices), by_place);
	number_ids(d);
	give_ranks(d);
	OW_TRY(add_ranks(d));
	if (d->damaged)
		builder_note_many(d->b, NOTE_DAMAGED, d->damaged_at, d->damaged,
				  "records or blocks of records are damaged: left out");
	if (!d->complete)
		builder_note(
			d->b, NOTE_INFO, d->end,
			"the recording was not closed: it still goes on, or was ended; all that "
			"was written until then is here");
	return builder_status(d->b);
}
