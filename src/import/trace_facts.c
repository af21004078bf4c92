/*
 * trace_facts.c: what `info` tells about a trace, and the ledger of what was repaired, dropped or left
 * open. Times are in microseconds, as the file has them, exact to the nanosecond.
 */
#include "import/trace_int.h"

#define MOST_CATEGORIES 15

static const char *text_of(const struct trace *t, uint32_t string)
{
	return string ? trace_str(t, string).ptr : "None";
}

/* Of a place in the tally. */
static const char *tallied(const struct trace *t, uint32_t local)
{
	return text_of(t, t->local_strings[local]);
}

/* ---- the largest of many ---- */

struct ranked {
	uint32_t string; /* a place in the tally */
	int64_t value;
};

struct ranking {
	struct ranked best[MOST_CATEGORIES];
	size_t count, max;
};

static bool ranks_before(const struct trace *t, const struct ranked *a, const struct ranked *b)
{
	if (a->value != b->value)
		return a->value > b->value;
	return str_cmp(str_from(tallied(t, a->string)), str_from(tallied(t, b->string))) < 0;
}

static void rank(const struct trace *t, struct ranking *r, uint32_t string, int64_t value)
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

/* ---- facts ---- */

static void phase_facts(struct trace *t)
{
	const struct trace_tally *y = &t->tallies[0];
	fact_id by_ph = fact_object(t->b, (fact_id){ 0 }, "by_ph");

	for (unsigned ph = 1; ph < 256; ph++) {
		char name[8] = { (char)ph };

		if (ph >= 0x80) /* half a character: shown as its number */
			snprintf(name, sizeof(name), "0x%02x", ph);
		if (y->by_ph[ph])
			fact_int(t->b, by_ph, name, (int64_t)y->by_ph[ph]);
	}
	for (uint32_t i = 0; i < t->local_count; i++)
		if (y->odd_ph[i])
			fact_int(t->b, by_ph, tallied(t, i), (int64_t)y->odd_ph[i]);
	if (y->by_ph[0])
		fact_int(t->b, by_ph, "None", (int64_t)y->by_ph[0]);
}

static void category_facts(struct trace *t)
{
	const struct trace_tally *y = &t->tallies[0];
	struct ranking count = { .max = MOST_CATEGORIES }, dur = { .max = MOST_CATEGORIES };
	uint64_t categories = 0;
	fact_id parent;

	for (uint32_t i = 1; i < t->local_count; i++) {
		if (!y->category_count[i])
			continue;
		categories++;
		rank(t, &count, i, (int64_t)y->category_count[i]);
		if (y->category_x[i])
			rank(t, &dur, i, y->category_dur[i]);
	}
	fact_int(t->b, (fact_id){ 0 }, "distinct_cats", (int64_t)categories);
	parent = fact_object(t->b, (fact_id){ 0 }, "by_cat");
	for (size_t i = 0; i < count.count; i++)
		fact_int(t->b, parent, tallied(t, count.best[i].string), count.best[i].value);
	parent = fact_object(t->b, (fact_id){ 0 }, "X_dur_by_cat");
	for (size_t i = 0; i < dur.count; i++)
		fact_micros(t->b, parent, tallied(t, dur.best[i].string), dur.best[i].value);
}

static void name_facts(struct trace *t)
{
	const struct trace_tally *y = &t->tallies[0];
	struct ranking top = { .max = 5 };
	int64_t names = 0, total = 0;
	fact_id list;

	for (uint32_t i = 0; i < t->local_count; i++) {
		if (!y->x_count[i])
			continue;
		names++;
		if (__builtin_add_overflow(total, y->x_dur[i], &total))
			total = INT64_MAX;
		rank(t, &top, i, y->x_dur[i]);
	}
	fact_int(t->b, (fact_id){ 0 }, "distinct_X_names", names);
	fact_micros(t->b, (fact_id){ 0 }, "total_X_dur", total);
	list = fact_list(t->b, (fact_id){ 0 }, "top5_X_dur");
	for (size_t i = 0; i < top.count; i++) {
		fact_id item = fact_list(t->b, list, NULL);
		uint32_t name = top.best[i].string;

		fact_text(t->b, item, NULL, str_from(tallied(t, name)));
		fact_micros(t->b, item, NULL, top.best[i].value);
		fact_int(t->b, item, NULL, (int64_t)y->x_count[name]);
	}
}

static ow_status thread_facts(struct trace *t)
{
	uint8_t *threads = mem_zalloc(t->mem, t->lane_count);
	uint8_t *processes = threads ? mem_zalloc(t->mem, t->process_count) : NULL;
	int64_t thread_count = 0, process_count = 0;
	fact_id names;

	if (!processes) {
		mem_free(t->mem, threads, t->lane_count);
		return error_no_memory(t->ctx->err);
	}
	for (uint32_t i = 1; i < t->lane_count; i++) {
		const struct trace_lane *lane = &t->lanes[i];

		if (!lane->used || !lane->key.pid.kind)
			continue;
		thread_count += !threads[lane->thread];
		process_count += !processes[lane->process];
		threads[lane->thread] = processes[lane->process] = 1;
	}
	mem_free(t->mem, threads, t->lane_count);
	mem_free(t->mem, processes, t->process_count);
	fact_int(t->b, (fact_id){ 0 }, "distinct_pids", process_count);
	fact_int(t->b, (fact_id){ 0 }, "distinct_pid_tid", thread_count);
	names = fact_object(t->b, (fact_id){ 0 }, "process_names");
	for (uint32_t i = 0; i < t->process_count; i++) {
		const struct trace_process *p = &t->processes[i];
		char pid[32];

		if (!p->name.v)
			continue;
		snprintf(pid, sizeof(pid), "%" PRId64, p->pid.value);
		fact_text(t->b, names,
			  p->pid.kind == ID_INT	   ? pid
			  : p->pid.kind == ID_TEXT ? text_of(t, (uint32_t)p->pid.value)
						   : "None",
			  model_str(t->b->m, p->name));
	}
	return builder_status(t->b);
}

/* ---- flows: how many ids start, how many end, how many do both ---- */

struct flow_entry {
	int64_t id;
	uint32_t category;
	uint8_t id_kind, ends; /* 1 = starts, 2 = goes on or ends */
};

struct flow_set {
	struct map map;
	struct flow_entry *list;
	size_t cap;
	uint32_t count;
};

static bool add_flow(struct trace *t, struct flow_set *set, const struct trace_point *p)
{
	uint64_t hash = map_hash_u64((uint64_t)p->id, (uint64_t)p->category << 8 | p->id_kind);
	uint8_t end = p->ph == 's' ? 1 : 2;
	void *list = set->list;

	for (struct map_iter it = map_find(&set->map, hash); it.value;
	     it = map_next(&set->map, it)) {
		struct flow_entry *e = &set->list[it.value];

		if (e->id != p->id || e->category != p->category || e->id_kind != p->id_kind)
			continue;
		e->ends |= end;
		return true;
	}
	if (!mem_grow(t->mem, &list, &set->cap, (size_t)set->count + 1, sizeof(*set->list)))
		return false;
	set->list = list;
	set->list[set->count] = (struct flow_entry){ p->id, p->category, p->id_kind, end };
	return map_add(&set->map, hash, set->count++);
}

static bool collect_flows(struct trace *t, struct flow_set *set)
{
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *part = &t->accepted[i];
		const struct trace_worker *w = &t->workers[part->worker];

		for (size_t r = part->first.points; r < part->last.points; r++) {
			const struct trace_point *p = &w->points[r];

			if (p->ph != 's' && p->ph != 't' && p->ph != 'f')
				continue;
			if (!(p->flags & POINT_OF_SLICE) && !add_flow(t, set, p))
				return false;
		}
	}
	return true;
}

void trace_count_flows(struct trace *t)
{
	struct flow_set set = { .count = 1 };

	map_init(&set.map, t->mem);
	t->flows.failed = !collect_flows(t, &set);
	for (uint32_t i = 1; i < set.count; i++) {
		t->flows.started += set.list[i].ends & 1;
		t->flows.ended += set.list[i].ends >> 1;
		t->flows.both += set.list[i].ends == 3;
	}
	map_release(&set.map);
	mem_free(t->mem, set.list, set.cap * sizeof(*set.list));
}

static uint64_t unmatched_flows(const struct trace *t)
{
	return t->flows.started + t->flows.ended - 2 * t->flows.both;
}

static ow_status flow_facts(struct trace *t)
{
	fact_id flows = fact_object(t->b, (fact_id){ 0 }, "flow_ids");

	fact_int(t->b, flows, "started", (int64_t)t->flows.started);
	fact_int(t->b, flows, "stepped_or_ended", (int64_t)t->flows.ended);
	fact_int(t->b, flows, "both", (int64_t)t->flows.both);
	return builder_status(t->b);
}

/* ---- the ledger ---- */

static void note(struct trace *t, enum note_kind kind, uint64_t count, uint64_t offset,
		 const char *text)
{
	if (count)
		builder_note_many(t->b, kind, offset, count, "%s", text);
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

static void note_faults(struct trace *t, const struct trace_faults *f)
{
	const struct trace_tally *y = &t->tallies[0];

	note(t, NOTE_DAMAGED, f->damaged, f->first_damage,
	     "stretches of the list of events that are no JSON; reading goes on at the next event");
	note(t, NOTE_DROPPED, f->others, f->first_other, "elements of the list that are no events");
	note(t, NOTE_DROPPED, y->no_ts, OW_NO_OFFSET, "events without a time, not used");
	note(t, NOTE_DROPPED, f->labels, OW_NO_OFFSET,
	     "counter values that are no numbers, not used");
	note(t, NOTE_REPAIRED, f->clamped, f->first_clamped,
	     "times beyond what 64 bits of nanoseconds hold, cut to that");
	note(t, NOTE_REPAIRED, f->negative, f->first_negative, "negative durations, taken as 0");
	note(t, NOTE_REPAIRED, f->bad_times, f->first_bad_time,
	     "times that are no numbers, taken as missing");
	note(t, NOTE_INFO, y->unknown_ph, OW_NO_OFFSET,
	     "events of a phase (ph) that the format does not know, kept as points in time");
	note(t, NOTE_REPAIRED, t->unfinished, OW_NO_OFFSET,
	     "slices without an end, closed with what is around them");
	note(t, NOTE_DROPPED, t->surplus_ends, OW_NO_OFFSET, "ends (E) without a begin");
	note(t, NOTE_INFO, t->unmatched_async, OW_NO_OFFSET,
	     "asynchronous begins or ends without a partner, kept");
	note(t, NOTE_INFO, unmatched_flows(t), OW_NO_OFFSET,
	     "flow ids with only one end in the file");
	if (t->documents > 1)
		note(t, NOTE_INFO, t->documents, OW_NO_OFFSET,
		     "documents in this file, read as one");
}

static void ledger(struct trace *t, const struct trace_faults *f)
{
	const struct trace_tally *y = &t->tallies[0];
	fact_id l = fact_object(t->b, (fact_id){ 0 }, "ledger");
	uint64_t dropped = y->no_ts + t->surplus_ends;
	uint64_t kept = y->events - MIN(dropped, y->events);

	fact_int(t->b, l, "seen", (int64_t)(y->events + f->others));
	fact_int(t->b, l, "kept", (int64_t)kept);
	fact_int(t->b, l, "repaired",
		 (int64_t)(f->clamped + f->negative + f->bad_times + t->unfinished));
	fact_int(t->b, l, "dropped", (int64_t)(dropped + f->others));
	fact_int(t->b, l, "damaged_bytes", (int64_t)f->damaged_bytes);
	fact_int(t->b, l, "unfinished", (int64_t)t->unfinished);
	fact_int(t->b, l, "unmatched_ends", (int64_t)t->surplus_ends);
	fact_int(t->b, l, "unmatched_async", (int64_t)t->unmatched_async);
	fact_int(t->b, l, "unmatched_flows", (int64_t)unmatched_flows(t));
	if (t->truncated)
		fact_int(t->b, l, "truncated_at", (int64_t)t->truncated_at);
}

ow_status trace_facts(struct trace *t)
{
	const struct trace_tally *y = &t->tallies[0];
	struct trace_faults faults = { 0 };
	fact_id root = { 0 };

	for (size_t i = 0; i < t->accepted_count; i++)
		add_faults(&faults, &t->accepted[i].faults);
	fact_int(t->b, root, "trace_events", (int64_t)y->events);
	phase_facts(t);
	category_facts(t);
	OW_TRY(thread_facts(t));
	name_facts(t);
	fact_micros(t->b, root, "min_ts", y->min_ts);
	fact_micros(t->b, root, "max_ts", y->max_ts);
	fact_micros(t->b, root, "max_X_end", y->max_x_end);
	OW_TRY(flow_facts(t));
	fact_int(t->b, root, "events_without_ph", (int64_t)y->by_ph[0]);
	fact_int(t->b, root, "X_without_dur", (int64_t)y->x_without_dur);
	note_faults(t, &faults);
	ledger(t, &faults);
	return builder_status(t->b);
}
