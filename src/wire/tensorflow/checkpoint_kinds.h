/*
 * checkpoint_kinds.h: what checkpoint.c, which owns `struct checkpoint` and opens the files, and the readers of the two
 * kinds need of each other: checkpoint_bundle.c reads V2, checkpoint_saved.c V1. No other file includes it.
 */
#ifndef WIRE_CHECKPOINT_KINDS_H
#define WIRE_CHECKPOINT_KINDS_H

#include "wire/tensorflow/checkpoint_slice.h"
#include "wire/tensorflow/sstable.h"

/* A V1 table, kept open for its values. */
struct checkpoint_file {
	struct input own;	/* closed with the checkpoint, unless the caller gave another one */
	const struct input *in; /* the open file: the caller's input, or `own` */
	struct sstable table;
};

/* Opens for reading; a failure reads "<path>; No such file or directory". */
ow_status checkpoint_open_file(struct input *in, struct mem *mem, const char *path,
			       const char **code, struct ow_error *err);

/* Appends; the name is copied. NULL when memory gives out. */
struct checkpoint_var *checkpoint_add(struct checkpoint *c, struct str name);
/* A variable or a part. */
struct checkpoint_var *checkpoint_lookup(const struct checkpoint *c, struct str name);
void checkpoint_count_damage(struct checkpoint *c, uint64_t offset);

/* Reads the list from an open table; `filename` is for messages. */
ow_status bundle_load(struct checkpoint *c, const struct sstable *table, const char *filename,
		      struct ow_error *err);
ow_status bundle_read(const struct checkpoint *c, struct str name, struct checkpoint_tensor *t,
		      struct ow_error *err);
ow_status saved_load(struct checkpoint *c, size_t file, struct ow_error *err);
ow_status saved_read(const struct checkpoint *c, struct str name, struct checkpoint_tensor *t,
		     struct ow_error *err);
/* Allocates data for all elements, zeroed. */
ow_status tensor_reserve(struct checkpoint_tensor *t, size_t bytes, struct ow_error *err);

#endif
