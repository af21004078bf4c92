/* pbtxt_lex.c: see pbtxt_int.h. */
#include "wire/pbtxt_int.h"

#include <locale.h>
#include <stdarg.h>

#define STRING_PIECE ((size_t)64 << 10)
#define LONGEST_ESCAPE 12 /* two \uXXXX of a surrogate pair */

/* Classes of characters. */
enum { BLANK = 1, LETTER = 2, DIGIT = 4, HEX = 8, OCTAL = 16 };
#define D (DIGIT | HEX | OCTAL)
#define X (LETTER | HEX)
#define L LETTER
static const uint8_t classes[256] = {
	['\t'] = BLANK,	   ['\n'] = BLANK,    ['\v'] = BLANK,	 ['\f'] = BLANK,
	['\r'] = BLANK,	   [' '] = BLANK,     ['0' ... '7'] = D, ['8' ... '9'] = DIGIT | HEX,
	['A' ... 'F'] = X, ['G' ... 'Z'] = L, ['a' ... 'f'] = X, ['g' ... 'z'] = L,
	['_'] = L,
};
#undef D
#undef X
#undef L

static inline bool is(int c, int mask)
{
	return c >= 0 && (classes[c] & mask);
}

bool text_is_name(int c)
{
	return is(c, LETTER);
}

bool text_is_digit(int c)
{
	return is(c, DIGIT);
}

/* ---- reading ------------------------------------------------------------------------------------ */

void text_init(struct text *t, const struct input *in, struct error *err)
{
	*t = (struct text){ .last = in->size == 0 };
	window_init(&t->window, in, err);
}

void text_release(struct text *t)
{
	window_release(&t->window);
}

/* Makes more than `need` bytes contiguous, or all there are. The bytes at hand may move. */
static bool refill(struct text *t, size_t need)
{
	uint64_t offset = text_offset(t);
	struct str piece;

	if (t->last || (size_t)(t->end - t->at) > need)
		return true;
	piece = window_peek(&t->window, offset, need + 1);
	if (!piece.ptr) {
		t->status = t->window.status;
		return false;
	}
	t->at = (const unsigned char *)piece.ptr;
	t->end = t->at + piece.len;
	t->end_offset = offset + piece.len;
	t->last = t->end_offset >= t->window.in->size;
	return true;
}

bool text_fail_at(struct text *t, uint64_t offset, const char *format, ...)
{
	va_list args;

	if (t->status != OW_OK)
		return false;
	t->status = OW_E_CORRUPT;
	t->problem_offset = offset;
	va_start(args, format);
	vsnprintf(t->problem, sizeof(t->problem), format, args);
	va_end(args);
	return false;
}

bool text_fail(struct text *t, const char *format, ...)
{
	char problem[sizeof(t->problem)];
	va_list args;

	va_start(args, format);
	vsnprintf(problem, sizeof(problem), format, args);
	va_end(args);
	return text_fail_at(t, text_offset(t), "%s", problem);
}

bool text_expected(struct text *t, const char *what)
{
	int c = text_peek(t);
	size_t len = 0, left = (size_t)(t->end - t->at);

	if (c < 0)
		return text_fail(t, "%s expected, but the text ends", what);
	if (c < ' ' || c >= 0x7f)
		return text_fail(t, "%s expected, but found the byte 0x%02x, which is no text",
				 what, (unsigned)c);
	while (len < left && len < 30 && is(t->at[len], LETTER | DIGIT))
		len++;
	return text_fail(t, "%s expected, but found '%.*s'", what, (int)MAX(len, (size_t)1),
			 (const char *)t->at);
}

/* Blanks that are at hand. Indentation comes in long runs. */
static void skip_blanks_at_hand(struct text *t)
{
	static const char eight[] = "        ";
	const unsigned char *at = t->at, *end = t->end;

	while (at < end && (classes[*at] & BLANK)) {
		at++;
		while (end - at >= 8 && memcmp(at, eight, 8) == 0)
			at += 8;
	}
	t->at = at;
}

static void skip_comment_at_hand(struct text *t, bool *inside)
{
	const unsigned char *newline = memchr(t->at, '\n', (size_t)(t->end - t->at));

	*inside = !newline;
	t->at = newline ? newline : t->end;
}

bool text_skip(struct text *t)
{
	bool comment = false;

	for (;;) {
		if (comment)
			skip_comment_at_hand(t, &comment);
		if (!comment)
			skip_blanks_at_hand(t);
		if (t->at == t->end) {
			if (t->last)
				return true;
			if (!refill(t, TEXT_MARGIN))
				return false;
		} else if (*t->at == '#') {
			comment = true;
		} else {
			return refill(t, TEXT_MARGIN);
		}
	}
}

/* ---- names and numbers -------------------------------------------------------------------------- */

bool text_name(struct text *t, struct str *name)
{
	const unsigned char *at = t->at;

	if (at < t->end && (classes[*at] & LETTER))
		while (at < t->end && (classes[*at] & (LETTER | DIGIT)))
			at++;
	if (at == t->end && !t->last)
		return text_fail(t, "a name of more than %zu characters", TEXT_MARGIN);
	*name = str_make(t->at, (size_t)(at - t->at));
	t->at = at;
	return true;
}

static const unsigned char *run(const struct text *t, const unsigned char *at, int mask)
{
	while (at < t->end && (classes[*at] & mask))
		at++;
	return at;
}

static bool one_of(const struct text *t, const unsigned char *at, int a, int b)
{
	return at < t->end && (*at == a || *at == b);
}

/* Finds the end of a number that begins with a digit or a point; NULL after a failure. */
static const unsigned char *number_end(struct text *t, enum number_kind *kind)
{
	const unsigned char *at = t->at, *digits;

	if (*at == '0' && one_of(t, at + 1, 'x', 'X')) {
		*kind = NUMBER_HEX;
		digits = at + 2;
		at = run(t, digits, HEX);
		if (at == digits)
			text_fail(t, "hexadecimal digits expected behind 0x");
		return at == digits ? NULL : at;
	}
	if (*at == '0' && at + 1 < t->end && is(at[1], DIGIT)) {
		*kind = NUMBER_OCTAL;
		at = run(t, at, OCTAL);
		if (at < t->end && is(*at, DIGIT)) {
			text_fail(t, "a number that begins with 0 must be octal");
			return NULL;
		}
		return at;
	}
	*kind = NUMBER_DECIMAL;
	at = run(t, at, DIGIT);
	if (one_of(t, at, '.', '.')) {
		*kind = NUMBER_FLOAT;
		at = run(t, at + 1, DIGIT);
	}
	if (one_of(t, at, 'e', 'E')) {
		*kind = NUMBER_FLOAT;
		at += one_of(t, at + 1, '+', '-') ? 2 : 1;
		digits = at;
		at = run(t, at, DIGIT);
		if (at == digits) {
			text_fail(t, "an exponent expected behind 'e'");
			return NULL;
		}
	}
	if (one_of(t, at, 'f', 'F')) {
		*kind = NUMBER_FLOAT;
		at++;
	}
	return at;
}

bool text_number(struct text *t, struct number *number)
{
	const unsigned char *at;

	if (*t->at == '.' && !(t->end - t->at > 1 && is(t->at[1], DIGIT)))
		return text_expected(t, "a number");
	at = number_end(t, &number->kind);
	if (!at)
		return false;
	if (at == t->end && !t->last)
		return text_fail(t, "a number of more than %zu characters", TEXT_MARGIN);
	if (at < t->end && is(*at, LETTER))
		return text_fail(t, "a blank expected between a number and a name");
	if (at < t->end && *at == '.')
		return text_fail(t, "a number with a decimal point that it cannot have");
	number->digits = str_make(t->at, (size_t)(at - t->at));
	t->at = at;
	return true;
}

static unsigned hex_value(int c)
{
	return c <= '9' ? (unsigned)c - '0' : ((unsigned)c | 0x20) - 'a' + 10;
}

bool number_to_u64(const struct number *number, uint64_t max, uint64_t *value)
{
	unsigned base = number->kind == NUMBER_HEX ? 16 : number->kind == NUMBER_OCTAL ? 8 : 10;
	uint64_t sum = 0;

	for (size_t i = base == 16 ? 2 : 0; i < number->digits.len; i++) {
		unsigned digit = hex_value((unsigned char)number->digits.ptr[i]);

		if (sum > (max - MIN(max, (uint64_t)digit)) / base || digit > max)
			return false;
		sum = sum * base + digit;
	}
	*value = sum;
	return true;
}

/* Decimals of few digits and a small exponent are exact in double arithmetic. */
static bool simple_double(struct str s, double *value)
{
	static const double tens[] = { 1e0,  1e1,  1e2,	 1e3,  1e4,  1e5,  1e6,	 1e7,
				       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
				       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	int digits = 0, scale = 0, exponent = 0;
	uint64_t mantissa = 0;
	size_t i = 0;
	bool point = false, negative;

	for (; i < s.len && (s.ptr[i] == '.' || is((unsigned char)s.ptr[i], DIGIT)); i++) {
		if (s.ptr[i] == '.') {
			point = true;
			continue;
		}
		mantissa = mantissa * 10 + (unsigned)(s.ptr[i] - '0');
		digits += mantissa != 0;
		scale -= point;
		if (digits > 15)
			return false;
	}
	if (i < s.len && (s.ptr[i] | 0x20) == 'e') {
		i++;
		negative = s.ptr[i] == '-';
		i += s.ptr[i] == '-' || s.ptr[i] == '+';
		for (; i < s.len && is((unsigned char)s.ptr[i], DIGIT); i++) {
			exponent = exponent * 10 + (s.ptr[i] - '0');
			if (exponent > 1000)
				return false;
		}
		scale += negative ? -exponent : exponent;
	}
	if (scale < -22 || scale > 22)
		return false;
	*value = scale < 0 ? (double)mantissa / tens[-scale] : (double)mantissa * tens[scale];
	return true;
}

double number_to_double(const struct number *number)
{
	char copy[TEXT_MARGIN + 2];
	locale_t c_locale;
	double value;

	if (simple_double(number->digits, &value))
		return value;
	memcpy(copy, number->digits.ptr, number->digits.len);
	copy[number->digits.len] = '\0';
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c_locale)
		return strtod(copy, NULL);
	value = strtod_l(copy, NULL, c_locale); /* a point, whatever the program's locale has */
	freelocale(c_locale);
	return value;
}

/* ---- strings ------------------------------------------------------------------------------------ */

bool text_quote(struct text *t, int *quote, uint64_t *start)
{
	int c = text_peek(t);

	if (c != '"' && c != '\'')
		return text_expected(t, "a quoted string");
	*quote = c;
	*start = text_offset(t);
	t->at++;
	return true;
}

/* Exactly `count` hexadecimal digits. */
static bool hex_digits(const struct text *t, const unsigned char *at, size_t count, uint32_t *value)
{
	*value = 0;
	if ((size_t)(t->end - at) < count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!is(at[i], HEX))
			return false;
		*value = *value << 4 | hex_value(at[i]);
	}
	return true;
}

/* \u and \U; `at` is the letter. Returns what follows, or NULL. */
static const unsigned char *unicode_escape(struct text *t, const unsigned char *at, char **to)
{
	size_t count = *at == 'u' ? 4 : 8;
	uint32_t code, low;

	if (!hex_digits(t, at + 1, count, &code) || code > 0x10ffff)
		return NULL;
	at += 1 + count;
	/* two escaped surrogates are one character */
	if (count == 4 && code >= 0xd800 && code < 0xdc00 && t->end - at >= 6 && at[0] == '\\' &&
	    at[1] == 'u' && hex_digits(t, at + 2, 4, &low) && low >= 0xdc00 && low < 0xe000) {
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		at += 6;
	}
	if (code >= 0xd800 && code < 0xe000) { /* a lone one is kept, as protobuf keeps it */
		*(*to)++ = (char)(0xe0 | code >> 12);
		*(*to)++ = (char)(0x80 | (code >> 6 & 0x3f));
		*(*to)++ = (char)(0x80 | (code & 0x3f));
		return at;
	}
	*to += utf8_encode(code, *to);
	return at;
}

/* One escape; `at` is behind the backslash. Returns what follows, or NULL. */
static const unsigned char *escape(struct text *t, const unsigned char *at, char **to)
{
	static const char letters[256] = {
		['a'] = '\a',  ['b'] = '\b', ['f'] = '\f',  ['n'] = '\n',
		['r'] = '\r',  ['t'] = '\t', ['v'] = '\v',  ['?'] = '?',
		['\\'] = '\\', ['"'] = '"',  ['\''] = '\'',
	};
	unsigned value = 0;
	size_t digits = 0;

	if (at >= t->end)
		return NULL;
	if (OW_LIKELY(classes[*at] & OCTAL)) {
		for (; digits < 3 && at < t->end && (classes[*at] & OCTAL); digits++)
			value = value * 8 + (unsigned)(*at++ - '0');
		*(*to)++ = (char)value;
		return at;
	}
	if (letters[*at]) {
		*(*to)++ = letters[*at];
		return at + 1;
	}
	if (*at == 'u' || *at == 'U')
		return unicode_escape(t, at, to);
	if (*at != 'x')
		return NULL;
	for (at++; digits < 2 && at < t->end && (classes[*at] & HEX); digits++)
		value = value * 16 + hex_value(*at++);
	if (!digits)
		return NULL;
	*(*to)++ = (char)value;
	return at;
}

bool text_string(struct text *t, int quote, uint64_t start, struct buf *out, bool *done)
{
	const unsigned char *at, *stop;
	char *to;

	*done = false;
	if (!refill(t, LONGEST_ESCAPE))
		return false;
	if (t->at == t->end)
		return text_fail_at(t, start, "a string without end");
	/* No escape is shorter than what it stands for. */
	stop = t->at + MIN((size_t)(t->end - t->at), STRING_PIECE);
	if (!t->last) /* an escape at the end of what is at hand waits for the rest */
		stop = MIN(stop, t->end - LONGEST_ESCAPE);
	if (!buf_reserve(out, (size_t)(stop - t->at) + LONGEST_ESCAPE)) {
		t->status = OW_E_NO_MEMORY;
		return false;
	}
	to = out->ptr + out->len;
	for (at = t->at; at < stop;) {
		unsigned char c = *at;

		if (c == '\\') {
			const unsigned char *next = escape(t, at + 1, &to);

			if (!next) {
				t->at = at;
				return text_fail(t, "an escape that does not exist");
			}
			at = next;
			continue;
		}
		if (c == quote) {
			*done = true;
			at++;
			break;
		}
		if (c == '\n' || c == 0) {
			t->at = at;
			return text_fail_at(t, start,
					    c ? "a string that goes beyond its line"
					      : "a string with a zero byte in it");
		}
		*to++ = (char)c;
		at++;
	}
	out->len = (size_t)(to - out->ptr);
	t->at = at;
	return true;
}
