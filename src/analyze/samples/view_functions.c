/*
 * sample_functions.c: see sample_functions.h. Stacks are added up first: each is walked once, however many
 * samples it has.
 */
#include "analyze/sample_functions.h"

static uint32_t find_function(struct functions *f, uint32_t frame)
{
	const struct model *m = f->m;
	struct str name = sample_frame_name(m, (frame_id){ frame }, f->scratch);
	uint32_t module = COLUMN_GET(m->frame.module, frame).v;
	uint64_t hash = map_hash_u64(str_hash(name), module);
	void *items = f->items;

	if (!name.ptr)
		return 0;
	for (struct map_iter it = map_find(&f->map, hash); it.value; it = map_next(&f->map, it))
		if (str_eq(f->items[it.value].name, name) &&
		    COLUMN_GET(m->frame.module, f->items[it.value].frame).v == module)
			return it.value;
	if (!mem_grow(m->mem, &items, &f->cap, f->count + 1, sizeof(*f->items)))
		return 0;
	f->items = items;
	if (!map_add(&f->map, hash, (uint32_t)f->count))
		return 0;
	f->items[f->count] = (struct function){ .frame = frame, .name = name };
	return (uint32_t)f->count++;
}

static uint32_t function_of(struct functions *f, uint32_t frame)
{
	if (!f->of_frame[frame])
		f->of_frame[frame] = find_function(f, frame);
	return f->of_frame[frame];
}

static bool add_stacks(struct functions *f, const int64_t *self)
{
	const struct stack_table *s = &f->m->stack;

	for (uint32_t i = 1; i < s->count; i++) {
		if (!self[i])
			continue;
		f->all = wrap_add(f->all, self[i]);
		for (uint32_t at = i; at; at = s->parent[at].v) {
			uint32_t function = function_of(f, s->frame[at].v);
			struct function *item;

			if (!function)
				return false;
			item = &f->items[function];
			if (at == i)
				item->self = wrap_add(item->self, self[i]);
			if (item->seen != i)
				item->total = wrap_add(item->total, self[i]);
			item->seen = i;
		}
	}
	f->all = wrap_add(f->all, self[0]);
	return true;
}

static int by_self(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return str_cmp(x->name, y->name);
}

static int by_total(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->total == y->total ? by_self(a, b) : x->total > y->total ? -1 : 1;
}

void sample_functions_sort(struct functions *f, bool by_totals)
{
	if (f->count > 1)
		qsort(f->items + 1, f->count - 1, sizeof(*f->items),
		      by_totals ? by_total : by_self);
}

ow_status sample_functions_make(struct functions *f, struct error *err)
{
	int64_t *self = samples_by_stack(&f->choice, f->scratch);
	void *items = NULL;

	map_init(&f->map, f->m->mem);
	f->of_frame = ARENA_ARRAY(f->scratch, uint32_t, f->m->frame.count);
	if (!self || !f->of_frame || !mem_grow(f->m->mem, &items, &f->cap, 64, sizeof(*f->items)))
		return error_no_memory(err);
	f->items = items;
	f->count = 1;
	return add_stacks(f, self) ? OW_OK : error_no_memory(err);
}

void sample_functions_release(struct functions *f)
{
	mem_free(f->m->mem, f->items, f->cap * sizeof(*f->items));
	map_release(&f->map);
}
