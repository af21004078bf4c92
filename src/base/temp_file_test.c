/* temp_file_test.c: temporary files, and the room that is left to others. */
#include "base/temp_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define MB ((uint64_t)1 << 20)
#define GB ((uint64_t)1 << 30)

static void test_room(void **state)
{
	(void)state;
	/* a twentieth stays free on a small disk, 1 GiB on a large one */
	assert_true(temp_file_fits(100 * MB, 50 * MB, 45 * MB));
	assert_false(temp_file_fits(100 * MB, 50 * MB, 45 * MB + 1));
	assert_true(temp_file_fits(1000 * GB, 11 * GB, 10 * GB));
	assert_false(temp_file_fits(1000 * GB, 11 * GB, 10 * GB + 1));
	assert_false(temp_file_fits(100 * MB, 50 * MB, 51 * MB));
	assert_false(temp_file_fits(100 * MB, 0, 1));
	assert_true(temp_file_fits(0, 0, 1)); /* tells nothing */
}

static void test_write(void **state)
{
	struct ow_error err = { 0 };
	int fd = temp_file_open(&err);
	char back[6] = "";

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(temp_file_write(fd, 0, "abcdef", 6, &err), OW_OK);
	assert_int_equal(temp_file_write(fd, 2, "XY", 2, &err), OW_OK);
	assert_int_equal(pread(fd, back, 6, 0), 6);
	assert_memory_equal(back, "abXYef", 6);
	close(fd);
}

static void test_no_directory(void **state)
{
	struct ow_error err = { 0 };

	(void)state;
	setenv("TMPDIR", "/proc/nonexistent", 1);
	assert_int_equal(temp_file_open(&err), -1);
	unsetenv("TMPDIR");
	assert_int_equal(err.status, OW_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "in /proc/nonexistent (set TMPDIR)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_no_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
