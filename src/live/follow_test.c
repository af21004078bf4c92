/*
 * follow_test.c: a recording is read as it grows, each segment once; a part of it is a recording that says the same; files
 * that are cut short, damaged, replaced or removed; folders of files; every allocation that fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "import/importer.h"
#include "live/follow.h"
#include "support/live_file.h"

static char folder[64], path[128];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/opwatch-follow-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/job.opw", folder);
	return 0;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "job.opw", "other.opw", "000001.opw", "000002.opw",
					     "000003.opw" };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		char name[128];

		snprintf(name, sizeof(name), "%s/%s", folder, names[i]);
		unlink(name);
	}
	rmdir(folder);
	return 0;
}

struct followed {
	struct mem mem;
	struct follow follow;
	struct error err;
};

static void open_follow(struct followed *f, const char *name)
{
	*f = (struct followed){ 0 };
	mem_init(&f->mem, 0);
	if (follow_open(&f->follow, &f->mem, name, 120 * 1000000000LL, &f->err) != OW_OK)
		fail_msg("%s", f->err.text);
}

static void close_follow(struct followed *f)
{
	follow_release(&f->follow);
	assert_int_equal(f->mem.used, 0);
}

static void turn(struct followed *f)
{
	assert_int_equal(follow_turn(&f->follow, &f->err), OW_OK);
}

static void begin(struct live_writer *w)
{
	live_writer_open(w, path);
	live_writer_process(w, 1, 0, "RANK=0");
	live_writer_thread(w, 1, 101);
	live_writer_flush(w);
}

static void add_steps(struct live_writer *w, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++) {
		live_writer_step(w, 1, 1000 + i * 100, 30, 20);
		live_writer_flush(w);
	}
}

/* Steps that the profile of a part has. */
static uint32_t steps_of(struct followed *f, struct follow_range *range)
{
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	ow_result *steps = NULL;
	struct buf file;
	uint32_t rows;

	buf_init(&file, &f->mem);
	assert_int_equal(follow_cut_buf(&f->follow, range, &file, &f->err), OW_OK);
	assert_int_equal(ow_profile_new(NULL, &profile, &err), OW_OK);
	if (ow_profile_add_memory(profile, "part", file.ptr, file.len, NULL, NULL, &err) != OW_OK ||
	    ow_profile_freeze(profile, &err) != OW_OK ||
	    ow_view(profile, "steps", NULL, &steps, &err) != OW_OK)
		fail_msg("%s", err.text);
	assert_false(ow_profile_damaged(profile));
	rows = ow_result_rows(steps);
	ow_result_free(steps);
	ow_profile_free(profile);
	buf_release(&file);
	return rows;
}

static struct follow_range all_of(void)
{
	return (struct follow_range){ .from_ns = INT64_MIN, .to_ns = INT64_MAX };
}

static void reads_what_is_new(void **state)
{
	struct live_writer w;
	struct followed f;
	uint64_t at;

	(void)state;
	begin(&w);
	open_follow(&f, path);
	turn(&f);
	assert_true(f.follow.caught_up);
	assert_int_equal(f.follow.records, 0);
	assert_int_equal(f.follow.process_count, 1);
	add_steps(&w, 0, 3);
	turn(&f);
	assert_int_equal(f.follow.records, 9);
	assert_int_equal(f.follow.newest_ns, 1251 * 1000000LL);
	at = f.follow.at;
	turn(&f);
	assert_int_equal(f.follow.at, at);
	add_steps(&w, 3, 2);
	live_writer_close(&w);
	turn(&f);
	assert_int_equal(f.follow.records, 15);
	assert_true(f.follow.closed);
	assert_int_equal(f.follow.damaged, 0);
	close_follow(&f);
}

/* Names and threads that were told before the part begins are in it. */
static void a_part_is_a_recording(void **state)
{
	struct follow_range range = all_of();
	struct live_writer w;
	struct followed f;

	(void)state;
	begin(&w);
	add_steps(&w, 0, 10);
	open_follow(&f, path);
	turn(&f);
	assert_int_equal(steps_of(&f, &range), 10);
	assert_int_equal(range.records, 30);
	assert_true(range.begin_ns == INT64_MIN);
	range = (struct follow_range){ .from_ns = 1400 * 1000000LL, .to_ns = 1750 * 1000000LL };
	assert_int_equal(steps_of(&f, &range), 4);
	assert_int_equal(range.records, 12);
	assert_int_equal(range.begin_ns, 1351 * 1000000LL);
	range = all_of();
	range.bytes_max = 4000;
	assert_true(steps_of(&f, &range) < 10);
	assert_true(range.records >= 3 && range.records < 30);
	live_writer_close(&w);
	close_follow(&f);
}

/* Frames and stacks that samples in the part are made of were told before it. */
static void samples_keep_their_stacks(void **state)
{
	struct follow_range range = { .from_ns = 1500 * 1000000LL, .to_ns = INT64_MAX };
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	ow_result *functions = NULL;
	struct live_writer w;
	struct followed f;
	struct buf file;

	(void)state;
	begin(&w);
	recording_add_text(&w.recording, 0, LIVE_SOURCE, 1, STR("train"));
	recording_add_text(&w.recording, 0, LIVE_SOURCE, 2, STR("train.py"));
	recording_add_frame(
		&w.recording,
		&(struct live_frame){ .number = 1, .function = 1, .file = 2, .line = 7 });
	recording_add_stack(&w.recording, &(struct live_stack){ .number = 1, .frame = 1 });
	live_writer_flush(&w);
	for (uint64_t i = 0; i < 10; i++) {
		recording_add_sample(
			&w.recording,
			&(struct live_sample){ .process = 1,
					       .tid = 101,
					       .stack = 1,
					       .ts_ns = (int64_t)(1000 + i * 100) * LIVE_MS,
					       .wall_ns = 10 * LIVE_MS });
		add_steps(&w, i, 1);
	}
	live_writer_close(&w);
	open_follow(&f, path);
	turn(&f);
	assert_false(f.follow.stacks_lost);
	buf_init(&file, &f.mem);
	assert_int_equal(follow_cut_buf(&f.follow, &range, &file, &f.err), OW_OK);
	assert_int_equal(ow_profile_new(NULL, &profile, &err), OW_OK);
	if (ow_profile_add_memory(profile, "part", file.ptr, file.len, NULL, NULL, &err) != OW_OK ||
	    ow_profile_freeze(profile, &err) != OW_OK ||
	    ow_view(profile, "functions", NULL, &functions, &err) != OW_OK)
		fail_msg("%s", err.text);
	assert_false(ow_profile_damaged(profile));
	assert_int_equal(ow_result_rows(functions), 1);
	ow_result_free(functions);
	ow_profile_free(profile);
	buf_release(&file);
	close_follow(&f);
}

static void forgets_what_is_long_ago(void **state)
{
	struct follow_range range = all_of();
	struct live_writer w;
	struct followed f;

	(void)state;
	begin(&w);
	open_follow(&f, path);
	f.follow.keep_ns = 1000 * 1000000LL;
	add_steps(&w, 0, 100);
	turn(&f);
	assert_int_equal(f.follow.records, 300);
	assert_true(f.follow.segment_count <= 12);
	assert_true(steps_of(&f, &range) <= 12);
	assert_true(range.begin_ns > 0);
	live_writer_close(&w);
	close_follow(&f);
}

static void a_file_that_is_cut_begins_anew(void **state)
{
	struct live_writer w;
	struct followed f;

	(void)state;
	begin(&w);
	add_steps(&w, 0, 3);
	open_follow(&f, path);
	turn(&f);
	assert_int_equal(truncate(path, 500), 0);
	turn(&f);
	assert_int_equal(f.follow.restarts, 1);
	assert_int_equal(f.follow.records, 0);
	turn(&f);
	assert_int_equal(truncate(path, 0), 0);
	turn(&f);
	live_writer_close(&w);
	turn(&f);
	close_follow(&f);
}

static void another_file_of_that_name_begins_anew(void **state)
{
	struct live_writer w, other;
	struct followed f;

	(void)state;
	begin(&w);
	add_steps(&w, 0, 5);
	open_follow(&f, path);
	turn(&f);
	unlink(path);
	add_steps(&w, 5, 1);
	turn(&f);
	assert_true(f.follow.removed);
	assert_int_equal(f.follow.records, 18); /* the old one is still open */
	begin(&other);
	add_steps(&other, 0, 2);
	turn(&f);
	assert_false(f.follow.removed);
	assert_int_equal(f.follow.restarts, 1);
	assert_int_equal(f.follow.records, 6);
	live_writer_close(&w);
	live_writer_close(&other);
	close_follow(&f);
}

static void flip(off_t at)
{
	FILE *file = fopen(path, "r+b");
	int c;

	assert_non_null(file);
	fseek(file, (long)at, SEEK_SET);
	c = fgetc(file);
	fseek(file, (long)at, SEEK_SET);
	fputc(c ^ 0x40, file);
	fclose(file);
}

/* Each byte in turn; what is read is a whole number of segments, and a part of it can be cut. */
static void damage_is_left_out(void **state)
{
	struct live_writer w;
	struct stat st;

	(void)state;
	begin(&w);
	add_steps(&w, 0, 2);
	live_writer_close(&w);
	assert_int_equal(stat(path, &st), 0);
	for (off_t at = sizeof(struct opw_header); at < st.st_size; at += 7) {
		struct follow_range range = all_of();
		struct followed f;
		struct buf file;

		flip(at);
		f = (struct followed){ 0 };
		mem_init(&f.mem, 0);
		if (follow_open(&f.follow, &f.mem, path, 1, &f.err) == OW_E_FORMAT) {
			flip(at); /* its first head is none */
			continue;
		}
		turn(&f);
		assert_true(f.follow.records <= 6);
		buf_init(&file, &f.mem);
		assert_int_equal(follow_cut_buf(&f.follow, &range, &file, &f.err), OW_OK);
		buf_release(&file);
		close_follow(&f);
		flip(at);
	}
}

/* Between the reading and the cutting. */
static void damage_that_comes_later_is_left_out(void **state)
{
	struct follow_range range = all_of();
	struct live_writer w;
	struct followed f;
	struct buf file;

	(void)state;
	begin(&w);
	add_steps(&w, 0, 4);
	live_writer_close(&w);
	open_follow(&f, path);
	turn(&f);
	assert_int_equal(truncate(path, (off_t)f.follow.segments[3].offset + 200), 0);
	buf_init(&file, &f.mem);
	assert_int_equal(follow_cut_buf(&f.follow, &range, &file, &f.err), OW_OK);
	assert_int_equal(import_memory("live", file.ptr, file.len, 0), OW_OK);
	buf_release(&file);
	close_follow(&f);
}

static void only_recordings_are_followed(void **state)
{
	struct error err = { 0 };
	struct follow f;
	struct mem mem;
	FILE *file;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(follow_open(&f, &mem, path, 1, &err), OW_E_NOT_FOUND);
	file = fopen(path, "wb");
	assert_non_null(file);
	fputs("{\"traceEvents\": []}", file);
	fclose(file);
	assert_int_equal(follow_open(&f, &mem, path, 1, &err), OW_E_FORMAT);
	assert_int_equal(follow_open(&f, &mem, "/dev/null", 1, &err), OW_E_IO);
	assert_int_equal(mem.used, 0);
}

/* Files of a ring: each tells what it needs, numbers of records go on. */
static void folders_are_followed(void **state)
{
	struct follow_range range = all_of();
	struct live_writer w;
	struct followed f;
	uint64_t next;

	(void)state;
	open_follow(&f, folder);
	turn(&f);
	assert_int_equal(f.follow.records, 0);
	snprintf(path, sizeof(path), "%s/000001.opw", folder);
	begin(&w);
	add_steps(&w, 0, 3);
	turn(&f);
	assert_int_equal(f.follow.records, 9);
	live_writer_close(&w);
	next = w.next[1];
	snprintf(path, sizeof(path), "%s/000002.opw", folder);
	live_writer_open(&w, path);
	live_writer_process(&w, 1, 0, "RANK=0");
	recording_add_place(&w.recording,
			    &(struct live_place){ .process = 1, .ring = 1, .id = 101, .first = 1 });
	w.next[1] = next;
	live_writer_flush(&w);
	add_steps(&w, 3, 3);
	turn(&f);
	assert_int_equal(f.follow.records, 18);
	assert_int_equal(steps_of(&f, &range), 6);
	close_follow(&f);
	open_follow(&f, folder);
	turn(&f);
	assert_int_equal(f.follow.records, 18);
	close_follow(&f);
	/* Who comes later has the thread from the file itself. */
	snprintf(path, sizeof(path), "%s/000001.opw", folder);
	unlink(path);
	open_follow(&f, folder);
	turn(&f);
	range = (struct follow_range){ .from_ns = 1400 * 1000000LL, .to_ns = INT64_MAX };
	assert_int_equal(steps_of(&f, &range), 2);
	live_writer_close(&w);
	close_follow(&f);
}

static void fails_without_memory(void **state)
{
	struct live_writer w;
	bool done = false;

	(void)state;
	begin(&w);
	add_steps(&w, 0, 3);
	live_writer_close(&w);
	for (uint64_t n = 1; !done && n < 1000; n++) {
		struct follow_range range = all_of();
		struct error err = { 0 };
		struct follow f;
		struct buf file;
		struct mem mem;
		ow_status status;

		mem_init(&mem, 0);
		buf_init(&file, &mem);
		mem_fail_after(n, true);
		status = follow_open(&f, &mem, path, 120 * 1000000000LL, &err);
		if (status == OW_OK) {
			status = follow_turn(&f, &err);
			if (status == OW_OK)
				status = follow_cut_buf(&f, &range, &file, &err);
			follow_release(&f);
		}
		mem_fail_after(0, false);
		buf_release(&file);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		assert_int_equal(mem.used, 0);
		done = status == OW_OK;
	}
	assert_true(done);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_what_is_new),
		TEST(a_part_is_a_recording),
		TEST(samples_keep_their_stacks),
		TEST(forgets_what_is_long_ago),
		TEST(a_file_that_is_cut_begins_anew),
		TEST(another_file_of_that_name_begins_anew),
		TEST(damage_is_left_out),
		TEST(damage_that_comes_later_is_left_out),
		TEST(only_recordings_are_followed),
		TEST(folders_are_followed),
		TEST(fails_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
