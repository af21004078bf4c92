/*
 * unpack.h: replaces a compressed input by its content. Called for every input before it is shown to
 * the importers; containers are recognised by their first bytes.
 *
 * Content of up to 64 MiB is held in memory, more goes through a bounded buffer into an unlinked
 * temporary file. Cut or damaged containers give what could be unpacked before the damage, and say so
 * in the result. Only one-stream containers are here; archives (where an input becomes several) are
 * to be a part of their own beside this one, on the same spool.
 */
#ifndef WIRE_UNPACK_H
#define WIRE_UNPACK_H

#include "base/input.h"

#define UNPACK_LEVELS 2 /* a container in a container is unpacked, but no deeper */

struct unpack_options {
	uint64_t max_unpacked; /* refuse to unpack to more than this (OW_E_LIMIT); 0 = no cap */
	size_t memory_max;     /* larger content goes to a file; 0 = 64 MiB */
	/* As in struct input_options: shown the content that is in memory before it goes to a file. */
	ow_status (*judge)(const char *name, struct str head, struct error *err);
};

struct unpack_result {
	const char *container;	  /* "gzip", "zstd"; NULL: the input was plain and is untouched */
	unsigned levels;	  /* how many containers were taken off */
	uint64_t compressed_size; /* of the outermost container */
	uint64_t unpacked_size;	  /* of the content now in the input */
	bool truncated;		  /* cut short or corrupt: the content may be incomplete */
	uint64_t damage_offset;	  /* in the compressed bytes of the damaged level */
	char message[160];	  /* what is wrong, "" if nothing is */
};

/* The name of the container that begins with these bytes, or NULL. Eight bytes are enough. */
const char *unpack_container(struct str head);

/* Unpacks *in in place. On failure (no memory, disk or permission, a cap, a container that holds
 * nothing readable) *in is what it was. */
ow_status unpack_input(struct input *in, struct unpack_result *result,
		       struct error *err) OW_MUST_CHECK;
ow_status unpack_input_with(struct input *in, const struct unpack_options *options,
			    struct unpack_result *result, struct error *err) OW_MUST_CHECK;

#endif
