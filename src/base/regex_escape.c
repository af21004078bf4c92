/*
 * regex_escape.c: the parts of a pattern that mean one code point or a set of them: escapes, \p{…} and
 * classes in brackets. Called by regex_parse.c.
 */
#include "base/regex_int.h"

/* ---- escapes ---- */

static int hex_value(uint32_t c)
{
	if (c >= '0' && c <= '9')
		return (int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (int)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (int)(c - 'A') + 10;
	return -1;
}

static bool hex_escape(struct str *rest, uint32_t *rune)
{
	uint32_t first, second, code = 0;
	int digits = 0;

	if (!rest->len)
		return false;
	first = regex_rune(rest);
	if (!rest->len)
		return false;
	if (first != '{') {
		second = regex_rune(rest);
		*rune = (uint32_t)(hex_value(first) * 16 + hex_value(second));
		return hex_value(first) >= 0 && hex_value(second) >= 0;
	}
	for (first = regex_rune(rest); hex_value(first) >= 0; first = regex_rune(rest)) {
		code = code * 16 + (uint32_t)hex_value(first);
		digits++;
		if (code > RUNE_MAX || !rest->len)
			return false;
	}
	*rune = code;
	return first == '}' && digits;
}

static uint32_t octal_escape(struct str *rest, uint32_t first)
{
	uint32_t code = first - '0';

	for (int i = 0; i < 2 && rest->len && rest->ptr[0] >= '0' && rest->ptr[0] <= '7'; i++) {
		code = code * 8 + (uint32_t)(rest->ptr[0] - '0');
		*rest = str_skip(*rest, 1);
	}
	return code;
}

/* The code point that an escape means, from the backslash on. */
bool regex_read_escape(const struct regex_reader *r, struct str *rest, uint32_t *rune)
{
	static const char letters[] = "afnrtv", meaning[] = "\a\f\n\r\t\v";
	struct str begin = *rest;
	const char *known;
	uint32_t c;
	bool ok = true;

	*rest = str_skip(*rest, 1);
	if (!rest->len) {
		snprintf(r->why, r->why_size, "trailing \\");
		return false;
	}
	c = regex_rune(rest);
	known = c < 0x80 ? strchr(letters, (int)c) : NULL;
	if (c == '0' ||
	    (c >= '1' && c <= '7' && rest->len && rest->ptr[0] >= '0' && rest->ptr[0] <= '7'))
		*rune = octal_escape(rest, c);
	else if (c == 'x')
		ok = hex_escape(rest, rune);
	else if (c && known)
		*rune = (uint32_t)meaning[known - letters];
	else if (c < 0x80 && (c == '_' || !regex_is_word((unsigned char)c)))
		*rune = c;
	else
		ok = false;
	return ok || regex_bad(r, "invalid escape sequence", regex_between(begin, *rest));
}

/* \pL or \p{Greek} or \p{^Greek}, \P…; *rest is at the backslash. */
bool regex_read_unicode(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	struct str begin = *rest, name;
	bool negated = rest->ptr[1] == 'P';

	*rest = str_skip(*rest, 2);
	if (!rest->len)
		return regex_bad(r, "invalid character class range", begin);
	if (rest->ptr[0] == '{') {
		size_t end = str_find_char(*rest, '}');

		if (end == STR_NONE)
			return regex_bad(r, "invalid character class range", begin);
		name = str_skip(str_first(*rest, end), 1);
		*rest = str_skip(*rest, end + 1);
	} else {
		name = *rest;
		(void)regex_rune(rest);
		name = regex_between(name, *rest);
	}
	if (name.len && name.ptr[0] == '^') {
		negated = !negated;
		name = str_skip(name, 1);
	}
	if (ranges_add_unicode(set, name, negated, r->fold))
		return true;
	return regex_bad(r, "invalid character class range", regex_between(begin, *rest));
}

/* ---- classes ---- */

/* [:alpha:] inside a class: 1 = taken, 0 = not one, -1 = wrong. */
static int posix_class(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	struct str name;
	size_t end;
	bool negated;

	if (!str_starts(*rest, STR("[:")))
		return 0;
	end = str_find(str_skip(*rest, 2), STR(":]"));
	if (end == STR_NONE)
		return 0;
	name = str_first(str_skip(*rest, 2), end);
	negated = name.len && name.ptr[0] == '^';
	if (!ranges_add_posix(set, str_skip(name, negated), negated, r->fold)) {
		regex_bad(r, "invalid character class range", str_first(*rest, end + 4));
		return -1;
	}
	*rest = str_skip(*rest, end + 4);
	return 1;
}

static bool class_character(const struct regex_reader *r, struct str *rest, uint32_t *rune)
{
	if (!rest->len)
		return regex_bad(r, "missing ]", *rest);
	if (rest->ptr[0] == '\\')
		return regex_read_escape(r, rest, rune);
	*rune = regex_rune(rest);
	return true;
}

static bool class_range(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	struct str begin = *rest;
	uint32_t lo = 0, hi;

	if (!class_character(r, rest, &lo))
		return false;
	hi = lo;
	if (rest->len >= 2 && rest->ptr[0] == '-' && rest->ptr[1] != ']') {
		*rest = str_skip(*rest, 1);
		if (!class_character(r, rest, &hi))
			return false;
		if (hi < lo)
			return regex_bad(r, "invalid character class range",
					 regex_between(begin, *rest));
	}
	if (r->fold)
		ranges_add_folded(set, lo, hi);
	else
		ranges_add(set, lo, hi);
	return true;
}

/* One member: a named class, an escape class, or a range. */
static bool class_member(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	int posix = posix_class(r, rest, set);

	if (posix)
		return posix > 0;
	if (rest->len > 2 && rest->ptr[0] == '\\' && (rest->ptr[1] == 'p' || rest->ptr[1] == 'P'))
		return regex_read_unicode(r, rest, set);
	if (rest->len > 1 && rest->ptr[0] == '\\' && ranges_add_perl(set, rest->ptr[1], r->fold)) {
		*rest = str_skip(*rest, 2);
		return true;
	}
	return class_range(r, rest, set);
}

bool regex_read_class(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	struct str at = str_skip(*rest, 1);
	bool negated = at.len && at.ptr[0] == '^';

	at = str_skip(at, negated);
	for (bool first = true; at.len && (first || at.ptr[0] != ']'); first = false)
		if (!class_member(r, &at, set))
			return false;
	if (!at.len)
		return regex_bad(r, "missing ]", *rest);
	*rest = str_skip(at, 1);
	if (negated)
		ranges_negate(set);
	return true;
}
