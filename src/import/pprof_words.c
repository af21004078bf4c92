/*
 * pprof_words.c: the CPU profiles of gperftools and early Go, see pprof_legacy.h: words of 32 or 64 bits in either
 * byte order, a head of five, then {count, n, n addresses} until {0, 1, 0}. What follows is text.
 */
#include "import/pprof_legacy.h"

#define HEAD_WORDS 5

static uint64_t word_at(const unsigned char *p, struct legacy_words how)
{
	uint64_t value = 0;

	for (size_t i = 0; i < how.size; i++)
		value |= (uint64_t)p[how.big ? how.size - 1 - i : i] << 8 * i;
	return value;
}

static bool head_fits(const unsigned char *p, struct legacy_words how)
{
	return word_at(p, how) == 0 && word_at(p + how.size, how) == 3 &&
	       word_at(p + 2 * how.size, how) <= 1 && word_at(p + 3 * how.size, how) > 0 &&
	       word_at(p + 3 * how.size, how) < UINT32_MAX && word_at(p + 4 * how.size, how) == 0;
}

bool legacy_words_fit(struct str head, struct legacy_words *how)
{
	static const struct legacy_words ways[] = {
		{ 4, false }, { 4, true }, { 8, false }, { 8, true }
	};

	for (size_t i = 0; i < ARRAY_COUNT(ways); i++)
		if (head.len >= HEAD_WORDS * ways[i].size &&
		    head_fits((const unsigned char *)head.ptr, ways[i])) {
			*how = ways[i];
			return true;
		}
	return false;
}

static ow_status read_sample(struct legacy *l, const unsigned char *p, uint64_t count,
			     struct legacy_words how, int64_t times)
{
	int64_t values[LEGACY_TYPES] = { times, (int64_t)((uint64_t)times * (uint64_t)l->period) };

	OW_TRY(legacy_sample_begin(l, values));
	for (uint64_t i = 0; i < count; i++)
		OW_TRY(legacy_sample_address(l, word_at(p + i * how.size, how)));
	return l->b->status;
}

/* ---- what the signal handler leaves behind ---- */

static void drop_second(struct legacy *l, struct legacy_sample *s)
{
	uint64_t *at = l->addresses + s->first;

	memmove(at + 1, at + 2, (s->count - 2) * sizeof(*at));
	s->count--;
}

/* The most frequent second address, by votes; whether it is nearly everywhere is counted after. */
static bool same_second(const struct legacy *l, uint64_t *address)
{
	size_t votes = 0, count = 0;

	for (size_t i = 0; i < l->sample_count; i++) {
		uint64_t second;

		if (l->samples[i].count < 2)
			continue;
		second = l->addresses[l->samples[i].first + 1];
		if (!votes)
			*address = second;
		votes += second == *address ? 1 : (size_t)-1;
	}
	for (size_t i = 0; i < l->sample_count; i++)
		count += l->samples[i].count > 1 &&
			 l->addresses[l->samples[i].first + 1] == *address;
	return count && count >= l->sample_count - l->sample_count / 32;
}

void legacy_drop_double(struct legacy *l, struct legacy_sample *s)
{
	if (s->count > 1 && l->addresses[s->first] == l->addresses[s->first + 1] + 1)
		drop_second(l, s);
}

/* An address that nearly all samples have behind their leaf was pushed by the handler. */
static void clean(struct legacy *l)
{
	for (int round = 0; round < 2; round++) {
		uint64_t address = 0;

		if (!same_second(l, &address))
			continue;
		for (size_t i = 0; i < l->sample_count; i++) {
			struct legacy_sample *s = &l->samples[i];

			if (s->count > 1 && l->addresses[s->first + 1] == address)
				drop_second(l, s);
		}
	}
	for (size_t i = 0; i < l->sample_count; i++)
		legacy_drop_double(l, &l->samples[i]);
}

ow_status legacy_words_read(struct legacy *l, struct window *w, uint64_t *end)
{
	struct str head = window_peek(w, 0, HEAD_WORDS * 8);
	struct legacy_words how = { 8, false };
	uint64_t size = l->ctx->in->size, at;

	if (!head.ptr)
		return w->status;
	if (!legacy_words_fit(head, &how))
		return error_at(l->ctx->err, OW_E_FORMAT, 0, "%s: not a CPU profile of pprof",
				l->ctx->in->name);
	at = HEAD_WORDS * how.size;
	l->named = word_at((const unsigned char *)head.ptr + 2 * how.size, how) == 1;
	l->period = (int64_t)word_at((const unsigned char *)head.ptr + 3 * how.size, how) * 1000;
	l->leaf_is_exact = true;
	l->kind = "cpu";
	legacy_type(l, "samples", STR("count"));
	legacy_type(l, "cpu", STR("nanoseconds"));
	for (;;) {
		const unsigned char *p = NULL;
		uint64_t times = 0, count = 0;

		if (size - at >= 2 * how.size) {
			p = window_at(w, at, 2 * how.size);
			if (!p)
				return w->status;
			times = word_at(p, how);
			count = word_at(p + how.size, how);
		}
		if (!p || count > (size - at) / how.size - 2) {
			if (size > at)
				builder_note(l->b, NOTE_TRUNCATED, at,
					     "the profile ends inside a sample, without the mark "
					     "of its end");
			else
				builder_note(l->b, NOTE_TRUNCATED, at,
					     "the profile has no mark of its end");
			at = size;
			break;
		}
		p = window_at(w, at + 2 * how.size, (size_t)count * how.size);
		if (!p)
			return w->status;
		at += (2 + count) * how.size;
		if (!times && count == 1 && !word_at(p, how))
			break;
		OW_TRY(read_sample(l, p, count, how, (int64_t)(times & INT64_MAX)));
	}
	if (!l->named)
		clean(l);
	*end = at;
	return l->b->status;
}
