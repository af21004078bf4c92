/*
 * pickle_ops.c: the opcodes of pickles, by Python's documentation of the module pickletools. An opcode that would call
 * something makes a value that stands for the result instead; see pickle.h.
 */
#include "wire/pickle/pickle_int.h"

static bool is_dictionary(struct str name)
{
	return str_eq(name, STR("collections.OrderedDict")) ||
	       str_eq(name, STR("collections.defaultdict")) || str_eq(name, STR("builtins.dict")) ||
	       str_eq(name, STR("__builtin__.dict"));
}

/* Replaces a call by an empty dictionary, or by a foreign value of that name. */
static bool call(struct pickle *p, struct pickle_value callable)
{
	const struct pickle_object *o = pickle_object(p, callable);
	struct str name = callable.kind == PICKLE_FOREIGN ? str_make(o->text, o->count) : STR("?");

	if (is_dictionary(name))
		return pickle_push_new(p, PICKLE_DICT);
	p->foreign_count++;
	if (callable.kind == PICKLE_FOREIGN)
		return pickle_push(p, callable);
	return pickle_push_foreign(p, STR(""), STR("something that is not a class"));
}

/* Replaces the call of a callable below `arguments` values. */
static bool call_top(struct pickle *p, size_t arguments)
{
	if (p->count - pickle_base(p) < arguments + 1)
		return pickle_underflow(p);
	p->count -= arguments + 1;
	return call(p, p->stack[p->count]);
}

static bool make_marked(struct pickle *p)
{
	size_t first;

	if (!pickle_pop_mark(p, &first))
		return false;
	if (first >= p->count)
		return pickle_underflow(p);
	p->count = first;
	return call(p, p->stack[first]);
}

static bool global_lines(struct pickle *p)
{
	char module[256];
	struct str line;
	size_t len;

	if (!pickle_line(p, &line))
		return false;
	len = MIN(line.len, sizeof(module));
	memcpy(module, line.ptr, len); /* copied, because the next line may move the window */
	return pickle_line(p, &line) && pickle_push_foreign(p, str_make(module, len), line);
}

static bool global_of_stack(struct pickle *p)
{
	struct pickle_value name, module;

	if (!pickle_pop(p, &name) || !pickle_pop(p, &module))
		return false;
	return pickle_push_foreign(p, pickle_text(p, module), pickle_text(p, name));
}

static bool instance(struct pickle *p)
{
	struct pickle_value class;
	size_t first;

	if (!global_lines(p) || !pickle_pop(p, &class) || !pickle_pop_mark(p, &first))
		return false;
	p->count = first;
	return call(p, class);
}

static bool unknown(struct pickle *p, const char *what)
{
	p->foreign_count++;
	return pickle_push_foreign(p, STR(""), str_from(what));
}

static bool persistent_line(struct pickle *p)
{
	struct str line;

	return pickle_line(p, &line) && unknown(p, "persistent id");
}

static bool load_number(struct pickle *p, size_t len, uint64_t *value)
{
	const unsigned char *at = pickle_bytes(p, len);

	if (!at)
		return false;
	*value = 0;
	for (size_t i = 0; i < len; i++)
		*value |= (uint64_t)at[i] << (8 * i);
	return true;
}

static bool read_integer(struct pickle *p, size_t len)
{
	uint64_t value;

	if (!load_number(p, len, &value))
		return false;
	return pickle_push(
		p, (struct pickle_value){ .kind = PICKLE_INT,
					  .number = len == 4 ? (int32_t)value : (int64_t)value });
}

/* Reads a real number, the highest byte first. */
static bool read_binary_real(struct pickle *p)
{
	struct pickle_value v = { .kind = PICKLE_REAL };
	uint64_t value;

	if (!load_number(p, 8, &value))
		return false;
	value = __builtin_bswap64(value);
	memcpy(&v.real, &value, sizeof(v.real));
	return pickle_push(p, v);
}

static bool read_text(struct pickle *p, size_t len_bytes)
{
	const unsigned char *at;
	uint64_t len;

	if (!load_number(p, len_bytes, &len))
		return false;
	at = pickle_bytes(p, len);
	return at && pickle_push_text(p, str_make(at, (size_t)len));
}

/* Skips bytes without reading them. */
static bool read_bytes(struct pickle *p, size_t len_bytes)
{
	struct pickle_value v;
	uint64_t len;

	if (!load_number(p, len_bytes, &len))
		return false;
	if (len > p->size - p->at)
		return pickle_bytes(p, len) != NULL; /* pickle_bytes reports the failure */
	p->at += len;
	if (!pickle_make(p, PICKLE_BYTES, &v))
		return false;
	p->objects[v.object].count = (uint32_t)MIN(len, (uint64_t)UINT32_MAX);
	return pickle_push(p, v);
}

static bool push_bool(struct pickle *p, bool value)
{
	return pickle_push(p, (struct pickle_value){ .kind = PICKLE_BOOL, .number = value });
}

static bool skip(struct pickle *p, size_t len)
{
	return pickle_bytes(p, len) != NULL;
}

static bool put_number(struct pickle *p, size_t len)
{
	uint64_t index;

	return load_number(p, len, &index) && pickle_put(p, index);
}

static bool get_number(struct pickle *p, size_t len)
{
	uint64_t index;

	return load_number(p, len, &index) && pickle_get(p, index);
}

static bool read_long(struct pickle *p, size_t len_bytes)
{
	uint64_t len;

	return load_number(p, len_bytes, &len) && pickle_read_long(p, len);
}

static bool put_line(struct pickle *p)
{
	uint64_t index;

	return pickle_read_index(p, &index) && pickle_put(p, index);
}

static bool get_line(struct pickle *p)
{
	uint64_t index;

	return pickle_read_index(p, &index) && pickle_get(p, index);
}

static bool extension(struct pickle *p, size_t len)
{
	return skip(p, len) && unknown(p, "extension code");
}

static bool step(struct pickle *p, unsigned char opcode)
{
	struct pickle_value ignored;
	size_t first;

	switch (opcode) {
	case '(':
		return pickle_mark(p);
	case '.':
		p->stopped = true;
		return false;
	case '0':
		return pickle_pop_one(p);
	case '1':
		if (!pickle_pop_mark(p, &first))
			return false;
		p->count = first;
		return true;
	case '2':
		return pickle_duplicate(p);
	case 'F':
		return pickle_read_real(p);
	case 'G':
		return read_binary_real(p);
	case 'I':
		return pickle_read_int(p);
	case 'J':
		return read_integer(p, 4);
	case 'K':
		return read_integer(p, 1);
	case 'L':
		return pickle_read_long_line(p);
	case 'M':
		return read_integer(p, 2);
	case 'N':
		return pickle_push(p, (struct pickle_value){ .kind = PICKLE_NONE });
	case 0x88:
	case 0x89:
		return push_bool(p, opcode == 0x88);
	case 0x8a:
		return read_long(p, 1);
	case 0x8b:
		return read_long(p, 4);
	case 'S':
		return pickle_read_string(p);
	case 'V':
		return pickle_read_unicode(p);
	case 'T':
	case 'X':
		return read_text(p, 4);
	case 'U':
	case 0x8c:
		return read_text(p, 1);
	case 0x8d:
		return read_text(p, 8);
	case 'C':
		return read_bytes(p, 1);
	case 'B':
		return read_bytes(p, 4);
	case 0x8e:
	case 0x96:
		return read_bytes(p, 8);
	case ']':
		return pickle_push_new(p, PICKLE_LIST);
	case '}':
		return pickle_push_new(p, PICKLE_DICT);
	case ')':
		return pickle_push_new(p, PICKLE_TUPLE);
	case 0x8f:
		return pickle_push_new(p, PICKLE_SET);
	case 'l':
		return pickle_collect(p, PICKLE_LIST);
	case 'd':
		return pickle_collect(p, PICKLE_DICT);
	case 't':
		return pickle_collect(p, PICKLE_TUPLE);
	case 0x91:
		return pickle_collect(p, PICKLE_SET);
	case 0x85:
	case 0x86:
	case 0x87:
		return pickle_tuple_of(p, (size_t)opcode - 0x84);
	case 'a':
		return pickle_add_top(p, 1, pickle_append);
	case 'e':
	case 0x90:
		return pickle_add_marked(p, pickle_append);
	case 's':
		return pickle_add_top(p, 2, pickle_set_items);
	case 'u':
		return pickle_add_marked(p, pickle_set_items);
	case 'p':
		return put_line(p);
	case 'q':
		return put_number(p, 1);
	case 'r':
		return put_number(p, 4);
	case 0x94:
		return pickle_put(p, p->memo_count);
	case 'g':
		return get_line(p);
	case 'h':
		return get_number(p, 1);
	case 'j':
		return get_number(p, 4);
	case 'c':
		return global_lines(p);
	case 0x93:
		return global_of_stack(p);
	case 'i':
		return instance(p);
	case 'o':
		return make_marked(p);
	case 'R':
	case 0x81:
		return call_top(p, 1);
	case 0x92:
		return call_top(p, 2);
	case 'b':
		return pickle_pop(p, &ignored);
	case 'P':
		return persistent_line(p);
	case 'Q':
		return pickle_pop(p, &ignored) && unknown(p, "persistent id");
	case 0x82:
		return extension(p, 1);
	case 0x83:
		return extension(p, 2);
	case 0x84:
		return extension(p, 4);
	case 0x97:
		return unknown(p, "buffer");
	case 0x98:
		return true;
	case 0x80:
		return skip(p, 1);
	case 0x95:
		return skip(p, 8);
	default:
		p->at--;
		return pickle_damaged(p, "an unknown opcode");
	}
}

/* Removes one value from the stack: the topmost value is put into the value that it belongs to,
 * if that is known. */
static bool fold(struct pickle *p)
{
	size_t top = p->count;

	if (p->mark_count && p->marks[p->mark_count - 1] >= top) {
		p->mark_count--;
		return true;
	}
	if (p->mark_count) {
		size_t first = p->marks[p->mark_count - 1];
		struct pickle_value to = first ? p->stack[first - 1] : (struct pickle_value){ 0 };

		p->mark_count--;
		p->count = first;
		if (to.kind == PICKLE_LIST)
			return pickle_append(p, to, p->stack + first, top - first);
		if (to.kind == PICKLE_DICT)
			return pickle_set_items(p, to, p->stack + first,
						(top - first) & ~(size_t)1);
		return true;
	}
	p->count--;
	if (p->stack[top - 2].kind == PICKLE_LIST)
		return pickle_append(p, p->stack[top - 2], p->stack + top - 1, 1);
	if (top >= 3 && p->stack[top - 3].kind == PICKLE_DICT &&
	    p->stack[top - 2].kind == PICKLE_TEXT) {
		p->count--;
		return pickle_set_items(p, p->stack[top - 3], p->stack + top - 2, 2);
	}
	return true;
}

/* Closes all open marks. Lists and dictionaries of protocol 0 may begin with a mark without a list below
 * it. */
static bool close_all(struct pickle *p)
{
	while (p->count > 1 || p->mark_count)
		if (!fold(p))
			return false;
	return true;
}

ow_status pickle_run(struct pickle *p)
{
	struct pickle_value nothing;
	const unsigned char *at;

	/* object 0 means none; the stack exists even if it is empty */
	if (!pickle_make(p, PICKLE_NONE, &nothing) || !pickle_push(p, nothing))
		return p->status;
	p->count = 0;
	do
		at = pickle_bytes(p, 1);
	while (at && step(p, *at));
	if (p->status == OW_OK && !p->stopped)
		(void)close_all(p);
	if (p->status != OW_OK)
		return p->status;
	if (!p->count)
		return error_at(p->err, OW_E_CORRUPT, p->damage_offset, "not a pickle: %s",
				p->damage ? p->damage : "the pickle holds no value");
	p->root = p->stack[p->count - 1];
	return OW_OK;
}
