/* atomic_file_test.c: files appear whole or not at all, and nothing is seen of them before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "api/atomic_file.h"

struct place {
	char dir[64], path[128];
	struct mem mem;
};

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	mem_init(&p->mem, 0);
	snprintf(p->dir, sizeof(p->dir), "/tmp/opwatch-atomic-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/out", p->dir);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	assert_int_equal(atomic_load(&p->mem.used), 0);
	unlink(p->path);
	assert_int_equal(rmdir(p->dir), 0); /* nothing was left behind */
	free(p);
	return 0;
}

static unsigned files_in(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned count = 0;
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)))
		count += e->d_name[0] != '.';
	closedir(d);
	return count;
}

static void assert_content(const char *path, const char *text)
{
	char got[64] = { 0 };
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_int_equal(fread(got, 1, sizeof(got) - 1, f), strlen(text));
	assert_string_equal(got, text);
	fclose(f);
}

static bool can_be_unnamed(const char *dir)
{
	int fd = open(dir, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void write_file(struct place *p, const char *text, ow_status status)
{
	struct error err = { 0 };
	struct atomic_file file;

	assert_int_equal(atomic_open(&file, &p->mem, p->path, &err), OW_OK);
	assert_true(atomic_write(&file, text, strlen(text)));
	assert_int_equal(atomic_finish(&file, status, &err), status);
}

static void test_appears_at_the_end(void **state)
{
	struct place *p = *state;
	struct error err = { 0 };
	struct atomic_file file;

	assert_int_equal(atomic_open(&file, &p->mem, p->path, &err), OW_OK);
	assert_true(atomic_write(&file, "text", 4));
	if (can_be_unnamed(p->dir)) /* killed now, it would leave nothing */
		assert_int_equal(files_in(p->dir), 0);
	assert_int_equal(atomic_finish(&file, OW_OK, &err), OW_OK);
	assert_int_equal(files_in(p->dir), 1);
	assert_content(p->path, "text");
}

static void test_replaces_or_leaves_alone(void **state)
{
	struct place *p = *state;

	write_file(p, "one", OW_OK);
	write_file(p, "two", OW_E_INTERRUPTED);
	assert_content(p->path, "one");
	write_file(p, "three", OW_OK);
	assert_content(p->path, "three");
	assert_int_equal(files_in(p->dir), 1);
}

/* The temporary name can be guessed: what was put there is neither written to nor in the way. */
static void test_name_is_taken(void **state)
{
	struct place *p = *state;
	char name[160], other[128];

	snprintf(name, sizeof(name), "%s.tmp%ld", p->path, (long)getpid());
	snprintf(other, sizeof(other), "%s/other", p->dir);
	assert_int_equal(symlink(other, name), 0);
	write_file(p, "text", OW_OK);
	assert_content(p->path, "text");
	assert_int_equal(files_in(p->dir), 1);
}

static void test_cannot_be_written(void **state)
{
	struct place *p = *state;
	struct error err = { 0 };
	struct atomic_file file;
	char path[160];

	snprintf(path, sizeof(path), "%s/none/out", p->dir);
	assert_int_equal(atomic_open(&file, &p->mem, path, &err), OW_E_NOT_FOUND);
	assert_non_null(strstr(err.text, path));
	assert_int_not_equal(atomic_open(&file, &p->mem, p->dir, &err), OW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_appears_at_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replaces_or_leaves_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_name_is_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cannot_be_written, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
