/*
 * json_scan.c: see json_scan.h. The window onto the input, and the list of events; json_walk.c walks
 * through one event, json_recover.c goes on after damage.
 *
 * A window always begins outside strings, so its marks need nothing from before. An event that the
 * window cuts is read again in a window that begins with it.
 */
#include "wire/json_scan_int.h"

#define GUESS_BUDGET ((uint64_t)256 << 20)
#define GUESS_SHARE 16 /* and so many times the input: some producers damage every other event */

void json_scan_init(struct json_scan *scan, const struct input *in, struct error *err)
{
	*scan = (struct json_scan){ .in = in,
				    .err = err,
				    .path = json_best_path(),
				    .guesses_left = GUESS_BUDGET + GUESS_SHARE * in->size };
}

static size_t block_count(size_t cap)
{
	return cap / JSON_BLOCK + 2; /* a partial one, and the one of ones */
}

static void free_window(struct json_scan *scan)
{
	mem_free(scan->in->mem, scan->buf, scan->cap + SCAN_PADDING);
	mem_free(scan->in->mem, scan->blocks, block_count(scan->cap) * sizeof(*scan->blocks));
	scan->buf = NULL;
	scan->blocks = NULL;
	scan->cap = scan->len = 0;
}

void json_scan_release(struct json_scan *scan)
{
	free_window(scan);
}

static bool make_room(struct json_scan *scan, size_t want)
{
	if (want <= scan->cap)
		return true;
	free_window(scan);
	scan->buf = mem_alloc(scan->in->mem, want + SCAN_PADDING);
	scan->blocks = scan->buf
			       ? mem_alloc(scan->in->mem, block_count(want) * sizeof(*scan->blocks))
			       : NULL;
	if (!scan->blocks) {
		mem_free(scan->in->mem, scan->buf, want + SCAN_PADDING);
		scan->buf = NULL;
		scan->status = error_no_memory(scan->err);
		return false;
	}
	scan->cap = want;
	return true;
}

static bool tell_progress(struct json_scan *scan, size_t bytes)
{
	const struct progress *progress = scan->in->progress;
	uint64_t done = bytes;

	if (scan->done)
		done += atomic_fetch_add(scan->done, bytes);
	if (!progress || !progress->report ||
	    progress->report(progress->arg, MIN(done, scan->in->size), scan->in->size))
		return true;
	scan->status = error_set(scan->err, OW_E_INTERRUPTED, "interrupted");
	return false;
}

bool scan_read(struct json_scan *scan, uint64_t offset, size_t want)
{
	uint64_t rest = offset < scan->in->size ? scan->in->size - offset : 0;
	size_t len = (size_t)MIN((uint64_t)want, rest);
	uint64_t room =
		MIN((uint64_t)MAX(want, SCAN_WINDOW), scan->in->size); /* small files: less */

	scan->len = 0;
	if (scan->status != OW_OK || !make_room(scan, (size_t)room + 1))
		return false;
	scan->status = input_read_at(scan->in, offset, scan->buf, len, scan->err);
	if (scan->status != OW_OK || !tell_progress(scan, len))
		return false;
	memset(scan->buf + len, 0, SCAN_PADDING);
	scan->base = offset;
	scan->len = len;
	return true;
}

bool scan_load(struct json_scan *scan, uint64_t offset, size_t want, struct json_carry *carry)
{
	struct json_carry outside = { 0 };
	size_t count;

	if (!scan_read(scan, offset, want))
		return false;
	count = json_classify(scan->path, scan->buf, scan->len, scan->blocks,
			      carry ? carry : &outside);
	scan->blocks[count] = (struct json_block){ .quote = UINT64_MAX };
	return true;
}

void json_scan_seek(struct json_scan *scan, uint64_t offset)
{
	if (offset == scan->offset)
		return;
	scan->offset = offset;
	scan->len = 0; /* what the window holds may have begun inside a string of this place */
}

/* ---- the list ---- */

/* Reads a window from scan->offset: a small one after damage, then larger and larger ones. */
static bool load_next(struct json_scan *scan)
{
	size_t want = scan->window ? scan->window : SCAN_WINDOW;

	scan->window = MIN(want * 4, SCAN_WINDOW);
	return scan_load(scan, scan->offset, want, NULL);
}

/* The window cuts what begins at p: reads on from there, or more than the window was. */
static bool load_more(struct json_scan *scan, size_t p)
{
	size_t want = p ? SCAN_WINDOW : scan->len * 2;

	return scan_load(scan, scan->base + p, MAX(want, SCAN_WINDOW), NULL);
}

/* An element that is no object. False: damage. */
static bool skip_element(const struct json_scan *scan, size_t p, size_t *end)
{
	uint64_t depth = 1;

	if (scan->buf[p] == '"')
		*end = scan_next_quote(scan, p + 1) + 1;
	else if (scan->buf[p] == '[')
		*end = scan_close(scan, p + 1, &depth) + 1;
	else
		*end = scan_word_end(scan, p);
	return *end > p;
}

enum json_scan_result json_scan_event(struct json_scan *scan, uint64_t stop, struct json_event *ev)
{
	size_t p, end;

	if (scan->offset < scan->base || scan->offset - scan->base >= scan->len)
		goto load;
	for (;;) {
		p = scan_skip_gap(scan, (size_t)(scan->offset - scan->base), true);
		scan->offset = scan->base + p;
		if (OW_UNLIKELY(p >= scan->len)) {
			if (scan_at_end(scan)) {
				ev->offset = scan->in->size;
				return SCAN_TRUNCATED;
			}
			goto load;
		}
		if (OW_LIKELY(scan->buf[p] == '{')) {
			if (OW_UNLIKELY(scan->offset >= stop))
				return SCAN_STOP;
			switch (scan_walk(scan, p, ev, &end)) {
			case WALK_OK:
				scan->offset = scan->base + end;
				return SCAN_EVENT;
			case WALK_DAMAGE:
				return scan_pass_damage(scan, p, end, ev);
			case WALK_CUT:
				break;
			}
		} else if (scan->buf[p] == ']') {
			scan->offset++;
			return SCAN_END;
		} else if (!scan_is_comment(scan, p)) {
			if (!skip_element(scan, p, &end))
				return scan_pass_damage(scan, p, p, ev);
			if (end <= scan->len && (end < scan->len || scan_at_end(scan))) {
				ev->offset = scan->offset;
				scan->offset = scan->base + end;
				return SCAN_OTHER;
			}
		}
		/* cut by the window, or by the end of the input */
		if (scan_at_end(scan)) {
			ev->offset = scan->offset;
			scan->offset = scan->in->size;
			return SCAN_TRUNCATED;
		}
		if (!p && scan->len >= JSON_EVENT_MAX)
			return scan_pass_damage(scan, 0, 1, ev);
		if (!load_more(scan, p))
			return SCAN_FAILED;
		continue;
load:
		if (!load_next(scan))
			return SCAN_FAILED;
	}
}
