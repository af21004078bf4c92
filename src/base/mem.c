/*
 * mem.c: all memory of the library, counted against one limit; arenas, buffers and columns allocate here. Blocks of
 * 1 MiB and more are mapped directly and aligned to huge pages. First touch of fresh memory dominates loading, and
 * huge pages make it about four times cheaper, unless the system has none ready (touch_is_cheap). Growing a mapped
 * block moves page tables, not bytes, so a column can be realloc'ed at any size. Under the address sanitizer every
 * block comes from malloc, where the sanitizer can check it. Blocks carry no header: callers pass sizes back.
 */
#include "base/mem.h"

#include <sys/mman.h>
#include <time.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define SMALL_PAGE ((size_t)64 << 10) /* largest size of a small page on any machine */
#define MAPPED_MIN (HUGE_PAGE / 2)
#define KEPT_MAX ((size_t)96 << 20) /* largest number of bytes in blocks that are kept for reuse */
#define LINE ((size_t)64)	    /* size of a cache line */
/* number of cache lines at which blocks may begin; together they fill a small page */
#define COLOURS ((size_t)64)
#define TRIED_MIN ((size_t)8 << 20) /* smallest block for which a huge page is tried */
/* a huge page that takes longer than this to touch is slower than small pages */
#define DEAR_NS 1000000

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

/* The thread sanitizer does not see mremap: addresses that another thread has left would count as shared. So
 * blocks grow by copying there, and none are kept. */
#if defined(__SANITIZE_THREAD__)
#define MOVE_PAGES 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MOVE_PAGES 0
#endif
#endif
#ifndef MOVE_PAGES
#define MOVE_PAGES 1
#endif

static atomic_uint_fast64_t fail_countdown;
static atomic_bool fail_sticky;

void mem_fail_after(uint64_t n, bool sticky)
{
	atomic_store(&fail_sticky, sticky);
	atomic_store(&fail_countdown, n);
}

uint64_t mem_fail_left(void)
{
	return atomic_load(&fail_countdown);
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
	atomic_flag_clear(&mem->busy);
	memset(mem->kept, 0, sizeof(mem->kept));
	mem->kept_bytes = 0;
	atomic_init(&mem->small_pages, false);
	atomic_init(&mem->colour, 0);
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

/* Subtracts the size of a freed block; returns the number of bytes still in use. */
static size_t release(struct mem *mem, size_t size)
{
	return atomic_fetch_sub_explicit(&mem->used, size, memory_order_relaxed) - size;
}

/* Returns whether a block is mapped or from malloc. This follows from its size, which callers
 * always know. */
static bool is_mapped(size_t size)
{
	return MAP_LARGE && size >= MAPPED_MIN;
}

/* Returns the length of a mapping for the block, with room for any cache line offset. */
static size_t mapped_length(size_t size)
{
	return (size + COLOURS * LINE + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

/*
 * Columns are written row by row, many of them at a time. If all began at a huge page, the same row of each would be in
 * the same set of the caches, which have room for eight: each row would evict the one before. So a block begins some
 * cache lines after the start of its mapping. That offset is its colour, and it can be read from the address of the
 * block.
 */
static size_t next_colour(struct mem *mem)
{
	size_t n = atomic_fetch_add_explicit(&mem->colour, 1, memory_order_relaxed);

	return n * 11 % COLOURS * LINE;
}

static size_t colour_of(const char *ptr)
{
	return (uintptr_t)ptr & (HUGE_PAGE - 1);
}

/* Reserves address space that begins at a huge page; the surplus on both sides is unmapped. */
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

static int64_t thread_ns(void)
{
	struct timespec t;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0
		       ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec
		       : 0;
}

/* Touches the first page of memory that is about to be written. A huge page takes 0.1 to 0.3 ms. It takes 4 ms or
 * more where the host of a virtual machine has reclaimed free memory (it does so in huge pages, a second after they
 * are freed), or where the system has to assemble one from small pages. Small pages are mostly left over from other
 * programs and still present. */
static bool touch_is_cheap(char *page)
{
	int64_t before = thread_ns();

	*(volatile char *)page = 0;
	return thread_ns() - before < DEAR_NS;
}

/* Asks for huge pages for untouched memory that begins at a huge page. Only for pages that it fills: a huge page at
 * the end would be touched as a whole, and with two dozen columns that adds up. */
static void advise_huge(struct mem *mem, char *at, size_t len)
{
	len &= ~(HUGE_PAGE - 1);
	if (!len || atomic_load_explicit(&mem->small_pages, memory_order_relaxed))
		return;
	if (len >= TRIED_MIN) {
		madvise(at, HUGE_PAGE, MADV_HUGEPAGE);
		if (!touch_is_cheap(at)) {
			atomic_store_explicit(&mem->small_pages, true, memory_order_relaxed);
			return;
		}
	}
	madvise(at, len, MADV_HUGEPAGE);
}

/* Moves pages, not bytes, to address space that is mapped and not in use. A block may consist of pages from several
 * others, which the system moves only one by one. Returns how many bytes were moved: fewer than requested when the
 * system lacks memory for its own tables; `to` stays mapped in any case. */
static size_t move_pages(char *to, char *from, size_t len)
{
	size_t done = 0;

	for (; done < len; done += HUGE_PAGE) {
		if (mremap(from + done, HUGE_PAGE, HUGE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			   to + done) != MAP_FAILED)
			continue;
		/* The failed move has left a hole at this address: map new pages there. */
		if (mmap(to + done, HUGE_PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			abort(); /* a hole in a block that is in use cannot be repaired */
		break;
	}
	return done;
}

/* Grows or shrinks a mapped block, in place if possible. On failure returns NULL and leaves it
 * unchanged. */
static void *remap_block(struct mem *mem, char *ptr, size_t old_size, size_t size)
{
	size_t old_len = mapped_length(old_size), len = mapped_length(size), moved = 0;
	size_t both = MIN(old_len, len), colour = colour_of(ptr);
	char *from = ptr - colour, *to;

	if (len == old_len)
		return ptr;
	if ((len < old_len || MOVE_PAGES) && mremap(from, old_len, len, 0) != MAP_FAILED) {
		to = from;
		goto out;
	}
	to = map_aligned(len);
	if (!to)
		return NULL;
	if (MOVE_PAGES)
		moved = move_pages(to, from, both);
	if (moved < both)
		memcpy(to + moved, from + moved, both - moved);
	if (moved < old_len) /* another thread may have mapped the rest in the meantime */
		munmap(from + moved, old_len - moved);
out:
	if (colour + size > old_len)
		advise_huge(mem, to + old_len, colour + size - old_len);
	return to + colour;
}

static void lock(struct mem *mem)
{
	while (atomic_flag_test_and_set_explicit(&mem->busy, memory_order_acquire))
		;
}

static void unlock(struct mem *mem)
{
	atomic_flag_clear_explicit(&mem->busy, memory_order_release);
}

/* Takes up to *len bytes from the beginning of the largest kept block; NULL if there is none. */
static void *take_kept(struct mem *mem, size_t *len)
{
	struct mem_kept *best = &mem->kept[0];
	char *ptr = NULL;

	lock(mem);
	for (size_t i = 1; i < MEM_KEPT; i++)
		if (mem->kept[i].len > best->len)
			best = &mem->kept[i];
	*len = MIN(*len, best->len);
	if (*len) {
		ptr = best->ptr;
		best->ptr += *len;
		best->len -= *len;
		mem->kept_bytes -= *len;
	}
	unlock(mem);
	return ptr;
}

/* Takes the beginning of the smallest kept block of at least len bytes; NULL if there is none. */
static void *take_whole(struct mem *mem, size_t len)
{
	struct mem_kept *best = NULL;
	char *ptr = NULL;

	lock(mem);
	for (size_t i = 0; i < MEM_KEPT; i++)
		if (mem->kept[i].len >= len && (!best || mem->kept[i].len < best->len))
			best = &mem->kept[i];
	if (best) {
		ptr = best->ptr;
		best->ptr += len;
		best->len -= len;
		mem->kept_bytes -= len;
	}
	unlock(mem);
	return ptr;
}

static bool keep_pages(struct mem *mem, void *ptr, size_t len)
{
	bool kept = false;

	if (mem->limit || !MOVE_PAGES)
		return false;
	lock(mem);
	for (size_t i = 0; i < MEM_KEPT && !kept && len <= KEPT_MAX - mem->kept_bytes; i++) {
		if (mem->kept[i].len)
			continue;
		mem->kept[i] = (struct mem_kept){ ptr, len };
		mem->kept_bytes += len;
		kept = true;
	}
	unlock(mem);
	return kept;
}

static void drop_kept(struct mem *mem)
{
	struct mem_kept kept[MEM_KEPT];

	lock(mem);
	memcpy(kept, mem->kept, sizeof(kept));
	memset(mem->kept, 0, sizeof(kept));
	mem->kept_bytes = 0;
	unlock(mem);
	for (size_t i = 0; i < MEM_KEPT; i++)
		if (kept[i].len)
			munmap(kept[i].ptr, kept[i].len);
}

/* Moves kept pages to the beginning of unused address space. Returns the number of bytes. */
static size_t fill_from_kept(struct mem *mem, char *at, size_t len)
{
	size_t done = 0, moved, piece;

	do {
		char *kept;

		piece = len - done;
		kept = take_kept(mem, &piece);
		if (!kept)
			return done;
		moved = move_pages(at + done, kept, piece);
		if (moved < piece)
			munmap(kept + moved, piece - moved);
		done += moved;
	} while (done < len && moved == piece);
	return done;
}

/* Gets a block. *dirty becomes the number of bytes at its start that may not be zero. */
static void *get_block(struct mem *mem, size_t size, size_t *dirty)
{
	size_t filled, colour;
	char *at;

	*dirty = size;
	if (!is_mapped(size))
		return malloc(size ? size : 1);
	colour = next_colour(mem);
	at = take_whole(mem, mapped_length(size));
	if (at)
		return at + colour;
	at = map_aligned(mapped_length(size));
	if (!at)
		return NULL;
	filled = fill_from_kept(mem, at, mapped_length(size));
	*dirty = filled ? MIN(size, filled - colour) : 0;
	if (filled < colour + size)
		advise_huge(mem, at + filled, colour + size - filled);
	return at + colour;
}

static void free_block(struct mem *mem, void *ptr, size_t size)
{
	char *at = ptr;

	if (!is_mapped(size)) {
		free(ptr);
		return;
	}
	at -= colour_of(at);
	if (!keep_pages(mem, at, mapped_length(size)))
		munmap(at, mapped_length(size));
}

/* Bytes of a mapped block after its old size may have been used before it was cut or kept; pages that are new to it
 * are zero. */
static void *resize_mapped(struct mem *mem, void *ptr, size_t old_size, size_t size, bool zero)
{
	size_t known = MIN(size, mapped_length(old_size) - colour_of(ptr));
	char *moved = remap_block(mem, ptr, old_size, size);

	if (moved && zero && known > old_size)
		memset(moved + old_size, 0, known - old_size);
	return moved;
}

static void *resize_block(struct mem *mem, void *ptr, size_t old_size, size_t size, bool zero)
{
	size_t kept = ptr ? MIN(old_size, size) : 0, dirty = size;
	char *moved;

	if (ptr && is_mapped(old_size) && is_mapped(size))
		return resize_mapped(mem, ptr, old_size, size, zero);
	if (!is_mapped(size) && (!ptr || !is_mapped(old_size))) {
		moved = realloc(ptr, size ? size : 1);
	} else {
		moved = get_block(mem, size, &dirty);
		if (moved && ptr) {
			memcpy(moved, ptr, kept);
			free_block(mem, ptr, old_size);
		}
	}
	if (moved && zero && dirty > kept)
		memset(moved + kept, 0, dirty - kept);
	return moved;
}

void *mem_alloc(struct mem *mem, size_t size)
{
	void *ptr;
	size_t dirty;

	if (size > PTRDIFF_MAX || injected_failure() || !reserve(mem, size))
		return NULL;
	ptr = get_block(mem, size, &dirty);
	if (!ptr)
		release(mem, size);
	return ptr;
}

void *mem_zalloc(struct mem *mem, size_t size)
{
	void *ptr;
	size_t dirty = 0;

	if (size > PTRDIFF_MAX || injected_failure() || !reserve(mem, size))
		return NULL;
	ptr = is_mapped(size) ? get_block(mem, size, &dirty) : calloc(1, size ? size : 1);
	if (!ptr)
		release(mem, size);
	else if (dirty)
		memset(ptr, 0, dirty);
	return ptr;
}

static void *resize(struct mem *mem, void *ptr, size_t old_size, size_t size, bool zero)
{
	void *moved;

	/* Shrinking a block never fails, because callers use it to undo failures. */
	if (size > old_size && (size > PTRDIFF_MAX || injected_failure()))
		return NULL;
	if (size > old_size && !reserve(mem, size - old_size))
		return NULL;
	moved = resize_block(mem, ptr, old_size, size, zero && size > old_size);
	if (!moved) {
		if (size > old_size)
			release(mem, size - old_size);
		return NULL;
	}
	if (size < old_size)
		release(mem, old_size - size);
	return moved;
}

void *mem_realloc(struct mem *mem, void *ptr, size_t old_size, size_t size)
{
	return resize(mem, ptr, old_size, size, false);
}

void *mem_realloc_zero(struct mem *mem, void *ptr, size_t old_size, size_t size)
{
	return resize(mem, ptr, old_size, size, true);
}

void mem_free(struct mem *mem, void *ptr, size_t size)
{
	if (!ptr)
		return;
	free_block(mem, ptr, size);
	if (release(mem, size) == 0)
		drop_kept(mem);
}

void mem_use_kept(struct mem *mem, void *ptr, size_t size, size_t first, size_t last)
{
	char *at = ptr;
	size_t begin, end, filled;

	if (!is_mapped(size))
		return;
	at -= colour_of(at);
	last += colour_of(ptr);
	begin = (first + colour_of(ptr) + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	end = (last + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	if (begin >= end)
		return;
	filled = fill_from_kept(mem, at + begin, end - begin);
	if (begin + filled > last) /* the rest of the block is zero already */
		memset(at + last, 0, begin + filled - last);
}

/* Returns unused pages to the system. A huge page is allocated as a whole, although only its
 * first bytes may be used. */
void mem_trim(void *ptr, size_t size)
{
	char *at = ptr;
	size_t first, len = mapped_length(size);

	if (!ptr || !is_mapped(size))
		return;
	at -= colour_of(at);
	first = (colour_of(ptr) + size + SMALL_PAGE - 1) & ~(SMALL_PAGE - 1);
	if (first < len)
		madvise(at + first, len - first, MADV_DONTNEED);
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
	/* near the limit the exact size may fit when the larger one does not */
	if (!moved && want > need) {
		want = need;
		moved = mem_realloc(mem, *ptr, *cap * elem, want * elem);
	}
	if (!moved)
		return false;
	*ptr = moved;
	*cap = want;
	return true;
}
