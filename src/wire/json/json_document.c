/*
 * json_document.c: the members of a Chrome trace around its list of events (json_scan_document of json_scan.h): finds the list, passes
 * over values of any length, and goes on after damage. The trace importer and merge call it. Events are read in json_scan.c.
 */
#include "wire/json/json_scan_int.h"

#include "wire/json/json.h"

#define LOOK_AHEAD ((size_t)64 << 10) /* room for a key and the first bytes of its value */

/* Makes the window contain scan->offset and, unless the input ends, LOOK_AHEAD bytes. */
static bool load_ahead(struct json_scan *scan, size_t *p)
{
	uint64_t end = scan->base + scan->len;

	if (scan->offset < scan->base || scan->offset > end || !scan->len ||
	    (end - scan->offset < LOOK_AHEAD && end < scan->in->size)) {
		if (!json_scan_load(scan, scan->offset, SCAN_WINDOW, NULL))
			return false;
	}
	*p = (size_t)(scan->offset - scan->base);
	return true;
}

/* Moves to the next significant byte; false at the end of the input or on failure. */
static bool skip_to_token(struct json_scan *scan, bool commas, size_t *p)
{
	for (;;) {
		size_t start;

		if (!load_ahead(scan, p))
			return false;
		start = *p;
		*p = json_scan_skip_gap(scan, start, commas);
		scan->offset = scan->base + *p;
		if (scan->buf[*p] != '/' && *p < scan->len)
			return true;
		if (*p < scan->len) { /* a comment that the window cuts, or a stray slash */
			if (!*p || scan->base + scan->len == scan->in->size)
				return true;
			if (!json_scan_load(scan, scan->offset, SCAN_WINDOW, NULL))
				return false;
			continue;
		}
		if (scan->offset >= scan->in->size)
			return false;
	}
}

static bool string_in_window(struct json_scan *scan, bool *opened, size_t *end)
{
	size_t p = 0, q;

	if (!*opened) {
		*opened = true;
		p = 1;
	}
	q = p < scan->len ? json_scan_quote(scan, p) : scan->len;
	*end = q + 1;
	return q < scan->len;
}

static bool nested_in_window(struct json_scan *scan, uint64_t *depth, size_t *end)
{
	size_t q = json_scan_close(scan, 0, depth);

	*end = q + 1;
	return q < scan->len;
}

/* Returns the offset after the string or nested value at `offset`; *complete is false if the
 * input ends first. */
static bool skip_long(struct json_scan *scan, uint64_t offset, bool string, uint64_t *end,
		      bool *complete)
{
	struct json_carry carry = { 0 };
	uint64_t depth = 0;
	bool opened = false;

	for (;;) {
		size_t in_window;

		if (!json_scan_load(scan, offset, SCAN_WINDOW, &carry))
			return false;
		if (string ? string_in_window(scan, &opened, &in_window)
			   : nested_in_window(scan, &depth, &in_window)) {
			*end = offset + in_window;
			*complete = true;
			return true;
		}
		offset += scan->len;
		if (offset >= scan->in->size) {
			*end = scan->in->size;
			*complete = false;
			return true;
		}
	}
}

/* Returns the position after the string or nested value at p; more than scan->len if the window cuts it. */
static size_t skip_short(const struct json_scan *scan, size_t p)
{
	uint64_t depth = 1;

	return (scan->buf[p] == '"' ? json_scan_quote(scan, p + 1)
				    : json_scan_close(scan, p + 1, &depth)) +
	       1;
}

static bool skip_value(struct json_scan *scan, size_t p, struct json_item *item)
{
	unsigned char c = scan->buf[p];
	bool bracketed = c == '"' || c == '{' || c == '[';
	uint64_t end;
	size_t q;

	item->offset = scan->base + p;
	item->complete = true;
	if (bracketed) {
		item->value = c == '"' ? JSON_STRING : c == '{' ? JSON_OBJECT : JSON_ARRAY;
		q = skip_short(scan, p);
	} else {
		item->value = json_scan_word_kind(c);
		q = json_scan_word_end(scan, p);
		item->complete = q < scan->len;
	}
	if (!bracketed || q <= scan->len) { /* the window can still be used */
		scan->offset = scan->base + q;
	} else {
		if (!skip_long(scan, item->offset, c == '"', &end, &item->complete))
			return false;
		json_scan_seek(scan, end);
	}
	item->size = scan->offset - item->offset;
	return true;
}

/* Whether the window's marks confirm the byte at p: neither escaped nor inside a string or comment. Then they are right for the
 * bytes after it, too. */
static bool marked(const struct json_scan *scan, size_t p)
{
	const struct json_block *block = &scan->blocks[p / JSON_BLOCK];

	return (block->quote | block->open | block->close) >> p % JSON_BLOCK & 1;
}

/* Bytes that are not JSON at this place, up to one that may be. Reading the window again from there uses up
 * part of a budget for guesses; without budget the rest of the input counts as damaged. */
static enum json_item_kind damage(struct json_scan *scan, size_t p, const char *stops,
				  struct json_item *item)
{
	size_t q = p + 1;

	while (q < scan->len && (scan->buf[q] <= ' ' || !strchr(stops, scan->buf[q])))
		q++;
	item->offset = scan->base + p;
	item->size = q - p;
	if (q < scan->len && marked(scan, q)) {
		scan->offset = item->offset + item->size;
		return ITEM_DAMAGE;
	}
	if (scan->guesses_left < scan->len)
		item->size = scan->in->size - item->offset;
	scan->guesses_left -= MIN(scan->guesses_left, (uint64_t)scan->len);
	json_scan_seek(scan, item->offset + item->size);
	return ITEM_DAMAGE;
}

/* Handles a key without a value: skips to `next`. */
static enum json_item_kind no_value(struct json_scan *scan, size_t key, size_t next,
				    struct json_item *item)
{
	item->offset = scan->base + key;
	item->size = next - key;
	scan->offset = scan->base + next;
	return ITEM_DAMAGE;
}

static enum json_item_kind member(struct json_scan *scan, size_t p, struct json_item *item)
{
	size_t q = json_scan_quote(scan, p + 1), value;
	static const char events[] = "traceEvents";

	if (q >= scan->len)
		goto cut;
	item->key = (struct json_value){ (const char *)scan->buf + p + 1, (uint32_t)(q - p - 1),
					 JSON_STRING };
	value = json_scan_skip_gap(scan, q + 1, false);
	if (value >= scan->len)
		goto cut;
	if (scan->buf[value] != ':')
		return no_value(scan, p, value, item);
	value = json_scan_skip_gap(scan, value + 1, false);
	if (value >= scan->len)
		goto cut;
	if (scan->buf[value] == '[' && json_key_is(json_text(item->key), events)) {
		item->offset = scan->base + value + 1;
		scan->offset = item->offset;
		return ITEM_EVENTS;
	}
	if (scan->buf[value] == ',' || scan->buf[value] == '}' || scan->buf[value] == ']')
		return no_value(scan, p, value, item);
	/* the key must stay valid while the value is skipped */
	if (item->key.len > sizeof(scan->key))
		item->key.len = sizeof(scan->key);
	memcpy(scan->key, item->key.at, item->key.len);
	item->key.at = scan->key;
	return skip_value(scan, value, item) ? ITEM_MEMBER : ITEM_FAILED;
cut:
	if (scan->base + scan->len < scan->in->size) /* the key is longer than any valid one */
		return damage(scan, p, "\"}", item);
	json_scan_seek(scan, scan->in->size);
	return ITEM_TRUNCATED;
}

/* Returns whether events follow each other without a list around them, one per line. */
static bool is_bare_event(struct json_scan *scan, size_t p)
{
	struct json_event ev;
	size_t end;

	return json_scan_walk(scan, p, &ev, &end) == WALK_OK && json_event_has(&ev, FIELD_PH) &&
	       ev.value[FIELD_PH].kind == JSON_STRING;
}

static enum json_item_kind new_document(struct json_scan *scan, struct json_doc *doc, size_t p,
					struct json_item *item)
{
	switch (scan->buf[p]) {
	case '[':
		scan->offset++;
		break;
	case '{':
		item->bare = is_bare_event(scan, p);
		if (item->bare)
			break;
		scan->offset++;
		doc->in_object = true;
		doc->documents++;
		return ITEM_MEMBER; /* skipped: the loop continues */
	default:
		return damage(scan, p, "[{", item);
	}
	doc->documents++;
	item->offset = scan->offset;
	return ITEM_EVENTS;
}

static bool has_byte_order_mark(const struct json_scan *scan, size_t p)
{
	return scan->base + p == 0 && scan->len >= 3 && memcmp(scan->buf, "\xef\xbb\xbf", 3) == 0;
}

enum json_item_kind json_scan_document(struct json_scan *scan, struct json_doc *doc,
				       struct json_item *item)
{
	size_t p;

	*item = (struct json_item){ 0 };
	for (;;) {
		if (!skip_to_token(scan, true, &p)) {
			if (scan->status != OW_OK)
				return item->kind = ITEM_FAILED;
			item->offset = scan->in->size;
			item->kind = doc->in_object ? ITEM_TRUNCATED : ITEM_EOF;
			doc->in_object = false;
			return item->kind;
		}
		if (has_byte_order_mark(scan, p)) {
			scan->offset += 3;
			continue;
		}
		if (!doc->in_object) {
			item->kind = new_document(scan, doc, p, item);
			if (item->kind == ITEM_MEMBER)
				continue;
			return item->kind;
		}
		if (scan->buf[p] == '}') {
			doc->in_object = false;
			scan->offset++;
			item->offset = scan->offset;
			return item->kind = ITEM_DOCUMENT;
		}
		if (scan->buf[p] != '"')
			return item->kind = damage(scan, p, "\"}", item);
		item->kind = member(scan, p, item);
		if (item->kind == ITEM_TRUNCATED)
			doc->in_object = false;
		return item->kind;
	}
}
