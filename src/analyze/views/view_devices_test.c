/* view_devices_test.c: devices of tracks and of ops are the same when only the case differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/view_text.h"

static void rows(void **state)
{
	struct small_model s;
	op_id op;

	(void)state;
	small_open(&s);
	builder_device(&s.b, STR("/job:localhost/replica:0/task:0/device:GPU:0"));
	op = small_op(&s, "a", "MatMul", GPU0);
	small_run(&s, op, 0, 100, 10, 20);
	small_run(&s, op, 1, 200, 20, 40);
	small_run(&s, small_op(&s, "b", "Add", GPU0), 1, 210, 30, 0); /* overlaps a by 10 */
	small_op(&s, "c", "Add", CPU0);				      /* placed, never ran */
	builder_add_memory(&s.b, &(struct memory_row){ .op_step = 1, .in_use = 4096 });
	builder_add_memory(&s.b, &(struct memory_row){ .op_step = 2, .in_use = 8192 });
	small_freeze(&s);
	view_text_expect(&s, &view_devices, NULL,
			 "/device:GPU:0/stream:all|gpu|0|2|60000|30000|-\n" CPU0
			 "|unknown|1|0|0|0|-\n"
			 "/job:localhost/replica:0/task:0/device:GPU:0|gpu|2|3|50000|25000|8192\n");
	view_text_fail_each(&s, &view_devices);
	small_close(&s);
}

static void empty(void **state)
{
	struct small_model s;

	(void)state;
	small_open(&s);
	small_freeze(&s);
	view_text_expect(&s, &view_devices, NULL, "");
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(rows), cmocka_unit_test(empty) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
