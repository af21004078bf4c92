/*
 * new_file_test.c: files that take their place when there is something in them: what was there stays, links are followed,
 * a name that somebody else has taken is not written through; and recordings that are made so, without memory, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>

#include "live/recording.h"

static char folder[64], path[80], part[128], link_path[80];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/opwatch-new-file-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x", folder);
	snprintf(part, sizeof(part), "%s.part-%d", path, (int)getpid());
	snprintf(link_path, sizeof(link_path), "%s/l", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	unlink(part);
	unlink(link_path);
	assert_int_equal(rmdir(folder), 0); /* nothing else is left */
	return 0;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void holds(const char *name, const char *text)
{
	char found[64] = "";
	FILE *f = fopen(name, "r");

	assert_non_null(f);
	(void)!fgets(found, sizeof(found), f);
	fclose(f);
	assert_string_equal(found, text);
}

static void write_new(struct new_file *file, const char *name)
{
	int fd = new_file_open(file, name);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "new", 3), 3);
	close(fd);
}

static void stays_until_then(void **state)
{
	struct new_file file;
	struct stat st;

	(void)state;
	put(path, "old");
	write_new(&file, path);
	holds(path, "old");
	assert_true(new_file_appear(&file));
	holds(path, "new");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	new_file_drop(&file); /* changes nothing any more */
	holds(path, "new");
}

static void stays_when_dropped(void **state)
{
	struct new_file file;

	(void)state;
	put(path, "old");
	write_new(&file, path);
	new_file_drop(&file);
	holds(path, "old");
	assert_int_not_equal(access(part, F_OK), 0);
}

static void follows_links(void **state)
{
	struct new_file file;
	struct stat st;

	(void)state;
	put(path, "old");
	assert_int_equal(symlink("x", link_path), 0);
	write_new(&file, link_path);
	holds(path, "old");
	assert_true(new_file_appear(&file));
	holds(path, "new");
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static void links_to_nothing(void **state)
{
	struct new_file file;

	(void)state;
	assert_int_equal(symlink("x", link_path), 0);
	write_new(&file, link_path);
	new_file_drop(&file);
	assert_int_not_equal(access(path, F_OK), 0);
	write_new(&file, link_path);
	assert_true(new_file_appear(&file));
	holds(path, "new");
}

/* Of a process that was killed, or of somebody who would like us to write elsewhere. */
static void a_name_that_is_taken(void **state)
{
	struct new_file file;

	(void)state;
	put(path, "old");
	assert_int_equal(symlink(path, part), 0);
	write_new(&file, path);
	holds(path, "old");
	assert_true(new_file_appear(&file));
	holds(path, "new");
}

static void places_that_cannot_be_written(void **state)
{
	struct new_file file;
	char name[PATH_MAX + 16];

	(void)state;
	assert_int_equal(new_file_open(&file, "/no/such/folder/x"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(new_file_open(&file, folder), -1);
	assert_int_equal(errno, EISDIR);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(new_file_open(&file, name), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	new_file_drop(&file);
}

static void recordings_without_memory(void **state)
{
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	put(path, "old");
	for (uint64_t n = 1; status == OW_E_NO_MEMORY; n++) {
		struct error err = { 0 };
		struct recording r;
		struct mem mem;

		mem_init(&mem, 0);
		mem_fail_after(n, true);
		status = recording_open_beside(&r, &mem, path, "test", &err);
		mem_fail_after(0, false);
		holds(path, "old");
		if (status == OW_OK)
			assert_int_equal(recording_close(&r, &err), OW_OK);
		assert_int_equal(mem.used, 0);
	}
	assert_int_equal(status, OW_OK);
	holds(path, "old"); /* it did not appear */
}

/* The place has become a folder meanwhile: what is recorded is not lost. */
static void recordings_that_cannot_appear(void **state)
{
	struct error err = { 0 };
	struct recording r;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(recording_open_beside(&r, &mem, path, "test", &err), OW_OK);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(recording_appear(&r, &err), OW_E_IO);
	assert_non_null(strstr(err.text, part));
	assert_int_equal(recording_close(&r, &err), OW_OK);
	assert_int_equal(access(part, F_OK), 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mem.used, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(stays_until_then),
		TEST(stays_when_dropped),
		TEST(follows_links),
		TEST(links_to_nothing),
		TEST(a_name_that_is_taken),
		TEST(places_that_cannot_be_written),
		TEST(recordings_without_memory),
		TEST(recordings_that_cannot_appear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
