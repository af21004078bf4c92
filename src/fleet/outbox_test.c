/* outbox_test.c: messages arrive in their order, wait while the place is away, and take no more memory than allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/clock.h"
#include "fleet/outbox.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct place {
	_Atomic bool away;
	_Atomic int count;
	_Atomic int attempts;
	char got[64][16];
	char said[512];
};

static enum outbox_result take(void *arg, uint32_t kind, struct str text, const volatile bool *stop,
			       char why[512])
{
	struct place *p = arg;

	(void)stop;
	p->attempts++;
	if (p->away) {
		snprintf(why, 512, "no server is there");
		return OUTBOX_LATER;
	}
	if (kind == 9)
		return OUTBOX_REFUSED;
	if (p->count < 64)
		snprintf(p->got[p->count], sizeof(p->got[0]), "%.*s", (int)text.len, text.ptr);
	p->count++;
	return OUTBOX_SENT;
}

static void hear(void *arg, const char *text, size_t len)
{
	struct place *p = arg;

	snprintf(p->said + strlen(p->said), sizeof(p->said) - strlen(p->said), "%.*s|", (int)len,
		 text);
}

static struct outbox *begin(struct place *p, size_t limit)
{
	const struct outbox_options options = { .name = "there",
						.limit = limit,
						.send = take,
						.arg = p,
						.message = hear,
						.message_arg = p };
	struct ow_error err = { 0 };
	struct outbox *o;

	assert_int_equal(outbox_start(&options, &o, &err), OW_OK);
	return o;
}

static void all_arrive_in_order(void **state)
{
	static struct place p;
	struct outbox *o = begin(&p, 100000);

	(void)state;
	for (int i = 0; i < 50; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		outbox_add(o, i == 20 ? 9 : 1, str_from(text));
	}
	outbox_stop(o, 5000000000);
	assert_int_equal(p.count, 49);
	assert_string_equal(p.got[0], "0");
	assert_string_equal(p.got[20], "21");
	assert_string_equal(p.got[48], "49");
	assert_non_null(strstr(p.said, "not taken"));
}

static void a_place_that_is_away_is_waited_for(void **state)
{
	static struct place p = { .away = true };
	struct outbox_counts counts;
	struct outbox *o = begin(&p, 600);

	(void)state;
	for (int i = 0; i < 100; i++) { /* adding does not wait, and the oldest are dropped */
		char text[16];

		snprintf(text, sizeof(text), "n%d", i);
		outbox_add(o, 1, str_from(text));
	}
	while (!p.attempts)
		usleep(1000);
	p.away = false;
	for (int i = 0; i < 500 && p.count < 2; i++)
		usleep(10000);
	outbox_counts(o, &counts);
	outbox_stop(o, 5000000000);
	assert_true(p.count >= 2 && p.count < 40);
	assert_string_equal(p.got[p.count - 1], "n99");
	assert_int_equal(counts.added, 100);
	assert_true(counts.dropped > 50);
	assert_non_null(strstr(p.said, "there: no server is there; trying again|"));
	assert_non_null(strstr(p.said, "sending again; "));
}

static void ending_does_not_wait_for_ever(void **state)
{
	static struct place p = { .away = true };
	struct outbox *o = begin(&p, 1000);
	int64_t start;

	(void)state;
	outbox_add(o, 1, STR("x"));
	start = steady_ns();
	outbox_stop(o, 300000000);
	assert_true(steady_ns() - start < 5000000000);
	assert_int_equal(p.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_arrive_in_order),
		cmocka_unit_test(a_place_that_is_away_is_waited_for),
		cmocka_unit_test(ending_does_not_wait_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
