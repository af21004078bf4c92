/* stack_names.c: see stack_names.h. */
#include "live/stack_names.h"

#define MAX_ROWS ((size_t)1 << 22)

void stack_names_init(struct stack_names *t, struct mem *mem, struct recording *to)
{
	*t = (struct stack_names){ .mem = mem, .to = to };
	arena_init(&t->arena, mem);
	map_init(&t->text_map, mem);
	map_init(&t->frames.map, mem);
	map_init(&t->stacks.map, mem);
}

void stack_names_release(struct stack_names *t)
{
	arena_release(&t->arena);
	map_release(&t->text_map);
	map_release(&t->frames.map);
	map_release(&t->stacks.map);
	mem_free(t->mem, t->texts, t->text_cap * sizeof(*t->texts));
	mem_free(t->mem, t->frames.keys, t->frames.cap * sizeof(*t->frames.keys));
	mem_free(t->mem, t->stacks.keys, t->stacks.cap * sizeof(*t->stacks.keys));
}

void stack_names_begin(struct stack_names *t, struct recording *to)
{
	struct mem *mem = t->mem;

	stack_names_release(t);
	stack_names_init(t, mem, to);
}

uint32_t stack_names_text(struct stack_names *t, struct str text)
{
	uint64_t hash = str_hash(text);
	void *texts = t->texts;
	struct str copy;

	for (struct map_iter it = map_find(&t->text_map, hash); it.value;
	     it = map_next(&t->text_map, it))
		if (str_eq(t->texts[it.value], text))
			return it.value;
	copy = arena_str(&t->arena, text);
	if (!copy.ptr || t->text_count >= MAX_ROWS ||
	    !mem_grow(t->mem, &texts, &t->text_cap, t->text_count + 2, sizeof(*t->texts))) {
		t->no_memory = true;
		return 0;
	}
	t->texts = texts;
	if (!map_add(&t->text_map, hash, (uint32_t)t->text_count + 1)) {
		t->no_memory = true;
		return 0;
	}
	t->texts[++t->text_count] = copy;
	recording_add_text(t->to, 0, LIVE_SOURCE, (uint32_t)t->text_count, copy);
	return (uint32_t)t->text_count;
}

/* *is_new: the caller writes it. 0 without memory. */
static uint32_t row_number(struct stack_names *t, struct stack_names_rows *rows,
			   const uint32_t key[4], bool *is_new)
{
	uint64_t hash =
		map_hash_u64((uint64_t)key[0] << 32 | key[1], (uint64_t)key[2] << 32 | key[3]);
	void *keys = rows->keys;

	*is_new = false;
	for (struct map_iter it = map_find(&rows->map, hash); it.value;
	     it = map_next(&rows->map, it))
		if (memcmp(rows->keys[it.value], key, sizeof(rows->keys[0])) == 0)
			return it.value;
	if (rows->count >= MAX_ROWS ||
	    !mem_grow(t->mem, &keys, &rows->cap, rows->count + 2, sizeof(*rows->keys))) {
		t->no_memory = true;
		return 0;
	}
	rows->keys = keys;
	if (!map_add(&rows->map, hash, (uint32_t)rows->count + 1)) {
		t->no_memory = true;
		return 0;
	}
	memcpy(rows->keys[++rows->count], key, sizeof(rows->keys[0]));
	*is_new = true;
	return (uint32_t)rows->count;
}

uint32_t stack_names_frame(struct stack_names *t, const struct live_frame *frame)
{
	uint32_t key[4] = { frame->function, frame->file, (uint32_t)frame->line,
			    (uint32_t)frame->function_line };
	struct live_frame row = *frame;
	bool is_new;

	row.number = row_number(t, &t->frames, key, &is_new);
	if (is_new)
		recording_add_frame(t->to, &row);
	return row.number;
}

uint32_t stack_names_stack(struct stack_names *t, uint32_t parent, uint32_t frame)
{
	uint32_t key[4] = { parent, frame };
	struct live_stack row = { .parent = parent, .frame = frame };
	bool is_new;

	row.number = row_number(t, &t->stacks, key, &is_new);
	if (is_new)
		recording_add_stack(t->to, &row);
	return row.number;
}
