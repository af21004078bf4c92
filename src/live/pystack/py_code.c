/* py_code.c: see py_code.h. */
#include "live/py_code.h"

#include "live/py_lines.h"

#define MAX_TEXT 2048
#define MAX_LINES ((uint64_t)4 << 20)
#define CODE_BYTES 256
#define CHECK_NS 1000000000

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

/* ---- strings ---- */

/* Characters of one, two or four bytes. */
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
		return false; /* compact ones only: names and paths are */
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

/* ---- code objects ---- */

/* The fields that tell one from another; false when it is no code object. */
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
		return NULL; /* its memory stays until all goes */
	codes->bytes += sizeof(*code) + code->name.len + code->file.len + code->lines.len;
	return code;
}

static bool keep(struct py_codes *codes, uint64_t hash, struct py_code *code, uint32_t slot)
{
	void *items = codes->items;

	if (slot) {
		codes->items[slot] = code;
		return true;
	}
	if (!mem_grow(codes->mem, &items, &codes->cap, codes->count + 2, sizeof(struct py_code *)))
		return false;
	codes->items = items;
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
	if (code && !keep(codes, hash, code, it.value)) {
		codes->no_memory = true;
		return NULL;
	}
	return code;
}

int32_t py_code_line(struct py_code *code, const struct py_offsets *o, uint64_t instr)
{
	int64_t offset = (int32_t)(uint32_t)instr; /* f_lasti */

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
