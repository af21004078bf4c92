/*
 * ring_test.c: what finds room in a ring that nobody reads: records that tell steps apart when all others are dropped, and
 * how often the writer has to look.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "wire/own/ring.h"

/* As the recorder does it: looks when `head` comes to `look`. */
struct writer {
	uint64_t records, head, look, tail, dropped, looks;
};

static bool push(struct writer *w, const struct ring_record *r)
{
	uint64_t room;

	if (w->head >= w->look) {
		w->looks++;
		room = ring_room(w->records, w->head - w->tail, ring_is_precious(r));
		if (!room) {
			w->dropped++;
			return false;
		}
		w->look = w->head + MIN(room, w->records / 8);
	}
	w->head++;
	assert_true(w->head - w->tail <= w->records);
	return true;
}

static const struct ring_record slice = { .kind = RING_SLICE, .category = RING_OPERATOR };
static const struct ring_record range = { .kind = RING_SLICE, .category = RING_RANGE };
static const struct ring_record thread = { .kind = RING_THREAD };

static void ends_of_steps_find_room(void **state)
{
	struct writer w = { .records = 1024 };
	uint64_t kept = 0;

	(void)state;
	for (unsigned step = 0; step < 40; step++) {
		for (unsigned i = 0; i < 100; i++)
			(void)push(&w, &slice);
		kept += push(&w, &range);
	}
	assert_int_equal(kept, 40);
	assert_true(push(&w, &thread));
	assert_true(w.dropped > 2900 && w.dropped < 3100);
	/* They, too, are dropped when there are too many. */
	for (unsigned i = 0; i < 100; i++)
		kept += push(&w, &range);
	assert_int_equal(w.head, 1024);
	assert_int_equal(kept, 40 + 64 - 41 + 9); /* nine had come before it was full for others */
	w.tail = w.head;
	assert_true(push(&w, &slice));
}

/* Whatever comes in whatever order, a ring never holds more than it has room for; and looking is rare while it is not full. */
static void never_more_than_it_holds(void **state)
{
	uint64_t dice = 7;

	(void)state;
	for (uint64_t records = RING_RECORDS_MIN; records <= 4096; records *= 2) {
		struct writer w = { .records = records };

		for (unsigned i = 0; i < 20000; i++) {
			dice = dice * 6364136223846793005u + 1442695040888963407u;
			(void)push(&w, dice >> 60 ? &slice : &range);
			if ((dice >> 40) % 512 == 0)
				w.tail += (dice >> 20) % (w.head - w.tail + 1);
		}
		assert_true(w.dropped < 20000);
	}
	struct writer w = { .records = 16384 };

	for (unsigned i = 0; i < 15000; i++)
		assert_true(push(&w, &slice));
	assert_true(w.looks <= 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_of_steps_find_room),
		cmocka_unit_test(never_more_than_it_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
