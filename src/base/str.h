/*
 * str.h: work on length-carrying strings. All comparison is byte-wise. Nothing here allocates.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/base.h"

#define STR(literal) ((struct str){ "" literal "", sizeof(literal) - 1 })

/* Arguments for printf("%.*s", STR_ARG(s)). */
#define STR_ARG(s) (int)MIN((s).len, (size_t)INT32_MAX), (s).ptr

OW_ALWAYS_INLINE struct str str_from(const char *text)
{
	return (struct str){ text, text ? strlen(text) : 0 };
}

OW_ALWAYS_INLINE struct str str_make(const void *ptr, size_t len)
{
	return (struct str){ ptr, len };
}

OW_ALWAYS_INLINE bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Compares in byte order: <0, 0 or >0; a prefix sorts first. */
int str_cmp(struct str a, struct str b);

bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

#define STR_NONE SIZE_MAX
/* Return the position of the first or last occurrence, or STR_NONE. */
size_t str_find(struct str s, struct str needle);
size_t str_find_char(struct str s, char c);
size_t str_rfind_char(struct str s, char c);
static inline bool str_has(struct str s, struct str needle)
{
	return str_find(s, needle) != STR_NONE;
}

/* Return the part from `begin` (clamped), and at most `len` bytes of it. */
struct str str_skip(struct str s, size_t begin);
struct str str_first(struct str s, size_t len);
struct str str_trim(struct str s); /* removes ASCII blanks at both ends */

/* Cuts the next piece before `sep` off *rest; false when nothing is left. "a,,b" has three pieces, ""
 * has one (empty) and a str with a NULL ptr none: rest->ptr becomes NULL after the last piece. */
bool str_split(struct str *rest, char sep, struct str *piece);

/* Parses the whole string as a decimal integer with optional '-'; false on anything else or
 * overflow. */
bool str_to_i64(struct str s, int64_t *value);

/* Returns a fast 64-bit hash. A seed per process is its only protection against chosen
 * collisions. */
uint64_t str_hash(struct str s);

/* A word and its flag, for lists of words separated by commas; unknown words are skipped. */
struct str_flag {
	const char *word;
	unsigned flag;
};
unsigned str_flags(const char *words, const struct str_flag *known, size_t count);

/* Returns the length of the longest valid UTF-8 prefix (no surrogates, no overlong forms, ≤
 * U+10FFFF). */
size_t utf8_valid_prefix(struct str s);
static inline bool utf8_valid(struct str s)
{
	return utf8_valid_prefix(s) == s.len;
}

/* Decodes one code point at s (len > 0); for invalid bytes sets U+FFFD and consumes one byte. */
size_t utf8_decode(struct str s, uint32_t *code_point);

/* Writes a code point and returns the number of bytes; one that UTF-8 cannot encode becomes U+FFFD. */
size_t utf8_encode(uint32_t code_point, char to[4]);

/* Returns how many bytes at the start are printable ASCII, from blank to tilde. */
size_t utf8_plain_prefix(struct str s);

/* Return the columns that the text takes on a terminal, and the longest prefix that takes at
 * most `columns`. */
size_t utf8_width(struct str s);
struct str utf8_fit(struct str s, size_t columns);

#endif
