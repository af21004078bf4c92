/*
 * trace_facts.c: writes the facts that `opwatch info` shows for a trace, the notes about what was repaired, dropped or
 * left open, and the listing (struct trace_listing), which records whether the list of events can be written again from
 * the model. trace_place.c calls it while the rows of the workers still exist; it does not change them. Times are in
 * microseconds, as in the file, exact to the nanosecond.
 */
#include "import/chrome/trace_int.h"

#include "base/vec.h"

#define MOST_CATEGORIES 15

static const char *text_of(const struct trace_stages *t, uint32_t string)
{
	return string ? trace_str(t->job, t->names, string).ptr : "None";
}

/* The text of an entry in the tally. */
static const char *tallied(const struct trace_stages *t, uint32_t local)
{
	return text_of(t, t->names->local_strings[local]);
}

struct ranked {
	uint32_t string; /* index in the tally */
	int64_t value;
};

struct ranking {
	struct ranked best[MOST_CATEGORIES];
	size_t count, max;
};

static bool ranks_before(const struct trace_stages *t, const struct ranked *a,
			 const struct ranked *b)
{
	if (a->value != b->value)
		return a->value > b->value;
	return str_cmp(str_from(tallied(t, a->string)), str_from(tallied(t, b->string))) < 0;
}

static void rank(const struct trace_stages *t, struct ranking *r, uint32_t string, int64_t value)
{
	struct ranked one = { string, value };
	size_t at = r->count;

	if (r->count == r->max) {
		if (!ranks_before(t, &one, &r->best[r->count - 1]))
			return;
		at--;
	} else {
		r->count++;
	}
	for (; at && ranks_before(t, &one, &r->best[at - 1]); at--)
		r->best[at] = r->best[at - 1];
	r->best[at] = one;
}

static void phase_facts(const struct trace_stages *t)
{
	const struct trace_tally *y = t->tally;
	fact_id by_ph = fact_object(t->job->b, (fact_id){ 0 }, "by_ph");

	for (unsigned ph = 1; ph < 256; ph++) {
		char name[8] = { (char)ph };

		if (ph >= 0x80) /* an incomplete character is shown as its number */
			snprintf(name, sizeof(name), "0x%02x", ph);
		if (y->by_ph[ph])
			fact_int(t->job->b, by_ph, name, (int64_t)y->by_ph[ph]);
	}
	for (uint32_t i = 0; i < t->names->local_count; i++)
		if (y->odd_ph[i])
			fact_int(t->job->b, by_ph, tallied(t, i), (int64_t)y->odd_ph[i]);
	if (y->by_ph[0])
		fact_int(t->job->b, by_ph, "None", (int64_t)y->by_ph[0]);
}

static void category_facts(const struct trace_stages *t)
{
	const struct trace_tally *y = t->tally;
	struct ranking count = { .max = MOST_CATEGORIES }, dur = { .max = MOST_CATEGORIES };
	uint64_t categories = 0;
	fact_id parent;

	for (uint32_t i = 1; i < t->names->local_count; i++) {
		if (!y->category_count[i])
			continue;
		categories++;
		rank(t, &count, i, (int64_t)y->category_count[i]);
		if (y->category_x[i])
			rank(t, &dur, i, y->category_dur[i]);
	}
	fact_int(t->job->b, (fact_id){ 0 }, "distinct_cats", (int64_t)categories);
	parent = fact_object(t->job->b, (fact_id){ 0 }, "by_cat");
	for (size_t i = 0; i < count.count; i++)
		fact_int(t->job->b, parent, tallied(t, count.best[i].string), count.best[i].value);
	parent = fact_object(t->job->b, (fact_id){ 0 }, "X_dur_by_cat");
	for (size_t i = 0; i < dur.count; i++)
		fact_micros(t->job->b, parent, tallied(t, dur.best[i].string), dur.best[i].value);
}

static void name_facts(const struct trace_stages *t)
{
	const struct trace_tally *y = t->tally;
	struct ranking top = { .max = 5 };
	int64_t names = 0, total = 0;
	fact_id list;

	for (uint32_t i = 0; i < t->names->local_count; i++) {
		if (!y->x_count[i])
			continue;
		names++;
		if (__builtin_add_overflow(total, y->x_dur[i], &total))
			total = INT64_MAX;
		rank(t, &top, i, y->x_dur[i]);
	}
	fact_int(t->job->b, (fact_id){ 0 }, "distinct_X_names", names);
	fact_micros(t->job->b, (fact_id){ 0 }, "total_X_dur", total);
	list = fact_list(t->job->b, (fact_id){ 0 }, "top5_X_dur");
	for (size_t i = 0; i < top.count; i++) {
		fact_id item = fact_list(t->job->b, list, NULL);
		uint32_t name = top.best[i].string;

		fact_text(t->job->b, item, NULL, str_from(tallied(t, name)));
		fact_micros(t->job->b, item, NULL, top.best[i].value);
		fact_int(t->job->b, item, NULL, (int64_t)y->x_count[name]);
	}
}

static ow_status thread_facts(const struct trace_stages *t)
{
	uint8_t *threads = mem_zalloc(t->job->mem, t->names->lane_count);
	uint8_t *processes = threads ? mem_zalloc(t->job->mem, t->names->process_count) : NULL;
	int64_t thread_count = 0, process_count = 0;
	fact_id names;

	if (!processes) {
		mem_free(t->job->mem, threads, t->names->lane_count);
		return trace_no_memory(t->job);
	}
	for (uint32_t i = 1; i < t->names->lane_count; i++) {
		const struct trace_lane *lane = &t->names->lanes[i];

		if (!lane->used || (!lane->key.pid.kind && !lane->key.tid.kind))
			continue;
		thread_count += !threads[lane->thread];
		process_count += lane->key.pid.kind && !processes[lane->process];
		threads[lane->thread] = processes[lane->process] = 1;
	}
	mem_free(t->job->mem, threads, t->names->lane_count);
	mem_free(t->job->mem, processes, t->names->process_count);
	fact_int(t->job->b, (fact_id){ 0 }, "distinct_pids", process_count);
	fact_int(t->job->b, (fact_id){ 0 }, "distinct_pid_tid", thread_count);
	names = fact_object(t->job->b, (fact_id){ 0 }, "process_names");
	for (uint32_t i = 0; i < t->names->process_count; i++) {
		const struct trace_process *p = &t->names->processes[i];
		char pid[32];

		if (!p->name.v)
			continue;
		snprintf(pid, sizeof(pid), "%" PRId64, p->pid.value);
		fact_text(t->job->b, names,
			  p->pid.kind == ID_INT	   ? pid
			  : p->pid.kind == ID_TEXT ? text_of(t, (uint32_t)p->pid.value)
						   : "None",
			  model_str(t->job->b->m, p->name));
	}
	return builder_status(t->job->b);
}

struct flow_entry {
	int64_t id;
	uint32_t category, lane; /* category, and lane of the flow's first point */
	uint8_t id_kind, ends;	 /* 1 = starts, 2 = continues or ends */
};

struct flow_set {
	struct map map;
	struct flow_entry *list;
	size_t cap;
	uint32_t count;
};

static bool add_flow(struct mem *mem, struct flow_set *set, const struct trace_point *p)
{
	uint64_t hash = map_hash_u64((uint64_t)p->id, (uint64_t)p->category << 8 | p->id_kind);
	uint8_t end = p->ph == 's' ? 1 : 2;

	for (struct map_iter it = map_find(&set->map, hash); it.value;
	     it = map_next(&set->map, it)) {
		struct flow_entry *e = &set->list[it.value];

		if (e->id != p->id || e->category != p->category || e->id_kind != p->id_kind)
			continue;
		e->ends |= end;
		return true;
	}
	if (!vec_reserve(mem, set->list, set->cap, (size_t)set->count + 1))
		return false;
	set->list[set->count] =
		(struct flow_entry){ p->id, p->category, p->where.lane, p->id_kind, end };
	return map_add(&set->map, hash, set->count++);
}

static bool collect_flows(struct mem *mem, const struct trace_raw *rows, struct flow_set *set)
{
	for (size_t i = 0; i < rows->accepted_count; i++) {
		const struct trace_part *part = &rows->accepted[i];
		const struct trace_worker *w = &rows->workers[part->worker];

		for (size_t r = part->first.points; r < part->last.points; r++) {
			const struct trace_point *p = &w->points[r];

			if (p->ph != 's' && p->ph != 't' && p->ph != 'f')
				continue;
			if (!(p->flags & POINT_OF_SLICE) && !add_flow(mem, set, p))
				return false;
		}
	}
	return true;
}

/* Kineto writes an end of a flow for every call of the runtime, also for those that start nothing on the device: cudaEventQuery,
 * cudaMalloc. An end at work of a device without its launch is worth a note. */
static bool is_plain_call(const struct trace_job *job, const struct trace_names *names,
			  const uint8_t *on_device, const struct flow_entry *e)
{
	struct str category = trace_str(job, names, e->category);

	return (str_eq(category, STR("ac2g")) || str_eq(category, STR("async_cpu_to_gpu"))) &&
	       !on_device[names->lanes[e->lane].key.layer == LAYER_THREAD
				  ? e->lane
				  : names->lanes[e->lane].thread];
}

static uint64_t count_plain_calls(const struct trace_job *job, const struct trace_names *names,
				  const struct flow_set *set)
{
	/* for each lane of a thread: whether it has device work */
	uint8_t *on_device = mem_zalloc(job->mem, names->lane_count);
	uint64_t count = 0;

	if (!on_device)
		return 0;
	for (uint32_t i = 0; i < names->lane_count; i++)
		if (names->lanes[i].key.layer == LAYER_DEVICE)
			on_device[names->lanes[i].thread] = 1;
	for (uint32_t i = 1; i < set->count; i++)
		count += set->list[i].ends != 3 &&
			 is_plain_call(job, names, on_device, &set->list[i]);
	mem_free(job->mem, on_device, names->lane_count);
	return count;
}

void trace_count_flows(const struct trace_job *job, const struct trace_raw *rows,
		       const struct trace_names *names, struct trace_flows *flows)
{
	struct flow_set set = { .count = 1 };

	*flows = (struct trace_flows){ 0 };
	map_init(&set.map, job->mem);
	flows->failed = !collect_flows(job->mem, rows, &set);
	for (uint32_t i = 1; i < set.count; i++) {
		flows->started += set.list[i].ends & 1;
		flows->ended += set.list[i].ends >> 1;
		flows->both += set.list[i].ends == 3;
	}
	if (flows->started + flows->ended > 2 * flows->both)
		flows->plain_calls = count_plain_calls(job, names, &set);
	map_release(&set.map);
	mem_free(job->mem, set.list, set.cap * sizeof(*set.list));
}

static uint64_t unmatched_flows(const struct trace_flows *flows)
{
	return flows->started + flows->ended - 2 * flows->both;
}

static ow_status flow_facts(const struct trace_stages *t, const struct trace_flows *f)
{
	fact_id flows = fact_object(t->job->b, (fact_id){ 0 }, "flow_ids");

	fact_int(t->job->b, flows, "started", (int64_t)f->started);
	fact_int(t->job->b, flows, "stepped_or_ended", (int64_t)f->ended);
	fact_int(t->job->b, flows, "both", (int64_t)f->both);
	return builder_status(t->job->b);
}

static void note(const struct trace_stages *t, enum note_kind kind, uint64_t count, uint64_t offset,
		 const char *text)
{
	if (count)
		builder_note_many(t->job->b, kind, offset, count, "%s", text);
}

static void add_faults(struct trace_faults *to, const struct trace_faults *f)
{
#define ADD(count, first)                                                                          \
	do {                                                                                       \
		if (!to->count)                                                                    \
			to->first = f->first;                                                      \
		to->count += f->count;                                                             \
	} while (0)
	ADD(others, first_other);
	ADD(damaged, first_damage);
	ADD(clamped, first_clamped);
	ADD(negative, first_negative);
	ADD(bad_times, first_bad_time);
#undef ADD
	to->damaged_bytes += f->damaged_bytes;
	to->labels += f->labels;
}

static void note_faults(const struct trace_stages *t, const struct trace_faults *f,
			const struct trace_flows *flows)
{
	const struct trace_tally *y = t->tally;

	note(t, NOTE_DAMAGED, f->damaged, f->first_damage,
	     "parts of the list of events are not JSON and were skipped, up to the next event");
	note(t, NOTE_DROPPED, f->others, f->first_other,
	     "elements of the list are not events: left out");
	note(t, NOTE_DROPPED, y->no_ts, OW_NO_OFFSET, "events have no time: left out");
	note(t, NOTE_DROPPED, f->labels, OW_NO_OFFSET, "counter values are not numbers: left out");
	note(t, NOTE_REPAIRED, f->clamped, f->first_clamped,
	     "times do not fit into 64 bits of nanoseconds: replaced by the limit");
	note(t, NOTE_REPAIRED, f->negative, f->first_negative, "negative durations: replaced by 0");
	note(t, NOTE_REPAIRED, f->bad_times, f->first_bad_time,
	     "times are not numbers: treated as missing");
	note(t, NOTE_INFO, y->unknown_ph, OW_NO_OFFSET,
	     "events have a phase (ph) that the format does not define: kept as points in time");
	note(t, NOTE_REPAIRED, t->pairs->unfinished, OW_NO_OFFSET,
	     "slices have no end: they end with the slice around them");
	note(t, NOTE_DROPPED, t->pairs->surplus_ends, OW_NO_OFFSET,
	     "ends (E) have no begin: left out");
	note(t, NOTE_INFO, t->pairs->unmatched_async, OW_NO_OFFSET,
	     "asynchronous begins or ends have no partner: kept");
	note(t, NOTE_INFO, unmatched_flows(flows) - flows->plain_calls, OW_NO_OFFSET,
	     "flow ids have only one end in the file");
	if (t->header->documents > 1)
		note(t, NOTE_INFO, t->header->documents, OW_NO_OFFSET,
		     "JSON documents in this file, read as one trace");
}

static void ledger(const struct trace_stages *t, const struct trace_faults *f,
		   const struct trace_flows *flows)
{
	const struct trace_tally *y = t->tally;
	fact_id l = fact_object(t->job->b, (fact_id){ 0 }, "ledger");
	uint64_t dropped = y->no_ts + t->pairs->surplus_ends;
	uint64_t kept = y->events - MIN(dropped, y->events);

	fact_int(t->job->b, l, "seen", (int64_t)(y->events + f->others));
	fact_int(t->job->b, l, "kept", (int64_t)kept);
	fact_int(t->job->b, l, "repaired",
		 (int64_t)(f->clamped + f->negative + f->bad_times + t->pairs->unfinished));
	fact_int(t->job->b, l, "dropped", (int64_t)(dropped + f->others));
	fact_int(t->job->b, l, "damaged_bytes", (int64_t)f->damaged_bytes);
	fact_int(t->job->b, l, "unfinished", (int64_t)t->pairs->unfinished);
	fact_int(t->job->b, l, "unmatched_ends", (int64_t)t->pairs->surplus_ends);
	fact_int(t->job->b, l, "unmatched_async", (int64_t)t->pairs->unmatched_async);
	fact_int(t->job->b, l, "unmatched_flows", (int64_t)unmatched_flows(flows));
	if (t->header->truncated)
		fact_int(t->job->b, l, "truncated_at", (int64_t)t->header->truncated_at);
}

ow_status trace_facts(const struct trace_stages *t, const struct trace_flows *flows)
{
	const struct trace_tally *y = t->tally;
	struct trace_faults faults = { 0 };
	fact_id root = { 0 };

	for (size_t i = 0; i < t->rows->accepted_count; i++)
		add_faults(&faults, &t->rows->accepted[i].faults);
	fact_int(t->job->b, root, "trace_events", (int64_t)y->events);
	phase_facts(t);
	category_facts(t);
	OW_TRY(thread_facts(t));
	name_facts(t);
	fact_micros(t->job->b, root, "min_ts", y->min_ts);
	fact_micros(t->job->b, root, "max_ts", y->max_ts);
	fact_micros(t->job->b, root, "max_X_end", y->max_x_end);
	OW_TRY(flow_facts(t, flows));
	fact_int(t->job->b, root, "events_without_ph", (int64_t)y->by_ph[0]);
	fact_int(t->job->b, root, "X_without_dur", (int64_t)y->x_without_dur);
	note_faults(t, &faults, flows);
	ledger(t, &faults, flows);
	return builder_status(t->job->b);
}

static ow_status collect_elements(const struct trace_stages *t, struct trace_listing *list)
{
	size_t count = 0;

	for (size_t i = 0; i < t->rows->accepted_count; i++)
		count += t->rows->accepted[i].last.elements - t->rows->accepted[i].first.elements;
	list->elements = mem_alloc(t->job->mem, count * sizeof(*list->elements));
	if (!list->elements)
		return trace_no_memory(t->job);
	list->cap = count;
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		size_t n = p->last.elements - p->first.elements;

		if (n)
			memcpy(list->elements + list->count,
			       t->rows->workers[p->worker].elements + p->first.elements,
			       n * sizeof(*list->elements));
		list->count += n;
	}
	return OW_OK;
}

static ow_status collect_counters(const struct trace_stages *t, struct trace_listing *list)
{
	size_t count = t->tally->by_ph['C'];

	list->counters = mem_alloc(t->job->mem, count * sizeof(*list->counters));
	if (!list->counters)
		return trace_no_memory(t->job);
	list->counter_cap = count;
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[p->worker];

		for (size_t r = p->first.counters; r < p->last.counters; r++) {
			const struct trace_counter *c = &w->counters[r];

			if (!c->first)
				continue;
			OW_ASSERT(list->counter_count < count);
			list->counters[list->counter_count++] = (struct trace_listing_counter){
				.ts_ns = c->ts,
				.args_offset = c->args_offset,
				.args_size = c->args_size,
				.name = trace_str_id(t->names, c->name),
				.category = trace_str_id(t->names, c->category),
				.track = t->names->lanes[c->where.lane].id
			};
		}
	}
	return OW_OK;
}

/* Returns whether the base is usual; times near the limits are cut when it is added. */
static bool is_usual(int64_t base)
{
	return base > -(INT64_C(1) << 61) && base < INT64_C(1) << 61;
}

ow_status trace_list(const struct trace_stages *t)
{
	struct trace_listing *list = model_make_listing(t->job->b->m, t->job->b->source);
	const struct trace_tally *y = t->tally;

	if (!list)
		return trace_no_memory(t->job);
	*list = (struct trace_listing){ .plain = true,
					.labelled = true,
					.base_ns = t->header->base_ns,
					.events = y->slices,
					.strings = t->job->b->m->strings.count };
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_faults *f = &t->rows->accepted[i].faults;

		list->plain &=
			!f->odd && !f->others && !f->damaged && !t->rows->accepted[i].samples;
		list->labelled &= !f->unlabelled;
	}
	list->plain &= is_usual(t->header->base_ns) &&
		       (y->min_ts == TIME_UNKNOWN || is_usual(y->min_ts)) && is_usual(y->max_ts);
	if (!list->plain)
		return OW_OK;
	OW_TRY(collect_counters(t, list));
	return collect_elements(t, list);
}
