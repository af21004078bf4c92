/* prefault_test.c: memory that is asked for keeps what it has, and nothing around it is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/prefault.h"

#include <string.h>
#include <sys/mman.h>

#define SIZE ((size_t)1 << 20)

/* How many pages of the block are there. */
static size_t resident(void *ptr)
{
	unsigned char pages[SIZE / 4096] = { 0 };
	size_t count = 0;

	assert_int_equal(mincore(ptr, SIZE, pages), 0);
	for (size_t i = 0; i < sizeof(pages); i++)
		count += pages[i] & 1;
	return count;
}

static void only_whole_pages_inside(void **state)
{
	char *ptr = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(ptr, MAP_FAILED);
	madvise(ptr, SIZE, MADV_NOHUGEPAGE);
	prefault(ptr, 100, 2000); /* less than a page */
	assert_int_equal(resident(ptr), 0);
	memset(ptr + 300000, 7, 5000);
	prefault(ptr, 200000, 600000);
	assert_int_equal(ptr[300000], 7);
	assert_int_equal(ptr[304999], 7);
	assert_int_equal(ptr[305000], 0);
	assert_in_range(resident(ptr), 1, 400000 / 4096 + 1); /* an old system does nothing */
	prefault(NULL, 0, SIZE);
	prefault(ptr, SIZE, 0);
	munmap(ptr, SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(only_whole_pages_inside) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
