/*
 * json_pull.c: one deep JSON document of any size as a run of tokens, for importers of formats that are such a document
 * (speedscope, V8 and Firefox profiles). Nothing is decoded, and damage ends the run. docs/decisions/json.md says why this
 * is not part of json_scan.c.
 */
#include "wire/json/json_pull.h"

#define PEEK ((size_t)256 << 10)

static const unsigned char ends_word[256] = {
	[' '] = 1, ['\t'] = 1, ['\n'] = 1, ['\r'] = 1, [','] = 1, [':'] = 1,
	['['] = 1, [']'] = 1,  ['{'] = 1,  ['}'] = 1,  ['"'] = 1, [0] = 1,
};

void json_pull_init(struct json_pull *p, const struct input *in, struct ow_error *err)
{
	window_init(&p->window, in, err);
	json_pull_seek(p, 0);
}

void json_pull_release(struct json_pull *p)
{
	window_release(&p->window);
}

void json_pull_seek(struct json_pull *p, uint64_t offset)
{
	p->at = p->end = NULL;
	p->end_offset = p->offset = offset;
	p->depth = 0;
	p->after_key = p->colon_due = false;
	p->text = STR("");
}

static uint64_t place(const struct json_pull *p)
{
	return p->end_offset - (uint64_t)(p->end - p->at);
}

/* Loads at least `want` bytes from p->at on, unless the input ends before. False if it cannot be
 * read. */
static bool refill(struct json_pull *p, size_t want)
{
	uint64_t from = place(p), left = p->window.in->size - MIN(from, p->window.in->size);
	struct str bytes;

	if (!left) {
		p->at = p->end = NULL;
		p->end_offset = from;
		return true;
	}
	bytes = window_peek(&p->window, from, (size_t)MIN(left, (uint64_t)MAX(want, PEEK)));
	if (!bytes.len)
		return false;
	p->at = (const unsigned char *)bytes.ptr;
	p->end = p->at + bytes.len;
	p->end_offset = from + bytes.len;
	return true;
}

static enum json_token damage(struct json_pull *p)
{
	p->text = STR("");
	return TOKEN_DAMAGE;
}

static bool in_object(const struct json_pull *p)
{
	return p->depth && p->objects[(p->depth - 1) / 64] >> (p->depth - 1) % 64 & 1;
}

static enum json_token open_value(struct json_pull *p, bool object)
{
	uint64_t bit;

	if (p->depth == JSON_DEPTH_MAX)
		return damage(p);
	bit = (uint64_t)1 << p->depth % 64;
	p->objects[p->depth / 64] =
		(p->objects[p->depth / 64] & ~bit) | (object ? bit : (uint64_t)0);
	p->depth++;
	p->at++;
	p->after_key = false;
	return object ? TOKEN_OBJECT : TOKEN_ARRAY;
}

static enum json_token close_value(struct json_pull *p, bool object)
{
	if (!p->depth || in_object(p) != object || p->after_key)
		return damage(p);
	p->depth--;
	p->at++;
	return TOKEN_CLOSE;
}

/* Returns the length of the string that begins at p->at + 1, up to its quote; SIZE_MAX if it is cut. */
static size_t string_len(const struct json_pull *p)
{
	const unsigned char *from = p->at + 1, *c = from;

	while (c < p->end) {
		const unsigned char *quote = memchr(c, '"', (size_t)(p->end - c));
		const unsigned char *back = quote;

		if (!quote)
			return SIZE_MAX;
		while (back > from && back[-1] == '\\')
			back--;
		if ((quote - back) % 2 == 0)
			return (size_t)(quote - from);
		c = quote + 1;
	}
	return SIZE_MAX;
}

/* Skips the colon behind a key. */
static bool pass_colon(struct json_pull *p)
{
	for (;;) {
		if (p->at == p->end && (!refill(p, 1) || p->at == p->end))
			return true; /* truncated: the next token reports it */
		if (*p->at == ':') {
			p->at++;
			return true;
		}
		if (!strchr(" \t\r\n", *p->at) || !*p->at)
			return false;
		p->at++;
	}
}

static enum json_token string(struct json_pull *p)
{
	size_t len = string_len(p);

	for (size_t want = PEEK; len == SIZE_MAX; want *= 2) {
		size_t had = (size_t)(p->end - p->at);

		if (had > JSON_PULL_TEXT_MAX || !refill(p, MAX(want, had + 1)))
			return damage(p);
		if ((size_t)(p->end - p->at) == had) { /* the input ends within the string */
			p->at = p->end;
			return TOKEN_END;
		}
		len = string_len(p);
	}
	p->text = str_make((const char *)p->at + 1, len);
	p->at += len + 2;
	if (!in_object(p) || p->after_key) {
		p->after_key = false;
		return TOKEN_STRING;
	}
	/* the colon may lie behind the loaded bytes, while the text must stay */
	if (p->at < p->end && *p->at == ':')
		p->at++;
	else
		p->colon_due = true;
	p->after_key = true;
	return TOKEN_KEY;
}

static enum json_token word(struct json_pull *p)
{
	const unsigned char *c = p->at;
	unsigned char first = *c;

	while (c < p->end && !ends_word[*c])
		c++;
	if (c == p->end) { /* the word may continue: numbers and words are short */
		if (!refill(p, PEEK))
			return damage(p);
		for (c = p->at; c < p->end && !ends_word[*c];)
			c++;
	}
	if (c == p->at)
		return damage(p);
	p->text = str_make((const char *)p->at, (size_t)(c - p->at));
	p->at = c;
	if (in_object(p) && !p->after_key)
		return damage(p);
	p->after_key = false;
	return (first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.'
		       ? TOKEN_NUMBER
		       : TOKEN_WORD;
}

enum json_token json_pull_next(struct json_pull *p)
{
	if (p->colon_due) {
		p->colon_due = false;
		if (!pass_colon(p))
			return damage(p);
	}
	for (;;) {
		if (p->at == p->end) {
			if (!refill(p, 1)) {
				p->offset = place(p);
				return damage(p);
			}
			if (p->at == p->end) {
				p->offset = p->end_offset;
				return TOKEN_END;
			}
		}
		p->offset = place(p);
		switch (*p->at) {
		case ' ':
		case '\t':
		case '\n':
		case '\r':
		case ',':
			p->at++;
			continue;
		case '{':
		case '[':
			if (in_object(p) && !p->after_key)
				return damage(p);
			return open_value(p, *p->at == '{');
		case '}':
		case ']':
			return close_value(p, *p->at == '}');
		case '"':
			return string(p);
		default:
			return word(p);
		}
	}
}

bool json_pull_skip(struct json_pull *p)
{
	uint32_t until = p->depth;
	enum json_token token;

	if (p->after_key) {
		token = json_pull_next(p);
		if (token == TOKEN_DAMAGE || token == TOKEN_END || token == TOKEN_CLOSE)
			return false;
		if (token != TOKEN_OBJECT && token != TOKEN_ARRAY)
			return true;
	} else if (until) {
		until--;
	}
	while (p->depth > until) {
		token = json_pull_next(p);
		if (token == TOKEN_DAMAGE || token == TOKEN_END)
			return false;
	}
	return true;
}
