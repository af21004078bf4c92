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
#include "live/follow/follow.h"
#include "support/live_file.h"
#include "support/profile_view.h"

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
	static const char *const names[] = { "job.opw",	   "other.opw",	 "000001.opw", "000002.opw",
					     "000003.opw", "000004.opw", "000005.opw" };

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
	struct ow_error err;
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

static ow_profile *profile_of_part(struct followed *f, struct follow_range *range)
{
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	struct buf file;

	buf_init(&file, &f->mem);
	assert_int_equal(follow_cut_buf(&f->follow, range, &file, &f->err), OW_OK);
	assert_int_equal(ow_profile_new(NULL, &profile, &err), OW_OK);
	if (ow_profile_add_memory(profile, "part", file.ptr, file.len, NULL, NULL, &err) != OW_OK ||
	    ow_profile_freeze(profile, &err) != OW_OK)
		fail_msg("%s", err.text);
	assert_false(ow_profile_damaged(profile));
	buf_release(&file);
	return profile;
}

/* Steps that the profile of a part has. */
static uint32_t steps_of(struct followed *f, struct follow_range *range)
{
	ow_profile *profile = profile_of_part(f, range);
	ow_result *steps = view_of(profile, "steps");
	uint32_t rows = ow_result_rows(steps);

	ow_result_free(steps);
	ow_profile_free(profile);
	return rows;
}

/* Milliseconds that a function has by itself in a part. */
static int64_t self_of(struct followed *f, struct follow_range *range, const char *function)
{
	ow_profile *profile = profile_of_part(f, range);
	ow_result *r = view_of(profile, "functions");
	int64_t sum = 0;

	for (uint32_t i = 0; i < ow_result_rows(r); i++)
		if (strcmp(ow_result_text(r, i, ow_result_find(r, "name"), NULL), function) == 0)
			sum += ow_result_int(r, i, ow_result_find(r, "self"));
	ow_result_free(r);
	ow_profile_free(profile);
	return sum / LIVE_MS;
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
	struct live_writer w;
	struct followed f;

	(void)state;
	begin(&w);
	live_writer_stack(&w, 1, 1, "main", "train", 900);
	live_writer_flush(&w);
	for (uint64_t i = 0; i < 10; i++) {
		live_writer_sample(&w, 1, 2, 1000 + i * 100);
		add_steps(&w, i, 1);
	}
	live_writer_close(&w);
	open_follow(&f, path);
	turn(&f);
	assert_int_equal(self_of(&f, &range, "train"), 50);
	assert_int_equal(self_of(&f, &range, "main"), 0);
	close_follow(&f);
}

/* A file of a ring: three steps with a sample each, of a function that has the numbers that another one has in the files
 * before. */
static void add_file(struct live_writer *w, uint32_t number, uint64_t *next, const char *function)
{
	uint64_t first = (number - 1) * 3;

	snprintf(path, sizeof(path), "%s/%06u.opw", folder, number);
	live_writer_open(w, path);
	live_writer_process(w, 1, 0, "RANK=0");
	if (number == 1)
		live_writer_thread(w, 1, 101);
	else
		recording_add_place(
			&w->recording,
			&(struct live_place){ .process = 1, .ring = 1, .id = 101, .first = 1 });
	w->next[1] = number == 1 ? w->next[1] : *next;
	live_writer_flush(w);
	live_writer_stack(w, 1, 1, "main", function, 1000 + first * 100);
	add_steps(w, first, 1);
	for (uint64_t i = first + 1; i < first + 3; i++) {
		live_writer_sample(w, 1, 2, 1000 + i * 100);
		add_steps(w, i, 1);
	}
	*next = w->next[1];
	live_writer_close(w);
}

static const char *const functions[] = { "load", "step", "save", "load", "test" };

/* Numbers of stacks start over in each file. */
static void stacks_survive_changes_of_file(void **state)
{
	struct follow_range all = all_of(),
			    late = { .from_ns = 2060 * 1000000LL, .to_ns = INT64_MAX };
	struct live_writer w;
	struct followed f;
	uint64_t next = 0;

	(void)state;
	open_follow(&f, folder);
	for (uint32_t i = 0; i < ARRAY_COUNT(functions); i++) {
		add_file(&w, i + 1, &next, functions[i]);
		turn(&f);
	}
	assert_int_equal(steps_of(&f, &all), 15);
	assert_int_equal(self_of(&f, &all, "load"), 60);
	assert_int_equal(self_of(&f, &all, "step"), 30);
	assert_int_equal(self_of(&f, &all, "save"), 30);
	assert_int_equal(self_of(&f, &all, "test"), 30);
	assert_int_equal(self_of(&f, &all, "main"), 0);
	/* From the middle of the fourth on: what its stacks are was said before. */
	assert_int_equal(self_of(&f, &late, "load"), 10);
	assert_int_equal(self_of(&f, &late, "test"), 30);
	assert_int_equal(self_of(&f, &late, "save"), 0);
	close_follow(&f);
	/* Who comes later. */
	open_follow(&f, folder);
	turn(&f);
	assert_int_equal(self_of(&f, &late, "load"), 10);
	assert_int_equal(self_of(&f, &late, "test"), 30);
	close_follow(&f);
}

/* Who asks for stacks a second time gets numbers from 1 on, in the same file. */
static void stacks_survive_a_second_sampler(void **state)
{
	struct follow_range all = all_of(),
			    late = { .from_ns = 1460 * 1000000LL, .to_ns = INT64_MAX };
	struct live_writer w;
	struct followed f;

	(void)state;
	begin(&w);
	for (uint64_t i = 0; i < 6; i++) {
		if (i % 3 == 0)
			live_writer_stack(&w, 1, 1, "main", i ? "step" : "load", 1000 + i * 100);
		else
			live_writer_sample(&w, 1, 2, 1000 + i * 100);
		add_steps(&w, i, 1);
	}
	live_writer_close(&w);
	open_follow(&f, path);
	turn(&f);
	assert_int_equal(self_of(&f, &all, "load"), 30);
	assert_int_equal(self_of(&f, &all, "step"), 30);
	assert_int_equal(self_of(&f, &late, "load"), 0);
	assert_int_equal(self_of(&f, &late, "step"), 10);
	close_follow(&f);
}

/* Each file says again what its records need: that is kept once. */
static void what_is_told_again_is_kept_once(void **state)
{
	struct live_writer w;
	struct followed f;
	uint64_t next = 0;
	size_t once = 0;

	(void)state;
	open_follow(&f, folder);
	for (uint32_t i = 0; i < ARRAY_COUNT(functions); i++) {
		add_file(&w, i + 1, &next, functions[i]);
		turn(&f);
		once = once ? once : f.follow.processes[0].texts.len;
		assert_int_equal(f.follow.processes[0].texts.len, once);
	}
	close_follow(&f);
}

/* A job of which nothing but samples is known: what is long ago goes, and the files with it. */
static void samples_alone_are_forgotten_too(void **state)
{
	struct follow_range all = all_of();
	struct live_writer w;
	struct followed f;

	(void)state;
	open_follow(&f, folder);
	f.follow.keep_ns = 1000 * 1000000LL;
	for (uint32_t i = 1; i <= 5; i++) {
		snprintf(path, sizeof(path), "%s/%06u.opw", folder, i);
		live_writer_open(&w, path);
		live_writer_process(&w, 1, 0, NULL);
		for (uint32_t k = 0; k < 10; k++) {
			if (!k)
				live_writer_stack(&w, 1, 1, "main", "train", i * 1000);
			else
				live_writer_sample(&w, 1, 2, i * 1000 + k * 100);
			live_writer_flush(&w);
		}
		live_writer_close(&w);
		turn(&f);
	}
	assert_int_equal(f.follow.file_count, 2);
	assert_in_range(self_of(&f, &all, "train"), 100, 120);
	close_follow(&f);
}

static void add_drops(struct live_writer *w, uint64_t at, uint64_t dropped)
{
	struct live_run run = {
		.process = 1, .ring = 1, .first = w->next[1], .count = 1, .dropped = dropped
	};
	struct ring_record *to = recording_add_run(&w->recording, &run);

	assert_non_null(to);
	*to = (struct ring_record){ .kind = RING_SLICE,
				    .start_ns = at * LIVE_MS,
				    .dur_ns = LIVE_MS,
				    .sequence = (uint32_t)w->next[1]++ };
	live_writer_flush(w);
}

/* Records that were dropped before the part begins are not missing in it. */
static void a_part_has_its_own_drops(void **state)
{
	struct follow_range late = { .from_ns = 2500 * 1000000LL, .to_ns = INT64_MAX };
	struct live_writer w;
	struct followed f, part;
	struct buf file;
	FILE *out;

	(void)state;
	begin(&w);
	for (uint64_t i = 1; i <= 4; i++)
		add_drops(&w, i * 1000, i * i); /* 1, 4, 9, 16 */
	live_writer_close(&w);
	open_follow(&f, path);
	f.follow.keep_ns = 2500 * 1000000LL; /* the first goes */
	turn(&f);
	assert_int_equal(follow_dropped(&f.follow), 16);
	buf_init(&file, &f.mem);
	assert_int_equal(follow_cut_buf(&f.follow, &late, &file, &f.err), OW_OK);
	snprintf(path, sizeof(path), "%s/other.opw", folder);
	out = fopen(path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(file.ptr, 1, file.len, out), file.len);
	fclose(out);
	buf_release(&file);
	open_follow(&part, path);
	turn(&part);
	assert_int_equal(follow_dropped(&part.follow), 12);
	close_follow(&part);
	close_follow(&f);
	snprintf(path, sizeof(path), "%s/job.opw", folder);
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
	struct ow_error err = { 0 };
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
	uint64_t next = 0;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		add_file(&w, i + 1, &next, functions[i]);
	snprintf(path, sizeof(path), "%s/000004.opw", folder);
	live_writer_open(&w, path);
	w.next[1] = next;
	add_drops(&w, 2000, 3);
	live_writer_close(&w);
	for (uint64_t n = 1; !done && n < 1000; n++) {
		struct follow_range range = all_of();
		struct ow_error err = { 0 };
		struct follow f;
		struct buf file;
		struct mem mem;
		ow_status status;

		mem_init(&mem, 0);
		buf_init(&file, &mem);
		mem_fail_after(n, true);
		status = follow_open(&f, &mem, folder, 120 * 1000000000LL, &err);
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
		TEST(stacks_survive_changes_of_file),
		TEST(stacks_survive_a_second_sampler),
		TEST(what_is_told_again_is_kept_once),
		TEST(samples_alone_are_forgotten_too),
		TEST(a_part_has_its_own_drops),
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
