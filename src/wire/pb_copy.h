/*
 * pb_copy.h: copies a message without what is large in it. Called where one record of a file may hold the
 * weights of a model and only its small fields are wanted. What is damaged ends the copy; the stream tells.
 */
#ifndef WIRE_PB_COPY_H
#define WIRE_PB_COPY_H

#include "base/buf.h"
#include "wire/pb_stream.h"

struct pb_copy {
	uint64_t field_max; /* larger fields are left out */
	size_t max;	    /* the copy ends once it is so long */
	uint64_t only;	    /* bit N: field N of the outermost message is copied; 0: all are */
	/* Large fields that are entered, from the outside in: what is small in them is copied. */
	const uint32_t *path;
	unsigned path_len;
};

/* Varints and bytes are copied; fixed-width numbers are not. Goes as deep as the path is long. */
void pb_copy_small(struct pb_stream *s, const struct pb_copy *what, struct buf *to);

#endif
