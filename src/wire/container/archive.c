/*
 * archive.c: lists the members of a zip or tar file and takes them out, one at a time. Called by import.c and merge,
 * which treat each member as a file. Names are only compared and shown: no path of an archive is ever opened.
 * Compressed tar files are unpacked by unpack.c first.
 */
#include "wire/container/archive.h"

#include "base/vec.h"
#include "wire/container/unpack_int.h"

#include <zlib.h>

struct archive_type {
	const char *name;
	/* recognises the archive by its first bytes, at most 512 */
	bool (*match)(const unsigned char *head, size_t len);
	ow_status (*list)(struct archive *a, const struct input *in, struct ow_error *err);
	/* Finds the content of a member. */
	ow_status (*locate)(const struct archive_member *member, const struct input *in,
			    uint64_t *offset, struct ow_error *err);
};

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

static ow_status archive_add(struct archive *a, const struct archive_member *member,
			     struct str name, struct ow_error *err) OW_MUST_CHECK;
static void archive_damage(struct archive *a, uint64_t offset, const char *message);

#define LOCAL_HEADER 30
#define CENTRAL_HEADER 46
#define END_RECORD 22
#define END64_LOCATOR 20
#define END64_RECORD 56
#define COMMENT_MAX 65535

static bool match_zip(const unsigned char *head, size_t len)
{
	return len >= 4 && head[0] == 'P' && head[1] == 'K' &&
	       ((head[2] == 3 && head[3] == 4) || (head[2] == 5 && head[3] == 6));
}

static bool has_magic(const unsigned char *p, unsigned char a, unsigned char b)
{
	return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

/* Position of the central directory, and its number of entries. */
struct directory {
	uint64_t offset, count;
};

/* Reads the 64-bit end record. It stands before the locator, which stands before the end record. */
static ow_status read_end64(const struct input *in, uint64_t end, struct directory *d,
			    struct ow_error *err)
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

/* Finds the central directory through the end record, which is the last part of the file except
 * for a comment. */
static ow_status find_directory(struct mem *mem, const struct input *in, struct directory *d,
				bool *found, struct ow_error *err)
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

/* Reads sizes that do not fit into 32 bits from an extra field. */
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
			    const unsigned char *name, size_t len, struct ow_error *err)
{
	if (!len || name[len - 1] == '/' || !m->size)
		return OW_OK;
	return archive_add(a, m, str_make(name, len), err);
}

static ow_status list_central(struct archive *a, const struct input *in, const struct directory *d,
			      struct ow_error *err)
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

/* Lists members one after the other from the start. A member whose size is stored only after its content is the
 * last. */
static ow_status list_local(struct archive *a, const struct input *in, struct ow_error *err)
{
	struct window w;
	uint64_t at = 0;
	ow_status status = OW_OK;

	archive_damage(a, in->size, "its directory, which is at the end of the file, is missing");
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

static int by_offset(const void *a, const void *b)
{
	const struct archive_member *x = *(const struct archive_member *const *)a;
	const struct archive_member *y = *(const struct archive_member *const *)b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Refuses members that share bytes: they make a small archive look huge, and no packer writes
 * them. */
static ow_status refuse_overlaps(const struct archive *a, const struct input *in,
				 struct ow_error *err)
{
	struct mem *mem = a->arena.mem;
	const struct archive_member **sorted = mem_alloc(mem, a->count * sizeof(*sorted));
	ow_status status = OW_OK;

	if (!sorted)
		return error_no_memory(err);
	for (size_t i = 0; i < a->count; i++)
		sorted[i] = &a->members[i];
	qsort(sorted, a->count, sizeof(*sorted), by_offset);
	for (size_t i = 1; i < a->count && status == OW_OK; i++) {
		uint64_t apart = sorted[i]->offset - sorted[i - 1]->offset;

		if (apart < LOCAL_HEADER || apart - LOCAL_HEADER < sorted[i - 1]->packed)
			status = error_at(err, OW_E_CORRUPT, sorted[i]->offset,
					  "%s: the members %s and %s overlap, as in archives that "
					  "are made to fill disks; unpack it with another program "
					  "if you trust it",
					  in->name, sorted[i - 1]->name, sorted[i]->name);
	}
	mem_free(mem, sorted, a->count * sizeof(*sorted));
	return status;
}

static ow_status list_zip(struct archive *a, const struct input *in, struct ow_error *err)
{
	struct directory d = { 0 };
	bool found;

	OW_TRY(find_directory(a->arena.mem, in, &d, &found, err));
	if (found && d.offset <= in->size)
		OW_TRY(list_central(a, in, &d, err));
	if (!a->count && (!found || a->damaged))
		return list_local(a, in, err);
	return a->count ? refuse_overlaps(a, in, err) : OW_OK;
}

/* Finds a member's content. The name and extra field before it may have other lengths than in
 * the directory. */
static ow_status locate_zip(const struct archive_member *m, const struct input *in,
			    uint64_t *offset, struct ow_error *err)
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

static const struct archive_type archive_zip = { "zip", match_zip, list_zip, locate_zip };

#define BLOCK 512
#define NAME_MAX_BYTES ((uint64_t)64 << 10)

/* Reads an octal number, or a binary one if the first bit is set. UINT64_MAX if it is neither. */
static uint64_t number(const unsigned char *p, size_t len)
{
	uint64_t value = 0;
	size_t i = 0;

	if (p[0] & 0x80) {
		for (i = len > 8 ? len - 8 : 1; i < len; i++)
			value = value << 8 | p[i];
		return value;
	}
	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] && p[i] != ' '; i++) {
		if (p[i] < '0' || p[i] > '7' || value >> 60)
			return UINT64_MAX;
		value = value << 3 | (uint64_t)(p[i] - '0');
	}
	return value;
}

static bool checksum_fits(const unsigned char *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : p[i];
	return p[0] && number(p + 148, 8) == sum;
}

static bool match_tar(const unsigned char *head, size_t len)
{
	return len == BLOCK && checksum_fits(head);
}

static size_t field_len(const unsigned char *p, size_t max)
{
	const unsigned char *end = memchr(p, 0, max);

	return end ? (size_t)(end - p) : max;
}

/* The name of the next member, from a separate header. */
struct long_name {
	char *text;
	size_t len, cap;
};

static bool keep_name(struct archive *a, struct long_name *name, struct str text)
{
	if (!vec_reserve(a->arena.mem, name->text, name->cap, text.len + 1))
		return false;
	memcpy(name->text, text.ptr, text.len);
	name->len = text.len;
	return true;
}

/* Returns the path in records such as "27 path=some/name\n…"; other records are ignored. */
static struct str pax_path(struct str records)
{
	while (records.len) {
		size_t blank = str_find_char(records, ' ');
		int64_t len;
		struct str record;

		if (blank == STR_NONE || !str_to_i64(str_first(records, blank), &len) || len <= 0 ||
		    (uint64_t)len > records.len || (size_t)len <= blank + 1)
			break;
		record = str_make(records.ptr + blank + 1, (size_t)len - blank - 1);
		if (str_starts(record, STR("path=")) && record.len > 6)
			return str_make(record.ptr + 5, record.len - 6); /* cuts off the newline */
		records = str_skip(records, (size_t)len);
	}
	return (struct str){ 0 };
}

static ow_status read_name(struct archive *a, struct window *w, uint64_t at, uint64_t size,
			   bool pax, struct long_name *name, struct ow_error *err)
{
	const unsigned char *p;
	struct str text;

	if (size > NAME_MAX_BYTES)
		return OW_OK;
	p = window_at(w, at, (size_t)size);
	if (!p)
		return w->status;
	text = str_make(p, (size_t)size);
	text = pax ? pax_path(text) : str_make(p, field_len(p, (size_t)size));
	if (text.len && !keep_name(a, name, text))
		return error_no_memory(err);
	return OW_OK;
}

static ow_status add_file(struct archive *a, const unsigned char *header, uint64_t at,
			  uint64_t size, uint64_t left, struct long_name *name,
			  struct ow_error *err)
{
	struct archive_member m = {
		.offset = at, .packed = size, .size = size, .cut = size > left
	};
	char joined[256];
	size_t prefix = memcmp(header + 257, "ustar", 5) == 0 && header[262] == 0
				? field_len(header + 345, 155)
				: 0;
	int len;

	if (!size)
		return OW_OK;
	if (name->len)
		return archive_add(a, &m, str_make(name->text, name->len), err);
	len = snprintf(joined, sizeof(joined), "%.*s%s%.*s", (int)prefix,
		       (const char *)header + 345, prefix ? "/" : "", (int)field_len(header, 100),
		       (const char *)header);
	return archive_add(a, &m, str_make(joined, MIN((size_t)len, sizeof(joined) - 1)), err);
}

static ow_status list_members(struct archive *a, struct window *w, struct long_name *name,
			      struct ow_error *err)
{
	uint64_t at = 0, total = w->in->size;

	while (total - at >= BLOCK) {
		unsigned char header[BLOCK];
		const unsigned char *p = window_at(w, at, BLOCK);
		uint64_t size, padded;

		if (!p)
			return w->status;
		memcpy(header, p, BLOCK);
		if (!header[0])
			return OW_OK; /* the archive ends, or the rest cannot be read */
		size = number(header + 124, 12);
		if (!checksum_fits(header) || size == UINT64_MAX) {
			archive_damage(a, at, "a header is damaged");
			return OW_OK;
		}
		at += BLOCK;
		if (size > total - at)
			archive_damage(a, total, "it is cut short");
		switch (header[156]) {
		case 'L': /* GNU: this header holds the name of the next member */
		case 'x': /* pax: this header holds attributes of the next member */
			if (size <= total - at)
				OW_TRY(read_name(a, w, at, size, header[156] == 'x', name, err));
			break;
		case '0':
		case '\0':
		case '7':
			OW_TRY(add_file(a, header, at, size, total - at, name, err));
			name->len = 0;
			break;
		case 'g':
		case 'K':
			break;
		default:
			name->len = 0;
		}
		padded = (size + BLOCK - 1) / BLOCK * BLOCK;
		if (padded < size || padded > total - at)
			return OW_OK;
		at += padded;
	}
	archive_damage(a, total, "it is cut short"); /* the empty block at the end is missing */
	return OW_OK;
}

static ow_status list_tar(struct archive *a, const struct input *in, struct ow_error *err)
{
	struct long_name name = { 0 };
	struct window w;
	ow_status status;

	window_init(&w, in, err);
	status = list_members(a, &w, &name, err);
	window_release(&w);
	mem_free(a->arena.mem, name.text, name.cap);
	return status;
}

static ow_status locate_tar(const struct archive_member *m, const struct input *in,
			    uint64_t *offset, struct ow_error *err)
{
	(void)in;
	(void)err;
	*offset = m->offset;
	return OW_OK;
}

static const struct archive_type archive_tar = { "tar", match_tar, list_tar, locate_tar };

#define HEAD_BYTES 512
/* if an archive has many members, larger ones go to a file */
#define MEMBER_MEMORY ((size_t)4 << 20)

static const struct archive_type *const types[] = { &archive_zip, &archive_tar };

static const struct archive_type *match_head(const unsigned char *head, size_t len)
{
	for (size_t i = 0; i < ARRAY_COUNT(types); i++)
		if (types[i]->match(head, len))
			return types[i];
	return NULL;
}

static const struct archive_type *find_type(const struct input *in)
{
	unsigned char head[HEAD_BYTES];
	size_t len = (size_t)MIN(in->size, (uint64_t)sizeof(head));

	if (input_read_at(in, 0, head, len, NULL) != OW_OK)
		return NULL;
	return match_head(head, len);
}

bool archive_starts(struct str head)
{
	return match_head((const unsigned char *)head.ptr, MIN(head.len, (size_t)HEAD_BYTES));
}

const char *archive_kind(const struct input *in)
{
	const struct archive_type *type = find_type(in);

	return type ? type->name : NULL;
}

static const struct archive_type *type_of(const struct archive *a)
{
	return a->kind == archive_zip.name ? &archive_zip : &archive_tar;
}

static ow_status archive_add(struct archive *a, const struct archive_member *member,
			     struct str name, struct ow_error *err)
{
	struct archive_member *added;

	if (a->count == ARCHIVE_MEMBERS_MAX)
		return error_set(err, OW_E_LIMIT, "more than %d files in the archive",
				 ARCHIVE_MEMBERS_MAX);
	if (!vec_reserve(a->arena.mem, a->members, a->cap, a->count + 1))
		return error_no_memory(err);
	added = &a->members[a->count];
	*added = *member;
	added->name = arena_cstr(&a->arena, name);
	if (!added->name)
		return error_no_memory(err);
	a->count++;
	return OW_OK;
}

static void archive_damage(struct archive *a, uint64_t offset, const char *message)
{
	if (a->damaged) /* only the first damage is reported */
		return;
	a->damaged = true;
	a->damage_offset = offset;
	snprintf(a->message, sizeof(a->message), "%s", message);
}

ow_status archive_open(struct archive *a, const struct input *in, struct ow_error *err)
{
	const struct archive_type *type = find_type(in);
	ow_status status;

	*a = (struct archive){ 0 };
	arena_init(&a->arena, in->mem);
	if (!type)
		return error_set(err, OW_E_FORMAT, "%s: no archive", in->name);
	a->kind = type->name;
	status = type->list(a, in, err);
	if (status == OW_OK && !a->count)
		status = a->damaged ? error_at(err, OW_E_CORRUPT, a->damage_offset,
					       "%s: nothing in this %s archive can be read: %s",
					       in->name, a->kind, a->message)
				    : error_set(err, OW_E_EMPTY, "%s: no files in this %s archive",
						in->name, a->kind);
	if (status != OW_OK)
		archive_close(a);
	return status;
}

void archive_close(struct archive *a)
{
	if (!a->arena.mem)
		return;
	mem_free(a->arena.mem, a->members, a->cap * sizeof(*a->members));
	arena_release(&a->arena);
	*a = (struct archive){ 0 };
}

struct content {
	struct window window;
	uint64_t at, end;
};

/* Returns as many of the remaining bytes as are loaded. */
static ow_status next_piece(struct content *c, struct str *piece)
{
	*piece = window_peek(&c->window, c->at, 1);
	if (!piece->ptr)
		return c->window.status;
	piece->len = MIN(piece->len, SPOOL_PIECE);
	piece->len = (size_t)MIN((uint64_t)piece->len, c->end - c->at);
	c->at += piece->len;
	return OW_OK;
}

static ow_status copy_stored(struct unpack_job *job, struct content *c, uint32_t *crc,
			     struct ow_error *err)
{
	while (c->at < c->end) {
		unsigned char *to;
		struct str piece;
		size_t room;

		OW_TRY(unpack_room(job, &to, &room, err));
		OW_TRY(next_piece(c, &piece));
		if (piece.len > room) {
			c->at -= piece.len - room;
			piece.len = room;
		}
		memcpy(to, piece.ptr, piece.len);
		*crc = (uint32_t)crc32(*crc, to, (uInt)piece.len);
		unpack_made(job, piece.len);
	}
	return OW_OK;
}

static ow_status inflate_piece(struct unpack_job *job, struct content *c, z_stream *z,
			       uint32_t *crc, bool *done, struct ow_error *err)
{
	unsigned char *to;
	struct str piece;
	size_t room, made;
	int code;

	if (!z->avail_in && c->at < c->end) {
		OW_TRY(next_piece(c, &piece));
		z->next_in = (unsigned char *)(uintptr_t)piece.ptr;
		z->avail_in = (uInt)piece.len;
	}
	OW_TRY(unpack_room(job, &to, &room, err));
	z->next_out = to;
	z->avail_out = (uInt)room;
	code = inflate(z, Z_NO_FLUSH);
	made = room - z->avail_out;
	*crc = (uint32_t)crc32(*crc, to, (uInt)made);
	unpack_made(job, made);
	if (code == Z_MEM_ERROR)
		return error_no_memory(err);
	*done = code != Z_OK;
	if (code == Z_BUF_ERROR)
		unpack_damage(job, c->at, "the compressed data is cut short");
	else if (code != Z_OK && code != Z_STREAM_END)
		unpack_damage(job, c->at - z->avail_in, "damaged compressed data: %s",
			      z->msg ? z->msg : "unknown");
	return OW_OK;
}

static ow_status inflate_raw(struct unpack_job *job, struct content *c, uint32_t *crc,
			     struct ow_error *err)
{
	z_stream z = { .zalloc = unpack_zlib_alloc,
		       .zfree = unpack_zlib_free,
		       .opaque = job->in->mem };
	ow_status status = OW_OK;
	bool done = false;

	if (inflateInit2(&z, -15) != Z_OK)
		return error_no_memory(err);
	while (!done && status == OW_OK)
		status = inflate_piece(job, c, &z, crc, &done, err);
	inflateEnd(&z);
	return status;
}

static ow_status take_content(const struct archive *a, const struct archive_member *m,
			      struct unpack_job *job, struct ow_error *err)
{
	struct content c = { 0 };
	uint32_t crc = 0;
	ow_status status;

	OW_TRY(type_of(a)->locate(m, job->in, &c.at, err));
	c.end = c.at + MIN(m->packed, job->in->size - c.at);
	window_init(&c.window, job->in, err);
	status = m->method == 8 ? inflate_raw(job, &c, &crc, err) : copy_stored(job, &c, &crc, err);
	window_release(&c.window);
	if (status != OW_OK)
		return status;
	if (m->cut)
		unpack_damage(job, job->in->size, "the archive is cut short");
	if (m->size != UINT64_MAX && spool_size(&job->out) != m->size)
		unpack_damage(job, m->offset,
			      "the size of the member differs from the one in the archive's list");
	if (a->kind == archive_zip.name && m->size != UINT64_MAX && crc != m->crc)
		unpack_damage(job, m->offset, "the checksum of the member is wrong");
	return OW_OK;
}

ow_status archive_take(const struct archive *a, const struct input *in, size_t index,
		       struct unpack_result *result, struct input *out, struct ow_error *err)
{
	const struct archive_member *m = &a->members[index];
	static const struct unpack_options defaults;
	struct unpack_job job = { .in = in, .options = &defaults, .result = result };
	struct buf name;
	ow_status status;

	*result = (struct unpack_result){ .container = a->kind, .compressed_size = m->packed };
	if (m->encrypted)
		return error_set(err, OW_E_UNSUPPORTED, "%s!%s: is encrypted", in->name, m->name);
	if (m->method != 0 && m->method != 8)
		return error_set(err, OW_E_UNSUPPORTED,
				 "%s!%s: compressed by an unknown method (%u); unpack it first",
				 in->name, m->name, m->method);
	buf_init(&name, in->mem);
	buf_printf(&name, "%s!%s", in->name, m->name);
	spool_init(&job.out, in->mem, in->name, a->count > 1 ? MEMBER_MEMORY : 0);
	status = name.failed ? error_no_memory(err) : take_content(a, m, &job, err);
	if (status == OW_OK)
		status = spool_to_input(&job.out, buf_cstr(&name), out, err);
	spool_release(&job.out);
	buf_release(&name);
	if (status != OW_OK)
		return status;
	result->levels = 1;
	result->unpacked_size = out->size;
	return OW_OK;
}
