/*
 * py_code.c: reads code objects of another process's Python: names, file, and the table that maps bytecode to
 * lines, in the four forms that CPython 3.8 to 3.13 use. Called by py_process.c. Nothing read is trusted.
 */
#include "live/pystack/py_code.h"

#include "base/vec.h"

#define MAX_TEXT 2048
#define MAX_LINES ((uint64_t)4 << 20)
#define CODE_BYTES 256
#define CHECK_NS 1000000000

/* Adds a delta without overflow, because tables may be damaged. */
static int32_t add_line(int32_t line, int64_t delta)
{
	int64_t sum = line + delta;

	return sum < INT32_MIN || sum > INT32_MAX ? line : (int32_t)sum;
}

/* Finds a line in the tables of Python 3.8 and 3.9: pairs of an instruction distance and a line
 * distance. */
static int32_t line_in_lnotab(struct str table, int32_t line, int64_t offset)
{
	int64_t at = 0;

	for (size_t i = 0; i + 1 < table.len; i += 2) {
		at += (uint8_t)table.ptr[i];
		if (at > offset)
			break;
		line = add_line(line, (int8_t)table.ptr[i + 1]);
	}
	return line;
}

/* Finds a line in the tables of Python 3.10: pairs of a length and a line distance; -128: no
 * line. */
static int32_t line_in_ranges(struct str table, int32_t line, int64_t offset)
{
	int64_t at = 0;

	for (size_t i = 0; i + 1 < table.len; i += 2) {
		int8_t delta = (int8_t)table.ptr[i + 1];

		if (delta != INT8_MIN)
			line = add_line(line, delta);
		at += (uint8_t)table.ptr[i];
		if (offset < at)
			break;
	}
	return line;
}

/* Reads a number of six bits per byte, the lowest first. */
static uint32_t take_varint(struct str table, size_t *i)
{
	uint32_t value = 0, shift = 0;

	while (*i < table.len) {
		uint8_t byte = (uint8_t)table.ptr[(*i)++];

		if (shift < 30)
			value |= (uint32_t)(byte & 63) << shift;
		shift += 6;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int64_t take_signed(struct str table, size_t *i)
{
	uint32_t value = take_varint(table, i);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

enum { ENTRY_ONE_LINE = 10, ENTRY_NO_COLUMNS = 13, ENTRY_LONG = 14, ENTRY_NONE = 15 };

/* Finds a line in the tables of Python 3.11 and later: the first byte of an entry has its kind
 * and its length in units of two bytes. */
static int32_t line_in_locations(struct str table, int32_t line, int64_t offset)
{
	int64_t at = 0;

	for (size_t i = 0; i < table.len;) {
		uint8_t byte = (uint8_t)table.ptr[i++];
		uint32_t kind = (byte >> 3) & 15;

		switch (kind) {
		case ENTRY_NONE:
			break;
		case ENTRY_LONG:
			line = add_line(line, take_signed(table, &i));
			for (int k = 0; k < 3; k++) /* skips the last line and the columns */
				take_varint(table, &i);
			break;
		case ENTRY_NO_COLUMNS:
			line = add_line(line, take_signed(table, &i));
			break;
		case ENTRY_ONE_LINE:
		case ENTRY_ONE_LINE + 1:
		case ENTRY_ONE_LINE + 2:
			line = add_line(line, (int64_t)kind - ENTRY_ONE_LINE);
			i += 2;
			break;
		default:
			i++;
		}
		at += ((byte & 7) + 1) * 2;
		if (offset < at)
			break;
	}
	return line;
}

int32_t py_line_at(uint32_t minor, struct str table, int32_t first, int64_t offset)
{
	if (offset < 0)
		return first;
	if (minor < 10)
		return line_in_lnotab(table, first, offset);
	if (minor == 10)
		return line_in_ranges(table, first, offset);
	return line_in_locations(table, first, offset);
}

void py_codes_init(struct py_codes *codes, struct mem *mem)
{
	*codes = (struct py_codes){ .mem = mem };
	arena_init(&codes->arena, mem);
	map_init(&codes->map, mem);
}

void py_codes_release(struct py_codes *codes)
{
	arena_release(&codes->arena);
	map_release(&codes->map);
	mem_free(codes->mem, codes->items, codes->cap * sizeof(struct py_code *));
	py_codes_init(codes, codes->mem);
}

/* Converts characters of one, two or four bytes to UTF-8. */
static size_t to_utf8(char *to, const unsigned char *from, size_t count, uint32_t kind)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t c = 0;

		memcpy(&c, from + i * kind, kind);
		len += utf8_encode(c, to + len);
	}
	return len;
}

bool py_read_string(struct remote *r, const struct py_offsets *o, uint64_t at, struct arena *arena,
		    struct str *text)
{
	unsigned char head[64], chars[MAX_TEXT * 4];
	char utf8[MAX_TEXT * 4];
	uint32_t state, kind;
	uint64_t length;
	size_t count;

	OW_ASSERT(o->us_state + 4u <= sizeof(head) && o->us_length + 8u <= sizeof(head));
	if (!at || !remote_read(r, at, head, sizeof(head)))
		return false;
	memcpy(&state, head + o->us_state, sizeof(state));
	length = remote_word(head, o->us_length);
	kind = state >> 2 & 7;
	if (!(state >> 5 & 1) || (kind != 1 && kind != 2 && kind != 4) || length > UINT32_MAX)
		return false; /* only compact strings are supported, as names and paths are */
	count = (size_t)MIN(length, (uint64_t)MAX_TEXT);
	at += state >> 6 & 1 ? o->us_ascii : o->us_compact;
	if (count && !remote_read(r, at, chars, count * kind))
		return false;
	*text = arena_str(arena, str_make(utf8, to_utf8(utf8, chars, count, kind)));
	return text->ptr;
}

static bool read_bytes(struct remote *r, const struct py_offsets *o, uint64_t at,
		       struct arena *arena, struct str *bytes)
{
	uint64_t size;
	char *copy;

	if (!at || !remote_read(r, at + o->by_size, &size, sizeof(size)) || size > MAX_LINES)
		return false;
	copy = arena_push_aligned(arena, (size_t)size + 1, 1);
	if (!copy || !remote_read(r, at + o->by_data, copy, (size_t)size))
		return false;
	*bytes = str_make(copy, (size_t)size);
	return true;
}

/* Reads the fields that identify a code object; false if it is not one. */
static bool read_head(struct py_codes *codes, struct remote *r, const struct py_offsets *o,
		      struct py_code *code)
{
	unsigned char bytes[CODE_BYTES];
	uint64_t type, name;
	char text[5];
	size_t need = (size_t)MAX(MAX(o->co_name, o->co_file), MAX(o->co_lines, o->co_first)) + 8;

	if (need > sizeof(bytes) || !remote_read(r, code->at, bytes, need))
		return false;
	type = remote_word(bytes, o->ob_type);
	if (type != codes->type) {
		if (codes->type || !remote_read(r, type + o->tp_name, &name, sizeof(name)) ||
		    !remote_read(r, name, text, sizeof(text)) || memcmp(text, "code", 5) != 0)
			return false;
		codes->type = type;
	}
	code->name_at = remote_word(bytes, o->co_name);
	code->file_at = remote_word(bytes, o->co_file);
	code->lines_at = remote_word(bytes, o->co_lines);
	memcpy(&code->first, bytes + o->co_first, sizeof(code->first));
	return true;
}

static struct py_code *read_code(struct py_codes *codes, struct remote *r,
				 const struct py_offsets *o, const struct py_code *head)
{
	struct py_code *code = ARENA_NEW(&codes->arena, struct py_code);

	if (!code) {
		codes->no_memory = true;
		return NULL;
	}
	*code = *head;
	code->last_offset = -1;
	code->last_line = code->first;
	if (!py_read_string(r, o, code->name_at, &codes->arena, &code->name) ||
	    !py_read_string(r, o, code->file_at, &codes->arena, &code->file) ||
	    !read_bytes(r, o, code->lines_at, &codes->arena, &code->lines))
		return NULL; /* the memory stays allocated until all codes are released */
	codes->bytes += sizeof(*code) + code->name.len + code->file.len + code->lines.len;
	return code;
}

static bool keep_code(struct py_codes *codes, uint64_t hash, struct py_code *code, uint32_t slot)
{
	if (slot) {
		codes->items[slot] = code;
		return true;
	}
	if (!vec_reserve(codes->mem, codes->items, codes->cap, codes->count + 2))
		return false;
	if (!map_add(&codes->map, hash, (uint32_t)codes->count + 1))
		return false;
	codes->items[++codes->count] = code;
	return true;
}

static bool same_head(const struct py_code *a, const struct py_code *b)
{
	return a->name_at == b->name_at && a->file_at == b->file_at && a->lines_at == b->lines_at &&
	       a->first == b->first;
}

struct py_code *py_codes_get(struct py_codes *codes, struct remote *r, const struct py_offsets *o,
			     uint64_t at, int64_t now_ns)
{
	uint64_t hash = map_hash_u64(at, 0);
	struct py_code head = { .at = at, .checked_ns = now_ns }, *code = NULL;
	struct map_iter it = map_find(&codes->map, hash);

	while (it.value && codes->items[it.value]->at != at)
		it = map_next(&codes->map, it);
	if (it.value)
		code = codes->items[it.value];
	if (code && now_ns - code->checked_ns < CHECK_NS)
		return code;
	if (!read_head(codes, r, o, &head))
		return NULL;
	if (code && same_head(code, &head)) {
		code->checked_ns = now_ns;
		return code;
	}
	code = read_code(codes, r, o, &head);
	if (code && !keep_code(codes, hash, code, it.value)) {
		codes->no_memory = true;
		return NULL;
	}
	return code;
}

int32_t py_code_line(struct py_code *code, const struct py_offsets *o, uint64_t instr)
{
	int64_t offset = (int32_t)(uint32_t)instr; /* in this version the value is f_lasti */

	if (o->minor >= 11)
		offset = (int64_t)(instr - code->at - o->co_code);
	else if (o->minor == 10)
		offset *= 2;
	if (offset != code->last_offset) {
		code->last_offset = offset;
		code->last_line = py_line_at(o->minor, code->lines, code->first, offset);
	}
	return code->last_line;
}
