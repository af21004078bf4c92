/*
 * filter.c: decides which events are kept. Most events are judged alone: by name, category, process and time. Ends
 * follow their beginnings (B and E of a thread, b and e, S and F of an id). Beginnings of slices that extend into the
 * wanted time are kept although they are before it; a separate pass (pair_pass) finds these. One thread runs it, in
 * file order.
 */
#include "merge/merge_int.h"

#include "base/vec.h"

static void pairs_init(struct pairs *p, struct mem *mem)
{
	*p = (struct pairs){ .mem = mem };
	map_init(&p->map, mem);
}

static void pairs_release(struct pairs *p)
{
	if (!p->mem)
		return;
	map_release(&p->map);
	mem_free(p->mem, p->tracks, p->track_cap * sizeof(*p->tracks));
	mem_free(p->mem, p->slices, p->slice_cap * sizeof(*p->slices));
}

static void pairs_clear(struct pairs *p)
{
	map_release(&p->map);
	map_init(&p->map, p->mem);
	p->track_count = p->slice_count = 0;
	p->free = 0;
}

/* Index of the track in p->tracks; SIZE_MAX if the track is unknown. */
static size_t find_track(const struct pairs *p, uint64_t key)
{
	for (struct map_iter it = map_find(&p->map, key); it.value; it = map_next(&p->map, it))
		if (p->tracks[it.value - 1].key == key)
			return it.value - 1;
	return SIZE_MAX;
}

static size_t add_track(struct pairs *p, uint64_t key)
{
	if (!vec_reserve(p->mem, p->tracks, p->track_cap, p->track_count + 1))
		return SIZE_MAX;
	p->tracks[p->track_count].key = key;
	p->tracks[p->track_count].top = 0;
	if (!map_add(&p->map, key, (uint32_t)p->track_count + 1))
		return SIZE_MAX;
	return p->track_count++;
}

static uint32_t new_slice(struct pairs *p)
{
	uint32_t slice = p->free;

	if (slice) {
		p->free = p->slices[slice].below;
		return slice;
	}
	if (!p->slice_count)
		p->slice_count = 1;
	if (!vec_reserve(p->mem, p->slices, p->slice_cap, p->slice_count + 1))
		return 0;
	return (uint32_t)p->slice_count++;
}

static void pairs_open(struct pairs *p, uint64_t key, uint64_t name, struct merge_slice opened)
{
	size_t track = find_track(p, key);
	uint32_t slice;

	if (track == SIZE_MAX)
		track = add_track(p, key);
	slice = track == SIZE_MAX ? 0 : new_slice(p);
	if (!slice) {
		p->failed = true;
		return;
	}
	opened.name = name;
	opened.below = p->tracks[track].top;
	p->slices[slice] = opened;
	p->tracks[track].top = slice;
}

/* Closes the innermost open slice of that name (0: of any name) and copies it to *closed; false when there is none. */
static bool pairs_close(struct pairs *p, uint64_t key, uint64_t name, struct merge_slice *closed)
{
	size_t track = find_track(p, key);
	uint32_t *link, slice;

	if (track == SIZE_MAX)
		return false;
	link = &p->tracks[track].top;
	while (*link && name && p->slices[*link].name != name)
		link = &p->slices[*link].below;
	slice = *link;
	if (!slice)
		return false;
	*closed = p->slices[slice];
	*link = closed->below;
	p->slices[slice].below = p->free;
	p->free = slice;
	return true;
}

/* Copies the innermost open slice, which stays open; false when there is none. */
static bool pairs_top(const struct pairs *p, uint64_t key, struct merge_slice *open)
{
	size_t track = find_track(p, key);

	if (track == SIZE_MAX || !p->tracks[track].top)
		return false;
	*open = p->slices[p->tracks[track].top];
	return true;
}

static void pairs_each(struct pairs *p, void (*visit)(void *arg, const struct merge_slice *slice),
		       void *arg)
{
	for (size_t i = 0; i < p->track_count; i++)
		for (uint32_t s = p->tracks[i].top; s; s = p->slices[s].below)
			visit(arg, &p->slices[s]);
}

static void invalid(void *arg, struct str pattern, const char *why)
{
	struct ow_error *err = arg;

	if (err->status == OW_OK)
		error_set(err, OW_E_USAGE, "'%.*s' is not a regular expression: %s",
			  STR_ARG(pattern), why);
}

static ow_status compile(struct merge *m, struct regex_list *list, const struct ow_list *patterns,
			 bool *used)
{
	struct ow_error why = { 0 };

	*used = patterns->count > 0;
	if (!*used)
		return OW_OK;
	OW_TRY(regex_list_init_all(list, m->mem, patterns->items, patterns->count, invalid, &why,
				   m->err));
	if (why.status == OW_OK)
		return OW_OK;
	if (m->err)
		*m->err = why;
	return why.status;
}

ow_status filter_init(struct merge *m)
{
	const struct merge_options *o = m->options;
	struct filter *f = &m->filter;

	pairs_init(&f->pairs, m->mem);
	buf_init(&f->text, m->mem);
	OW_TRY(compile(m, &f->name, &o->names, &f->names));
	OW_TRY(compile(m, &f->category, &o->categories, &f->categories));
	OW_TRY(compile(m, &f->pid, &o->pids, &f->pids));
	f->times = o->from_ns != INT64_MIN || o->to_ns != INT64_MAX || o->first_step != INT64_MIN ||
		   o->last_step != INT64_MAX;
	f->active = f->names || f->categories || f->pids || f->times;
	return OW_OK;
}

void filter_release(struct filter *f)
{
	if (f->names)
		regex_list_release(&f->name);
	if (f->categories)
		regex_list_release(&f->category);
	if (f->pids)
		regex_list_release(&f->pid);
	pairs_release(&f->pairs);
	buf_release(&f->text);
}

static bool matches(struct merge_worker *w, struct regex_list *list, struct str raw)
{
	struct buf *text = &w->m->filter.text;
	bool match;

	if (json_is_plain(raw)) {
		match = regex_match(list, raw);
	} else {
		buf_clear(text);
		json_decode(raw, text);
		if (text->failed) {
			worker_fail(w, error_no_memory(&w->err));
			return false;
		}
		match = regex_match(list, buf_str(text));
	}
	if (list->status != OW_OK)
		worker_fail(w, regex_list_status(list, &w->err));
	return match;
}

static struct str text_of(const struct json_event *ev, enum json_field field)
{
	return json_event_has(ev, field) ? json_text(ev->value[field]) : (struct str){ "", 0 };
}

static bool process_wanted(struct merge_worker *w, const struct json_event *ev)
{
	return !w->m->filter.pids || matches(w, &w->m->filter.pid, text_of(ev, FIELD_PID));
}

/* Whether a filter accepts the category: the pattern may match one category of a list, or the whole list as written. */
static bool category_wanted(struct merge_worker *w, struct str category)
{
	struct filter *f = &w->m->filter;
	struct str one;

	if (matches(w, &f->category, category))
		return true;
	if (str_find_char(category, ',') == STR_NONE)
		return false;
	while (str_split(&category, ',', &one))
		if (matches(w, &f->category, str_trim(one)))
			return true;
	return false;
}

static bool text_wanted(struct merge_worker *w, const struct json_event *ev)
{
	struct filter *f = &w->m->filter;

	return process_wanted(w, ev) &&
	       (!f->names || matches(w, &f->name, text_of(ev, FIELD_NAME))) &&
	       (!f->categories || category_wanted(w, text_of(ev, FIELD_CAT)));
}

static bool meets(struct time_range a, struct time_range b)
{
	if (a.from == a.to)
		return a.from >= b.from && (a.from < b.to || b.from == b.to);
	return a.from < b.to && a.to > b.from;
}

static bool time_wanted(const struct merge_file *file, struct time_range span)
{
	size_t low = 0, high = file->span_count;

	if (file->dropped || !meets(span, file->range))
		return false;
	if (!file->spans)
		return true;
	/* Steps do not overlap; the last step that starts before this time may still include it. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->spans[middle].from <= span.to)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0) {
		if (meets(span, file->spans[low]))
			return true;
		if (file->spans[low].to < span.from)
			return false;
	}
	return false;
}

bool filter_time(const struct merge_file *file, const struct json_event *ev)
{
	struct time_range span;

	return !file->m->filter.times || (event_span(ev, &span) && time_wanted(file, span));
}

static uint64_t hash_value(uint64_t hash, const struct json_event *ev, enum json_field field)
{
	return map_hash_u64(hash, str_hash(text_of(ev, field)));
}

/* The key of an event's track: its thread, or its asynchronous id. */
static uint64_t track_key(const struct json_event *ev, char ph)
{
	if (ph == 'B' || ph == 'E')
		return hash_value(hash_value(1, ev, FIELD_PID), ev, FIELD_TID);
	if (json_event_has(ev, FIELD_ID2)) {
		struct str id2 = json_text(ev->value[FIELD_ID2]);
		struct json_value id = json_find(id2, "global");
		uint64_t hash = 2;

		if (id.kind == JSON_NONE) {
			id = json_find(id2, "local");
			hash = hash_value(3, ev, FIELD_PID);
		}
		hash = map_hash_u64(hash, str_hash(json_text(id)));
		return hash_value(hash_value(hash, ev, FIELD_CAT), ev, FIELD_SCOPE);
	}
	return hash_value(hash_value(hash_value(2, ev, FIELD_ID), ev, FIELD_CAT), ev, FIELD_SCOPE);
}

static uint64_t name_key(const struct json_event *ev)
{
	struct str name = text_of(ev, FIELD_NAME);

	return name.len ? str_hash(name) | 1 : 0;
}

static bool is_opener(char ph)
{
	return ph == 'B' || ph == 'b' || ph == 'S';
}

static bool is_closer(char ph)
{
	return ph == 'E' || ph == 'e' || ph == 'F';
}

/* Whether a slice that begins with this event extends into the wanted time. */
static bool opener_in_time(struct merge_file *file, const struct json_event *ev, uint64_t ordinal)
{
	struct time_range span;

	if (!file->m->filter.times)
		return true;
	if (ordinal / 8 < file->opener_kept.len)
		return file->opener_kept.ptr[ordinal / 8] >> ordinal % 8 & 1;
	return event_span(ev, &span) && time_wanted(file, span);
}

static bool keep_opener(struct merge_worker *w, const struct json_event *ev, char ph)
{
	struct merge_file *file = w->file;
	struct merge_slice slice = { .ordinal = file->openers++ };
	struct pairs *pairs = &w->m->filter.pairs;

	slice.kept = opener_in_time(file, ev, slice.ordinal) && text_wanted(w, ev);
	pairs_open(pairs, track_key(ev, ph), name_key(ev), slice);
	if (pairs->failed)
		worker_fail(w, error_no_memory(&w->err));
	return slice.kept;
}

static bool keep_alone(struct merge_worker *w, const struct json_event *ev)
{
	return filter_time(w->file, ev) && text_wanted(w, ev);
}

bool filter_keep(struct merge_worker *w, const struct json_event *ev)
{
	struct pairs *pairs = &w->m->filter.pairs;
	struct merge_slice slice;
	char ph = event_ph(ev);

	if (ph == 'M')
		return process_wanted(w, ev);
	if (!json_event_has(ev, FIELD_PH))
		return false;
	if (is_opener(ph))
		return keep_opener(w, ev, ph);
	if (is_closer(ph) && pairs_close(pairs, track_key(ev, ph), name_key(ev), &slice))
		return slice.kept;
	if ((ph == 'T' || ph == 'p') && pairs_top(pairs, track_key(ev, ph), &slice))
		return slice.kept;
	return keep_alone(w, ev);
}

void filter_begin_file(struct merge *m)
{
	if (m->filter.active)
		pairs_clear(&m->filter.pairs);
}

static void set_kept(struct merge_worker *w, uint64_t ordinal, bool kept)
{
	struct buf *bits = &w->file->opener_kept;

	while (ordinal / 8 >= bits->len && !bits->failed)
		buf_add_char(bits, 0);
	if (bits->failed)
		worker_fail(w, error_no_memory(&w->err));
	else if (kept)
		bits->ptr[ordinal / 8] = (char)(bits->ptr[ordinal / 8] | 1 << ordinal % 8);
}

static void pair_event(struct merge_worker *w, const struct json_event *ev)
{
	struct pairs *pairs = &w->m->filter.pairs;
	struct merge_file *file = w->file;
	struct merge_slice slice = { .start = NO_TIME };
	char ph = event_ph(ev);
	struct time_range span;

	if (is_opener(ph)) {
		slice.ordinal = file->openers++;
		if (event_span(ev, &span))
			slice.start = span.from;
		set_kept(w, slice.ordinal, false);
		pairs_open(pairs, track_key(ev, ph), name_key(ev), slice);
		if (pairs->failed)
			worker_fail(w, error_no_memory(&w->err));
	} else if (is_closer(ph) && pairs_close(pairs, track_key(ev, ph), name_key(ev), &slice)) {
		if (slice.start == NO_TIME || !event_span(ev, &span))
			return;
		span = (struct time_range){ MIN(slice.start, span.from),
					    MAX(slice.start, span.from) };
		set_kept(w, slice.ordinal, time_wanted(file, span));
	}
}

/* Handles a slice without an end: it lasts until the end of the recording. */
static void unclosed(void *arg, const struct merge_slice *slice)
{
	struct merge_worker *w = arg;

	if (slice->start != NO_TIME)
		set_kept(w, slice->ordinal,
			 time_wanted(w->file, (struct time_range){ slice->start, INT64_MAX }));
}

static ow_status pair_file_end(struct merge_worker *w)
{
	pairs_each(&w->m->filter.pairs, unclosed, w);
	pairs_clear(&w->m->filter.pairs);
	return w->status;
}

static void nothing(struct merge_worker *w)
{
	(void)w;
}

static ow_status pair_commit(struct merge_worker *w)
{
	(void)w;
	return OW_OK;
}

void pair_pass(struct pass *pass)
{
	*pass = (struct pass){ .m = pass->m,
			       .event = pair_event,
			       .begin = nothing,
			       .commit = pair_commit,
			       .file_end = pair_file_end,
			       .threads = 1 };
}
