/* pb_copy.c: see pb_copy.h. */
#include "wire/pb_copy.h"

#include "wire/pb_write.h"

static bool is_wanted(const struct pb_copy *what, uint32_t number)
{
	return !what->only || (number < 64 && what->only >> number & 1);
}

static void enter(struct pb_stream *s, const struct pb_stream_field *f, const struct pb_copy *what,
		  struct buf *to)
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
			enter(s, &f, what, to);
		}
	}
}
