/* tf_tally.c: see tf_tally.h. */
#include "import/tf_tally.h"

void tf_tally_init(struct tf_tally *t, struct builder *b)
{
	*t = (struct tf_tally){ .b = b };
	map_init(&t->map, b->m->mem);
}

void tf_tally_release(struct tf_tally *t)
{
	map_release(&t->map);
	mem_free(t->b->m->mem, t->items, t->cap * sizeof(*t->items));
	t->items = NULL;
	t->count = t->cap = t->last = 0;
}

void tf_tally_slow(struct tf_tally *t, str_id text, int64_t value)
{
	uint64_t hash = map_hash_u64(text.v, 6);
	void *items = t->items;

	if (!t->count)
		t->count = 1;
	for (struct map_iter it = map_find(&t->map, hash); it.value; it = map_next(&t->map, it))
		if (t->items[it.value].text.v == text.v) {
			t->last = it.value;
			t->items[t->last].value = wrap_add(t->items[t->last].value, value);
			return;
		}
	if (!mem_grow(t->b->m->mem, &items, &t->cap, t->count + 1, sizeof(*t->items))) {
		builder_no_memory(t->b);
		return;
	}
	t->items = items;
	if (!map_add(&t->map, hash, (uint32_t)t->count)) {
		builder_no_memory(t->b);
		return;
	}
	t->last = t->count++;
	t->items[t->last] = (struct tf_tally_item){ text, value };
}

static int by_value(const void *a, const void *b, void *arg)
{
	const struct tf_tally_item *x = a, *y = b;
	const struct model *m = arg;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return str_cmp(model_str(m, x->text), model_str(m, y->text));
}

void tf_tally_sort(struct tf_tally *t)
{
	if (t->count > 2)
		qsort_r(t->items + 1, t->count - 1, sizeof(*t->items), by_value, t->b->m);
}

static void pair(struct builder *b, fact_id list, const struct tf_tally_item *item)
{
	fact_id two = fact_list(b, list, NULL);

	fact_text(b, two, NULL, model_str(b->m, item->text));
	fact_int(b, two, NULL, item->value);
}

void tf_tally_list(struct tf_tally *t, fact_id parent, const char *key, size_t limit)
{
	fact_id list = fact_list(t->b, parent, key);

	tf_tally_sort(t);
	for (size_t i = 1; i < t->count && i <= limit; i++)
		pair(t->b, list, &t->items[i]);
}

void tf_tally_object(struct tf_tally *t, fact_id parent, const char *key, size_t limit)
{
	fact_id object = fact_object(t->b, parent, key);

	tf_tally_sort(t);
	for (size_t i = 1; i < t->count && i <= limit; i++)
		fact_int(t->b, object, model_str(t->b->m, t->items[i].text).ptr, t->items[i].value);
}

void tf_top_add(struct tf_top *top, const struct model *m, str_id text, int64_t value)
{
	struct tf_tally_item item = { text, value };
	size_t at = top->count;

	if (at == top->want && value < top->items[at - 1].value)
		return;
	while (at > 0 && by_value(&item, &top->items[at - 1], (void *)m) < 0)
		at--;
	if (at == top->want)
		return;
	if (top->count < top->want)
		top->count++;
	memmove(top->items + at + 1, top->items + at, (top->count - at - 1) * sizeof(*top->items));
	top->items[at] = item;
}

void tf_top_list(const struct tf_top *top, struct builder *b, fact_id parent, const char *key)
{
	fact_id list = fact_list(b, parent, key);

	for (size_t i = 0; i < top->count; i++)
		pair(b, list, &top->items[i]);
}
