/*
 * collector_test.c: a process that loses its connection and connects again is still one process: what it dropped, and what it
 * could not tell, counts once; without memory nothing leaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "live/record/collector.h"
#include "support/fake_process.h"
#include "support/profile_view.h"

static char path[64];

struct collecting {
	struct mem mem;
	struct recording recording;
	struct collector collector;
	struct fake fake;
};

static int begin(void **state)
{
	struct collecting *c = calloc(1, sizeof(*c));
	struct ow_error err = { 0 };
	int fd;

	snprintf(path, sizeof(path), "/tmp/opwatch-collector-XXXXXX");
	fd = mkstemp(path);
	assert_true(c && fd >= 0);
	close(fd);
	mem_init(&c->mem, 0);
	fake_open(&c->fake);
	assert_int_equal(recording_open(&c->recording, &c->mem, path, "test", &err), OW_OK);
	collector_init(&c->collector, &c->mem, &c->recording);
	*state = c;
	return 0;
}

static int end(void **state)
{
	struct collecting *c = *state;

	fake_close(&c->fake);
	assert_int_equal(c->mem.used, 0);
	free(c);
	return unlink(path);
}

static void connect_process(struct collecting *c)
{
	fake_connect(&c->fake);
	fake_send_ring(&c->fake);
	(void)collector_adopt(&c->collector, c->fake.sockets[0], (uint32_t)getpid(), 0,
			      c->fake.region_fd);
	collector_drain(&c->collector);
}

static void hang_up(struct collecting *c)
{
	close(c->fake.sockets[1]);
	collector_drain(&c->collector);
	assert_int_equal(collector_live(&c->collector), 0);
}

static void close_recording(struct collecting *c)
{
	struct ow_error err = { 0 };

	collector_close(&c->collector);
	assert_int_equal(recording_close(&c->recording, &err), OW_OK);
}

static int64_t noted(const char *kind)
{
	ow_profile *profile = profile_of(path);
	ow_result *notes = view_of(profile, "notes");
	int64_t sum = 0;

	for (uint32_t i = 0; i < ow_result_rows(notes); i++)
		if (strcmp(ow_result_text(notes, i, ow_result_find(notes, "kind"), NULL), kind) ==
		    0)
			sum += ow_result_int(notes, i, ow_result_find(notes, "count"));
	ow_result_free(notes);
	ow_profile_free(profile);
	return sum;
}

static void who_connects_anew_is_the_same(void **state)
{
	struct collecting *c = *state;
	const struct collector_totals *totals = &c->collector.totals;

	connect_process(c);
	fake_push(&c->fake, 10);
	atomic_store(&c->fake.ring->dropped, 5);
	atomic_store(&c->fake.region->text_lost, 2);
	hang_up(c);
	assert_int_equal(totals->dropped, 5);
	connect_process(c);
	fake_push(&c->fake, 3);
	atomic_store(&c->fake.ring->dropped, 7);
	atomic_store(&c->fake.region->text_lost, 3);
	hang_up(c);
	assert_int_equal(totals->dropped, 7);
	assert_int_equal(totals->records, 13);
	assert_int_equal(totals->processes, 1);
	assert_int_equal(totals->texts_lost, 3);
	close_recording(c);
	assert_int_equal(noted("dropped"), 7);
	assert_int_equal(noted("missing"), 3); /* texts */
}

/* Ends of steps may be among what was dropped: that is said. */
static void dropped_ends_of_steps_are_told(void **state)
{
	struct collecting *c = *state;

	connect_process(c);
	fake_push(&c->fake, 10);
	atomic_store(&c->fake.ring->dropped, 5);
	atomic_store(&c->fake.ring->dropped_marks, 2);
	hang_up(c);
	close_recording(c);
	assert_int_equal(noted("dropped"), 5 + 2);
}

/* The number of a process may be another's later. */
static void another_one_with_that_pid_is_another(void **state)
{
	struct collecting *c = *state;

	connect_process(c);
	fake_push(&c->fake, 10);
	hang_up(c);
	fake_close(&c->fake);
	fake_open(&c->fake);
	c->fake.region->clock_monotonic_ns = 2000;
	connect_process(c);
	fake_push(&c->fake, 4);
	hang_up(c);
	assert_int_equal(c->collector.totals.processes, 2);
	assert_int_equal(c->collector.totals.records, 14);
	close_recording(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_connects_anew_is_the_same),
		TEST(dropped_ends_of_steps_are_told),
		TEST(another_one_with_that_pid_is_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
