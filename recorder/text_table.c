/*
 * text_table.c: names as numbers. A text is written once into the process's shared region, where the collector finds it by
 * its number. A table in private memory finds the number of a text again. Called by the hooks. No thread ever waits: a slot
 * that another thread is filling at this moment is skipped like one that holds another text.
 *
 * Texts of the same length and hash are taken to be equal. The chance that a full table has two different ones is less than
 * one in ten billion, and comparing would cost one more cache line of the program.
 */
#include "recorder.h"

#include <string.h>

#define SLOTS 32768u
#define TRIES 64u

struct slot {
	_Atomic uint64_t hash; /* hash of the text; 0: free */
	_Atomic uint32_t number;
	uint32_t len; /* published together with the number */
};
static struct slot *slots;
#define SLOTS_BYTES (SLOTS * sizeof(*slots))

bool texts_begin(void)
{
	return table_ensure(&slots, SLOTS_BYTES);
}

/* Forgets all texts by returning the memory to the system, which is cheaper than clearing it. */
void texts_forget(void)
{
	madvise(slots, SLOTS_BYTES, MADV_DONTNEED);
}

/* Hashes eight bytes at a time by multiplying and folding; names are short. */
static uint64_t hash_of(const char *text, size_t len)
{
	uint64_t h = 0x9e3779b97f4a7c15u ^ len, word;

	for (; len >= 8; text += 8, len -= 8) {
		memcpy(&word, text, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, text, len);
	h = (h ^ word) * 0xc4ceb9fe1a85ec53u;
	h ^= h >> 29;
	return h ? h : 1;
}

static struct ring_text *text_at(uint32_t number)
{
	return (struct ring_text *)(void *)((char *)recorder_process + RING_TEXT_OFFSET +
					    (size_t)number * 8);
}

static uint32_t append_text(const char *text, size_t len)
{
	uint32_t units = (uint32_t)((sizeof(struct ring_text) + len + 7) / 8);
	uint32_t at = atomic_load_explicit(&recorder_process->text_used, memory_order_relaxed);
	struct ring_text *to;

	do {
		if ((uint64_t)(at + units) * 8 > recorder_process->text_bytes) {
			atomic_fetch_add_explicit(&recorder_process->text_lost, 1,
						  memory_order_relaxed);
			return 0;
		}
	} while (!atomic_compare_exchange_weak(&recorder_process->text_used, &at, at + units));
	to = text_at(at);
	to->len = (uint32_t)len;
	memcpy(to->bytes, text, len);
	return at;
}

static uint32_t find_or_append(uint64_t hash, const char *text, size_t len)
{
	uint64_t found;

	for (uint32_t i = 0; i < TRIES; i++) {
		struct slot *s = &slots[(hash + i) % SLOTS];
		uint32_t number;

		found = atomic_load_explicit(&s->hash, memory_order_relaxed);
		if (found == hash) {
			number = atomic_load_explicit(&s->number, memory_order_acquire);
			if (LIKELY(number && s->len == len))
				return number;
			continue;
		}
		if (found)
			continue;
		if (!atomic_compare_exchange_strong(&s->hash, &found, hash))
			continue;
		number = append_text(text, len);
		s->len = (uint32_t)len;
		atomic_store_explicit(&s->number, number, memory_order_release);
		return number;
	}
	atomic_fetch_add_explicit(&recorder_process->text_lost, 1, memory_order_relaxed);
	return 0;
}

uint32_t text_number(const char *text, size_t len)
{
	if (len > RING_TEXT_MAX)
		len = RING_TEXT_MAX;
	return find_or_append(hash_of(text, len), text, len);
}

uint32_t text_of(const char *text)
{
	return text_number(text, strlen(text));
}

uint32_t text_number_cached(struct thread *t, const char *text)
{
	size_t len = strlen(text);
	struct known_text *known;
	uint64_t hash;

	if (UNLIKELY(len > RING_TEXT_MAX))
		len = RING_TEXT_MAX;
	hash = hash_of(text, len);
	known = &t->known[hash % KNOWN_TEXTS];
	if (UNLIKELY(known->hash != hash || known->len != len))
		*known =
			(struct known_text){ hash, find_or_append(hash, text, len), (uint32_t)len };
	return known->number;
}
