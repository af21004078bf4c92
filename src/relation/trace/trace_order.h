/*
 * trace_order.h: puts the elements of a file in the order of the file without sorting, for trace_sorted.c, because the
 * model keeps its rows in another order. The position of each element is a bit in a map; the number of bits before it
 * is the row number.
 */
#ifndef RELATION_TRACE_ORDER_H
#define RELATION_TRACE_ORDER_H

#include "base/mem.h"

/* In a large file eight bytes share a bit: elements that are not tiny begin at least that far apart. */
#define TRACE_TINY 8

struct trace_order {
	struct mem *mem;
	uint64_t size;	/* all places are below this */
	unsigned shift; /* one bit stands for 1 << shift bytes, 8 at most */
	uint64_t *bits; /* bits of all places except those of tiny elements */
	/* before: for each word of bits, the number of places before it; filled by trace_order_count */
	uint32_t *before;
/* flag in `before`: the word also contains tiny elements */
#define TRACE_HAS_TINY (UINT32_C(1) << 31)
	size_t word_count;
	uint64_t *tiny; /* places of elements of less than TRACE_TINY bytes; ascending */
	size_t tiny_count, tiny_cap;
	bool failed; /* a place was added twice or is beyond the end: the order is unknown */
};

static inline unsigned trace_order_shift(uint64_t size)
{
	return size <= (uint64_t)16 << 20 ? 0 : 3;
}

/* False if memory runs out; the caller calls trace_order_release in any case. */
bool trace_order_init(struct trace_order *o, struct mem *mem, uint64_t size,
		      unsigned shift) OW_MUST_CHECK;
void trace_order_release(struct trace_order *o);
/* Adds the place of a tiny element, in the order of the file; false if memory runs out. */
bool trace_order_add_tiny(struct trace_order *o, uint64_t place) OW_MUST_CHECK;
/* Called after all places have been added. */
void trace_order_count(struct trace_order *o);
/* The number of tiny elements that are before a place and in the same word. */
uint32_t trace_order_tiny_before(const struct trace_order *o, uint64_t place);

static inline void trace_order_add(struct trace_order *o, uint64_t place)
{
	uint64_t grain = MIN(place, o->size) >> o->shift, bit = UINT64_C(1) << grain % 64;
	uint64_t *word = &o->bits[grain / 64];

	o->failed |= place >= o->size || *word & bit;
	*word |= bit;
}

/* Counts the bits that are set, without the instruction for it, which some processors lack. */
static inline uint32_t trace_order_bits(uint64_t word)
{
	word -= word >> 1 & UINT64_C(0x5555555555555555);
	word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
	word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* The number of added places before `place`. An element that shares its bit with a tiny one comes after the tiny
 * one, because no other element can begin so close. */
static inline uint32_t trace_order_at(const struct trace_order *o, uint64_t place)
{
	uint64_t grain = place >> o->shift, bit = UINT64_C(1) << grain % 64;
	uint32_t before = o->before[grain / 64];
	uint32_t here = trace_order_bits(o->bits[grain / 64] & (bit - 1));

	if (OW_LIKELY(!(before & TRACE_HAS_TINY)))
		return before + here;
	return (before & ~TRACE_HAS_TINY) + here + trace_order_tiny_before(o, place);
}

#endif
