/* pickle_int.h: shared by the files of the pickle reader; see pickle.h. */
#ifndef WIRE_PICKLE_INT_H
#define WIRE_PICKLE_INT_H

#include "wire/pickle/pickle.h"

void pickle_note_damage(struct pickle *p, const char *what);
void pickle_note_failure(struct pickle *p, ow_status status);

/* These end the reading. They return false, for `return pickle_damaged(…)` in opcodes, and are inline, so that
 * compilers and analysers see in the caller that the result is never success. */
static inline bool pickle_damaged(struct pickle *p, const char *what)
{
	pickle_note_damage(p, what);
	return false;
}
static inline bool pickle_failed(struct pickle *p, ow_status status)
{
	pickle_note_failure(p, status);
	return false;
}
static inline bool pickle_no_memory(struct pickle *p)
{
	return pickle_failed(p, error_no_memory(p->err));
}
static inline bool pickle_underflow(struct pickle *p)
{
	return pickle_damaged(p, "an opcode takes more values than the stack has");
}

/* Returns the next bytes, valid until the next call; NULL (and reading ends) if fewer are left. */
const unsigned char *pickle_bytes(struct pickle *p, uint64_t len);
/* Returns the next line without its end. */
bool pickle_line(struct pickle *p, struct str *line);

bool pickle_push(struct pickle *p, struct pickle_value v);
/* Pushes a new object of that kind; text is copied. */
bool pickle_push_new(struct pickle *p, enum pickle_kind kind);
bool pickle_push_text(struct pickle *p, struct str text);
/* Pushes an object that cannot be made, with the name of its class or function. */
bool pickle_push_foreign(struct pickle *p, struct str module, struct str name);
bool pickle_make(struct pickle *p, enum pickle_kind kind, struct pickle_value *v);

/* Functions of pickle_stack.c. */
typedef bool (*pickle_add_fn)(struct pickle *p, struct pickle_value to,
			      const struct pickle_value *v, size_t count);
/* Add items to a list or set, or pairs to a dictionary. */
bool pickle_append(struct pickle *p, struct pickle_value to, const struct pickle_value *v,
		   size_t count);
bool pickle_set_items(struct pickle *p, struct pickle_value to, const struct pickle_value *v,
		      size_t count);
/* Returns the first stack position that an opcode may use: above the last mark. */
size_t pickle_base(const struct pickle *p);
bool pickle_pop(struct pickle *p, struct pickle_value *v);
bool pickle_pop_one(struct pickle *p);
bool pickle_duplicate(struct pickle *p);
bool pickle_mark(struct pickle *p);
/* Removes the last mark; *first becomes the position of its items. */
bool pickle_pop_mark(struct pickle *p, size_t *first);
/* Make a new object from all values above the mark, or from the topmost ones. */
bool pickle_collect(struct pickle *p, enum pickle_kind kind);
bool pickle_tuple_of(struct pickle *p, size_t count);
/* Move the values above the mark, or the topmost ones, into the value below them. */
bool pickle_add_marked(struct pickle *p, pickle_add_fn add);
bool pickle_add_top(struct pickle *p, size_t count, pickle_add_fn add);
bool pickle_put(struct pickle *p, uint64_t index);
bool pickle_get(struct pickle *p, uint64_t index);

/* pickle_text.c: numbers and strings as protocols 0 and 1 write them, and long integers. */
bool pickle_read_int(struct pickle *p);
bool pickle_read_long_line(struct pickle *p);
bool pickle_read_real(struct pickle *p);
bool pickle_read_string(struct pickle *p);
bool pickle_read_unicode(struct pickle *p);
bool pickle_read_index(struct pickle *p, uint64_t *index);
bool pickle_read_long(struct pickle *p, uint64_t len);

#endif
