/*
 * json_classify.c: where the quotes and brackets of JSON text are, 64 bytes at a time: the lowest layer of json_scan.c. The two
 * fast ways stop at a slash outside strings, which only begins a comment; the slow way goes on from there, byte by byte, to
 * the end of the text. It does not check that the text is JSON.
 */
#include "wire/json/json_scan.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_AVX2 1
#endif

#define ONES UINT64_MAX
#define EVEN_BITS 0x5555555555555555ull

enum json_comment { COMMENT_NONE, COMMENT_SLASH, COMMENT_LINE, COMMENT_BLOCK, COMMENT_STAR };

/* Positions, in one block, of the five characters that matter. */
struct marks {
	uint64_t quote, backslash, open, close, slash;
};

/* Returns the bytes that follow an odd run of backslashes. */
OW_ALWAYS_INLINE uint64_t escaped_bytes(uint64_t backslash, uint64_t *carry)
{
	uint64_t follows, odd_starts, even_runs, overflow;

	if (OW_LIKELY(!backslash)) {
		follows = *carry;
		*carry = 0;
		return follows;
	}
	backslash &= ~*carry;
	follows = backslash << 1 | *carry;
	odd_starts = backslash & ~EVEN_BITS & ~follows;
	overflow = __builtin_add_overflow(odd_starts, backslash, &even_runs);
	*carry = overflow;
	return (EVEN_BITS ^ even_runs << 1) & follows;
}

/* Replaces each bit by the parity of itself and all lower bits. */
OW_ALWAYS_INLINE uint64_t parity_shift(uint64_t bits)
{
	bits ^= bits << 1;
	bits ^= bits << 2;
	bits ^= bits << 4;
	bits ^= bits << 8;
	bits ^= bits << 16;
	return bits ^ bits << 32;
}

/* Resolves strings in a block. False: a slash outside strings; nothing was changed. */
#define RESOLVE(marks, parity, block, carry)                                                       \
	({                                                                                         \
		uint64_t escape_carry_ = (carry)->escaped;                                         \
		uint64_t quote_ =                                                                  \
			(marks).quote & ~escaped_bytes((marks).backslash, &escape_carry_);         \
		uint64_t inside_ = parity(quote_) ^ (carry)->in_string;                            \
		bool plain_ = !((marks).slash & ~inside_);                                         \
		if (OW_LIKELY(plain_)) {                                                           \
			(carry)->escaped = escape_carry_;                                          \
			(carry)->in_string = 0 - (inside_ >> 63);                                  \
			(block)->quote = quote_;                                                   \
			(block)->open = (marks).open & ~inside_;                                   \
			(block)->close = (marks).close & ~inside_;                                 \
		}                                                                                  \
		plain_;                                                                            \
	})

#ifdef HAVE_AVX2
#define AVX2 __attribute__((target("avx2,pclmul,bmi")))

AVX2 static inline uint64_t equal_avx2(__m256i lo, __m256i hi, char c)
{
	__m256i want = _mm256_set1_epi8(c);
	uint32_t a = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(lo, want));
	uint32_t b = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(hi, want));

	return (uint64_t)b << 32 | a;
}

AVX2 static inline uint64_t parity_avx2(uint64_t bits)
{
	__m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (int64_t)bits),
					       _mm_set1_epi8((char)0xff), 0);

	return (uint64_t)_mm_cvtsi128_si64(product);
}

/* { and [ (and likewise } and ]) differ in one bit, the one that also distinguishes upper and
 * lower case. */
AVX2 static inline struct marks marks_avx2(const unsigned char *p)
{
	__m256i lo = _mm256_loadu_si256((const __m256i *)(const void *)p);
	__m256i hi = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
	__m256i fold = _mm256_set1_epi8(0x20);
	__m256i lo2 = _mm256_or_si256(lo, fold), hi2 = _mm256_or_si256(hi, fold);

	return (struct marks){ .quote = equal_avx2(lo, hi, '"'),
			       .backslash = equal_avx2(lo, hi, '\\'),
			       .open = equal_avx2(lo2, hi2, '{'),
			       .close = equal_avx2(lo2, hi2, '}'),
			       .slash = equal_avx2(lo, hi, '/') };
}

AVX2 static size_t fast_avx2(const unsigned char *bytes, size_t count, struct json_block *blocks,
			     struct json_carry *carry)
{
	struct json_carry c = *carry;
	size_t i;

	for (i = 0; i < count; i++) {
		struct marks marks = marks_avx2(bytes + i * JSON_BLOCK);

		if (OW_UNLIKELY(!RESOLVE(marks, parity_avx2, &blocks[i], &c)))
			break;
	}
	*carry = c;
	return i;
}
#endif

/* Returns a mask whose bit i says that byte i of the word equals c; exact for all bytes. */
OW_ALWAYS_INLINE uint64_t equal_word(uint64_t word, unsigned char c)
{
	uint64_t low = 0x7f7f7f7f7f7f7f7full, x = word ^ (0x0101010101010101ull * c);
	uint64_t zero = ~(((x & low) + low) | x | low) >> 7;

	return zero * 0x0102040810204080ull >> 56;
}

static struct marks marks_portable(const unsigned char *p)
{
	struct marks m = { 0 };

	for (unsigned i = 0; i < JSON_BLOCK; i += 8) {
		uint64_t word, folded;

		memcpy(&word, p + i, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		word = __builtin_bswap64(word);
#endif
		folded = word | 0x2020202020202020ull;
		m.quote |= equal_word(word, '"') << i;
		m.backslash |= equal_word(word, '\\') << i;
		m.open |= equal_word(folded, '{') << i;
		m.close |= equal_word(folded, '}') << i;
		m.slash |= equal_word(word, '/') << i;
	}
	return m;
}

static size_t fast_portable(const unsigned char *bytes, size_t count, struct json_block *blocks,
			    struct json_carry *carry)
{
	size_t i;

	for (i = 0; i < count; i++) {
		struct marks marks = marks_portable(bytes + i * JSON_BLOCK);

		if (!RESOLVE(marks, parity_shift, &blocks[i], carry))
			break;
	}
	return i;
}

static void slow_string_byte(unsigned char c, uint64_t bit, struct json_block *block,
			     struct json_carry *carry)
{
	if (carry->escaped) {
		carry->escaped = 0;
	} else if (c == '\\') {
		carry->escaped = 1;
	} else if (c == '"') {
		block->quote |= bit;
		carry->in_string = 0;
	}
}

static void slow_plain_byte(unsigned char c, uint64_t bit, struct json_block *block,
			    struct json_carry *carry)
{
	/* a backslash outside strings is damage; this matches the fast ways */
	if (carry->escaped) {
		carry->escaped = 0;
		if (c == '"' || c == '\\')
			return;
	} else if (c == '\\') {
		carry->escaped = 1;
	}
	if (c == '"') {
		block->quote |= bit;
		carry->in_string = ONES;
	} else if (c == '/') {
		carry->comment = COMMENT_SLASH;
	} else if ((c | 0x20) == '{') {
		block->open |= bit;
	} else if ((c | 0x20) == '}') {
		block->close |= bit;
	}
}

static void slow_byte(unsigned char c, uint64_t bit, struct json_block *block,
		      struct json_carry *carry)
{
	switch ((enum json_comment)carry->comment) {
	case COMMENT_LINE:
		if (c == '\n' || c == '\r')
			carry->comment = COMMENT_NONE;
		return;
	case COMMENT_BLOCK:
		if (c == '*')
			carry->comment = COMMENT_STAR;
		return;
	case COMMENT_STAR:
		if (c == '/')
			carry->comment = COMMENT_NONE;
		else if (c != '*')
			carry->comment = COMMENT_BLOCK;
		return;
	case COMMENT_SLASH:
		carry->comment = COMMENT_NONE;
		if (c == '/' || c == '*') {
			carry->comment = c == '/' ? COMMENT_LINE : COMMENT_BLOCK;
			return;
		}
		break;
	case COMMENT_NONE:
		break;
	}
	if (carry->in_string)
		slow_string_byte(c, bit, block, carry);
	else
		slow_plain_byte(c, bit, block, carry);
}

static void slow_block(const unsigned char *bytes, size_t len, struct json_block *block,
		       struct json_carry *carry)
{
	*block = (struct json_block){ 0 };
	for (size_t i = 0; i < len; i++)
		slow_byte(bytes[i], (uint64_t)1 << i, block, carry);
}

static size_t fast(enum json_path path, const unsigned char *bytes, size_t count,
		   struct json_block *blocks, struct json_carry *carry)
{
	if (carry->comment)
		return 0;
#ifdef HAVE_AVX2
	if (path == JSON_BEST)
		return fast_avx2(bytes, count, blocks, carry);
#endif
	(void)path;
	return fast_portable(bytes, count, blocks, carry);
}

size_t json_classify(enum json_path path, const unsigned char *bytes, size_t len,
		     struct json_block *blocks, struct json_carry *carry)
{
	size_t whole = len / JSON_BLOCK, rest = len % JSON_BLOCK, i = 0;

	while (i < whole) {
		i += fast(path, bytes + i * JSON_BLOCK, whole - i, blocks + i, carry);
		/* the slow way continues until it is outside of comments again */
		if (i < whole) {
			slow_block(bytes + i * JSON_BLOCK, JSON_BLOCK, blocks + i, carry);
			i++;
		}
	}
	if (rest) {
		unsigned char last[JSON_BLOCK];

		memset(last, ' ', sizeof(last));
		memcpy(last, bytes + i * JSON_BLOCK, rest);
		if (!fast(path, last, 1, blocks + i, carry))
			slow_block(last, rest, blocks + i, carry);
		i++;
	}
	return i;
}

enum json_path json_best_path(void)
{
	const char *portable = getenv("OPWATCH_PORTABLE");

	if (portable && *portable)
		return JSON_PORTABLE;
#ifdef HAVE_AVX2
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul") &&
	    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
	    __builtin_cpu_supports("popcnt"))
		return JSON_BEST;
#endif
	return JSON_PORTABLE;
}
