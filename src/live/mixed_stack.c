/* mixed_stack.c: see mixed_stack.h. */
#include "live/mixed_stack.h"

static size_t count(const bool *flags, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += flags[i];
	return sum;
}

size_t mixed_stack_join(const struct mixed_input *in, struct mixed_frame *out)
{
	size_t loops = count(in->is_loop, in->native_count);
	size_t calls = count(in->was_called, in->python_count), python = 0, used = 0;

	if (!loops || loops > calls || (loops < calls && in->native_is_whole))
		return 0;
	for (size_t i = 0; i < in->native_count; i++) {
		if (!in->is_loop[i]) {
			out[used++] = (struct mixed_frame){ false, (uint32_t)i };
			continue;
		}
		/* all that this call of the loop runs */
		while (python < in->python_count) {
			out[used++] = (struct mixed_frame){ true, (uint32_t)python };
			if (in->was_called[python++])
				break;
		}
	}
	while (python < in->python_count) /* beyond what is known of the native stack */
		out[used++] = (struct mixed_frame){ true, (uint32_t)python++ };
	return used;
}
