/* view_notes_test.c: notes with and without a source and a place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/view_text.h"

static void rows(void **state)
{
	struct view_options options;
	struct small_model s;

	(void)state;
	small_open(&s);
	builder_note(&s.b, NOTE_DROPPED, OW_NO_OFFSET, "not used: b.pb");
	small_source(&s, "a.pb", "tf_graph");
	builder_note_many(&s.b, NOTE_DAMAGED, 17, 3, "record with a bad checksum");
	builder_note_many(&s.b, NOTE_DAMAGED, 99, 2, "record with a bad checksum");
	builder_note(&s.b, NOTE_INFO, 0, "fine");
	small_freeze(&s);
	view_text_expect(&s, &view_notes, NULL,
			 "dropped|-|-|1|not used: b.pb\n"
			 "damaged|a.pb|17|5|record with a bad checksum\n"
			 "info|a.pb|0|1|fine\n");
	view_options_init(&options);
	options.limit = 1;
	view_text_expect(&s, &view_notes, &options, "dropped|-|-|1|not used: b.pb\n");
	view_text_fail_each(&s, &view_notes);
	small_close(&s);
}

static void empty(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	view_text_expect(&s, &view_notes, NULL, "");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rows), cmocka_unit_test(empty) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
