/*
 * follow_cut_test.c: unit test of the parts of follow.c: the recent past out of a ring of several files, with records that were written twice,
 * files that were removed, cut short or damaged, and failing allocations; and which files of a ring are removed when it is full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/api_int.h"
#include "live/follow/follow.h"
#include "live/daemon/daemon_job.h"
#include "support/live_file.h"
#include "support/profile_view.h"

static char folder[64], out[96];
static struct job_info job;

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/opwatch-cut-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(out, sizeof(out), "%s/out.opw", folder);
	job = (struct job_info){ .first_file = 1, .last_file = 2, .name = "job" };
	snprintf(job.folder, sizeof(job.folder), "%s", folder);
	return 0;
}

static int remove_folder(void **state)
{
	char path[JOBS_PATH + 32];

	(void)state;
	for (uint32_t i = 1; i < 64; i++) {
		job_file_path(&job, i, path, sizeof(path));
		unlink(path);
	}
	unlink(out);
	rmdir(folder);
	return 0;
}

static const char *file_path(uint32_t number)
{
	static char path[JOBS_PATH + 32];

	job_file_path(&job, number, path, sizeof(path));
	return path;
}

/* Two processes; the first one ended before the second file, which begins in the middle, with one record that the first
 * file has, too. Slices of 10 ms at 100, 200, … 1000 ms. */
static void write_ring(void)
{
	struct live_writer w;
	uint64_t next;

	live_writer_open(&w, file_path(1));
	live_writer_process(&w, 1, 0, NULL);
	live_writer_process(&w, 2, 0, "RANK=3");
	live_writer_thread(&w, 1, 101);
	live_writer_thread(&w, 2, 102);
	live_writer_slice(&w, 1, "aten::old", RING_OPERATOR, 50, 60);
	for (uint64_t i = 1; i <= 5; i++) {
		live_writer_slice(&w, 2, "aten::mm", RING_OPERATOR, i * 100, i * 100 + 10);
		live_writer_flush(&w);
	}
	next = w.next[2];
	live_writer_stack(&w, 2, 1, "main", "load", 450);
	live_writer_close(&w);

	live_writer_open(&w, file_path(2));
	live_writer_process(&w, 2, 0, "RANK=3");
	recording_add_place(&w.recording,
			    &(struct live_place){ .process = 2, .ring = 1, .id = 102, .first = 1 });
	w.next[2] = next - 1;
	for (uint64_t i = 5; i <= 10; i++)
		live_writer_slice(&w, 2, "aten::mm", RING_OPERATOR, i * 100, i * 100 + 10);
	live_writer_stack(&w, 2, 1, "main", "step", 950); /* numbers are those of the file */
	live_writer_flush(&w);
	live_writer_stack(&w, 2, 4, "step", "load", 960);
	live_writer_close(&w);
}

static ow_status cut(int64_t last_ms, struct cut_summary *summary, struct ow_error *err)
{
	struct cut c = { .job = &job, .last_ns = last_ms * (int64_t)LIVE_MS, .out_path = out };
	struct mem mem;
	ow_status status;

	mem_init(&mem, 0);
	status = cut_ring(&c, &mem, summary, err);
	assert_int_equal(mem.used, 0);
	return status;
}

/* Events of all tracks, and what the only track is. */
static int64_t events_in(const char *path, int64_t *tid)
{
	ow_profile *profile = profile_of(path);
	ow_result *tracks = view_of(profile, "tracks");
	int64_t sum = 0;

	for (uint32_t i = 0; i < ow_result_rows(tracks); i++) {
		sum += ow_result_int(tracks, i, ow_result_find(tracks, "events"));
		*tid = ow_result_int(tracks, i, ow_result_find(tracks, "tid"));
	}
	ow_result_free(tracks);
	ow_profile_free(profile);
	return sum;
}

static void cuts_all_or_the_last(void **state)
{
	struct cut_summary summary;
	struct ow_error err = { 0 };
	int64_t tid = 0;

	(void)state;
	write_ring();
	assert_int_equal(cut(0, &summary, &err), OW_OK);
	assert_int_equal(summary.processes, 2);
	assert_int_equal(summary.files, 2);
	assert_int_equal(summary.covers_ns, 960 * (int64_t)LIVE_MS);
	assert_int_equal(events_in(out, &tid), 11); /* what is there twice counts once */
	assert_int_equal(cut(250, &summary, &err), OW_OK);
	assert_int_equal(summary.processes, 1);
	assert_int_equal(events_in(out, &tid), 3);
	assert_int_equal(tid, 102);
}

/* The time of a function by itself, in milliseconds. */
static int64_t self_of(const char *function)
{
	const char *path = out;
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	ow_result *r;
	int64_t sum = 0;

	if (ow_profile_open(&path, 1, NULL, &profile, &err) != OW_OK)
		fail_msg("%s", err.text);
	assert_int_equal(ow_view(profile, "functions", NULL, &r, &err), OW_OK);
	for (uint32_t i = 0; i < ow_result_rows(r); i++)
		if (strcmp(ow_result_text(r, i, ow_result_find(r, "name"), NULL), function) == 0)
			sum += ow_result_int(r, i, ow_result_find(r, "self"));
	ow_result_free(r);
	ow_profile_free(profile);
	return sum / (int64_t)LIVE_MS;
}

static void stacks_of_several_files(void **state)
{
	struct cut_summary summary;
	struct ow_error err = { 0 };

	(void)state;
	write_ring();
	assert_int_equal(cut(0, &summary, &err), OW_OK);
	assert_int_equal(summary.samples, 3);
	assert_int_equal(self_of("load"), 20);
	assert_int_equal(self_of("step"), 10);
	assert_int_equal(self_of("main"), 0);
	assert_int_equal(cut(55, &summary, &err), OW_OK);
	assert_int_equal(summary.samples, 1);
	assert_int_equal(self_of("load"), 10);
}

static void lives_with_files_that_have_gone(void **state)
{
	struct cut_summary summary;
	struct ow_error err = { 0 };
	int64_t tid = 0;
	struct stat st;

	(void)state;
	write_ring();
	unlink(file_path(1));
	assert_int_equal(cut(0, &summary, &err), OW_OK);
	assert_int_equal(events_in(out, &tid), 6);
	assert_int_equal(tid, 102);
	assert_int_equal(stat(file_path(2), &st), 0);
	assert_int_equal(truncate(file_path(2), st.st_size / 3), 0);
	assert_int_equal(cut(0, &summary, &err), OW_E_EMPTY);
	unlink(file_path(2));
	assert_int_equal(cut(0, &summary, &err), OW_E_EMPTY);
	assert_non_null(strstr(err.text, "nothing was recorded"));
}

static void lives_with_turned_bits(void **state)
{
	struct stat st;

	(void)state;
	write_ring();
	assert_int_equal(stat(file_path(2), &st), 0);
	for (long at = 0; at < st.st_size; at += 37) {
		struct cut_summary summary;
		FILE *f = fopen(file_path(2), "r+");
		int byte;

		assert_non_null(f);
		fseek(f, at, SEEK_SET);
		byte = fgetc(f);
		fseek(f, at, SEEK_SET);
		fputc(byte ^ 0x10, f);
		fclose(f);
		assert_int_equal(cut(0, &summary, NULL), OW_OK); /* the first file is whole */
		f = fopen(file_path(2), "r+");
		assert_non_null(f);
		fseek(f, at, SEEK_SET);
		fputc(byte, f);
		fclose(f);
	}
}

/* A file of that name that was there before. */
static void put_old(void)
{
	FILE *f = fopen(out, "w");

	assert_non_null(f);
	fputs("old", f);
	fclose(f);
}

static bool is_old(void)
{
	char text[8] = "";
	FILE *f = fopen(out, "r");

	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return strcmp(text, "old") == 0;
}

static void survives_failing_allocations(void **state)
{
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	write_ring();
	for (uint64_t n = 1; status == OW_E_NO_MEMORY; n++) {
		struct cut_summary summary;
		struct ow_error err = { 0 };

		put_old();
		mem_fail_after(n, true);
		status = cut(0, &summary, &err);
		mem_fail_after(0, false);
		if (status == OW_E_NO_MEMORY)
			assert_true(is_old());
	}
	assert_int_equal(status, OW_OK);
}

/* ---- files ---- */

static void make_file(const char *path, off_t size)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fclose(f);
	assert_int_equal(truncate(path, size), 0);
}

static void drops_the_oldest(void **state)
{
	struct disk_ring ring;
	struct ow_error err = { 0 };
	char path[JOBS_PATH + 32];
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(disk_ring_open(&ring, &mem, folder, &err), OW_OK);
	assert_int_equal(ring.first, 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(disk_ring_next(&ring, i ? 100 : 0, path, sizeof(path), &err),
				 OW_OK);
		make_file(path, 100);
	}
	assert_int_equal(ring.last, 10);
	assert_int_equal(ring.bytes, 900); /* and the one that grows */
	assert_int_equal(disk_ring_trim(&ring, 50, 1000), 0);
	assert_int_equal(disk_ring_trim(&ring, 150, 1000), 1);
	assert_int_equal(ring.first, 2);
	assert_int_equal(access(file_path(1), F_OK), -1);
	assert_int_equal(disk_ring_trim(&ring, 1, 1), 8); /* never the last */
	assert_int_equal(ring.first, 10);
	disk_ring_rest(&ring, 100);
	disk_ring_rest(&ring, 120);
	assert_int_equal(ring.bytes, 120);
	disk_ring_release(&ring);
	/* Taken up again; what others put there is left alone. */
	make_file(out, 5);
	assert_int_equal(disk_ring_open(&ring, &mem, folder, &err), OW_OK);
	assert_int_equal(ring.first, 10);
	assert_int_equal(ring.last, 10);
	assert_int_equal(ring.bytes, 100);
	disk_ring_remove(&ring);
	disk_ring_release(&ring);
	assert_int_equal(access(out, F_OK), 0);
	assert_int_equal(access(file_path(10), F_OK), -1);
	assert_int_equal(mem.used, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(cuts_all_or_the_last),
		TEST(stacks_of_several_files),
		TEST(lives_with_files_that_have_gone),
		TEST(lives_with_turned_bits),
		TEST(survives_failing_allocations),
		TEST(drops_the_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
