/*
 * sharing_test.c: one frozen profile, asked by several threads at once, gives each of them what it gives
 * one alone. Worth most under the thread sanitizer (make tsan): tables that are made when first asked
 * for (stacks, sums, an opwatch file's columns) are asked for by all threads together.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/every_view.h"

#define THREADS 4

struct asker {
	pthread_t thread;
	ow_profile *profile;
	pthread_barrier_t *start;
	struct every_view all;
};

static char saved_path[64];

static void *ask(void *arg)
{
	struct asker *a = arg;

	pthread_barrier_wait(a->start);
	every_view(&a->all, a->profile);
	return NULL;
}

static ow_profile *open_one(const char *path)
{
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;

	if (ow_profile_open(&path, 1, NULL, &profile, &err) != OW_OK)
		fail_msg("%s", err.text);
	return profile;
}

static ow_profile *open_source(const char *relative)
{
	const char *root = getenv("OPWATCH_SRC");
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", root ? root : ".", relative);
	return open_one(path);
}

/* Takes the profile, whose lazy tables nobody has asked for yet, and another that one thread asks. */
static void ask_together(ow_profile *profile, ow_profile *alone)
{
	struct asker askers[THREADS] = { 0 };
	struct every_view expected = { 0 };
	pthread_barrier_t start;

	assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
	for (int i = 0; i < THREADS; i++) {
		askers[i].profile = profile;
		askers[i].start = &start;
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
	pthread_barrier_destroy(&start);
	ow_profile_free(profile);

	every_view(&expected, alone);
	ow_profile_free(alone);
	assert_true(expected.views > 10);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(askers[i].all.views, expected.views);
		assert_int_equal(askers[i].all.bytes, expected.bytes);
		assert_int_equal(askers[i].all.hash, expected.hash);
	}
}

static void test_tensorflow(void **state)
{
	(void)state;
	ask_together(open_source("samples/resnet.profile"), open_source("samples/resnet.profile"));
}

static void test_trace(void **state)
{
	const char *path = "tests/fuzz/seeds/trace/kineto.json";

	(void)state;
	ask_together(open_source(path), open_source(path));
}

/* Columns of an opwatch file are checked and unpacked when first used. */
static void test_saved(void **state)
{
	ow_profile *profile = open_source("samples/resnet.profile");
	struct ow_error err = { 0 };

	(void)state;
	if (ow_profile_save(profile, saved_path, NULL, &err) != OW_OK)
		fail_msg("%s", err.text);
	ow_profile_free(profile);
	ask_together(open_one(saved_path), open_one(saved_path));
}

static int remove_saved(void **state)
{
	(void)state;
	unlink(saved_path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tensorflow),
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_saved),
	};

	snprintf(saved_path, sizeof(saved_path), "/tmp/opwatch-sharing-%ld.opw", (long)getpid());
	return cmocka_run_group_tests(tests, NULL, remove_saved);
}
