/* atomic_file_test.c: files appear whole or not at all, and nothing is seen of them before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/atomic_file.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

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
	struct ow_error err = { 0 };
	struct atomic_file file;

	assert_int_equal(atomic_open(&file, &p->mem, p->path, &err), OW_OK);
	assert_true(atomic_write(&file, text, strlen(text)));
	assert_int_equal(atomic_finish(&file, status, &err), status);
}

static void test_appears_at_the_end(void **state)
{
	struct place *p = *state;
	struct ow_error err = { 0 };
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
	struct ow_error err = { 0 };
	struct atomic_file file;
	char path[160];

	snprintf(path, sizeof(path), "%s/none/out", p->dir);
	assert_int_equal(atomic_open(&file, &p->mem, path, &err), OW_E_NOT_FOUND);
	assert_non_null(strstr(err.text, path));
	assert_int_not_equal(atomic_open(&file, &p->mem, p->dir, &err), OW_OK);
}

/* ---- what may be replaced ---- */

struct other {
	char path[160];
};

static struct other other_name(const struct place *p, const char *name)
{
	struct other o;

	snprintf(o.path, sizeof(o.path), "%s/%s", p->dir, name);
	return o;
}

static mode_t kind_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & S_IFMT;
}

static void try_to_write(struct place *p, const char *path, ow_status want)
{
	struct ow_error err = { 0 };
	struct atomic_file file;
	ow_status status = atomic_open(&file, &p->mem, path, &err);

	if (status == OW_OK) {
		assert_true(atomic_write(&file, "new", 3));
		status = atomic_finish(&file, OW_OK, &err);
	}
	assert_int_equal(status, want);
	if (want != OW_OK)
		assert_non_null(strstr(err.text, path));
}

static void test_links_are_followed(void **state)
{
	struct place *p = *state;
	struct other near = other_name(p, "near"), far = other_name(p, "far");

	write_file(p, "old", OW_OK);
	assert_int_equal(symlink("out", near.path), 0);
	assert_int_equal(symlink(near.path, far.path), 0);
	try_to_write(p, far.path, OW_OK);
	assert_content(p->path, "new");
	assert_int_equal(kind_of(near.path), S_IFLNK);
	assert_int_equal(kind_of(far.path), S_IFLNK);
	unlink(p->path); /* both lead nowhere now */
	try_to_write(p, far.path, OW_OK);
	assert_content(p->path, "new");
	assert_int_equal(kind_of(near.path), S_IFLNK);
	unlink(near.path);
	unlink(far.path);
	assert_int_equal(symlink("loop", other_name(p, "loop").path), 0);
	try_to_write(p, other_name(p, "loop").path, OW_E_IO);
	unlink(other_name(p, "loop").path);
}

static void test_pipes_are_written_to(void **state)
{
	struct place *p = *state;
	struct ow_error err = { 0 };
	struct atomic_path where;
	char got[8] = "";
	int fd;

	assert_int_equal(mkfifo(p->path, 0600), 0);
	fd = open(p->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	try_to_write(p, p->path, OW_OK);
	assert_int_equal(read(fd, got, sizeof(got)), 3);
	assert_string_equal(got, "new");
	assert_int_equal(kind_of(p->path), S_IFIFO);
	assert_int_equal(atomic_path_find_regular(&where, p->path, "a thing", &err), OW_E_USAGE);
	assert_non_null(strstr(err.text, "is a pipe; a thing needs the name of a regular file"));
	close(fd);
}

/* A device of our own with the numbers of /dev/null; only root can make one. */
static void test_devices_are_written_to(void **state)
{
	struct place *p = *state;
	struct other link = other_name(p, "link"), disk = other_name(p, "disk");

	if (mknod(p->path, S_IFCHR | 0600, makedev(1, 3)) != 0)
		skip();
	try_to_write(p, p->path, OW_OK);
	assert_int_equal(kind_of(p->path), S_IFCHR);
	assert_int_equal(symlink("out", link.path), 0);
	try_to_write(p, link.path, OW_OK);
	assert_int_equal(kind_of(p->path), S_IFCHR);
	assert_int_equal(kind_of(link.path), S_IFLNK);
	unlink(link.path);
	if (mknod(disk.path, S_IFBLK | 0600, makedev(7, 250)) == 0) {
		try_to_write(p, disk.path, OW_E_IO);
		assert_int_equal(kind_of(disk.path), S_IFBLK);
		unlink(disk.path);
	}
}

static void test_others_are_refused(void **state)
{
	struct place *p = *state;
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(strlen(p->path) < sizeof(name.sun_path));
	memcpy(name.sun_path, p->path, strlen(p->path));
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	try_to_write(p, p->path, OW_E_IO);
	assert_int_equal(kind_of(p->path), S_IFSOCK);
	close(fd);
	try_to_write(p, p->dir, OW_E_IO);
}

/* Between the look at the place and the end somebody has put something else there. */
static void test_changes_meanwhile(void **state)
{
	struct place *p = *state;
	struct ow_error err = { 0 };
	struct atomic_file file;

	assert_int_equal(atomic_open(&file, &p->mem, p->path, &err), OW_OK);
	assert_int_equal(mkfifo(p->path, 0600), 0);
	assert_int_equal(atomic_finish(&file, OW_OK, &err), OW_E_IO);
	assert_int_equal(kind_of(p->path), S_IFIFO);
	assert_int_equal(files_in(p->dir), 1);
}

static void test_by_descriptor(void **state)
{
	struct place *p = *state;
	struct ow_error err = { 0 };
	struct atomic_path where;
	struct stat st;
	int fd;

	write_file(p, "old", OW_OK);
	assert_int_equal(atomic_path_find(&where, p->path, &err), OW_OK);
	fd = atomic_path_open(&where, O_RDWR, 0600);
	assert_int_equal(write(fd, "new", 3), 3);
	close(fd);
	assert_content(p->path, "old");
	assert_int_equal(atomic_path_publish(&where, &err), OW_OK);
	assert_content(p->path, "new");
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(atomic_path_open(&where, O_RDWR, 0600));
	atomic_path_discard(&where);
	assert_content(p->path, "new");
	assert_int_equal(atomic_write_whole(p->path, STR("whole"), 0600, &err), OW_OK);
	assert_content(p->path, "whole");
}

static void test_names_that_are_too_long(void **state)
{
	char name[PATH_MAX + 16];
	struct atomic_path where;
	struct ow_error err = { 0 };

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_not_equal(atomic_path_find(&where, name, &err), OW_OK);
	name[PATH_MAX - 4] = '\0';
	assert_int_not_equal(atomic_path_find(&where, name, &err), OW_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_appears_at_the_end),	    TEST(test_replaces_or_leaves_alone),
		TEST(test_name_is_taken),	    TEST(test_cannot_be_written),
		TEST(test_links_are_followed),	    TEST(test_pipes_are_written_to),
		TEST(test_devices_are_written_to),  TEST(test_others_are_refused),
		TEST(test_changes_meanwhile),	    TEST(test_by_descriptor),
		TEST(test_names_that_are_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
