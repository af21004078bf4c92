/*
 * trace_merge.c: the second stage (struct trace_names, struct trace_tally): makes one set of strings, tracks and
 * processes from those of all workers, applies the metadata events, renumbers the rows, and counts the events for the
 * facts. It goes through the parts in file order, so that numbers do not depend on which worker read which part.
 */
#include "import/chrome/trace_int.h"

#include "base/vec.h"

struct merging {
	const struct trace_job *job;
	struct trace_raw *rows;
	struct trace_names *names;
	struct trace_tally *tallies; /* one tally for each worker */
	atomic_size_t next_worker;
};

/* Decodes one text into the model. The empty text gets a number of its own, because an empty category
 * is not the same as none. */
static uint32_t intern(struct merging *t, struct str raw, struct buf *scratch, uint64_t *replaced)
{
	if (!raw.len)
		return TRACE_EMPTY;
	if (json_is_plain(raw))
		return builder_str(t->job->b, raw).v;
	buf_clear(scratch);
	*replaced += json_decode(raw, scratch) > 0;
	if (scratch->failed) {
		builder_no_memory(t->job->b);
		return 0;
	}
	return scratch->len ? builder_str(t->job->b, buf_str(scratch)).v : TRACE_EMPTY;
}

static void intern_range(struct merging *t, unsigned worker, uint32_t first, uint32_t last,
			 struct buf *scratch, uint64_t *replaced)
{
	const struct trace_dict *dict = &t->rows->workers[worker].dict;
	uint32_t *strings = t->names->numbers[worker].strings;

	for (uint32_t i = MAX(first, 1u); i < last; i++)
		if (strings[i] == TRACE_FULL)
			strings[i] = intern(t, trace_dict_text(dict, i), scratch, replaced);
}

struct numbering {
	struct merging *t;
	uint32_t first_new; /* strings from this number on are new in this file */
	uint32_t new_count;
	struct map old; /* string of the model → number, for strings that are not new */
};

/* Returns the local number of a string: new strings of the model first, in order, then the empty text, then all
 * others. 0 if memory runs out. */
static uint32_t number_of(struct numbering *n, uint32_t string)
{
	struct merging *t = n->t;
	uint64_t hash = map_hash_u64(string, 0);

	if (string >= n->first_new) /* string_count, the empty text, is included here */
		return string - n->first_new + 1;
	for (struct map_iter it = map_find(&n->old, hash); it.value; it = map_next(&n->old, it))
		if (t->names->local_strings[it.value] == string)
			return it.value;
	if (!map_add(&n->old, hash, t->names->local_count))
		return 0;
	t->names->local_strings[t->names->local_count] = string;
	return t->names->local_count++;
}

/* Returns an upper bound of the number of local strings: new ones, and old ones of the workers. */
static size_t count_locals(const struct numbering *n)
{
	size_t count = (size_t)n->new_count + 2;

	for (unsigned i = 0; i < n->t->rows->worker_count; i++) {
		const uint32_t *strings = n->t->names->numbers[i].strings;

		for (uint32_t s = 1; s < n->t->rows->workers[i].dict.count; s++)
			count += strings[s] < n->first_new;
	}
	return count;
}

static bool number_strings_of(struct numbering *n, unsigned worker)
{
	struct trace_numbers *numbers = &n->t->names->numbers[worker];
	uint32_t count = n->t->rows->workers[worker].dict.count;

	numbers->locals = mem_alloc(n->t->job->mem, count * sizeof(*numbers->locals));
	if (!numbers->locals)
		return false;
	numbers->locals[0] = 0;
	for (uint32_t s = 1; s < count; s++) {
		numbers->locals[s] = number_of(n, numbers->strings[s]);
		if (!numbers->locals[s])
			return false;
	}
	return true;
}

static ow_status number_strings(struct merging *t, uint32_t first_new)
{
	struct numbering n = { .t = t,
			       .first_new = first_new,
			       .new_count = t->names->string_count - first_new };
	bool ok;

	t->names->local_cap = count_locals(&n);
	t->names->local_strings =
		mem_alloc(t->job->mem, t->names->local_cap * sizeof(*t->names->local_strings));
	if (!t->names->local_strings)
		return trace_no_memory(t->job);
	t->names->local_strings[0] = 0;
	for (uint32_t i = 0; i <= n.new_count; i++)
		t->names->local_strings[i + 1] = first_new + i;
	t->names->local_count = n.new_count + 2;
	map_init(&n.old, t->job->mem);
	ok = true;
	for (unsigned i = 0; i < t->rows->worker_count && ok; i++)
		ok = number_strings_of(&n, i);
	map_release(&n.old);
	return ok ? OW_OK : trace_no_memory(t->job);
}

static ow_status merge_strings(struct merging *t)
{
	uint32_t first_new = t->job->b->m->strings.count;
	uint64_t replaced = 0;
	struct buf scratch;

	buf_init(&scratch, t->job->mem);
	for (unsigned i = 0; i < t->rows->worker_count; i++) {
		size_t count = t->rows->workers[i].dict.count;
		uint32_t *strings = mem_alloc(t->job->mem, count * sizeof(*strings));

		if (!strings)
			return trace_no_memory(t->job);
		memset(strings, 0xff, count * sizeof(*strings));
		strings[0] = 0;
		t->names->numbers[i].strings = strings;
	}
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *part = &t->rows->accepted[i];

		intern_range(t, part->worker, part->first.strings, part->last.strings, &scratch,
			     &replaced);
	}
	/* strings that a worker first met in an unused part, and again in a used one */
	for (unsigned i = 0; i < t->rows->worker_count; i++)
		intern_range(t, i, 1, t->rows->workers[i].dict.count, &scratch, &replaced);
	buf_release(&scratch);
	if (replaced)
		builder_note_many(t->job->b, NOTE_REPAIRED, OW_NO_OFFSET, replaced,
				  "distinct texts have invalid UTF-8 or half surrogate pairs: "
				  "replaced by U+FFFD");
	t->names->string_count = t->job->b->m->strings.count;
	for (unsigned i = 0; i < t->rows->worker_count; i++) {
		uint32_t *strings = t->names->numbers[i].strings;

		for (uint32_t s = 1; s < t->rows->workers[i].dict.count; s++)
			if (strings[s] == TRACE_EMPTY)
				strings[s] = t->names->string_count;
	}
	OW_TRY(builder_status(t->job->b));
	return number_strings(t, first_new);
}

static uint64_t hash_id(struct trace_id id)
{
	return map_hash_u64((uint64_t)id.value, id.kind);
}

static bool same_id(struct trace_id a, struct trace_id b)
{
	return a.value == b.value && a.kind == b.kind;
}

static uint32_t process_of(const struct trace_job *job, struct trace_names *names,
			   struct trace_id pid)
{
	uint64_t hash = hash_id(pid);

	for (struct map_iter it = map_find(&names->process_map, hash); it.value;
	     it = map_next(&names->process_map, it))
		if (same_id(names->processes[it.value].pid, pid))
			return it.value;
	if (names->process_count == TRACE_FULL ||
	    !vec_reserve(job->mem, names->processes, names->process_cap,
			 (size_t)names->process_count + 1))
		return TRACE_FULL;
	names->processes[names->process_count] = (struct trace_process){ .pid = pid };
	if (names->process_count && !map_add(&names->process_map, hash, names->process_count))
		return TRACE_FULL;
	return names->process_count++;
}

uint32_t trace_lane_of(const struct trace_job *job, struct trace_names *names,
		       const struct trace_track *key)
{
	uint64_t hash = map_hash_u64(hash_id(key->pid), hash_id(key->tid) + key->layer);
	uint32_t process, lane;

	for (struct map_iter it = map_find(&names->lane_map, hash); it.value;
	     it = map_next(&names->lane_map, it)) {
		const struct trace_track *have = &names->lanes[it.value].key;

		if (same_id(have->pid, key->pid) && same_id(have->tid, key->tid) &&
		    have->layer == key->layer)
			return it.value;
	}
	process = process_of(job, names, key->pid);
	if (process == TRACE_FULL || names->lane_count == TRACE_FULL ||
	    !vec_reserve(job->mem, names->lanes, names->lane_cap, (size_t)names->lane_count + 1))
		return TRACE_FULL;
	lane = names->lane_count;
	names->lanes[lane] = (struct trace_lane){ .key = *key, .process = process, .thread = lane };
	if (!map_add(&names->lane_map, hash, lane))
		return TRACE_FULL;
	names->lane_count++;
	if (key->layer != LAYER_THREAD) {
		struct trace_track thread = { .pid = key->pid, .tid = key->tid };
		uint32_t of = trace_lane_of(job, names, &thread);

		if (of == TRACE_FULL)
			return TRACE_FULL;
		names->lanes[lane].thread = of;
	}
	return lane;
}

static struct trace_id model_id(const struct trace_numbers *n, struct trace_id id)
{
	if (id.kind == ID_TEXT)
		id.value = n->strings[id.value];
	return id;
}

static bool rows_were_refused(const struct merging *t)
{
	size_t rows = 0, used = 0;

	for (unsigned i = 0; i < t->rows->worker_count; i++) {
		struct trace_counts c = trace_worker_counts(&t->rows->workers[i]);

		rows += c.slices + c.points + c.counters + c.metas;
	}
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];

		used += p->last.slices - p->first.slices + p->last.points - p->first.points +
			p->last.counters - p->first.counters + p->last.metas - p->first.metas;
	}
	return rows != used;
}

/* Marks used tracks; tracks with rows of refused parts only do not exist. */
static void mark_used(const struct merging *t, uint8_t *used[])
{
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];
		const struct trace_worker *w = &t->rows->workers[p->worker];
		uint8_t *mine = used[p->worker];

		for (size_t r = p->first.slices; r < p->last.slices; r++)
			mine[w->slices.where[r].track] = 1;
		for (size_t r = p->first.points; r < p->last.points; r++)
			mine[w->points[r].where.track] = 1;
		for (size_t r = p->first.counters; r < p->last.counters; r++)
			mine[w->counters[r].where.track] = 1;
		for (size_t r = p->first.metas; r < p->last.metas; r++)
			mine[w->metas[r].track] = 1;
	}
}

static ow_status find_used(const struct merging *t, uint8_t *used[])
{
	bool refused = rows_were_refused(t);

	for (unsigned i = 0; i < t->rows->worker_count; i++) {
		size_t count = t->rows->workers[i].tracks.count;

		used[i] = mem_alloc(t->job->mem, count);
		if (!used[i])
			return trace_no_memory(t->job);
		memset(used[i], !refused, count);
	}
	if (refused)
		mark_used(t, used);
	return OW_OK;
}

static ow_status merge_tracks_of(struct merging *t, unsigned worker, const uint8_t *used)
{
	const struct trace_tracks *tracks = &t->rows->workers[worker].tracks;
	struct trace_numbers *numbers = &t->names->numbers[worker];

	numbers->lanes = mem_zalloc(t->job->mem, tracks->count * sizeof(*numbers->lanes));
	if (!numbers->lanes)
		return trace_no_memory(t->job);
	for (uint32_t i = 1; i < tracks->count; i++) {
		const struct trace_track *local = &tracks->list[i];
		struct trace_track key = { .pid = model_id(numbers, local->pid),
					   .tid = model_id(numbers, local->tid),
					   .layer = local->layer };
		uint32_t lane;

		if (!used[i])
			continue;
		lane = trace_lane_of(t->job, t->names, &key);
		if (lane == TRACE_FULL)
			return trace_no_memory(t->job);
		t->names->lanes[lane].used = true;
		numbers->lanes[i] = lane;
	}
	return OW_OK;
}

static ow_status merge_tracks(struct merging *t)
{
	uint8_t *used[PARALLEL_MAX + 1] = { 0 };
	ow_status status;

	/* lane 0 and process 0 stand for "no track" and "no pid" */
	if (!vec_reserve(t->job->mem, t->names->lanes, t->names->lane_cap, 16) ||
	    process_of(t->job, t->names, (struct trace_id){ 0 }) == TRACE_FULL)
		return trace_no_memory(t->job);
	t->names->lanes[0] = (struct trace_lane){ 0 };
	t->names->lane_count = 1;
	status = find_used(t, used);
	for (unsigned i = 0; i < t->rows->worker_count && status == OW_OK; i++)
		status = merge_tracks_of(t, i, used[i]);
	for (unsigned i = 0; i < t->rows->worker_count; i++)
		mem_free(t->job->mem, used[i], t->rows->workers[i].tracks.count);
	return status;
}

/* Returns whether a name is a profiler's name for a thread without one: "thread 108 (python3)",
 * "thread 108". */
static bool is_generic(struct str name)
{
	return str_starts(name, STR("thread ")) &&
	       (!str_has(name, STR("(")) || str_has(name, STR("(python")));
}

static void name_thread(struct merging *t, struct trace_lane *lane, uint32_t text)
{
	struct str name = trace_str(t->job, t->names, text),
		   old = model_str(t->job->b->m, lane->name);

	if (!name.len || (old.len && is_generic(name) && !is_generic(old)))
		return;
	lane->name = (str_id){ text };
}

static int32_t sort_index(int64_t number)
{
	return (int32_t)MAX((int64_t)INT32_MIN, MIN(number, (int64_t)INT32_MAX));
}

static void apply_meta(struct merging *t, const struct trace_numbers *n, const struct trace_meta *m)
{
	struct trace_lane *lane = &t->names->lanes[n->lanes[m->track]];
	struct trace_process *process = &t->names->processes[lane->process];
	uint32_t text = n->strings[m->text];

	switch ((enum trace_meta_kind)m->kind) {
	case META_PROCESS_NAME:
		if (trace_str(t->job, t->names, text).len)
			process->name = (str_id){ text };
		break;
	case META_PROCESS_LABELS:
		if (trace_str(t->job, t->names, text).len)
			process->labels = (str_id){ text };
		break;
	case META_PROCESS_SORT:
		process->sort = sort_index(m->number);
		break;
	case META_THREAD_NAME:
		name_thread(t, &t->names->lanes[lane->thread], text);
		break;
	case META_THREAD_SORT:
		t->names->lanes[lane->thread].sort = sort_index(m->number);
		break;
	case META_OTHER:
		break;
	}
}

static void apply_metadata(struct merging *t)
{
	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *p = &t->rows->accepted[i];

		for (size_t r = p->first.metas; r < p->last.metas; r++)
			apply_meta(t, &t->names->numbers[p->worker],
				   &t->rows->workers[p->worker].metas[r]);
	}
}

struct array {
	void **ptr;
	size_t size;
};

#define TALLY_ARRAYS(t)                                                                            \
	{                                                                                          \
		{ (void **)&(t)->category_count, sizeof(uint64_t) },                               \
			{ (void **)&(t)->category_dur, sizeof(int64_t) },                          \
			{ (void **)&(t)->category_x, 1 },                                          \
			{ (void **)&(t)->x_count, sizeof(uint64_t) },                              \
			{ (void **)&(t)->x_dur, sizeof(int64_t) },                                 \
			{ (void **)&(t)->odd_ph, sizeof(uint64_t) },                               \
	}

static bool init_tally(struct merging *t, struct trace_tally *tally)
{
	struct array arrays[] = TALLY_ARRAYS(tally);

	tally->min_ts = tally->max_ts = tally->max_x_end = TIME_UNKNOWN;
	for (size_t i = 0; i < ARRAY_COUNT(arrays); i++) {
		*arrays[i].ptr = mem_zalloc(t->job->mem, t->names->local_count * arrays[i].size);
		if (!*arrays[i].ptr)
			return false;
	}
	tally->lane_slices =
		mem_zalloc(t->job->mem, t->names->lane_count * sizeof(*tally->lane_slices));
	return tally->lane_slices;
}

void trace_tally_release(const struct trace_job *job, const struct trace_names *names,
			 struct trace_tally *tally)
{
	struct array arrays[] = TALLY_ARRAYS(tally);

	for (size_t i = 0; i < ARRAY_COUNT(arrays); i++) {
		mem_free(job->mem, *arrays[i].ptr, names->local_count * arrays[i].size);
		*arrays[i].ptr = NULL;
	}
	mem_free(job->mem, tally->lane_slices, names->lane_count * sizeof(*tally->lane_slices));
	tally->lane_slices = NULL;
}

OW_ALWAYS_INLINE int64_t add_times(int64_t a, int64_t b)
{
	int64_t sum;

	if (OW_UNLIKELY(__builtin_add_overflow(a, b, &sum)))
		return a < 0 ? -INT64_MAX : INT64_MAX;
	return sum;
}

OW_ALWAYS_INLINE void count_time(struct trace_tally *y, int64_t ts)
{
	if (OW_UNLIKELY(y->min_ts == TIME_UNKNOWN || ts < y->min_ts))
		y->min_ts = ts;
	if (ts > y->max_ts) /* TIME_UNKNOWN is below all times */
		y->max_ts = ts;
}

OW_ALWAYS_INLINE void count_complete(struct trace_tally *y, uint32_t name, uint32_t category,
				     int64_t dur)
{
	y->x_count[name]++;
	y->category_x[category] = 1;
	if (OW_UNLIKELY(dur == TIME_UNKNOWN)) {
		y->x_without_dur++;
		return;
	}
	y->x_dur[name] = add_times(y->x_dur[name], dur);
	y->category_dur[category] = add_times(y->category_dur[category], dur);
}

/* Returns whether a phase letter is defined; events with others are kept as points in time and
 * counted. */
static bool is_known_ph(uint8_t ph)
{
	return ph && strchr("XBEiIRbnestfSTpFCPNODMvVc()", ph);
}

static void tally_slices(struct trace_slices *s, const struct trace_numbers *n,
			 const struct trace_part *part, struct trace_tally *y)
{
	const uint32_t *strings = n->strings, *locals = n->locals, *lanes = n->lanes;

	y->slices += part->last.slices - part->first.slices;
	for (size_t i = part->first.slices; i < part->last.slices; i++) {
		uint32_t name = locals[s->name[i]], category = locals[s->category[i]];
		uint32_t label = s->label ? strings[s->label[i]] : 0;
		int64_t ts = s->ts[i];
		uint8_t ph = s->ph[i];

		s->name[i] = strings[s->name[i]];
		s->category[i] = strings[s->category[i]];
		s->where[i].lane = lanes[s->where[i].track];
		y->lane_slices[s->where[i].lane]++;
		y->by_ph[ph]++;
		y->category_count[category]++;
		if (label)
			s->label[i] = label;
		count_time(y, ts);
		if (OW_LIKELY(ph == 'X')) {
			int64_t dur = s->dur[i];
			int64_t end = dur == TIME_UNKNOWN ? ts : add_times(ts, dur);

			count_complete(y, name, category, dur);
			if (end > y->max_x_end)
				y->max_x_end = end;
		}
	}
}

static int64_t model_number(const struct trace_numbers *n, int64_t id, uint8_t kind)
{
	return kind == ID_TEXT ? (int64_t)n->strings[id] : id;
}

static void tally_point(const struct trace_numbers *n, struct trace_point *p, struct trace_tally *y)
{
	uint32_t name = n->locals[p->name], category = n->locals[p->category];
	uint32_t letter = p->flags & POINT_ODD_PH && p->id_kind == ID_TEXT ? n->locals[p->id] : 0;

	p->name = n->strings[p->name];
	p->category = n->strings[p->category];
	p->scope = n->strings[p->scope];
	p->where.lane = n->lanes[p->where.track];
	p->id = model_number(n, p->id, p->id_kind);
	if (p->flags & (POINT_OF_SLICE | POINT_SAMPLE))
		return; /* the slice is counted; the flow end itself is not an event of the list */
	if (!(p->flags & POINT_ODD_PH))
		y->by_ph[p->ph]++;
	else if (letter)
		y->odd_ph[letter]++;
	else
		y->by_ph[0]++;
	y->category_count[category]++;
	if (!(p->flags & POINT_NO_TS))
		count_time(y, p->ts);
	else if (p->ph || p->id_kind) /* an event without ph is padding: {} */
		y->no_ts++;
	if (p->ph == 'X')
		count_complete(y, name, category, p->id);
}

static void tally_rest(struct trace_worker *w, const struct trace_numbers *n,
		       const struct trace_part *part, struct trace_tally *y)
{
	for (size_t i = part->first.points; i < part->last.points; i++)
		tally_point(n, &w->points[i], y);
	for (size_t i = part->first.counters; i < part->last.counters; i++) {
		struct trace_counter *c = &w->counters[i];
		uint32_t category = n->locals[c->category];

		c->name = n->strings[c->name];
		c->series = n->strings[c->series];
		c->instance = n->strings[c->instance];
		c->category = n->strings[c->category];
		c->where.lane = n->lanes[c->where.track];
		if (!c->first)
			continue;
		y->by_ph['C']++;
		y->category_count[category]++;
		if (c->no_ts)
			y->no_ts++;
		else
			count_time(y, c->ts);
	}
	for (size_t i = part->first.metas; i < part->last.metas; i++) {
		y->by_ph['M']++;
		y->category_count[n->locals[w->metas[i].category]]++;
	}
	for (size_t i = part->first.marks; i < part->last.marks; i++) {
		struct trace_mark *m = &w->marks[i];

		m->id.value = model_number(n, m->id.value, m->id.kind);
		m->frame.value = model_number(n, m->frame.value, m->frame.kind);
		m->scope = n->strings[m->scope];
	}
}

static void tally_worker(struct merging *t, unsigned number)
{
	struct trace_worker *w = &t->rows->workers[number];
	const struct trace_numbers *n = &t->names->numbers[number];

	for (size_t i = 0; i < t->rows->accepted_count; i++) {
		const struct trace_part *part = &t->rows->accepted[i];

		if (part->worker != number)
			continue;
		tally_slices(&w->slices, n, part, &t->tallies[number]);
		tally_rest(w, n, part, &t->tallies[number]);
	}
}

static void tally_workers(void *arg, unsigned thread)
{
	struct merging *t = arg;

	(void)thread;
	for (;;) {
		size_t i = atomic_fetch_add(&t->next_worker, 1);

		if (i >= t->rows->worker_count)
			return;
		tally_worker(t, (unsigned)i);
	}
}

static void add_tally(const struct merging *t, struct trace_tally *to, const struct trace_tally *y)
{
	for (size_t i = 0; i < 256; i++)
		to->by_ph[i] += y->by_ph[i];
	to->x_without_dur += y->x_without_dur;
	to->slices += y->slices;
	to->no_ts += y->no_ts;
	if (y->min_ts != TIME_UNKNOWN) {
		count_time(to, y->min_ts);
		count_time(to, y->max_ts);
	}
	to->max_x_end = MAX(to->max_x_end, y->max_x_end);
	for (size_t i = 0; i < t->names->local_count; i++) {
		to->category_count[i] += y->category_count[i];
		to->category_dur[i] = add_times(to->category_dur[i], y->category_dur[i]);
		to->category_x[i] |= y->category_x[i];
		to->x_count[i] += y->x_count[i];
		to->x_dur[i] = add_times(to->x_dur[i], y->x_dur[i]);
		to->odd_ph[i] += y->odd_ph[i];
	}
}

static void add_up(struct merging *t)
{
	struct trace_tally *y = &t->tallies[0];

	for (unsigned i = 0; i < t->rows->worker_count; i++)
		for (uint32_t lane = 0; lane < t->names->lane_count; lane++)
			t->names->lanes[lane].count += t->tallies[i].lane_slices[lane];
	for (unsigned i = 1; i < t->rows->worker_count; i++)
		add_tally(t, y, &t->tallies[i]);
	for (size_t ph = 0; ph < 256; ph++) {
		y->events += y->by_ph[ph];
		if (ph && !is_known_ph((uint8_t)ph))
			y->unknown_ph += y->by_ph[ph];
	}
	for (size_t i = 0; i < t->names->local_count; i++) {
		y->events += y->odd_ph[i];
		y->unknown_ph += y->odd_ph[i];
		y->has_categories |= i && y->category_count[i];
	}
}

static ow_status tally_all(struct merging *t, struct trace_tally *sum)
{
	unsigned count = t->rows->worker_count;
	bool ok = true;

	t->tallies = mem_zalloc(t->job->mem, count * sizeof(*t->tallies));
	if (!t->tallies)
		return trace_no_memory(t->job);
	for (unsigned i = 0; i < count && ok; i++)
		ok = init_tally(t, &t->tallies[i]);
	if (ok) {
		parallel_run(t->job->options.threads, tally_workers, t);
		add_up(t);
		*sum = t->tallies[0];
		t->tallies[0] = (struct trace_tally){ 0 };
		mem_free(t->job->mem, sum->lane_slices,
			 t->names->lane_count * sizeof(*sum->lane_slices));
		sum->lane_slices = NULL;
	}
	for (unsigned i = 0; i < count; i++)
		trace_tally_release(t->job, t->names, &t->tallies[i]);
	mem_free(t->job->mem, t->tallies, count * sizeof(*t->tallies));
	return ok ? OW_OK : trace_no_memory(t->job);
}

ow_status trace_merge(const struct trace_job *job, struct trace_raw *rows,
		      struct trace_names *names, struct trace_tally *tally)
{
	struct merging t = { .job = job, .rows = rows, .names = names };

	map_init(&names->lane_map, job->mem);
	map_init(&names->process_map, job->mem);
	OW_TRY(merge_strings(&t));
	OW_TRY(merge_tracks(&t));
	apply_metadata(&t);
	return tally_all(&t, tally);
}

void trace_names_release(const struct trace_job *job, const struct trace_raw *rows,
			 struct trace_names *names)
{
	for (unsigned i = 0; rows->workers && i < rows->worker_count; i++) {
		const struct trace_worker *w = &rows->workers[i];
		struct trace_numbers *n = &names->numbers[i];

		mem_free(job->mem, n->strings, w->dict.count * sizeof(*n->strings));
		mem_free(job->mem, n->locals, w->dict.count * sizeof(*n->locals));
		mem_free(job->mem, n->lanes, w->tracks.count * sizeof(*n->lanes));
	}
	mem_free(job->mem, names->local_strings, names->local_cap * sizeof(*names->local_strings));
	mem_free(job->mem, names->lanes, names->lane_cap * sizeof(*names->lanes));
	mem_free(job->mem, names->processes, names->process_cap * sizeof(*names->processes));
	map_release(&names->lane_map);
	map_release(&names->process_map);
}
