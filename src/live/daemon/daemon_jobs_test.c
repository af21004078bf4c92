/*
 * daemon_jobs_test.c: unit test of the saved incidents in daemon_jobs.c: which files of a folder they are and of which job; the oldest
 * are removed when they take too much, other files never; failing allocations leak and remove nothing.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "live/daemon/daemon_int.h"

static char folder[64];
static const char *const names[] = { "job-7-slow-120304.opw",	"a-b-12-stall-000000.opw",
				     "job-7-slow-120305.opw",	"job-7-stall-120306.opw",
				     "other-7-fast-120304.opw", "000001.opw",
				     "job-7-slow-120304.txt" };
#define SAVED 4 /* the first ones */

static void path_of(const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", folder, name);
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/opwatch-saved-XXXXXX");
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct timespec times[2] = { { .tv_sec = 1000 + (time_t)i },
					     { .tv_sec = 1000 + (time_t)i } };
		char path[128];
		FILE *f;

		path_of(names[i], path, sizeof(path));
		f = fopen(path, "w");
		assert_non_null(f);
		fclose(f);
		assert_int_equal(truncate(path, 100), 0);
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	}
	return 0;
}

static int remove_folder(void **state)
{
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		path_of(names[i], path, sizeof(path));
		unlink(path);
	}
	return rmdir(folder);
}

static bool is_there(size_t name)
{
	char path[128];

	path_of(names[name], path, sizeof(path));
	return access(path, F_OK) == 0;
}

static void names_tell_the_job(void **state)
{
	(void)state;
	assert_int_equal(incident_job_of("job-7-slow-120304.opw"), 7);
	assert_int_equal(incident_job_of("a-b-12-stall-000000.opw"), 12);
	assert_int_equal(incident_job_of("job-7-slow-120304.why.txt"), 7);
	assert_int_equal(incident_job_of("job-7-slow-120304.hang.json"), 7);
	assert_int_equal(incident_job_of("job-7-slow-120304.txt"), 0);
	assert_int_equal(incident_job_of("7-slow-120304.opw"), 0);
	assert_int_equal(incident_job_of("job-x-slow-120304.opw"), 0);
	assert_int_equal(incident_job_of("job-7-slow-12030.opw"), 0);
	assert_int_equal(incident_job_of("job-7-slow-12030x.opw"), 0);
	assert_int_equal(incident_job_of("job-7-slow.opw"), 0);
	assert_int_equal(incident_job_of("job-99999999999-slow-120304.opw"), 0);
	assert_int_equal(incident_job_of(".opw"), 0);
	assert_int_equal(incident_job_of(""), 0);
}

static void the_oldest_go(void **state)
{
	struct saved_incidents saved;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(incidents_find(&saved, &mem, folder, NULL), OW_OK);
	assert_int_equal(saved.count, SAVED);
	assert_int_equal(saved.bytes, 400);
	assert_int_equal(incidents_trim(&saved, folder, 400), 0);
	assert_int_equal(incidents_trim(&saved, folder, 399), 1);
	assert_false(is_there(0));
	assert_true(is_there(1));
	assert_int_equal(saved.items[0].job, 12);
	assert_int_equal(incidents_trim(&saved, folder, 0), 2); /* not the last one */
	assert_int_equal(saved.count, 1);
	assert_int_equal(saved.bytes, 100);
	for (size_t i = SAVED - 1; i < ARRAY_COUNT(names); i++)
		assert_true(is_there(i));
	incidents_release(&saved);
	assert_int_equal(incidents_find(&saved, &mem, "/no/such/folder", NULL), OW_OK);
	assert_int_equal(saved.count, 0);
	assert_int_equal(mem.used, 0);
}

static void survives_failing_allocations(void **state)
{
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	for (uint64_t n = 1; status == OW_E_NO_MEMORY && n < 100; n++) {
		struct saved_incidents saved;
		struct mem mem;

		mem_init(&mem, 0);
		mem_fail_after(n, true);
		status = incidents_find(&saved, &mem, folder, NULL);
		mem_fail_after(0, false);
		incidents_release(&saved);
		assert_int_equal(mem.used, 0);
	}
	assert_int_equal(status, OW_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_tell_the_job),
		TEST(the_oldest_go),
		TEST(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
