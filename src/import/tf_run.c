/*
 * tf_run.c: see tf_run.h. Walks the message, device by device; what a record means is tf_account.c's business.
 */
#include "import/tf_run.h"

#include "import/tf_account.h"
#include "import/tf_device.h"

#define DEVICES_GUESSED 32 /* finding the same list of the run before is not free */

static void read_stats(struct tf_run *run, struct str bytes, uint64_t offset)
{
	struct tf_record rec = { .offset = offset, .size = (uint32_t)bytes.len };
	struct pb r = pb_over(bytes.ptr, bytes.len);

	run->r.record = offset;
	tf_record_read(&run->read, &rec, &r);
	if (OW_UNLIKELY(r.problem)) {
		tf_damaged_at(&run->r, offset, &r, (const uint8_t *)bytes.ptr);
		return;
	}
	tf_account_record(run, &rec);
}

/* ---- devices ---- */

static str_id scratch_word(struct tf_run *run)
{
	if (run->scratch.failed) {
		tf_run_no_memory(run);
		return (str_id){ 0 };
	}
	return tf_word(&run->r, buf_str(&run->scratch));
}

/* Its records, and those that the run before has of it. */
static void begin_list(struct tf_run *run, const struct pb_stream_field *f)
{
	struct tf_rows_list *list = tf_rows_list(run->rows);
	const struct tf_rows_list *before;
	const struct tf_run_device *d = &run->device;
	const struct tf_rows *rows = NULL;

	if (!list) {
		tf_run_no_memory(run);
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

static void begin_device(struct tf_run *run, struct str name)
{
	struct tf_run_device *d = &run->device;
	struct str lower;

	*d = (struct tf_run_device){ .min_start_us = INT64_MAX, .max_end_us = INT64_MIN };
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

static void end_device(struct tf_run *run)
{
	struct builder *b = run->r.b;
	struct tf_run_device *d = &run->device;
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
static void find_device(struct tf_run *run, const struct pb_stream_field *f)
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
static bool read_edge(struct tf_run *run, const struct pb_stream_field *f)
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
static void reserve_rows(struct tf_run *run)
{
	const struct pb_stream *s = &run->r.stream; /* in a device, of the statistics */
	uint64_t read = run->r.record - run->begin, size = s->ends[s->depth - 1] - run->begin;

	if (!tf_time_to_reserve(&run->reserve_at, read))
		return;
	tf_reserve(&run->r, TABLE_op_step, run->step_base, read, size);
	tf_reserve(&run->r, TABLE_memory, run->memory_base, read, size);
}

static void read_device(struct tf_run *run, const struct pb_stream_field *f)
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
static void begin_step(struct tf_run *run)
{
	struct builder *b = run->r.b;
	struct model *m = b->m;
	bool known = model_find_step(m, run->number).v != 0;

	run->has_stats = true;
	run->step = builder_step(b, run->number);
	m->source.step[b->source.v] = run->step;
	if ((m->op.count > run->op_cap && !tf_run_grow(run)) || !known)
		return;
	for (uint32_t i = 1; i < m->op_step.count; i++)
		if (m->op_step.step[i].v == run->step.v)
			run->ops[m->op_step.op[i].v].row = i;
}

static void read_devices(struct tf_run *run)
{
	struct pb_stream_field f;

	while (tf_next(&run->r, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			read_device(run, &f);
}

static void read_step_stats(struct tf_run *run, const struct pb_stream_field *f)
{
	if (!run->has_stats)
		begin_step(run);
	if (!pb_stream_enter(&run->r.stream, f))
		return;
	read_devices(run);
	pb_stream_leave(&run->r.stream);
}

static void read_fields(struct tf_run *run)
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

static void add_facts(struct tf_run *run, fact_id facts)
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

static void end_run(struct tf_run *run, fact_id facts)
{
	struct import_ctx *ctx = run->r.ctx;
	struct builder *b = run->r.b;

	ctx->missing_step_stats = !run->has_stats;
	if (!run->has_stats)
		builder_note(b, NOTE_MISSING, OW_NO_OFFSET,
			     "the RunMetadata has no step_stats, so it adds nothing: was the run "
			     "traced?");
	if (run->infos > TF_INFO_NOTES)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, run->infos - TF_INFO_NOTES,
				  "more records without a start time");
	if (run->has_accelerator && !run->has_streams)
		b->m->missing_streams = true;
	ctx->coverage = coverage(b->m);
	if (b->status == OW_OK)
		add_facts(run, facts);
}

/* Also when the load failed: what was read before the failure is there. */
static ow_status defer_rows(struct tf_run *run, ow_status status)
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

static void release_run(struct tf_run *run)
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
	struct tf_run run = { .number = step == TF_NEXT_STEP ? next_step(ctx->b->m) : step,
			      .step_base = ctx->b->m->op_step.count,
			      .memory_base = ctx->b->m->memory.count,
			      .begin = begin,
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
