/*
 * recorder_test.c: what a program records of itself is what the profile has: closed, still being written, after
 * the process was killed, from many threads, in a child that must stay silent, cut short and with bits turned.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "support/profile_view.h"
#include "wire/own/opw.h"
#include "opwatch/record.h"

static char path[64], other_path[64];

static ow_recorder *start(const char *file)
{
	struct ow_error err = { 0 };
	ow_recorder *r = NULL;

	if (ow_recorder_open(file, NULL, &r, &err) != OW_OK)
		fail_msg("%s", err.text);
	return r;
}

static uint32_t name(ow_recorder *r, const char *text)
{
	return ow_recorder_name(r, text, strlen(text));
}

static void finish(ow_recorder *r)
{
	struct ow_error err = { 0 };

	if (ow_recorder_close(r, &err) != OW_OK)
		fail_msg("%s", err.text);
}

/* The row of an op, or UINT32_MAX. */
static uint32_t find_op(const ow_result *ops, const char *op)
{
	uint32_t column = ow_result_find(ops, "name");

	for (uint32_t row = 0; row < ow_result_rows(ops); row++)
		if (strcmp(ow_result_text(ops, row, column, NULL), op) == 0)
			return row;
	return UINT32_MAX;
}

static int64_t runs_of(const char *file, const char *op)
{
	static const char *const select[] = { "occurrence", "micros" };
	ow_profile *profile = profile_of(file);
	struct ow_view_options options;
	struct ow_error err = { 0 };
	ow_result *ops;
	uint32_t row;
	int64_t runs = 0;

	ow_view_options_init(&options);
	options.select = (struct ow_list){ select, 2 };
	options.max_depth = 1000000;
	assert_int_equal(ow_view(profile, "op", &options, &ops, &err), OW_OK);
	row = find_op(ops, op);
	if (row != UINT32_MAX)
		runs = ow_result_int(ops, row, ow_result_find(ops, "run_count"));
	ow_result_free(ops);
	ow_profile_free(profile);
	return runs;
}

static size_t steps_of(const char *file)
{
	ow_profile *profile = profile_of(file);
	size_t count;

	assert_int_equal(ow_profile_steps(profile, NULL, 0, &count, NULL), OW_OK);
	ow_profile_free(profile);
	return count;
}

/* Times that are given, so that results are known. */
static void record_steps(ow_recorder *r, int steps)
{
	int64_t t = 1600000000000000000;

	for (int i = 0; i < steps; i++, t += 100000000) {
		ow_recorder_step(r, INT64_MIN, t);
		ow_recorder_slice(r, name(r, "data"), t, t + 60000000);
		ow_recorder_slice(r, name(r, "forward"), t + 60000000, t + 80000000);
		ow_recorder_slice(r, name(r, "something of mine"), t + 80000000, t + 90000000);
		ow_recorder_value(r, name(r, "loss"), 1.5 / (i + 1));
	}
	ow_recorder_step(r, INT64_MIN, t); /* one that never was */
	ow_recorder_end_step(r, true);
}

static void expect_steps(ow_profile *profile, uint32_t count)
{
	ow_result *steps = view_of(profile, "steps");

	assert_int_equal(ow_result_rows(steps), count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(ow_result_int(steps, i, ow_result_find(steps, "step")), i + 3);
		assert_int_equal(ow_result_int(steps, i, ow_result_find(steps, "duration_ns")),
				 100000000);
		assert_int_equal(ow_result_int(steps, i, ow_result_find(steps, "input_ns")),
				 60000000);
		assert_int_equal(ow_result_int(steps, i, ow_result_find(steps, "compute_ns")),
				 20000000);
		assert_int_equal(ow_result_int(steps, i, ow_result_find(steps, "host_ns")),
				 20000000);
		assert_int_equal(ow_result_int(steps, i, ow_result_find(steps, "idle_ns")), 0);
	}
	ow_result_free(steps);
}

static void test_steps_and_phases(void **state)
{
	struct ow_recorder_options options;
	struct ow_error err = { 0 };
	ow_profile *profile;
	ow_recorder *r;

	(void)state;
	ow_recorder_options_init(&options);
	options.first_step = 3;
	assert_int_equal(ow_recorder_open(path, &options, &r, &err), OW_OK);
	record_steps(r, 5);
	profile = profile_of(path); /* while it is being written */
	assert_false(ow_profile_damaged(profile));
	expect_steps(profile, 5);
	ow_profile_free(profile);
	finish(r);

	profile = profile_of(path);
	assert_false(ow_profile_damaged(profile));
	expect_steps(profile, 5);
	ow_profile_free(profile);
	assert_int_equal(runs_of(path, "data"), 1); /* in an average step */
	assert_int_equal(runs_of(path, "something of mine"), 1);
}

/* Marks say what was since the mark before. */
static void test_marks(void **state)
{
	struct timespec nap = { 0, 2000000 };
	ow_recorder *r = start(path);
	uint32_t forward = name(r, "forward"), backward = name(r, "backward");
	ow_profile *profile;
	ow_result *steps;
	int64_t compute, duration;

	(void)state;
	assert_int_equal(name(r, "forward"), forward);
	assert_int_not_equal(forward, backward);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ow_recorder_step(r, INT64_MIN, INT64_MIN), i);
		nanosleep(&nap, NULL);
		ow_recorder_mark(r, forward);
		nanosleep(&nap, NULL);
		ow_recorder_mark(r, backward);
	}
	ow_recorder_end_step(r, false);
	finish(r);
	profile = profile_of(path);
	steps = view_of(profile, "steps");
	for (uint32_t i = 0; i < 3; i++) {
		compute = ow_result_int(steps, i, ow_result_find(steps, "compute_ns"));
		duration = ow_result_int(steps, i, ow_result_find(steps, "duration_ns"));
		assert_true(compute >= 4000000 && compute <= duration);
	}
	ow_result_free(steps);
	ow_profile_free(profile);
}

#define MANY 100000 /* more than the first segments hold */

static void test_many_segments(void **state)
{
	ow_recorder *r = start(path);
	uint32_t forward = name(r, "forward");

	(void)state;
	for (int i = 0; i < MANY; i++)
		ow_recorder_mark(r, forward);
	assert_int_equal(runs_of(path, "forward"), MANY);
	finish(r);
	assert_int_equal(runs_of(path, "forward"), MANY);
}

struct worker {
	pthread_t thread;
	ow_recorder *recorder;
	int number;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	char text[32];

	snprintf(text, sizeof(text), "worker %d", w->number);
	ow_recorder_name_thread(w->recorder, name(w->recorder, text));
	for (int i = 0; i < 20000; i++)
		ow_recorder_mark(w->recorder, name(w->recorder, i % 2 ? "even" : "odd"));
	return NULL;
}

static void test_threads(void **state)
{
	ow_recorder *r = start(path);
	struct worker workers[4];
	ow_profile *profile;
	ow_result *tracks;
	int named = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		workers[i] = (struct worker){ .recorder = r, .number = i };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
	finish(r);
	assert_int_equal(runs_of(path, "even") + runs_of(path, "odd"), 80000);
	profile = profile_of(path);
	assert_false(ow_profile_damaged(profile));
	tracks = view_of(profile, "tracks");
	for (uint32_t c = 0; c < ow_result_columns(tracks); c++)
		for (uint32_t i = 0; i < ow_result_rows(tracks); i++)
			named += strncmp(ow_result_text(tracks, i, c, NULL), "worker ", 7) == 0;
	assert_int_equal(named, 4);
	ow_result_free(tracks);
	ow_profile_free(profile);
}

/* ---- processes ---- */

static void wait_for(pid_t child, bool killed)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Tells through a pipe how many marks have returned, then dies without a word. */
static void record_and_die(int marks, int fd)
{
	ow_recorder *r = start(path);
	uint32_t mark = name(r, "mark");

	for (int i = 0; i < marks; i++)
		ow_recorder_mark(r, mark);
	if (write(fd, &marks, sizeof(marks)) != sizeof(marks))
		_exit(1);
	for (;;) {
		ow_recorder_mark(r, mark);
		marks++;
		if (write(fd, &marks, sizeof(marks)) != sizeof(marks))
			_exit(1);
	}
}

static void test_killed(void **state)
{
	(void)state;
	for (int round = 0; round < 10; round++) {
		int pipes[2], marks = 0, last = 0, first = 1 + round * 700;
		pid_t child;

		assert_int_equal(pipe(pipes), 0);
		child = fork();
		if (!child)
			record_and_die(first, pipes[1]);
		close(pipes[1]);
		while (last < first + 20 && read(pipes[0], &marks, sizeof(marks)) == sizeof(marks))
			last = marks;
		kill(child, SIGKILL);
		wait_for(child, true);
		while (read(pipes[0], &marks, sizeof(marks)) == sizeof(marks))
			last = marks; /* what returned before the end */
		close(pipes[0]);
		assert_true(last >= first + 20);
		/* One more may have been written and not been told. */
		assert_in_range(runs_of(path, "mark"), last, last + 1);
	}
}

static void test_child_is_silent(void **state)
{
	ow_recorder *r = start(path);
	uint32_t mark = name(r, "mark");
	pid_t child;

	(void)state;
	ow_recorder_mark(r, mark);
	child = fork();
	if (!child) {
		struct ow_error err;

		if (ow_recorder_is_ours(r))
			_exit(1);
		ow_recorder_mark(r, mark);
		ow_recorder_step(r, 7, INT64_MIN);
		ow_recorder_value(r, ow_recorder_name(r, "new", 3), 1);
		ow_recorder_end_step(r, false);
		_exit(ow_recorder_close(r, &err) == OW_OK ? 0 : 2);
	}
	wait_for(child, false);
	assert_true(ow_recorder_is_ours(r));
	ow_recorder_mark(r, mark);
	finish(r);
	assert_int_equal(runs_of(path, "mark"), 2);
	assert_int_equal(runs_of(path, "new"), 0);
}

/* A script that is started again takes the name, not the file. */
static void test_replaced(void **state)
{
	ow_recorder *first = start(path), *second = start(path);

	(void)state;
	for (int i = 0; i < MANY; i++)
		ow_recorder_mark(first, name(first, "first"));
	ow_recorder_mark(second, name(second, "second"));
	finish(first);
	finish(second);
	assert_int_equal(runs_of(path, "second"), 1);
	assert_int_equal(runs_of(path, "first"), 0);
}

static void test_wrong_places(void **state)
{
	const char *const places[] = { "/no/such/folder/x.opw", "/dev/null", "/tmp" };
	struct ow_error err;
	struct stat st;
	ow_recorder *r;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		assert_int_not_equal(ow_recorder_open(places[i], NULL, &r, &err), OW_OK);
		assert_null(r);
		assert_non_null(strstr(err.text, places[i]));
	}
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(ow_recorder_close(NULL, &err), OW_OK);
}

/* ---- damage ---- */

static size_t read_all(const char *file, unsigned char *bytes, size_t cap)
{
	FILE *f = fopen(file, "rb");
	size_t len;

	assert_non_null(f);
	len = fread(bytes, 1, cap, f);
	fclose(f);
	return len;
}

static void write_all(const char *file, const unsigned char *bytes, size_t len)
{
	FILE *f = fopen(file, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
}

/* Whatever happens to the file: a status, or a profile that answers. */
static void expect_no_crash(const unsigned char *bytes, size_t len)
{
	const char *file = other_path;
	struct ow_error err;
	ow_profile *profile;
	ow_result *result;

	write_all(other_path, bytes, len);
	if (ow_profile_open(&file, 1, NULL, &profile, &err) != OW_OK)
		return;
	if (ow_view(profile, "steps", NULL, &result, &err) == OW_OK)
		ow_result_free(result);
	ow_profile_free(profile);
}

static void test_damage(void **state)
{
	static unsigned char bytes[16384], changed[16384];
	ow_recorder *r = start(path);
	size_t len;

	(void)state;
	record_steps(r, 20);
	finish(r);
	len = read_all(path, bytes, sizeof(bytes));
	assert_in_range(len, 3000, sizeof(bytes) - 1);
	for (size_t cut = 0; cut < len; cut += 37)
		expect_no_crash(bytes, cut);
	for (size_t at = 0; at < len; at += 11) {
		memcpy(changed, bytes, len);
		changed[at] ^= (unsigned char)(1u << at % 8);
		expect_no_crash(changed, len);
	}
}

/* One record is lost, and told. */
static void test_damaged_record(void **state)
{
	static unsigned char bytes[16384];
	ow_recorder *r = start(path);
	ow_profile *profile;
	size_t len;

	(void)state;
	record_steps(r, 20);
	finish(r);
	len = read_all(path, bytes, sizeof(bytes));
	bytes[64 + 192 + 32 * 40] ^= 1;
	write_all(other_path, bytes, len);
	profile = profile_of(other_path);
	assert_true(ow_profile_damaged(profile));
	ow_profile_free(profile);
	assert_in_range(steps_of(other_path), 19, 20);
}

/* Where the last record that was written lies, `back` records before it. */
static size_t last_record(const unsigned char *bytes, size_t len, size_t back)
{
	static const unsigned char blank[32];
	size_t at = 64 + 192, last = 0;

	for (; at + 32 <= len && memcmp(bytes + at, blank, 32) != 0; at += 32)
		last = at;
	assert_true(last > 32 * back);
	return last - 32 * back;
}

static bool damaged_after(const unsigned char *bytes, size_t len, size_t steps)
{
	ow_profile *profile;
	bool damaged;

	write_all(other_path, bytes, len);
	profile = profile_of(other_path);
	damaged = ow_profile_damaged(profile);
	ow_profile_free(profile);
	assert_int_equal(steps_of(other_path), steps);
	return damaged;
}

/* A process that is killed while it writes leaves half a record, which was not recorded yet. */
static void test_half_a_record(void **state)
{
	static unsigned char bytes[4 << 20], torn[sizeof(bytes)];
	ow_recorder *r = start(path);
	size_t len, last;

	(void)state;
	record_steps(r, 3);
	name(r, "a name of three records, the text of which was written before its head: 64");
	len = read_all(path, bytes, sizeof(bytes));
	finish(r);
	assert_in_range(len, 3000, sizeof(bytes) - 1);
	last = last_record(bytes, len, 3); /* the head of the name */
	for (size_t cut = 1; cut < 32; cut++) {
		memcpy(torn, bytes, len);
		memset(torn + last + cut, 0, 32 - cut);
		assert_false(damaged_after(torn, len, 3));
		memset(torn + last + 32, 0, len - last - 32); /* a record that is not a name */
		assert_false(damaged_after(torn, len, 3));
		memcpy(torn, bytes, len);
		memset(torn + last, 0xff, cut);
		assert_false(damaged_after(torn, len, 3));
	}
	/* With a good one behind it, it is damage. */
	memcpy(torn, bytes, len);
	torn[last - 96] ^= 1; /* a value */
	assert_true(damaged_after(torn, len, 3));
}

static void test_no_memory(void **state)
{
	struct ow_error err;
	ow_recorder *r;
	uint64_t n;
	int refused = 0;

	(void)state;
	for (n = 1; n < 100; n++) {
		ow_status status;

		mem_fail_after(n, false);
		status = ow_recorder_open(path, NULL, &r, &err);
		if (status == OW_OK) {
			ow_recorder_step(r, INT64_MIN, INT64_MIN);
			ow_recorder_mark(r, name(r, "mark"));
			ow_recorder_name_thread(r, name(r, "me"));
			status = ow_recorder_close(r, &err);
		}
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		if (n > 20)
			break;
	}
	assert_int_equal(access(path, R_OK), 0);

	r = start(path);
	record_steps(r, 20);
	finish(r);
	for (n = 1; n < 400; n++) {
		const char *file = path;
		ow_profile *profile = NULL;
		ow_status status;

		mem_fail_after(n, false); /* what is only nice to have may be missing */
		status = ow_profile_open(&file, 1, NULL, &profile, &err);
		mem_fail_after(0, false);
		ow_profile_free(profile);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		refused += status != OW_OK;
	}
	assert_in_range(refused, 20, 390);
}

static void test_nothing_marked(void **state)
{
	const char *file = path;
	ow_profile *profile;
	struct ow_error err;

	(void)state;
	finish(start(path));
	assert_int_equal(ow_profile_open(&file, 1, NULL, &profile, &err), OW_E_EMPTY);
	assert_non_null(strstr(err.text, "no slices or counters"));
}

static void test_long_names(void **state)
{
	char text[5000];
	ow_recorder *r = start(path);

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t len = 1; len < sizeof(text); len += 31)
		ow_recorder_mark(r, ow_recorder_name(r, text, len));
	ow_recorder_mark(r, ow_recorder_name(r, "a\xff", 2));
	ow_recorder_mark(r, ow_recorder_name(r, "", 0));
	finish(r);
	text[4062] = '\0'; /* 1 + 131 * 31 */
	assert_int_equal(runs_of(path, text), 1);
	assert_int_equal(runs_of(path, "a"), 1);
}

static int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(other_path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_and_phases), cmocka_unit_test(test_marks),
		cmocka_unit_test(test_many_segments),	 cmocka_unit_test(test_threads),
		cmocka_unit_test(test_killed),		 cmocka_unit_test(test_child_is_silent),
		cmocka_unit_test(test_replaced),	 cmocka_unit_test(test_wrong_places),
		cmocka_unit_test(test_damage),		 cmocka_unit_test(test_damaged_record),
		cmocka_unit_test(test_half_a_record),	 cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_nothing_marked),	 cmocka_unit_test(test_long_names),
	};

	snprintf(path, sizeof(path), "/tmp/opwatch-recorder-%ld.opw", (long)getpid());
	snprintf(other_path, sizeof(other_path), "/tmp/opwatch-recorder-%ld-b.opw", (long)getpid());
	return cmocka_run_group_tests(tests, NULL, remove_files);
}
