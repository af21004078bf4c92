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

#define UNPACK_LEVELS 2 /* a container in a container is unpacked, but no deeper */

struct unpack_options {
	uint64_t max_unpacked; /* refuse to unpack to more than this (OW_E_LIMIT); 0 = no cap */
	size_t memory_max;     /* larger content goes to a file; 0 = 64 MiB */
	/* As in struct input_options: called with the content in memory before it goes to a file. */
	ow_status (*judge)(const char *name, struct str head, struct ow_error *err);
};

struct unpack_result {
	const char *container;	  /* "gzip", "zstd"; NULL: the input was plain and is untouched */
	unsigned levels;	  /* how many containers were taken off */
	uint64_t compressed_size; /* of the outermost container */
	uint64_t unpacked_size;	  /* of the content now in the input */
	bool truncated;		  /* cut short or corrupt: the content may be incomplete */
	uint64_t damage_offset;	  /* in the compressed bytes of the damaged level */
	char message[160];	  /* the damage, "" if none */
};

/* The name of the container that begins with these bytes, or NULL. Eight bytes are enough. */
const char *unpack_container(struct str head);

/* Unpacks *in in place. On failure (no memory, disk or permission, a limit, a container that holds nothing readable)
 * *in is unchanged. */
ow_status unpack_input(struct input *in, struct unpack_result *result,
		       struct ow_error *err) OW_MUST_CHECK;
ow_status unpack_input_with(struct input *in, const struct unpack_options *options,
			    struct unpack_result *result, struct ow_error *err) OW_MUST_CHECK;

#endif
