/*
 * tf_account.c: see tf_account.h. The rules are those of the original profiler, surprises included:
 * the first executor that reports an op owns it, records of other executors count for nothing, and
 * only records with a start time count.
 *
 * Counted events lie on tracks of the kinds TRACK_DEVICE and TRACK_ACCELERATOR, in the order in which
 * they were counted; all other events of the same device on a track of another kind. The tracks are made here, the
 * events when somebody asks for them (tf_rows.h).
 */
#include "import/tf_account.h"

#include "import/tf_device.h"
#include "import/tf_rows.h"
#include "import/tf_tally.h"

#define AHEAD 12	   /* records, for which memory is fetched beforehand */
#define GUESSES 8	   /* ops that are looked at before the name is looked up */
#define DEVICES_GUESSED 32 /* finding the same list of the run before is not free */
#define INFO_NOTES 1000	   /* distinct texts kept of a message that names its record */

/* What is kept per op while a step is read. */
struct per_op {
	uint32_t row;  /* in op_step, 0 = none yet */
	uint32_t next; /* the op whose record came after this one's: a guess for the next time */
	int64_t all_end_us;
};

/* The device whose records are being read. */
struct device {
	str_id name, lower, host;
	device_id id;
	bool canonical, all_streams, is_cpu;
	uint8_t kind; /* of the track for what is not counted */
	int64_t records, min_start_us, max_end_us;
};

struct run {
	struct tf_read r;
	int64_t number;
	step_id step;
	struct device device;
	struct per_op *ops;
	size_t op_cap;
	uint32_t last; /* op of the last record */
	struct tf_rows *rows;
	const op_id *before, *before_end;   /* what is left of the same list of the run before */
	uint32_t asked_steps, asked_memory; /* see tf_ask_ahead */
	uint32_t step_base, memory_base;    /* rows that were there before */
	uint64_t begin, end;
	bool reserved;
	int64_t first_ns, last_ns; /* span of the events */
	struct tf_records read;	   /* of the current record */
	struct buf scratch;
	struct tf_tally strangers; /* time of records that belong to no op */
	bool has_stats, any_field, has_accelerator, has_streams;
	int64_t records;
	uint32_t device_count;
	uint64_t infos;
	fact_id devices;
};

static void out_of_memory(struct run *run)
{
	builder_fail(run->r.b, error_no_memory(run->r.b->err));
}

/* ---- one record ---- */

static bool grow_ops(struct run *run)
{
	size_t need = run->r.b->m->op.count, old = run->op_cap;
	void *ops = run->ops;

	if (!mem_grow(run->r.b->m->mem, &ops, &run->op_cap, need, sizeof(*run->ops))) {
		out_of_memory(run);
		return false;
	}
	run->ops = ops;
	memset(run->ops + old, 0, (run->op_cap - old) * sizeof(*run->ops));
	return true;
}

/* Whether it is the name of the op, up to the first colon. No op that was found by a record has a colon in its name. */
static bool is_of(const struct model *m, struct str record, uint32_t op)
{
	struct str name;

	if (!op || op >= m->op.count)
		return false;
	name = model_str(m, m->op.name[op]);
	if (!name.len || name.len > record.len ||
	    (name.len < record.len && record.ptr[name.len] != ':') ||
	    memcmp(name.ptr, record.ptr, name.len) != 0)
		return false;
	return OW_LIKELY(m->op.flags[op] & OP_COVERED) || str_find_char(name, ':') == STR_NONE;
}

/* Names lie apart from ops, and are looked at to see that a guess is right: those of the records to come. */
static void fetch_name(const struct model *m, uint32_t op)
{
	struct str name;

	if (op >= m->op.count)
		return;
	name = model_str(m, m->op.name[op]);
	__builtin_prefetch(name.ptr);
	__builtin_prefetch(name.ptr + name.len);
}

/* Records come in much the same order in every list: as in the same list of the run before, as in the
 * list of another device, or in that of the graph. A good guess saves the look-up. */
static op_id guess_op(struct run *run, struct str record)
{
	const struct model *m = run->r.b->m;
	uint32_t next = run->ops[run->last].next;

	for (const op_id *op = run->before; op < run->before_end && op < run->before + 3; op++) {
		if (!is_of(m, record, op->v))
			continue;
		run->before = op + 1;
		if (run->before_end - op > AHEAD)
			fetch_name(m, op[AHEAD].v);
		return *op;
	}
	fetch_name(m, run->last + AHEAD);
	if (is_of(m, record, next))
		return (op_id){ next };
	for (uint32_t ahead = 1; ahead <= GUESSES; ahead++)
		if (is_of(m, record, run->last + ahead))
			return (op_id){ run->last + ahead };
	return (op_id){ 0 };
}

/* What follows a colon is what the op did. */
static struct str record_name(struct str record)
{
	size_t colon = str_find_char(record, ':');

	return colon == STR_NONE ? record : str_first(record, colon);
}

static bool is_stranger(struct str name)
{
	return str_eq(name, STR("RecvTensor")) || str_eq(name, STR("_SOURCE")) ||
	       str_has(name, STR("MEMCPY"));
}

/* The op of a record; nil for those that belong to none. */
static op_id op_of(struct run *run, struct str record)
{
	struct builder *b = run->r.b;
	op_id op = guess_op(run, record);
	struct str name = op.v ? record : record_name(record);
	str_id id;

	if (!op.v)
		op = model_find_op(b->m, name);
	if (OW_LIKELY(op.v)) {
		b->m->op.flags[op.v] |= OP_COVERED;
	} else if (!is_stranger(name)) {
		id = tf_text(&run->r, name);
		op = builder_find_op(b, id); /* a repaired name may be known */
		if (!op.v)
			op = builder_new_op(
				b,
				&(struct op_row){ .name = id, .type = id, .flags = OP_FROM_RUN });
	}
	if (OW_UNLIKELY(b->m->op.count > run->op_cap) && !grow_ops(run))
		return (op_id){ 0 };
	if (op.v) {
		run->ops[run->last].next = op.v;
		run->last = op.v;
	}
	return op;
}

/* The op's entry for this step, made on first use. */
static uint32_t row_of(struct run *run, op_id op)
{
	struct per_op *per = &run->ops[op.v];

	if (per->row)
		return per->row;
	if (OW_UNLIKELY(run->r.b->m->op_step.count >= run->asked_steps))
		tf_ask_ahead(run->r.b->m, TABLE_op_step, &run->asked_steps);
	per->row =
		builder_add_op_step(run->r.b, &(struct op_step_row){ .op = op, .step = run->step })
			.v;
	return per->row;
}

/* False when another executor owns the op: then the record counts for nothing. */
static bool claim(struct run *run, op_id op)
{
	struct model *m = run->r.b->m;
	const struct device *d = &run->device;

	if (!d->canonical)
		return true;
	if (m->op.device[op.v].v)
		return m->op.device[op.v].v == d->lower.v;
	m->op.device[op.v] = d->lower;
	m->op.types[op.v] = tf_set_add(&run->r, m->op.types[op.v], d->lower);
	BUILDER_SET(run->r.b, op, host_device, op, d->host);
	return true;
}

/* True when the time of the record is in a total. */
static bool account_time(struct run *run, uint32_t row, const struct tf_record *rec)
{
	struct op_step_table *t = &run->r.b->m->op_step;
	int64_t dur_us = tf_record_dur_us(rec);
	int64_t start = us_to_ns(rec->start_us), dur = us_to_ns(dur_us);
	int64_t end = us_to_ns(wrap_add(rec->start_us, dur_us));

	if (!t->first_start_ns[row] || start < t->first_start_ns[row])
		t->first_start_ns[row] = start;
	if (end > t->latest_end_ns[row])
		t->latest_end_ns[row] = end;
	if (run->device.all_streams) {
		t->accelerator_ns[row] = wrap_add(t->accelerator_ns[row], dur);
		return true;
	}
	if (!run->device.canonical)
		return false;
	t->cpu_ns[row] = wrap_add(t->cpu_ns[row], dur);
	t->run_count[row]++;
	return true;
}

static void account_memory(struct run *run, uint32_t row, const struct tf_record *rec)
{
	struct builder *b = run->r.b;
	bool cpu = run->device.is_cpu;
	int64_t both = wrap_add(rec->temp, rec->persistent);

	if (OW_UNLIKELY(b->m->memory.count >= run->asked_memory))
		tf_ask_ahead(b->m, TABLE_memory, &run->asked_memory);
	builder_add_memory(
		b, &(struct memory_row){ .op_step = row,
					 .ts_ns = us_to_ns(wrap_add(rec->start_us, rec->op_end_us)),
					 .requested = wrap_add(rec->total, both),
					 .peak = wrap_add(rec->peak, both),
					 .residual = wrap_add(rec->live, rec->persistent),
					 .output = rec->output,
					 .in_use = rec->in_use,
					 .host_temp = cpu ? rec->temp : 0,
					 .host_persistent = cpu ? rec->persistent : 0,
					 .accelerator_temp = cpu ? 0 : rec->temp,
					 .accelerator_persistent = cpu ? 0 : rec->persistent });
	for (size_t i = 0; i < run->read.alloc_count; i++) {
		run->read.allocs[i].op_step = row;
		builder_add_alloc(b, &run->read.allocs[i]);
	}
}

/* The original's own words; a reader who has seen a thousand of them has seen enough. */
static bool may_inform(struct run *run)
{
	return run->r.ctx->options->strict_proto || run->infos++ < INFO_NOTES;
}

static void account_memory_or_tell(struct run *run, uint32_t row, const struct tf_record *rec)
{
	if (rec->start_us <= 0) {
		if (may_inform(run))
			builder_note(run->r.b, NOTE_INFO, rec->offset,
				     "%.*s has no start time, skipping", STR_ARG(rec->name));
		return;
	}
	if (rec->gpu_allocators > 1)
		builder_note(run->r.b, NOTE_INFO, rec->offset,
			     "found %" PRId64 " gpu allocator for 1 node", rec->gpu_allocators);
	account_memory(run, row, rec);
}

/* The track of the record's event, made when the first one needs it. */
static void need_track(struct run *run, bool counted)
{
	struct tf_rows_list *list = &run->rows->lists[run->rows->list_count - 1];
	track_id *track = counted ? &list->counted : &list->other;
	const struct device *d = &run->device;
	uint8_t kind = d->kind;

	if (OW_LIKELY(track->v))
		return;
	if (counted)
		kind = d->all_streams ? TRACK_ACCELERATOR : TRACK_DEVICE;
	*track = builder_track(run->r.b, &(struct track_row){ .name = d->lower,
							      .device = d->id,
							      .kind = kind,
							      .source = run->r.b->source });
}

/* What its event and its tensors will refer to, and how many rows they will be. */
static void list_record(struct run *run, op_id op, const struct tf_record *rec, bool counted)
{
	int64_t start = us_to_ns(rec->start_us), dur = us_to_ns(tf_record_dur_us(rec));

	if (!tf_rows_add(run->rows, op))
		out_of_memory(run);
	if (op.v)
		run->rows->tensors += (uint32_t)run->read.tensor_count;
	if (rec->start_us <= 0) /* without a time there is nothing to show */
		return;
	run->rows->events++;
	need_track(run, counted);
	if (!op.v)
		tf_text(&run->r, rec->name);
	run->first_ns = MIN(run->first_ns, start);
	run->last_ns = MAX(run->last_ns, wrap_add(start, dur));
}

static void count_record(struct run *run, op_id op, const struct tf_record *rec)
{
	struct device *d = &run->device;
	int64_t end = wrap_add(rec->start_us, rec->all_end_us);

	d->records++;
	run->records++;
	if (op.v)
		run->ops[op.v].all_end_us = wrap_add(run->ops[op.v].all_end_us, rec->all_end_us);
	else
		tf_tally_add(&run->strangers, tf_text(&run->r, record_name(rec->name)),
			     rec->all_end_us);
	if (rec->start_us <= 0)
		return;
	d->min_start_us = MIN(d->min_start_us, rec->start_us);
	d->max_end_us = MAX(d->max_end_us, end);
}

static void account_record(struct run *run, const struct tf_record *rec)
{
	struct model *m = run->r.b->m;
	op_id op = op_of(run, rec->name);
	bool counted = false;
	uint32_t row;

	if (run->r.b->status != OW_OK)
		return;
	count_record(run, op, rec);
	if (op.v && claim(run, op)) {
		row = row_of(run, op);
		if (rec->start_us > 0)
			counted = account_time(run, row, rec);
		if (m->op.device[op.v].v && m->op.device[op.v].v == run->device.lower.v)
			account_memory_or_tell(run, row, rec);
	}
	list_record(run, op, rec, counted);
}

static void read_stats(struct run *run, struct str bytes, uint64_t offset)
{
	struct tf_record rec = { .offset = offset, .size = (uint32_t)bytes.len };
	struct pb r = pb_over(bytes.ptr, bytes.len);

	run->r.record = offset;
	tf_record_read(&run->read, &rec, &r);
	if (OW_UNLIKELY(r.problem)) {
		tf_damaged_at(&run->r, offset, &r, (const uint8_t *)bytes.ptr);
		return;
	}
	account_record(run, &rec);
}

/* ---- devices ---- */

static str_id scratch_word(struct run *run)
{
	if (run->scratch.failed) {
		out_of_memory(run);
		return (str_id){ 0 };
	}
	return tf_word(&run->r, buf_str(&run->scratch));
}

/* Its records, and those that the run before has of it. */
static void begin_list(struct run *run, const struct pb_stream_field *f)
{
	struct tf_rows_list *list = tf_rows_list(run->rows);
	const struct tf_rows_list *before;
	const struct device *d = &run->device;
	const struct tf_rows *rows = NULL;

	if (!list) {
		out_of_memory(run);
		return;
	}
	list->begin = f->offset;
	list->end = f->offset + f->size;
	list->device = d->lower;
	list->canonical = d->canonical;
	list->streams = d->all_streams;
	run->before = run->before_end = NULL;
	if (run->device_count++ >= DEVICES_GUESSED)
		return;
	before = tf_rows_before(run->r.b->m, d->lower, &rows);
	if (!before)
		return;
	run->before = rows->ops + before->first;
	run->before_end = run->before + before->count;
}

static void begin_device(struct run *run, struct str name)
{
	struct device *d = &run->device;
	struct str lower;

	*d = (struct device){ .min_start_us = INT64_MAX, .max_end_us = INT64_MIN };
	d->name = tf_word(&run->r, name);
	d->id = builder_device(run->r.b, model_str(run->r.b->m, d->name));
	buf_clear(&run->scratch);
	tf_device_lower(&run->scratch, name);
	d->lower = scratch_word(run);
	lower = model_str(run->r.b->m, d->lower);
	d->canonical = tf_device_is_canonical(lower);
	d->all_streams = tf_device_is_all_streams(lower);
	d->is_cpu = str_has(lower, STR("cpu"));
	if (str_has(lower, STR("/stream:")) && !d->all_streams)
		d->kind = TRACK_STREAM;
	else if (str_has(lower, STR("/memcpy")))
		d->kind = TRACK_COPY;
	if (d->canonical) {
		buf_clear(&run->scratch);
		tf_device_host(&run->scratch, lower);
		d->host = scratch_word(run);
	}
	run->has_accelerator |= tf_device_is_accelerator(lower);
	run->has_streams |= tf_device_is_accelerator(lower) && d->all_streams;
	run->last = 0;
}

static void end_device(struct run *run)
{
	struct builder *b = run->r.b;
	struct device *d = &run->device;
	fact_id about;

	if (!run->devices.v)
		return;
	about = fact_object(b, run->devices, NULL);
	fact_text(b, about, "device", model_str(b->m, d->name));
	fact_int(b, about, "node_stats", d->records);
	if (d->max_end_us == INT64_MIN)
		return;
	fact_int(b, about, "min_start_us", d->min_start_us);
	fact_int(b, about, "max_end_us", d->max_end_us);
}

/* The name of the device, which every known writer puts first. */
static void find_device(struct run *run, const struct pb_stream_field *f)
{
	struct pb_stream_field part, name = { 0 };
	const uint8_t *bytes = NULL;

	if (!pb_stream_enter(&run->r.stream, f))
		return;
	while (tf_next(&run->r, &part))
		if (part.tag == PB_TAG(1, PB_BYTES)) {
			name = part;
			break;
		}
	if (name.tag)
		bytes = pb_stream_bytes(&run->r.stream, &name);
	begin_device(run,
		     str_make(bytes ? (const char *)bytes : "", bytes ? (size_t)name.size : 0));
	begin_list(run, f);
	pb_stream_leave(&run->r.stream);
}

/* A record that was not whole in the window. */
static bool read_edge(struct run *run, const struct pb_stream_field *f)
{
	const uint8_t *bytes;

	if (f->tag != PB_TAG(2, PB_BYTES))
		return true;
	bytes = pb_stream_bytes(&run->r.stream, f);
	if (bytes)
		read_stats(run, str_make(bytes, (size_t)f->size), f->offset);
	return true;
}

/* Room for the rows to come, once it can be told how many. */
static void reserve_rows(struct run *run)
{
	uint64_t read = run->r.record - run->begin, size = run->end - run->begin;

	if (OW_LIKELY(run->reserved || read < TF_SAMPLE_BYTES))
		return;
	run->reserved = true;
	tf_reserve(&run->r, TABLE_op_step, run->step_base, read, size);
	tf_reserve(&run->r, TABLE_memory, run->memory_base, read, size);
}

static void read_device(struct run *run, const struct pb_stream_field *f)
{
	struct pb_stream *s = &run->r.stream;
	struct pb_stream_field part;
	struct pb_field field;
	struct tf_bulk bulk;
	uint64_t offset;

	find_device(run, f);
	if (run->r.b->status != OW_OK || !pb_stream_enter(s, f))
		return;
	do {
		for (bulk = tf_bulk(&run->r); tf_bulk_next(&bulk, &field, &offset);)
			if (field.tag == PB_TAG(2, PB_BYTES))
				read_stats(run, pb_str(&field), offset);
		reserve_rows(run);
	} while (tf_bulk_end(&run->r, &bulk) && tf_next(&run->r, &part) && read_edge(run, &part));
	pb_stream_leave(s);
	end_device(run);
}

/* ---- the whole ---- */

static int64_t next_step(const struct model *m)
{
	int64_t next = 0;

	for (uint32_t i = 1; i < m->step.count; i++)
		if (m->step.number[i] >= next && m->step.number[i] < INT64_MAX)
			next = m->step.number[i] + 1;
	return next;
}

/* On the first sight of statistics. The step may be there from another source. */
static void begin_step(struct run *run)
{
	struct builder *b = run->r.b;
	struct model *m = b->m;
	bool known = model_find_step(m, run->number).v != 0;

	run->has_stats = true;
	run->step = builder_step(b, run->number);
	m->source.step[b->source.v] = run->step;
	if ((m->op.count > run->op_cap && !grow_ops(run)) || !known)
		return;
	for (uint32_t i = 1; i < m->op_step.count; i++)
		if (m->op_step.step[i].v == run->step.v)
			run->ops[m->op_step.op[i].v].row = i;
}

static void read_devices(struct run *run)
{
	struct pb_stream_field f;

	while (tf_next(&run->r, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			read_device(run, &f);
}

static void read_step_stats(struct run *run, const struct pb_stream_field *f)
{
	if (!run->has_stats)
		begin_step(run);
	if (!pb_stream_enter(&run->r.stream, f))
		return;
	read_devices(run);
	pb_stream_leave(&run->r.stream);
}

static void read_fields(struct run *run)
{
	struct pb_stream_field f;

	while (tf_next(&run->r, &f)) {
		run->any_field = true;
		if (f.tag == PB_TAG(1, PB_BYTES))
			read_step_stats(run, &f);
	}
}

static double coverage(const struct model *m)
{
	uint32_t covered = 0;

	for (uint32_t i = 1; i < m->op.count; i++)
		covered += (m->op.flags[i] & OP_COVERED) != 0;
	return covered / ((double)(m->op.count - 1) + 1e-10);
}

static void add_facts(struct run *run, fact_id facts)
{
	struct builder *b = run->r.b;
	const struct model *m = b->m;
	struct tf_top top = { .want = 5 };

	fact_int(b, facts, "node_stats", run->records);
	if (run->has_stats)
		fact_int(b, facts, "step", run->number);
	for (uint32_t i = 1; i < m->op.count && i < run->op_cap; i++)
		if (run->ops[i].all_end_us)
			tf_top_add(&top, m, m->op.name[i], run->ops[i].all_end_us);
	for (size_t i = 1; i < run->strangers.count; i++)
		tf_top_add(&top, m, run->strangers.items[i].text, run->strangers.items[i].value);
	tf_top_list(&top, b, facts, "top5_all_end_rel_micros");
}

static void end_run(struct run *run, fact_id facts)
{
	struct import_ctx *ctx = run->r.ctx;
	struct builder *b = run->r.b;

	ctx->missing_step_stats = !run->has_stats;
	if (!run->has_stats)
		builder_note(b, NOTE_MISSING, OW_NO_OFFSET,
			     "the RunMetadata has no step_stats, so it adds nothing: was the run "
			     "traced?");
	if (run->infos > INFO_NOTES)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, run->infos - INFO_NOTES,
				  "more records without a start time");
	if (run->has_accelerator && !run->has_streams)
		b->m->missing_streams = true;
	ctx->coverage = coverage(b->m);
	if (b->status == OW_OK)
		add_facts(run, facts);
}

/* Also when the load failed: what was read before the failure is there. */
static ow_status defer_rows(struct run *run, ow_status status)
{
	struct tf_rows *rows = run->rows;
	struct builder *b = run->r.b;
	ow_status deferred;

	run->rows = NULL;
	rows->step = run->step;
	if (rows->events)
		builder_widen_step(b, run->step, run->first_ns, run->last_ns);
	deferred = tf_rows_defer(b, rows, run->r.ctx->options->forget);
	return status != OW_OK ? status : deferred;
}

static void release_run(struct run *run)
{
	struct mem *mem = run->r.b->m->mem;

	tf_tally_release(&run->strangers);
	tf_rows_free(run->rows);
	tf_records_release(&run->read);
	buf_release(&run->scratch);
	mem_free(mem, run->ops, run->op_cap * sizeof(*run->ops));
}

ow_status tf_run_read(struct import_ctx *ctx, uint64_t begin, uint64_t end, bool bare, int64_t step,
		      fact_id facts)
{
	struct run run = { .number = step == TF_NEXT_STEP ? next_step(ctx->b->m) : step,
			   .step_base = ctx->b->m->op_step.count,
			   .memory_base = ctx->b->m->memory.count,
			   .begin = begin,
			   .end = end,
			   .first_ns = INT64_MAX,
			   .last_ns = INT64_MIN };
	ow_status status;

	run.rows = tf_rows_new(ctx->b);
	if (!run.rows)
		return builder_status(ctx->b);
	tf_read_begin(&run.r, ctx, bare ? "StepStats" : "RunMetadata", begin, end);
	run.read.r = &run.r;
	run.read.count_tensors = true;
	tf_tally_init(&run.strangers, ctx->b);
	buf_init(&run.scratch, ctx->b->m->mem);
	tf_time_unit(ctx->b);
	run.devices = fact_list(ctx->b, facts, "devices");
	if (bare) {
		begin_step(&run);
		read_devices(&run);
	} else {
		read_fields(&run);
	}
	end_run(&run, facts);
	status = tf_read_end(&run.r, run.has_stats || run.any_field);
	if (ctx->b->status == OW_OK && run.rows->list_count)
		status = defer_rows(&run, status);
	release_run(&run);
	return status;
}
