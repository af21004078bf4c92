/*
 * trace_merge.c: makes one set of strings, tracks and processes of what the workers have met, and applies
 * the metadata events. Goes through the parts in file order, so that the numbers do not depend on which
 * worker read what.
 */
#include "import/trace_int.h"

/* ---- strings ---- */

/* Decodes one text into the model. The empty text gets a number of its own, because an empty category
 * is not the same as none. */
static uint32_t intern(struct trace *t, struct str raw, struct buf *scratch, uint64_t *replaced)
{
	if (!raw.len)
		return TRACE_EMPTY;
	if (json_is_plain(raw))
		return builder_str(t->b, raw).v;
	buf_clear(scratch);
	*replaced += json_decode(raw, scratch) > 0;
	if (scratch->failed) {
		builder_no_memory(t->b);
		return 0;
	}
	return scratch->len ? builder_str(t->b, buf_str(scratch)).v : TRACE_EMPTY;
}

static void intern_range(struct trace *t, struct trace_worker *w, uint32_t first, uint32_t last,
			 struct buf *scratch, uint64_t *replaced)
{
	for (uint32_t i = MAX(first, 1u); i < last; i++)
		if (w->strings[i] == TRACE_FULL)
			w->strings[i] = intern(t, trace_dict_text(&w->dict, i), scratch, replaced);
}

/* ---- numbers of strings in the file ---- */

struct numbering {
	struct trace *t;
	uint32_t first_new; /* strings from there on were met for the first time in this file */
	uint32_t new_count;
	struct map old; /* by string → number, of the others */
};

/* Those that are new to the model are numbered as they are there, then comes the empty text, then all others. 0 without
 * memory. */
static uint32_t number_of(struct numbering *n, uint32_t string)
{
	struct trace *t = n->t;
	uint64_t hash = map_hash_u64(string, 0);

	if (string >= n->first_new) /* trace.string_count, too */
		return string - n->first_new + 1;
	for (struct map_iter it = map_find(&n->old, hash); it.value; it = map_next(&n->old, it))
		if (t->local_strings[it.value] == string)
			return it.value;
	if (!map_add(&n->old, hash, t->local_count))
		return 0;
	t->local_strings[t->local_count] = string;
	return t->local_count++;
}

/* How many there may be: the new ones, and those of the workers that are old. */
static size_t count_locals(const struct numbering *n)
{
	size_t count = (size_t)n->new_count + 2;

	for (unsigned i = 0; i < n->t->worker_count; i++) {
		const struct trace_worker *w = &n->t->workers[i];

		for (uint32_t s = 1; s < w->dict.count; s++)
			count += w->strings[s] < n->first_new;
	}
	return count;
}

static bool number_strings_of(struct numbering *n, struct trace_worker *w)
{
	w->locals = mem_alloc(n->t->mem, w->dict.count * sizeof(*w->locals));
	if (!w->locals)
		return false;
	w->locals[0] = 0;
	for (uint32_t s = 1; s < w->dict.count; s++) {
		w->locals[s] = number_of(n, w->strings[s]);
		if (!w->locals[s])
			return false;
	}
	return true;
}

static ow_status number_strings(struct trace *t, uint32_t first_new)
{
	struct numbering n = { .t = t,
			       .first_new = first_new,
			       .new_count = t->string_count - first_new };
	bool ok;

	t->local_cap = count_locals(&n);
	t->local_strings = mem_alloc(t->mem, t->local_cap * sizeof(*t->local_strings));
	if (!t->local_strings)
		return error_no_memory(t->ctx->err);
	t->local_strings[0] = 0;
	for (uint32_t i = 0; i <= n.new_count; i++)
		t->local_strings[i + 1] = first_new + i;
	t->local_count = n.new_count + 2;
	map_init(&n.old, t->mem);
	ok = true;
	for (unsigned i = 0; i < t->worker_count && ok; i++)
		ok = number_strings_of(&n, &t->workers[i]);
	map_release(&n.old);
	return ok ? OW_OK : error_no_memory(t->ctx->err);
}

static ow_status merge_strings(struct trace *t)
{
	uint32_t first_new = t->b->m->strings.count;
	uint64_t replaced = 0;
	struct buf scratch;

	buf_init(&scratch, t->mem);
	for (unsigned i = 0; i < t->worker_count; i++) {
		struct trace_worker *w = &t->workers[i];

		w->strings = mem_alloc(t->mem, w->dict.count * sizeof(*w->strings));
		if (!w->strings)
			return error_no_memory(t->ctx->err);
		memset(w->strings, 0xff, w->dict.count * sizeof(*w->strings));
		w->strings[0] = 0;
	}
	for (size_t i = 0; i < t->accepted_count; i++) {
		struct trace_part *part = &t->accepted[i];

		intern_range(t, &t->workers[part->worker], part->first.strings, part->last.strings,
			     &scratch, &replaced);
	}
	/* What a worker first met in a part that was not used, but met again in one that was. */
	for (unsigned i = 0; i < t->worker_count; i++)
		intern_range(t, &t->workers[i], 1, t->workers[i].dict.count, &scratch, &replaced);
	buf_release(&scratch);
	if (replaced)
		builder_note_many(
			t->b, NOTE_REPAIRED, OW_NO_OFFSET, replaced,
			"distinct texts with invalid UTF-8 or half surrogate pairs: U+FFFD stands "
			"in their place");
	t->string_count = t->b->m->strings.count;
	for (unsigned i = 0; i < t->worker_count; i++) {
		struct trace_worker *w = &t->workers[i];

		for (uint32_t s = 1; s < w->dict.count; s++)
			if (w->strings[s] == TRACE_EMPTY)
				w->strings[s] = t->string_count;
	}
	OW_TRY(builder_status(t->b));
	return number_strings(t, first_new);
}

/* ---- tracks ---- */

static uint64_t hash_id(struct trace_id id)
{
	return map_hash_u64((uint64_t)id.value, id.kind);
}

static bool same_id(struct trace_id a, struct trace_id b)
{
	return a.value == b.value && a.kind == b.kind;
}

static uint32_t process_of(struct trace *t, struct trace_id pid)
{
	uint64_t hash = hash_id(pid);
	void *list = t->processes;

	for (struct map_iter it = map_find(&t->process_map, hash); it.value;
	     it = map_next(&t->process_map, it))
		if (same_id(t->processes[it.value].pid, pid))
			return it.value;
	if (t->process_count == TRACE_FULL ||
	    !mem_grow(t->mem, &list, &t->process_cap, (size_t)t->process_count + 1,
		      sizeof(*t->processes)))
		return TRACE_FULL;
	t->processes = list;
	t->processes[t->process_count] = (struct trace_process){ .pid = pid };
	if (t->process_count && !map_add(&t->process_map, hash, t->process_count))
		return TRACE_FULL;
	return t->process_count++;
}

uint32_t trace_lane_of(struct trace *t, const struct trace_track *key)
{
	uint64_t hash = map_hash_u64(hash_id(key->pid), hash_id(key->tid) + key->layer);
	void *list = t->lanes;
	uint32_t process, lane;

	for (struct map_iter it = map_find(&t->lane_map, hash); it.value;
	     it = map_next(&t->lane_map, it)) {
		const struct trace_track *have = &t->lanes[it.value].key;

		if (same_id(have->pid, key->pid) && same_id(have->tid, key->tid) &&
		    have->layer == key->layer)
			return it.value;
	}
	process = process_of(t, key->pid);
	if (process == TRACE_FULL || t->lane_count == TRACE_FULL ||
	    !mem_grow(t->mem, &list, &t->lane_cap, (size_t)t->lane_count + 1, sizeof(*t->lanes)))
		return TRACE_FULL;
	t->lanes = list;
	lane = t->lane_count;
	t->lanes[lane] = (struct trace_lane){
		.key = *key, .process = process, .thread = lane, .last_ns = TIME_UNKNOWN
	};
	if (!map_add(&t->lane_map, hash, lane))
		return TRACE_FULL;
	t->lane_count++;
	if (key->layer != LAYER_THREAD) {
		struct trace_track thread = { .pid = key->pid, .tid = key->tid };
		uint32_t of = trace_lane_of(t, &thread);

		if (of == TRACE_FULL)
			return TRACE_FULL;
		t->lanes[lane].thread = of;
	}
	return lane;
}

static struct trace_id model_id(const struct trace_worker *w, struct trace_id id)
{
	if (id.kind == ID_TEXT)
		id.value = w->strings[id.value];
	return id;
}

static bool rows_were_refused(const struct trace *t)
{
	size_t rows = 0, used = 0;

	for (unsigned i = 0; i < t->worker_count; i++) {
		struct trace_counts c = trace_worker_counts(&t->workers[i]);

		rows += c.slices + c.points + c.counters + c.metas;
	}
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];

		used += p->last.slices - p->first.slices + p->last.points - p->first.points +
			p->last.counters - p->first.counters + p->last.metas - p->first.metas;
	}
	return rows != used;
}

/* Tracks that only rows of refused parts are on do not exist. */
static void mark_used(const struct trace *t, uint8_t *used[])
{
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_worker *w = &t->workers[p->worker];
		uint8_t *mine = used[p->worker];

		for (size_t r = p->first.slices; r < p->last.slices; r++)
			mine[w->slices.track[r]] = 1;
		for (size_t r = p->first.points; r < p->last.points; r++)
			mine[w->points[r].track] = 1;
		for (size_t r = p->first.counters; r < p->last.counters; r++)
			mine[w->counters[r].track] = 1;
		for (size_t r = p->first.metas; r < p->last.metas; r++)
			mine[w->metas[r].track] = 1;
	}
}

static ow_status find_used(const struct trace *t, uint8_t *used[])
{
	bool refused = rows_were_refused(t);

	for (unsigned i = 0; i < t->worker_count; i++) {
		size_t count = t->workers[i].tracks.count;

		used[i] = mem_alloc(t->mem, count);
		if (!used[i])
			return error_no_memory(t->ctx->err);
		memset(used[i], !refused, count);
	}
	if (refused)
		mark_used(t, used);
	return OW_OK;
}

static ow_status merge_tracks_of(struct trace *t, struct trace_worker *w, const uint8_t *used)
{
	w->track_map = mem_zalloc(t->mem, w->tracks.count * sizeof(*w->track_map));
	if (!w->track_map)
		return error_no_memory(t->ctx->err);
	for (uint32_t i = 1; i < w->tracks.count; i++) {
		const struct trace_track *local = &w->tracks.list[i];
		struct trace_track key = { .pid = model_id(w, local->pid),
					   .tid = model_id(w, local->tid),
					   .layer = local->layer };
		uint32_t lane;

		if (!used || !used[i])
			continue;
		lane = trace_lane_of(t, &key);
		if (lane == TRACE_FULL)
			return error_no_memory(t->ctx->err);
		t->lanes[lane].used = true;
		w->track_map[i] = lane;
	}
	return OW_OK;
}

static int compare_ids(const struct trace *t, struct trace_id a, struct trace_id b)
{
	if (a.kind != b.kind)
		return a.kind - b.kind;
	if (a.kind != ID_TEXT || a.value == b.value)
		return (a.value > b.value) - (a.value < b.value);
	return str_cmp(trace_str(t, (uint32_t)a.value), trace_str(t, (uint32_t)b.value));
}

static int compare_lanes(const void *a, const void *b, void *arg)
{
	const struct trace *t = arg;
	const struct trace_track *x = &t->lanes[*(const uint32_t *)a].key;
	const struct trace_track *y = &t->lanes[*(const uint32_t *)b].key;
	int order = compare_ids(t, x->pid, y->pid);

	if (!order)
		order = compare_ids(t, x->tid, y->tid);
	return order ? order : x->layer - y->layer;
}

/* The order of the tracks in the model: by process, thread, layer. */
ow_status trace_order_lanes(struct trace *t)
{
	t->lane_order = mem_alloc(t->mem, t->lane_count * sizeof(*t->lane_order));
	if (!t->lane_order)
		return error_no_memory(t->ctx->err);
	t->ordered = t->lane_count;
	for (uint32_t i = 0; i < t->lane_count; i++)
		t->lane_order[i] = i;
	qsort_r(t->lane_order + 1, t->lane_count - 1, sizeof(*t->lane_order), compare_lanes, t);
	return OW_OK;
}

static ow_status merge_tracks(struct trace *t)
{
	uint8_t *used[PARALLEL_MAX + 1] = { 0 };
	ow_status status;

	/* lane 0 and process 0 stand for "no track" and "no pid" */
	if (!mem_grow(t->mem, (void **)&t->lanes, &t->lane_cap, 16, sizeof(*t->lanes)) ||
	    process_of(t, (struct trace_id){ 0 }) == TRACE_FULL)
		return error_no_memory(t->ctx->err);
	t->lanes[0] = (struct trace_lane){ .last_ns = TIME_UNKNOWN };
	t->lane_count = 1;
	status = find_used(t, used);
	for (unsigned i = 0; i < t->worker_count && status == OW_OK; i++)
		status = merge_tracks_of(t, &t->workers[i], used[i]);
	for (unsigned i = 0; i < t->worker_count; i++)
		mem_free(t->mem, used[i], t->workers[i].tracks.count);
	return status;
}

/* ---- metadata ---- */

/* "thread 108 (python3)", "thread 108": what a profiler calls a thread that nobody has named. */
static bool is_generic(struct str name)
{
	return str_starts(name, STR("thread ")) &&
	       (!str_has(name, STR("(")) || str_has(name, STR("(python")));
}

static void name_thread(struct trace *t, struct trace_lane *lane, uint32_t text)
{
	struct str name = trace_str(t, text), old = model_str(t->b->m, lane->name);

	if (!name.len || (old.len && is_generic(name) && !is_generic(old)))
		return;
	lane->name = (str_id){ text };
}

static int32_t sort_index(int64_t number)
{
	return (int32_t)MAX((int64_t)INT32_MIN, MIN(number, (int64_t)INT32_MAX));
}

static void apply_meta(struct trace *t, const struct trace_worker *w, const struct trace_meta *m)
{
	struct trace_lane *lane = &t->lanes[w->track_map[m->track]];
	struct trace_process *process = &t->processes[lane->process];
	uint32_t text = w->strings[m->text];

	switch ((enum trace_meta_kind)m->kind) {
	case META_PROCESS_NAME:
		if (trace_str(t, text).len)
			process->name = (str_id){ text };
		break;
	case META_PROCESS_LABELS:
		if (trace_str(t, text).len)
			process->labels = (str_id){ text };
		break;
	case META_PROCESS_SORT:
		process->sort = sort_index(m->number);
		break;
	case META_THREAD_NAME:
		name_thread(t, &t->lanes[lane->thread], text);
		break;
	case META_THREAD_SORT:
		t->lanes[lane->thread].sort = sort_index(m->number);
		break;
	case META_OTHER:
		break;
	}
}

static void apply_metadata(struct trace *t)
{
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_worker *w = &t->workers[p->worker];

		for (size_t r = p->first.metas; r < p->last.metas; r++)
			apply_meta(t, w, &w->metas[r]);
	}
}

ow_status trace_merge(struct trace *t)
{
	OW_TRY(merge_strings(t));
	OW_TRY(merge_tracks(t));
	apply_metadata(t);
	return OW_OK;
}
