/*
 * radix.h: a stable radix sort of items by a 64-bit key that is one of their fields. For long lists: under some
 * hundred items qsort is as fast. Digits in which all keys agree cost nothing.
 *
 *	struct item { uint64_t key; uint32_t row; } *items, *spare;
 *
 *	items = radix_sort(items, spare, count, key, 8);
 *
 * Everything is inline: size and place of the key are constants then, and each item is moved by a few instructions.
 */
#ifndef BASE_RADIX_H
#define BASE_RADIX_H

#include "base/base.h"

#define RADIX_BITS_MAX 11

/* Sorts by the field `key`, a uint64_t, `bits` (8 or 11) at a time: 11 needs fewer passes and pays for more than
 * some thousand items. `spare` has room for as many items. Returns which of the two has the result. */
#if defined(__cppcheck__) ||                                                                       \
	defined(__CPPCHECK__) /* cppcheck cannot parse the name of a field as an argument */
void *radix_unparsed_(void *items, void *spare, size_t count);
#define radix_sort(items, spare, count, key, bits) radix_unparsed_(items, spare, count)
#define radix_sort_in_place(items, spare, count, key, bits) radix_unparsed_(items, spare, count)
#else
#define radix_sort(items, spare, count, key, bits)                                                 \
	((__typeof__(&(items)[0]))radix_sort_(items, spare, count, sizeof(*(items)),               \
					      offsetof(__typeof__(*(items)), key), bits))

/* Sorts as radix_sort does; the result is always in `items`. */
#define radix_sort_in_place(items, spare, count, key, bits)                                        \
	((void)radix_copy_back_(items, radix_sort(items, spare, count, key, bits), count,          \
				sizeof(*(items))))
#endif

OW_ALWAYS_INLINE uint64_t radix_key_(const char *items, size_t i, size_t size, size_t key_at)
{
	uint64_t key;

	memcpy(&key, items + i * size + key_at, sizeof(key));
	return key;
}

OW_ALWAYS_INLINE void radix_pass_(const char *from, char *to, size_t count, size_t size,
				  size_t key_at, unsigned shift, unsigned bits)
{
	size_t place[(size_t)1 << RADIX_BITS_MAX], digits = (size_t)1 << bits, sum = 0;

	memset(place, 0, digits * sizeof(*place));
	for (size_t i = 0; i < count; i++)
		place[radix_key_(from, i, size, key_at) >> shift & (digits - 1)]++;
	for (size_t i = 0; i < digits; i++) {
		size_t here = place[i];

		place[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++) {
		size_t digit = radix_key_(from, i, size, key_at) >> shift & (digits - 1);

		memcpy(to + place[digit]++ * size, from + i * size, size);
	}
}

OW_ALWAYS_INLINE void *radix_sort_(void *items, void *spare, size_t count, size_t size,
				   size_t key_at, unsigned bits)
{
	uint64_t differ = 0, first = count ? radix_key_(items, 0, size, key_at) : 0;

	for (size_t i = 1; i < count; i++)
		differ |= radix_key_(items, i, size, key_at) ^ first;
	for (unsigned shift = 0; shift < 64; shift += bits) {
		void *from = items;

		if (!(differ >> shift & (((uint64_t)1 << bits) - 1)))
			continue;
		radix_pass_(from, spare, count, size, key_at, shift, bits);
		items = spare;
		spare = from;
	}
	return items;
}

OW_ALWAYS_INLINE void radix_copy_back_(void *items, const void *sorted, size_t count, size_t size)
{
	if (sorted != items)
		memcpy(items, sorted, count * size);
}

#endif
