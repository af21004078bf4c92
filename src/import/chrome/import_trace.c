/*
 * import_trace.c: the importer of Chrome-trace JSON, of any producer. It recognises a trace, reads it, and runs the stages of
 * trace_int.h. Which program wrote a file, and what its events mean, is decided in src/import/interpret.
 *
 * Reading: one thread walks the documents; the first long list of events is cut into parts that all threads read at the same
 * time, each starting at a guessed event. A guess counts only if the part before, read from a place known to be right, ends
 * exactly there; other parts are read again. So text that looks like an event cannot mislead, it can only cost time. Each
 * worker owns the memory of its rows, and the strings and tracks that it has met; text is kept as written, with its escapes:
 * trace_merge.c decodes it once per distinct text, not once per event. What an event becomes is decided in trace_rows.c.
 *
 * Also here: the other members of the top-level object. Those that change how events are read are applied; small plain ones
 * become facts, except in objects that may hold a whole environment.
 */
#include "import/chrome/trace_int.h"
#include "import/unrecognised.h"

#include "base/vec.h"

#define PART_BYTES ((size_t)4 << 20)

#define FIRST_SLOTS 1024

static void trace_dict_init(struct trace_dict *d)
{
	*d = (struct trace_dict){ .count = 1 };
}

static void trace_dict_release(struct trace_dict *d, struct mem *mem)
{
	mem_free(mem, d->slots, d->slots ? (d->mask + 1) * sizeof(*d->slots) : 0);
	mem_free(mem, d->bytes, d->bytes_cap);
	mem_free(mem, d->texts, d->text_cap * sizeof(*d->texts));
	mem_free(mem, d->categories, d->category_cap * sizeof(*d->categories));
	mem_free(mem, d->types, d->type_cap * sizeof(*d->types));
}

static void put_slot(struct trace_slot *slots, size_t mask, struct trace_slot slot)
{
	size_t at = slot.tag & mask;

	while (slots[at].id)
		at = (at + 1) & mask;
	slots[at] = slot;
}

static bool grow_slots(struct trace_dict *d, struct mem *mem)
{
	size_t old = d->slots ? d->mask + 1 : 0, count = old ? old * 2 : FIRST_SLOTS;
	struct trace_slot *slots;

	if ((size_t)d->count * 2 < old)
		return true;
	slots = mem_zalloc(mem, count * sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < old; i++)
		if (d->slots[i].id)
			put_slot(slots, count - 1, d->slots[i]);
	mem_free(mem, d->slots, old * sizeof(*slots));
	d->slots = slots;
	d->mask = count - 1;
	return true;
}

static uint32_t add_text(struct trace_dict *d, struct mem *mem, struct str raw, uint64_t hash)
{
	size_t place = d->bytes_used / 8, room = (raw.len + 8) & ~(size_t)7;
	struct trace_slot slot = { (uint32_t)(hash >> 32), d->count, (uint32_t)raw.len,
				   (uint32_t)place };

	if (d->count >= TRACE_EMPTY || place > UINT32_MAX || raw.len > UINT32_MAX - 8 ||
	    !grow_slots(d, mem) || !vec_reserve(mem, d->texts, d->text_cap, (size_t)d->count + 1))
		return TRACE_FULL;
	if (!vec_reserve(mem, d->bytes, d->bytes_cap, d->bytes_used + room))
		return TRACE_FULL;
	memcpy(d->bytes + d->bytes_used, raw.ptr, raw.len);
	d->bytes_used += room;
	d->texts[d->count] = (struct trace_text){ slot.len, slot.place };
	put_slot(d->slots, d->mask, slot);
	return d->count++;
}

uint32_t trace_dict_add_hashed(struct trace_dict *d, struct mem *mem, struct str raw, uint64_t hash)
{
	uint32_t tag = (uint32_t)(hash >> 32);

	if (OW_LIKELY(d->slots))
		for (size_t at = tag & d->mask; d->slots[at].id; at = (at + 1) & d->mask) {
			const struct trace_slot *slot = &d->slots[at];

			if (slot->tag == tag && slot->len == raw.len &&
			    memcmp(d->bytes + (size_t)slot->place * 8, raw.ptr, raw.len) == 0)
				return slot->id;
		}
	return add_text(d, mem, raw, hash);
}

static struct trace_category look_up(struct str category)
{
	struct category_meaning meaning = category_meaning(category);

	return (struct trace_category){ (uint8_t)(meaning.layer + 1), meaning.wanted };
}

const struct trace_category *trace_dict_category(struct trace_dict *d, struct mem *mem,
						 uint32_t category)
{
	static const struct trace_category none = { .layer = LAYER_THREAD + 1 };
	size_t old = d->category_cap;

	if (!category)
		return &none;
	if (OW_LIKELY(category < d->category_cap && d->categories[category].layer))
		return &d->categories[category];
	if (!vec_reserve(mem, d->categories, d->category_cap, (size_t)category + 1))
		return NULL;
	memset(d->categories + old, 0, (d->category_cap - old) * sizeof(*d->categories));
	d->categories[category] = look_up(trace_dict_text(d, category));
	return &d->categories[category];
}

uint32_t *trace_dict_type(struct trace_dict *d, struct mem *mem, uint32_t label)
{
	size_t old = d->type_cap;

	if (OW_LIKELY(label < d->type_cap))
		return &d->types[label];
	if (!vec_reserve(mem, d->types, d->type_cap, (size_t)label + 1))
		return NULL;
	memset(d->types + old, 0, (d->type_cap - old) * sizeof(*d->types));
	return &d->types[label];
}

static void trace_tracks_init(struct trace_tracks *t, struct mem *mem)
{
	memset(t, 0, sizeof(*t));
	t->count = 1;
	map_init(&t->map, mem);
}

static void trace_tracks_release(struct trace_tracks *t, struct mem *mem)
{
	map_release(&t->map);
	mem_free(mem, t->list, t->cap * sizeof(*t->list));
}

static bool same_track(const struct trace_track *a, const struct trace_track *b)
{
	return a->pid.value == b->pid.value && a->pid.kind == b->pid.kind &&
	       a->tid.value == b->tid.value && a->tid.kind == b->tid.kind && a->layer == b->layer;
}

static uint32_t find_or_add(struct trace_tracks *t, struct mem *mem, const struct trace_track *key,
			    uint64_t hash)
{
	hash = map_hash_u64(hash, key->pid.kind | (uint64_t)key->tid.kind << 8);
	for (struct map_iter it = map_find(&t->map, hash); it.value; it = map_next(&t->map, it))
		if (same_track(&t->list[it.value], key))
			return it.value;
	if (t->count == TRACE_FULL || !vec_reserve(mem, t->list, t->cap, (size_t)t->count + 1))
		return TRACE_FULL;
	memset(&t->list[0], 0, sizeof(t->list[0]));
	t->list[t->count] = *key;
	if (!map_add(&t->map, hash, t->count))
		return TRACE_FULL;
	return t->count++;
}

uint32_t trace_tracks_add(struct trace_tracks *t, struct mem *mem, const struct trace_track *key)
{
	uint64_t hash =
		map_hash_u64((uint64_t)key->pid.value, (uint64_t)key->tid.value + key->layer);
	size_t slot = hash >> 55;
	uint32_t found;

	if (OW_UNLIKELY(key->pid.kind != ID_INT || key->tid.kind != ID_INT))
		return find_or_add(t, mem, key, hash);
	if (OW_LIKELY(t->cache[slot].pid == key->pid.value &&
		      t->cache[slot].tid == key->tid.value && t->cache[slot].layer == key->layer &&
		      t->cache[slot].track))
		return t->cache[slot].track;
	found = find_or_add(t, mem, key, hash);
	if (found != TRACE_FULL) {
		t->cache[slot].pid = key->pid.value;
		t->cache[slot].tid = key->tid.value;
		t->cache[slot].layer = key->layer;
		t->cache[slot].track = found;
	}
	return found;
}

static void init_worker(struct trace_worker *w, struct mem *mem, const struct input *in,
			enum json_path path)
{
	memset(w, 0, sizeof(*w));
	w->mem = mem;
	json_scan_init(&w->scan, in, &w->err);
	w->scan.path = path;
	trace_dict_init(&w->dict);
	trace_tracks_init(&w->tracks, mem);
}

/* Columns of a slice. The last two are made when the first slice has such a value. */
static const struct {
	size_t offset, size;
	bool rare;
} columns[] = {
#define COLUMN(name, rare)                                                                         \
	{                                                                                          \
		offsetof(struct trace_slices, name), sizeof(*((struct trace_slices *)0)->name),    \
			rare                                                                       \
	}
	COLUMN(ts, false),	  COLUMN(dur, false),  COLUMN(args_offset, false),
	COLUMN(args_size, false), COLUMN(name, false), COLUMN(category, false),
	COLUMN(where, false),	  COLUMN(ph, false),   COLUMN(label, true),
	COLUMN(number, true),
#undef COLUMN
};

static void **column_of(struct trace_slices *s, size_t column)
{
	return (void **)(void *)((char *)s + columns[column].offset);
}

static void free_slices(struct trace_worker *w)
{
	for (size_t c = 0; c < ARRAY_COUNT(columns); c++) {
		void **column = column_of(&w->slices, c);

		mem_free(w->mem, *column, w->slices.cap * columns[c].size);
		*column = NULL;
	}
}

void trace_worker_drop_elements(struct trace_worker *w)
{
	mem_free(w->mem, w->elements, w->element_cap * sizeof(*w->elements));
	w->elements = NULL;
	w->element_count = w->element_cap = 0;
}

void trace_worker_drop_points(struct trace_worker *w)
{
	mem_free(w->mem, w->points, w->point_cap * sizeof(*w->points));
	w->points = NULL;
	w->point_count = w->point_cap = 0;
	mem_free(w->mem, w->counters, w->counter_cap * sizeof(*w->counters));
	w->counters = NULL;
	w->counter_count = w->counter_cap = 0;
}

void trace_worker_drop_rows(struct trace_worker *w)
{
	free_slices(w);
	w->slices.count = w->slices.cap = 0;
	trace_worker_drop_points(w);
}

static void release_worker(struct trace_worker *w)
{
	if (!w->mem)
		return;
	trace_worker_drop_rows(w);
	mem_free(w->mem, w->metas, w->meta_cap * sizeof(*w->metas));
	mem_free(w->mem, w->marks, w->mark_cap * sizeof(*w->marks));
	trace_worker_drop_elements(w);
	mem_free(w->mem, w->changes, w->change_cap * sizeof(*w->changes));
	trace_dict_release(&w->dict, w->mem);
	trace_tracks_release(&w->tracks, w->mem);
	json_scan_release(&w->scan);
}

struct trace_counts trace_worker_counts(const struct trace_worker *w)
{
	return (struct trace_counts){ .slices = w->slices.count,
				      .points = w->point_count,
				      .counters = w->counter_count,
				      .metas = w->meta_count,
				      .marks = w->mark_count,
				      .elements = w->element_count,
				      .changes = w->change_count,
				      .strings = w->dict.count };
}

void trace_fail(struct trace_worker *w)
{
	if (w->status == OW_OK)
		w->status = error_no_memory(&w->err);
}

/* Grows all columns or none: a growth that fails half-way is undone. */
static bool grow_slices(struct trace_worker *w, size_t cap)
{
	struct trace_slices *s = &w->slices;
	size_t c;

	if (cap > UINT32_MAX)
		return false;
	for (c = 0; c < ARRAY_COUNT(columns); c++) {
		void **column = column_of(s, c);
		void *grown;

		if (!*column && columns[c].rare)
			continue;
		grown = mem_realloc(w->mem, *column, s->cap * columns[c].size,
				    cap * columns[c].size);
		if (!grown)
			break;
		*column = grown;
	}
	if (c == ARRAY_COUNT(columns)) {
		s->cap = cap;
		return true;
	}
	while (c--) {
		void **column = column_of(s, c);

		if (!*column)
			continue;
		if (s->cap) {
			*column = mem_realloc(w->mem, *column, cap * columns[c].size,
					      s->cap * columns[c].size);
			OW_ASSERT(*column);
			continue;
		}
		mem_free(w->mem, *column, cap * columns[c].size);
		*column = NULL;
	}
	return false;
}

static void trim_worker(struct trace_worker *w)
{
	struct trace_slices *s = &w->slices;
	size_t size = w->point_count * sizeof(*w->points);
	void *points;

	if (s->count && grow_slices(w, s->count)) /* shrinking never fails */
		for (size_t c = 0; c < ARRAY_COUNT(columns); c++)
			mem_trim(*column_of(s, c), s->count * columns[c].size);
	points = mem_realloc(w->mem, w->points, w->point_cap * sizeof(*w->points), size);
	if (!points)
		return;
	w->points = points;
	w->point_cap = w->point_count;
	mem_trim(points, size);
}

static bool reserve_slices(struct trace_worker *w, size_t more)
{
	return w->slices.cap - w->slices.count >= more || grow_slices(w, w->slices.count + more);
}

bool trace_make_room(struct trace_worker *w)
{
	struct trace_slices *s = &w->slices;
	size_t cap = s->cap < 1024 ? 1024 : s->cap + s->cap / 4;

	if (grow_slices(w, cap) || grow_slices(w, s->count + 1024))
		return true;
	trace_fail(w);
	return false;
}

bool trace_add_mark(struct trace_worker *w, const struct trace_mark *mark)
{
	struct trace_mark *row = TRACE_NEW_ROW(w, marks, mark_count, mark_cap);

	if (row)
		*row = *mark;
	return row != NULL;
}

struct reading {
	const struct trace_job *job;
	struct trace_raw *rows;
	struct trace_header *header;
	fact_id members; /* facts of the top-level object; nil until there is one */
	bool list_truncated;
	/* Parts that were read on a guess, in file order. */
	struct trace_part *parts;
	size_t part_count;
	uint64_t parts_from; /* offset in the file at which part 0 begins */
	atomic_size_t next_part;
	atomic_bool stop;
	atomic_uint_fast64_t bytes_done;
};

#define SMALL_VALUE ((uint64_t)256 << 10)

/* Returns the text of a member's value, in scratch memory; NULL text if it is too large. */
static ow_status read_value(struct reading *t, const struct json_item *item, struct buf *text)
{
	buf_clear(text);
	if (item->size > SMALL_VALUE)
		return OW_OK;
	if (!buf_reserve(text, (size_t)item->size + 16))
		return trace_no_memory(t->job);
	memset(text->ptr + item->size, 0, 16);
	OW_TRY(input_read_at(t->job->ctx->in, item->offset, text->ptr, (size_t)item->size,
			     t->job->ctx->err));
	text->len = (size_t)item->size;
	return OW_OK;
}

/* Returns a string without its quotes, anything else unchanged. */
static struct str plain_text(const struct json_item *item, const struct buf *text)
{
	struct str s = buf_str(text);

	if (item->value == JSON_STRING && s.len >= 2)
		return str_make(s.ptr + 1, s.len - 2);
	return s;
}

static fact_id members_of(struct reading *t)
{
	if (!t->members.v)
		t->members = fact_object(t->job->b, (fact_id){ 0 }, "top_level");
	return t->members;
}

static bool is_plain(enum json_kind kind, struct str value)
{
	return kind == JSON_NUMBER || (kind == JSON_STRING && utf8_valid(value)) ||
	       (kind == JSON_LITERAL &&
		(str_eq(value, STR("true")) || str_eq(value, STR("false"))));
}

static void add_fact_to(struct reading *t, fact_id parent, const char *key, enum json_kind kind,
			struct str value)
{
	int64_t number;
	double real;

	if (kind == JSON_NUMBER && json_decimal(value, 0, &number) == JSON_EXACT)
		fact_int(t->job->b, parent, key, number);
	else if (kind == JSON_NUMBER && json_double(value, &real))
		fact_real(t->job->b, parent, key, real);
	else if (kind == JSON_STRING)
		fact_text(t->job->b, parent, key, value);
	else if (kind == JSON_LITERAL)
		fact_bool(t->job->b, parent, key, value.ptr[0] == 't');
}

static void add_fact(struct reading *t, const char *key, enum json_kind kind, struct str value)
{
	if (is_plain(kind, value))
		add_fact_to(t, members_of(t), key, kind, value);
}

#define DEVICES_MAX 64u /* largest number of devices of one machine */

/* Reads the profiler's description of the machine's devices, one object each. */
static void read_devices(struct reading *t, struct str value)
{
	struct json_reader devices = json_over(value);
	struct json_value device, member;
	fact_id list = { 0 };
	struct str key;

	for (unsigned i = 0; i < DEVICES_MAX && json_next_element(&devices, &device); i++) {
		struct json_reader members = json_over(json_text(device));
		fact_id object;

		if (device.kind != JSON_OBJECT)
			continue;
		if (!list.v)
			list = fact_list(t->job->b, members_of(t), "deviceProperties");
		object = fact_object(t->job->b, list, NULL);
		while (json_next_member(&members, &key, &member)) {
			char name[64];

			if (!key.len || key.len >= sizeof(name) || !utf8_valid(key) ||
			    !is_plain(member.kind, json_text(member)))
				continue;
			memcpy(name, key.ptr, key.len);
			name[key.len] = '\0';
			add_fact_to(t, object, name, member.kind, json_text(member));
		}
	}
}

static void read_distributed(struct reading *t, struct str value)
{
	struct json_value rank = json_find(value, "rank"), world = json_find(value, "world_size");
	struct json_value backend = json_find(value, "backend");
	int64_t number;

	if (json_decimal(json_text(rank), 0, &number) == JSON_EXACT && number >= 0 &&
	    number <= INT32_MAX)
		t->job->b->m->source.rank[t->job->b->source.v] = (int32_t)number;
	add_fact(t, "rank", rank.kind, json_text(rank));
	add_fact(t, "world_size", world.kind, json_text(world));
	add_fact(t, "backend", backend.kind, json_text(backend));
}

static void use_member(struct reading *t, struct str key, const struct json_item *item,
		       struct str value)
{
	int64_t number;

	if (str_eq(key, STR("baseTimeNanoseconds"))) {
		if (json_decimal(value, 0, &number) == JSON_EXACT)
			t->header->base_ns = number;
	} else if (str_eq(key, STR("beginningOfTime"))) {
		if (json_decimal(value, 3, &number) == JSON_EXACT)
			t->header->base_ns = number;
	} else if (str_eq(key, STR("distributedInfo"))) {
		read_distributed(t, value);
	} else if (str_eq(key, STR("deviceProperties")) && item->value == JSON_ARRAY) {
		read_devices(t, value);
	} else if (str_eq(key, STR("stackFrames")) && item->value == JSON_OBJECT) {
		t->header->frames_offset = item->offset;
		t->header->frames_size = item->size;
	}
}

static ow_status read_member(struct reading *t, const struct json_item *item)
{
	struct buf text;
	char key[64];
	ow_status status;

	buf_init(&text, t->job->mem);
	status = read_value(t, item, &text);
	if (status == OW_OK) {
		struct str name = json_text(item->key), value = plain_text(item, &text);

		use_member(t, name, item, value);
		t->header->member_bits |= interpret_member(name, value);
		if (text.len && name.len < sizeof(key) && utf8_valid(name) && name.len) {
			memcpy(key, name.ptr, name.len);
			key[name.len] = '\0';
			add_fact(t, key, item->value, value);
		}
		status = builder_status(t->job->b);
	}
	buf_release(&text);
	return status;
}

static void note_fault(uint64_t *count, uint64_t *first, uint64_t offset)
{
	if (!(*count)++)
		*first = offset;
}

/* Reads the events of [start, stop) into rows of the worker. */
static void read_part(struct reading *t, struct trace_worker *w, uint64_t start, uint64_t stop,
		      struct trace_part *part)
{
	struct json_event ev;

	part->start = start;
	part->first = trace_worker_counts(w);
	w->faults = (struct trace_faults){ 0 };
	json_scan_seek(&w->scan, start);
	while (w->status == OW_OK) {
		switch (json_scan_event(&w->scan, stop, &ev)) {
		case SCAN_EVENT:
			trace_take_event(w, &ev);
			continue;
		case SCAN_OTHER:
			note_fault(&w->faults.others, &w->faults.first_other, ev.offset);
			continue;
		case SCAN_DAMAGE:
			note_fault(&w->faults.damaged, &w->faults.first_damage, ev.offset);
			w->faults.damaged_bytes += w->scan.offset - ev.offset;
			continue;
		case SCAN_STOP:
			break;
		case SCAN_END:
			part->list_ended = true;
			break;
		case SCAN_TRUNCATED:
			part->truncated = true;
			part->truncated_at = ev.offset;
			break;
		case SCAN_FAILED:
			w->status = w->scan.status;
			break;
		}
		break;
	}
	if (w->status != OW_OK) {
		atomic_store(&t->stop, true);
		return;
	}
	part->end = w->scan.offset;
	part->last = trace_worker_counts(w);
	part->faults = w->faults;
	part->read = true;
}

/* Reserves room: after the first part the number of rows can be estimated, which saves moving
 * them. */
static void reserve_rows(struct reading *t, struct trace_worker *w, const struct trace_part *part)
{
	size_t rows = part->last.slices - part->first.slices;
	size_t parts = t->part_count / t->job->options.threads + 1;

	if (w->slices.count != rows || parts < 4)
		return;
	if (!reserve_slices(w, (rows + rows / 64) * parts))
		error_clear(&w->err); /* growing step by step may still succeed */
}

static void guess_parts(void *arg, unsigned thread)
{
	struct reading *t = arg;
	struct trace_worker *w = &t->rows->workers[thread];

	while (!atomic_load(&t->stop)) {
		size_t k = atomic_fetch_add(&t->next_part, 1);
		uint64_t from = t->parts_from + k * t->job->options.part_bytes, start = from;
		struct trace_part *part;

		if (k >= t->part_count)
			break;
		part = &t->parts[k];
		part->worker = thread;
		if (k &&
		    !json_scan_guess(&w->scan, from, from + t->job->options.part_bytes, &start)) {
			w->status = w->scan.status;
			if (w->status != OW_OK)
				atomic_store(&t->stop, true);
			continue;
		}
		read_part(t, w, start, from + t->job->options.part_bytes, part);
		if (part->read)
			reserve_rows(t, w, part);
	}
	trim_worker(w);
}

static ow_status guess(struct reading *t, uint64_t from)
{
	uint64_t size = t->job->ctx->in->size;

	if (t->parts || t->job->options.threads < 2 ||
	    size - from < 2 * (uint64_t)t->job->options.part_bytes)
		return OW_OK;
	t->parts_from = from;
	t->part_count = (size_t)((size - from) / t->job->options.part_bytes) + 1;
	t->parts = mem_zalloc(t->job->mem, t->part_count * sizeof(*t->parts));
	if (!t->parts)
		return trace_no_memory(t->job);
	parallel_run(t->job->options.threads, guess_parts, t);
	for (unsigned i = 0; i < t->job->options.threads; i++)
		if (t->rows->workers[i].status != OW_OK) {
			if (t->job->ctx->err)
				*t->job->ctx->err = t->rows->workers[i].err;
			return t->rows->workers[i].status;
		}
	return OW_OK;
}

static ow_status accept(struct reading *t, const struct trace_part *part)
{
	if (!vec_push(t->job->mem, t->rows->accepted, t->rows->accepted_count,
		      t->rows->accepted_cap, *part))
		return trace_no_memory(t->job);
	return OW_OK;
}

static struct trace_part *find_guess(struct reading *t, uint64_t offset, uint64_t *stop)
{
	size_t k;

	*stop = UINT64_MAX;
	if (!t->parts || offset < t->parts_from)
		return NULL;
	k = (size_t)((offset - t->parts_from) / t->job->options.part_bytes);
	if (k >= t->part_count)
		return NULL;
	*stop = t->parts_from + (k + 1) * (uint64_t)t->job->options.part_bytes;
	if (!t->parts[k].read || t->parts[k].start != offset)
		return NULL;
	return &t->parts[k];
}

static void note_end_of_list(struct reading *t, const struct trace_part *last, bool bare)
{
	uint64_t size = t->job->ctx->in->size;

	t->list_truncated = last->truncated;
	if (!last->truncated)
		return;
	if (last->truncated_at < size || t->header->object_form) {
		t->header->truncated = true;
		t->header->truncated_at = last->truncated_at;
	}
	if (last->truncated_at < size)
		builder_note(t->job->b, NOTE_TRUNCATED, last->truncated_at,
			     "the file ends inside an event, which is left out");
	else if (t->header->object_form)
		builder_note(t->job->b, NOTE_TRUNCATED, size,
			     "the file ends before its list of events does");
	else if (!bare)
		builder_note(t->job->b, NOTE_INFO, size,
			     "the list of events has no closing bracket, as the format allows");
}

/* Reads one list of events, from the offset after its bracket. */
static ow_status read_list(struct reading *t, uint64_t offset, bool bare)
{
	struct trace_worker *driver = &t->rows->workers[t->job->options.threads];

	OW_TRY(guess(t, offset));
	for (;;) {
		struct trace_part again = { .worker = t->job->options.threads }, *part;
		uint64_t stop;

		part = find_guess(t, offset, &stop);
		if (!part) {
			part = &again;
			read_part(t, driver, offset, stop, part);
			if (driver->status != OW_OK)
				return driver->status;
		}
		OW_TRY(accept(t, part));
		offset = part->end;
		if (!part->list_ended && !part->truncated)
			continue;
		note_end_of_list(t, part, bare);
		json_scan_seek(&driver->scan, offset);
		return OW_OK;
	}
}

/* Stores a sample as a point of the worker, until tracks are known. */
static void take_sample(struct trace_worker *w, const struct json_event *ev)
{
	size_t before = w->point_count;
	struct json_event copy = *ev;

	/* stored as an event of an unknown kind, whose id is the frame */
	copy.have &= ~(1u << FIELD_ID2);
	copy.have |= 1u << FIELD_PH;
	copy.value[FIELD_PH] = (struct json_value){ "s", 1, JSON_STRING };
	copy.value[FIELD_ID] = ev->value[FIELD_SF];
	if (json_event_has(ev, FIELD_SF))
		copy.have |= 1u << FIELD_ID;
	else
		copy.have &= ~(1u << FIELD_ID);
	trace_take_event(w, &copy);
	for (size_t i = before; i < w->point_count; i++) {
		w->points[i].ph = 'P';
		w->points[i].flags |= POINT_SAMPLE;
	}
}

static void take_samples(struct trace_worker *w, const struct json_item *item)
{
	struct json_event ev;
	enum json_scan_result result;

	json_scan_seek(&w->scan, item->offset + 1);
	while (w->status == OW_OK && ((result = json_scan_event(&w->scan, item->offset + item->size,
								&ev)) == SCAN_EVENT ||
				      result == SCAN_OTHER || result == SCAN_DAMAGE))
		if (result == SCAN_EVENT)
			take_sample(w, &ev);
	if (w->status == OW_OK)
		w->status = w->scan.status;
	json_scan_seek(&w->scan, item->offset + item->size);
}

static ow_status read_samples(struct reading *t, const struct json_item *item)
{
	struct trace_worker *driver = &t->rows->workers[t->job->options.threads];
	struct trace_part part = { .worker = t->job->options.threads,
				   .read = true,
				   .samples = true };

	part.first = trace_worker_counts(driver);
	take_samples(driver, item);
	part.last = trace_worker_counts(driver);
	return driver->status == OW_OK ? accept(t, &part) : driver->status;
}

static bool is_samples(const struct json_item *item)
{
	return item->value == JSON_ARRAY && json_key_is(json_text(item->key), "samples");
}

static ow_status read_documents(struct reading *t)
{
	struct trace_worker *driver = &t->rows->workers[t->job->options.threads];
	struct json_doc doc = { 0 };
	struct json_item item;
	ow_status status = OW_OK;

	while (status == OW_OK) {
		switch (json_scan_document(&driver->scan, &doc, &item)) {
		case ITEM_EVENTS:
			t->header->has_list = true;
			t->header->object_form |= doc.in_object;
			status = read_list(t, item.offset, item.bare);
			doc.in_object &= !t->list_truncated;
			break;
		case ITEM_MEMBER:
			status = is_samples(&item) ? read_samples(t, &item) : read_member(t, &item);
			break;
		case ITEM_DOCUMENT:
			break;
		case ITEM_DAMAGE:
			builder_note_many(t->job->b, NOTE_DAMAGED, item.offset, item.size,
					  "bytes are not JSON: skipped");
			break;
		case ITEM_TRUNCATED:
			builder_note(t->job->b, NOTE_TRUNCATED, item.offset,
				     "the file ends before its top-level object does");
			break;
		case ITEM_EOF:
			t->header->documents = doc.documents;
			return OW_OK;
		case ITEM_FAILED:
			status = driver->scan.status;
			break;
		}
	}
	if (driver->err.status != OW_OK && t->job->ctx->err && t->job->ctx->err->status == OW_OK)
		*t->job->ctx->err = driver->err;
	return status;
}

static ow_status start_workers(struct reading *t)
{
	struct trace_raw *rows = t->rows;

	rows->worker_count = t->job->options.threads + 1;
	rows->workers = mem_zalloc(t->job->mem, rows->worker_count * sizeof(*rows->workers));
	if (!rows->workers)
		return trace_no_memory(t->job);
	for (unsigned i = 0; i < rows->worker_count; i++) {
		init_worker(&rows->workers[i], t->job->mem, t->job->ctx->in, t->job->options.path);
		rows->workers[i].scan.done = &t->bytes_done;
	}
	return OW_OK;
}

static ow_status read_trace(const struct trace_job *job, struct trace_raw *rows,
			    struct trace_header *header)
{
	struct reading t = { .job = job, .rows = rows, .header = header };
	ow_status status = start_workers(&t);

	if (status == OW_OK)
		status = read_documents(&t);
	mem_free(job->mem, t.parts, t.part_count * sizeof(*t.parts));
	for (unsigned i = 0; rows->workers && i < rows->worker_count; i++)
		rows->workers[i].scan.done = NULL;
	return status;
}

static void release_raw(const struct trace_job *job, struct trace_raw *rows)
{
	for (unsigned i = 0; rows->workers && i < rows->worker_count; i++)
		release_worker(&rows->workers[i]);
	mem_free(job->mem, rows->workers, rows->worker_count * sizeof(*rows->workers));
	mem_free(job->mem, rows->accepted, rows->accepted_cap * sizeof(*rows->accepted));
}

/* State of the stages of loading, in their order. */
struct loading {
	struct trace_job job;
	struct trace_raw rows;
	struct trace_header header;
	struct trace_names names;
	struct trace_tally tally;
	struct trace_frames frames;
	struct trace_pairs pairs;
};

/* Reports a file without events. A long JSON object is opened because its events may come late; if it has no list of
 * events it has another format. */
static ow_status no_events(const struct trace_job *job, const struct trace_header *header)
{
	struct ow_error *err = job->ctx->err;
	struct window window;
	struct str head;

	if (header->has_list)
		return error_set(err, OW_E_EMPTY,
				 "%s: the trace has no events; check that the "
				 "profiler ran while the program worked",
				 job->ctx->in->name);
	window_init(&window, job->ctx->in, err);
	head = window_peek(&window, 0, (size_t)64 << 10);
	if (head.ptr)
		unrecognised_explain(job->ctx->in->name, head, err);
	window_release(&window);
	return OW_E_FORMAT;
}

static ow_status run_stages(struct loading *l)
{
	const struct trace_job *job = &l->job;
	const struct trace_stages made = { job,	      &l->rows,	  &l->header, &l->names,
					   &l->tally, &l->frames, &l->pairs };

	OW_TRY(read_trace(job, &l->rows, &l->header));
	OW_TRY(trace_merge(job, &l->rows, &l->names, &l->tally));
	OW_TRY(trace_frames_read(job, &l->header, &l->frames));
	if (!l->tally.events)
		return no_events(job, &l->header);
	OW_TRY(trace_pair(job, &l->rows, &l->names, &l->tally, &l->pairs));
	return trace_place(&made, &l->rows, &l->names);
}

ow_status trace_load_with(struct import_ctx *ctx, const struct trace_options *options)
{
	struct loading l = { .job = { ctx, ctx->b, ctx->b->m->mem, *options } };
	ow_status status = run_stages(&l);

	trace_frames_release(&l.job, &l.frames);
	trace_tally_release(&l.job, &l.names, &l.tally);
	trace_names_release(&l.job, &l.rows, &l.names);
	release_raw(&l.job, &l.rows);
	if (status != OW_OK && status != OW_E_EMPTY && status != OW_E_FORMAT)
		/* in these two cases nothing was added to the model */
		builder_fail(ctx->b, status);
	return status;
}

static ow_status load_trace(struct import_ctx *ctx)
{
	struct trace_options options = { .part_bytes = PART_BYTES,
					 .threads = parallel_threads(),
					 .path = json_best_path() };

	if (ctx->in->size < 2 * options.part_bytes)
		options.threads = 1;
	return trace_load_with(ctx, &options);
}

const struct importer import_trace = {
	.name = "trace",
	.summary =
		"Chrome-trace JSON: TensorFlow timelines, PyTorch, ONNX Runtime, Chrome, any other",
	.extensions = ".json .json.gz .trace.json.gz .pt.trace.json",
	.role = ROLE_TRACE,
	.sniff = trace_sniff,
	.load = load_trace,
};
