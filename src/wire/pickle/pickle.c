/*
 * pickle.c: the machine that reads pickles: its bytes, stack, memo and objects. The opcodes are in pickle_ops.c, old
 * forms of text and numbers in pickle_text.c. See pickle.h.
 */
#include "wire/pickle/pickle_int.h"

#include "base/vec.h"

#define LINE_PEEK ((size_t)256)

void pickle_init(struct pickle *p, const struct input *in, struct ow_error *err)
{
	*p = (struct pickle){ .mem = in->mem, .size = in->size, .err = err };
	window_init(&p->window, in, err);
	arena_init(&p->arena, in->mem);
}

void pickle_release(struct pickle *p)
{
	window_release(&p->window);
	arena_release(&p->arena);
	mem_free(p->mem, p->objects, p->object_cap * sizeof(*p->objects));
	mem_free(p->mem, p->stack, p->cap * sizeof(*p->stack));
	mem_free(p->mem, p->marks, p->mark_cap * sizeof(*p->marks));
	mem_free(p->mem, p->memo, p->memo_cap * sizeof(*p->memo));
}

void pickle_note_damage(struct pickle *p, const char *what)
{
	if (p->damage)
		return;
	p->damage = what;
	p->damage_offset = p->at;
}

void pickle_note_failure(struct pickle *p, ow_status status)
{
	if (p->status == OW_OK)
		p->status = status;
}

const unsigned char *pickle_bytes(struct pickle *p, uint64_t len)
{
	const unsigned char *at;

	if (OW_UNLIKELY(len > p->size - p->at)) {
		p->truncated = true;
		pickle_damaged(p, "the file ends inside the pickle");
		return NULL;
	}
	at = window_at(&p->window, p->at, (size_t)len);
	if (OW_UNLIKELY(!at)) {
		pickle_failed(p, p->window.status);
		return NULL;
	}
	p->at += len;
	return at;
}

bool pickle_line(struct pickle *p, struct str *line)
{
	for (size_t want = LINE_PEEK;; want *= 2) {
		struct str seen = window_peek(&p->window, p->at, want);
		size_t end;

		if (!seen.ptr)
			return pickle_failed(p, p->window.status);
		end = str_find_char(seen, '\n');
		if (end != STR_NONE) {
			*line = str_first(seen, end);
			p->at += end + 1;
			return true;
		}
		if (seen.len >= p->size - p->at) {
			p->truncated = true;
			return pickle_damaged(p, "the file ends inside the pickle");
		}
		want = MAX(want, seen.len);
	}
}

bool pickle_push(struct pickle *p, struct pickle_value v)
{
	if (OW_UNLIKELY(p->count == p->cap)) {
		if (!vec_reserve(p->mem, p->stack, p->cap, p->count + 1))
			return pickle_no_memory(p);
	}
	p->stack[p->count++] = v;
	return true;
}

static bool grow_objects(struct pickle *p)
{
	void *objects = p->objects;

	if (p->object_count >= UINT32_MAX)
		return pickle_failed(
			p, error_set(p->err, OW_E_LIMIT, "the pickle has more than 2^32 objects"));
	if (!mem_grow(p->mem, &objects, &p->object_cap, p->object_count + 1, sizeof(*p->objects)))
		return pickle_no_memory(p);
	p->objects = objects;
	return true;
}

bool pickle_make(struct pickle *p, enum pickle_kind kind, struct pickle_value *v)
{
	if (OW_UNLIKELY(p->object_count == p->object_cap) && !grow_objects(p))
		return false;
	p->objects[p->object_count] = (struct pickle_object){ .kind = (uint8_t)kind };
	*v = (struct pickle_value){ .kind = kind, .object = (uint32_t)p->object_count++ };
	return true;
}

bool pickle_push_new(struct pickle *p, enum pickle_kind kind)
{
	struct pickle_value v;

	return pickle_make(p, kind, &v) && pickle_push(p, v);
}

static bool make_text(struct pickle *p, struct str text, struct pickle_value *v)
{
	char *copy = arena_push_aligned(&p->arena, MAX(text.len, (size_t)1), 1);

	if (!copy)
		return pickle_no_memory(p);
	memcpy(copy, text.ptr, text.len);
	if (!pickle_make(p, PICKLE_TEXT, v))
		return false;
	p->objects[v->object].text = copy;
	p->objects[v->object].count = (uint32_t)text.len;
	return true;
}

bool pickle_push_text(struct pickle *p, struct str text)
{
	struct pickle_value v;

	if (text.len > UINT32_MAX)
		return pickle_damaged(p, "a text of more than 4 GiB");
	return make_text(p, text, &v) && pickle_push(p, v);
}

static bool known_name(const struct pickle *p, struct str name)
{
	for (uint32_t i = 0; i < p->foreign_names; i++)
		if (str_eq(pickle_text(p, p->foreign[i]), name))
			return true;
	return false;
}

bool pickle_push_foreign(struct pickle *p, struct str module, struct str name)
{
	struct pickle_value text, v;
	char *whole;

	if (module.len > 200 || name.len > 200)
		return pickle_damaged(p, "a name of a class that is too long");
	whole = arena_printf(&p->arena, "%.*s%s%.*s", STR_ARG(module), module.len ? "." : "",
			     STR_ARG(name));
	if (!whole)
		return pickle_no_memory(p);
	if (!make_text(p, str_from(whole), &text) || !pickle_make(p, PICKLE_FOREIGN, &v))
		return false;
	p->objects[v.object].text = p->objects[text.object].text;
	p->objects[v.object].count = p->objects[text.object].count;
	if (p->foreign_names < PICKLE_NAMES && !known_name(p, str_from(whole)))
		p->foreign[p->foreign_names++] = text;
	return pickle_push(p, v);
}

const struct pickle_value *pickle_find(const struct pickle *p, struct pickle_value dict,
				       const char *key)
{
	const struct pickle_object *o = pickle_object(p, dict);

	if (dict.kind != PICKLE_DICT)
		return NULL;
	for (uint32_t i = o->count; i >= 2; i -= 2)
		if (o->items[i - 2].kind == PICKLE_TEXT &&
		    str_eq(pickle_text(p, o->items[i - 2]), str_from(key)))
			return &o->items[i - 1];
	return NULL;
}
