/*
 * archive_int.h: between archive.c and the two kinds (archive_zip.c, archive_tar.c); nobody else
 * includes it.
 */
#ifndef WIRE_ARCHIVE_INT_H
#define WIRE_ARCHIVE_INT_H

#include "wire/archive.h"
#include "wire/unpack_int.h"

struct archive_type {
	const char *name;
	bool (*match)(const unsigned char *head, size_t len); /* of up to 512 bytes */
	ow_status (*list)(struct archive *a, const struct input *in, struct error *err);
	/* Where the content of a member is. */
	ow_status (*locate)(const struct archive_member *member, const struct input *in,
			    uint64_t *offset, struct error *err);
};

extern const struct archive_type archive_zip, archive_tar;

/* Adds a member (its name is copied); OW_E_LIMIT when there are too many. */
ow_status archive_add(struct archive *a, const struct archive_member *member, struct str name,
		      struct error *err) OW_MUST_CHECK;
void archive_damage(struct archive *a, uint64_t offset, const char *message);

static inline uint16_t archive_u16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t archive_u32(const unsigned char *p)
{
	return (uint32_t)archive_u16(p) | (uint32_t)archive_u16(p + 2) << 16;
}
static inline uint64_t archive_u64(const unsigned char *p)
{
	return archive_u32(p) | (uint64_t)archive_u32(p + 4) << 32;
}

#endif
