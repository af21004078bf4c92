/* glimpse.c: see glimpse.h. */
#include "live/glimpse.h"

#include "base/clock.h"

#define MERGE_BYTES 2048

bool glimpse_init(struct glimpse *s, struct mem *mem)
{
	*s = (struct glimpse){ .room = mem_alloc(mem, 2 * GLIMPSE_ROOM) };
	return s->room;
}

void glimpse_release(struct glimpse *s, struct mem *mem)
{
	if (s->room)
		mem_free(mem, s->room, 2 * GLIMPSE_ROOM);
	*s = (struct glimpse){ 0 };
}

void glimpse_begin(struct glimpse *s)
{
	s->used = s->count = s->once = s->hint = 0;
}

/* Frames of a thread follow each other from the innermost, at the highest address, downwards. */
static bool extend_last(struct glimpse *s, uint64_t at, size_t len)
{
	struct remote_part *last = s->count > s->once ? &s->pieces[s->count - 1] : NULL;
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
	if (s->count == ARRAY_COUNT(s->pieces) || len > GLIMPSE_ROOM - s->used)
		return;
	s->pieces[s->count++] = (struct remote_part){ .at = at, .len = len };
	s->used += len;
}

/* Usual is what most readings take: it grows slowly, and shrinks fast. */
static bool took_too_long(struct glimpse *s, int64_t ns)
{
	bool longer = s->usual_ns && ns > 3 * s->usual_ns + 8000;

	s->usual_ns += s->usual_ns && ns > s->usual_ns
			       ? MIN((ns - s->usual_ns) / 8, s->usual_ns / 8) + 1
			       : (ns - s->usual_ns) / (s->usual_ns ? 2 : 1);
	return longer;
}

void glimpse_once(struct glimpse *s)
{
	s->once = s->count;
}

void glimpse_read(struct glimpse *s, struct remote *r)
{
	struct remote_part parts[REMOTE_PARTS];
	unsigned char *to = s->room;
	size_t count = 0;
	int64_t begin;

	for (size_t i = 0; i < s->count; i++) {
		s->pieces[i].to = to;
		parts[count++] = s->pieces[i];
		if (i >= s->once) {
			parts[count] = s->pieces[i];
			parts[count++].to = to + GLIMPSE_ROOM;
		}
		to += s->pieces[i].len;
	}
	begin = steady_ns();
	count = remote_read_parts(r, parts, count);
	s->disturbed = took_too_long(s, steady_ns() - begin);
	s->once = MIN(s->once, count);
	s->count = s->once + (count - s->once) / 2;
}

const unsigned char *glimpse_again(const struct glimpse *s, const unsigned char *bytes)
{
	const unsigned char *twice =
		s->once < s->count ? (const unsigned char *)s->pieces[s->once].to : NULL;

	return twice && bytes >= twice && bytes < s->room + GLIMPSE_ROOM ? bytes + GLIMPSE_ROOM
									 : NULL;
}

const unsigned char *glimpse_get(struct glimpse *s, struct remote *r, uint64_t at, size_t len,
				 unsigned char *own, uint32_t *piece_number)
{
	for (size_t i = 0; i < s->count; i++) {
		size_t k = s->hint + i < s->count ? s->hint + i : s->hint + i - s->count;
		const struct remote_part *piece = &s->pieces[k];

		if (at >= piece->at && at - piece->at <= piece->len &&
		    piece->len - (size_t)(at - piece->at) >= len) {
			s->hint = k;
			*piece_number = (uint32_t)k + 1;
			return (const unsigned char *)piece->to + (at - piece->at);
		}
	}
	*piece_number = 0;
	return !(at & 7) && remote_read(r, at, own, len) ? own : NULL;
}
