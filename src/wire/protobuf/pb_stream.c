/*
 * pb_stream.c: reads protobuf messages of any size through a window, and copies the small fields of one (pb_stream.h).
 * Errors carry absolute offsets. It does not know what a field means.
 */
#include "wire/protobuf/pb_stream.h"
#include "wire/protobuf/pb_write.h"

void pb_stream_init(struct pb_stream *s, struct window *window, uint64_t begin, uint64_t end)
{
	*s = (struct pb_stream){ .window = window, .at = begin };
	s->ends[0] = end;
}

/* Ends the stream. The first damage is reported, unless memory or the disk fails later. */
static bool stop(struct pb_stream *s, ow_status status)
{
	if (s->status == OW_OK || status != OW_E_CORRUPT)
		s->status = status;
	for (unsigned i = 0; i <= s->depth; i++)
		s->ends[i] = s->at;
	return false;
}

static ow_status problem_at(struct pb_stream *s, uint64_t offset, enum pb_problem problem)
{
	if (s->status != OW_OK) /* only the first problem is reported */
		return s->status;
	return error_at(s->window->err, OW_E_CORRUPT, offset, "%s: damaged protobuf data: %s",
			s->window->in->name, pb_problem_text(problem));
}

static bool damaged(struct pb_stream *s, uint64_t offset, enum pb_problem problem)
{
	return stop(s, problem_at(s, offset, problem));
}

/* Loads the bytes at `at` up to the container's end, but no more than a field's tag and scalar
 * need. */
static bool head_at(struct pb_stream *s, uint64_t at, const uint8_t **ptr, const uint8_t **end)
{
	uint64_t left = s->ends[s->depth] - at;
	size_t want = (size_t)MIN(left, (uint64_t)(2 * PB_VARINT_BYTES));

	*ptr = window_at(s->window, at, want);
	if (!*ptr)
		return stop(s, s->window->status);
	*end = *ptr + want;
	return true;
}

/* Reads one tag and its scalar or length; *next becomes the position behind it. Group tags have
 * no value. */
static bool read_head(struct pb_stream *s, uint64_t at, uint32_t *tag, uint64_t *value,
		      uint64_t *next)
{
	const uint8_t *ptr = NULL, *end = NULL, *begin;
	struct pb_varint v;
	unsigned size;

	if (!head_at(s, at, &ptr, &end))
		return false;
	begin = ptr;
	v = pb_varint_at(ptr, end);
	if (!v.next)
		return damaged(s, at, (enum pb_problem)v.value);
	if (v.value < 8 || v.value > UINT32_MAX)
		return damaged(s, at, PB_BAD_NUMBER);
	*tag = (uint32_t)v.value;
	ptr = v.next;
	switch (*tag & 7) {
	case PB_VARINT:
	case PB_BYTES:
		if (ptr >= end)
			return damaged(s, at, PB_TRUNCATED);
		v = pb_varint_at(ptr, end);
		if (!v.next)
			return damaged(s, at, (enum pb_problem)v.value);
		*value = v.value;
		ptr = v.next;
		break;
	case PB_FIXED64:
	case PB_FIXED32:
		size = (*tag & 7) == PB_FIXED64 ? 8 : 4;
		if (end - ptr < (ptrdiff_t)size)
			return damaged(s, at, PB_TRUNCATED);
		*value = size == 8 ? pb_load64(ptr) : pb_load32(ptr);
		ptr += size;
		break;
	case PB_GROUP:
	case PB_GROUP_END:
		*value = 0;
		break;
	default:
		return damaged(s, at, PB_BAD_WIRE_TYPE);
	}
	*next = at + (uint64_t)(ptr - begin);
	return true;
}

/* Skips from behind the start of a group to behind its end. */
static bool skip_group(struct pb_stream *s, uint64_t start, uint64_t at, uint32_t number)
{
	uint32_t open[PB_DEPTH_MAX];
	size_t depth = 0;

	open[depth++] = number;
	while (depth) {
		uint64_t value = 0, next = 0;
		uint32_t tag = 0;

		if (at >= s->ends[s->depth])
			return damaged(s, start, PB_TRUNCATED);
		if (!read_head(s, at, &tag, &value, &next))
			return false;
		switch (tag & 7) {
		case PB_GROUP:
			if (depth == PB_DEPTH_MAX)
				return damaged(s, at, PB_DEEP_GROUP);
			open[depth++] = tag >> 3;
			break;
		case PB_GROUP_END:
			if (open[--depth] != tag >> 3)
				return damaged(s, at, PB_STRAY_GROUP);
			break;
		case PB_BYTES:
			if (value > s->ends[s->depth] - next)
				return damaged(s, at, PB_TRUNCATED);
			next += value;
			break;
		default:
			break;
		}
		at = next;
	}
	s->at = at;
	return true;
}

/* Records that a field extends beyond the data; its existing part can still be entered. */
static void note_cut(struct pb_stream *s, struct pb_stream_field *f, uint64_t left)
{
	if (s->status == OW_OK)
		s->status = error_at(s->window->err, OW_E_CORRUPT, f->start,
				     "%s: truncated: field %u has %" PRIu64
				     " bytes, of which only %" PRIu64 " are there",
				     s->window->in->name, f->tag >> 3, f->size, left);
	f->size = left;
	f->cut = s->cut = true;
}

bool pb_stream_next(struct pb_stream *s, struct pb_stream_field *f)
{
	for (;;) {
		uint64_t end = s->ends[s->depth], next = 0, value = 0;

		if (s->at >= end)
			return false;
		*f = (struct pb_stream_field){ .start = s->at };
		if (!read_head(s, s->at, &f->tag, &value, &next))
			return false;
		switch (f->tag & 7) {
		case PB_GROUP:
			if (!skip_group(s, f->start, next, f->tag >> 3))
				return false;
			continue;
		case PB_GROUP_END:
			return damaged(s, s->at, PB_STRAY_GROUP);
		case PB_BYTES:
			f->offset = next;
			f->size = value;
			if (value > end - next)
				note_cut(s, f, end - next);
			s->at = next + f->size;
			return true;
		default:
			f->value = value;
			s->at = next;
			return true;
		}
	}
}

bool pb_stream_enter(struct pb_stream *s, const struct pb_stream_field *f)
{
	OW_ASSERT((f->tag & 7) == PB_BYTES);
	if (s->at != f->offset + f->size) /* a failure ended the stream after the field was read */
		return false;
	if (s->depth == PB_STREAM_DEPTH)
		return stop(s, error_at(s->window->err, OW_E_LIMIT, f->start,
					"%s: messages nested more than %d deep",
					s->window->in->name, PB_STREAM_DEPTH));
	s->ends[++s->depth] = s->at;
	s->at = f->offset;
	return true;
}

void pb_stream_leave(struct pb_stream *s)
{
	OW_ASSERT(s->depth);
	s->at = s->ends[s->depth--];
}

const uint8_t *pb_stream_bytes(struct pb_stream *s, const struct pb_stream_field *f)
{
	const uint8_t *bytes;

	if (f->cut)
		return NULL;
	if (f->size > SIZE_MAX) {
		stop(s, error_no_memory(s->window->err));
		return NULL;
	}
	bytes = window_at(s->window, f->offset, (size_t)f->size);
	if (!bytes)
		stop(s, s->window->status);
	return bytes;
}

bool pb_stream_record(struct pb_stream *s, const struct pb_stream_field *f, struct pb *record)
{
	const uint8_t *bytes = pb_stream_bytes(s, f);

	if (!bytes)
		return false;
	*record = pb_over(bytes, (size_t)f->size);
	return true;
}

void pb_stream_damage(struct pb_stream *s, const struct pb_stream_field *f, const struct pb *record,
		      const uint8_t *bytes)
{
	if (record->problem)
		s->status =
			problem_at(s, f->offset + (uint64_t)(record->at - bytes), record->problem);
}

struct pb_bulk pb_bulk(const struct pb_stream *s)
{
	const struct window *w = s->window;
	uint64_t skip = s->at - w->base, left = s->ends[s->depth] - s->at;
	struct pb_bulk bulk = { .base = s->at };

	if (s->at < w->base || skip > w->len || s->at > s->ends[s->depth])
		skip = left = 0;
	else
		left = MIN(left, w->len - skip);
	bulk.start = w->buf ? w->buf + skip : (const uint8_t *)"";
	bulk.pb = pb_over(bulk.start, (size_t)left);
	return bulk;
}

void pb_bulk_end(struct pb_stream *s, const struct pb_bulk *bulk)
{
	s->at += (uint64_t)(bulk->pb.at - bulk->start);
}

static bool is_wanted(const struct pb_copy *what, uint32_t number)
{
	return !what->only || (number < 64 && what->only >> number & 1);
}

static void copy_entered(struct pb_stream *s, const struct pb_stream_field *f,
			 const struct pb_copy *what, struct buf *to)
{
	struct pb_copy inner = *what;
	size_t mark;

	if (!pb_stream_enter(s, f))
		return;
	inner.only = 0;
	inner.path++;
	inner.path_len--;
	mark = pb_begin(to, f->tag >> 3);
	pb_copy_small(s, &inner, to);
	pb_end(to, mark);
	pb_stream_leave(s);
}

void pb_copy_small(struct pb_stream *s, const struct pb_copy *what, struct buf *to)
{
	struct pb_stream_field f;

	while (to->len < what->max && pb_stream_next(s, &f)) {
		uint32_t number = f.tag >> 3;
		const uint8_t *bytes;

		if (!is_wanted(what, number))
			continue;
		if ((f.tag & 7) == PB_VARINT) {
			pb_put_varint(to, number, f.value);
		} else if ((f.tag & 7) != PB_BYTES || f.cut) {
			continue;
		} else if (f.size <= what->field_max) {
			bytes = pb_stream_bytes(s, &f);
			if (bytes)
				pb_put_bytes(to, number, bytes, (size_t)f.size);
		} else if (what->path_len && number == *what->path) {
			copy_entered(s, &f, what, to);
		}
	}
}
