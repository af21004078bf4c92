/*
 * pickle_stack.c: the stack, the marks on it, the memo, and the items of lists and dictionaries, for the
 * opcodes in pickle_ops.c. See pickle.h.
 */
#include "wire/pickle/pickle_int.h"

#include "base/vec.h"

#define ROOM_MIN 2 /* a small object has room for 1 << 2 items */

static struct pickle_value *new_items(struct pickle *p, uint32_t room)
{
	void **spare = p->spare[room];

	if (spare) {
		p->spare[room] = *spare;
		return (struct pickle_value *)(void *)spare;
	}
	return arena_push_aligned(&p->arena, sizeof(struct pickle_value) << room,
				  _Alignof(struct pickle_value));
}

static void free_items(struct pickle *p, struct pickle_value *items, uint32_t room)
{
	if (!items)
		return;
	*(void **)(void *)items = p->spare[room];
	p->spare[room] = items;
}

/* Makes room for more items. */
static bool reserve(struct pickle *p, uint32_t object, size_t more)
{
	struct pickle_object *o = &p->objects[object];
	uint32_t room = o->items ? o->room : ROOM_MIN;
	struct pickle_value *items;

	if (more > UINT32_MAX / 2 - o->count)
		return pickle_damaged(p, "a list of more than 2^31 items");
	if (o->items && o->count + more <= (size_t)1 << room)
		return true;
	while ((size_t)1 << room < o->count + more)
		room++;
	items = new_items(p, room);
	if (!items)
		return pickle_no_memory(p);
	if (o->items)
		memcpy(items, o->items, o->count * sizeof(*items));
	free_items(p, o->items, o->room);
	o->items = items;
	o->room = (uint8_t)room;
	return true;
}

static bool add_items(struct pickle *p, uint32_t object, const struct pickle_value *v, size_t count)
{
	struct pickle_object *o = &p->objects[object];

	if (o->taken || !count) /* a released list has no items */
		return true;
	if (!reserve(p, object, count))
		return false;
	memcpy(o->items + o->count, v, count * sizeof(*v));
	o->count += (uint32_t)count;
	return true;
}

static void let_go(struct pickle *p, struct pickle_value v)
{
	struct pickle_object *o = pickle_object(p, v);

	if (v.kind != PICKLE_DICT || o->taken)
		return;
	free_items(p, o->items, o->room);
	o->items = NULL;
	o->count = 0;
	o->taken = true;
}

/* Adds to a list or a set; a foreign value ignores its items. */
bool pickle_append(struct pickle *p, struct pickle_value to, const struct pickle_value *v,
		   size_t count)
{
	if (to.kind != PICKLE_LIST)
		return to.kind == PICKLE_SET ? add_items(p, to.object, v, count)
		       : to.kind >= PICKLE_TEXT
			       ? true
			       : pickle_damaged(
					 p,
					 "the pickle appends items to a value that is not a list");
	if (!p->take)
		return add_items(p, to.object, v, count);
	for (size_t i = 0; i < count; i++) {
		if (p->take(p->arg, p, to.object, v[i]))
			let_go(p, v[i]);
		else if (!add_items(p, to.object, &v[i], 1))
			return false;
		if (p->status != OW_OK)
			return false;
	}
	return true;
}

bool pickle_set_items(struct pickle *p, struct pickle_value to, const struct pickle_value *v,
		      size_t count)
{
	if (to.kind == PICKLE_DICT)
		return count % 2 ? pickle_damaged(p, "a key without a value")
				 : add_items(p, to.object, v, count);
	return to.kind >= PICKLE_TEXT
		       ? true
		       : pickle_damaged(p, "pairs for something that is not a dictionary");
}

/* Returns the first stack position that an opcode may use: above the last mark. */
size_t pickle_base(const struct pickle *p)
{
	return p->mark_count ? p->marks[p->mark_count - 1] : 0;
}

bool pickle_pop(struct pickle *p, struct pickle_value *v)
{
	if (p->count <= pickle_base(p))
		return pickle_underflow(p);
	*v = p->stack[--p->count];
	return true;
}

bool pickle_mark(struct pickle *p)
{
	if (p->mark_count == p->mark_cap) {
		if (!vec_reserve(p->mem, p->marks, p->mark_cap, p->mark_count + 1))
			return pickle_no_memory(p);
	}
	p->marks[p->mark_count++] = p->count;
	return true;
}

/* Removes the last mark; *first becomes the position of its items. */
bool pickle_pop_mark(struct pickle *p, size_t *first)
{
	if (!p->mark_count)
		return pickle_damaged(p, "an opcode needs a mark, and there is none");
	*first = p->marks[--p->mark_count];
	return true;
}

/* Makes a new object of all values from a position on. */
static bool collect_from(struct pickle *p, enum pickle_kind kind, size_t first)
{
	struct pickle_value v;
	bool added;

	if (!pickle_make(p, kind, &v))
		return false;
	added = kind == PICKLE_DICT   ? pickle_set_items(p, v, p->stack + first, p->count - first)
		: kind == PICKLE_LIST ? pickle_append(p, v, p->stack + first, p->count - first)
				      : add_items(p, v.object, p->stack + first, p->count - first);
	p->count = first;
	return added && pickle_push(p, v);
}

bool pickle_collect(struct pickle *p, enum pickle_kind kind)
{
	size_t first;

	return pickle_pop_mark(p, &first) && collect_from(p, kind, first);
}

bool pickle_tuple_of(struct pickle *p, size_t count)
{
	if (p->count - pickle_base(p) < count)
		return pickle_underflow(p);
	return collect_from(p, PICKLE_TUPLE, p->count - count);
}

/* Moves the values above the mark into the value below it. */
bool pickle_add_marked(struct pickle *p, pickle_add_fn add)
{
	size_t first;
	bool added;

	if (!pickle_pop_mark(p, &first))
		return false;
	if (first <= pickle_base(p))
		return pickle_underflow(p);
	added = add(p, p->stack[first - 1], p->stack + first, p->count - first);
	p->count = first;
	return added;
}

bool pickle_add_top(struct pickle *p, size_t count, pickle_add_fn add)
{
	if (p->count - pickle_base(p) < count + 1)
		return pickle_underflow(p);
	p->count -= count;
	return add(p, p->stack[p->count - 1], p->stack + p->count, count);
}

bool pickle_pop_one(struct pickle *p)
{
	struct pickle_value v;
	size_t first;

	if (p->mark_count && p->count == pickle_base(p))
		return pickle_pop_mark(p, &first);
	return pickle_pop(p, &v);
}

bool pickle_duplicate(struct pickle *p)
{
	return p->count > pickle_base(p) ? pickle_push(p, p->stack[p->count - 1])
					 : pickle_underflow(p);
}

/* Returns the object of a value; numbers get one. */
static bool object_of(struct pickle *p, struct pickle_value v, uint32_t *object)
{
	struct pickle_value boxed;

	*object = v.object;
	if (v.kind >= PICKLE_TEXT)
		return true;
	if (!pickle_make(p, v.kind, &boxed))
		return false;
	p->objects[boxed.object].number = v.number;
	*object = boxed.object;
	return true;
}

bool pickle_put(struct pickle *p, uint64_t index)
{
	void *memo = p->memo;
	uint32_t object;

	if (p->count <= pickle_base(p))
		return pickle_underflow(p);
	/* memo entries are numbered from 0, and each takes at least one byte */
	if (index >= p->at)
		return pickle_damaged(p, "an impossible memo index");
	if (!object_of(p, p->stack[p->count - 1], &object))
		return false;
	if (index >= p->memo_cap) {
		size_t old = p->memo_cap;

		if (!mem_grow(p->mem, &memo, &p->memo_cap, (size_t)index + 1, sizeof(*p->memo)))
			return pickle_no_memory(p);
		p->memo = memo;
		memset(p->memo + old, 0, (p->memo_cap - old) * sizeof(*p->memo));
	}
	p->memo[index] = object;
	p->memo_count = MAX(p->memo_count, (size_t)index + 1);
	return true;
}

bool pickle_get(struct pickle *p, uint64_t index)
{
	const struct pickle_object *o;
	uint32_t object = index < p->memo_count ? p->memo[index] : 0;

	if (!object)
		return pickle_damaged(p, "a memo index without a value");
	o = &p->objects[object];
	if (o->kind >= PICKLE_TEXT)
		return pickle_push(p, (struct pickle_value){ .kind = o->kind, .object = object });
	return pickle_push(p, (struct pickle_value){ .kind = o->kind, .number = o->number });
}
