/*
 * mem.c: see mem.h. Large blocks are mapped by ourselves, aligned to huge pages and advised to use
 * them: first touch of fresh memory dominates loading, and huge pages make it about four times
 * cheaper. Growing such a block moves page tables, not bytes, so columns may simply be realloc'ed.
 * Under the address sanitizer everything comes from malloc, so that it sees every block.
 */
#include "base/mem.h"

#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define SMALL_PAGE ((size_t)64 << 10) /* the largest that is in use anywhere */
#define MAPPED_MIN (HUGE_PAGE / 2)

#if defined(__SANITIZE_ADDRESS__)
#define MAP_LARGE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define MAP_LARGE 0
#endif
#endif
#ifndef MAP_LARGE
#define MAP_LARGE 1
#endif

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

/* Which of the two kinds a block is follows from its size, which callers always know. */
static bool is_mapped(size_t size)
{
	return MAP_LARGE && size >= MAPPED_MIN;
}

static size_t mapped_length(size_t size)
{
	return (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

/* Address space that begins at a huge page; what is mapped beside it is given back. */
static void *map_aligned(size_t len)
{
	char *whole = mmap(NULL, len + HUGE_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t head;

	if (whole == MAP_FAILED)
		return NULL;
	head = (size_t)(-(uintptr_t)whole) & (HUGE_PAGE - 1);
	if (head)
		munmap(whole, head);
	if (head < HUGE_PAGE)
		munmap(whole + head + len, HUGE_PAGE - head);
	return whole + head;
}

static void *map_block(size_t size)
{
	size_t len = mapped_length(size);
	void *ptr = map_aligned(len);

	if (ptr)
		madvise(ptr, len, MADV_HUGEPAGE);
	return ptr;
}

/* Grows or cuts a mapped block, in place if that can be done. NULL leaves it as it was. */
static void *remap_block(void *ptr, size_t old_size, size_t size)
{
	size_t old_len = mapped_length(old_size), len = mapped_length(size);
	void *to;

	if (len == old_len || mremap(ptr, old_len, len, 0) != MAP_FAILED)
		return ptr;
	to = map_block(size);
	if (!to)
		return NULL;
	if (mremap(ptr, old_len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED)
		return to;
	memcpy(to, ptr, MIN(old_size, size));
	munmap(ptr, old_len);
	return to;
}

static void *get_block(size_t size)
{
	return is_mapped(size) ? map_block(size) : malloc(size ? size : 1);
}

static void free_block(void *ptr, size_t size)
{
	if (is_mapped(size))
		munmap(ptr, mapped_length(size));
	else
		free(ptr);
}

static void *resize_block(void *ptr, size_t old_size, size_t size)
{
	void *moved;

	if (ptr && is_mapped(old_size) && is_mapped(size))
		return remap_block(ptr, old_size, size);
	if (!is_mapped(size) && (!ptr || !is_mapped(old_size)))
		return realloc(ptr, size ? size : 1);
	moved = get_block(size);
	if (!moved || !ptr)
		return moved;
	memcpy(moved, ptr, MIN(old_size, size));
	free_block(ptr, old_size);
	return moved;
}

void *mem_alloc(struct mem *mem, size_t size)
{
	void *ptr;

	if (size > PTRDIFF_MAX || injected_failure() || !reserve(mem, size))
		return NULL;
	ptr = get_block(size);
	if (!ptr)
		release(mem, size);
	return ptr;
}

void *mem_zalloc(struct mem *mem, size_t size)
{
	void *ptr;

	if (size > PTRDIFF_MAX || injected_failure() || !reserve(mem, size))
		return NULL;
	ptr = is_mapped(size) ? map_block(size) : calloc(1, size ? size : 1);
	if (!ptr)
		release(mem, size);
	return ptr;
}

void *mem_realloc(struct mem *mem, void *ptr, size_t old_size, size_t size)
{
	void *moved;

	/* Making a block smaller is not refused: it is how failures are undone. */
	if (size > old_size && (size > PTRDIFF_MAX || injected_failure()))
		return NULL;
	if (size > old_size && !reserve(mem, size - old_size))
		return NULL;
	moved = resize_block(ptr, old_size, size);
	if (!moved) {
		if (size > old_size)
			release(mem, size - old_size);
		return NULL;
	}
	if (size < old_size)
		release(mem, old_size - size);
	return moved;
}

void mem_free(struct mem *mem, void *ptr, size_t size)
{
	if (!ptr)
		return;
	free_block(ptr, size);
	release(mem, size);
}

/* A huge page is touched as a whole, though only its first bytes may be used. */
void mem_trim(void *ptr, size_t size, size_t used)
{
	size_t first = (used + SMALL_PAGE - 1) & ~(SMALL_PAGE - 1);

	if (ptr && is_mapped(size) && first < mapped_length(size))
		madvise((char *)ptr + first, mapped_length(size) - first, MADV_DONTNEED);
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
