/*
 * archive.h: files in a file: zip and tar. The list of members is read first; members are then taken out one by one,
 * each as an input of its own (in memory, or in an unlinked temporary file when large). Archives are recognised by
 * content. Compressed ones are unpacked with unpack.h first.
 *
 * Only plain files are listed; directories, links and empty files are skipped. In a cut archive the complete members
 * are listed, and the last one as far as it goes.
 */
#ifndef WIRE_ARCHIVE_H
#define WIRE_ARCHIVE_H

#include "base/arena.h"
#include "wire/container/unpack.h"

#define ARCHIVE_MEMBERS_MAX 100000

struct archive_member {
	const char *name; /* name as in the archive */
	/* for tar: offset of the content; for zip: offset of the local header */
	uint64_t offset;
	uint64_t packed;     /* number of bytes in the archive */
	uint64_t size;	     /* number of bytes of the content; UINT64_MAX: unknown */
	uint32_t crc;	     /* checksum, for zip */
	uint16_t method;     /* compression method, for zip: 0 stored, 8 deflate */
	bool encrypted, cut; /* the member is encrypted; the archive ends within it */
};

struct archive {
	const char *kind; /* kind of the archive: "zip" or "tar" */
	struct arena arena;
	struct archive_member *members;
	size_t count, cap;
	bool damaged; /* the list of members may be incomplete */
	uint64_t damage_offset;
	char message[120];
};

/* Returns whether these first bytes (512 are enough) begin an archive. */
bool archive_starts(struct str head);

/* Returns "zip", "tar", or NULL if the input is neither (or cannot be read). */
const char *archive_kind(const struct input *in);

/* Lists the members. Returns OW_E_CORRUPT for an archive without members, or one too damaged to
 * list any. */
ow_status archive_open(struct archive *a, const struct input *in,
		       struct ow_error *err) OW_MUST_CHECK;
void archive_close(struct archive *a);

/* Opens one member as an input called "archive!member". `result` describes damage in its
 * content. */
ow_status archive_take(const struct archive *a, const struct input *in, size_t index,
		       struct unpack_result *result, struct input *out,
		       struct ow_error *err) OW_MUST_CHECK;

#endif
