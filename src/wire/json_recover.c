/*
 * json_recover.c: going on after damage in a list of events: finds the next place that reads like an event.
 * Called by json_scan.c, and by those who begin in the middle of a file.
 */
#include "wire/json_scan_int.h"

#define GUESS_FIRST ((size_t)512)    /* a guess is tried on this much, */
#define GUESS_MAX ((size_t)16 << 20) /* and at most on this much */

/* The byte before p that is no blank; ',' when the window does not say. */
static unsigned char byte_before(const struct json_scan *scan, size_t p)
{
	while (p)
		if (scan->buf[--p] > ' ')
			return scan->buf[p];
	return ',';
}

static bool plausible(const struct json_scan *scan, size_t p)
{
	unsigned char before = byte_before(scan, p);

	if (before != ',' && before != '[' && before != '}' && before != '{')
		return false;
	do
		p++;
	while (p < scan->len && scan->buf[p] <= ' ');
	return p >= scan->len || scan->buf[p] == '"';
}

/* Reads the window again from the place itself and looks whether an event is there. */
static bool is_event(struct json_scan *scan, uint64_t offset)
{
	struct json_event ev;
	size_t end;

	for (size_t want = GUESS_FIRST; want <= GUESS_MAX; want *= 8) {
		if (scan->guesses_left < want || !scan_load(scan, offset, want, NULL))
			return false;
		scan->guesses_left -= want;
		switch (scan_walk(scan, 0, &ev, &end)) {
		case WALK_OK:
			if (!json_event_has(&ev, FIELD_PH) ||
			    ev.value[FIELD_PH].kind != JSON_STRING)
				return false;
			end = scan_skip_gap(scan, end, false);
			if (end < scan->len)
				return scan->buf[end] == ',' || scan->buf[end] == ']' ||
				       scan->buf[end] == '{';
			if (scan_at_end(scan))
				return true;
			break; /* what follows decides */
		case WALK_DAMAGE:
			return false;
		case WALK_CUT:
			if (scan_at_end(scan))
				return false;
		}
	}
	return false;
}

bool json_scan_guess(struct json_scan *scan, uint64_t from, uint64_t to, uint64_t *found)
{
	uint64_t before = MIN(from, (uint64_t)JSON_BLOCK); /* to see what stands before */

	to = MIN(to, scan->in->size);
	while (from < to && scan->guesses_left) {
		const unsigned char *at, *brace;
		size_t left;

		if (!scan_read(scan, from - before, GUESS_FIRST))
			return false;
		scan->guesses_left -= MIN(scan->guesses_left, (uint64_t)scan->len - before);
		at = scan->buf + before;
		left = scan->len - (size_t)before;
		left = (size_t)MIN((uint64_t)left, to - from);
		from += left;
		while ((brace = memchr(at, '{', left))) {
			left -= (size_t)(brace + 1 - at);
			at = brace + 1;
			if (!plausible(scan, (size_t)(brace - scan->buf)))
				continue;
			from = scan->base + (uint64_t)(brace - scan->buf);
			if (is_event(scan, from)) {
				*found = from;
				json_scan_seek(scan, from);
				return true;
			}
			if (scan->status != OW_OK)
				return false;
			from++;
			break;
		}
		before = MIN(from, (uint64_t)JSON_BLOCK);
	}
	return false;
}

enum json_scan_result scan_pass_damage(struct json_scan *scan, size_t start, size_t at,
				       struct json_event *ev)
{
	uint64_t next = scan->base + MAX(at, start + 1);

	ev->offset = scan->base + start;
	if (!json_scan_guess(scan, next, UINT64_MAX, &next)) {
		if (scan->status != OW_OK)
			return SCAN_FAILED;
		next = scan->in->size;
	}
	json_scan_seek(scan, next);
	scan->window = 4 * GUESS_FIRST; /* where one event is damaged, the next may be */
	return SCAN_DAMAGE;
}
