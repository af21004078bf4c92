/*
 * mem.c: see mem.h. Large blocks come from malloc's own mmap threshold; growing them moves page
 * tables, not bytes, so columns may simply be realloc'ed.
 */
#include "base/mem.h"

#include <sys/mman.h>

#define HUGE_BLOCK ((size_t)8 << 20)

static atomic_uint_fast64_t fail_countdown;
static atomic_bool fail_sticky;

void mem_fail_after(uint64_t n, bool sticky)
{
	atomic_store(&fail_sticky, sticky);
	atomic_store(&fail_countdown, n);
}

static bool injected_failure(void)
{
	uint64_t n = atomic_load_explicit(&fail_countdown, memory_order_relaxed);

	if (OW_LIKELY(n == 0))
		return false;
	if (n > 1) {
		atomic_fetch_sub(&fail_countdown, 1);
		return false;
	}
	if (!atomic_load(&fail_sticky))
		atomic_store(&fail_countdown, 0);
	return true;
}

void mem_init(struct mem *mem, size_t limit)
{
	mem->limit = limit;
	atomic_init(&mem->used, 0);
	atomic_init(&mem->peak, 0);
}

static bool reserve(struct mem *mem, size_t size)
{
	size_t now = atomic_fetch_add_explicit(&mem->used, size, memory_order_relaxed) + size;
	size_t peak = atomic_load_explicit(&mem->peak, memory_order_relaxed);

	if (now < size || (mem->limit && now > mem->limit)) {
		atomic_fetch_sub_explicit(&mem->used, size, memory_order_relaxed);
		return false;
	}
	while (now > peak && !atomic_compare_exchange_weak(&mem->peak, &peak, now))
		;
	return true;
}

static void release(struct mem *mem, size_t size)
{
	atomic_fetch_sub_explicit(&mem->used, size, memory_order_relaxed);
}

/* First touch of fresh memory dominates loading; huge pages make it about four times cheaper. */
static void advise_huge(void *ptr, size_t size)
{
	uintptr_t page = ((uintptr_t)ptr + 4095) & ~(uintptr_t)4095;

	if (size >= HUGE_BLOCK)
		madvise((void *)page, size - (page - (uintptr_t)ptr), MADV_HUGEPAGE);
}

void *mem_alloc(struct mem *mem, size_t size)
{
	void *ptr;

	if (size > PTRDIFF_MAX || injected_failure() || !reserve(mem, size))
		return NULL;
	ptr = malloc(size ? size : 1);
	if (!ptr)
		release(mem, size);
	else
		advise_huge(ptr, size);
	return ptr;
}

void *mem_zalloc(struct mem *mem, size_t size)
{
	void *ptr;

	if (size > PTRDIFF_MAX || injected_failure() || !reserve(mem, size))
		return NULL;
	ptr = calloc(1, size ? size : 1);
	if (!ptr)
		release(mem, size);
	return ptr;
}

void *mem_realloc(struct mem *mem, void *ptr, size_t old_size, size_t size)
{
	void *moved;

	if (size > PTRDIFF_MAX || injected_failure())
		return NULL;
	if (size > old_size && !reserve(mem, size - old_size))
		return NULL;
	moved = realloc(ptr, size ? size : 1);
	if (!moved) {
		if (size > old_size)
			release(mem, size - old_size);
		return NULL;
	}
	if (size < old_size)
		release(mem, old_size - size);
	else
		advise_huge(moved, size);
	return moved;
}

void mem_free(struct mem *mem, void *ptr, size_t size)
{
	if (!ptr)
		return;
	free(ptr);
	release(mem, size);
}

bool mem_grow(struct mem *mem, void **ptr, size_t *cap, size_t need, size_t elem)
{
	size_t want = *cap + *cap / 2;
	void *moved;

	if (OW_LIKELY(need <= *cap))
		return true;
	if (want < need)
		want = need;
	if (want < 8)
		want = 8;
	if (want > PTRDIFF_MAX / elem)
		return false;
	moved = mem_realloc(mem, *ptr, *cap * elem, want * elem);
	if (!moved && want > need) { /* near the limit the exact size may still fit */
		want = need;
		moved = mem_realloc(mem, *ptr, *cap * elem, want * elem);
	}
	if (!moved)
		return false;
	*ptr = moved;
	*cap = want;
	return true;
}
