/*
 * py_find.h: where the interpreter of a running Python process is, and which one it is. Says in words why the
 * stacks of a process cannot be read.
 */
#ifndef LIVE_PY_FIND_H
#define LIVE_PY_FIND_H

#include "base/mem.h"
#include "live/py_offsets.h"
#include "live/remote.h"

struct py_place {
	uint64_t runtime; /* address of _PyRuntime */
	struct py_offsets offsets;
	uint32_t version; /* 0x030b02f0, or 0x030b0000 when only 3.11 is known */
};

/* OW_E_NOT_FOUND: no such process; OW_E_PERMISSION; OW_E_FORMAT: no Python; OW_E_UNSUPPORTED: one that we do not
 * know; OW_E_EMPTY: it has not started yet, or is just ending. */
ow_status py_find(struct mem *mem, pid_t pid, struct py_place *place, struct error *err);

/* "3.11" in a path such as /usr/lib/libpython3.11.so.1.0 or …cpython-311-x86_64…: 11; 0 when there is none. */
uint32_t py_version_in_path(struct str path);

/* Why the kernel refuses, and what to try. `code` is the errno. */
ow_status py_explain_refusal(pid_t pid, int code, struct error *err);

#endif
