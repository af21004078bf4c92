/*
 * json_scan.c: reads Chrome-trace JSON as a run of events (json_scan.h): the window onto the input, one event, the list, and how
 * reading continues after damage. json_document.c reads the members around the list. The trace importer and merge call it. Nothing is decoded here. An event is
 * found by the marks of json_classify.c: strings and nested values are passed over by counting bits.
 */
#include "wire/json/json_scan_int.h"

#include "wire/json/json.h"

#define SCAN_PADDING ((size_t)64) /* number of zero bytes after the window */

/* Reads bytes as json_scan_load does, without marks. */
static bool scan_read(struct json_scan *scan, uint64_t offset, size_t want);

/* Returns whether the window ends with the input. */
static inline bool scan_at_end(const struct json_scan *scan)
{
	return scan->base + scan->len >= scan->in->size;
}

static inline bool scan_is_comment(const struct json_scan *scan, size_t p)
{
	return scan->buf[p] == '/' && (scan->buf[p + 1] == '/' || scan->buf[p + 1] == '*');
}

/* Returns the position of the next unescaped quote; scan->len or more if there is none. */
OW_ALWAYS_INLINE size_t scan_next_quote(const struct json_scan *scan, size_t p)
{
	size_t block = p / JSON_BLOCK;
	uint64_t bits = scan->blocks[block].quote >> p % JSON_BLOCK;

	if (OW_LIKELY(bits))
		return p + (size_t)__builtin_ctzll(bits);
	do /* a block of ones after the last block ends the loop */
		bits = scan->blocks[++block].quote;
	while (!bits);
	return block * JSON_BLOCK + (size_t)__builtin_ctzll(bits);
}

size_t json_scan_quote(const struct json_scan *scan, size_t p)
{
	return scan_next_quote(scan, p);
}

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Returns the first byte above ' ' at or after p. */
OW_ALWAYS_INLINE size_t skip_blanks(const struct json_scan *scan, size_t p)
{
	const unsigned char *b = scan->buf;

	if (OW_LIKELY(b[p] > ' '))
		return p;
	if (OW_LIKELY(b[++p] > ' '))
		return p;
	while (p < scan->len) {
#if defined(__SSE2__)
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)(b + p));
		__m128i above = _mm_cmpeq_epi8(_mm_max_epu8(x, _mm_set1_epi8(' ' + 1)), x);
		unsigned bits = (unsigned)_mm_movemask_epi8(above);

		if (bits)
			return p + (size_t)__builtin_ctz(bits);
		p += 16;
#else
		if (b[p] > ' ')
			return p;
		p++;
#endif
	}
	return scan->len;
}

/* Returns the position after the comment at p; p itself if the window cuts it. */
static size_t skip_comment(const struct json_scan *scan, size_t p)
{
	const unsigned char *b = scan->buf, *end = b + scan->len, *at;

	if (b[p + 1] == '/') {
		for (at = b + p + 2; at < end; at++)
			if (*at == '\n' || *at == '\r')
				return (size_t)(at - b) + 1;
		return scan_at_end(scan) ? scan->len : p;
	}
	for (at = b + p + 2; at + 1 < end; at++)
		if (at[0] == '*' && at[1] == '/')
			return (size_t)(at - b) + 2;
	return p;
}

size_t json_scan_skip_gap(const struct json_scan *scan, size_t p, bool commas)
{
	const unsigned char *b = scan->buf;

	for (;;) {
		size_t after;

		p = skip_blanks(scan, p);
		if (p >= scan->len)
			return scan->len;
		if (b[p] == ',' && commas) {
			p++;
			continue;
		}
		if (OW_LIKELY(!scan_is_comment(scan, p)))
			return p;
		after = skip_comment(scan, p);
		if (after == p)
			return p;
		p = after;
	}
}

OW_ALWAYS_INLINE size_t close_bracket(const struct json_scan *scan, size_t p, uint64_t *depth)
{
	size_t block = p / JSON_BLOCK, count = (scan->len + JSON_BLOCK - 1) / JSON_BLOCK;
	uint64_t from = UINT64_MAX << p % JSON_BLOCK, deep = *depth;

	for (; block < count; block++, from = UINT64_MAX) {
		uint64_t open = scan->blocks[block].open & from;
		uint64_t close = scan->blocks[block].close & from;

		if (OW_LIKELY((uint64_t)__builtin_popcountll(close) < deep)) {
			deep += (uint64_t)__builtin_popcountll(open);
			deep -= (uint64_t)__builtin_popcountll(close);
			continue;
		}
		for (; close; close &= close - 1) {
			uint64_t before = open & (close ^ (close - 1));

			deep += (uint64_t)__builtin_popcountll(before);
			open ^= before;
			if (!--deep)
				return block * JSON_BLOCK + (size_t)__builtin_ctzll(close);
		}
		deep += (uint64_t)__builtin_popcountll(open);
	}
	*depth = deep;
	return scan->len;
}

size_t json_scan_close(const struct json_scan *scan, size_t p, uint64_t *depth)
{
	return close_bracket(scan, p, depth);
}

/* Returns whether a byte ends a number or word: bytes below '+', and , / : ] }. */
static bool ends_word(unsigned char c)
{
	return c < '+' || c == ',' || c == '/' || c == ':' || (c | 0x20) == '}';
}

OW_ALWAYS_INLINE size_t word_end(const unsigned char *b, size_t p)
{
#if defined(__SSE2__)
	for (;;) { /* the zeros after the window end the loop */
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)(b + p));
		__m128i low = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8('+' - 1)), x);
		__m128i comma = _mm_cmpeq_epi8(x, _mm_set1_epi8(','));
		__m128i slash = _mm_cmpeq_epi8(x, _mm_set1_epi8('/'));
		__m128i colon = _mm_cmpeq_epi8(x, _mm_set1_epi8(':'));
		__m128i close =
			_mm_cmpeq_epi8(_mm_or_si128(x, _mm_set1_epi8(0x20)), _mm_set1_epi8('}'));
		unsigned bits = (unsigned)_mm_movemask_epi8(_mm_or_si128(
			_mm_or_si128(_mm_or_si128(comma, close), low), _mm_or_si128(slash, colon)));

		if (OW_LIKELY(bits))
			return p + (size_t)__builtin_ctz(bits);
		p += 16;
	}
#endif
	while (!ends_word(b[p]))
		p++;
	return p;
}

size_t json_scan_word_end(const struct json_scan *scan, size_t p)
{
	return word_end(scan->buf, p);
}

enum json_kind json_scan_word_kind(unsigned char first)
{
	return (first >= '0' && first <= '9') || first == '-' || first == 'N' || first == 'I' ||
			       first == '+' || first == '.'
		       ? JSON_NUMBER
		       : JSON_LITERAL;
}

#define K1(a) ((uint64_t)(unsigned char)(a))
#define K4(a, b, c, d) (K1(a) | K1(b) << 8 | K1(c) << 16 | K1(d) << 24)
#define K8(a, b, c, d, e, f, g, h) (K4(a, b, c, d) | K4(e, f, g, h) << 32)
/* The factor was found by trial: it maps all keys to different slots. */
#define KEY_SLOT(key) ((key)*0xd6730839e1e48557ull >> 59)
#define KEY(field, len, ...) [KEY_SLOT(K8(__VA_ARGS__))] = { K8(__VA_ARGS__), len, field }

static const struct {
	uint64_t key;
	uint8_t len;
	uint8_t field;
} keys[32] = {
	KEY(FIELD_PH, 2, 'p', 'h', 0, 0, 0, 0, 0, 0),
	KEY(FIELD_NAME, 4, 'n', 'a', 'm', 'e', 0, 0, 0, 0),
	KEY(FIELD_CAT, 3, 'c', 'a', 't', 0, 0, 0, 0, 0),
	KEY(FIELD_PID, 3, 'p', 'i', 'd', 0, 0, 0, 0, 0),
	KEY(FIELD_TID, 3, 't', 'i', 'd', 0, 0, 0, 0, 0),
	KEY(FIELD_TS, 2, 't', 's', 0, 0, 0, 0, 0, 0),
	KEY(FIELD_DUR, 3, 'd', 'u', 'r', 0, 0, 0, 0, 0),
	KEY(FIELD_ARGS, 4, 'a', 'r', 'g', 's', 0, 0, 0, 0),
	KEY(FIELD_ID, 2, 'i', 'd', 0, 0, 0, 0, 0, 0),
	KEY(FIELD_ID2, 3, 'i', 'd', '2', 0, 0, 0, 0, 0),
	KEY(FIELD_SCOPE, 5, 's', 'c', 'o', 'p', 'e', 0, 0, 0),
	KEY(FIELD_BP, 2, 'b', 'p', 0, 0, 0, 0, 0, 0),
	KEY(FIELD_S, 1, 's', 0, 0, 0, 0, 0, 0, 0),
	KEY(FIELD_SF, 2, 's', 'f', 0, 0, 0, 0, 0, 0),
	KEY(FIELD_BIND_ID, 7, 'b', 'i', 'n', 'd', '_', 'i', 'd', 0),
	KEY(FIELD_FLOW_IN, 7, 'f', 'l', 'o', 'w', '_', 'i', 'n', 0),
	KEY(FIELD_FLOW_OUT, 8, 'f', 'l', 'o', 'w', '_', 'o', 'u', 't'),
	KEY(FIELD_TTS, 3, 't', 't', 's', 0, 0, 0, 0, 0),
	KEY(FIELD_TDUR, 4, 't', 'd', 'u', 'r', 0, 0, 0, 0),
	KEY(FIELD_STACK, 5, 's', 't', 'a', 'c', 'k', 0, 0, 0),
};

OW_ALWAYS_INLINE enum json_field find_key(const unsigned char *at, size_t len)
{
	uint64_t word;

	memcpy(&word, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	if (len < 8)
		word &= ((uint64_t)1 << 8 * len) - 1;
	if (OW_LIKELY(keys[KEY_SLOT(word)].key == word && keys[KEY_SLOT(word)].len == len))
		return (enum json_field)keys[KEY_SLOT(word)].field;
	return FIELD_OTHER;
}

/* Finds a key that is written with escapes: "\u0070h". */
static enum json_field find_odd_key(const unsigned char *at, size_t len)
{
	unsigned char plain[16];

	if (len > 6 * 8 || !memchr(at, '\\', len))
		return FIELD_OTHER;
	memset(plain, 0, sizeof(plain));
	len = json_decode_short(str_make(at, len), (char *)plain, 9);
	return len <= 8 ? find_key(plain, len) : FIELD_OTHER;
}

OW_ALWAYS_INLINE enum walk_result walk(const struct json_scan *scan, size_t p,
				       struct json_event *ev, size_t *end)
{
	const unsigned char *b = scan->buf;
	size_t start = p++, q;

	ev->have = 0;
	for (;;) {
		struct json_value *value;
		enum json_field field;
		uint64_t depth = 1;
		size_t key;

		if (b[p] != '"') {
			p = skip_blanks(scan, p);
			if (OW_UNLIKELY(b[p] != '"'))
				p = json_scan_skip_gap(scan, p, true);
			if (b[p] == '}')
				break;
			if (b[p] != '"')
				goto stop;
		}
		key = p + 1;
		q = scan_next_quote(scan, key);
		if (q >= scan->len)
			goto cut;
		p = q + 1;
		if (OW_UNLIKELY(b[p] != ':')) {
			p = json_scan_skip_gap(scan, p, false);
			if (b[p] != ':')
				goto stop;
		}
		p++;
		if (b[p] <= ' ')
			p = skip_blanks(scan, p);
		if (OW_UNLIKELY(b[p] == '/'))
			p = json_scan_skip_gap(scan, p, false);
		field = find_key(b + key, q - key);
		if (OW_UNLIKELY(field == FIELD_OTHER))
			field = find_odd_key(b + key, q - key);
		ev->have |= 1u << field;
		value = &ev->value[field];
		if (b[p] == '"') {
			q = scan_next_quote(scan, p + 1);
			if (q >= scan->len)
				goto cut;
			*value = (struct json_value){ (const char *)b + p + 1,
						      (uint32_t)(q - p - 1), JSON_STRING };
			p = q + 1;
		} else if (b[p] == '{' || b[p] == '[') {
			q = close_bracket(scan, p + 1, &depth);
			if (q >= scan->len)
				goto cut;
			*value = (struct json_value){ (const char *)b + p, (uint32_t)(q - p + 1),
						      b[p] == '{' ? JSON_OBJECT : JSON_ARRAY };
			p = q + 1;
		} else {
			q = word_end(b, p);
			if (q == p)
				goto stop;
			*value = (struct json_value){ (const char *)b + p, (uint32_t)(q - p),
						      json_scan_word_kind(b[p]) };
			p = q;
		}
		if (OW_LIKELY(b[p] == ','))
			p++;
		else if (OW_LIKELY(b[p] == '}'))
			break;
		else if (b[p] > ' ' && b[p] != '/')
			goto stop;
	}
	if (p >= scan->len)
		goto cut;
	*end = p + 1;
	ev->offset = scan->base + start;
	ev->text = (const char *)b + start;
	ev->len = (uint32_t)(p + 1 - start);
	return WALK_OK;
stop:
	if (p < scan->len && !scan_is_comment(scan, p)) {
		*end = p;
		return WALK_DAMAGE;
	}
cut:
	*end = scan->len;
	return WALK_CUT;
}

/* Iterates over the quotes of the window. Each quote is found from the bits of the previous one, not from the text
 * between them, so that the processor can work on several members at once. */
struct quotes {
	const struct json_block *blocks;
	size_t block;
	uint64_t bits;
};

OW_ALWAYS_INLINE void quotes_from(struct quotes *q, size_t p)
{
	q->block = p / JSON_BLOCK;
	q->bits = q->blocks[q->block].quote & UINT64_MAX << p % JSON_BLOCK;
}

OW_ALWAYS_INLINE size_t next_quote(struct quotes *q)
{
	size_t at;

	while (OW_UNLIKELY(!q->bits)) /* a block of ones after the last block ends the loop */
		q->bits = q->blocks[++q->block].quote;
	at = q->block * JSON_BLOCK + (size_t)__builtin_ctzll(q->bits);
	q->bits &= q->bits - 1;
	return at;
}

/* The event at p, if it is written as nearly all are: one comma between members, no comments, at most
 * one blank after a colon. False for any other, complete or not; then walk() has the say. */
OW_ALWAYS_INLINE bool walk_regular(const struct json_scan *scan, size_t p, struct json_event *ev,
				   size_t *end)
{
	const unsigned char *b = scan->buf;
	struct quotes quotes = { .blocks = scan->blocks };
	size_t start = p++, open, close, after;

	ev->have = 0;
	if (OW_UNLIKELY(b[p] != '"') && b[skip_blanks(scan, p)] != '"')
		return false; /* the next quote may be far away */
	quotes_from(&quotes, p);
	open = next_quote(&quotes);
	after = p;
	for (;;) {
		struct json_value *value;
		enum json_field field;
		uint64_t depth = 1;
		size_t v, q;

		if (OW_UNLIKELY(open != after) && skip_blanks(scan, after) != open)
			return false;
		close = next_quote(&quotes);
		if (OW_UNLIKELY(close >= scan->len || b[close + 1] != ':'))
			return false;
		v = close + 2;
		v += b[v] == ' ';
		field = find_key(b + open + 1, close - open - 1);
		if (OW_UNLIKELY(field == FIELD_OTHER))
			field = find_odd_key(b + open + 1, close - open - 1);
		ev->have |= 1u << field;
		value = &ev->value[field];
		if (b[v] == '"') {
			q = next_quote(&quotes); /* this is the quote of v itself */
			after = next_quote(&quotes);
			if (OW_UNLIKELY(after >= scan->len || q != v))
				return false;
			*value = (struct json_value){ (const char *)b + v + 1,
						      (uint32_t)(after - v - 1), JSON_STRING };
			after++;
		} else if (b[v] == '{' || b[v] == '[') {
			after = close_bracket(scan, v + 1, &depth) + 1;
			if (OW_UNLIKELY(after > scan->len))
				return false;
			*value = (struct json_value){ (const char *)b + v, (uint32_t)(after - v),
						      b[v] == '{' ? JSON_OBJECT : JSON_ARRAY };
			quotes_from(&quotes, after);
		} else {
			after = word_end(b, v);
			if (OW_UNLIKELY(after == v))
				return false;
			*value = (struct json_value){ (const char *)b + v, (uint32_t)(after - v),
						      json_scan_word_kind(b[v]) };
		}
		if (OW_UNLIKELY(b[after] <= ' '))
			after = skip_blanks(scan, after);
		if (b[after] == '}')
			break;
		if (OW_UNLIKELY(b[after] != ','))
			return false;
		after++;
		open = next_quote(&quotes);
	}
	if (OW_UNLIKELY(after >= scan->len))
		return false;
	*end = after + 1;
	ev->offset = scan->base + start;
	ev->text = (const char *)b + start;
	ev->len = (uint32_t)(after + 1 - start);
	return true;
}

/* Reads one member of an object at p (its key's quote); *next becomes the position behind it.
 * False at the end. */
OW_ALWAYS_INLINE bool next_member(const struct json_scan *scan, size_t p, size_t *key,
				  size_t *key_len, struct json_value *value, size_t *next)
{
	const unsigned char *b = scan->buf;
	uint64_t depth = 1;
	size_t q;

	if (b[p] != '"') {
		p = skip_blanks(scan, p);
		if (b[p] != '"')
			p = json_scan_skip_gap(scan, p, true);
		if (b[p] != '"')
			return false;
	}
	q = scan_next_quote(scan, p + 1);
	if (OW_UNLIKELY(q >= scan->len))
		return false;
	*key = p + 1;
	*key_len = q - *key;
	p = q + 1;
	if (OW_UNLIKELY(b[p] != ':'))
		p = json_scan_skip_gap(scan, p, false);
	if (OW_UNLIKELY(b[p] != ':'))
		return false;
	p++;
	if (b[p] <= ' ' || b[p] == '/')
		p = json_scan_skip_gap(scan, p, false);
	if (b[p] == '"') {
		q = scan_next_quote(scan, p + 1);
		if (OW_UNLIKELY(q >= scan->len))
			return false;
		*value = (struct json_value){ (const char *)b + p + 1, (uint32_t)(q - p - 1),
					      JSON_STRING };
		q++;
	} else if (b[p] == '{' || b[p] == '[') {
		q = close_bracket(scan, p + 1, &depth) + 1;
		if (OW_UNLIKELY(q > scan->len))
			return false;
		*value = (struct json_value){ (const char *)b + p, (uint32_t)(q - p),
					      b[p] == '{' ? JSON_OBJECT : JSON_ARRAY };
	} else {
		q = word_end(b, p);
		*value = (struct json_value){ (const char *)b + p, (uint32_t)(q - p),
					      json_scan_word_kind(b[p]) };
		if (q == p)
			return false;
	}
	*next = b[q] == ',' ? q + 1 : q;
	return *next < scan->len;
}

OW_ALWAYS_INLINE void pick(const struct json_scan *scan, size_t p, const struct json_pick *picks,
			   size_t count, struct json_value *found)
{
	struct json_value value;
	size_t key, len, left = count;

	while (left && next_member(scan, p, &key, &len, &value, &p)) {
		uint64_t head;

		memcpy(&head, scan->buf + key, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		head = __builtin_bswap64(head);
#endif
		if (len < 8)
			head &= ((uint64_t)1 << 8 * len) - 1;
		for (size_t i = 0; i < count; i++) {
			if (picks[i].head != head || picks[i].len != len || found[i].kind ||
			    (len > 8 && memcmp(scan->buf + key, picks[i].key, len) != 0))
				continue;
			found[i] = value;
			left--;
			break;
		}
	}
}

#if defined(__x86_64__)
/* Compiled a second time, with the bit-counting instructions of machines that have AVX2. */
__attribute__((target("avx2,bmi,bmi2,popcnt"))) static enum walk_result
walk_avx2(const struct json_scan *scan, size_t p, struct json_event *ev, size_t *end)
{
	return walk_regular(scan, p, ev, end) ? WALK_OK : walk(scan, p, ev, end);
}

__attribute__((target("avx2,bmi,bmi2,popcnt"))) static void
pick_avx2(const struct json_scan *scan, size_t p, const struct json_pick *picks, size_t count,
	  struct json_value *found)
{
	pick(scan, p, picks, count, found);
}
#endif

void json_scan_pick(const struct json_scan *scan, const struct json_value *object,
		    const struct json_pick *picks, size_t count, struct json_value *found)
{
	size_t p = (size_t)((const unsigned char *)object->at - scan->buf) + 1;

	for (size_t i = 0; i < count; i++)
		found[i].kind = JSON_NONE;
#if defined(__x86_64__)
	if (scan->path == JSON_BEST) {
		pick_avx2(scan, p, picks, count, found);
		return;
	}
#endif
	pick(scan, p, picks, count, found);
}

enum walk_result json_scan_walk(const struct json_scan *scan, size_t p, struct json_event *ev,
				size_t *end)
{
#if defined(__x86_64__)
	if (scan->path == JSON_BEST)
		return walk_avx2(scan, p, ev, end);
#endif
	return walk_regular(scan, p, ev, end) ? WALK_OK : walk(scan, p, ev, end);
}

#define GUESS_FIRST ((size_t)512)    /* number of bytes on which a guess is first tried */
#define GUESS_MAX ((size_t)16 << 20) /* largest number of bytes on which a guess is tried */

/* Returns the last byte before p that is not blank; ',' if the window does not contain it. */
static unsigned char byte_before(const struct json_scan *scan, size_t p)
{
	while (p)
		if (scan->buf[--p] > ' ')
			return scan->buf[p];
	return ',';
}

static bool plausible(const struct json_scan *scan, size_t p)
{
	unsigned char before = byte_before(scan, p);

	if (before != ',' && before != '[' && before != '}' && before != '{')
		return false;
	do
		p++;
	while (p < scan->len && scan->buf[p] <= ' ');
	return p >= scan->len || scan->buf[p] == '"';
}

/* Loads the window from the offset itself and checks whether an event begins there. */
static bool is_event(struct json_scan *scan, uint64_t offset)
{
	struct json_event ev;
	size_t end;

	for (size_t want = GUESS_FIRST; want <= GUESS_MAX; want *= 8) {
		if (scan->guesses_left < want || !json_scan_load(scan, offset, want, NULL))
			return false;
		scan->guesses_left -= want;
		switch (json_scan_walk(scan, 0, &ev, &end)) {
		case WALK_OK:
			if (!json_event_has(&ev, FIELD_PH) ||
			    ev.value[FIELD_PH].kind != JSON_STRING)
				return false;
			end = json_scan_skip_gap(scan, end, false);
			if (end < scan->len)
				return scan->buf[end] == ',' || scan->buf[end] == ']' ||
				       scan->buf[end] == '{';
			if (scan_at_end(scan))
				return true;
			break; /* the following bytes decide */
		case WALK_DAMAGE:
			return false;
		case WALK_CUT:
			if (scan_at_end(scan))
				return false;
		}
	}
	return false;
}

bool json_scan_guess(struct json_scan *scan, uint64_t from, uint64_t to, uint64_t *found)
{
	uint64_t before = MIN(from, (uint64_t)JSON_BLOCK); /* enough to see the bytes before it */

	to = MIN(to, scan->in->size);
	while (from < to && scan->guesses_left) {
		const unsigned char *at, *brace;
		size_t left;

		if (!scan_read(scan, from - before, GUESS_FIRST))
			return false;
		scan->guesses_left -= MIN(scan->guesses_left, (uint64_t)scan->len - before);
		at = scan->buf + before;
		left = scan->len - (size_t)before;
		left = (size_t)MIN((uint64_t)left, to - from);
		from += left;
		while ((brace = memchr(at, '{', left))) {
			left -= (size_t)(brace + 1 - at);
			at = brace + 1;
			if (!plausible(scan, (size_t)(brace - scan->buf)))
				continue;
			from = scan->base + (uint64_t)(brace - scan->buf);
			if (is_event(scan, from)) {
				*found = from;
				json_scan_seek(scan, from);
				return true;
			}
			if (scan->status != OW_OK)
				return false;
			from++;
			break;
		}
		before = MIN(from, (uint64_t)JSON_BLOCK);
	}
	return false;
}

/* Continues behind the damage at `at`, in the element that begins at `start`. */
static enum json_scan_result scan_pass_damage(struct json_scan *scan, size_t start, size_t at,
					      struct json_event *ev)
{
	uint64_t next = scan->base + MAX(at, start + 1);

	ev->offset = scan->base + start;
	if (!json_scan_guess(scan, next, UINT64_MAX, &next)) {
		if (scan->status != OW_OK)
			return SCAN_FAILED;
		next = scan->in->size;
	}
	json_scan_seek(scan, next);
	scan->window = 4 * GUESS_FIRST; /* after a damaged event the next one may be damaged, too */
	return SCAN_DAMAGE;
}

#define GUESS_BUDGET ((uint64_t)256 << 20)
/* limit as a multiple of the input: some producers damage every other event */
#define GUESS_SHARE 16

void json_scan_init(struct json_scan *scan, const struct input *in, struct ow_error *err)
{
	*scan = (struct json_scan){ .in = in,
				    .err = err,
				    .path = json_best_path(),
				    .guesses_left = GUESS_BUDGET + GUESS_SHARE * in->size };
}

static size_t block_count(size_t cap)
{
	return cap / JSON_BLOCK + 2; /* one for a partial block, and one block of ones at the end */
}

static void free_window(struct json_scan *scan)
{
	mem_free(scan->in->mem, scan->buf, scan->cap + SCAN_PADDING);
	mem_free(scan->in->mem, scan->blocks, block_count(scan->cap) * sizeof(*scan->blocks));
	scan->buf = NULL;
	scan->blocks = NULL;
	scan->cap = scan->len = 0;
}

void json_scan_release(struct json_scan *scan)
{
	free_window(scan);
}

static bool make_room(struct json_scan *scan, size_t want)
{
	if (want <= scan->cap)
		return true;
	free_window(scan);
	scan->buf = mem_alloc(scan->in->mem, want + SCAN_PADDING);
	scan->blocks = scan->buf
			       ? mem_alloc(scan->in->mem, block_count(want) * sizeof(*scan->blocks))
			       : NULL;
	if (!scan->blocks) {
		mem_free(scan->in->mem, scan->buf, want + SCAN_PADDING);
		scan->buf = NULL;
		scan->status = error_no_memory(scan->err);
		return false;
	}
	scan->cap = want;
	return true;
}

static bool report_progress(struct json_scan *scan, size_t bytes)
{
	const struct progress *progress = scan->in->progress;
	uint64_t done = bytes;

	if (scan->done)
		done += atomic_fetch_add(scan->done, bytes);
	if (!progress || !progress->report ||
	    progress->report(progress->arg, MIN(done, scan->in->size), scan->in->size))
		return true;
	scan->status = error_set(scan->err, OW_E_INTERRUPTED, "interrupted");
	return false;
}

static bool scan_read(struct json_scan *scan, uint64_t offset, size_t want)
{
	uint64_t rest = offset < scan->in->size ? scan->in->size - offset : 0;
	size_t len = (size_t)MIN((uint64_t)want, rest);
	uint64_t room =
		MIN((uint64_t)MAX(want, SCAN_WINDOW), scan->in->size); /* small files need less */

	scan->len = 0;
	if (scan->status != OW_OK || !make_room(scan, (size_t)room + 1))
		return false;
	scan->status = input_read_at(scan->in, offset, scan->buf, len, scan->err);
	if (scan->status != OW_OK || !report_progress(scan, len))
		return false;
	memset(scan->buf + len, 0, SCAN_PADDING);
	scan->base = offset;
	scan->len = len;
	return true;
}

bool json_scan_load(struct json_scan *scan, uint64_t offset, size_t want, struct json_carry *carry)
{
	struct json_carry outside = { 0 };
	size_t count;

	if (!scan_read(scan, offset, want))
		return false;
	count = json_classify(scan->path, scan->buf, scan->len, scan->blocks,
			      carry ? carry : &outside);
	scan->blocks[count] = (struct json_block){ .quote = UINT64_MAX };
	return true;
}

void json_scan_seek(struct json_scan *scan, uint64_t offset)
{
	if (offset == scan->offset)
		return;
	scan->offset = offset;
	scan->len = 0; /* the window may have begun inside a string of this place */
}

/* Loads a window from scan->offset: a small one after damage, then larger and larger ones. */
static bool load_next(struct json_scan *scan)
{
	size_t want = scan->window ? scan->window : SCAN_WINDOW;

	scan->window = MIN(want * 4, SCAN_WINDOW);
	return json_scan_load(scan, scan->offset, want, NULL);
}

/* Loads more if the window cuts the element at p: from there on, or more than the window held. */
static bool load_more(struct json_scan *scan, size_t p)
{
	size_t want = p ? SCAN_WINDOW : scan->len * 2;

	return json_scan_load(scan, scan->base + p, MAX(want, SCAN_WINDOW), NULL);
}

/* Skips an element that is not an object. False: damage. */
static bool skip_element(const struct json_scan *scan, size_t p, size_t *end)
{
	uint64_t depth = 1;

	if (scan->buf[p] == '"')
		*end = scan_next_quote(scan, p + 1) + 1;
	else if (scan->buf[p] == '[')
		*end = json_scan_close(scan, p + 1, &depth) + 1;
	else
		*end = json_scan_word_end(scan, p);
	return *end > p;
}

enum json_scan_result json_scan_event(struct json_scan *scan, uint64_t stop, struct json_event *ev)
{
	size_t p, end;

	if (scan->offset < scan->base || scan->offset - scan->base >= scan->len)
		goto load;
	for (;;) {
		p = json_scan_skip_gap(scan, (size_t)(scan->offset - scan->base), true);
		scan->offset = scan->base + p;
		if (OW_UNLIKELY(p >= scan->len)) {
			if (scan_at_end(scan)) {
				ev->offset = scan->in->size;
				return SCAN_TRUNCATED;
			}
			goto load;
		}
		if (OW_LIKELY(scan->buf[p] == '{')) {
			if (OW_UNLIKELY(scan->offset >= stop))
				return SCAN_STOP;
			switch (json_scan_walk(scan, p, ev, &end)) {
			case WALK_OK:
				scan->offset = scan->base + end;
				return SCAN_EVENT;
			case WALK_DAMAGE:
				return scan_pass_damage(scan, p, end, ev);
			case WALK_CUT:
				break;
			}
		} else if (scan->buf[p] == ']') {
			scan->offset++;
			return SCAN_END;
		} else if (!scan_is_comment(scan, p)) {
			if (!skip_element(scan, p, &end))
				return scan_pass_damage(scan, p, p, ev);
			if (end <= scan->len && (end < scan->len || scan_at_end(scan))) {
				ev->offset = scan->offset;
				scan->offset = scan->base + end;
				return SCAN_OTHER;
			}
		}
		/* cut by the window or by the end of the input */
		if (scan_at_end(scan)) {
			ev->offset = scan->offset;
			scan->offset = scan->in->size;
			return SCAN_TRUNCATED;
		}
		if (!p && scan->len >= JSON_EVENT_MAX)
			return scan_pass_damage(scan, 0, 1, ev);
		if (!load_more(scan, p))
			return SCAN_FAILED;
		continue;
load:
		if (!load_next(scan))
			return SCAN_FAILED;
	}
}
