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

#define AHEAD 12  /* records, for which memory is fetched beforehand */
#define GUESSES 8 /* ops that are looked at before the name is looked up */

bool tf_run_grow(struct tf_run *run)
{
	size_t need = run->r.b->m->op.count, old = run->op_cap;
	void *ops = run->ops;

	if (!mem_grow(run->r.b->m->mem, &ops, &run->op_cap, need, sizeof(*run->ops))) {
		tf_run_no_memory(run);
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
static op_id guess_op(struct tf_run *run, struct str record)
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
static op_id op_of(struct tf_run *run, struct str record)
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
	if (OW_UNLIKELY(b->m->op.count > run->op_cap) && !tf_run_grow(run))
		return (op_id){ 0 };
	if (op.v) {
		run->ops[run->last].next = op.v;
		run->last = op.v;
	}
	return op;
}

/* The op's entry for this step, made on first use. */
static uint32_t row_of(struct tf_run *run, op_id op)
{
	struct tf_run_op *per = &run->ops[op.v];

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
static bool claim(struct tf_run *run, op_id op)
{
	struct model *m = run->r.b->m;
	const struct tf_run_device *d = &run->device;

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
static bool account_time(struct tf_run *run, uint32_t row, const struct tf_record *rec)
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

static void account_memory(struct tf_run *run, uint32_t row, const struct tf_record *rec)
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
static bool may_inform(struct tf_run *run)
{
	return run->r.ctx->options->strict_proto || run->infos++ < TF_INFO_NOTES;
}

static void account_memory_or_tell(struct tf_run *run, uint32_t row, const struct tf_record *rec)
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
static void need_track(struct tf_run *run, bool counted)
{
	struct tf_rows_list *list = &run->rows->lists[run->rows->list_count - 1];
	track_id *track = counted ? &list->counted : &list->other;
	const struct tf_run_device *d = &run->device;
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
static void list_record(struct tf_run *run, op_id op, const struct tf_record *rec, bool counted)
{
	int64_t start = us_to_ns(rec->start_us), dur = us_to_ns(tf_record_dur_us(rec));

	if (!tf_rows_add(run->rows, op))
		tf_run_no_memory(run);
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

static void count_record(struct tf_run *run, op_id op, const struct tf_record *rec)
{
	struct tf_run_device *d = &run->device;
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

void tf_account_record(struct tf_run *run, const struct tf_record *rec)
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
