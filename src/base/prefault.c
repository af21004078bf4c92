/*
 * prefault.c: asks the kernel to map all pages inside a range in one call instead of one fault per page. The
 * TensorFlow and XSpace importers and the interpretation of traces call it before they fill large columns. Only
 * advice: a kernel without MADV_POPULATE_WRITE refuses, the result is ignored, and pages are then mapped as they are
 * touched.
 */
#include "base/prefault.h"

#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
/* needs Linux 5.14; older kernels refuse it, and pages are allocated one by one */
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE ((uintptr_t)64 << 10) /* largest size of a small page on any machine */

void prefault(void *ptr, size_t first, size_t last)
{
	uintptr_t begin = ((uintptr_t)ptr + first + PAGE - 1) & ~(PAGE - 1);
	uintptr_t end = ((uintptr_t)ptr + last) & ~(PAGE - 1);

	if (ptr && begin < end)
		madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}
