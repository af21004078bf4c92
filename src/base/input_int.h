/* input_int.h: between input.c and input_stream.c; nobody else includes it. */
#ifndef BASE_INPUT_INT_H
#define BASE_INPUT_INT_H

#include "base/input.h"

/* Refuses devices that are no terminal and were not handed over by the shell. */
ow_status input_stream_check(const char *path, int fd, unsigned mode, struct error *err);

/* Reads to the end; the descriptor stays the caller's. */
ow_status input_stream_read(struct input *in, int fd, const struct input_options *options,
			    struct error *err);

#endif
