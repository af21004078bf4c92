/*
 * json_strict.c: whether a value is strict JSON, and writing it as strict JSON when it is not. merge, exports of events and the
 * arguments of XSpace call it. A walk without recursion: levels are bits. It does not read files.
 */
#include "wire/json/json_strict.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define LEVELS_MAX 1024

static bool blank(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool hex_digit(char c)
{
	return digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Returns the end of the escape whose backslash is at p; NULL if it is invalid. */
static const char *escape_end(const char *p, const char *end)
{
	if (end - p < 2)
		return NULL;
	if (p[1] != 'u')
		return p[1] && strchr("\"\\/bfnrt", p[1]) ? p + 2 : NULL;
	if (end - p < 6)
		return NULL;
	for (int i = 2; i < 6; i++)
		if (!hex_digit(p[i]))
			return NULL;
	return p + 6;
}

/* Returns the position after the closing quote of the string whose content begins at p; NULL if
 * it is not strict JSON. */
OW_ALWAYS_INLINE const char *string_end(const char *p, const char *end)
{
	for (;;) {
		p = json_plain_end(p, end);
		if (p == end)
			return NULL;
		if (OW_LIKELY(*p == '"'))
			return p + 1;
		if (*p == '\\') {
			p = escape_end(p, end);
			if (!p)
				return NULL;
		} else {
			uint32_t code_point;
			size_t len;

			if (!((unsigned char)*p & 0x80))
				return NULL;
			len = utf8_decode(str_make(p, (size_t)(end - p)), &code_point);
			if (len < 2)
				return NULL;
			p += len;
		}
	}
}

OW_ALWAYS_INLINE const char *digits_end(const char *p, const char *end)
{
#if defined(__SSE2__)
	while (end - p >= 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i above = _mm_sub_epi8(x, _mm_set1_epi8('0'));
		__m128i is = _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(9)), above);
		unsigned bits = (unsigned)_mm_movemask_epi8(is) ^ 0xffffu;

		if (OW_LIKELY(bits))
			return p + __builtin_ctz(bits);
		p += 16;
	}
#endif
	while (p < end && digit(*p))
		p++;
	return p;
}

/* Returns the end of the number at p; NULL if there is none. */
OW_ALWAYS_INLINE const char *number_end(const char *p, const char *end)
{
	const char *from;

	if (*p == '-')
		p++;
	from = p;
	p = digits_end(p, end);
	if (p == from || (*from == '0' && p - from > 1))
		return NULL;
	if (p < end && *p == '.') {
		from = ++p;
		p = digits_end(p, end);
		if (p == from)
			return NULL;
	}
	if (p < end && (*p | 0x20) == 'e') {
		p++;
		if (p < end && (*p == '-' || *p == '+'))
			p++;
		from = p;
		p = digits_end(p, end);
		if (p == from)
			return NULL;
	}
	return p;
}

static const char *literal_end(const char *p, const char *end)
{
	static const struct str literals[] = { STR("true"), STR("false"), STR("null") };
	struct str rest = str_make(p, (size_t)(end - p));

	for (size_t i = 0; i < ARRAY_COUNT(literals); i++)
		if (str_starts(rest, literals[i]))
			return p + literals[i].len;
	return NULL;
}

OW_ALWAYS_INLINE const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && blank(*p))
		p++;
	return p;
}

bool json_strict(struct str text)
{
	const char *p = text.ptr, *end = p + text.len;
	uint64_t levels[LEVELS_MAX / 64]; /* one bit per level: 1 for an object */
	size_t depth = 0;
	bool in_object = false;

value:
	if (p == end)
		return false;
	switch (*p) {
	case '"':
		p = string_end(p + 1, end);
		break;
	case '{':
	case '[': {
		uint64_t bit = (uint64_t)1 << depth % 64;

		if (depth == LEVELS_MAX)
			return false;
		levels[depth / 64] =
			(depth % 64 ? levels[depth / 64] & (bit - 1) : 0) | (in_object ? bit : 0);
		depth++;
		in_object = *p == '{';
		p = skip_blanks(p + 1, end);
		if (p < end && *p == (in_object ? '}' : ']'))
			goto close;
		if (in_object)
			goto key;
		goto value;
	}
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		p = number_end(p, end);
		break;
	default:
		p = literal_end(p, end);
	}
after:
	if (!p)
		return false;
	if (!depth)
		return p == end;
	p = skip_blanks(p, end);
	if (p == end)
		return false;
	if (*p == ',') {
		p = skip_blanks(p + 1, end);
		if (!in_object)
			goto value;
		goto key;
	}
	if (*p != (in_object ? '}' : ']'))
		return false;
close:
	p++;
	depth--;
	in_object = levels[depth / 64] >> depth % 64 & 1;
	goto after;
key:
	if (p == end || *p != '"')
		return false;
	p = string_end(p + 1, end);
	if (!p)
		return false;
	p = skip_blanks(p, end);
	if (p == end || *p != ':')
		return false;
	p = skip_blanks(p + 1, end);
	goto value;
}

void json_escape_raw(struct buf *out, struct str raw)
{
	char escape[JSON_ESCAPE_MAX];

	while (raw.len && !out->failed) {
		const char *after;

		if (raw.ptr[0] != '\\') {
			buf_add_str(out, json_escape_next(&raw, JSON_UTF8, escape));
			continue;
		}
		after = escape_end(raw.ptr, raw.ptr + raw.len);
		if (after)
			buf_add(out, raw.ptr, (size_t)(after - raw.ptr));
		else
			buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD, as json_decode reads it */
		raw = str_skip(raw, after ? (size_t)(after - raw.ptr) : 1);
	}
}

void json_quote_raw(struct buf *out, struct str raw)
{
	buf_add_char(out, '"');
	json_escape_raw(out, raw);
	buf_add_char(out, '"');
}

struct repair {
	const char *p, *end;
	struct buf *out;
	struct buf levels; /* '{' or '[' of each open level */
	json_hide_fn hide;
	size_t hidden; /* number of values that were hidden */
	/* nothing is written while the depth exceeds this; SIZE_MAX: not hiding */
	size_t hiding_above;
	bool first;    /* no value of this level was written yet */
	bool have_key; /* a key was written and its value must follow */
	bool done;
};

static bool writing(const struct repair *r)
{
	return r->hiding_above == SIZE_MAX;
}

static bool in_object(const struct repair *r)
{
	return r->levels.len && r->levels.ptr[r->levels.len - 1] == '{';
}

/* Skips blanks and comments; false at the end. */
static bool next_token(struct repair *r)
{
	for (;;) {
		while (r->p < r->end && (unsigned char)*r->p <= ' ')
			r->p++;
		if (r->end - r->p < 2 || *r->p != '/' || (r->p[1] != '/' && r->p[1] != '*'))
			return r->p < r->end;
		if (r->p[1] == '/') {
			while (r->p < r->end && *r->p != '\n' && *r->p != '\r')
				r->p++;
			continue;
		}
		for (r->p += 2; r->end - r->p > 1 && (r->p[0] != '*' || r->p[1] != '/');)
			r->p++;
		r->p += MIN((ptrdiff_t)2, r->end - r->p);
	}
}

static void separate(struct repair *r)
{
	if (r->levels.len && !r->have_key && !r->first && writing(r))
		buf_add_char(r->out, ',');
	r->first = false;
}

static void write_key(struct repair *r, struct str raw)
{
	separate(r);
	if (writing(r)) {
		json_quote_raw(r->out, raw);
		buf_add_char(r->out, ':');
	}
	r->have_key = true;
	if (writing(r) && r->hide && r->hide(raw)) {
		buf_puts(r->out, "\"(hidden)\"");
		r->hidden++;
		r->hiding_above = r->levels.len;
	}
}

/* Writes the text that must precede a value: the comma, or an empty key if one is missing. */
static void begin_value(struct repair *r)
{
	if (in_object(r) && !r->have_key)
		write_key(r, STR(""));
	separate(r);
	r->have_key = false;
}

/* Updates the state after a value. */
static void end_value(struct repair *r)
{
	if (r->hiding_above == r->levels.len)
		r->hiding_above = SIZE_MAX;
	r->done = !r->levels.len;
}

static struct str take_string(struct repair *r)
{
	const char *from = ++r->p;

	while (r->p < r->end && *r->p != '"')
		r->p += *r->p == '\\' && r->end - r->p > 1 ? 2 : 1;
	if (r->p < r->end)
		return str_make(from, (size_t)(r->p++ - from));
	return str_make(from, (size_t)(r->end - from));
}

static struct str take_word(struct repair *r)
{
	const char *from = r->p++;

	while (r->p < r->end && (unsigned char)*r->p > ' ' && !strchr(",:/\"{}[]", *r->p))
		r->p++;
	return str_make(from, (size_t)(r->p - from));
}

/* Repairs a number with an unusual sign, zeros or point: +1, 007, .5, 5. */
static bool add_odd_number(struct buf *out, struct str word)
{
	const char *end = word.ptr + word.len, *p = word.ptr + (strchr("+-", *word.ptr) ? 1 : 0);
	struct str whole, part = { 0 };
	const char *from = p;

	p = digits_end(p, end);
	whole = str_make(from, (size_t)(p - from));
	if (p < end && *p == '.') {
		from = p + 1;
		p = digits_end(from, end);
		part = str_make(from, (size_t)(p - from));
	}
	if (!whole.len && !part.len)
		return false;
	from = p;
	if (p < end && (*p | 0x20) == 'e') {
		p += end - p > 1 && (p[1] == '-' || p[1] == '+') ? 2 : 1;
		if (p == end)
			return false;
		p = digits_end(p, end);
	}
	if (p != end)
		return false;
	while (whole.len > 1 && *whole.ptr == '0')
		whole = str_skip(whole, 1);
	buf_puts(out, *word.ptr == '-' ? "-" : "");
	buf_add_str(out, whole.len ? whole : STR("0"));
	buf_puts(out, part.len ? "." : "");
	buf_add_str(out, part);
	buf_add(out, from, (size_t)(end - from));
	return true;
}

static void add_word(struct buf *out, struct str word)
{
	static const struct str nothing[] = { STR("NaN"),      STR("-NaN"),	 STR("nan"),
					      STR("Infinity"), STR("-Infinity"), STR("+Infinity"),
					      STR("inf"),      STR("-inf"),	 STR("undefined"),
					      STR("None") };
	const char *end = word.ptr + word.len;
	const char *after = *word.ptr == '-' || digit(*word.ptr) ? number_end(word.ptr, end)
								 : literal_end(word.ptr, end);

	if (after == end) {
		buf_add_str(out, word);
		return;
	}
	for (size_t i = 0; i < ARRAY_COUNT(nothing); i++)
		if (str_eq(word, nothing[i])) {
			buf_puts(out, "null");
			return;
		}
	if (strchr("+-.0123456789", *word.ptr) && add_odd_number(out, word))
		return;
	json_quote_raw(out, word);
}

static void open_level(struct repair *r)
{
	begin_value(r);
	buf_add_char(&r->levels, *r->p);
	if (writing(r))
		buf_add_char(r->out, *r->p);
	r->first = true;
	r->p++;
}

static void close_level(struct repair *r)
{
	bool object = in_object(r);

	if (r->have_key) {
		begin_value(r);
		if (writing(r))
			buf_puts(r->out, "null");
		end_value(r);
	}
	r->levels.len--;
	if (writing(r))
		buf_add_char(r->out, object ? '}' : ']');
	r->first = false;
	end_value(r);
}

static void take_scalar(struct repair *r)
{
	bool string = *r->p == '"';
	struct str text = string ? take_string(r) : take_word(r);

	if (in_object(r) && !r->have_key) {
		write_key(r, text);
		return;
	}
	begin_value(r);
	if (writing(r)) {
		if (string)
			json_quote_raw(r->out, text);
		else
			add_word(r->out, text);
	}
	end_value(r);
}

/* Handles a comma where a value should be. */
static void take_comma(struct repair *r)
{
	r->p++;
	if (!r->have_key)
		return;
	begin_value(r);
	if (writing(r))
		buf_puts(r->out, "null");
	end_value(r);
}

size_t json_repair(struct str text, json_hide_fn hide, struct buf *out)
{
	struct repair r = { .p = text.ptr,
			    .end = text.ptr + text.len,
			    .out = out,
			    .hide = hide,
			    .hiding_above = SIZE_MAX,
			    .first = true };

	buf_init(&r.levels, out->mem);
	while (!r.done && next_token(&r) && !out->failed && !r.levels.failed) {
		if (*r.p == '{' || *r.p == '[')
			open_level(&r);
		else if ((*r.p == '}' || *r.p == ']') && r.levels.len) {
			close_level(&r);
			r.p++;
		} else if (*r.p == ',')
			take_comma(&r);
		else if (*r.p == ':' || *r.p == '}' || *r.p == ']')
			r.p++;
		else
			take_scalar(&r);
	}
	while (r.levels.len && !r.levels.failed)
		close_level(&r);
	if (!r.done)
		buf_puts(out, "null");
	out->failed |= r.levels.failed;
	buf_release(&r.levels);
	return r.hidden;
}
