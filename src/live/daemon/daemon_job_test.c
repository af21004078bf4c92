/*
 * daemon_job_test.c: one job of the daemon with a process that this test plays itself: it joins, its records go to the ring
 * on disk, files are begun and dropped, it is taken up again after a restart under its number; without memory nothing
 * leaks and nothing is lost that was acknowledged.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/api_int.h"
#include "live/follow/follow.h"
#include "live/daemon/daemon_job.h"
#include "support/fake_process.h"

#define LIMIT ((uint64_t)1 << 20)

static char folder[64];

static void setup_job(struct daemon_job *job)
{
	job->writer = "test";
	job->limit = LIMIT;
}

static ow_status make(struct daemon_job *job, struct mem *mem, struct ow_error *err)
{
	struct job_identity id = { .kind = IDENTITY_NAME, .key = "name x", .name = "x" };

	OW_TRY(job_make(job, mem, folder, 1, &id, (uint32_t)geteuid(), (uint32_t)getpid(), err));
	setup_job(job);
	return OW_OK;
}

static ow_status join(struct daemon_job *job, struct fake *f, struct ow_error *err)
{
	fake_connect(f);
	fake_send_ring(f);
	return job_join(job, f->sockets[0], (uint32_t)getpid(), f->region_fd, err);
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/opwatch-job-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder); /* jobs have removed theirs */
}

/* Records that the ring has, in whatever files. */
static uint64_t records_in(const struct job_info *info)
{
	char out[128];
	struct cut c = { .job = info, .out_path = out };
	struct cut_summary summary;
	struct mem mem;

	mem_init(&mem, 0);
	snprintf(out, sizeof(out), "%s/out.opw", folder);
	if (cut_ring(&c, &mem, &summary, NULL) != OW_OK)
		summary.records = 0;
	unlink(out);
	assert_int_equal(mem.used, 0);
	return summary.records;
}

static void is_taken_up_again(void **state)
{
	struct daemon_job *job = calloc(1, sizeof(*job));
	struct ow_error err = { 0 };
	char path[JOBS_PATH];
	struct fake f;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	fake_open(&f);
	assert_int_equal(make(job, &mem, &err), OW_OK);
	snprintf(path, sizeof(path), "%s", job->info.folder);
	assert_int_equal(join(job, &f, &err), OW_OK);
	assert_int_equal(fake_push(&f, 100), 100);
	job_flush(job);
	job_describe(job);
	assert_int_equal(job->info.records, 100);
	assert_int_equal(job->info.processes, 1);
	/* As if it was killed between writing and telling: the last ten were not acknowledged. */
	atomic_store(&f.ring->tail, 90);
	close(f.sockets[1]);
	job_release(job);

	assert_int_equal(job_load(job, &mem, path, &err), OW_OK);
	setup_job(job);
	assert_int_equal(job->info.state, JOB_AWAITED);
	assert_int_equal(job->info.records, 100);
	assert_int_equal(job_number_of(job, (uint32_t)getpid(), 1000), 1);
	assert_int_equal(join(job, &f, &err), OW_OK);
	assert_int_equal(fake_push(&f, 50), 50);
	job_flush(job);
	assert_int_equal(atomic_load(&f.ring->tail), 150);
	job_describe(job);
	assert_int_equal(job->info.state, JOB_RUNNING);
	assert_int_equal(job->info.last_file, 2);
	assert_int_equal(records_in(&job->info),
			 160); /* ten are there twice: readers see to that */
	close(f.sockets[1]);
	job_remove(job);
	assert_int_equal(mem.used, 0);
	fake_close(&f);
	free(job);
}

static uint64_t dropped_of(struct daemon_job *job)
{
	job_flush(job);
	job_describe(job);
	return job->info.dropped;
}

/* A ring goes on counting when its process connects again, to the same daemon or to the next one. */
static void counts_drops_once(void **state)
{
	struct daemon_job *job = calloc(1, sizeof(*job));
	struct ow_error err = { 0 };
	char path[JOBS_PATH];
	struct fake f;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	fake_open(&f);
	assert_int_equal(make(job, &mem, &err), OW_OK);
	snprintf(path, sizeof(path), "%s", job->info.folder);
	assert_int_equal(join(job, &f, &err), OW_OK);
	fake_push(&f, 10);
	atomic_store(&f.ring->dropped, 5);
	assert_int_equal(dropped_of(job), 5);
	close(f.sockets[1]);
	assert_int_equal(dropped_of(job), 5);
	assert_int_equal(join(job, &f, &err), OW_OK);
	assert_int_equal(dropped_of(job), 5);
	atomic_store(&f.ring->dropped, 8);
	assert_int_equal(dropped_of(job), 8);
	job_release(job);
	close(f.sockets[1]);

	assert_int_equal(job_load(job, &mem, path, &err), OW_OK);
	setup_job(job);
	assert_int_equal(job->info.dropped, 8);
	assert_int_equal(join(job, &f, &err), OW_OK);
	assert_int_equal(dropped_of(job), 8);
	atomic_store(&f.ring->dropped, 9);
	assert_int_equal(dropped_of(job), 9);
	close(f.sockets[1]);
	job_remove(job);
	assert_int_equal(mem.used, 0);
	fake_close(&f);
	free(job);
}

static void stays_below_its_limit(void **state)
{
	struct daemon_job *job = calloc(1, sizeof(*job));
	uint64_t pushed = 0;
	struct ow_error err = { 0 };
	struct fake f;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	fake_open(&f);
	assert_int_equal(make(job, &mem, &err), OW_OK);
	assert_int_equal(join(job, &f, &err), OW_OK);
	while (pushed < 64 * FAKE_RECORDS) { /* four times the limit */
		pushed += fake_push(&f, FAKE_RECORDS);
		job_tick(job, now());
		job_flush(job);
		job_describe(job);
		assert_in_range(job->info.disk_bytes, 1, LIMIT);
	}
	assert_int_equal(job->info.records, pushed);
	assert_true(job->info.first_file > 1);
	assert_true(records_in(&job->info) > FAKE_RECORDS * 4);
	close(f.sockets[1]);
	job_remove(job);
	assert_int_equal(mem.used, 0);
	fake_close(&f);
	free(job);
}

/* What was acknowledged is on disk, wherever memory ends. */
static void survives_failing_allocations(void **state)
{
	bool whole = false;

	(void)state;
	for (uint64_t n = 1; !whole; n++) {
		struct daemon_job *job = calloc(1, sizeof(*job));
		struct ow_error err = { 0 };
		struct fake f;
		struct mem mem;
		bool made, joined = false;

		mem_init(&mem, 0);
		fake_open(&f);
		f.sockets[1] = -1;
		mem_fail_after(n, true);
		made = make(job, &mem, &err) == OW_OK;
		if (made)
			joined = join(job, &f, &err) == OW_OK;
		if (joined) {
			fake_push(&f, 100);
			job_flush(job);
		}
		mem_fail_after(0, false);
		if (made) {
			job_describe(job);
			assert_true(records_in(&job->info) >= atomic_load(&f.ring->tail));
			whole = atomic_load(&f.ring->tail) == 100;
			job_remove(job);
		}
		assert_int_equal(mem.used, 0);
		if (f.sockets[1] >= 0)
			close(f.sockets[1]);
		fake_close(&f);
		free(job);
		assert_true(n < 10000);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(is_taken_up_again),
		TEST(counts_drops_once),
		TEST(stays_below_its_limit),
		TEST(survives_failing_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
