/*
 * live_read.c: reads the segments of a recording of running programs into lists (own_int.h); it is the first half of
 * the importer. Records of a ring may come twice or be damaged; they are counted once or left out. It makes frames and
 * stacks of the model, but no other rows.
 */
#include "import/own/own_int.h"

#include "base/vec.h"

#include "wire/container/crc32c.h"

#define BLOCK_MAX ((uint64_t)1 << 30)
/* limit of numbers of processes and texts: more indicates damage */
#define NUMBER_MAX ((uint32_t)1 << 20)

/* Makes room for `need` items; new ones are zero. */
static bool room(struct live_data *d, void **list, size_t *cap, size_t need, size_t size)
{
	size_t old = *cap;

	if (need <= old)
		return true;
	if (!mem_grow(d->mem, list, cap, need, size))
		return false;
	memset((char *)*list + old * size, 0, (*cap - old) * size);
	return true;
}

#define ROOM(d, owner, list, cap, need)                                                            \
	({                                                                                         \
		void *list_ = (owner)->list;                                                       \
		bool good_ = room(d, &list_, &(owner)->cap, need, sizeof(*(owner)->list));         \
		(owner)->list = list_;                                                             \
		good_;                                                                             \
	})

static void damage(struct live_data *d, uint64_t at)
{
	d->damaged++;
	d->damaged_at = MIN(d->damaged_at, at);
}

/* Finds a process by its number in the recording; NULL when there is none. */
static struct live_job *job_of(struct live_data *d, uint32_t number)
{
	if (!number || number > d->job_count || !d->jobs[number - 1].known)
		return NULL;
	return &d->jobs[number - 1];
}

static ow_status take_process(struct live_data *d, const struct live_process *row, uint64_t at)
{
	struct live_job *job;

	if (!row->number || row->number > NUMBER_MAX) {
		damage(d, at);
		return OW_OK;
	}
	if (!ROOM(d, d, jobs, job_cap, row->number))
		return import_no_memory(d->ctx);
	d->job_count = MAX(d->job_count, (size_t)row->number);
	job = &d->jobs[row->number - 1];
	job->ended = false;
	if (job->known)
		return OW_OK;
	job->known = true;
	job->row = *row;
	job->rank = job->world_size = -1;
	return OW_OK;
}

/* A title from a command line: "python3 train.py", the program and its script, without directories and options. */
static str_id title_of(struct live_data *d, struct str command)
{
	struct str word, shown[2] = { 0 };
	size_t count = 0, slash;
	char text[96];

	while (count < 2 && str_split(&command, '\0', &word)) {
		if (!word.len || (count && word.ptr[0] == '-'))
			continue;
		slash = str_rfind_char(word, '/');
		shown[count++] = slash == STR_NONE ? word : str_skip(word, slash + 1);
		if (count == 1 && !str_starts(shown[0], STR("python")))
			break;
	}
	snprintf(text, sizeof(text), "%.*s%s%.*s", (int)MIN(shown[0].len, (size_t)40), shown[0].ptr,
		 count > 1 ? " " : "", (int)MIN(shown[1].len, (size_t)40),
		 count > 1 ? shown[1].ptr : "");
	return builder_str(d->b, str_first(str_from(text), utf8_valid_prefix(str_from(text))));
}

static str_id command_of(struct live_data *d, struct str command)
{
	char text[RING_TEXT_MAX];

	command = str_first(command, MIN(command.len, sizeof(text)));
	while (command.len && !command.ptr[command.len - 1])
		command.len--;
	for (size_t i = 0; i < command.len; i++)
		text[i] = command.ptr[i] ? command.ptr[i] : ' ';
	return builder_str(d->b, str_first(str_make(text, command.len),
					   utf8_valid_prefix(str_make(text, command.len))));
}

/* The value of the first of these environment variables that is set. */
static struct str identity_value(struct str text, const char *const *names, size_t count)
{
	struct str all, word;

	for (size_t i = 0; i < count; i++)
		for (all = text; str_split(&all, '\0', &word);)
			if (str_starts(word, str_from(names[i])))
				return str_skip(word, strlen(names[i]));
	return (struct str){ 0 };
}

static int32_t identity_number(struct str text, const char *const *names, size_t count)
{
	int64_t number;

	return str_to_i64(identity_value(text, names, count), &number) && number >= 0 &&
			       number < INT32_MAX
		       ? (int32_t)number
		       : -1;
}

/* The name of the job: as the environment gives it, else the address at which its ranks meet. */
static str_id job_name(struct live_data *d, struct str text)
{
	static const char *const names[] = { "OPWATCH_JOB=" }, *const slurm[] = { "SLURM_JOB_ID=" },
				 *const steps[] = { "SLURM_STEP_ID=" },
				 *const hosts[] = { "MASTER_ADDR=" },
				 *const ports[] = { "MASTER_PORT=" };
	struct str name = identity_value(text, names, 1), job = identity_value(text, slurm, 1);
	struct str step = identity_value(text, steps, 1), host = identity_value(text, hosts, 1);
	struct str port = identity_value(text, ports, 1);
	char full[320];

	if (name.len)
		snprintf(full, sizeof(full), "%.*s", STR_ARG(name));
	else if (job.len)
		snprintf(full, sizeof(full), "SLURM %.*s%s%.*s", STR_ARG(job), step.len ? "." : "",
			 STR_ARG(step));
	else if (host.len)
		snprintf(full, sizeof(full), "%.*s%s%.*s", STR_ARG(host), port.len ? ":" : "",
			 STR_ARG(port));
	else
		return (str_id){ 0 };
	return builder_str(d->b, str_first(str_from(full), utf8_valid_prefix(str_from(full))));
}

static void take_identity(struct live_data *d, struct live_job *job, struct str text)
{
	static const char *const ranks[] = { "RANK=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=",
					     "SLURM_PROCID=" };
	static const char *const worlds[] = { "WORLD_SIZE=", "OMPI_COMM_WORLD_SIZE=", "PMI_SIZE=",
					      "SLURM_NTASKS=" };
	static const char *const markers[] = { RING_ENV_MARKER "=" };
	struct str marker;

	job->rank = identity_number(text, ranks, ARRAY_COUNT(ranks));
	job->world_size = identity_number(text, worlds, ARRAY_COUNT(worlds));
	job->run = job_name(d, text);
	marker = identity_value(text, markers, 1);
	if (marker.len)
		job->marker = builder_str(d->b, str_first(marker, utf8_valid_prefix(marker)));
}

static ow_status take_name(struct live_data *d, struct live_job *job, uint32_t number,
			   struct str text)
{
	if (number >= NUMBER_MAX)
		return OW_OK;
	if (!ROOM(d, job, names, name_cap, (size_t)number + 1))
		return import_no_memory(d->ctx);
	job->names[number] = builder_str(d->b, str_first(text, utf8_valid_prefix(text)));
	return builder_status(d->b);
}

static struct live_lane *lane_find(struct live_data *d, uint32_t job, uint32_t kind, uint32_t id)
{
	uint64_t hash = map_hash_u64((uint64_t)job << 32 | id, kind + 1);

	for (struct map_iter it = map_find(&d->lane_map, hash); it.value;
	     it = map_next(&d->lane_map, it)) {
		struct live_lane *lane = &d->lanes[it.value - 1];

		if (lane->job == job && lane->kind == kind && lane->id == id)
			return lane;
	}
	return NULL;
}

/* 1 + index of a lane, which is added if there is none; 0 if memory runs out. */
static uint32_t lane_of(struct live_data *d, uint32_t job, uint32_t kind, uint32_t id)
{
	struct live_lane *lane = lane_find(d, job, kind, id);
	size_t at = d->lane_count;

	if (lane)
		return (uint32_t)(lane - d->lanes) + 1;
	if (!ROOM(d, d, lanes, lane_cap, at + 1) ||
	    !map_add(&d->lane_map, map_hash_u64((uint64_t)job << 32 | id, kind + 1),
		     (uint32_t)at + 1))
		return 0;
	d->lanes[d->lane_count++] = (struct live_lane){ .job = job, .kind = kind, .id = id };
	return (uint32_t)at + 1;
}

static ow_status rename_thread(struct live_data *d, const struct live_job *job, uint32_t tid,
			       struct str text)
{
	uint32_t lane = lane_of(d, (uint32_t)(job - d->jobs), LIVE_LANE_THREAD, tid);

	if (!lane)
		return import_no_memory(d->ctx);
	d->lanes[lane - 1].name = builder_str(d->b, str_first(text, utf8_valid_prefix(text)));
	return builder_status(d->b);
}

#define STACK_NUMBER_MAX ((uint32_t)1 << 23)

/* Makes room for this number; new entries are zero. */
static bool reserve_id(struct live_data *d, struct live_ids *ids, uint32_t number)
{
	size_t old = ids->cap;

	if (number < old)
		return true;
	if (!vec_reserve(d->mem, ids->items, ids->cap, (size_t)number + 1))
		return false;
	memset(ids->items + old, 0, (ids->cap - old) * sizeof(*ids->items));
	return true;
}

static uint32_t id_of(const struct live_ids *ids, uint32_t number)
{
	return number < ids->cap ? ids->items[number] : 0;
}

static ow_status put_id(struct live_data *d, struct live_ids *ids, uint32_t number, uint32_t id)
{
	if (!reserve_id(d, ids, number))
		return import_no_memory(d->ctx);
	ids->items[number] = id;
	return builder_status(d->b);
}

static ow_status take_source(struct live_data *d, uint32_t number, struct str text)
{
	if (!number || number >= STACK_NUMBER_MAX)
		return OW_OK;
	text = str_first(text, utf8_valid_prefix(text));
	return put_id(d, &d->sources, number, builder_str(d->b, text).v);
}

static ow_status take_frame(struct live_data *d, const struct live_frame *row, uint64_t at)
{
	frame_id frame;

	if (!row->number || row->number >= STACK_NUMBER_MAX || !id_of(&d->sources, row->function)) {
		damage(d, at);
		return OW_OK;
	}
	frame = builder_frame(
		d->b, &(struct frame_row){ .function = { id_of(&d->sources, row->function) },
					   .file = { id_of(&d->sources, row->file) },
					   .line = row->line,
					   .function_line = row->function_line });
	return put_id(d, &d->frames, row->number, frame.v);
}

static ow_status take_stack(struct live_data *d, const struct live_stack *row, uint64_t at)
{
	uint32_t frame = id_of(&d->frames, row->frame), parent = id_of(&d->stacks, row->parent);
	stack_id stack;

	if (!row->number || row->number >= STACK_NUMBER_MAX || !frame || (row->parent && !parent)) {
		damage(d, at);
		return OW_OK;
	}
	stack = builder_stack(d->b, (stack_id){ parent }, (frame_id){ frame });
	return put_id(d, &d->stacks, row->number, stack.v);
}

static ow_status take_sample(struct live_data *d, const struct live_sample *row, uint64_t at)
{
	uint32_t stack = id_of(&d->stacks, row->stack), lane;

	if (!row->process || row->process > d->job_count || !d->jobs[row->process - 1].known ||
	    !stack || row->ts_ns < 0 || row->wall_ns < 0 || row->cpu_ns < 0) {
		damage(d, at);
		return OW_OK;
	}
	lane = lane_of(d, row->process - 1, LIVE_LANE_THREAD, row->tid);
	if (!lane || !vec_reserve(d->mem, d->samples, d->sample_cap, d->sample_count + 1))
		return import_no_memory(d->ctx);
	d->lanes[lane - 1].used = true;
	d->samples[d->sample_count] = (struct live_sampled){ .row = *row, .lane = lane - 1 };
	d->samples[d->sample_count++].row.stack = stack;
	return OW_OK;
}

static ow_status take_text(struct live_data *d, const struct live_text *head, struct str text)
{
	struct live_job *job = job_of(d, head->process);

	if (!head->process && head->kind == LIVE_SOURCE)
		return take_source(d, head->number, text);
	if (!head->process && head->kind == LIVE_NOTE)
		builder_note(d->b, NOTE_INFO, OW_NO_OFFSET, "%.*s", (int)utf8_valid_prefix(text),
			     text.ptr);
	if (!job)
		return builder_status(d->b);
	switch ((enum live_text_kind)head->kind) {
	case LIVE_NAME:
		return take_name(d, job, head->number, text);
	case LIVE_COMMAND:
		job->title = title_of(d, text);
		job->command = command_of(d, text);
		return builder_status(d->b);
	case LIVE_IDENTITY:
		take_identity(d, job, text);
		return builder_status(d->b);
	case LIVE_ARMED:
		if (head->number < RING_HOOKS)
			job->armed[head->number] =
				builder_str(d->b, str_first(text, utf8_valid_prefix(text)));
		return builder_status(d->b);
	case LIVE_UNKNOWN:
	case LIVE_NOTE:
		builder_note(d->b, NOTE_MISSING, OW_NO_OFFSET, "process %u: %.*s", job->row.pid,
			     (int)utf8_valid_prefix(text), text.ptr);
		return builder_status(d->b);
	case LIVE_THREAD:
		return rename_thread(d, job, head->number, text);
	default:
		return OW_OK;
	}
}

static ow_status take_texts(struct live_data *d, struct str block, uint64_t at)
{
	while (block.len >= sizeof(struct live_text)) {
		struct live_text head;
		uint64_t size;

		memcpy(&head, block.ptr, sizeof(head));
		size = live_text_bytes(head.len);
		if (size > block.len) {
			damage(d, at);
			break;
		}
		OW_TRY(take_text(d, &head, str_make(block.ptr + sizeof(head), head.len)));
		block = str_skip(block, (size_t)size);
	}
	return OW_OK;
}

static str_id name_of(const struct live_job *job, uint64_t number)
{
	return number < job->name_cap ? job->names[number] : (str_id){ 0 };
}

static struct live_ring *ring_of(struct live_data *d, uint32_t job, uint32_t ring)
{
	uint64_t hash = map_hash_u64((uint64_t)job << 32 | ring, 1);
	size_t at = d->ring_count;

	for (struct map_iter it = map_find(&d->ring_map, hash); it.value;
	     it = map_next(&d->ring_map, it)) {
		struct live_ring *r = &d->rings[it.value - 1];

		if (r->job == job && r->ring == ring)
			return r;
	}
	if (!ROOM(d, d, rings, ring_cap, at + 1) || !map_add(&d->ring_map, hash, (uint32_t)at + 1))
		return NULL;
	d->rings[d->ring_count++] = (struct live_ring){ .job = job, .ring = ring };
	return &d->rings[at];
}

static int64_t to_wall(const struct live_data *d, uint64_t monotonic_ns)
{
	int64_t offset, wall;

	if (__builtin_sub_overflow(d->session.wall_ns, d->session.monotonic_ns, &offset) ||
	    monotonic_ns > INT64_MAX ||
	    __builtin_add_overflow((int64_t)monotonic_ns, offset, &wall))
		return 0;
	return wall;
}

static ow_status take_thread(struct live_data *d, struct live_ring *ring,
			     const struct ring_record *r)
{
	uint32_t lane = lane_of(d, ring->job, LIVE_LANE_THREAD, (uint32_t)r->id);
	str_id name = name_of(&d->jobs[ring->job], r->name);

	if (!lane)
		return import_no_memory(d->ctx);
	ring->lane = lane;
	if (name.v && !d->lanes[lane - 1].name.v)
		d->lanes[lane - 1].name = name;
	d->lanes[lane - 1].first |= r->bytes == 1;
	return OW_OK;
}

static ow_status take_queue(struct live_data *d, const struct live_ring *ring,
			    const struct ring_record *r)
{
	uint32_t lane = lane_of(d, ring->job, LIVE_LANE_DEVICE, r->stream);

	if (!lane)
		return import_no_memory(d->ctx);
	d->lanes[lane - 1].name = name_of(&d->jobs[ring->job], r->name);
	d->lanes[lane - 1].device = name_of(&d->jobs[ring->job], r->id);
	return OW_OK;
}

static uint32_t name_flags(struct str name)
{
	if (str_starts(name, STR("enumerate(DataLoader)")))
		return LIVE_NAME_LOADER;
	if (str_starts(name, STR("gloo:")) || str_starts(name, STR("nccl:")) ||
	    str_starts(name, STR("mpi:")) || str_starts(name, STR("ucc:")))
		return LIVE_NAME_COLLECTIVE;
	return str_starts(name, STR("Optimizer.step#")) ? LIVE_NAME_OPTIMIZER : 0;
}

static void note_range(struct live_data *d, struct live_job *job, const struct live_slice *slice)
{
	uint32_t flags = name_flags(model_str(d->b->m, (str_id){ slice->name }));

	job->seen |= flags;
	d->lanes[slice->lane].steps |= flags & (LIVE_NAME_OPTIMIZER | LIVE_NAME_LOADER);
	job->first_ns = job->first_ns ? MIN(job->first_ns, slice->ts_ns) : slice->ts_ns;
	job->last_ns = MAX(job->last_ns, slice->ts_ns);
}

/* Handles the begin of a step that the user has named. */
static void note_step(struct live_data *d, struct live_job *job, const struct live_slice *slice)
{
	job->seen |= LIVE_NAME_OPTIMIZER;
	d->lanes[slice->lane].steps = true;
	job->first_ns = job->first_ns ? MIN(job->first_ns, slice->ts_ns) : slice->ts_ns;
	job->last_ns = MAX(job->last_ns, slice->ts_ns);
}

/* Adds the last calls of a process that were only counted, with the duration of the last one that was timed. */
static void take_unrecorded(struct live_data *d, const struct live_job *job,
			    const struct live_count *count)
{
	str_id name = name_of(job, (uint32_t)count->ns);

	live_sampled_finish(d);
	for (size_t i = d->slice_count; name.v && i-- > 0;) {
		struct live_slice *slice = &d->slices[i];
		int64_t runs = slice->calls ? slice->calls : 1, more;

		if (slice->name != name.v || &d->jobs[d->lanes[slice->lane].job] != job)
			continue;
		more = slice->dur_ns / runs * (int64_t)count->calls;
		slice->calls = (uint32_t)MIN((uint64_t)runs + count->calls, (uint64_t)UINT32_MAX);
		slice->bytes += (int64_t)MIN(count->bytes, (uint64_t)INT64_MAX / 4);
		slice->dur_ns += MIN(more, INT64_MAX / 4);
		return;
	}
}

static ow_status take_slice(struct live_data *d, struct live_ring *ring,
			    const struct ring_record *r)
{
	struct live_job *job = &d->jobs[ring->job];
	str_id name = name_of(job, r->name);
	uint32_t lane = ring->lane;

	if (r->category == RING_STEP && !name.v)
		name = job->marker;
	if (r->kind == RING_SPAN)
		lane = lane_of(d, ring->job, LIVE_LANE_SPANS, 0);
	else if (r->kind == RING_DEVICE)
		lane = lane_of(d, ring->job, LIVE_LANE_DEVICE, r->stream);
	else if (r->kind == RING_SLICE_OF)
		lane = lane_of(d, ring->job, LIVE_LANE_THREAD, r->stream);
	else if (!lane)
		lane = lane_of(d, ring->job, LIVE_LANE_THREAD, 0);
	if (!lane || !ROOM(d, d, slices, slice_cap, d->slice_count + 1))
		return import_no_memory(d->ctx);
	d->lanes[lane - 1].used = true;
	if (r->id <= UINT32_MAX)
		job->highest_id = MAX(job->highest_id, r->id);
	d->slices[d->slice_count++] =
		(struct live_slice){ .ts_ns = to_wall(d, r->start_ns),
				     .dur_ns = (int64_t)MIN(r->dur_ns, (uint64_t)INT64_MAX / 4),
				     .bytes = (int64_t)MIN(r->bytes, (uint64_t)INT64_MAX),
				     .lane = lane - 1,
				     .name = name.v,
				     .id = r->id <= UINT32_MAX ? (uint32_t)r->id : 0,
				     .calls = r->calls,
				     .category = r->category };
	if (r->calls > 1) {
		live_sampled_add(d, &d->lanes[lane - 1], d->slice_count - 1);
	} else {
		const struct live_slice *s = &d->slices[d->slice_count - 1];

		live_sampled_before(d, &d->lanes[lane - 1], s->ts_ns);
		d->lanes[lane - 1].end_ns = MAX(d->lanes[lane - 1].end_ns, s->ts_ns + s->dur_ns);
	}
	if (r->category == RING_RANGE)
		note_range(d, job, &d->slices[d->slice_count - 1]);
	else if (r->category == RING_STEP || (name.v && name.v == job->marker.v))
		note_step(d, job, &d->slices[d->slice_count - 1]);
	else if (r->category == RING_COLLECTIVE)
		job->seen |= LIVE_NAME_COLLECTIVE;
	return OW_OK;
}

static ow_status take_record(struct live_data *d, struct live_ring *ring,
			     const struct ring_record *r)
{
	switch ((enum ring_kind)r->kind) {
	case RING_THREAD:
		return take_thread(d, ring, r);
	case RING_QUEUE:
		return take_queue(d, ring, r);
	case RING_SLICE:
	case RING_SPAN:
	case RING_DEVICE:
	case RING_SLICE_OF:
		return take_slice(d, ring, r);
	default:
		return OW_OK; /* a kind of record of a later version */
	}
}

/* Reads the state of rings and queues in a file that begins in the middle of a recording. */
static ow_status take_place(struct live_data *d, const struct live_place *place)
{
	struct live_job *job = job_of(d, place->process);
	struct ring_record record = { .id = place->id, .bytes = place->first };
	struct live_ring *ring;

	if (!job)
		return OW_OK;
	if (!place->ring) {
		struct live_ring any = { .job = place->process - 1 };

		record = (struct ring_record){ .stream = place->id,
					       .name = place->name,
					       .id = place->device };
		return take_queue(d, &any, &record);
	}
	ring = ring_of(d, place->process - 1, place->ring);
	return ring ? take_thread(d, ring, &record) : import_no_memory(d->ctx);
}

/* Reads a block of records; records that a collector wrote once more after its restart are skipped. */
static ow_status take_run(struct live_data *d, const struct live_run *run, const char *records,
			  uint64_t at)
{
	struct live_job *job = job_of(d, run->process);
	struct live_ring *ring = job ? ring_of(d, run->process - 1, run->ring) : NULL;

	if (!job) {
		damage(d, at);
		return OW_OK;
	}
	if (!ring)
		return import_no_memory(d->ctx);
	ring->dropped = MAX(ring->dropped, run->dropped);
	ring->dropped_marks = MAX(ring->dropped_marks, run->dropped_marks);
	for (uint32_t i = 0; i < run->count; i++) {
		struct ring_record record;

		if (run->first + i < ring->next)
			continue;
		memcpy(&record, records + (size_t)i * sizeof(record), sizeof(record));
		if (record.sequence != (uint32_t)(run->first + i))
			damage(d, at);
		else
			OW_TRY(take_record(d, ring, &record));
		ring = ring_of(d, run->process - 1, run->ring);
		if (!ring)
			return import_no_memory(d->ctx);
	}
	ring->next = MAX(ring->next, run->first + run->count);
	return OW_OK;
}

/* Reads the system's counts. They follow each other, after the recorder's own counts of the same moment. */
static void take_system_count(struct live_job *job, const struct live_count *count)
{
	if (count->counter == LIVE_IO_URING)
		job->uses_uring = true;
	if (count->counter == LIVE_IO_READ)
		job->last.system = count->bytes;
	if (count->counter != LIVE_IO_STORAGE)
		return;
	job->last.storage = count->bytes;
	job->last.seen = job->counted[RING_READS];
	job->last.seen_files = job->counted[RING_FILE_READS];
	if (!job->asked)
		job->first = job->last;
	job->asked = true;
}

static ow_status take_count(struct live_data *d, const struct live_count *count)
{
	struct live_job *job = job_of(d, count->process);

	if (!job)
		return OW_OK;
	if (count->counter == LIVE_UNRECORDED) {
		take_unrecorded(d, job, count);
		return OW_OK;
	}
	if (count->counter == LIVE_SCHEDULED) {
		if (!ROOM(d, d, schedules, schedule_cap, d->schedule_count + 1))
			return import_no_memory(d->ctx);
		d->schedules[d->schedule_count++] =
			(struct live_schedule){ (uint32_t)(job - d->jobs), (uint32_t)count->calls,
						count->ts_ns, count->ns, count->bytes };
		return OW_OK;
	}
	if (count->counter >= RING_COUNTERS) {
		take_system_count(job, count);
		return OW_OK;
	}
	job->counted[count->counter] = count->bytes;
	if (!ROOM(d, d, values, value_cap, d->value_count + 1))
		return import_no_memory(d->ctx);
	d->values[d->value_count++] = (struct live_value){ *count, (uint32_t)(job - d->jobs) };
	return OW_OK;
}

static void take_end(struct live_data *d, const struct live_end *end)
{
	struct live_job *job = job_of(d, end->process);

	if (!job)
		return;
	/* These counts start with the process, and continue after it lost its connection and connected again. */
	job->ended = true;
	job->texts_lost = MAX(job->texts_lost, end->texts_lost);
	job->rings_lost = MAX(job->rings_lost, end->rings_lost);
}

/* Appends the bytes of a block to the buffer; nothing when the block is missing or damaged. */
static ow_status read_block(struct live_data *d, const struct opw_segment *s, enum live_block id,
			    size_t *start, size_t *len)
{
	const struct opw_block *block = opw_find_block(s, live_block_info[id].name);
	char *to;

	*start = d->block.len;
	*len = 0;
	if (!block || !block->size)
		return OW_OK;
	if (block->size > BLOCK_MAX) {
		damage(d, s->offset);
		return OW_OK;
	}
	if (!buf_reserve(&d->block, (size_t)block->size))
		return import_no_memory(d->ctx);
	to = d->block.ptr + d->block.len;
	OW_TRY(input_read_at(d->ctx->in, s->offset + block->offset, to, (size_t)block->size,
			     d->ctx->err));
	if (!opw_same_crc(crc32c(to, (size_t)block->size), block->crc)) {
		damage(d, s->offset + block->offset);
		return OW_OK;
	}
	*len = (size_t)block->size;
	d->block.len += *len;
	return OW_OK;
}

static ow_status read_runs(struct live_data *d, const struct opw_segment *s)
{
	size_t runs, runs_len, records, records_len, at = 0;

	OW_TRY(read_block(d, s, LIVE_BLOCK_RUN, &runs, &runs_len));
	OW_TRY(read_block(d, s, LIVE_BLOCK_RECORD, &records, &records_len));
	for (size_t i = 0; i + sizeof(struct live_run) <= runs_len; i += sizeof(struct live_run)) {
		struct live_run run;

		memcpy(&run, d->block.ptr + runs + i, sizeof(run));
		if (run.count > (records_len - at) / sizeof(struct ring_record)) {
			damage(d, s->offset);
			break;
		}
		OW_TRY(take_run(d, &run, d->block.ptr + records + at, s->offset));
		at += run.count * sizeof(struct ring_record);
	}
	return builder_status(d->b);
}

#define EACH(d, s, id, type, take)                                                                 \
	do {                                                                                       \
		size_t start_, len_;                                                               \
		OW_TRY(read_block(d, s, LIVE_BLOCK_##id, &start_, &len_));                         \
		for (size_t i_ = 0; i_ + sizeof(type) <= len_; i_ += sizeof(type)) {               \
			type row;                                                                  \
			memcpy(&row, (d)->block.ptr + start_ + i_, sizeof(row));                   \
			take;                                                                      \
		}                                                                                  \
	} while (0)

static ow_status read_segment(struct live_data *d, const struct opw_segment *s)
{
	size_t start, len;

	buf_clear(&d->block);
	EACH(d, s, SESSION, struct live_session, d->session = row);
	EACH(d, s, PROCESS, struct live_process, OW_TRY(take_process(d, &row, s->offset)));
	OW_TRY(read_block(d, s, LIVE_BLOCK_TEXT, &start, &len));
	OW_TRY(take_texts(d, str_make(d->block.ptr + start, len), s->offset));
	EACH(d, s, PLACE, struct live_place, OW_TRY(take_place(d, &row)));
	OW_TRY(read_runs(d, s));
	EACH(d, s, COUNT, struct live_count, OW_TRY(take_count(d, &row)));
	EACH(d, s, FRAME, struct live_frame, OW_TRY(take_frame(d, &row, s->offset)));
	EACH(d, s, STACK, struct live_stack, OW_TRY(take_stack(d, &row, s->offset)));
	EACH(d, s, SAMPLE, struct live_sample, OW_TRY(take_sample(d, &row, s->offset)));
	EACH(d, s, END, struct live_end, take_end(d, &row));
	return builder_status(d->b);
}

ow_status live_read(struct live_data *d, struct import_ctx *ctx)
{
	struct opw_file file;
	struct arena arena;
	ow_status status;

	*d = (struct live_data){
		.ctx = ctx, .b = ctx->b, .mem = ctx->b->m->mem, .damaged_at = OW_NO_OFFSET
	};
	buf_init(&d->block, d->mem);
	map_init(&d->lane_map, d->mem);
	map_init(&d->ring_map, d->mem);
	arena_init(&arena, d->mem);
	status = opw_read(&file, ctx->in, &arena, ctx->err);
	for (size_t i = 0; status == OW_OK && i < file.count; i++)
		if (file.segments[i].head.kind == OPW_LIVE)
			status = read_segment(d, &file.segments[i]);
	live_sampled_finish(d);
	d->complete = status == OW_OK && file.complete;
	d->end = status == OW_OK ? file.end : 0;
	arena_release(&arena);
	for (size_t i = 0; i < d->ring_count; i++) {
		d->jobs[d->rings[i].job].dropped += d->rings[i].dropped;
		d->jobs[d->rings[i].job].dropped_marks += d->rings[i].dropped_marks;
	}
	return status;
}

void live_release(struct live_data *d)
{
	struct live_ids *ids[] = { &d->sources, &d->frames, &d->stacks };

	for (size_t i = 0; i < d->job_count; i++)
		mem_free(d->mem, d->jobs[i].names, d->jobs[i].name_cap * sizeof(*d->jobs[i].names));
	mem_free(d->mem, d->jobs, d->job_cap * sizeof(*d->jobs));
	mem_free(d->mem, d->lanes, d->lane_cap * sizeof(*d->lanes));
	mem_free(d->mem, d->slices, d->slice_cap * sizeof(*d->slices));
	mem_free(d->mem, d->values, d->value_cap * sizeof(*d->values));
	mem_free(d->mem, d->schedules, d->schedule_cap * sizeof(*d->schedules));
	mem_free(d->mem, d->rings, d->ring_cap * sizeof(*d->rings));
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
		mem_free(d->mem, ids[i]->items, ids[i]->cap * sizeof(*ids[i]->items));
	mem_free(d->mem, d->samples, d->sample_cap * sizeof(*d->samples));
	map_release(&d->lane_map);
	map_release(&d->ring_map);
	buf_release(&d->block);
}
