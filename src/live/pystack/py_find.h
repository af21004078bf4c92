/*
 * py_offsets.h: where CPython keeps its threads, frames and code objects, by version. CPython 3.8 to 3.12 are in a
 * table that tools/make-python-offsets made from their headers (the numbers did not change within 3.x); from 3.13
 * on the interpreter tells them itself. Other versions are refused, not guessed.
 *
 * 64-bit machines only; builds with Py_TRACE_REFS are laid out otherwise and are found out by py_find.c.
 */
#ifndef LIVE_PY_OFFSETS_H
#define LIVE_PY_OFFSETS_H

#include "base/error.h"

struct py_offsets {
	uint16_t minor; /* 3.minor */
	uint16_t rt_interpreters, is_next, is_threads;
	uint16_t ts_next, ts_interp, ts_thread, ts_native, ts_frame, cf_frame;
	uint16_t fr_code, fr_prev, fr_instr, fr_owner;
	uint16_t fr_mark;  /* tells whether a frame runs: see py_walk.h */
	uint16_t fr_entry; /* 3.11: whether C called it; later versions put a shim between */
	uint16_t co_name, co_file, co_lines, co_first, co_code;
	uint16_t ob_type, tp_name;
	uint16_t by_size, by_data;
	uint16_t us_length, us_state, us_ascii, us_compact;
};

#define PY_OLDEST 8
#define PY_NEWEST 13
/* The first bytes of _PyRuntime in CPython 3.13. */
#define PY_DEBUG_WORDS 73
#define PY_DEBUG_COOKIE "xdebugpy"

/* NULL for versions that are not in the table. */
const struct py_offsets *py_offsets_of(uint32_t minor);
/* From what CPython 3.13 tells; false when that makes no sense. */
bool py_offsets_from_debug(struct py_offsets *o, const uint64_t words[PY_DEBUG_WORDS]);

/* 3.11 and 3.12: a thread has a C frame, and that the current frame. */
static inline bool py_has_cframe(const struct py_offsets *o)
{
	return o->minor == 11 || o->minor == 12;
}

#endif
