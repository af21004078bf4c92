/* py_offsets.c: see py_offsets.h. */
#include "live/py_offsets.h"

static const struct py_offsets table[] = {
#include "live/py_offsets.def"
};

const struct py_offsets *py_offsets_of(uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_COUNT(table); i++)
		if (table[i].minor == minor)
			return &table[i];
	return NULL;
}

/* Positions, in words, of the members of _Py_DebugOffsets in CPython 3.13. */
static const struct {
	uint16_t word;
	uint16_t member;
} debug_words[] = {
	{ 5, offsetof(struct py_offsets, rt_interpreters) },
	{ 8, offsetof(struct py_offsets, is_next) },
	{ 9, offsetof(struct py_offsets, is_threads) },
	{ 21, offsetof(struct py_offsets, ts_next) },
	{ 22, offsetof(struct py_offsets, ts_interp) },
	{ 23, offsetof(struct py_offsets, ts_frame) },
	{ 24, offsetof(struct py_offsets, ts_thread) },
	{ 25, offsetof(struct py_offsets, ts_native) },
	{ 29, offsetof(struct py_offsets, fr_prev) },
	{ 30, offsetof(struct py_offsets, fr_code) },
	{ 31, offsetof(struct py_offsets, fr_instr) },
	{ 33, offsetof(struct py_offsets, fr_owner) },
	{ 35, offsetof(struct py_offsets, co_file) },
	{ 37, offsetof(struct py_offsets, co_name) },
	{ 38, offsetof(struct py_offsets, co_lines) },
	{ 39, offsetof(struct py_offsets, co_first) },
	{ 43, offsetof(struct py_offsets, co_code) },
	{ 45, offsetof(struct py_offsets, ob_type) },
	{ 47, offsetof(struct py_offsets, tp_name) },
	{ 65, offsetof(struct py_offsets, by_size) },
	{ 66, offsetof(struct py_offsets, by_data) },
	{ 68, offsetof(struct py_offsets, us_state) },
	{ 69, offsetof(struct py_offsets, us_length) },
	{ 70, offsetof(struct py_offsets, us_ascii) },
};
#define DEBUG_UNICODE_SIZE 67 /* sizeof(PyUnicodeObject): one pointer more than the compact one */

bool py_offsets_from_debug(struct py_offsets *o, const uint64_t words[PY_DEBUG_WORDS])
{
	if (memcmp(words, PY_DEBUG_COOKIE, 8) != 0 || words[1] >> 16 != 0x30d)
		return false;
	*o = (struct py_offsets){ .minor = 13 };
	for (size_t i = 0; i < ARRAY_COUNT(debug_words); i++) {
		uint64_t value = words[debug_words[i].word];

		if (value > UINT16_MAX - 64)
			return false;
		memcpy((char *)o + debug_words[i].member, &(uint16_t){ (uint16_t)value },
		       sizeof(uint16_t));
	}
	if (words[DEBUG_UNICODE_SIZE] < 8 || words[DEBUG_UNICODE_SIZE] > UINT16_MAX)
		return false;
	o->us_compact = (uint16_t)(words[DEBUG_UNICODE_SIZE] - 8);
	/* Not told, but between two that are: instr_ptr, int stacktop, uint16_t return_offset, char owner. */
	if (o->fr_owner != o->fr_instr + 14)
		return false;
	o->fr_mark = (uint16_t)(o->fr_instr + 8);
	return true;
}
