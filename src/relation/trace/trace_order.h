/*
 * trace_order.h: what has places in a file, in the order of the file. For trace_list.c: its rows are sorted otherwise in
 * the model. Places are bits of a map, and a row goes to where as many are before it: nothing is compared or moved.
 */
#ifndef RELATION_TRACE_ORDER_H
#define RELATION_TRACE_ORDER_H

#include "base/mem.h"

/* In a large file eight bytes share a bit: other elements do not begin so near to each other. */
#define TRACE_TINY 8

struct trace_order {
	struct mem *mem;
	uint64_t size;	/* places are below */
	unsigned shift; /* a bit stands for 1 << shift bytes, 8 at most */
	uint64_t *bits; /* of all places but those of tiny elements */
	uint32_t *
		before; /* of a word of them: how many places are in front of it; after trace_order_count */
#define TRACE_HAS_TINY (UINT32_C(1) << 31) /* and some of tiny elements are in it */
	size_t word_count;
	uint64_t *tiny; /* elements of less than TRACE_TINY bytes; ascending */
	size_t tiny_count, tiny_cap;
	bool failed; /* a place is there twice, or beyond the end: there is no order */
};

static inline unsigned trace_order_shift(uint64_t size)
{
	return size <= (uint64_t)16 << 20 ? 0 : 3;
}

/* False without memory; release it all the same. */
bool trace_order_init(struct trace_order *o, struct mem *mem, uint64_t size,
		      unsigned shift) OW_MUST_CHECK;
void trace_order_release(struct trace_order *o);
/* Of tiny elements, in the order of the file. False without memory. */
bool trace_order_add_tiny(struct trace_order *o, uint64_t place) OW_MUST_CHECK;
/* When all places have been added. */
void trace_order_count(struct trace_order *o);
/* How many tiny elements are in front of a place, but not of the word that it is in. */
uint32_t trace_order_tiny_before(const struct trace_order *o, uint64_t place);

static inline void trace_order_add(struct trace_order *o, uint64_t place)
{
	uint64_t grain = MIN(place, o->size) >> o->shift, bit = UINT64_C(1) << grain % 64;
	uint64_t *word = &o->bits[grain / 64];

	o->failed |= place >= o->size || *word & bit;
	*word |= bit;
}

/* Bits that are set. The instruction for it is not on every processor that we run on. */
static inline uint32_t trace_order_bits(uint64_t word)
{
	word -= word >> 1 & UINT64_C(0x5555555555555555);
	word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
	word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* How many places are in front of one that was added. What shares the bit of a tiny element is behind it: nothing else
 * begins as near before it. */
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
