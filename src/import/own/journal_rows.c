/*
 * journal_rows.c: converts recordings of the recorder API (wire/own/journal.h) to rows. Records become slices of the
 * threads that wrote them, counters and steps; import/interpret decides what they mean. Called by import_opw.c. A
 * record with a wrong checksum is left out and counted.
 */
#include "import/own/own_int.h"

#include "import/interpret/interpret.h"
#include "wire/container/crc32c.h"
#include "wire/own/journal.h"

#define READ_RECORDS 2048
#define STEP_NAME "step" /* name of the slice that encloses a step */

struct journal_slice {
	int64_t ts_ns, dur_ns;
	uint32_t thread, name; /* name: index of a string */
	bool unfinished;
};

struct journal_value {
	int64_t ts_ns;
	double value;
	uint32_t thread, name;
};

struct reading {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct journal_slice *slices;
	size_t slice_count, slice_cap;
	struct recorded_step *steps;
	size_t step_count, step_cap;
	struct journal_value *values;
	size_t value_count, value_cap;
	str_id *names; /* indexed by the record's number */
	size_t name_cap;
	track_id *tracks; /* indexed by the number of the thread */
	size_t track_cap;
	struct track_row *rows;
	size_t row_cap;
	uint32_t thread_count;
	/* The current step. */
	bool in_step;
	struct recorded_step step;
	uint32_t step_thread;
	int64_t last_ns;
	uint64_t damaged, damaged_at;
	/* bad records since the last good one: count, and offset of the first */
	uint64_t torn, torn_at;
};

/* Makes room for `need` items; new ones are zero. */
static bool room(struct reading *r, void **list, size_t *cap, size_t need, size_t size)
{
	size_t old = *cap;

	if (need <= old)
		return true;
	if (!mem_grow(r->mem, list, cap, need, size))
		return false;
	memset((char *)*list + old * size, 0, (*cap - old) * size);
	return true;
}

#define ROOM(r, list, cap, need)                                                                   \
	({                                                                                         \
		void *list_ = (r)->list;                                                           \
		bool good_ = room(r, &list_, &(r)->cap, need, sizeof(*(r)->list));                 \
		(r)->list = list_;                                                                 \
		good_;                                                                             \
	})

#define NUMBERS_MAX ((uint32_t)1 << 24) /* limit of names: more indicates damage */
#define THREADS_MAX ((uint32_t)1 << 18) /* limit of threads; each gets a track */

static str_id name_of(const struct reading *r, uint32_t number)
{
	return number < r->name_cap ? r->names[number] : (str_id){ 0 };
}

static ow_status add_slice(struct reading *r, const struct journal_slice *slice)
{
	if (!ROOM(r, slices, slice_cap, r->slice_count + 1))
		return import_no_memory(r->ctx);
	r->slices[r->slice_count++] = *slice;
	return OW_OK;
}

static ow_status end_step(struct reading *r, int64_t end_ns, bool unfinished)
{
	struct recorded_step *step = &r->step;
	int64_t dur_ns;

	if (!r->in_step)
		return OW_OK;
	r->in_step = false;
	step->end_ns = MAX(end_ns, step->start_ns);
	if (__builtin_sub_overflow(step->end_ns, step->start_ns, &dur_ns))
		dur_ns = INT64_MAX; /* the times were not measured */
	if (!ROOM(r, steps, step_cap, r->step_count + 1))
		return import_no_memory(r->ctx);
	r->steps[r->step_count++] = *step;
	return add_slice(r, &(struct journal_slice){ .ts_ns = step->start_ns,
						     .dur_ns = dur_ns,
						     .thread = r->step_thread,
						     .name = builder_cstr(r->b, STEP_NAME).v,
						     .unfinished = unfinished });
}

static ow_status take_thread(struct reading *r, const struct journal_record *record)
{
	if (record->thread >= THREADS_MAX)
		return OW_OK;
	if (!ROOM(r, rows, row_cap, (size_t)record->thread + 1))
		return import_no_memory(r->ctx);
	r->rows[record->thread].tid = record->value;
	if (name_of(r, record->name).v)
		r->rows[record->thread].name = name_of(r, record->name);
	r->thread_count = MAX(r->thread_count, record->thread + 1);
	return OW_OK;
}

static ow_status take_step(struct reading *r, const struct journal_record *record)
{
	OW_TRY(end_step(r, record->ts_ns, false));
	r->in_step = true;
	r->step = (struct recorded_step){ .start_ns = record->ts_ns, .number = record->value };
	r->step_thread = record->thread;
	return OW_OK;
}

static ow_status take_value(struct reading *r, const struct journal_record *record)
{
	struct journal_value value = { .ts_ns = record->ts_ns,
				       .thread = record->thread,
				       .name = name_of(r, record->name).v };

	memcpy(&value.value, &record->value, sizeof(value.value));
	if (!ROOM(r, values, value_cap, r->value_count + 1))
		return import_no_memory(r->ctx);
	r->values[r->value_count++] = value;
	return OW_OK;
}

static ow_status take(struct reading *r, const struct journal_record *record)
{
	int64_t start;

	r->last_ns = MAX(r->last_ns, record->ts_ns);
	switch ((enum journal_kind)record->kind) {
	case JOURNAL_THREAD:
		return take_thread(r, record);
	case JOURNAL_STEP:
		return take_step(r, record);
	case JOURNAL_END:
		if (record->value == 1)
			r->in_step = false;
		return end_step(r, record->ts_ns, false);
	case JOURNAL_SLICE:
		if (record->value < 0 ||
		    __builtin_sub_overflow(record->ts_ns, record->value, &start))
			return OW_OK;
		return add_slice(r, &(struct journal_slice){ .ts_ns = start,
							     .dur_ns = record->value,
							     .thread = record->thread,
							     .name = name_of(r, record->name).v });
	case JOURNAL_VALUE:
		return take_value(r, record);
	default:
		return OW_OK; /* a kind of record of a later version */
	}
}

static ow_status take_name(struct reading *r, const struct journal_record *record, struct str text)
{
	if (record->name >= NUMBERS_MAX)
		return OW_OK;
	if (!ROOM(r, names, name_cap, (size_t)record->name + 1))
		return import_no_memory(r->ctx);
	r->names[record->name] = builder_str(r->b, text);
	return builder_status(r->b);
}

static bool is_blank(const struct journal_record *record)
{
	static const struct journal_record blank;

	return memcmp(record, &blank, sizeof(blank)) == 0;
}

static uint32_t check_of(const struct journal_record *record)
{
	return crc32c(record, offsetof(struct journal_record, check));
}

/* Handles a record with a wrong checksum: it is damaged if a good one follows, else perhaps half written. */
static void found_bad(struct reading *r, uint64_t at)
{
	r->torn++;
	r->torn_at = MIN(r->torn_at, at);
}

static void found_good(struct reading *r)
{
	r->damaged += r->torn;
	r->damaged_at = MIN(r->damaged_at, r->torn_at);
	r->torn = 0;
	r->torn_at = OW_NO_OFFSET;
}

/* Reads a name record and its text; *slots is the distance to the next record. */
static ow_status read_name(struct reading *r, const struct journal_record *record, uint64_t at,
			   uint64_t left, uint64_t *slots)
{
	char text[JOURNAL_TEXT_MAX];
	uint64_t len = (uint64_t)record->value;

	*slots = 1;
	if (len > sizeof(text) || journal_text_slots(len) + 1 > left) {
		found_bad(r, at);
		return OW_OK;
	}
	OW_TRY(input_read_at(r->ctx->in, at + sizeof(*record), text, (size_t)len, r->ctx->err));
	if (!opw_same_crc(crc32c_extend(check_of(record), text, (size_t)len), record->check) ||
	    !utf8_valid(str_make(text, (size_t)len))) {
		found_bad(r, at); /* the text may be damaged: continue with the next slot */
		return OW_OK;
	}
	found_good(r);
	*slots = journal_text_slots(len) + 1;
	return take_name(r, record, str_make(text, (size_t)len));
}

/* Reads slot by slot, up to the first that was not written. */
static ow_status read_records(struct reading *r, uint64_t at, uint64_t count)
{
	struct journal_record records[64];
	uint64_t i = 0, slots;

	while (i < count) {
		uint64_t n = MIN(count - i, (uint64_t)ARRAY_COUNT(records));

		OW_TRY(input_read_at(r->ctx->in, at + i * sizeof(*records), records,
				     (size_t)n * sizeof(*records), r->ctx->err));
		for (uint64_t k = 0; k < n; k += slots) {
			uint64_t place = at + (i + k) * sizeof(*records);

			slots = 1;
			if (is_blank(&records[k]))
				return OW_OK;
			if (records[k].kind == JOURNAL_NAME) {
				OW_TRY(read_name(r, &records[k], place, count - i - k, &slots));
				if (k + slots >= n) { /* the next record is not in the buffer */
					i += k + slots - n;
					break;
				}
			} else if (opw_same_crc(check_of(&records[k]), records[k].check)) {
				found_good(r);
				OW_TRY(take(r, &records[k]));
			} else {
				found_bad(r, place);
			}
		}
		i += n;
	}
	return OW_OK;
}

static ow_status make_tracks(struct reading *r)
{
	uint32_t count = MAX(r->thread_count, 1u);

	if (!ROOM(r, tracks, track_cap, count) || !ROOM(r, rows, row_cap, count))
		return import_no_memory(r->ctx);
	for (uint32_t i = 0; i < count; i++) {
		struct track_row row = r->rows[i];

		row.process = builder_cstr(r->b, "recorded");
		row.kind = TRACK_HOST;
		row.flags = TRACK_SLICES;
		row.source = r->b->source;
		if (!row.name.v)
			row.name = builder_cstr(r->b, i == 1 ? "main thread" : "thread");
		if (i || count == 1) /* number 0 does not belong to a thread */
			r->tracks[i] = builder_track(r->b, &row);
	}
	r->tracks[0] = r->tracks[count > 1 ? 1 : 0];
	return builder_status(r->b);
}

static track_id track_of(const struct reading *r, uint32_t thread)
{
	return thread < r->thread_count ? r->tracks[thread] : r->tracks[0];
}

/* Sorts by thread, then time; an enclosing slice comes first. */
static int by_place(const void *a, const void *b)
{
	const struct journal_slice *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->ts_ns != y->ts_ns)
		return x->ts_ns < y->ts_ns ? -1 : 1;
	return (x->dur_ns < y->dur_ns) - (x->dur_ns > y->dur_ns);
}

static ow_status make_events(struct reading *r, struct event_draft *draft)
{
	for (size_t i = 0; i < r->slice_count; i++)
		r->slices[i].thread = track_of(r, r->slices[i].thread).v;
	if (r->slice_count)
		qsort(r->slices, r->slice_count, sizeof(*r->slices), by_place);
	for (size_t i = 0; i < r->slice_count; i++) {
		const struct journal_slice *s = &r->slices[i];

		event_draft_add(
			draft, r->b,
			&(struct event_row){ .ts_ns = s->ts_ns,
					     .dur_ns = s->dur_ns,
					     .track = { s->thread },
					     .flags = s->unfinished ? EVENT_UNFINISHED : 0 },
			(str_id){ s->name });
	}
	for (size_t i = 0; i < r->value_count; i++) {
		const struct journal_value *v = &r->values[i];

		builder_add_counter(r->b, &(struct counter_row){ .track = track_of(r, v->thread),
								 .name = { v->name },
								 .series = { v->name },
								 .ts_ns = v->ts_ns,
								 .value = v->value });
	}
	return builder_status(r->b);
}

static ow_status make_rows(struct reading *r)
{
	struct model *m = r->b->m;
	struct event_draft draft;
	ow_status status;
	struct interpret_input in = { .source = r->b->source,
				      .input = r->ctx->in,
				      .options = r->ctx->options,
				      .draft = &draft,
				      .first_track = m->track.count,
				      .first_flow = m->flow.count,
				      .only_slices = true,
				      .recorded = true,
				      .steps = r->steps,
				      .step_count = r->step_count };

	OW_TRY(make_tracks(r));
	event_draft_init(&draft, r->b);
	status = make_events(r, &draft);
	in.steps = r->steps;
	if (status == OW_OK)
		status = interpret_trace(r->b, &in);
	event_draft_release(&draft);
	return status;
}

/* Only the last record can be half written, by a process that was killed or still writes; if it is a name record,
 * its text follows it. */
#define TORN_MAX (1 + JOURNAL_TEXT_MAX / sizeof(struct journal_record))

static void add_notes(struct reading *r, const struct opw_file *file)
{
	if (file->complete || r->torn > TORN_MAX)
		found_good(r);
	if (r->damaged)
		builder_note_many(r->b, NOTE_DAMAGED, r->damaged_at, r->damaged,
				  "records with a wrong checksum: left out");
	if (!file->complete)
		builder_note(r->b, NOTE_INFO, file->end,
			     "the recording was not closed: it is still running, or its process "
			     "was stopped; everything recorded so far is shown");
}

static ow_status read_file(struct reading *r, struct opw_file *file, struct arena *arena)
{
	OW_TRY(opw_read(file, r->ctx->in, arena, r->ctx->err));
	for (size_t i = 0; i < file->count; i++) {
		const struct opw_segment *segment = &file->segments[i];
		const struct opw_block *block = segment->blocks;

		if (segment->head.kind == OPW_JOURNAL && segment->head.block_count)
			OW_TRY(read_records(r, segment->offset + block->offset,
					    block->size / sizeof(struct journal_record)));
	}
	if (r->in_step)
		OW_TRY(end_step(r, r->last_ns, true));
	if (!r->slice_count && !r->value_count)
		return error_set(r->ctx->err, OW_E_EMPTY,
				 "%s: the recording has no slices or counters yet",
				 r->ctx->in->name);
	OW_TRY(make_rows(r));
	add_notes(r, file);
	return builder_status(r->b);
}

ow_status journal_load(struct import_ctx *ctx)
{
	struct reading r = { .ctx = ctx,
			     .b = ctx->b,
			     .mem = ctx->b->m->mem,
			     .last_ns = INT64_MIN,
			     .damaged_at = OW_NO_OFFSET,
			     .torn_at = OW_NO_OFFSET };
	struct opw_file file;
	struct arena arena;
	ow_status status;

	arena_init(&arena, r.mem);
	status = read_file(&r, &file, &arena);
	mem_free(r.mem, r.slices, r.slice_cap * sizeof(*r.slices));
	mem_free(r.mem, r.steps, r.step_cap * sizeof(*r.steps));
	mem_free(r.mem, r.values, r.value_cap * sizeof(*r.values));
	mem_free(r.mem, r.names, r.name_cap * sizeof(*r.names));
	mem_free(r.mem, r.tracks, r.track_cap * sizeof(*r.tracks));
	mem_free(r.mem, r.rows, r.row_cap * sizeof(*r.rows));
	arena_release(&arena);
	return status;
}
