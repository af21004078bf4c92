/*
 * py_code.h: code objects of another process's Python, each read once: file, function, lines. When an address is
 * reused for another function, that is noticed within a second.
 */
#ifndef LIVE_PY_CODE_H
#define LIVE_PY_CODE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "live/proc/proc.h"
#include "live/pystack/py_find.h"

struct py_code {
	uint64_t at, name_at, file_at, lines_at;
	int32_t first;
	struct str name, file, lines; /* name, file (both UTF-8) and line table */
	int64_t checked_ns;
	int64_t last_offset; /* instruction offset of the last lookup */
	int32_t last_line;
};

struct py_codes {
	struct mem *mem;
	struct arena arena;
	struct map map;
	struct py_code **items; /* code objects; item 0 is not used */
	size_t count, cap;
	size_t bytes;
	uint64_t type; /* address of the type `code`, 0 until the first object was seen */
	bool no_memory;
};

void py_codes_init(struct py_codes *codes, struct mem *mem);
void py_codes_release(struct py_codes *codes);

/* Returns the code object at that address; NULL if there is none, or if memory runs out (which stays). It lives as
 * long as codes. */
struct py_code *py_codes_get(struct py_codes *codes, struct remote *r, const struct py_offsets *o,
			     uint64_t at, int64_t now_ns);
/* Returns the line of an instruction; `instr` is the value in the frame. */
int32_t py_code_line(struct py_code *code, const struct py_offsets *o, uint64_t instr);

/* Reads a str object as UTF-8, cut to a few thousand characters. False if it is not one. */
bool py_read_string(struct remote *r, const struct py_offsets *o, uint64_t at, struct arena *arena,
		    struct str *text);

/* `offset` counts bytes of bytecode; negative: the function has not begun. `first` is its first line. Bytecode
 * that belongs to no line gets the line before it. */
int32_t py_line_at(uint32_t minor, struct str table, int32_t first, int64_t offset);

#endif
