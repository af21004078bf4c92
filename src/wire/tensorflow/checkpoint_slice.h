/*
 * checkpoint_slice.h: what both kinds of checkpoints say in the same messages: versions, shapes, slices of variables, and
 * the keys under which slices are stored. Used by checkpoint_bundle.c and checkpoint_saved.c. Reads no files.
 */
#ifndef WIRE_CHECKPOINT_SLICE_H
#define WIRE_CHECKPOINT_SLICE_H

#include "wire/protobuf/pb.h"
#include "wire/tensorflow/checkpoint.h"

/* Sets *code and the error; returns the status. */
ow_status checkpoint_fail(const char **code, const char *name, struct ow_error *err,
			  ow_status status, const char *format, ...) OW_PRINTF(5, 6);

/* Which readers may read the checkpoint. */
struct versions {
	int32_t producer, min_consumer;
	bool bad_consumer; /* this reader's version is among the refused */
};
bool versions_parse(struct pb message, struct versions *versions);
ow_status versions_check(const struct versions *versions, const char **code, struct ow_error *err);

/* Fills rank, dims and elements; rank is -1 when the message is not a fully known shape. False when it
 * is not a message, or memory gave out (*no_memory). */
bool shape_parse(struct arena *arena, struct pb message, struct checkpoint_var *var,
		 bool *no_memory);
/* As the text format on one line: "dim { size: 2 } dim { size: -1 }". */
void shape_text(struct buf *out, struct pb message);

/* One extent per dimension; length -1 is the whole dimension. */
struct slice {
	int32_t rank;
	int64_t start[CHECKPOINT_RANK_MAX], length[CHECKPOINT_RANK_MAX];
};

/* False when it is not a message, or has more than CHECKPOINT_RANK_MAX extents. */
bool slice_parse(struct pb message, struct slice *slice);
bool slice_is_whole(const struct slice *slice);
/* Whether the slice lies within the variable; sets *elements to its size. */
bool slice_fits(const struct slice *slice, const struct checkpoint_var *var, int64_t *elements);
bool slice_overlaps(const struct slice *a, const struct slice *b);
/* "0,2:-" */
void slice_text(struct buf *out, const struct slice *slice);
/* The key under which a slice is stored. */
void slice_key(struct buf *out, struct str name, const struct slice *slice);
/* Copies the elements of a slice to their places in the whole: elements of `size` bytes. */
void slice_copy(const struct checkpoint_var *var, const struct slice *slice, const void *from,
		void *to, size_t size);

/* The order-preserving encoding of these keys: a number, a string or a signed number becomes bytes that sort as the
 * values do. Keys are only written: a reader makes the key that it looks for. */
void ordered_code_number(struct buf *out, uint64_t value);
void ordered_code_string(struct buf *out, struct str value);
void ordered_code_signed(struct buf *out, int64_t value);

#endif
