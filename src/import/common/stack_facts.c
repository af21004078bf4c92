/* stack_facts.c: sums by name for the importers of sampled stacks, and how `info` shows them: all, or the largest few. */
#include "import/common/stack_facts.h"

#include "base/vec.h"

void name_sums_init(struct name_sums *s, struct mem *mem)
{
	*s = (struct name_sums){ .mem = mem };
	map_init(&s->map, mem);
}

void name_sums_release(struct name_sums *s)
{
	mem_free(s->mem, s->items, s->cap * sizeof(*s->items));
	map_release(&s->map);
}

bool name_sums_add(struct name_sums *s, str_id name, int64_t value)
{
	uint64_t hash = map_hash_u64(name.v, 9);

	for (struct map_iter it = map_find(&s->map, hash); it.value; it = map_next(&s->map, it)) {
		struct name_sum *item = &s->items[it.value - 1];

		if (item->name.v == name.v) {
			item->sum = wrap_add(item->sum, value);
			return true;
		}
	}
	if (!vec_push(s->mem, s->items, s->count, s->cap, (struct name_sum){ name, value }))
		return false;
	return map_add(&s->map, hash, (uint32_t)s->count);
}

static int by_sum(const void *a, const void *b, void *arg)
{
	const struct name_sum *x = a, *y = b;

	if (x->sum != y->sum)
		return x->sum > y->sum ? -1 : 1;
	return str_cmp(model_str(arg, x->name), model_str(arg, y->name));
}

void fact_top(struct builder *b, fact_id parent, const char *key, struct name_sums *sums,
	      size_t count)
{
	fact_id list = fact_list(b, parent, key);

	if (sums->count)
		qsort_r(sums->items, sums->count, sizeof(*sums->items), by_sum, b->m);
	for (size_t i = 0; i < sums->count && i < count; i++) {
		fact_id pair = fact_list(b, list, "");

		fact_text(b, pair, "", model_str(b->m, sums->items[i].name));
		fact_int(b, pair, "", sums->items[i].sum);
	}
}

void fact_sums(struct builder *b, fact_id parent, const char *key, const struct name_sums *sums)
{
	fact_id object = fact_object(b, parent, key);

	for (size_t i = 0; i < sums->count; i++) {
		struct str name = model_str(b->m, sums->items[i].name);

		fact_int(b, object, name.len ? name.ptr : "?", sums->items[i].sum);
	}
}
