/*
 * trace_order.c: a bit map of the file positions at which elements begin, and counts of the bits before each word;
 * trace_sorted.c uses it to turn the position of an element into its row number. Elements too small for a bit of their
 * own ("tiny") are in a sorted list. Positions are not compared or sorted. If two elements share a bit the order fails,
 * and the caller reads the file instead.
 */
#include "relation/trace/trace_order.h"

#include "base/vec.h"

/* Writes to every page once, because bits are read before they are set: a page that is first read, then written,
 * would fault twice. */
static void touch(volatile uint64_t *bits, size_t count)
{
	for (size_t i = 0; i < count; i += 4096 / sizeof(*bits))
		bits[i] = 0;
}

bool trace_order_init(struct trace_order *o, struct mem *mem, uint64_t size, unsigned shift)
{
	uint64_t words = (size >> shift) / 64 + 1;

	*o = (struct trace_order){ .mem = mem, .size = size, .shift = shift };
	if (words > SIZE_MAX / sizeof(*o->bits))
		return false;
	o->word_count = (size_t)words;
	o->bits = mem_zalloc(mem, o->word_count * sizeof(*o->bits));
	o->before = mem_alloc(mem, o->word_count * sizeof(*o->before));
	if (!o->bits || !o->before)
		return false;
	touch(o->bits, o->word_count);
	return true;
}

void trace_order_release(struct trace_order *o)
{
	mem_free(o->mem, o->bits, o->word_count * sizeof(*o->bits));
	mem_free(o->mem, o->before, o->word_count * sizeof(*o->before));
	mem_free(o->mem, o->tiny, o->tiny_cap * sizeof(*o->tiny));
}

bool trace_order_add_tiny(struct trace_order *o, uint64_t place)
{
	if (!vec_reserve(o->mem, o->tiny, o->tiny_cap, o->tiny_count + 1))
		return false;
	o->failed |= place >= o->size || (o->tiny_count && o->tiny[o->tiny_count - 1] >= place);
	o->tiny[o->tiny_count++] = place;
	return true;
}

static size_t word_of(const struct trace_order *o, uint64_t place)
{
	return (size_t)((place >> o->shift) / 64);
}

void trace_order_count(struct trace_order *o)
{
	uint64_t count = 0;
	size_t tiny = 0;

	for (size_t i = 0; i < o->word_count; i++) {
		o->before[i] = (uint32_t)count;
		count += trace_order_bits(o->bits[i]);
		for (; tiny < o->tiny_count && word_of(o, o->tiny[tiny]) == i; tiny++) {
			o->before[i] |= TRACE_HAS_TINY;
			count++;
		}
	}
	o->failed |= count >= TRACE_HAS_TINY;
}

/* The number of tiny elements that begin before a place. */
static size_t find_tiny(const struct trace_order *o, uint64_t place)
{
	size_t low = 0, high = o->tiny_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (o->tiny[middle] < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t trace_order_tiny_before(const struct trace_order *o, uint64_t place)
{
	uint64_t word = (uint64_t)word_of(o, place) * 64 << o->shift;

	return (uint32_t)(find_tiny(o, place) - find_tiny(o, word));
}
