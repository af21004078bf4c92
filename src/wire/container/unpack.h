/*
 * unpack.h: replaces a compressed input by its content. Called for every input before importers see it; containers are
 * recognised by their first bytes.
 *
 * Content of up to 64 MiB is held in memory, more goes through a bounded buffer into an unlinked temporary file. From a
 * cut or damaged container the content before the damage is used, and the result reports the damage. Only one-stream
 * containers are here; archive.h has archives, where an input becomes several.
 */
#ifndef WIRE_UNPACK_H
#define WIRE_UNPACK_H

#include "base/input.h"

#define UNPACK_LEVELS 2 /* depth of nested containers that are unpacked */

struct unpack_options {
	uint64_t max_unpacked; /* refuse to unpack to more than this (OW_E_LIMIT); 0 = no cap */
	size_t memory_max;     /* larger content goes to a file; 0 = 64 MiB */
	/* Callback as in struct input_options: receives the content in memory before it goes to
	 * a file. */
	ow_status (*judge)(const char *name, struct str head, struct ow_error *err);
};

struct unpack_result {
	/* "gzip" or "zstd"; NULL: the input was not compressed and is unchanged */
	const char *container;
	unsigned levels;	  /* number of containers that were removed */
	uint64_t compressed_size; /* size of the outermost container */
	uint64_t unpacked_size;	  /* size of the unpacked content */
	/* the data is cut short or corrupt: the content may be incomplete */
	bool truncated;
	uint64_t damage_offset; /* offset of the damage in the compressed bytes of that level */
	char message[160];	/* description of the damage, "" if there is none */
};

/* Returns the name of the container that begins with these bytes, or NULL. Eight bytes are
 * enough. */
const char *unpack_container(struct str head);

/* Unpacks *in in place. On failure (no memory, disk or permission, a limit, a container that holds nothing readable)
 * *in is unchanged. */
ow_status unpack_input(struct input *in, struct unpack_result *result,
		       struct ow_error *err) OW_MUST_CHECK;
ow_status unpack_input_with(struct input *in, const struct unpack_options *options,
			    struct unpack_result *result, struct ow_error *err) OW_MUST_CHECK;

#endif
