/*
 * mem.h: accounted memory. Every byte the library holds is allocated through a `struct mem`, which knows the user's
 * limit and counts the bytes in use. All functions return NULL at the limit or when the system refuses; callers turn
 * that into OW_E_NO_MEMORY.
 *
 * Sizes are passed back on free and realloc, so blocks carry no header. Thread-safe.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/base.h"

#include <stdatomic.h>

/* Large blocks that were freed and are kept for reuse: memory that was touched before is many times cheaper than
 * fresh memory. They are unmapped when nothing is in use any more. Under a limit nothing is kept. */
#define MEM_KEPT 64

struct mem_kept {
	char *ptr;
	size_t len;
};

struct mem {
	size_t limit; /* memory limit in bytes; 0 = none */
	atomic_size_t used;
	atomic_size_t peak;
	atomic_flag busy;	 /* true while a thread uses `kept` */
	atomic_bool small_pages; /* use small pages, because huge pages were slow to touch */
	/* number of blocks that were mapped; chooses their cache line offset */
	atomic_size_t colour;
	struct mem_kept kept[MEM_KEPT];
	size_t kept_bytes;
};

void mem_init(struct mem *mem, size_t limit);
void *mem_alloc(struct mem *mem, size_t size) OW_MUST_CHECK;
void *mem_zalloc(struct mem *mem, size_t size) OW_MUST_CHECK;
/* Changes the size of a block. Shrinking never fails. */
void *mem_realloc(struct mem *mem, void *ptr, size_t old_size, size_t size) OW_MUST_CHECK;
/* Changes the size of a block; new bytes are zero. Large new parts are not touched for that. */
void *mem_realloc_zero(struct mem *mem, void *ptr, size_t old_size, size_t size) OW_MUST_CHECK;
void mem_free(struct mem *mem, void *ptr, size_t size);
/* Backs the bytes [first, last) of a block with pages of kept blocks, as far as there are any. The caller is going
 * to write all of them; until then they hold anything. Nothing from `first` on may have been touched yet. */
void mem_use_kept(struct mem *mem, void *ptr, size_t size, size_t first, size_t last);
/* Returns to the system the pages behind the end of a block that came with a huge page. */
void mem_trim(void *ptr, size_t size);

/* Ensures that the array *ptr of `elem`-byte items holds `need` of them; *cap counts items and grows
 * by half. On failure nothing changes and false is returned. */
bool mem_grow(struct mem *mem, void **ptr, size_t *cap, size_t need, size_t elem) OW_MUST_CHECK;

/* For tests: make the n-th allocation from now fail (1 = the next), and all after it when sticky;
 * 0 switches the injection off. Process-wide. */
void mem_fail_after(uint64_t n, bool sticky);
/* Returns how many allocations are left until the injected failure. */
uint64_t mem_fail_left(void);

#endif
