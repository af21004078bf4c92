/*
 * recording_test.c: what is written into a recording is what the profile has: ranks, steps, loaders, devices; written
 * twice, cut short, with a full disk, without memory, with bits turned.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "live/record/recording.h"
#include "support/live_file.h"
#include "support/profile_view.h"

#define PHASES 12 /* rows of each job, rank and device */

static char path[64];

static int make_path(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/opwatch-recording-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static uint32_t rows(ow_profile *profile, const char *which)
{
	ow_result *result = view_of(profile, which);
	uint32_t count = ow_result_rows(result);

	ow_result_free(result);
	return count;
}

/* Two ranks of three steps; a worker of the first one reads files. */
static void write_job(void)
{
	struct live_writer w;

	live_writer_open(&w, path);
	live_writer_process(&w, 1, 0, "RANK=0");
	live_writer_process(&w, 2, 0, "RANK=1");
	live_writer_process(&w, 3, 1, "RANK=0");
	for (uint32_t p = 1; p <= 3; p++)
		live_writer_thread(&w, p, 100 + p);
	live_writer_stacks(&w, 2, 102);
	for (uint64_t step = 0; step < 3; step++) {
		live_writer_step(&w, 1, 1000 + step * 100, 30, 20);
		live_writer_step(&w, 2, 1000 + step * 100, 10, 70);
		live_writer_slice(&w, 3, "read", RING_FILE_READ, 1000 + step * 100,
				  1020 + step * 100);
		live_writer_flush(&w);
	}
	live_writer_close(&w);
}

static void holds_stacks(void **state)
{
	ow_profile *profile;
	ow_result *functions;
	uint32_t self;

	(void)state;
	write_job();
	profile = profile_of(path);
	assert_int_equal(rows(profile, "tracks"), 3); /* the samples are on those of the events */
	functions = view_of(profile, "functions");
	assert_int_equal(ow_result_rows(functions), 2);
	self = ow_result_find(functions, "self");
	assert_string_equal(ow_result_text(functions, 0, 0, NULL), "inner");
	assert_int_equal(ow_result_int(functions, 0, self), 2 * LIVE_MS);
	assert_int_equal(ow_result_int(functions, 1, self), LIVE_MS);
	ow_result_free(functions);
	ow_profile_free(profile);
}

/* Frames, stacks and samples that name what is not there. */
static void leaves_out_stacks_of_nothing(void **state)
{
	struct live_writer w;
	ow_profile *profile;

	(void)state;
	live_writer_open(&w, path);
	live_writer_process(&w, 1, 0, NULL);
	live_writer_stacks(&w, 1, 101);
	recording_add_frame(&w.recording, &(struct live_frame){ .number = 3, .function = 9 });
	recording_add_frame(&w.recording,
			    &(struct live_frame){ .number = UINT32_MAX, .function = 1 });
	recording_add_stack(&w.recording,
			    &(struct live_stack){ .number = 3, .parent = 7, .frame = 1 });
	recording_add_stack(&w.recording, &(struct live_stack){ .number = 4, .frame = 3 });
	recording_add_sample(&w.recording, &(struct live_sample){ .process = 5, .stack = 1 });
	recording_add_sample(&w.recording, &(struct live_sample){ .process = 1, .stack = 4 });
	recording_add_sample(&w.recording,
			     &(struct live_sample){ .process = 1, .stack = 1, .wall_ns = -1 });
	live_writer_close(&w);
	profile = profile_of(path);
	assert_int_equal(rows(profile, "functions"), 2);
	assert_int_equal(rows(profile, "notes"), 1);
	ow_profile_free(profile);
}

static void holds_ranks_steps_and_loaders(void **state)
{
	ow_profile *profile;
	ow_result *tracks;
	uint32_t kind, loaders = 0;

	(void)state;
	write_job();
	profile = profile_of(path);
	assert_int_equal(rows(profile, "sources"), 2);
	assert_int_equal(rows(profile, "steps"), 6);
	tracks = view_of(profile, "tracks");
	assert_int_equal(ow_result_rows(tracks), 3);
	kind = ow_result_find(tracks, "kind");
	for (uint32_t i = 0; i < 3; i++) {
		size_t len;
		const char *text = ow_result_text(tracks, i, kind, &len);

		loaders += len == 6 && memcmp(text, "loader", 6) == 0;
	}
	assert_int_equal(loaders, 1);
	ow_result_free(tracks);
	ow_profile_free(profile);
}

static void write_rank(const char *job, const char *rank, uint64_t wait)
{
	char identity[96];
	struct live_writer w;

	live_writer_open(&w, path);
	recording_add_process(&w.recording, &(struct live_process){ .number = 1, .pid = 101 });
	recording_add_text(
		&w.recording, 1, LIVE_IDENTITY, 0,
		str_make(identity, (size_t)snprintf(identity, sizeof(identity),
						    "OPWATCH_JOB=%s%c%s", job, '\0', rank)));
	live_writer_thread(&w, 1, 101);
	for (uint64_t step = 0; step < 3; step++)
		live_writer_step(&w, 1, 1000 + step * 100, wait, 20);
	live_writer_close(&w);
}

/* Files that say that they are of the same job are; the same rank of another job is another one. */
static void jobs_of_several_files(void **state)
{
	static const struct {
		const char *job, *rank;
		uint64_t wait;
	} files[] = { { "a", "RANK=0", 10 }, { "b", "RANK=0", 20 }, { "a", "RANK=1", 30 } };
	static const char *const jobs[] = { "a", "a", "b" };
	static const int64_t waits[] = { 30, 90, 60 };
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	ow_result *phases;
	uint32_t job, share;

	(void)state;
	assert_int_equal(ow_profile_new(NULL, &profile, &err), OW_OK);
	for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
		static char bytes[ARRAY_COUNT(files)][65536]; /* they stay in use */
		char name[16];
		size_t len;
		FILE *f;

		write_rank(files[i].job, files[i].rank, files[i].wait);
		f = fopen(path, "rb");
		assert_non_null(f);
		len = fread(bytes[i], 1, sizeof(bytes[i]), f);
		fclose(f);
		snprintf(name, sizeof(name), "%zu.opw", i);
		if (ow_profile_add_memory(profile, name, bytes[i], len, NULL, NULL, &err) != OW_OK)
			fail_msg("%s", err.text);
	}
	assert_int_equal(ow_profile_freeze(profile, &err), OW_OK);
	phases = view_of(profile, "phases");
	assert_int_equal(ow_result_rows(phases), 3 * PHASES); /* a, rank 0 and 1; b */
	job = ow_result_find(phases, "job");
	share = ow_result_find(phases, "share_ns");
	for (uint32_t i = 0; i < ARRAY_COUNT(jobs); i++) {
		const char *text = ow_result_text(phases, i * PHASES, job, NULL);

		assert_string_equal(text && *text ? text : "-", jobs[i]);
		assert_int_equal(ow_result_int(phases, i * PHASES, share), waits[i] * LIVE_MS);
	}
	ow_result_free(phases);
	ow_profile_free(profile);
}

static int64_t total(ow_profile *profile, const char *column)
{
	ow_result *steps = view_of(profile, "steps");
	uint32_t at = ow_result_find(steps, column);
	int64_t sum = 0;

	for (uint32_t i = 0; i < ow_result_rows(steps); i++)
		sum += ow_result_int(steps, i, at);
	ow_result_free(steps);
	return sum;
}

/* Of a recording without steps: the whole of it. */
static int64_t phase_total(ow_profile *profile, const char *phase)
{
	ow_result *phases = view_of(profile, "phases");
	uint32_t name = ow_result_find(phases, "phase"), share = ow_result_find(phases, "share_ns");
	int64_t ns = -1;

	for (uint32_t i = 0; i < PHASES; i++)
		if (strcmp(ow_result_text(phases, i, name, NULL), phase) == 0)
			ns = ow_result_int(phases, i, share);
	ow_result_free(phases);
	return ns;
}

static void gives_phases(void **state)
{
	ow_profile *profile;

	(void)state;
	write_job();
	profile = profile_of(path);
	assert_int_equal(total(profile, "compute_ns"), 3 * (20 + 70) * (int64_t)LIVE_MS);
	assert_int_equal(total(profile, "input_ns"), 3 * (30 + 10) * (int64_t)LIVE_MS);
	ow_profile_free(profile);
}

/* As after the restart of a collector that was killed before it could tell the job. */
static void leaves_out_what_was_written_twice(void **state)
{
	struct live_writer w;
	ow_profile *profile;

	(void)state;
	live_writer_open(&w, path);
	live_writer_process(&w, 1, 0, NULL);
	live_writer_thread(&w, 1, 101);
	live_writer_slice(&w, 1, "aten::mm", RING_OPERATOR, 10, 20);
	live_writer_flush(&w);
	w.next[1] = 0;
	live_writer_thread(&w, 1, 101);
	live_writer_slice(&w, 1, "aten::mm", RING_OPERATOR, 10, 20);
	live_writer_slice(&w, 1, "aten::mm", RING_OPERATOR, 20, 30);
	live_writer_close(&w);
	profile = profile_of(path);
	assert_int_equal(phase_total(profile, "compute"), 20 * (int64_t)LIVE_MS);
	ow_profile_free(profile);
}

static void links_device_work(void **state)
{
	struct live_writer w;
	ow_profile *profile;

	(void)state;
	live_writer_open(&w, path);
	live_writer_process(&w, 1, 0, NULL);
	live_writer_thread(&w, 1, 101);
	live_writer_record(&w, 1,
			   (struct ring_record){ .kind = RING_QUEUE,
						 .stream = 1,
						 .name = live_writer_name(&w, 1, "queue 1"),
						 .id = live_writer_name(&w, 1, "some device") });
	live_writer_record(
		&w, 1,
		(struct ring_record){ .kind = RING_SLICE,
				      .category = RING_OPENCL_CALL,
				      .name = live_writer_name(&w, 1, "clEnqueueNDRangeKernel"),
				      .id = 7,
				      .start_ns = 10 * LIVE_MS,
				      .dur_ns = LIVE_MS });
	live_writer_record(&w, 1,
			   (struct ring_record){ .kind = RING_DEVICE,
						 .category = RING_KERNEL,
						 .stream = 1,
						 .name = live_writer_name(&w, 1, "saxpy"),
						 .id = 7,
						 .start_ns = 12 * LIVE_MS,
						 .dur_ns = 20 * LIVE_MS });
	live_writer_close(&w);
	profile = profile_of(path);
	assert_int_equal(rows(profile, "devices"), 1);
	assert_int_equal(phase_total(profile, "compute"), 20 * (int64_t)LIVE_MS);
	assert_int_equal(phase_total(profile, "launch"), LIVE_MS);
	ow_profile_free(profile);
}

/* Cut anywhere, what was flushed before is there. */
static void survives_any_cut(void **state)
{
	struct stat st;
	off_t size;

	(void)state;
	write_job();
	assert_int_equal(stat(path, &st), 0);
	size = st.st_size;
	for (off_t cut = size - 1; cut > 0; cut -= 97) {
		const char *file = path;
		struct ow_error err = { 0 };
		ow_profile *profile = NULL;

		assert_int_equal(truncate(path, cut), 0);
		if (ow_profile_open(&file, 1, NULL, &profile, &err) == OW_OK)
			assert_in_range(rows(profile, "tracks"), 1, 3);
		else
			assert_true(cut < size / 2);
		ow_profile_free(profile);
	}
}

static void survives_turned_bits(void **state)
{
	struct stat st;
	FILE *f;

	(void)state;
	write_job();
	assert_int_equal(stat(path, &st), 0);
	for (long at = 0; at < st.st_size; at += 61) {
		const char *file = path;
		ow_profile *profile = NULL;
		int byte;

		f = fopen(path, "r+");
		assert_non_null(f);
		fseek(f, at, SEEK_SET);
		byte = fgetc(f);
		fseek(f, at, SEEK_SET);
		fputc(byte ^ 0x10, f);
		fclose(f);
		if (ow_profile_open(&file, 1, NULL, &profile, NULL) == OW_OK)
			ow_profile_free(profile);
		f = fopen(path, "r+");
		assert_non_null(f);
		fseek(f, at, SEEK_SET);
		fputc(byte, f);
		fclose(f);
	}
}

/* A write that fails changes nothing, and works later. */
static void goes_on_after_a_full_disk(void **state)
{
	struct live_writer w;
	struct ow_error err = { 0 };
	ow_profile *profile;
	uint64_t at;

	(void)state;
	live_writer_open(&w, path);
	live_writer_process(&w, 1, 0, NULL);
	live_writer_thread(&w, 1, 101);
	live_writer_slice(&w, 1, "aten::mm", RING_OPERATOR, 10, 20);
	at = w.recording.writer.at;
	w.recording.bytes_limit = at + 64;
	assert_int_equal(recording_flush(&w.recording, &err), OW_E_LIMIT);
	assert_int_equal(w.recording.writer.at, at);
	assert_true(recording_is_pending(&w.recording));
	w.recording.bytes_limit = 0;
	live_writer_close(&w);
	profile = profile_of(path);
	assert_int_equal(phase_total(profile, "compute"), 10 * (int64_t)LIVE_MS);
	ow_profile_free(profile);
}

static void survives_failing_allocations(void **state)
{
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	write_job();
	for (uint64_t n = 1; status == OW_E_NO_MEMORY; n++) {
		const char *file = path;
		struct ow_error err = { 0 };
		ow_profile *profile = NULL;

		mem_fail_after(n, true);
		status = ow_profile_open(&file, 1, NULL, &profile, &err);
		mem_fail_after(0, false);
		ow_profile_free(profile);
	}
	assert_int_equal(status, OW_OK);
}

static void tells_an_empty_recording(void **state)
{
	const char *file = path;
	struct live_writer w;
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;

	(void)state;
	live_writer_open(&w, path);
	live_writer_close(&w);
	assert_int_equal(ow_profile_open(&file, 1, NULL, &profile, &err), OW_E_EMPTY);
	assert_non_null(strstr(err.text, "the recording has no records"));
}

/* ---- files that take their place once they have content ---- */

static char folder[64], target[80], part[128], link_path[80];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/opwatch-new-file-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(target, sizeof(target), "%s/x", folder);
	snprintf(part, sizeof(part), "%s.tmp%d", target, (int)getpid());
	snprintf(link_path, sizeof(link_path), "%s/l", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(target);
	unlink(part);
	unlink(link_path);
	assert_int_equal(rmdir(folder), 0); /* nothing else is left */
	return 0;
}

static void put_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void expect_content(const char *name, const char *text)
{
	char found[64] = "";
	FILE *f = fopen(name, "r");

	assert_non_null(f);
	(void)!fgets(found, sizeof(found), f);
	fclose(f);
	assert_string_equal(found, text);
}

static void recordings_without_memory(void **state)
{
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	put_file(target, "old");
	for (uint64_t n = 1; status == OW_E_NO_MEMORY; n++) {
		struct ow_error err = { 0 };
		struct recording r;
		struct mem mem;

		mem_init(&mem, 0);
		mem_fail_after(n, true);
		status = recording_open_beside(&r, &mem, target, "test", &err);
		mem_fail_after(0, false);
		expect_content(target, "old");
		if (status == OW_OK)
			assert_int_equal(recording_close(&r, &err), OW_OK);
		assert_int_equal(mem.used, 0);
	}
	assert_int_equal(status, OW_OK);
	expect_content(target, "old"); /* it did not appear */
}

/* The place has become a folder meanwhile: what is recorded is not lost. */
static void recordings_that_cannot_appear(void **state)
{
	struct ow_error err = { 0 };
	struct recording r;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(recording_open_beside(&r, &mem, target, "test", &err), OW_OK);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(recording_appear(&r, &err), OW_E_IO);
	assert_non_null(strstr(err.text, part));
	assert_int_equal(recording_close(&r, &err), OW_OK);
	assert_int_equal(access(part, F_OK), 0);
	assert_int_equal(rmdir(target), 0);
	assert_int_equal(mem.used, 0);
}

int main(void)
{
#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)
	const struct CMUnitTest tests[] = {
		TEST(holds_ranks_steps_and_loaders),
		TEST(jobs_of_several_files),
		TEST(holds_stacks),
		TEST(leaves_out_stacks_of_nothing),
		TEST(gives_phases),
		TEST(leaves_out_what_was_written_twice),
		TEST(links_device_work),
		TEST(survives_any_cut),
		TEST(survives_turned_bits),
		TEST(goes_on_after_a_full_disk),
		TEST(survives_failing_allocations),
		TEST(tells_an_empty_recording),
		FILE_TEST(recordings_without_memory),
		FILE_TEST(recordings_that_cannot_appear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
