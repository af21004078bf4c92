/*
 * json.c: reads pieces of JSON text in memory: strings, numbers, members of objects and elements of arrays. The trace importer,
 * the interpretation and SQL call it for arguments of events. No recursion and no memory of its own; files are read with
 * json_scan.h and json_pull.h.
 */
#include "wire/json/json.h"

#include <math.h>

static bool blank(char c)
{
	return (unsigned char)c <= ' ';
}

/* Skips blanks, commas and comments. */
static void skip_gap(struct json_reader *r)
{
	while (r->at < r->end) {
		if (blank(*r->at) || *r->at == ',') {
			r->at++;
		} else if (*r->at == '/' && r->end - r->at > 1 && r->at[1] == '/') {
			while (r->at < r->end && *r->at != '\n' && *r->at != '\r')
				r->at++;
		} else if (*r->at == '/' && r->end - r->at > 1 && r->at[1] == '*') {
			for (r->at += 2;
			     r->end - r->at > 1 && (r->at[0] != '*' || r->at[1] != '/');)
				r->at++;
			r->at += MIN((ptrdiff_t)2, r->end - r->at);
		} else {
			return;
		}
	}
}

/* Returns the position after a string whose content begins at p; NULL if it does not end. */
static const char *string_end(const char *p, const char *end)
{
	const char *quote = memchr(p, '"', (size_t)(end - p));

	while (quote) { /* a quote after an odd number of backslashes belongs to the text */
		const char *before = quote;

		while (before > p && before[-1] == '\\')
			before--;
		if ((quote - before) % 2 == 0)
			return quote + 1;
		quote = memchr(quote + 1, '"', (size_t)(end - quote) - 1);
	}
	return NULL;
}

/* Returns whether a character ends a number or a word. */
static bool ends_word(char c)
{
	static const bool ends[256] = {
		[','] = true, ['}'] = true, [']'] = true, [':'] = true, ['"'] = true, ['/'] = true
	};

	return blank(c) || ends[(unsigned char)c];
}

static const char *nested_end(const char *p, const char *end)
{
	size_t depth = 0;

	while (p && p < end) {
		char c = *p++;

		if (c == '"') {
			p = string_end(p, end);
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			if (!--depth)
				return p;
		} else if (c == '/' && p < end && (*p == '/' || *p == '*')) {
			struct json_reader r = { p - 1, end };

			skip_gap(&r);
			p = r.at;
		}
	}
	return NULL;
}

static bool read_value(struct json_reader *r, struct json_value *value)
{
	const char *start = r->at, *end;

	if (*start == '"') {
		end = string_end(start + 1, r->end);
		if (!end)
			return false;
		*value = (struct json_value){ start + 1, (uint32_t)(end - start - 2), JSON_STRING };
	} else if (*start == '{' || *start == '[') {
		end = nested_end(start, r->end);
		if (!end)
			return false;
		*value = (struct json_value){ start, (uint32_t)(end - start),
					      *start == '{' ? JSON_OBJECT : JSON_ARRAY };
	} else {
		for (end = start; end < r->end && !ends_word(*end); end++)
			;
		if (end == start)
			return false;
		*value = (struct json_value){ start, (uint32_t)(end - start),
					      strchr("-0123456789NI+.", *start) ? JSON_NUMBER
										: JSON_LITERAL };
	}
	r->at = end;
	return true;
}

bool json_next_element(struct json_reader *r, struct json_value *value)
{
	skip_gap(r);
	if (r->at >= r->end || *r->at == ']' || *r->at == '}')
		return false;
	return read_value(r, value);
}

bool json_next_member(struct json_reader *r, struct str *key, struct json_value *value)
{
	const char *end;

	skip_gap(r);
	if (r->at >= r->end || *r->at != '"')
		return false;
	end = string_end(r->at + 1, r->end);
	if (!end)
		return false;
	*key = str_make(r->at + 1, (size_t)(end - r->at) - 2);
	r->at = end;
	skip_gap(r);
	if (r->at >= r->end || *r->at != ':')
		return false;
	r->at++;
	skip_gap(r);
	return r->at < r->end && read_value(r, value);
}

struct json_value json_find(struct str object, const char *key)
{
	struct json_reader r = json_over(object);
	struct json_value value, found = { .at = "" };
	struct str name;

	if (!object.len || object.ptr[0] != '{')
		return found;
	while (json_next_member(&r, &name, &value))
		if (json_key_is(name, key))
			found = value;
	return found;
}

bool json_key_is(struct str raw, const char *plain)
{
	size_t len = strlen(plain);
	char decoded[64];

	if (raw.len == len && memcmp(raw.ptr, plain, len) == 0)
		return true;
	if (raw.len < len + 1 || len > sizeof(decoded) || !memchr(raw.ptr, '\\', raw.len))
		return false;
	return json_decode_short(raw, decoded, sizeof(decoded)) == len &&
	       memcmp(decoded, plain, len) == 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the value of the four digits after "\u" at p; -1 if they are missing. */
static int32_t unicode_escape(const char *p, const char *end)
{
	int32_t value = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		int digit = hex_digit(p[i]);

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* Decodes one escape at *p (the backslash); moves *p after it. False if the escape is invalid: *to is the
 * replacement character or, for an unknown letter, the letter itself. */
static bool decode_escape(const char **p, const char *end, char to[4], size_t *len)
{
	static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	int32_t high = unicode_escape(*p, end), low;
	const char *letter;

	if (high >= 0) {
		*p += 6;
		if (high < 0xd800 || high > 0xdfff) {
			*len = utf8_encode((uint32_t)high, to);
			return true;
		}
		low = high < 0xdc00 ? unicode_escape(*p, end) : -1;
		if (low < 0xdc00 || low > 0xdfff) {
			*len = utf8_encode(0xfffd, to);
			return false;
		}
		*p += 6;
		*len = utf8_encode(
			0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00), to);
		return true;
	}
	++*p;
	letter = *p < end && **p ? strchr(letters, **p) : NULL;
	if (letter) {
		++*p;
		to[0] = values[letter - letters];
		*len = 1;
		return true;
	}
	*len = utf8_encode(0xfffd, to);
	return false;
}

bool json_is_plain(struct str raw)
{
	return !memchr(raw.ptr, '\\', raw.len) && utf8_valid(raw);
}

/* Adds a run of text without escapes. */
static size_t add_run(struct str run, struct buf *out)
{
	size_t replaced = 0;

	while (run.len) {
		size_t valid = utf8_valid_prefix(run);

		buf_add(out, run.ptr, valid);
		run = str_skip(run, valid);
		if (!run.len)
			break;
		buf_puts(out, "\xef\xbf\xbd");
		run = str_skip(run, 1);
		replaced++;
	}
	return replaced;
}

size_t json_decode(struct str raw, struct buf *out)
{
	const char *p = raw.ptr, *end = raw.ptr + raw.len;
	size_t replaced = 0;

	while (p < end) {
		const char *escape = memchr(p, '\\', (size_t)(end - p));
		char c[4];
		size_t len;

		replaced += add_run(str_make(p, (size_t)((escape ? escape : end) - p)), out);
		if (!escape)
			break;
		p = escape;
		replaced += !decode_escape(&p, end, c, &len);
		buf_add(out, c, len);
	}
	return replaced;
}

size_t json_decode_short(struct str raw, char *to, size_t max)
{
	const char *p = raw.ptr, *end = raw.ptr + raw.len;
	size_t count = 0;

	while (p < end) {
		char c[4] = { *p };
		size_t len = 1;

		if (*p == '\\')
			decode_escape(&p, end, c, &len);
		else
			p++;
		if (count + len > max)
			return max + 1;
		memcpy(to + count, c, len);
		count += len;
	}
	return count;
}

/* Digits of a decimal number without leading zeros, and the position of its point. */
struct decimal {
	bool negative;
	const char *digits; /* digits, with at most one point in between */
	size_t count;	    /* number of characters */
	int64_t point;	    /* number of digits before the point, after applying the exponent */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool read_exponent(const char *p, const char *end, int64_t *exponent)
{
	bool negative = p < end && *p == '-';
	int64_t value = 0;

	if (p < end && (*p == '-' || *p == '+'))
		p++;
	if (p == end)
		return false;
	for (; p < end; p++) {
		if (!is_digit(*p))
			return false;
		if (value < 1000000000)
			value = value * 10 + (*p - '0');
	}
	*exponent = negative ? -value : value;
	return true;
}

/* Splits the text; false if it is not a number. Accepts "+1", ".5" and "1.", too. */
static bool split_decimal(struct str text, struct decimal *d)
{
	const char *p = text.ptr, *end = p + text.len;
	int64_t before = 0, after = 0, exponent = 0;
	bool point = false;

	*d = (struct decimal){ .negative = p < end && *p == '-' };
	if (p < end && (*p == '-' || *p == '+'))
		p++;
	d->digits = p;
	for (; p < end && (is_digit(*p) || (*p == '.' && !point)); p++) {
		if (*p == '.')
			point = true;
		else if (point)
			after++;
		else
			before++;
	}
	d->count = (size_t)(p - d->digits);
	if (!(before + after))
		return false;
	if (p < end && ((*p | 0x20) != 'e' || !read_exponent(p + 1, end, &exponent)))
		return false;
	d->point = before + exponent;
	return true;
}

/* Converts digit by digit, up to the wanted place; the digits cut off decide the rounding. */
static enum json_exactness slow_decimal(struct str text, int scale, int64_t *value)
{
	enum json_exactness exactness = JSON_EXACT;
	uint64_t sum = 0, limit = INT64_MAX;
	struct decimal d;
	int64_t left;
	bool up = false, first_cut = true;

	if (!split_decimal(text, &d))
		return JSON_NOT_A_NUMBER;
	left = d.point + scale;
	for (size_t i = 0; i < d.count; i++) {
		unsigned digit;

		if (d.digits[i] == '.')
			continue;
		digit = (unsigned)(d.digits[i] - '0');
		if (left > 0) {
			if (sum > (limit - digit) / 10)
				exactness = JSON_CLAMPED;
			else
				sum = sum * 10 + digit;
		} else {
			if (left == 0 && first_cut)
				up = digit >= 5;
			first_cut = false;
			if (digit && exactness == JSON_EXACT)
				exactness = JSON_ROUNDED;
		}
		left--;
	}
	for (; left > 0 && sum && exactness != JSON_CLAMPED; left--) {
		if (sum > limit / 10)
			exactness = JSON_CLAMPED;
		else
			sum *= 10;
	}
	if (exactness == JSON_CLAMPED || (up && sum == limit)) {
		*value = d.negative ? -INT64_MAX : INT64_MAX;
		return JSON_CLAMPED;
	}
	sum += up;
	*value = d.negative ? -(int64_t)sum : (int64_t)sum;
	return exactness;
}

/* Reads up to eight digits at p; *count becomes their number. Eight bytes must be readable. */
OW_ALWAYS_INLINE uint64_t some_digits(const char *p, unsigned *count)
{
	const uint64_t zeros = 0x3030303030303030ull;
	uint64_t word, other;
	unsigned n;

	memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	/* sets the high bit of each byte that is not a digit; exact up to the first such byte */
	other = ((word + 0x4646464646464646ull) | (word - zeros)) & 0x8080808080808080ull;
	n = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
	*count = n;
	if (!n)
		return 0;
	if (n < 8)
		word = word << (64 - 8 * n) | zeros >> 8 * n;
	word -= zeros;
	word = word * 10 + (word >> 8);
	return ((word & 0x000000ff000000ffull) * 0x000f424000000064ull +
		(word >> 16 & 0x000000ff000000ffull) * 0x0000271000000001ull) >>
	       32;
}

static const uint32_t powers[9] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000 };

enum json_exactness json_decimal_padded(struct str text, int scale, int64_t *value)
{
	const char *p = text.ptr, *end = p + text.len;
	bool negative = text.len && *p == '-';
	uint64_t sum, part;
	unsigned n, places;

	p += negative;
	sum = some_digits(p, &n);
	p += n;
	if (p == end && n && scale <= 3) { /* the common case: a few digits */
		sum *= powers[scale];
		*value = negative ? -(int64_t)sum : (int64_t)sum;
		return JSON_EXACT;
	}
	if (n == 8) {
		part = some_digits(p, &n);
		p += n;
		sum = sum * powers[n] + part;
		/* A ninth digit after sixteen is left to the slow way. */
		if (n == 8 && p < end && is_digit(*p))
			return slow_decimal(text, scale, value);
	}
	places = (unsigned)scale;
	if (p < end && *p == '.') {
		part = some_digits(p + 1, &n);
		p += 1 + n;
		if (n > places) {
			bool exact = part % powers[n - places] == 0;

			if (n == 8 || !exact || p != end)
				return slow_decimal(text, scale, value);
			part /= powers[n - places];
			n = places;
		}
		sum = sum * powers[n] + part;
		places -= n;
	}
	/* Sixteen digits and up to three more stay below 2^63. */
	if (p != end || p == text.ptr + negative || scale > 3)
		return slow_decimal(text, scale, value);
	sum *= powers[places];
	if (sum > INT64_MAX)
		return slow_decimal(text, scale, value);
	*value = negative ? -(int64_t)sum : (int64_t)sum;
	return JSON_EXACT;
}

enum json_exactness json_decimal(struct str text, int scale, int64_t *value)
{
	return slow_decimal(text, scale, value);
}

bool json_double(struct str text, double *value)
{
	char copy[64], *end;

	if (!text.len || text.len >= sizeof(copy))
		return false;
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	/* strtod accepts hexadecimal numbers and "inf", which JSON does not */
	for (size_t i = 0; i < text.len; i++)
		if (!is_digit(copy[i]) && !strchr("+-.eE", copy[i]))
			return false;
	*value = strtod(copy, &end);
	return *end == '\0' && isfinite(*value);
}
