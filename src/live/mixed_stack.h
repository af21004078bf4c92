/*
 * mixed_stack.h: a native stack and the Python stack of the same thread as one: the functions of Python take the place of
 * the calls of the interpreter that run them. A pure function; native_rows.c says what the two are made of.
 *
 * Each call of the interpreter's loop runs one Python function that C has called, and since Python 3.11 also those that this one
 * calls directly. So both stacks have the same number of such calls when they are of one moment, or the native one has
 * fewer, where only its inner part is known.
 */
#ifndef LIVE_MIXED_STACK_H
#define LIVE_MIXED_STACK_H

#include "base/base.h"

struct mixed_frame {
	bool is_python;
	uint32_t index; /* in the stack that it is of */
};

struct mixed_input {
	const bool *is_loop; /* of native frames, innermost first: the interpreter's loop */
	size_t native_count;
	bool native_is_whole;	/* down to where the thread began */
	const bool *was_called; /* of Python frames, innermost first: by C */
	size_t python_count;
};

/* Innermost first; `out` has room for both. How many; 0: the two do not belong together. */
size_t mixed_stack_join(const struct mixed_input *in, struct mixed_frame *out);

#endif
