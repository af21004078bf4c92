/*
 * arena.c: the allocator of one lifetime: the model, results, commands and most scratch memory use it. Blocks double
 * from 4 KiB to 2 MiB; a larger request gets a block of its own, and the rest of the current block stays usable.
 * Memory comes from mem.c and counts against its limit. Nothing is freed alone, and no lock is taken: each arena has
 * one owner.
 */
#include "base/arena.h"

#include <stdarg.h>

#define BLOCK_MIN ((size_t)4 << 10)
#define BLOCK_MAX ((size_t)2 << 20)

struct arena_block {
	struct arena_block *next;
	size_t size; /* size of the block, including this header */
};

void arena_init(struct arena *arena, struct mem *mem)
{
	*arena = (struct arena){ .mem = mem };
}

void arena_release(struct arena *arena)
{
	struct arena_block *block = arena->blocks;

	while (block) {
		struct arena_block *next = block->next;

		mem_free(arena->mem, block, block->size);
		block = next;
	}
	arena->blocks = NULL;
	arena->next = NULL;
	arena->left = 0;
}

void arena_clear(struct arena *arena)
{
	arena_release(arena);
}

static bool add_block(struct arena *arena, size_t need)
{
	size_t size = arena->blocks ? arena->blocks->size * 2 : BLOCK_MIN;
	struct arena_block *block;

	if (need > PTRDIFF_MAX - sizeof(*block) - 16)
		return false;
	size = MIN(size, BLOCK_MAX);
	size = MAX(size, need + sizeof(*block) + 16);
	block = mem_alloc(arena->mem, size);
	if (!block)
		return false;
	block->size = size;
	/* An oversized block is linked behind the current block, whose free rest stays usable. */
	if (size > BLOCK_MAX && arena->blocks && arena->left > 256) {
		block->next = arena->blocks->next;
		arena->blocks->next = block;
		return true;
	}
	block->next = arena->blocks;
	arena->blocks = block;
	arena->next = (char *)(block + 1);
	arena->left = size - sizeof(*block);
	return true;
}

void *arena_push_aligned(struct arena *arena, size_t size, size_t align)
{
	size_t pad = (size_t)(-(uintptr_t)arena->next) & (align - 1);
	char *ptr;

	size = MAX(size, 1); /* a size of 0 must not return NULL, which means failure */
	if (OW_UNLIKELY(size > arena->left || pad > arena->left - size)) {
		struct arena_block *top = arena->blocks;

		if (!add_block(arena, size))
			return NULL;
		if (arena->blocks == top) /* an oversized block was placed behind the current one */
			return (void *)(((uintptr_t)(top->next + 1) + 15) & ~(uintptr_t)15);
		pad = (size_t)(-(uintptr_t)arena->next) & (align - 1);
	}
	ptr = arena->next + pad;
	arena->next = ptr + size;
	arena->left -= pad + size;
	return ptr;
}

void *arena_push(struct arena *arena, size_t size)
{
	void *ptr = arena_push_aligned(arena, size, 16);

	if (ptr)
		memset(ptr, 0, size);
	return ptr;
}

void *arena_push_array(struct arena *arena, size_t count, size_t size)
{
	if (size && count > PTRDIFF_MAX / size)
		return NULL;
	return arena_push(arena, count * size);
}

void *arena_grow(struct arena *arena, void *items, size_t count, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 8;
	void *grown;

	if (count < *cap)
		return items;
	grown = arena_push_array(arena, more, size);
	if (!grown)
		return NULL;
	if (count)
		memcpy(grown, items, count * size);
	*cap = more;
	return grown;
}

struct str arena_str(struct arena *arena, struct str s)
{
	char *copy = arena_push_aligned(arena, s.len + 1, 1);

	if (!copy)
		return (struct str){ 0 };
	if (s.len)
		memcpy(copy, s.ptr, s.len);
	copy[s.len] = '\0';
	return (struct str){ copy, s.len };
}

char *arena_cstr(struct arena *arena, struct str s)
{
	return (char *)arena_str(arena, s).ptr;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	text = arena_push_aligned(arena, (size_t)len + 1, 1);
	if (!text)
		return NULL;
	va_start(args, format);
	vsnprintf(text, (size_t)len + 1, format, args);
	va_end(args);
	return text;
}
