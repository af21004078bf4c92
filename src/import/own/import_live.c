/*
 * import_live.c: the importer of recordings of running programs, which `opwatch record` writes (docs/formats/live.md):
 * opwatch files whose first segment has the kind OPW_LIVE. It makes one source per rank from the lists of live_read.c:
 * tracks, events, counters, samples, and notes about reads that the recorder did not see. import/interpret decides what
 * the events mean.
 */
#include "import/importer.h"
#include "import/own/own_int.h"
#include "import/interpret/interpret.h"

#include "base/vec.h"

/* fewer unobserved bytes are not reported: libraries, and files that the C library reads for itself */
#define BLIND_BYTES 1000000.0
#define BLIND_SHARE 0.05
/* Bytes that a program reads from its libraries before it begins; the counters of a program that ends soon are never
 * read. */
#define START_BYTES 8192u

static uint64_t hash_of(uint32_t pid)
{
	return (pid + 1) * 0x9e3779b97f4a7c15u;
}

/* The last process so far with this pid; NULL when there is none. */
static struct live_job *find_process(struct live_data *d, const struct map *pids, uint32_t pid)
{
	struct live_job *found = NULL;

	for (struct map_iter it = map_find(pids, hash_of(pid)); it.value; it = map_next(pids, it)) {
		struct live_job *job = &d->jobs[it.value - 1];

		if (job->row.pid == pid && (!found || job->row.number > found->row.number))
			found = job;
	}
	return found;
}

/* The bytes that a process has read so far. For the time since the system's counters were last read, only the
 * recorder's hooks count. */
static struct live_reads reads_of(const struct live_job *job)
{
	struct live_reads sum = job->last;

	sum.system += job->counted[RING_READS] - MIN(job->counted[RING_READS], job->last.seen);
	return sum;
}

static void take_from(struct live_reads *from, const struct live_reads *part)
{
	from->system -= MIN(from->system, part->system);
	from->storage -= MIN(from->storage, part->storage);
}

/* Whether a program replaced another one by exec: then it continues with its counters. */
static bool is_executed(const struct live_job *job, const struct live_job *before)
{
	return before && before->row.parent == job->row.parent && before->asked &&
	       job->first.system >= before->last.system;
}

/* Adds the reads of children to their parents. Processes are sorted by their begin: a parent is the last earlier
 * process with its pid. */
static ow_status live_find_waited_for(struct live_data *d)
{
	struct map pids;
	bool good = true;

	map_init(&pids, d->mem);
	for (size_t i = 0; good && i < d->job_count; i++) {
		struct live_job *job = &d->jobs[i], *parent, *before;
		struct live_reads reads;

		if (!job->known)
			continue;
		parent = find_process(d, &pids, job->row.parent);
		before = find_process(d, &pids, job->row.pid);
		good = map_add(&pids, hash_of(job->row.pid), (uint32_t)i + 1);
		if (!parent || !job->ended)
			continue;
		if (is_executed(job, before) && before->ended) {
			reads = reads_of(before);
			take_from(&parent->waited_for, &reads);
		}
		reads = reads_of(job);
		parent->waited_for.system += reads.system + START_BYTES;
		parent->waited_for.storage += reads.storage;
	}
	map_release(&pids);
	return good ? OW_OK : import_no_memory(d->ctx);
}

static double more(uint64_t last, uint64_t first, uint64_t others)
{
	return last > first && last - first > others ? (double)(last - first - others) : 0;
}

static void live_add_blind_spots(struct live_data *d, const struct live_job *job)
{
	double system = more(job->last.system, job->first.system, job->waited_for.system);
	double calls = system - more(job->last.seen, job->first.seen, 0);
	double disk = more(job->last.storage, job->first.storage, job->waited_for.storage) -
		      more(job->last.seen_files, job->first.seen_files, 0);
	double mapped = (double)job->counted[RING_MAPPED];

	if (calls >= BLIND_BYTES && calls >= BLIND_SHARE * system)
		builder_note(d->b, NOTE_INFO, OW_NO_OFFSET,
			     "process %u: %.1f MB were read in ways that the recorder does not "
			     "see: system calls past the functions of the C library, sendfile, the "
			     "C library itself, or processes that it started and "
			     "that were not recorded",
			     job->row.pid, calls / 1e6);
	if (disk >= BLIND_BYTES)
		builder_note(d->b, NOTE_INFO, OW_NO_OFFSET,
			     "process %u: %.1f MB came from the disk in ways that the recorder "
			     "does not see: programs and libraries, mapped files%s",
			     job->row.pid, disk / 1e6, job->uses_uring ? ", io_uring" : "");
	if (mapped >= BLIND_BYTES)
		builder_note(d->b, NOTE_INFO, OW_NO_OFFSET,
			     "process %u mapped %.1f MB of files (mmap): the recorder does not see "
			     "these reads, only the time of the code that reads",
			     job->row.pid, mapped / 1e6);
	if (job->uses_uring)
		builder_note(d->b, NOTE_INFO, OW_NO_OFFSET,
			     "process %u uses io_uring: the recorder does not see these reads and "
			     "writes",
			     job->row.pid);
}

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
	[RING_STEP] = "step_begin",
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

/* One rank of one job, which becomes a source. */
struct place {
	str_id run;
	uint32_t run_number;
	/* not of the first job in the file, so the name of the source includes the job */
	bool named;
	int32_t rank, world_size;
};

static bool is_at(const struct live_job *job, const struct place *at)
{
	return job->rank == at->rank && job->run.v == at->run.v;
}

/* Compares by job, in the order in which jobs were seen, then by rank. */
static int by_run_and_rank(const struct live_job *x, const struct live_job *y)
{
	if (x->run.v != y->run.v)
		return x->run.v < y->run.v ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static const struct live_job *parent_of(const struct live_data *d, const struct live_job *job)
{
	/* Searches backwards for the latest process: one that executes another program starts over with the same
	 * pid. */
	for (const struct live_job *p = job; p > d->jobs;)
		if ((--p)->known && p->row.pid == job->row.parent)
			return p;
	return NULL;
}

/* Whether a process is a data loader: its parent waits for batches, and it makes no steps of its own. */
static bool is_loader(const struct live_data *d, const struct live_job *job)
{
	const struct live_job *parent = parent_of(d, job);

	return parent && parent->seen & LIVE_NAME_LOADER && !(job->seen & LIVE_NAME_OPTIMIZER);
}

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

/* Sorts slices by track, then time; an enclosing slice comes first. Ranks are made one after the other: lanes of
 * other ranks sort last. */
static int by_place(const void *a, const void *b)
{
	const struct live_slice *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->ts_ns != y->ts_ns)
		return x->ts_ns < y->ts_ns ? -1 : 1;
	return (x->dur_ns < y->dur_ns) - (x->dur_ns > y->dur_ns);
}

static void add_event(struct live_data *d, const struct live_slice *s, const str_id *names,
		      struct event_draft *draft)
{
	const struct live_lane *lane = &d->lanes[s->lane];
	uint32_t base = d->jobs[lane->job].id_base;
	uint16_t category = s->category < RING_CATEGORIES ? s->category : RING_OTHER;

	/* Ids of operators do not link slices; those of launches and of their work do. */
	bool joins = s->id && category != RING_OPERATOR && category != RING_BACKWARD;

	event_draft_add(draft, d->b,
			&(struct event_row){ .ts_ns = s->ts_ns,
					     .dur_ns = s->dur_ns,
					     .track = { lane->track },
					     .category = names[category],
					     .bytes = s->bytes,
					     .runs = s->calls > 1 ? s->calls : 0,
					     .correlation = joins ? s->id + base : 0 },
			(str_id){ s->name });
}

static ow_status add_events(struct live_data *d, const struct place *at, struct event_draft *draft)
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
		add_event(d, s, names, draft);
	}
	return builder_status(d->b);
}

static uint32_t track_of_job(const struct live_data *d, uint32_t job)
{
	uint32_t track = 0;

	for (size_t i = 0; i < d->lane_count; i++)
		if (d->lanes[i].job == job && d->lanes[i].kind == LIVE_LANE_THREAD &&
		    (!track || d->lanes[i].first))
			track = d->lanes[i].track;
	return track;
}

/* The last value of the same counter and process before index i. */
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

/* The processor time that a thread got between its first and last reading; 0 when it was read only once. */
static uint64_t running_ns(const struct live_data *d, uint32_t job, uint32_t tid)
{
	const struct live_schedule *first = NULL, *last = NULL;

	for (size_t i = 0; i < d->schedule_count; i++)
		if (d->schedules[i].job == job && d->schedules[i].tid == tid) {
			first = first ? first : &d->schedules[i];
			last = &d->schedules[i];
		}
	return first && last->running_ns > first->running_ns ? last->running_ns - first->running_ns
							     : 0;
}

/* The thread that makes the steps of a rank: the one that marks them, or else the first thread of the process that
 * computes most. */
static const struct live_lane *step_thread(const struct live_data *d, const struct place *at)
{
	const struct live_lane *found = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < d->lane_count; i++) {
		const struct live_lane *lane = &d->lanes[i];
		const struct live_job *job = &d->jobs[lane->job];
		uint64_t ns;

		if (!is_at(job, at) || !lane->track || lane->kind != LIVE_LANE_THREAD ||
		    job->aside || is_loader(d, job) || (!lane->steps && lane->id != job->row.pid))
			continue;
		ns = running_ns(d, lane->job, lane->id);
		if (!found || lane->steps > found->steps ||
		    (lane->steps == found->steps && ns > most)) {
			found = lane;
			most = ns;
		}
	}
	return found;
}

static void add_part(struct live_data *d, uint32_t track, const char *series, int64_t ts_ns,
		     double part)
{
	builder_add_counter(d->b,
			    &(struct counter_row){ .track = { track },
						   .name = builder_cstr(d->b, PROCESSOR_COUNTER),
						   .series = builder_cstr(d->b, series),
						   .ts_ns = ts_ns,
						   .value = MIN(part, 1.0) });
}

/* The processor time that a thread got between two readings. */
struct got {
	int64_t ts_ns; /* monotonic time of the second reading */
	double ns, running_ns, waiting_ns;
};

struct gots {
	struct got *list;
	size_t count, cap;
};

static ow_status list_schedule(struct live_data *d, const struct live_lane *lane, struct gots *g)
{
	const struct live_schedule *last = NULL;

	for (size_t i = 0; i < d->schedule_count; i++) {
		const struct live_schedule *s = &d->schedules[i];
		struct got one = { .ts_ns = s->ts_ns };

		if (s->job != lane->job || s->tid != lane->id)
			continue;
		if (last) {
			one.ns = (double)s->ts_ns - (double)last->ts_ns;
			if (one.ns <= 0 || s->running_ns < last->running_ns ||
			    s->waiting_ns < last->waiting_ns)
				continue;
			one.running_ns = (double)(s->running_ns - last->running_ns);
			one.waiting_ns = (double)(s->waiting_ns - last->waiting_ns);
		}
		if (!vec_push(d->mem, g->list, g->count, g->cap, one))
			return import_no_memory(d->ctx);
		last = s;
	}
	return OW_OK;
}

/* The kernel counts a wait when it ends: a wait that is longer than the time between two readings is spread over
 * earlier readings, too. */
static void spread_waits(struct gots *g)
{
	for (size_t i = g->count; i-- > 1;) {
		struct got *one = &g->list[i];
		double more = one->running_ns + one->waiting_ns - one->ns;

		if (more <= 0 || i == 1)
			continue;
		more = MIN(more, one->waiting_ns);
		one->waiting_ns -= more;
		one[-1].waiting_ns += more;
	}
}

/* Adds counters: the share of the time since the last reading that the thread was on a processor, and that it waited
 * for one. */
static ow_status add_schedule(struct live_data *d, const struct place *at)
{
	const struct live_lane *lane = step_thread(d, at);
	int64_t to_wall =
		(int64_t)((uint64_t)d->session.wall_ns - (uint64_t)d->session.monotonic_ns);
	struct gots g = { 0 };
	ow_status status;

	if (!lane)
		return OW_OK;
	status = list_schedule(d, lane, &g);
	spread_waits(&g);
	for (size_t i = 0; status == OW_OK && i < g.count; i++) {
		const struct got *one = &g.list[i];
		int64_t ts_ns = (int64_t)((uint64_t)one->ts_ns + (uint64_t)to_wall);

		add_part(d, lane->track, PROCESSOR_RUNNING, ts_ns,
			 one->ns > 0 ? one->running_ns / one->ns : 0);
		add_part(d, lane->track, PROCESSOR_WAITING, ts_ns,
			 one->ns > 0 ? one->waiting_ns / one->ns : 0);
	}
	vec_free(d->mem, g.list, g.cap);
	return status == OW_OK ? builder_status(d->b) : status;
}

/* Adds the samples of the processes of one job and rank, whose tracks exist. */
static ow_status live_add_samples(struct live_data *d, str_id run, int32_t rank)
{
	int64_t to_wall =
		(int64_t)((uint64_t)d->session.wall_ns - (uint64_t)d->session.monotonic_ns);
	metric_id wall = { 0 }, cpu = { 0 };

	for (size_t i = 0; i < d->sample_count; i++) {
		const struct live_sampled *s = &d->samples[i];
		const struct live_lane *lane = &d->lanes[s->lane];
		struct sample_row row = { .ts_ns = (int64_t)((uint64_t)s->row.ts_ns +
							     (uint64_t)to_wall),
					  .stack = { s->row.stack },
					  .track = { lane->track },
					  .weight = s->row.wall_ns };

		if (d->jobs[lane->job].rank != rank || d->jobs[lane->job].run.v != run.v)
			continue;
		if (!wall.v) {
			wall = builder_metric(d->b, STR("wall"), STR("ns"));
			cpu = builder_metric(d->b, STR("cpu"), STR("ns"));
			OW_TRY(builder_status(d->b));
			d->b->m->metric.is_default[wall.v] = 1;
		}
		row.metric = wall;
		builder_add_sample(d->b, &row);
		if (s->row.cpu_ns) {
			row.metric = cpu;
			row.weight = s->row.cpu_ns;
			builder_add_sample(d->b, &row);
		}
	}
	return builder_status(d->b);
}

/* The function that the user named as step marker when the recording began. */
static str_id marker_at(const struct live_data *d, const struct place *at)
{
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i].known && is_at(&d->jobs[i], at) && d->jobs[i].marker.v)
			return d->jobs[i].marker;
	return (str_id){ 0 };
}

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
	if (marker_at(d, at).v)
		fact_text(b, (fact_id){ 0 }, "step_marker", model_str(b->m, marker_at(d, at)));
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
				"process %u was not recorded: its recorder has another version",
				job->row.pid);
		if (job->dropped)
			builder_note_many(d->b, NOTE_DROPPED, OW_NO_OFFSET, job->dropped,
					  "records of process %u were dropped: they came faster "
					  "than the collector reads",
					  job->row.pid);
		if (job->dropped_marks)
			builder_note_many(d->b, NOTE_DROPPED, OW_NO_OFFSET, job->dropped_marks,
					  "dropped records of process %u mark the ends of steps: "
					  "the times of as many steps are uncertain",
					  job->row.pid);
		if (job->sampled)
			builder_note(d->b, NOTE_INFO, OW_NO_OFFSET,
				     "process %u: %" PRIu64
				     " calls came too fast to time each: sampled 1 in %" PRIu64
				     ". Counts and bytes are exact, times are estimates; operators "
				     "among "
				     "them are shown without those that they called",
				     job->row.pid, job->sampled_of, job->sampled_of / job->sampled);
		if (job->texts_lost)
			builder_note_many(
				d->b, NOTE_MISSING, OW_NO_OFFSET, job->texts_lost,
				"names of process %u were lost: the table of names was full",
				job->row.pid);
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
	struct event_draft draft;
	ow_status status;
	struct interpret_input in = { .source = d->b->source,
				      .input = d->ctx->in,
				      .options = d->ctx->options,
				      .draft = &draft,
				      .first_track = m->track.count,
				      .first_flow = m->flow.count,
				      .only_slices = true,
				      .live = true };

	in.step_begin = marker_at(d, at);
	m->source.rank[d->b->source.v] = at->rank;
	m->source.run[d->b->source.v] = at->run_number;
	add_facts(d, at);
	add_notes(d, at);
	for (size_t i = 0; i < d->lane_count; i++)
		if (is_at(&d->jobs[d->lanes[i].job], at) && (d->lanes[i].used || d->lanes[i].first))
			make_track(d, &d->lanes[i]);
	event_draft_init(&draft, d->b);
	status = add_events(d, at, &draft);
	if (status == OW_OK)
		status = add_counters(d, at);
	if (status == OW_OK)
		status = add_schedule(d, at);
	if (status == OW_OK)
		status = live_add_samples(d, at->run, at->rank);
	if (status == OW_OK)
		status = interpret_trace(d->b, &in);
	event_draft_release(&draft);
	return status;
}

static void number_ids(struct live_data *d)
{
	uint64_t base = 0;

	for (size_t i = 0; i < d->job_count; i++) {
		d->jobs[i].id_base = (uint32_t)base;
		base += d->jobs[i].highest_id;
	}
}

/* The first rank of the job, or of all jobs when the process has no job. */
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

/* Assigns the process that starts the ranks of a job, which has no rank, to the first rank, but does not count it
 * there. */
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

/* The next job and rank that has records, in order. */
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

/* Adds a source; ranks after the first are additional sources of the same file. */
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

/* An earlier source that belongs to the same run; 0 when there is none. */
static uint32_t source_of_run(const struct model *m, uint32_t before, str_id run)
{
	for (uint32_t i = 1; run.v && i < m->fact.count; i++)
		if (m->fact.source[i].v < before && !m->fact.parent[i].v &&
		    m->fact.kind[i] == FACT_TEXT && m->fact.text[i].v == run.v &&
		    str_eq(model_str(m, m->fact.key[i]), STR("job")))
			return m->fact.source[i].v;
	return 0;
}

/* The number of the run. Files of one job have the same number. A file without a job name has its own, except for
 * ranks: they belong to the first job. */
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

/* The world size of a place. Processes that only start the ranks do not know it. */
static int32_t world_size_at(const struct live_data *d, const struct place *at)
{
	int32_t size = -1;

	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i].known && is_at(&d->jobs[i], at))
			size = MAX(size, d->jobs[i].world_size);
	return size;
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
		at.world_size = world_size_at(d, &at);
		d->b->source = first;
		if (last)
			status = add_source(d, &at);
		if (status == OW_OK)
			status = add_place(d, &at);
	}
	d->b->source = first;
	return status;
}

/* Makes rows from the slices. */
static ow_status live_rows(struct live_data *d)
{
	if (!d->slice_count && !d->value_count && !d->sample_count)
		return error_set(d->ctx->err, OW_E_EMPTY, "%s: the recording has no records%s",
				 d->ctx->in->name, d->complete ? "" : " yet");
	if (d->slice_count)
		qsort(d->slices, d->slice_count, sizeof(*d->slices), by_place);
	number_ids(d);
	OW_TRY(live_separate_trainings(d));
	give_ranks(d);
	OW_TRY(live_find_waited_for(d));
	OW_TRY(add_places(d));
	if (d->damaged)
		builder_note_many(d->b, NOTE_DAMAGED, d->damaged_at, d->damaged,
				  "damaged records or blocks of records: left out");
	if (!d->complete)
		builder_note(d->b, NOTE_INFO, d->end,
			     "the recording was not closed: it is still running, or its collector "
			     "was stopped; everything written so far is shown");
	return builder_status(d->b);
}

static int sniff(const struct sniff *s)
{
	return opw_starts_with(s->head, OPW_LIVE) ? 100 : 0;
}

static ow_status load(struct import_ctx *ctx)
{
	struct live_data d;
	ow_status status = live_read(&d, ctx);

	if (status == OW_OK)
		status = live_rows(&d);
	if (!d.complete)
		/* the file may still be written to, so a change of its size is not an error */
		ctx->in->regular = false;
	live_release(&d);
	return status;
}

const struct importer import_live = {
	.name = "live",
	.summary = "recording of running programs, made by opwatch record",
	.extensions = "*.opw",
	.role = ROLE_TRACE,
	.sniff = sniff,
	.load = load,
};
