/* archive.c: see archive.h. Which kind it is, the list, and taking a member out. */
#include "wire/archive_int.h"

#include <zlib.h>

#define HEAD_BYTES 512
#define MEMBER_MEMORY ((size_t)4 << 20) /* of many: larger ones go to a file */

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

ow_status archive_add(struct archive *a, const struct archive_member *member, struct str name,
		      struct error *err)
{
	void *members = a->members;
	struct archive_member *added;

	if (a->count == ARCHIVE_MEMBERS_MAX)
		return error_set(err, OW_E_LIMIT, "more than %d files in the archive",
				 ARCHIVE_MEMBERS_MAX);
	if (!mem_grow(a->arena.mem, &members, &a->cap, a->count + 1, sizeof(*a->members)))
		return error_no_memory(err);
	a->members = members;
	added = &a->members[a->count];
	*added = *member;
	added->name = arena_cstr(&a->arena, name);
	if (!added->name)
		return error_no_memory(err);
	a->count++;
	return OW_OK;
}

void archive_damage(struct archive *a, uint64_t offset, const char *message)
{
	if (a->damaged) /* the first is told */
		return;
	a->damaged = true;
	a->damage_offset = offset;
	snprintf(a->message, sizeof(a->message), "%s", message);
}

ow_status archive_open(struct archive *a, const struct input *in, struct error *err)
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

/* ---- content ---- */

struct content {
	struct window window;
	uint64_t at, end;
};

/* As much as is at hand of what is left. */
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
			     struct error *err)
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
			       uint32_t *crc, bool *done, struct error *err)
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
			     struct error *err)
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
			      struct unpack_job *job, struct error *err)
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
		unpack_damage(job, m->offset, "the member has another size than the archive tells");
	if (a->kind == archive_zip.name && m->size != UINT64_MAX && crc != m->crc)
		unpack_damage(job, m->offset, "the checksum of the member is wrong");
	return OW_OK;
}

ow_status archive_take(const struct archive *a, const struct input *in, size_t index,
		       struct unpack_result *result, struct input *out, struct error *err)
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
				 "%s!%s: packed in a way (%u) that is not known; unpack it first",
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
