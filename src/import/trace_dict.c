/*
 * trace_dict.c: the strings and tracks that one worker has met. Text is kept as written, escapes and
 * all: it is decoded once per distinct text when the workers are merged, not once per event.
 */
#include "import/trace_int.h"

#define FIRST_SLOTS 1024

void trace_dict_init(struct trace_dict *d)
{
	*d = (struct trace_dict){ .count = 1 };
}

void trace_dict_release(struct trace_dict *d, struct mem *mem)
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
	void *texts = d->texts, *bytes = d->bytes;
	struct trace_slot slot = { (uint32_t)(hash >> 32), d->count, (uint32_t)raw.len,
				   (uint32_t)place };

	if (d->count >= TRACE_EMPTY || place > UINT32_MAX || raw.len > UINT32_MAX - 8 ||
	    !grow_slots(d, mem) ||
	    !mem_grow(mem, &texts, &d->text_cap, (size_t)d->count + 1, sizeof(*d->texts)))
		return TRACE_FULL;
	d->texts = texts;
	if (!mem_grow(mem, &bytes, &d->bytes_cap, d->bytes_used + room, 1))
		return TRACE_FULL;
	d->bytes = bytes;
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
	void *categories = d->categories;

	if (!category)
		return &none;
	if (OW_LIKELY(category < d->category_cap && d->categories[category].layer))
		return &d->categories[category];
	if (!mem_grow(mem, &categories, &d->category_cap, (size_t)category + 1,
		      sizeof(*d->categories)))
		return NULL;
	d->categories = categories;
	memset(d->categories + old, 0, (d->category_cap - old) * sizeof(*d->categories));
	d->categories[category] = look_up(trace_dict_text(d, category));
	return &d->categories[category];
}

uint32_t *trace_dict_type(struct trace_dict *d, struct mem *mem, uint32_t label)
{
	size_t old = d->type_cap;
	void *types = d->types;

	if (OW_LIKELY(label < d->type_cap))
		return &d->types[label];
	if (!mem_grow(mem, &types, &d->type_cap, (size_t)label + 1, sizeof(*d->types)))
		return NULL;
	d->types = types;
	memset(d->types + old, 0, (d->type_cap - old) * sizeof(*d->types));
	return &d->types[label];
}

void trace_tracks_init(struct trace_tracks *t, struct mem *mem)
{
	memset(t, 0, sizeof(*t));
	t->count = 1;
	map_init(&t->map, mem);
}

void trace_tracks_release(struct trace_tracks *t, struct mem *mem)
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
	void *list = t->list;

	hash = map_hash_u64(hash, key->pid.kind | (uint64_t)key->tid.kind << 8);
	for (struct map_iter it = map_find(&t->map, hash); it.value; it = map_next(&t->map, it))
		if (same_track(&t->list[it.value], key))
			return it.value;
	if (t->count == TRACE_FULL ||
	    !mem_grow(mem, &list, &t->cap, (size_t)t->count + 1, sizeof(*t->list)))
		return TRACE_FULL;
	t->list = list;
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
