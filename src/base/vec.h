/*
 * vec.h: arrays that grow, over struct mem. An array is three variables of its owner: a pointer, how many items it
 * has, and for how many there is room (`cap`, a size_t). Everything that collects items one by one uses these
 * macros; they check for overflow, count every byte against the memory limit and leave the array as it was when
 * there is no memory.
 *
 *	struct span { int64_t begin, end; };
 *	struct spans { struct mem *mem; struct span *items; size_t count, cap; };
 *
 *	static bool add_span(struct spans *s, int64_t begin, int64_t end)
 *	{
 *		return vec_push(s->mem, s->items, s->count, s->cap, (struct span){ begin, end });
 *	}
 *	…
 *	vec_free(s->mem, s->items, s->cap);
 *
 * `count` may be of any integer type; vec_push does not check whether it overflows that type, because the callers
 * that use a narrow type have limits of their own. The arguments are evaluated more than once.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/mem.h"

#ifdef __clang_analyzer__
/* For static analysers, which do not know that an array with room for items is not NULL: to them, every
 * call may change the array. */
bool vec_analysed_(struct mem *mem, void *items_at, size_t *cap, size_t need);
#define vec_reserve(mem, items, cap, need) vec_analysed_(mem, &(items), &(cap), need)
#define vec_reserve_zero(mem, items, cap, need) vec_analysed_(mem, &(items), &(cap), need)
#else
/* Makes room for `need` items in all. Grows by half, at least to 8. False if memory runs out. */
#define vec_reserve(mem, items, cap, need)                                                         \
	(OW_LIKELY((size_t)(need) <= (cap)) ||                                                     \
	 vec_grow_(mem, &(items), &(cap), need, sizeof(*(items)), false))

/* Makes room as vec_reserve does; new items, up to `cap`, are zero. */
#define vec_reserve_zero(mem, items, cap, need)                                                    \
	(OW_LIKELY((size_t)(need) <= (cap)) ||                                                     \
	 vec_grow_(mem, &(items), &(cap), need, sizeof(*(items)), true))
#endif

/* Adds one item, the last argument, at the end. False if memory runs out. */
#define vec_push(mem, items, count, cap, ...)                                                      \
	(vec_reserve(mem, items, cap, (size_t)(count) + 1) &&                                      \
	 ((items)[(count)++] = (__VA_ARGS__), true))

/* Frees the array and makes it empty, except for the caller's count. */
#define vec_free(mem, items, cap)                                                                  \
	(mem_free(mem, items, (cap) * sizeof(*(items))), (items) = NULL, (void)((cap) = 0))

/* Grows an array. `items_at` is the address of the array's pointer, which may have any type. */
static inline bool vec_grow_(struct mem *mem, void *items_at, size_t *cap, size_t need,
			     size_t item_size, bool zero)
{
	size_t old = *cap;
	void *items;
	bool good;

	memcpy(&items, items_at, sizeof(items));
	good = mem_grow(mem, &items, cap, need, item_size);
	memcpy(items_at, &items, sizeof(items));
	if (good && zero)
		memset((char *)items + old * item_size, 0, (*cap - old) * item_size);
	return good;
}

#endif
