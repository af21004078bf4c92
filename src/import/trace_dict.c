/*
 * trace_dict.c: the strings and tracks that one worker has met. Text is kept as written, escapes and
 * all: it is decoded once per distinct text when the workers are merged, not once per event.
 */
#include "import/trace_int.h"

void trace_dict_init(struct trace_dict *d, struct mem *mem)
{
	*d = (struct trace_dict){ .count = 1 };
	arena_init(&d->arena, mem);
	map_init(&d->map, mem);
}

void trace_dict_release(struct trace_dict *d, struct mem *mem)
{
	arena_release(&d->arena);
	map_release(&d->map);
	mem_free(mem, d->text, d->cap * sizeof(*d->text));
	mem_free(mem, d->layer, d->layer_cap);
}

static uint32_t add_text(struct trace_dict *d, struct mem *mem, struct str raw, uint64_t hash)
{
	void *text = d->text;
	struct str copy;

	if (d->count == TRACE_FULL ||
	    !mem_grow(mem, &text, &d->cap, (size_t)d->count + 1, sizeof(*d->text)))
		return TRACE_FULL;
	d->text = text;
	d->text[0] = STR("");
	copy = arena_str(&d->arena, raw);
	if (!copy.ptr || !map_add(&d->map, hash, d->count))
		return TRACE_FULL;
	d->text[d->count] = copy;
	return d->count++;
}

uint32_t trace_dict_add(struct trace_dict *d, struct mem *mem, struct str raw)
{
	uint64_t hash = str_hash(raw);

	for (struct map_iter it = map_find(&d->map, hash); it.value; it = map_next(&d->map, it))
		if (OW_LIKELY(str_eq(d->text[it.value], raw)))
			return it.value;
	return add_text(d, mem, raw, hash);
}

static const struct {
	const char *category;
	enum trace_layer layer;
} layers[] = {
	{ "python_function", LAYER_FRAMES },
	{ "kernel", LAYER_DEVICE },
	{ "Kernel", LAYER_DEVICE },
	{ "gpu_memcpy", LAYER_DEVICE },
	{ "Memcpy", LAYER_DEVICE },
	{ "gpu_memset", LAYER_DEVICE },
	{ "Memset", LAYER_DEVICE },
	{ "collective_comm", LAYER_DEVICE },
	{ "mtia_ccp_events", LAYER_DEVICE },
	{ "gpu_user_annotation", LAYER_DERIVED },
	{ "cuda_sync", LAYER_DERIVED },
	{ "cuda_profiler_range", LAYER_DERIVED },
	{ "Trace", LAYER_SPAN },
	{ "overhead", LAYER_SPAN },
};

static enum trace_layer layer_of(struct str category)
{
	for (size_t i = 0; i < ARRAY_COUNT(layers); i++)
		if (str_eq(category, str_from(layers[i].category)))
			return layers[i].layer;
	return LAYER_THREAD;
}

uint8_t trace_dict_layer(struct trace_dict *d, struct mem *mem, uint32_t category)
{
	size_t old = d->layer_cap;
	void *layer = d->layer;

	if (!category)
		return LAYER_THREAD;
	if (OW_LIKELY(category < d->layer_cap && d->layer[category]))
		return (uint8_t)(d->layer[category] - 1);
	if (!mem_grow(mem, &layer, &d->layer_cap, (size_t)category + 1, 1))
		return LAYER_THREAD; /* memory is short: the next addition will say so */
	d->layer = layer;
	memset(d->layer + old, 0, d->layer_cap - old);
	d->layer[category] = (uint8_t)(layer_of(d->text[category]) + 1);
	return (uint8_t)(d->layer[category] - 1);
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
