/*
 * pbtxt_lex.c: characters, tokens, strings, numbers and scalar values of the text format (pbtxt_lex.h), and how to skip
 * a value that is not known. The grammar is that of the original's parser.
 */
#include "wire/protobuf/pbtxt_lex.h"

#include "wire/protobuf/pbtxt.h"

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

void text_init(struct text *t, const struct input *in, struct ow_error *err)
{
	*t = (struct text){ .last = in->size == 0 };
	window_init(&t->window, in, err);
}

void text_release(struct text *t)
{
	window_release(&t->window);
}

/* Makes more than `need` bytes contiguous, or all that are left. Loaded bytes may move. */
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
		return text_fail(t, "%s expected, but found the byte 0x%02x, which is not text",
				 what, (unsigned)c);
	while (len < left && len < 30 && is(t->at[len], LETTER | DIGIT))
		len++;
	return text_fail(t, "%s expected, but found '%.*s'", what, (int)MAX(len, (size_t)1),
			 (const char *)t->at);
}

/* Skips blanks among the loaded bytes; indentation comes in long runs. */
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

static const unsigned char *skip_class(const struct text *t, const unsigned char *at, int mask)
{
	while (at < t->end && (classes[*at] & mask))
		at++;
	return at;
}

static bool one_of(const struct text *t, const unsigned char *at, int a, int b)
{
	return at < t->end && (*at == a || *at == b);
}

/* Returns the end of a number that begins with a digit or a point; NULL after a failure. */
static const unsigned char *number_end(struct text *t, enum number_kind *kind)
{
	const unsigned char *at = t->at, *digits;

	if (*at == '0' && one_of(t, at + 1, 'x', 'X')) {
		*kind = NUMBER_HEX;
		digits = at + 2;
		at = skip_class(t, digits, HEX);
		if (at == digits)
			text_fail(t, "hexadecimal digits expected after 0x");
		return at == digits ? NULL : at;
	}
	if (*at == '0' && at + 1 < t->end && is(at[1], DIGIT)) {
		*kind = NUMBER_OCTAL;
		at = skip_class(t, at, OCTAL);
		if (at < t->end && is(*at, DIGIT)) {
			text_fail(t, "a number that begins with 0 must be octal");
			return NULL;
		}
		return at;
	}
	*kind = NUMBER_DECIMAL;
	at = skip_class(t, at, DIGIT);
	if (one_of(t, at, '.', '.')) {
		*kind = NUMBER_FLOAT;
		at = skip_class(t, at + 1, DIGIT);
	}
	if (one_of(t, at, 'e', 'E')) {
		*kind = NUMBER_FLOAT;
		at += one_of(t, at + 1, '+', '-') ? 2 : 1;
		digits = at;
		at = skip_class(t, at, DIGIT);
		if (at == digits) {
			text_fail(t, "an exponent expected after 'e'");
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
		return text_fail(t, "a decimal point is not allowed in this number");
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

/* Converts a decimal of few digits and a small exponent, which is exact in double arithmetic. */
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
	if (number->digits.ptr)
		memcpy(copy, number->digits.ptr, number->digits.len);
	copy[number->digits.len] = '\0';
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c_locale)
		return strtod(copy, NULL);
	/* uses a decimal point, whatever the program's locale has */
	value = strtod_l(copy, NULL, c_locale);
	freelocale(c_locale);
	return value;
}

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

/* Reads exactly `count` hexadecimal digits. */
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

/* Reads \u or \U; `at` is the letter. Returns the position behind it, or NULL. */
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
	if (code >= 0xd800 && code < 0xe000) { /* a lone surrogate is kept, as protobuf keeps it */
		*(*to)++ = (char)(0xe0 | code >> 12);
		*(*to)++ = (char)(0x80 | (code >> 6 & 0x3f));
		*(*to)++ = (char)(0x80 | (code & 0x3f));
		return at;
	}
	*to += utf8_encode(code, *to);
	return at;
}

/* Reads one escape; `at` is behind the backslash. Returns the position behind it, or NULL. */
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
		return text_fail_at(t, start, "a string is not closed");
	/* an escape is never shorter than its value, so the output fits */
	stop = t->at + MIN((size_t)(t->end - t->at), STRING_PIECE);
	if (!t->last) /* an escape at the end of the loaded bytes waits for the rest */
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
				return text_fail(t, "an unknown escape sequence");
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
					    c ? "a string is not closed on its line"
					      : "a string contains a zero byte");
		}
		*to++ = (char)c;
		at++;
	}
	out->len = (size_t)(to - out->ptr);
	t->at = at;
	return true;
}

/* Scalars.
 * Numbers, booleans and enums, with the ranges of their types.
 */

static bool minus(struct text *t, bool *negative)
{
	*negative = text_peek(t) == '-';
	if (!*negative)
		return true;
	t->at++;
	return text_blanks(t);
}

/* Reads an integer in [-below, max]. */
static bool read_integer(struct text *t, uint64_t max, uint64_t below, uint64_t *bits)
{
	bool negative = false;
	struct number number = { 0 };
	uint64_t start;

	if (below && !minus(t, &negative))
		return false;
	if (!text_is_digit(text_peek(t)))
		return text_expected(t, below ? "an integer" : "an integer that is not negative");
	start = text_offset(t);
	if (!text_number(t, &number))
		return false;
	if (number.kind == NUMBER_FLOAT)
		return text_fail_at(t, start, "an integer expected, but found '%.*s'",
				    STR_ARG(str_first(number.digits, 40)));
	if (!number_to_u64(&number, negative ? below : max, bits))
		return text_fail_at(t, start, "the number %s%.*s is out of range",
				    negative ? "-" : "", STR_ARG(str_first(number.digits, 40)));
	if (negative)
		*bits = (uint64_t)0 - *bits;
	return true;
}

static bool same_word(struct str name, const char *word)
{
	if (name.len != strlen(word))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if ((name.ptr[i] | 0x20) != word[i])
			return false;
	return true;
}

static bool read_double(struct text *t, double *value)
{
	struct number number = { 0 };
	struct str name = { 0 };
	uint64_t start;
	bool negative;

	if (!minus(t, &negative))
		return false;
	start = text_offset(t);
	if (text_is_digit(text_peek(t)) || text_peek(t) == '.') {
		if (!text_number(t, &number))
			return false;
		if (number.kind == NUMBER_HEX || number.kind == NUMBER_OCTAL)
			return text_fail_at(t, start, "a decimal number expected, but found '%.*s'",
					    STR_ARG(str_first(number.digits, 40)));
		*value = number_to_double(&number);
	} else if (text_is_name(text_peek(t))) {
		if (!text_name(t, &name))
			return false;
		if (same_word(name, "inf") || same_word(name, "infinity"))
			*value = __builtin_inf();
		else if (same_word(name, "nan"))
			*value = __builtin_nan("");
		else
			return text_fail_at(t, start, "a number expected, but found '%.*s'",
					    STR_ARG(str_first(name, 40)));
	} else {
		return text_expected(t, "a number");
	}
	*value = negative ? -*value : *value;
	return true;
}

static bool read_bool(struct text *t, uint64_t *bits)
{
	uint64_t start = text_offset(t);
	struct str name;

	if (text_is_digit(text_peek(t)))
		return read_integer(t, 1, 0, bits);
	if (!text_is_name(text_peek(t)))
		return text_expected(t, "true or false");
	if (!text_name(t, &name))
		return false;
	*bits = str_eq(name, STR("true")) || str_eq(name, STR("True")) || str_eq(name, STR("t"));
	if (*bits || str_eq(name, STR("false")) || str_eq(name, STR("False")) ||
	    str_eq(name, STR("f")))
		return true;
	return text_fail_at(t, start, "true or false expected, but found '%.*s'",
			    STR_ARG(str_first(name, 40)));
}

static bool read_enum(struct text *t, const struct pb_field_desc *field, bool allow_unknown,
		      uint64_t *unknown, uint64_t *bits)
{
	const struct pb_enum *values = field->values;
	uint64_t start = text_offset(t);
	struct str name;

	if (text_is_digit(text_peek(t)) || text_peek(t) == '-')
		return read_integer(t, INT32_MAX, (uint64_t)INT32_MAX + 1, bits);
	if (!text_is_name(text_peek(t)))
		return text_expected(t, "a name or number");
	if (!text_name(t, &name))
		return false;
	for (size_t i = 0; i < values->count; i++)
		if (str_eq(name, str_from(values->values[i].name))) {
			*bits = (uint64_t)(int64_t)values->values[i].number;
			return true;
		}
	if (!allow_unknown)
		return text_fail_at(t, start, "'%.*s' is not a value of %s",
				    STR_ARG(str_first(name, 60)), field->name);
	(*unknown)++;
	*bits = 0;
	return true;
}

bool text_bits(struct text *t, const struct pb_field_desc *field, bool allow_unknown,
	       uint64_t *unknown, uint64_t *bits)
{
	uint32_t half;
	double value = 0;
	float narrow;

	switch ((enum pb_type)field->type) {
	case PBT_INT32:
		return read_integer(t, INT32_MAX, (uint64_t)INT32_MAX + 1, bits);
	case PBT_INT64:
	case PBT_SINT64:
		return read_integer(t, INT64_MAX, (uint64_t)INT64_MAX + 1, bits);
	case PBT_UINT32:
	case PBT_FIXED32:
		return read_integer(t, UINT32_MAX, 0, bits);
	case PBT_UINT64:
	case PBT_FIXED64:
		return read_integer(t, UINT64_MAX, 0, bits);
	case PBT_BOOL:
		return read_bool(t, bits);
	case PBT_ENUM:
		return read_enum(t, field, allow_unknown, unknown, bits);
	case PBT_FLOAT:
		if (!read_double(t, &value))
			return false;
		narrow = (float)value;
		memcpy(&half, &narrow, sizeof(half));
		*bits = half;
		return true;
	case PBT_DOUBLE:
		if (!read_double(t, &value))
			return false;
		memcpy(bits, &value, sizeof(value));
		return true;
	default:
		return text_fail(t, "the table of %s is wrong", field->name);
	}
}

/* Unknown fields.
 * Values are skipped token by token. Brackets have to match; nothing else is checked.
 */

static bool skip_string(struct text *t, struct buf *scratch)
{
	size_t before = scratch->len;
	uint64_t start = 0;
	bool done = false;
	int quote = 0;

	if (!text_quote(t, &quote, &start))
		return false;
	while (!done) {
		if (!text_string(t, quote, start, scratch, &done))
			return false;
		scratch->len = before;
	}
	return true;
}

/* Skips one token of a value; brackets are matched. */
static bool skip_token(struct text *t, struct buf *scratch, char *open, size_t *depth)
{
	struct number number = { 0 };
	struct str name = { 0 };
	int c = text_peek(t);

	if (c == '"' || c == '\'')
		return skip_string(t, scratch);
	if (text_is_name(c))
		return text_name(t, &name);
	if (text_is_digit(c))
		return text_number(t, &number);
	if (c == '{' || c == '<' || c == '[') {
		if (*depth == PBTXT_DEPTH_MAX)
			return text_fail(t, "messages nested more than %d deep", PBTXT_DEPTH_MAX);
		open[(*depth)++] = text_closing(c);
	} else if (c == '}' || c == '>' || c == ']') {
		if (!*depth || open[*depth - 1] != c)
			return text_expected(t, "a value");
		(*depth)--;
	} else if (c <= 0 || !strchr("-.:,;/", c)) {
		return text_expected(t, "a value");
	}
	t->at++;
	return true;
}

bool text_skip_value(struct text *t, struct buf *scratch)
{
	char open[PBTXT_DEPTH_MAX];
	size_t depth = 0;
	bool string, sign;

	if (!text_blanks(t))
		return false;
	if (text_peek(t) == ':')
		t->at++;
	do {
		if (!text_blanks(t))
			return false;
		string = text_peek(t) == '"' || text_peek(t) == '\'';
		sign = text_peek(t) == '-';
		if (!skip_token(t, scratch, open, &depth) || !text_blanks(t))
			return false;
		if (string && !depth && (text_peek(t) == '"' || text_peek(t) == '\''))
			sign = true; /* adjacent strings */
	} while (depth || sign);
	return true;
}
