/*
 * trace_texts.c: adds texts to the dictionary of trace_events; trace_scan.c and trace_args.c call it. The model's
 * strings keep their numbers, and a text that only the file has gets the next free one. The model itself is not
 * changed, because it is frozen and other threads read it.
 */
#include "relation/trace/trace_texts.h"

#include "base/vec.h"

bool trace_texts_init(struct trace_texts *t, struct mem *mem, const struct model *m,
		      const struct trace_texts *base)
{
	const struct str *from = base ? base->list : m->strings.text;
	size_t count = base ? base->count : m->strings.count;
	void *list = NULL;

	*t = (struct trace_texts){ .mem = mem, .m = m, .base = base };
	map_init(&t->map, mem);
	arena_init(&t->arena, mem);
	if (!mem_grow(mem, &list, &t->cap, MAX(count, (size_t)1), sizeof(*t->list)))
		return false;
	t->list = list;
	t->count = MAX(count, (size_t)1);
	if (count)
		memcpy(t->list, from, count * sizeof(*from));
	t->list[0] = (struct str){ 0 };
	return true;
}

void trace_texts_release(struct trace_texts *t)
{
	if (!t->mem)
		return;
	mem_free(t->mem, t->list, t->cap * sizeof(*t->list));
	map_release(&t->map);
	arena_release(&t->arena);
}

static uint32_t find(const struct trace_texts *t, struct str text, uint64_t hash)
{
	for (struct map_iter it = map_find(&t->map, hash); it.value; it = map_next(&t->map, it))
		if (str_eq(t->list[it.value], text))
			return it.value;
	return 0;
}

static bool add(struct trace_texts *t, struct str text, uint64_t hash, uint32_t *code)
{
	struct str copy = arena_str(&t->arena, text);

	if (!copy.ptr || t->count >= UINT32_MAX ||
	    !vec_reserve(t->mem, t->list, t->cap, t->count + 1))
		return false;
	t->list[t->count] = copy;
	*code = (uint32_t)t->count;
	if (!map_add(&t->map, hash, *code))
		return false;
	t->count++;
	return true;
}

bool trace_texts_intern(struct trace_texts *t, struct str text, uint32_t *code)
{
	uint64_t hash;

	*code = model_find_str(t->m, text).v;
	if (*code)
		return true;
	hash = str_hash(text);
	if (t->base)
		*code = find(t->base, text, hash);
	if (!*code)
		*code = find(t, text, hash);
	return *code || add(t, text, hash, code);
}
