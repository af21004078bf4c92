/* glimpse.c: see glimpse.h. */
#include "live/glimpse.h"

#define MERGE_BYTES 1024

bool glimpse_init(struct glimpse *s, struct mem *mem)
{
	*s = (struct glimpse){ .room = mem_alloc(mem, GLIMPSE_ROOM) };
	return s->room;
}

void glimpse_release(struct glimpse *s, struct mem *mem)
{
	if (s->room)
		mem_free(mem, s->room, GLIMPSE_ROOM);
	*s = (struct glimpse){ 0 };
}

void glimpse_begin(struct glimpse *s)
{
	s->used = s->count = s->hint = 0;
}

/* Frames of a thread follow each other from the innermost, at the highest address, downwards. */
static bool extend_last(struct glimpse *s, uint64_t at, size_t len)
{
	struct remote_part *last = s->count ? &s->pieces[s->count - 1] : NULL;
	size_t more;

	if (!last || at >= last->at || last->at - at > MERGE_BYTES || last->at - at < len)
		return false;
	more = (size_t)(last->at - at);
	if (more > GLIMPSE_ROOM - s->used)
		return false;
	last->at = at;
	last->len += more;
	s->used += more;
	return true;
}

void glimpse_want(struct glimpse *s, uint64_t at, size_t len)
{
	if (extend_last(s, at, len))
		return;
	if (s->count == REMOTE_PARTS || len > GLIMPSE_ROOM - s->used)
		return;
	s->pieces[s->count++] = (struct remote_part){ .at = at, .len = len };
	s->used += len;
}

void glimpse_read(struct glimpse *s, struct remote *r)
{
	unsigned char *to = s->room;

	for (size_t i = 0; i < s->count; i++) {
		s->pieces[i].to = to;
		to += s->pieces[i].len;
	}
	s->count = remote_read_parts(r, s->pieces, s->count);
}

const unsigned char *glimpse_get(struct glimpse *s, struct remote *r, uint64_t at, size_t len,
				 unsigned char *own)
{
	for (size_t i = 0; i < s->count; i++) {
		size_t k = s->hint + i < s->count ? s->hint + i : s->hint + i - s->count;
		const struct remote_part *piece = &s->pieces[k];

		if (at >= piece->at && at - piece->at <= piece->len &&
		    piece->len - (size_t)(at - piece->at) >= len) {
			s->hint = k;
			return (const unsigned char *)piece->to + (at - piece->at);
		}
	}
	return !(at & 7) && remote_read(r, at, own, len) ? own : NULL;
}
