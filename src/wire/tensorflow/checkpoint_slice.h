/*
 * checkpoint_int.h: what the files of the checkpoint reader share: checkpoint.c opens and finds,
 * checkpoint_bundle.c and checkpoint_values.c know V2, checkpoint_saved.c V1, checkpoint_shape.c
 * shapes and slices.
 */
#ifndef WIRE_CHECKPOINT_INT_H
#define WIRE_CHECKPOINT_INT_H

#include "wire/checkpoint.h"
#include "wire/pb.h"
#include "wire/sstable.h"

/* A V1 table, kept open for its values. */
struct checkpoint_file {
	struct input own;	/* closed with the checkpoint, unless the caller gave another one */
	const struct input *in; /* that, or `own` */
	struct sstable table;
};

/* One extent per dimension; length -1 is the whole dimension. */
struct slice {
	int32_t rank;
	int64_t start[CHECKPOINT_RANK_MAX], length[CHECKPOINT_RANK_MAX];
};

/* Sets *code and the error; returns the status. */
ow_status checkpoint_fail(const char **code, const char *name, struct error *err, ow_status status,
			  const char *format, ...) OW_PRINTF(5, 6);

/* Opens for reading; a failure reads "<path>; No such file or directory". */
ow_status checkpoint_open_file(struct input *in, struct mem *mem, const char *path,
			       const char **code, struct error *err);

/* ---- the list of variables ---- */
/* Appends; the name is copied. NULL when memory gives out. */
struct checkpoint_var *checkpoint_add(struct checkpoint *c, struct str name);
/* A variable or a part. */
struct checkpoint_var *checkpoint_lookup(const struct checkpoint *c, struct str name);
void checkpoint_count_damage(struct checkpoint *c, uint64_t offset);

/* ---- versions, shapes, slices ---- */
struct versions {
	int32_t producer, min_consumer;
	bool bad_consumer; /* this reader's version is among the refused */
};
bool versions_parse(struct pb message, struct versions *versions);
ow_status versions_check(const struct versions *versions, const char **code, struct error *err);

/* Fills rank, dims and elements; rank is -1 when the message is no fully known shape. False when it
 * is no message, or memory gave out (*no_memory). */
bool shape_parse(struct arena *arena, struct pb message, struct checkpoint_var *var,
		 bool *no_memory);
/* As the text format on one line: "dim { size: 2 } dim { size: -1 }". */
void shape_text(struct buf *out, struct pb message);

/* False when it is no message, or has more than CHECKPOINT_RANK_MAX extents. */
bool slice_parse(struct pb message, struct slice *slice);
bool slice_is_whole(const struct slice *slice);
/* Whether it lies within the variable; *elements is then its size. */
bool slice_fits(const struct slice *slice, const struct checkpoint_var *var, int64_t *elements);
bool slice_overlaps(const struct slice *a, const struct slice *b);
/* "0,2:-" */
void slice_text(struct buf *out, const struct slice *slice);
/* The key under which a slice is stored. */
void slice_key(struct buf *out, struct str name, const struct slice *slice);
/* Copies the elements of a slice to their places in the whole: elements of `size` bytes. */
void slice_copy(const struct checkpoint_var *var, const struct slice *slice, const void *from,
		void *to, size_t size);

/* Walks through the slices that a bundle's entry of a partitioned variable lists. */
struct slices {
	struct pb message;
};
struct slices slices_of(const struct checkpoint_var *var);
/* False at the end; !*good when the slice's message is damaged. */
bool next_slice(struct slices *slices, struct slice *slice, bool *good);

/* ---- the two kinds ---- */
/* Reads the list from an open table; `filename` is for messages. */
ow_status bundle_load(struct checkpoint *c, const struct sstable *table, const char *filename,
		      struct error *err);
ow_status bundle_read(const struct checkpoint *c, struct str name, struct checkpoint_tensor *t,
		      struct error *err);
ow_status saved_load(struct checkpoint *c, size_t file, struct error *err);
ow_status saved_read(const struct checkpoint *c, struct str name, struct checkpoint_tensor *t,
		     struct error *err);
/* Allocates data for all elements, zeroed. */
ow_status tensor_reserve(struct checkpoint_tensor *t, size_t bytes, struct error *err);

#endif
