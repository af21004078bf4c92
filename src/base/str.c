/*
 * str.c: comparison, search, splitting, numbers and hashing of length-carrying strings, and UTF-8; every folder
 * calls it. Nothing here allocates: a returned str points into the argument. Comparison is by bytes, without locale
 * or case folding.
 */
#include "base/str.h"

int str_cmp(struct str a, struct str b)
{
	size_t common = MIN(a.len, b.len);
	int order = common ? memcmp(a.ptr, b.ptr, common) : 0;

	if (order)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}

bool str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len && str_eq(str_first(s, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.len >= suffix.len && str_eq(str_skip(s, s.len - suffix.len), suffix);
}

size_t str_find(struct str s, struct str needle)
{
	const char *hit;

	if (needle.len == 0)
		return 0;
	if (s.len < needle.len)
		return STR_NONE;
	hit = memmem(s.ptr, s.len, needle.ptr, needle.len);
	return hit ? (size_t)(hit - s.ptr) : STR_NONE;
}

size_t str_find_char(struct str s, char c)
{
	const char *hit = s.len ? memchr(s.ptr, c, s.len) : NULL;

	return hit ? (size_t)(hit - s.ptr) : STR_NONE;
}

size_t str_rfind_char(struct str s, char c)
{
	const char *hit = s.len ? memrchr(s.ptr, c, s.len) : NULL;

	return hit ? (size_t)(hit - s.ptr) : STR_NONE;
}

struct str str_skip(struct str s, size_t begin)
{
	begin = MIN(begin, s.len);
	if (!begin)
		return s;
	return (struct str){ s.ptr + begin, s.len - begin };
}

struct str str_first(struct str s, size_t len)
{
	s.len = MIN(s.len, len);
	return s;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
	while (s.len && is_blank(s.ptr[0]))
		s = str_skip(s, 1);
	while (s.len && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

bool str_split(struct str *rest, char sep, struct str *piece)
{
	size_t at;

	if (!rest->ptr)
		return false;
	at = str_find_char(*rest, sep);
	if (at == STR_NONE) {
		*piece = *rest;
		rest->ptr = NULL;
		rest->len = 0;
		return true;
	}
	*piece = str_first(*rest, at);
	*rest = (struct str){ rest->ptr + at + 1, rest->len - at - 1 };
	return true;
}

bool str_to_i64(struct str s, int64_t *value)
{
	bool negative = s.len && s.ptr[0] == '-';
	uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
	uint64_t sum = 0;

	s = str_skip(s, negative);
	if (!s.len)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		unsigned digit = (unsigned char)s.ptr[i] - (unsigned)'0';

		if (digit > 9 || sum > (limit - digit) / 10)
			return false;
		sum = sum * 10 + digit;
	}
	*value = negative ? (int64_t)(0 - sum) : (int64_t)sum;
	return true;
}

/* Hashes 16 bytes at a time by multiplying and folding, as the wyhash family does. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load64(const char *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

static uint64_t load_tail(const char *p, size_t len)
{
	uint32_t lo, hi;

	if (len >= 4) {
		memcpy(&lo, p, 4);
		memcpy(&hi, p + len - 4, 4);
		return (uint64_t)hi << 32 | lo;
	}
	if (len == 0)
		return 0;
	return (uint64_t)(unsigned char)p[0] << 16 | (uint64_t)(unsigned char)p[len >> 1] << 8 |
	       (unsigned char)p[len - 1];
}

uint64_t str_hash(struct str s)
{
	const uint64_t k0 = 0xa0761d6478bd642full, k1 = 0xe7037ed1a0b428dbull;
	uint64_t h = k0 ^ s.len;
	const char *p = s.ptr;
	size_t left = s.len;

	for (; left > 16; p += 16, left -= 16)
		h = fold(load64(p) ^ k1, load64(p + 8) ^ h);
	if (left > 8)
		h = fold(load64(p) ^ k1, load64(p + left - 8) ^ h);
	else
		h = fold(load_tail(p, left) ^ k1, h);
	return fold(h ^ k0, k1);
}

/* Returns the length of the well-formed UTF-8 sequence at p, or 0. */
static size_t sequence(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	if (p[0] < 0xe0)
		return left >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
	if (p[0] < 0xf0) {
		if (left < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
			return 0;
		if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
			return 0;
		return 3;
	}
	if (left < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80)
		return 0;
	if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return 4;
}

size_t utf8_valid_prefix(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	size_t i = 0;

	while (i < s.len) {
		size_t n;

		while (i + 8 <= s.len && !(load64(s.ptr + i) & 0x8080808080808080ull))
			i += 8;
		if (i == s.len)
			break;
		n = sequence(p + i, s.len - i);
		if (!n)
			return i;
		i += n;
	}
	return i;
}

size_t utf8_decode(struct str s, uint32_t *code_point)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	size_t n = sequence(p, s.len);

	switch (n) {
	case 1:
		*code_point = p[0];
		return 1;
	case 2:
		*code_point = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
		return 2;
	case 3:
		*code_point = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
		return 3;
	case 4:
		*code_point = (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 |
			      (p[3] & 0x3fu);
		return 4;
	default:
		*code_point = 0xfffd;
		return 1;
	}
}

unsigned str_flags(const char *words, const struct str_flag *known, size_t count)
{
	struct str rest = str_from(words ? words : ""), word;
	unsigned flags = 0;

	while (str_split(&rest, ',', &word))
		for (size_t i = 0; i < count; i++)
			if (str_eq(word, str_from(known[i].word)))
				flags |= known[i].flag;
	return flags;
}

size_t utf8_encode(uint32_t code_point, char to[4])
{
	bool valid = code_point < 0xd800 || (code_point > 0xdfff && code_point <= 0x10ffff);
	uint32_t c = valid ? code_point : 0xfffd;
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint32_t leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n - 1; i; i--) {
		to[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	to[0] = (char)(leads[n] | c);
	return n;
}

/* Returns the number of terminal columns: wide East Asian characters and emoji take two,
 * combining marks none. */
static size_t code_point_width(uint32_t c)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return 0;
	if ((c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200d) || c == 0xfeff)
		return 0;
	if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
	    (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
	    (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
	    (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1faff) ||
	    (c >= 0x20000 && c <= 0x3fffd))
		return 2;
	return 1;
}

/* Eight bytes at once: none has its top bit set, is 0x7f or is below a blank. A carry or borrow can only come from a
 * byte that fails the test itself. */
static bool is_plain8(uint64_t eight)
{
	return !((eight | (eight + 0x0101010101010101ull) | (eight - 0x2020202020202020ull)) &
		 0x8080808080808080ull);
}

size_t utf8_plain_prefix(struct str s)
{
	size_t i = 0;

	while (i + 8 <= s.len && is_plain8(load64(s.ptr + i)))
		i += 8;
	while (i < s.len && s.ptr[i] >= 0x20 && s.ptr[i] < 0x7f)
		i++;
	return i;
}

size_t utf8_width(struct str s)
{
	size_t plain = utf8_plain_prefix(s), width = plain;

	for (size_t i = plain; i < s.len;) {
		uint32_t c;

		i += utf8_decode(str_skip(s, i), &c);
		width += code_point_width(c);
	}
	return width;
}

struct str utf8_fit(struct str s, size_t columns)
{
	size_t width = 0, i = 0;

	while (i < s.len) {
		uint32_t c;
		size_t n = utf8_decode(str_skip(s, i), &c);

		width += code_point_width(c);
		if (width > columns)
			break;
		i += n;
	}
	return str_first(s, i);
}
