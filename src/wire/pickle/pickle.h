/*
 * pickle.h: reading Python pickles of all protocols (0 to 5) without running anything. The opcodes build
 * numbers, texts, lists, tuples, sets and dictionaries; classes and functions that the pickle names are
 * never looked up: their results are values of the kind PICKLE_FOREIGN, and their names are kept for a
 * message. (Ordered and default dictionaries are read as dictionaries.)
 *
 *	pickle_init(&p, &input, err);
 *	pickle_run(&p);                 walk p.root; p.damage says why reading ended early
 *	pickle_release(&p);
 *
 * No recursion: nesting costs a place on the stack of the machine, which is an array. Memory is at most a
 * fixed multiple of the input. Lists may be long: with `take` the caller uses their items as they come and
 * releases them. A pickle that ends too early is closed as well as possible, and its values can be used.
 * Structures may contain themselves and share parts: code that walks them must count its steps.
 */
#ifndef WIRE_PICKLE_H
#define WIRE_PICKLE_H

#include "base/arena.h"
#include "base/input.h"

enum pickle_kind {
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INT,
	PICKLE_REAL,
	PICKLE_BIG, /* integer of more than 64 bits; its value is lost */
	PICKLE_TEXT,
	PICKLE_BYTES, /* bytes: the length is known, the content is lost */
	PICKLE_LIST,
	PICKLE_TUPLE,
	PICKLE_SET,
	PICKLE_DICT,
	PICKLE_FOREIGN
};

struct pickle_value {
	uint32_t kind;
	uint32_t object; /* number of the object, for PICKLE_TEXT and up */
	union {
		int64_t number; /* integer; one between 2^63 and 2^64 is stored as its bits */
		double real;
	};
};

struct pickle_object {
	union {
		struct pickle_value *items; /* items; for a dictionary: key, value, key, value, … */
		const char *text;
		int64_t number; /* number that the memo holds */
		double real;
	};
	/* number of items (for a dictionary, twice the pairs), or length of the text */
	uint32_t count;
	uint32_t tag; /* value for the caller's use; 0 at first */
	uint8_t kind; /* enum pickle_kind */
	uint8_t room; /* the items have room for 1 << room values */
	bool taken;   /* the caller has released the items */
};

#define PICKLE_NAMES 8

struct pickle {
	/* Called with every item before it is put into a list. True: the items of that item are not needed any more,
	 * and the list does not keep it. May be NULL. */
	bool (*take)(void *arg, struct pickle *p, uint32_t list, struct pickle_value item);
	void *arg;

	struct pickle_value root; /* result of pickle_run */
	/* reason why reading ended before the end of the pickle, or NULL */
	const char *damage;
	uint64_t damage_offset;
	bool truncated; /* the input ended too early */
	/* texts: the first names of functions that were not run */
	struct pickle_value foreign[PICKLE_NAMES];
	uint32_t foreign_names;
	uint64_t foreign_count; /* number of objects of unexpected types */

	/* Internal state: */
	struct mem *mem;
	struct window window;
	uint64_t at, size;
	ow_status status;
	struct ow_error *err;
	struct arena arena;
	struct pickle_object *objects;
	size_t object_count, object_cap;
	struct pickle_value *stack;
	size_t count, cap;
	size_t *marks;
	size_t mark_count, mark_cap;
	uint32_t *memo; /* objects of the memo; 0: none */
	size_t memo_count, memo_cap;
	void *spare[32]; /* released lists of items, by room */
	bool stopped;
};

void pickle_init(struct pickle *p, const struct input *in, struct ow_error *err);
void pickle_release(struct pickle *p);
/* Reads the pickle. Returns OW_OK also for damage if any value was read; else the failure of
 * memory or disk. */
ow_status pickle_run(struct pickle *p);

/* Returns the object of a value (PICKLE_TEXT and up). */
static inline struct pickle_object *pickle_object(const struct pickle *p, struct pickle_value v)
{
	return &p->objects[v.kind >= PICKLE_TEXT ? v.object : 0];
}
/* Returns the text of a value; empty if it is not a text. */
static inline struct str pickle_text(const struct pickle *p, struct pickle_value v)
{
	if (v.kind != PICKLE_TEXT)
		return STR("");
	return str_make(p->objects[v.object].text, p->objects[v.object].count);
}
/* Returns the value of a key of a dictionary, the last one if it repeats; NULL if there is none. */
const struct pickle_value *pickle_find(const struct pickle *p, struct pickle_value dict,
				       const char *key);

#endif
