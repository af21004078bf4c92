/*
 * arena.h: memory of one lifetime. Push only; everything goes at once with arena_release. Blocks
 * never move, so pointers stay valid. Not thread-safe: one owner at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/mem.h"

struct arena_block;

struct arena {
	struct mem *mem;
	struct arena_block *blocks; /* list of blocks, newest first */
	char *next;
	size_t left;
};

void arena_init(struct arena *arena, struct mem *mem);
void arena_release(struct arena *arena);

/* Frees all blocks; the arena can be used again with the same mem. */
void arena_clear(struct arena *arena);

/* Returns uninitialised bytes, aligned to `align` (a power of two); NULL at the memory limit. */
void *arena_push_aligned(struct arena *arena, size_t size, size_t align) OW_MUST_CHECK;

/* Returns zeroed bytes, aligned for any type; NULL at the memory limit. */
void *arena_push(struct arena *arena, size_t size) OW_MUST_CHECK;

/* Returns count × size zeroed bytes; NULL on overflow or at the memory limit. */
void *arena_push_array(struct arena *arena, size_t count, size_t size) OW_MUST_CHECK;

/*
 * Makes room for one more item in an array of `count` items that began as NULL with *cap 0. Returns the array, or a
 * larger copy of it; the old one stays allocated until the arena is released. NULL at the memory limit.
 */
void *arena_grow(struct arena *arena, void *items, size_t count, size_t *cap,
		 size_t size) OW_MUST_CHECK;

#define ARENA_NEW(arena, type) ((type *)arena_push(arena, sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_push_array(arena, count, sizeof(type)))

/* Copies a string and adds a NUL that len does not count; ptr is NULL on failure. */
struct str arena_str(struct arena *arena, struct str s);
/* Copies a string as a C string; NULL on failure. */
char *arena_cstr(struct arena *arena, struct str s);
char *arena_printf(struct arena *arena, const char *format, ...) OW_PRINTF(2, 3);

#endif
