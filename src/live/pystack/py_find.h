/*
 * py_find.h: where the interpreter of a running Python process is, which version it is, and how that version lays
 * out threads, frames and code objects. CPython 3.8 to 3.12 are in a table that tools/make-python-offsets made
 * from their headers; from 3.13 on the interpreter publishes the offsets itself. Other versions are refused, not
 * guessed. 64-bit machines only; builds with Py_TRACE_REFS are detected and refused.
 */
#ifndef LIVE_PY_FIND_H
#define LIVE_PY_FIND_H

#include "base/error.h"
#include "base/mem.h"
#include "live/proc/proc.h"

struct py_offsets {
	uint16_t minor; /* minor version: 3.minor */
	uint16_t rt_interpreters, is_next, is_threads;
	uint16_t ts_next, ts_interp, ts_thread, ts_native, ts_frame, cf_frame;
	uint16_t fr_code, fr_prev, fr_instr, fr_owner;
	/* offset of the mark that shows whether a frame runs; see py_process.c */
	uint16_t fr_mark;
	/* 3.11: whether C called the frame; later versions insert a shim frame */
	uint16_t fr_entry;
	uint16_t co_name, co_file, co_lines, co_first, co_code;
	uint16_t ob_type, tp_name;
	uint16_t by_size, by_data;
	uint16_t us_length, us_state, us_ascii, us_compact;
};

#define PY_OLDEST 8
#define PY_NEWEST 13
/* Number of 8-byte words at the start of _PyRuntime in CPython 3.13. */
#define PY_DEBUG_WORDS 73
#define PY_DEBUG_COOKIE "xdebugpy"

/* Returns the offsets of a version; NULL if it is not in the table. */
const struct py_offsets *py_offsets_of(uint32_t minor);
/* Fills the offsets from the table that CPython 3.13 publishes; false if it is implausible. */
bool py_offsets_from_debug(struct py_offsets *o, const uint64_t words[PY_DEBUG_WORDS]);

/* Returns whether a thread has a C frame that points to the current frame, as in 3.11 and 3.12. */
static inline bool py_has_cframe(const struct py_offsets *o)
{
	return o->minor == 11 || o->minor == 12;
}

struct py_place {
	uint64_t runtime; /* address of _PyRuntime */
	struct py_offsets offsets;
	uint32_t version; /* version such as 0x030b02f0, or 0x030b0000 if only 3.11 is known */
};

/* OW_E_NOT_FOUND: no such process; OW_E_PERMISSION; OW_E_FORMAT: no Python; OW_E_UNSUPPORTED: one that we do not
 * know; OW_E_EMPTY: it has not started yet, or is just ending. */
ow_status py_find(struct mem *mem, pid_t pid, struct py_place *place, struct ow_error *err);

/* Returns the minor version in a path such as /usr/lib/libpython3.11.so.1.0 or …cpython-311-x86_64…: 11; 0
 * if there is none. */
uint32_t py_version_in_path(struct str path);

/* Explains why the kernel refuses, and what to try. `code` is the errno. */
ow_status py_explain_refusal(pid_t pid, int code, struct ow_error *err);

#endif
