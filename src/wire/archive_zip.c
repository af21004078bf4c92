/*
 * archive_zip.c: the members of a zip file, from its central directory (also in the 64-bit form). When
 * that is missing, as in a file that was cut, from the headers before the members themselves.
 */
#include "wire/archive_int.h"

#define LOCAL_HEADER 30
#define CENTRAL_HEADER 46
#define END_RECORD 22
#define END64_LOCATOR 20
#define END64_RECORD 56
#define COMMENT_MAX 65535
#define NAME_MAX_BYTES 65535

static bool match_zip(const unsigned char *head, size_t len)
{
	return len >= 4 && head[0] == 'P' && head[1] == 'K' &&
	       ((head[2] == 3 && head[3] == 4) || (head[2] == 5 && head[3] == 6));
}

static bool has_magic(const unsigned char *p, unsigned char a, unsigned char b)
{
	return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

/* Where the central directory is, and how many entries it has. */
struct directory {
	uint64_t offset, count;
};

/* The 64-bit record stands before the locator, which stands before the end record. */
static ow_status read_end64(const struct input *in, uint64_t end, struct directory *d,
			    struct error *err)
{
	unsigned char b[END64_RECORD];
	uint64_t at;

	if (end < END64_LOCATOR)
		return OW_OK;
	OW_TRY(input_read_at(in, end - END64_LOCATOR, b, END64_LOCATOR, err));
	if (!has_magic(b, 6, 7))
		return OW_OK;
	at = archive_u64(b + 8);
	if (at > in->size || in->size - at < END64_RECORD)
		return OW_OK;
	OW_TRY(input_read_at(in, at, b, END64_RECORD, err));
	if (!has_magic(b, 6, 6))
		return OW_OK;
	d->count = archive_u64(b + 32);
	d->offset = archive_u64(b + 48);
	return OW_OK;
}

/* The end record is the last thing in the file but for a comment. */
static ow_status find_directory(struct mem *mem, const struct input *in, struct directory *d,
				bool *found, struct error *err)
{
	size_t len = (size_t)MIN(in->size, (uint64_t)END_RECORD + COMMENT_MAX);
	unsigned char *tail = mem_alloc(mem, len);
	ow_status status;

	*found = false;
	if (!tail)
		return error_no_memory(err);
	status = input_read_at(in, in->size - len, tail, len, err);
	for (size_t i = len < END_RECORD ? 0 : len - END_RECORD + 1; i-- > 0 && status == OW_OK;) {
		if (!has_magic(tail + i, 5, 6))
			continue;
		d->count = archive_u16(tail + i + 10);
		d->offset = archive_u32(tail + i + 16);
		*found = true;
		if (d->count == UINT16_MAX || d->offset == UINT32_MAX)
			status = read_end64(in, in->size - len + i, d, err);
		break;
	}
	mem_free(mem, tail, len);
	return status;
}

/* Sizes that did not fit 32 bits are in an extra field. */
static void read_extra64(const unsigned char *p, size_t len, struct archive_member *m, bool *big)
{
	while (len >= 4) {
		size_t size = archive_u16(p + 2), at = 4;

		if (size > len - 4)
			return;
		if (archive_u16(p) == 1) {
			if (big[0] && at + 8 <= size + 4) {
				m->size = archive_u64(p + at);
				at += 8;
			}
			if (big[1] && at + 8 <= size + 4) {
				m->packed = archive_u64(p + at);
				at += 8;
			}
			if (big[2] && at + 8 <= size + 4)
				m->offset = archive_u64(p + at);
			return;
		}
		p += 4 + size;
		len -= 4 + size;
	}
}

static ow_status add_member(struct archive *a, const struct archive_member *m,
			    const unsigned char *name, size_t len, struct error *err)
{
	if (!len || name[len - 1] == '/' || !m->size)
		return OW_OK;
	return archive_add(a, m, str_make(name, len), err);
}

static ow_status list_central(struct archive *a, const struct input *in, const struct directory *d,
			      struct error *err)
{
	struct window w;
	uint64_t at = d->offset;
	ow_status status = OW_OK;

	window_init(&w, in, err);
	for (uint64_t i = 0; i < d->count && status == OW_OK; i++) {
		struct archive_member m = { 0 };
		const unsigned char *p;
		size_t name, extra, comment;
		bool big[3];

		if (at > in->size || in->size - at < CENTRAL_HEADER) {
			archive_damage(a, at, "the directory is cut short");
			break;
		}
		p = window_at(&w, at, CENTRAL_HEADER);
		if (!p || !has_magic(p, 1, 2)) {
			archive_damage(a, at, "the directory is damaged");
			status = p ? OW_OK : w.status;
			break;
		}
		name = archive_u16(p + 28);
		extra = archive_u16(p + 30);
		comment = archive_u16(p + 32);
		if (in->size - at - CENTRAL_HEADER < name + extra) {
			archive_damage(a, at, "the directory is cut short");
			break;
		}
		p = window_at(&w, at, CENTRAL_HEADER + name + extra);
		if (!p) {
			status = w.status;
			break;
		}
		m.encrypted = archive_u16(p + 8) & 1;
		m.method = archive_u16(p + 10);
		m.crc = archive_u32(p + 16);
		m.packed = archive_u32(p + 20);
		m.size = archive_u32(p + 24);
		m.offset = archive_u32(p + 42);
		big[0] = m.size == UINT32_MAX;
		big[1] = m.packed == UINT32_MAX;
		big[2] = m.offset == UINT32_MAX;
		read_extra64(p + CENTRAL_HEADER + name, extra, &m, big);
		status = add_member(a, &m, p + CENTRAL_HEADER, name, err);
		at += CENTRAL_HEADER + name + extra + comment;
	}
	window_release(&w);
	return status;
}

/* One after the other from the start; a member whose size is told only behind it is the last. */
static ow_status list_local(struct archive *a, const struct input *in, struct error *err)
{
	struct window w;
	uint64_t at = 0;
	ow_status status = OW_OK;

	archive_damage(a, in->size, "its directory, which stands at the end, is missing");
	window_init(&w, in, err);
	while (status == OW_OK && in->size - at >= LOCAL_HEADER) {
		struct archive_member m = { .offset = at };
		const unsigned char *p = window_at(&w, at, LOCAL_HEADER);
		size_t name, extra;
		bool big[3] = { false }, later;

		if (!p)
			status = w.status;
		if (!p || !has_magic(p, 3, 4))
			break;
		name = archive_u16(p + 26);
		extra = archive_u16(p + 28);
		if (in->size - at - LOCAL_HEADER < name + extra)
			break;
		p = window_at(&w, at, LOCAL_HEADER + name + extra);
		if (!p) {
			status = w.status;
			break;
		}
		m.encrypted = archive_u16(p + 6) & 1;
		later = archive_u16(p + 6) & 8;
		m.method = archive_u16(p + 8);
		m.crc = archive_u32(p + 14);
		m.packed = archive_u32(p + 18);
		m.size = archive_u32(p + 22);
		big[0] = m.size == UINT32_MAX;
		big[1] = m.packed == UINT32_MAX;
		read_extra64(p + LOCAL_HEADER + name, extra, &m, big);
		at += LOCAL_HEADER + name + extra;
		if (later && !m.packed) {
			m.packed = in->size - at;
			m.size = UINT64_MAX;
		}
		m.cut = m.packed > in->size - at;
		status = add_member(a, &m, p + LOCAL_HEADER, name, err);
		if (m.packed > in->size - at || m.size == UINT64_MAX)
			break;
		at += m.packed;
	}
	window_release(&w);
	return status;
}

static ow_status list_zip(struct archive *a, const struct input *in, struct error *err)
{
	struct directory d = { 0 };
	bool found;

	OW_TRY(find_directory(a->arena.mem, in, &d, &found, err));
	if (found && d.offset <= in->size)
		OW_TRY(list_central(a, in, &d, err));
	if (!a->count && (!found || a->damaged))
		return list_local(a, in, err);
	return OW_OK;
}

/* The name and extra field may have other lengths before the member than in the directory. */
static ow_status locate_zip(const struct archive_member *m, const struct input *in,
			    uint64_t *offset, struct error *err)
{
	unsigned char b[LOCAL_HEADER];

	if (m->offset > in->size || in->size - m->offset < LOCAL_HEADER)
		return error_at(err, OW_E_CORRUPT, m->offset, "%s!%s: lies outside the archive",
				in->name, m->name);
	OW_TRY(input_read_at(in, m->offset, b, sizeof(b), err));
	*offset = m->offset + LOCAL_HEADER + archive_u16(b + 26) + archive_u16(b + 28);
	if (!has_magic(b, 3, 4) || *offset > in->size)
		return error_at(err, OW_E_CORRUPT, m->offset,
				"%s!%s: is not where the directory says", in->name, m->name);
	return OW_OK;
}

const struct archive_type archive_zip = { "zip", match_zip, list_zip, locate_zip };
