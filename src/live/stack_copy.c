/* stack_copy.c: see stack_copy.h. */
#include "live/stack_copy.h"

#define NUMBER_MAX ((uint32_t)1 << 23)

void stack_copy_init(struct stack_copy *c, struct mem *mem, struct recording *to)
{
	*c = (struct stack_copy){ 0 };
	stack_names_init(&c->table, mem, to);
}

static void release(struct stack_copy *c, struct stack_numbers *n)
{
	mem_free(c->table.mem, n->items, n->cap * sizeof(*n->items));
	*n = (struct stack_numbers){ 0 };
}

void stack_copy_begin_file(struct stack_copy *c)
{
	release(c, &c->texts);
	release(c, &c->frames);
	release(c, &c->stacks);
}

void stack_copy_release(struct stack_copy *c)
{
	stack_copy_begin_file(c);
	stack_names_release(&c->table);
}

static uint32_t get(const struct stack_numbers *n, uint32_t number)
{
	return number < n->cap ? n->items[number] : 0;
}

static bool put(struct stack_copy *c, struct stack_numbers *n, uint32_t number, uint32_t value)
{
	void *items = n->items;
	size_t old = n->cap;

	if (!value)
		return false; /* without memory */
	if (number >= old) {
		if (!mem_grow(c->table.mem, &items, &n->cap, (size_t)number + 1, sizeof(*n->items)))
			return false;
		n->items = items;
		memset(n->items + old, 0, (n->cap - old) * sizeof(*n->items));
	}
	n->items[number] = value;
	return true;
}

bool stack_copy_text(struct stack_copy *c, uint32_t number, struct str text)
{
	return !number || number > NUMBER_MAX ||
	       put(c, &c->texts, number, stack_names_text(&c->table, text));
}

bool stack_copy_frame(struct stack_copy *c, const struct live_frame *row)
{
	struct live_frame copy = *row;

	copy.function = get(&c->texts, row->function);
	copy.file = get(&c->texts, row->file);
	if (!row->number || row->number > NUMBER_MAX || !copy.function || !copy.file)
		return true;
	return put(c, &c->frames, row->number, stack_names_frame(&c->table, &copy));
}

bool stack_copy_stack(struct stack_copy *c, const struct live_stack *row)
{
	uint32_t parent = get(&c->stacks, row->parent), frame = get(&c->frames, row->frame);

	if (!row->number || row->number > NUMBER_MAX || !frame || (row->parent && !parent))
		return true;
	return put(c, &c->stacks, row->number, stack_names_stack(&c->table, parent, frame));
}

uint32_t stack_copy_number(const struct stack_copy *c, uint32_t number)
{
	return get(&c->stacks, number);
}
