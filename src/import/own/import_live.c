/*
 * live_rows.c: what live_read.c found as rows of a model: one source per rank, the tracks of its processes, events,
 * counters. What they mean is found by the same passes as for traces (meaning.h), with producer_live.c for what only
 * recordings have.
 */
#include "import/live_blind.h"
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
	[RING_READS] = "reads: bytes/s",
	[RING_FILE_READS] = "files: read bytes/s",
	[RING_MAPPED] = "files: mapped bytes/s",
};

/* ---- jobs and ranks ---- */

/* One rank of one job. */
struct place {
	str_id run;
	uint32_t run_number;
	bool named; /* not of the first job of the file: its name says so */
	int32_t rank, world_size;
};

static bool is_at(const struct live_job *job, const struct place *at)
{
	return job->rank == at->rank && job->run.v == at->run.v;
}

/* Jobs in the order in which they were seen. */
static int by_run_and_rank(const struct live_job *x, const struct live_job *y)
{
	if (x->run.v != y->run.v)
		return x->run.v < y->run.v ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

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

static ow_status add_events(struct live_data *d, const struct place *at)
{
	str_id names[RING_CATEGORIES];
	uint32_t unnamed = builder_cstr(d->b, "(no name)").v;

	for (size_t i = 0; i < RING_CATEGORIES; i++)
		names[i] = categories[i] && *categories[i] ? builder_cstr(d->b, categories[i])
							   : (str_id){ 0 };
	for (size_t i = 0; i < d->slice_count && builder_status(d->b) == OW_OK; i++) {
		struct live_slice *s = &d->slices[i];

		if (!is_at(&d->jobs[d->lanes[s->lane].job], at))
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

static ow_status add_counters(struct live_data *d, const struct place *at)
{
	for (size_t i = 0; i < d->value_count; i++) {
		const struct live_value *v = &d->values[i], *last = value_before(d, i);
		uint32_t track = track_of_job(d, v->job);
		double seconds;
		str_id name;

		if (!is_at(&d->jobs[v->job], at) || !last || !track ||
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

static void add_facts(struct live_data *d, const struct place *at)
{
	struct builder *b = d->b;
	fact_id list = fact_list(b, (fact_id){ 0 }, "processes");

	d->session.host[sizeof(d->session.host) - 1] = '\0';
	fact_text(b, (fact_id){ 0 }, "host", str_from(d->session.host));
	if (at->run.v)
		fact_text(b, (fact_id){ 0 }, "job", model_str(b->m, at->run));
	if (at->world_size > 0)
		fact_int(b, (fact_id){ 0 }, "world_size", at->world_size);
	for (size_t i = 0; i < d->job_count; i++) {
		const struct live_job *job = &d->jobs[i];
		fact_id object;

		if (!job->known || !is_at(job, at))
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

static void add_notes(struct live_data *d, const struct place *at)
{
	for (size_t i = 0; i < d->job_count; i++) {
		const struct live_job *job = &d->jobs[i];

		if (!job->known || !is_at(job, at))
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
		if (job->dropped_marks)
			builder_note_many(
				d->b, NOTE_DROPPED, OW_NO_OFFSET, job->dropped_marks,
				"ranges of process %u are among them, which tell where steps end: "
				"the times of as many steps are uncertain",
				job->row.pid);
		if (job->texts_lost)
			builder_note_many(d->b, NOTE_MISSING, OW_NO_OFFSET, job->texts_lost,
					  "names of process %u had no room", job->row.pid);
		if (job->rings_lost)
			builder_note_many(d->b, NOTE_MISSING, OW_NO_OFFSET, job->rings_lost,
					  "threads of process %u could not be recorded",
					  job->row.pid);
		live_add_blind_spots(d, job);
	}
}

static ow_status add_place(struct live_data *d, const struct place *at)
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

	m->source.rank[d->b->source.v] = at->rank;
	m->source.run[d->b->source.v] = at->run_number;
	add_facts(d, at);
	add_notes(d, at);
	for (size_t i = 0; i < d->lane_count; i++)
		if (is_at(&d->jobs[d->lanes[i].job], at) && (d->lanes[i].used || d->lanes[i].first))
			make_track(d, &d->lanes[i]);
	OW_TRY(add_events(d, at));
	OW_TRY(add_counters(d, at));
	OW_TRY(live_add_samples(d, at->run, at->rank));
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

/* The first rank of the job, or of all jobs when the process is of none. */
static const struct live_job *first_rank(const struct live_data *d, str_id run)
{
	const struct live_job *first = NULL;

	for (size_t i = 0; i < d->job_count; i++) {
		const struct live_job *job = &d->jobs[i];

		if (job->known && job->rank >= 0 && !job->aside &&
		    (!run.v || job->run.v == run.v) && (!first || by_run_and_rank(job, first) < 0))
			first = job;
	}
	return first;
}

/* What starts the ranks of a job has none itself: it is shown with the first rank, beside what counts. */
static void give_ranks(struct live_data *d)
{
	for (size_t i = 0; i < d->job_count; i++) {
		struct live_job *job = &d->jobs[i];
		const struct live_job *first = job->rank < 0 ? first_rank(d, job->run) : NULL;

		if (!first)
			continue;
		job->aside = true;
		job->rank = first->rank;
		job->run = first->run;
	}
}

/* The next of a job and rank that has records, after this one. */
static const struct live_job *next_job(const struct live_data *d, const struct live_job *after)
{
	const struct live_job *found = NULL;

	for (size_t i = 0; i < d->lane_count; i++) {
		const struct live_job *job = &d->jobs[d->lanes[i].job];

		if ((!after || by_run_and_rank(job, after) > 0) &&
		    (!found || by_run_and_rank(job, found) < 0))
			found = job;
	}
	return found;
}

/* Further ranks are sources of their own, of the same file. */
static ow_status add_source(struct live_data *d, const struct place *at)
{
	struct model *m = d->b->m;
	uint32_t first = d->b->source.v;
	struct source_row row = { .format = m->source.format[first],
				  .container = m->source.container[first],
				  .size = m->source.size[first],
				  .packed_size = m->source.packed_size[first],
				  .rank = at->rank,
				  .run = at->run_number };
	struct str path = model_str(m, m->source.path[first]);
	struct buf name;

	buf_init(&name, d->mem);
	buf_printf(&name, "%.*s!", STR_ARG(path));
	if (at->named)
		buf_printf(&name, "%.*s", STR_ARG(model_str(m, at->run)));
	if (at->rank >= 0)
		buf_printf(&name, "%srank %d", at->named ? " " : "", at->rank);
	row.path = builder_str(d->b, buf_str(&name));
	buf_release(&name);
	builder_new_source(d->b, &row);
	return builder_status(d->b);
}

/* The source before this one that says that it is of the same job; 0 when there is none. */
static uint32_t source_of_run(const struct model *m, uint32_t before, str_id run)
{
	for (uint32_t i = 1; run.v && i < m->fact.count; i++)
		if (m->fact.source[i].v < before && !m->fact.parent[i].v &&
		    m->fact.kind[i] == FACT_TEXT && m->fact.text[i].v == run.v &&
		    str_eq(model_str(m, m->fact.key[i]), STR("job")))
			return m->fact.source[i].v;
	return 0;
}

/* Files of one job have one number. Of a file without a name it is its own, but for ranks: they are of the job that
 * was first. */
static uint32_t number_of_run(const struct model *m, uint32_t before, const struct live_job *job)
{
	uint32_t same = source_of_run(m, before, job->run), highest = 0;

	if (same)
		return m->source.run[same];
	if (!job->run.v && job->rank >= 0)
		return 1;
	for (uint32_t i = 1; i < before; i++)
		highest = MAX(highest, m->source.run[i]);
	return highest + 1;
}

static ow_status add_places(struct live_data *d)
{
	source_id first = d->b->source;
	struct place at = { 0 };
	ow_status status = OW_OK;

	for (const struct live_job *last = NULL, *job;
	     status == OW_OK && (job = next_job(d, last)) != NULL; last = job) {
		if (!last || job->run.v != last->run.v)
			at.run_number =
				number_of_run(d->b->m, last ? d->b->m->source.count : first.v, job);
		at.named |= last && job->run.v != last->run.v && job->run.v;
		at.run = job->run;
		at.rank = job->rank;
		at.world_size = job->world_size;
		d->b->source = first;
		if (last)
			status = add_source(d, &at);
		if (status == OW_OK)
			status = add_place(d, &at);
	}
	d->b->source = first;
	return status;
}

ow_status live_rows(struct live_data *d)
{
	if (!d->slice_count && !d->value_count && !d->sample_count)
		return error_set(d->ctx->err, OW_E_EMPTY,
				 "%s: a recording in which nothing was recorded%s",
				 d->ctx->in->name, d->complete ? "" : " yet");
	if (d->slice_count)
		qsort(d->slices, d->slice_count, sizeof(*d->slices), by_place);
	number_ids(d);
	give_ranks(d);
	OW_TRY(live_find_waited_for(d));
	OW_TRY(add_places(d));
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
