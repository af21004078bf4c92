/* paths_test.c: a file counts once, however it is reached; junk in a directory is passed over. */
#include "base/paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/opwatch-paths-XXXXXX";

static void make_file(const char *name)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fputs(name, file);
	fclose(file);
}

static int make_tree(void **state)
{
	(void)state;
	if (!mkdtemp(root) || chdir(root) != 0 || chmod(root, 0755) != 0 || mkdir("d", 0755) != 0 ||
	    mkdir("d/e", 0755) != 0)
		return -1;
	make_file("d/b");
	make_file("d/e/a");
	make_file("d/.hidden");
	make_file("c");
	return symlink("..", "d/e/loop") || symlink("nowhere", "d/dangling") ||
	       symlink("b", "d/z") || mkfifo("d/fifo", 0600) || symlink("d", "same");
}

static int remove_tree(void **state)
{
	static const char *const files[] = { "d/b", "d/e/a",  "d/.hidden", "c",		"d/e/loop",
					     "d/z", "d/fifo", "same",	   "d/dangling" };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(files); i++)
		unlink(files[i]);
	rmdir("d/e");
	rmdir("d");
	return chdir("/") || rmdir(root);
}

/* `want` names the paths, a blank between. */
static void means(const char *const *words, size_t count, const char *want)
{
	struct ow_error err = { 0 };
	struct path_list list;
	char text[256] = "";
	struct mem mem;

	mem_init(&mem, 0);
	assert_int_equal(paths_expand(&list, &mem, words, count, &err), OW_OK);
	for (size_t i = 0; i < list.count; i++) {
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "", list.items[i].name);
	}
	assert_string_equal(text, want);
	arena_release(&list.arena);
	assert_int_equal(atomic_load(&mem.used), 0);
}
#define MEANS(want, ...)                                                                           \
	do {                                                                                       \
		static const char *const words_[] = { __VA_ARGS__ };                               \
		means(words_, ARRAY_COUNT(words_), want);                                          \
	} while (0)

static void test_directories(void **state)
{
	(void)state;
	MEANS("d/b d/e/a", "d");
	MEANS("d//b d/e/a", "d//b", "d/"); /* the first name is kept */
	MEANS("d/b d/e/a", "d", "same", "d/e/loop");
	MEANS("d/e/a d/e/loop/b", "d/e");
}

static void test_repeated(void **state)
{
	(void)state;
	MEANS("c", "c", "c", "./c");
	MEANS("d/z", "d/z", "d/b");
	MEANS("- c", "-", "c", "-");
	MEANS("c d/b d/e/a", "[cd]");
	MEANS("missing missing", "missing", "missing"); /* told when opened */
}

/* What root may not read is rare: another user looks. */
static void test_unreadable(void **state)
{
	static const char *const whole[] = { "d" }, *const closed[] = { "d/closed" };
	bool root_user = geteuid() == 0;
	struct ow_error err = { 0 };
	struct path_list list;
	ow_status status;
	struct mem mem;

	(void)state;
	assert_int_equal(mkdir("d/closed", 0), 0);
	if (root_user && seteuid(65534) != 0) {
		rmdir("d/closed");
		skip();
	}
	mem_init(&mem, 0);
	status = paths_expand(&list, &mem, whole, 1, &err);
	assert_int_equal(status, OW_OK);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.unreadable, 1);
	assert_string_equal(list.why.text, "d/closed: Permission denied");
	arena_release(&list.arena);
	/* Named itself it is an error. */
	status = paths_expand(&list, &mem, closed, 1, &err);
	assert_int_not_equal(status, OW_OK);
	assert_string_equal(err.text, "d/closed: Permission denied");
	arena_release(&list.arena);
	if (root_user)
		assert_int_equal(seteuid(0), 0);
	rmdir("d/closed");
}

/* Named as well as found in a directory: then it has to be a profile. */
static void test_named_and_found(void **state)
{
	static const char *const words[] = { "d", "d/b" };
	struct ow_error err = { 0 };
	struct path_list list;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(paths_expand(&list, &mem, words, 2, &err), OW_OK);
	assert_int_equal(list.count, 2);
	assert_false(list.items[0].found);
	assert_true(list.items[1].found);
	arena_release(&list.arena);
}

static void test_memory(void **state)
{
	static const char *const words[] = { "d", "c" };
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	for (unsigned n = 1; status != OW_OK; n++) {
		struct ow_error err = { 0 };
		struct path_list list;
		struct mem mem;

		mem_init(&mem, 0);
		mem_fail_after(n, true);
		status = paths_expand(&list, &mem, words, ARRAY_COUNT(words), &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		arena_release(&list.arena);
		assert_int_equal(atomic_load(&mem.used), 0);
		assert_true(n < 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directories), cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_unreadable),  cmocka_unit_test(test_named_and_found),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
