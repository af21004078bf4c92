/*
 * pickle_text.c: the values that the oldest protocols write as lines of text, and long integers. See
 * pickle.h; pickle.c calls it.
 */
#include "wire/pickle/pickle_int.h"

#include "base/buf.h"

#include <errno.h>

static bool push_int(struct pickle *p, int64_t number)
{
	return pickle_push(p, (struct pickle_value){ .kind = PICKLE_INT, .number = number });
}

/* Pushes a decimal number; beyond 64 bits it has no value. */
static bool push_digits(struct pickle *p, struct str text)
{
	bool negative = text.len && text.ptr[0] == '-';
	uint64_t value = 0;

	text = str_skip(text, negative ? 1 : 0);
	if (!text.len)
		return pickle_damaged(p, "a number without digits");
	for (size_t i = 0; i < text.len; i++) {
		unsigned digit = (unsigned)(unsigned char)text.ptr[i] - '0';

		if (digit > 9)
			return pickle_damaged(p, "an invalid number");
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return pickle_push(p, (struct pickle_value){ .kind = PICKLE_BIG });
	}
	return push_int(p, negative ? (int64_t)(0 - value) : (int64_t)value);
}

/* Reads an integer; protocol 0 writes False and True as 00 and 01. */
bool pickle_read_int(struct pickle *p)
{
	struct str line;

	if (!pickle_line(p, &line))
		return false;
	line = str_trim(line);
	if (str_eq(line, STR("00")) || str_eq(line, STR("01")))
		return pickle_push(p, (struct pickle_value){ .kind = PICKLE_BOOL,
							     .number = line.ptr[1] == '1' });
	return push_digits(p, line);
}

bool pickle_read_long_line(struct pickle *p)
{
	struct str line;

	if (!pickle_line(p, &line))
		return false;
	line = str_trim(line);
	if (str_ends(line, STR("L")))
		line = str_first(line, line.len - 1);
	return push_digits(p, line);
}

bool pickle_read_real(struct pickle *p)
{
	char text[64], *end;
	struct str line;
	double real;

	if (!pickle_line(p, &line))
		return false;
	if (line.len >= sizeof(text))
		return pickle_damaged(p, "a real number that is too long");
	memcpy(text, line.ptr, line.len);
	text[line.len] = '\0';
	errno = 0;
	real = strtod(text, &end);
	if (end == text)
		return pickle_damaged(p, "an invalid real number");
	return pickle_push(p, (struct pickle_value){ .kind = PICKLE_REAL, .real = real });
}

bool pickle_read_index(struct pickle *p, uint64_t *index)
{
	struct str line;
	int64_t value;

	if (!pickle_line(p, &line))
		return false;
	if (!str_to_i64(str_trim(line), &value) || value < 0)
		return pickle_damaged(p, "an invalid memo index");
	*index = (uint64_t)value;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads `digits` hexadecimal digits; -1 if there are fewer. */
static int64_t hex_number(struct str s, size_t digits)
{
	int64_t value = 0;

	if (s.len < digits)
		return -1;
	for (size_t i = 0; i < digits; i++) {
		int digit = hex_digit(s.ptr[i]);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

static void add_utf8(struct buf *out, uint32_t c)
{
	char bytes[4];

	buf_add(out, bytes, utf8_encode(c, bytes));
}

/* Decodes the escape after a backslash; returns how many bytes were used. */
static size_t add_escape(struct buf *out, struct str s)
{
	static const char from[] = "\\'\"nrtabfv", to[] = "\\'\"\n\r\t\a\b\f\v";
	size_t digits = s.ptr[0] == 'x' ? 2 : s.ptr[0] == 'u' ? 4 : s.ptr[0] == 'U' ? 8 : 0;
	const char *plain = s.ptr[0] ? strchr(from, s.ptr[0]) : NULL;

	if (digits) {
		int64_t code = hex_number(str_skip(s, 1), digits);

		if (code >= 0) {
			add_utf8(out, (uint32_t)code);
			return 1 + digits;
		}
	}
	if (plain)
		buf_add_char(out, to[plain - from]);
	else
		buf_add_char(out, '\\');
	return plain ? 1 : 0;
}

/* Decodes the raw-unicode-escape form. Bytes beyond ASCII are Latin-1 in both forms. */
static bool push_escaped(struct pickle *p, struct str line)
{
	struct buf text;
	bool done;

	buf_init(&text, p->mem);
	for (size_t i = 0; i < line.len;) {
		unsigned char c = (unsigned char)line.ptr[i++];

		if (c != '\\')
			add_utf8(&text, c);
		else if (i < line.len)
			i += add_escape(&text, str_skip(line, i));
	}
	done = text.failed ? pickle_failed(p, error_no_memory(p->err))
			   : pickle_push_text(p, buf_str(&text));
	buf_release(&text);
	return done;
}

/* Reads a string in quotes. */
bool pickle_read_string(struct pickle *p)
{
	struct str line;

	if (!pickle_line(p, &line))
		return false;
	line = str_trim(line);
	if (line.len < 2 || (line.ptr[0] != '\'' && line.ptr[0] != '"') ||
	    line.ptr[line.len - 1] != line.ptr[0])
		return pickle_damaged(p, "a string without quotes");
	return push_escaped(p, str_first(str_skip(line, 1), line.len - 2));
}

bool pickle_read_unicode(struct pickle *p)
{
	struct str line;

	return pickle_line(p, &line) && push_escaped(p, line);
}

/* Reads a two's complement integer, the lowest byte first. */
bool pickle_read_long(struct pickle *p, uint64_t len)
{
	const unsigned char *at = pickle_bytes(p, len);
	uint64_t value = 0;

	if (!at)
		return false;
	/* a ninth byte of 0 is the sign of a large positive number */
	if (len > 9 || (len == 9 && at[8] != 0))
		return pickle_push(p, (struct pickle_value){ .kind = PICKLE_BIG });
	for (uint64_t i = 0; i < MIN(len, (uint64_t)8); i++)
		value |= (uint64_t)at[i] << (8 * i);
	if (len && len < 8 && at[len - 1] & 0x80)
		value |= ~(uint64_t)0 << (8 * len);
	return push_int(p, (int64_t)value);
}
