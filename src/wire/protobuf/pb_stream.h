/*
 * pb_stream.h: reads a protobuf message of any size through a window (base/input.h). The caller
 * enters the container fields that it wants to read, takes leaf records as contiguous memory, and
 * other fields are skipped without being read.
 *
 *	struct pb_stream s;
 *	struct pb_stream_field f;
 *	struct pb record;
 *
 *	pb_stream_init(&s, &window, 0, input.size);
 *	while (pb_stream_next(&s, &f))
 *		if (f.tag == PB_TAG(1, PB_BYTES) && pb_stream_record(&s, &f, &record))
 *			read_node(&record);
 *	return s.status;
 *
 * A container whose length goes beyond the bytes that are there is entered all the same, so that the
 * whole records of a truncated file are still found; `status` and the window's error say so at
 * the end. Offsets are absolute in the input. The window's error must not be NULL if the text is
 * wanted.
 */
#ifndef WIRE_PB_STREAM_H
#define WIRE_PB_STREAM_H

#include "base/buf.h"
#include "base/input.h"
#include "wire/protobuf/pb.h"

#define PB_STREAM_DEPTH 16

struct pb_stream {
	struct window *window;
	uint64_t at;			    /* offset of the next field */
	uint64_t ends[PB_STREAM_DEPTH + 1]; /* ends of the message and of the entered containers */
	unsigned depth;
	bool cut; /* a field extends beyond the data */
	/* OW_OK or the first failure; with OW_E_CORRUPT, earlier fields are valid */
	ow_status status;
};

struct pb_stream_field {
	uint32_t tag;	 /* PB_TAG(number, wire) */
	bool cut;	 /* for bytes: the data ends before `size` bytes */
	uint64_t value;	 /* varint or fixed bits */
	uint64_t start;	 /* offset of the field's tag */
	uint64_t offset; /* for bytes: offset of the content */
	uint64_t size;	 /* for bytes: length of the content that the input has */
};

/* Prepares to read the message in bytes [begin, end) of the window's input. */
void pb_stream_init(struct pb_stream *s, struct window *window, uint64_t begin, uint64_t end);

/* Reads the next field of the container; false at its end or after a failure. */
bool pb_stream_next(struct pb_stream *s, struct pb_stream_field *f);

/* Goes on inside the field just read, until pb_stream_next returns false and pb_stream_leave takes
 * up after it. False when too deep (OW_E_LIMIT), or when a failure has ended the stream since; then
 * there is nothing to leave. */
bool pb_stream_enter(struct pb_stream *s, const struct pb_stream_field *f);
/* Leaves a container; the rest of it is skipped. */
void pb_stream_leave(struct pb_stream *s);

/* The content in one piece, valid until the next call that reads; NULL when it is cut or cannot be
 * read. A failure to read ends the stream; a cut field is its last anyway. */
const uint8_t *pb_stream_bytes(struct pb_stream *s, const struct pb_stream_field *f);
bool pb_stream_record(struct pb_stream *s, const struct pb_stream_field *f, struct pb *record);

/* For a record whose reader found a problem: sets the stream's status to the absolute offset of it, unless the stream has failed
 * before. The stream continues after the record. `bytes` is what pb_stream_bytes gave, or the record's first `at`. */
void pb_stream_damage(struct pb_stream *s, const struct pb_stream_field *f, const struct pb *record,
		      const uint8_t *bytes);

/*
 * The fields of the container that are whole in the window, without a call into the stream for each:
 *
 *	do {
 *		for (bulk = pb_bulk(&s); pb_bulk_next(&bulk, &f, &offset);)
 *			…
 *		pb_bulk_end(&s, &bulk);
 *	} while (pb_stream_next(&s, &field) && …);
 *
 * pb_stream_next then reads the field at the edge of the window, and reports every problem.
 */
struct pb_bulk {
	struct pb pb;
	const uint8_t *start;
	uint64_t base; /* offset of `start` */
};

struct pb_bulk pb_bulk(const struct pb_stream *s);
/* Reads the next field; `offset` becomes the offset of its content. */
static inline bool pb_bulk_next(struct pb_bulk *bulk, struct pb_field *f, uint64_t *offset)
{
	if (!pb_next(&bulk->pb, f))
		return false;
	*offset = bulk->base + (uint64_t)(f->ptr - bulk->start);
	return true;
}
/* Makes the stream continue behind the fields that were read. */
void pb_bulk_end(struct pb_stream *s, const struct pb_bulk *bulk);

/* Copies a message without its large fields: for records that may hold the weights of a model when only their small
 * fields are wanted. Damage ends the copy; the stream's status says so. */
struct pb_copy {
	uint64_t field_max; /* larger fields are left out */
	size_t max;	    /* the copy ends at this length */
	uint64_t only;	    /* bit N: field N of the outermost message is copied; 0: all are */
	/* Large fields that are entered, from the outermost in; their small fields are copied. */
	const uint32_t *path;
	unsigned path_len;
};

/* Copies varints and bytes, but not fixed-width numbers, as deep as the path is long. */
void pb_copy_small(struct pb_stream *s, const struct pb_copy *what, struct buf *to);

#endif
