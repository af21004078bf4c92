/*
 * import_runmeta.c: reads RunMetadata, and StepStats on its own, binary or text: the records of one step of a
 * TensorFlow graph. It also reads the run metadata in TensorBoard event files (run_metadata.h). tf_node_stats.c decodes
 * each record; this file decides what it counts for: time on its device and streams, memory and runs of an op go into
 * op_step, memory and alloc. The rules are those of the original profiler, surprises included: the first executor that
 * reports an op owns it, records of other executors are ignored, and only records with a start time count. Counted
 * events are on tracks of the kinds TRACK_DEVICE and TRACK_ACCELERATOR, in the order in which they were counted; all
 * other events of the same device are on a track of another kind. The tracks are made here, the events on first use
 * (tf_rows.h).
 */
#include "import/importer.h"
#include "base/vec.h"
#include "import/tensorflow/run/run_metadata.h"
#include "import/tensorflow/run/tf_rows.h"
#include "import/tensorflow/tf_read.h"
#include "import/tensorflow/tf_message.h"

/* limit of distinct texts that are kept for a note that names its record */
#define INFO_NOTES 1000
#define AHEAD 12  /* memory is prefetched for this many records ahead */
#define GUESSES 8 /* number of ops that are compared before the name is looked up */
/* limit of devices for which the same list of the previous run is searched, which takes time */
#define DEVICES_GUESSED 32

/* State of an op while a step is read. */
struct run_op {
	uint32_t row;  /* row in op_step; 0 = none yet */
	uint32_t next; /* the op whose record followed this op's: a guess for the next time */
	int64_t all_end_us;
};

/* The device whose records are being read. */
struct run_device {
	str_id name, lower, host;
	device_id id;
	bool canonical, all_streams, is_cpu;
	uint8_t kind; /* kind of the track for events that are not counted */
	int64_t records, min_start_us, max_end_us;
};

/* Sums of a record over its allocators and outputs. */
struct record_memory {
	int64_t total, peak, live, in_use,
		output; /* bytes; in_use: the largest of a GPU's allocators */
	int64_t gpu_allocators;
};

struct run {
	struct tf_read r;
	int64_t number;
	step_id step;
	struct run_device device;
	struct run_op *ops;
	size_t op_cap;
	uint32_t last; /* op of the last record */
	struct tf_rows *rows;
	/* rest of the same device's list in the previous run */
	const op_id *previous, *previous_end;
	uint32_t step_prefaulted, memory_prefaulted; /* see tf_prefault_rows */
	uint32_t step_base, memory_base;	     /* number of rows that the tables had before */
	uint64_t begin, reserve_at;
	int64_t first_ns, last_ns; /* range of the events */
	struct tf_node_reader read;
	struct tf_shape_memory shapes;
	struct str allocator; /* name of the last allocator seen, and whether it is a GPU's */
	bool allocator_is_gpu;
	struct buf scratch;
	struct tf_tally unmatched; /* time of records that do not belong to an op */
	bool has_stats, any_field, has_accelerator, has_streams;
	int64_t records;
	uint32_t device_count;
	uint64_t infos;
	uint64_t absurd, first_absurd; /* runs that took more than a century */
	uint64_t negative;	       /* other runs that end before their start */
	fact_id devices;
};

/* Makes room for all known ops; false if memory runs out. */
static bool grow_ops(struct run *run)
{
	struct model *m = run->r.b->m;

	if (vec_reserve_zero(m->mem, run->ops, run->op_cap, m->op.count))
		return true;
	builder_no_memory(run->r.b);
	return false;
}

/* Whether the record belongs to that op: its name up to the first colon is the op's. No op that was found by a
 * record has a colon in its name. */
static bool is_record_of(const struct model *m, struct str record, uint32_t op)
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

/* Prefetches the name of an op: comparing a guess reads it, and it is not in the cache. */
static void prefetch_name(const struct model *m, uint32_t op)
{
	struct str name;

	if (op >= m->op.count)
		return;
	name = model_str(m, m->op.name[op]);
	__builtin_prefetch(name.ptr);
	__builtin_prefetch(name.ptr + name.len);
}

/* Guesses the op of a record. Records have much the same order in every list: as in the same list of the previous
 * run, in the list of another device, or in the graph. A right guess saves looking the name up. */
static op_id guess_op(struct run *run, struct str record)
{
	const struct model *m = run->r.b->m;
	uint32_t next = run->ops[run->last].next;

	for (const op_id *op = run->previous; op < run->previous_end && op < run->previous + 3;
	     op++) {
		if (!is_record_of(m, record, op->v))
			continue;
		run->previous = op + 1;
		if (run->previous_end - op > AHEAD)
			prefetch_name(m, op[AHEAD].v);
		return *op;
	}
	prefetch_name(m, run->last + AHEAD);
	if (is_record_of(m, record, next))
		return (op_id){ next };
	for (uint32_t ahead = 1; ahead <= GUESSES; ahead++)
		if (is_record_of(m, record, run->last + ahead))
			return (op_id){ run->last + ahead };
	return (op_id){ 0 };
}

/* The name of a record up to the first colon; after it the record describes the run. */
static struct str record_name(struct str record)
{
	size_t colon = str_find_char(record, ':');

	return colon == STR_NONE ? record : str_first(record, colon);
}

static bool belongs_to_no_op(struct str name)
{
	return str_eq(name, STR("RecvTensor")) || str_eq(name, STR("_SOURCE")) ||
	       str_has(name, STR("MEMCPY"));
}

/* The op of a record, added to the model when it is new; nil for records that do not belong to one. */
static op_id find_op(struct run *run, struct str record)
{
	struct builder *b = run->r.b;
	op_id op = guess_op(run, record);
	struct str name = op.v ? record : record_name(record);
	str_id id;

	if (!op.v)
		op = model_find_op(b->m, name);
	if (OW_LIKELY(op.v)) {
		b->m->op.flags[op.v] |= OP_COVERED;
	} else if (!belongs_to_no_op(name)) {
		id = tf_text(&run->r, name);
		op = builder_find_op(b, id); /* the repaired name may be known */
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

/* The op's row for this step, added on first use. */
static uint32_t op_step_row(struct run *run, op_id op)
{
	struct run_op *per = &run->ops[op.v];

	if (per->row)
		return per->row;
	if (OW_UNLIKELY(run->r.b->m->op_step.count >= run->step_prefaulted))
		tf_prefault_rows(run->r.b->m, TABLE_op_step, &run->step_prefaulted);
	per->row =
		builder_add_op_step(run->r.b, &(struct op_step_row){ .op = op, .step = run->step })
			.v;
	return per->row;
}

/* Whether this device owns the op; if another executor does, the record is ignored. */
static bool device_owns_op(struct run *run, op_id op)
{
	struct model *m = run->r.b->m;
	const struct run_device *d = &run->device;

	if (!d->canonical)
		return true;
	if (m->op.device[op.v].v)
		return m->op.device[op.v].v == d->lower.v;
	m->op.device[op.v] = d->lower;
	m->op.types[op.v] = tf_set_add(&run->r, m->op.types[op.v], d->lower);
	BUILDER_SET(run->r.b, op, host_device, op, d->host);
	return true;
}

/* Adds the time of a record to the totals; true if it counted. */
static bool account_time(struct run *run, uint32_t row, const struct tf_node_stats *rec)
{
	struct op_step_table *t = &run->r.b->m->op_step;
	int64_t dur_us = tf_node_stats_dur_us(rec);
	int64_t start = us_to_ns(rec->start_us), dur = us_to_ns(dur_us);
	int64_t end = us_to_ns(wrap_add(rec->start_us, dur_us));

	if (!t->first_start_ns[row] || start < t->first_start_ns[row])
		t->first_start_ns[row] = start;
	if (end > t->latest_end_ns[row])
		t->latest_end_ns[row] = end;
	if (run->device.all_streams) {
		t->accelerator_ns[row] = sum_add(t->accelerator_ns[row], dur);
		return true;
	}
	if (!run->device.canonical)
		return false;
	t->cpu_ns[row] = sum_add(t->cpu_ns[row], dur);
	t->run_count[row]++;
	return true;
}

static bool is_gpu_allocator(struct run *run, struct str name)
{
	if (!tf_same(run->allocator, name)) {
		run->allocator = model_str(run->r.b->m, tf_word(&run->r, name));
		run->allocator_is_gpu = str_has(name, STR("GPU"));
	}
	return run->allocator_is_gpu;
}

/* Sums the record's lists. Their texts and shapes are added to the model, where the rows that are made on first use
 * find them; this happens before anything else is decided about the record, because a text that is not UTF-8 is always
 * reported.
 */
static struct record_memory sum_memory(struct run *run)
{
	const struct tf_node_reader *read = &run->read;
	struct record_memory sum = { 0 };

	for (size_t i = 0; i < read->allocator_count; i++) {
		const struct tf_allocator *a = &read->allocators[i];

		sum.total = wrap_add(sum.total, a->total);
		sum.peak = wrap_add(sum.peak, a->peak);
		sum.live = wrap_add(sum.live, a->live);
		if (is_gpu_allocator(run, a->name)) {
			sum.gpu_allocators++;
			sum.in_use = MAX(sum.in_use, a->in_use);
		}
	}
	for (size_t i = 0; i < read->output_count; i++) {
		const struct tf_output *out = &read->outputs[i];

		/* Without an allocation both are zero. */
		sum.output = wrap_add(sum.output, MAX(out->allocated, out->requested));
		tf_word(&run->r, out->allocator);
		if (out->shape.ptr)
			tf_shape_recall(&run->shapes, run->r.b, out->shape, tf_shape_real);
	}
	return sum;
}

/* Adds each allocation of GPU allocators; those of other allocators are only summed. */
static void add_allocs(struct run *run, uint32_t row)
{
	const struct tf_node_reader *read = &run->read;

	for (size_t i = 0; i < read->allocator_count; i++) {
		const struct tf_allocator *a = &read->allocators[i];
		const struct tf_alloc *alloc = read->allocs + a->alloc_first;

		if (!a->alloc_count || !is_gpu_allocator(run, a->name))
			continue;
		for (size_t k = 0; k < a->alloc_count; k++, alloc++)
			builder_add_alloc(run->r.b,
					  &(struct alloc_row){ .op_step = row,
							       .ts_ns = us_to_ns(alloc->ts_us),
							       .size = alloc->size });
	}
}

static void add_memory(struct run *run, uint32_t row, const struct tf_node_stats *rec,
		       const struct record_memory *sum)
{
	struct builder *b = run->r.b;
	bool cpu = run->device.is_cpu;
	int64_t both = wrap_add(rec->temp, rec->persistent);

	if (OW_UNLIKELY(b->m->memory.count >= run->memory_prefaulted))
		tf_prefault_rows(b->m, TABLE_memory, &run->memory_prefaulted);
	builder_add_memory(
		b, &(struct memory_row){ .op_step = row,
					 .ts_ns = us_to_ns(wrap_add(rec->start_us, rec->op_end_us)),
					 .requested = wrap_add(sum->total, both),
					 .peak = wrap_add(sum->peak, both),
					 .residual = wrap_add(sum->live, rec->persistent),
					 .output = sum->output,
					 .in_use = sum->in_use,
					 .host_temp = cpu ? rec->temp : 0,
					 .host_persistent = cpu ? rec->persistent : 0,
					 .accelerator_temp = cpu ? 0 : rec->temp,
					 .accelerator_persistent = cpu ? 0 : rec->persistent });
	if (run->read.alloc_count)
		add_allocs(run, row);
}

/* Adds the memory of a record. The notes have the original's own words; of the first kind a thousand are kept. */
static void account_memory(struct run *run, uint32_t row, const struct tf_node_stats *rec,
			   const struct record_memory *sum)
{
	struct builder *b = run->r.b;

	if (rec->start_us <= 0) {
		if (run->r.ctx->options->strict_proto || run->infos++ < INFO_NOTES)
			builder_note(b, NOTE_INFO, rec->offset, "%.*s has no start time, skipping",
				     STR_ARG(rec->name));
		return;
	}
	if (sum->gpu_allocators > 1)
		builder_note(b, NOTE_INFO, rec->offset,
			     "found %" PRId64 " gpu allocator for 1 node", sum->gpu_allocators);
	add_memory(run, row, rec, sum);
}

/* The track of the record's event, made when it is first needed. */
static void make_track(struct run *run, bool counted)
{
	struct tf_rows_list *list = &run->rows->lists[run->rows->list_count - 1];
	track_id *track = counted ? &list->counted : &list->other;
	const struct run_device *d = &run->device;
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

/* Lists the op for the rows that are made on first use, counts them, and adds everything that they refer to. */
static void list_record(struct run *run, op_id op, const struct tf_node_stats *rec, bool counted)
{
	int64_t start = us_to_ns(rec->start_us), dur = us_to_ns(tf_node_stats_dur_us(rec));

	if (!tf_rows_add(run->rows, op))
		builder_no_memory(run->r.b);
	if (op.v)
		run->rows->tensors += (uint32_t)run->read.output_count;
	if (rec->start_us <= 0) /* a record without a time has no event */
		return;
	run->rows->events++;
	make_track(run, counted);
	if (!op.v)
		tf_text(&run->r, rec->name);
	run->first_ns = MIN(run->first_ns, start);
	run->last_ns = MAX(run->last_ns, wrap_add(start, dur));
}

static void count_record(struct run *run, op_id op, const struct tf_node_stats *rec)
{
	struct run_device *d = &run->device;
	int64_t end = wrap_add(rec->start_us, rec->all_end_us);

	d->records++;
	run->records++;
	if (OW_UNLIKELY(tf_node_stats_absurd(rec)))
		run->first_absurd = run->absurd++ ? run->first_absurd : rec->offset;
	else
		run->negative += rec->op_end_us < 0;
	if (op.v)
		run->ops[op.v].all_end_us = wrap_add(run->ops[op.v].all_end_us, rec->all_end_us);
	else
		tf_tally_add(&run->unmatched, tf_text(&run->r, record_name(rec->name)),
			     rec->all_end_us);
	if (rec->start_us <= 0)
		return;
	d->min_start_us = MIN(d->min_start_us, rec->start_us);
	d->max_end_us = MAX(d->max_end_us, end);
}

static void account_record(struct run *run, const struct tf_node_stats *rec)
{
	struct model *m = run->r.b->m;
	struct record_memory sum;
	bool counted = false;
	uint32_t row;
	op_id op;

	run->r.record = rec->offset;
	sum = sum_memory(run);
	op = find_op(run, rec->name);
	if (OW_UNLIKELY(run->read.no_memory))
		builder_no_memory(run->r.b);
	if (run->r.b->status != OW_OK)
		return;
	count_record(run, op, rec);
	if (op.v && device_owns_op(run, op)) {
		row = op_step_row(run, op);
		if (rec->start_us > 0)
			counted = account_time(run, row, rec);
		if (m->op.device[op.v].v && m->op.device[op.v].v == run->device.lower.v)
			account_memory(run, row, rec, &sum);
	}
	list_record(run, op, rec, counted);
}

/* Devices. Names are lower-cased; "canonical" devices are the executors "…/device:gpu:0", "…/cpu:1"; "…/stream:all"
 * has everything that ran on a GPU. */

/* Lower-cases ASCII letters. */
static void device_lower(struct buf *to, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		buf_add_char(to, c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c);
	}
}

static size_t count_digits(struct str s)
{
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
		n++;
	return n;
}

/* Whether a name is an executor: it ends in "/", one of device:gpu gpu device:cpu cpu device:sycl, ":" and a number. */
static bool device_is_canonical(struct str lower)
{
	static const struct str kinds[] = { STR("/device:gpu"), STR("/gpu"), STR("/device:cpu"),
					    STR("/cpu"), STR("/device:sycl") };
	size_t colon = str_rfind_char(lower, ':');
	struct str digits;

	if (colon == STR_NONE || str_find_char(str_first(lower, colon), '\n') != STR_NONE)
		return false;
	digits = str_skip(lower, colon + 1);
	if (!digits.len || count_digits(digits) != digits.len)
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
		if (str_ends(str_first(lower, colon), kinds[i]))
			return true;
	return false;
}

static bool device_is_accelerator(struct str lower)
{
	return str_has(lower, STR("gpu")) || str_has(lower, STR("sycl"));
}

/* The name of the host that feeds a canonical device: "gpu:1" becomes "cpu:0". */
static void device_host(struct buf *to, struct str lower)
{
	struct str kind = str_has(lower, STR("sycl")) ? STR("device:sycl:") : STR("gpu:");

	while (lower.len) {
		size_t at = str_find(lower, kind);
		size_t digits = at == STR_NONE ? 0 : count_digits(str_skip(lower, at + kind.len));

		if (at == STR_NONE) {
			buf_add_str(to, lower);
			return;
		}
		buf_add(to, lower.ptr, at);
		if (digits)
			buf_puts(to, "cpu:0");
		else
			buf_add_str(to, kind);
		lower = str_skip(lower, at + kind.len + digits);
	}
}

static str_id scratch_word(struct run *run)
{
	if (run->scratch.failed) {
		builder_no_memory(run->r.b);
		return (str_id){ 0 };
	}
	return tf_word(&run->r, buf_str(&run->scratch));
}

/* Lists the device's records, and finds the list of the same device in the previous run. */
static void begin_list(struct run *run, const struct pb_stream_field *f)
{
	struct tf_rows_list *list = tf_rows_list(run->rows);
	const struct tf_rows_list *previous;
	const struct run_device *d = &run->device;
	const struct tf_rows *rows = NULL;

	if (!list) {
		builder_no_memory(run->r.b);
		return;
	}
	list->begin = f->offset;
	list->end = f->offset + f->size;
	list->device = d->lower;
	list->canonical = d->canonical;
	list->streams = d->all_streams;
	run->previous = run->previous_end = NULL;
	if (run->device_count++ >= DEVICES_GUESSED)
		return;
	previous = tf_rows_of_previous_run(run->r.b->m, d->lower, &rows);
	if (!previous)
		return;
	run->previous = rows->ops + previous->first;
	run->previous_end = run->previous + previous->count;
}

static void begin_device(struct run *run, struct str name)
{
	struct run_device *d = &run->device;
	struct str lower;

	*d = (struct run_device){ .min_start_us = INT64_MAX, .max_end_us = INT64_MIN };
	d->name = tf_word(&run->r, name);
	d->id = builder_device(run->r.b, model_str(run->r.b->m, d->name));
	buf_clear(&run->scratch);
	device_lower(&run->scratch, name);
	d->lower = scratch_word(run);
	lower = model_str(run->r.b->m, d->lower);
	d->canonical = device_is_canonical(lower);
	d->all_streams = str_has(lower, STR("stream:all"));
	d->is_cpu = str_has(lower, STR("cpu"));
	if (str_has(lower, STR("/stream:")) && !d->all_streams)
		d->kind = TRACK_STREAM;
	else if (str_has(lower, STR("/memcpy")))
		d->kind = TRACK_COPY;
	if (d->canonical) {
		buf_clear(&run->scratch);
		device_host(&run->scratch, lower);
		d->host = scratch_word(run);
	}
	run->has_accelerator |= device_is_accelerator(lower);
	run->has_streams |= device_is_accelerator(lower) && d->all_streams;
	run->last = 0;
}

static void end_device(struct run *run)
{
	struct builder *b = run->r.b;
	struct run_device *d = &run->device;
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

/* Reserves the rows to come, once their number can be estimated. */
static void reserve_rows(struct run *run)
{
	const struct pb_stream *s =
		&run->r.stream; /* the stream is inside a device; the statistics are one level up */
	uint64_t read = run->r.record - run->begin, size = s->ends[s->depth - 1] - run->begin;

	if (!tf_time_to_reserve(&run->reserve_at, read))
		return;
	tf_reserve(&run->r, TABLE_op_step, run->step_base, read, size);
	tf_reserve(&run->r, TABLE_memory, run->memory_base, read, size);
}

static void read_device(struct run *run, const struct pb_stream_field *f)
{
	struct pb_stream *s = &run->r.stream;
	struct tf_node_stats rec;
	uint64_t window;
	struct str name;

	if (!tf_device_stats_name(s, f, &name))
		return;
	begin_device(run, name);
	begin_list(run, f);
	if (run->r.b->status != OW_OK || !pb_stream_enter(s, f))
		return;
	tf_node_stats_begin(&run->read, s);
	window = run->read.bulk.base;
	while (run->r.b->status == OW_OK && tf_node_stats_next(&run->read, &rec)) {
		if (OW_UNLIKELY(run->read.bulk.base != window)) {
			window = run->read.bulk.base;
			reserve_rows(run);
		}
		account_record(run, &rec);
	}
	reserve_rows(run);
	pb_stream_leave(s);
	end_device(run);
}

static int64_t next_step(const struct model *m)
{
	int64_t next = 0;

	for (uint32_t i = 1; i < m->step.count; i++)
		if (m->step.number[i] >= next && m->step.number[i] < INT64_MAX)
			next = m->step.number[i] + 1;
	return next;
}

/* Begins the step, at the first statistics of the message. Another source may have added the step. */
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
	for (size_t i = 1; i < run->unmatched.count; i++)
		tf_top_add(&top, m, run->unmatched.items[i].text, run->unmatched.items[i].value);
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
				  "more records without a start time are ignored");
	if (run->absurd)
		builder_note_many(b, NOTE_DAMAGED, run->first_absurd, run->absurd,
				  "durations of more than a century are ignored: they count as 0");
	if (run->negative)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, run->negative,
				  "records end before their start: tfprof's views add their "
				  "negative times, the others count 0");
	if (run->has_accelerator && !run->has_streams)
		b->m->missing_streams = true;
	ctx->coverage = coverage(b->m);
	if (b->status == OW_OK)
		add_facts(run, facts);
}

/* Defers the rows, also after a failed load: the rows that were read before the failure are kept. */
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

	tf_tally_release(&run->unmatched);
	tf_rows_free(run->rows);
	tf_node_reader_release(&run->read);
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
			   .first_ns = INT64_MAX,
			   .last_ns = INT64_MIN };
	ow_status status;

	run.rows = tf_rows_new(ctx->b);
	if (!run.rows)
		return builder_status(ctx->b);
	run.rows->phases = !ctx->options->strict_proto; /* the views of tfprof do not use phases */
	tf_read_begin(&run.r, ctx, bare ? "StepStats" : "RunMetadata", begin, end);
	run.read.mem = ctx->b->m->mem;
	tf_tally_init(&run.unmatched, ctx->b);
	buf_init(&run.scratch, ctx->b->m->mem);
	tf_time_unit(ctx->b);
	run.devices = fact_list(ctx->b, facts, "devices");
	if (bare) {
		begin_step(&run);
		read_devices(&run);
	} else {
		read_fields(&run);
	}
	run.r.damaged += run.read.damaged;
	end_run(&run, facts);
	status = tf_read_end(&run.r, run.has_stats || run.any_field);
	if (ctx->b->status == OW_OK && run.rows->list_count)
		status = defer_rows(&run, status);
	release_run(&run);
	return status;
}

static int sniff(const struct sniff *s)
{
	int whole = tf_sniff(s, TF_RUN_METADATA), part = tf_sniff(s, TF_STEP_STATS);

	return MAX(whole, part);
}

/* Whether a file holds only the step_stats of a RunMetadata, which tfprof does not accept. */
static ow_status is_bare(struct import_ctx *ctx, bool *bare)
{
	struct sniff s = { .path = ctx->in->name, .size = ctx->in->size };
	struct window window;

	*bare = false;
	if (ctx->options->strict_proto)
		return OW_OK;
	window_init(&window, ctx->in, ctx->err);
	s.head = str_first(window_peek(&window, 0, 64 << 10), 64 << 10);
	if (s.head.ptr)
		*bare = tf_sniff(&s, TF_STEP_STATS) > tf_sniff(&s, TF_RUN_METADATA);
	window_release(&window);
	return s.head.ptr ? OW_OK : window.status;
}

static ow_status load(struct import_ctx *ctx)
{
	bool bare;

	OW_TRY(is_bare(ctx, &bare));
	fact_text(ctx->b, (fact_id){ 0 }, "kind", bare ? STR("StepStats") : STR("RunMetadata"));
	OW_TRY(tf_text_convert(ctx, bare ? TF_STEP_STATS : TF_RUN_METADATA));
	return tf_run_read(ctx, 0, ctx->in->size, bare, ctx->options->step, (fact_id){ 0 });
}

const struct importer import_runmeta = {
	.name = "runmeta",
	.summary = "TensorFlow RunMetadata or StepStats: times and memory of one step",
	.extensions = "run_meta*, *.runmeta",
	.role = ROLE_RUN,
	.defers = true,
	.sniff = sniff,
	.load = load,
};
