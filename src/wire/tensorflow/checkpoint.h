/*
 * checkpoint.h: reads TensorFlow checkpoints: the variables in them, and the value of one by its
 * name. Both kinds: tensor bundles (V2: <prefix>.index and <prefix>.data-…) and the older tables of
 * saved slices (V1: one or more files). Messages are those of TensorFlow 1.15, because tfprof shows
 * them as they are. Knows nothing of the model; never writes.
 *
 * An open checkpoint is read-only, and may be used from several threads.
 */
#ifndef WIRE_CHECKPOINT_H
#define WIRE_CHECKPOINT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/input.h"
#include "base/map.h"

/* TensorFlow's DataType numbers, as far as they are named here. */
enum tf_dtype {
	TF_FLOAT = 1,
	TF_DOUBLE = 2,
	TF_INT32 = 3,
	TF_UINT8 = 4,
	TF_INT16 = 5,
	TF_INT8 = 6,
	TF_STRING = 7,
	TF_COMPLEX64 = 8,
	TF_INT64 = 9,
	TF_COMPLEX128 = 18,
};

/* Returns the size of one element; 0 for strings, for types without plain bytes and for unknown
 * types. */
size_t tf_dtype_size(int32_t dtype);

#define CHECKPOINT_RANK_MAX 254

struct checkpoint_var {
	struct str name;
	int32_t dtype;
	/* number of dimensions; -1: the stored shape is invalid, so the value cannot be read */
	int32_t rank;
	const int64_t *dims;
	int64_t elements;
	uint64_t bytes;	      /* size of the value in the checkpoint; 0 for strings of V1 */
	uint32_t slice_count; /* number of slices; 0: stored as a whole */

	/* Position of the value, for the readers only: */
	int32_t shard; /* number of the data file (V2) or table (V1) */
	uint32_t crc;
	int64_t offset, size;
	struct str record; /* message that holds the slices, or that describes a bad shape */
	bool part;	   /* V2: a slice of another variable */
};

struct checkpoint_file;

struct checkpoint {
	struct mem *mem;
	struct arena arena;
	const char *code; /* TensorFlow's name of a failure to open: "Not found", "Data loss" */
	int version;	  /* version of the format, 1 or 2 */

	struct checkpoint_var *vars; /* var_count variables sorted by name (bytewise), then parts */
	size_t var_count;
	/* number of entries and blocks that could not be read, and the first offset */
	uint64_t damaged;
	uint64_t damaged_offset;

	const char *prefix; /* prefix of the files (V2) */
	int32_t shard_count;
	bool big_endian;
	struct checkpoint_file *files; /* files (V1) */
	size_t file_count;

	size_t entry_count, entry_cap; /* number of items in vars, parts included */
	struct map by_name;	       /* maps a name to its position + 1 */
};

/* By the path that was given to the saver: a bundle if <path>.index exists, else the V1 file(s)
 * that match <path> as a pattern. The path of an .index file itself will do, too. A failed open
 * leaves nothing to close. */
ow_status checkpoint_open(struct checkpoint *c, struct mem *mem, const char *path,
			  struct ow_error *err);
/* Opens a checkpoint from an open index or V1 file, which must outlive it. */
ow_status checkpoint_open_input(struct checkpoint *c, struct mem *mem, const struct input *in,
				struct ow_error *err);
void checkpoint_close(struct checkpoint *c);

/* Returns the variable of that name; NULL if there is none. */
const struct checkpoint_var *checkpoint_find(const struct checkpoint *c, struct str name);

/* The value of a variable, in the byte order of this machine, row-major. */
struct checkpoint_tensor {
	struct mem *mem;
	const char *code; /* TensorFlow's name of a failed read, as in struct checkpoint */
	int32_t dtype;
	int32_t rank;
	const int64_t *dims; /* dimensions, owned by the checkpoint */
	int64_t elements;
	unsigned char *data; /* elements, or bytes of all strings; NULL if the type has none */
	size_t data_size, data_cap;
	struct str *strings; /* one string per element, if dtype is TF_STRING */
	size_t string_cap;
};

/* Fails with TensorFlow's message ("Key x not found in checkpoint"); nothing to release then. A
 * type without plain bytes (variants, resources) gives a tensor without data. */
ow_status checkpoint_read(const struct checkpoint *c, struct str name, struct checkpoint_tensor *t,
			  struct ow_error *err);
void checkpoint_tensor_release(struct checkpoint_tensor *t);

enum tensor_text {
	TENSOR_TEXT_OK,
	TENSOR_TEXT_HUGE,	/* more than 100,000 elements, for which tfprof warns */
	TENSOR_TEXT_UNSUPPORTED /* a type that tfprof does not show; no text */
};

/* Appends the text that tfprof shows for -select tensor_value: nested brackets, cut at 10,000
 * bytes. */
enum tensor_text checkpoint_tensor_text(const struct checkpoint_tensor *t, struct buf *out);

#endif
