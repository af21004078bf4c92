/* pb_copy_test.c: what is small is copied, what is large is left out or entered, and limits hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/pb_copy.h"
#include "wire/pb_write.h"

/* message { 1: "name", 2: 7, 3: 300 × 'w', 5: { 1: "key", 2: { 8: 300 × 'w', 6: 4 } }, 40: "far", 41: fixed } */
static void put_sample(struct buf *out)
{
	size_t attr, value;

	pb_put_str(out, 1, STR("name"));
	pb_put_varint(out, 2, 7);
	attr = pb_begin(out, 3);
	buf_add_repeat(out, 'w', 300);
	pb_end(out, attr);
	attr = pb_begin(out, 5);
	pb_put_str(out, 1, STR("key"));
	value = pb_begin(out, 2);
	pb_put_varint(out, 6, 4);
	pb_put_varint(out, 8, 5);
	pb_put_bytes(out, 8, (const uint8_t[300]){ 0 }, 300);
	pb_end(out, value);
	pb_end(out, attr);
	pb_put_str(out, 40, STR("far"));
	pb_put_fixed64(out, 41, 1);
}

/* Copies the first `len` bytes of the sample (all when it is shorter) and tells how the stream ended. */
static ow_status copy(const struct pb_copy *what, size_t len, struct buf *to)
{
	struct pb_stream stream;
	struct window window;
	struct input in;
	struct buf bytes;

	buf_init(&bytes, to->mem);
	put_sample(&bytes);
	assert_false(bytes.failed);
	assert_int_equal(
		input_from_memory(&in, to->mem, "sample", bytes.ptr, MIN(len, bytes.len), NULL),
		OW_OK);
	window_init(&window, &in, NULL);
	pb_stream_init(&stream, &window, 0, in.size);
	pb_copy_small(&stream, what, to);
	window_release(&window);
	input_close(&in);
	buf_release(&bytes);
	return stream.status;
}

static void assert_same(const struct buf *a, const struct buf *b)
{
	assert_int_equal(a->len, b->len);
	assert_memory_equal(a->ptr, b->ptr, a->len);
}

struct pair {
	struct mem mem;
	struct buf got, expected;
};

static int set_up(void **state)
{
	static struct pair pair;

	mem_init(&pair.mem, 0);
	buf_init(&pair.got, &pair.mem);
	buf_init(&pair.expected, &pair.mem);
	*state = &pair;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *pair = *state;

	buf_release(&pair->got);
	buf_release(&pair->expected);
	assert_int_equal(pair->mem.used, 0);
	return 0;
}

static void large_fields_are_left_out(void **state)
{
	const struct pb_copy what = { .field_max = 100, .max = 4096 };
	struct pair *pair = *state;

	assert_int_equal(copy(&what, SIZE_MAX, &pair->got), OW_OK);
	pb_put_str(&pair->expected, 1, STR("name"));
	pb_put_varint(&pair->expected, 2, 7);
	pb_put_str(&pair->expected, 40, STR("far"));
	assert_same(&pair->got, &pair->expected);
}

static void large_fields_on_the_path_are_entered(void **state)
{
	const uint32_t path[] = { 5, 2, 8 };
	const struct pb_copy what = {
		.field_max = 100,
		.max = 4096,
		.only = 1u << 1 | 1u << 5,
		.path = path,
		.path_len = 2,
	};
	struct buf *expected = &((struct pair *)*state)->expected;
	struct pair *pair = *state;
	size_t attr, value;

	assert_int_equal(copy(&what, SIZE_MAX, &pair->got), OW_OK);
	pb_put_str(expected, 1, STR("name"));
	attr = pb_begin(expected, 5);
	pb_put_str(expected, 1, STR("key"));
	value = pb_begin(expected, 2);
	pb_put_varint(expected, 6, 4);
	pb_put_varint(expected, 8, 5);
	pb_end(expected, value);
	pb_end(expected, attr);
	assert_same(&pair->got, expected);
}

static void the_copy_ends_at_its_limit(void **state)
{
	const struct pb_copy what = { .field_max = 1000, .max = 7 };
	struct pair *pair = *state;

	assert_int_equal(copy(&what, SIZE_MAX, &pair->got), OW_OK);
	pb_put_str(&pair->expected, 1, STR("name"));
	pb_put_varint(&pair->expected, 2, 7);
	assert_same(&pair->got, &pair->expected);
}

static void damage_ends_the_copy(void **state)
{
	const struct pb_copy what = { .field_max = 1000, .max = 4096 };
	struct pair *pair = *state;

	assert_int_equal(copy(&what, 100, &pair->got), OW_E_CORRUPT);
	pb_put_str(&pair->expected, 1, STR("name"));
	pb_put_varint(&pair->expected, 2, 7);
	assert_same(&pair->got, &pair->expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(large_fields_are_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(large_fields_on_the_path_are_entered, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_copy_ends_at_its_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damage_ends_the_copy, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
