/* pb_stream_test.c: the streaming reader over memory and over a file, whole and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "base/temp_file.h"
#include "wire/protobuf/pb_stream.h"
#include "wire/protobuf/pb_write.h"

/* What a walk over the sample found. */
struct found {
	uint64_t records, bytes, scalars;
	ow_status status;
	struct ow_error err;
};

/* message { 1: container { 1: record { 1: i, 2: text } * count, 2: 9 }, 5: skipped, 6: fixed } */
static void put_sample(struct buf *out, size_t count, size_t skipped)
{
	size_t container, record;

	container = pb_begin(out, 1);
	for (size_t i = 0; i < count; i++) {
		record = pb_begin(out, 1);
		pb_put_varint(out, 1, i);
		pb_put_str(out, 2, STR("some text"));
		pb_end(out, record);
	}
	pb_put_varint(out, 2, 9);
	buf_add(out, "\x1b\x08\x01\x12\x01x\x23\x24\x1c", 9); /* group 3 { 1: 1 2: "x" 4 {} } */
	pb_end(out, container);
	record = pb_begin(out, 5);
	buf_add_repeat(out, 'x', skipped);
	pb_end(out, record);
	pb_put_fixed64(out, 6, 10);
	pb_put_fixed32(out, 7, 11);
	pb_put_varint(out, 8, 12);
}

static void read_record(struct pb_stream *s, const struct pb_stream_field *f, struct found *found)
{
	const uint8_t *bytes = pb_stream_bytes(s, f);
	struct pb_field field;
	struct pb record;

	if (!bytes)
		return;
	record = pb_over(bytes, (size_t)f->size);
	while (pb_next(&record, &field))
		found->bytes += field.tag == PB_TAG(2, PB_BYTES) ? field.value : 0;
	pb_stream_damage(s, f, &record, bytes);
	found->records++;
}

static void walk(const struct input *in, struct found *found)
{
	struct pb_stream_field f;
	struct window w;
	struct pb_stream s;

	*found = (struct found){ 0 };
	window_init(&w, in, &found->err);
	pb_stream_init(&s, &w, 0, in->size);
	while (pb_stream_next(&s, &f)) {
		if (f.tag != PB_TAG(1, PB_BYTES)) {
			found->scalars += f.value;
			continue;
		}
		if (!pb_stream_enter(&s, &f))
			break;
		while (pb_stream_next(&s, &f)) {
			if (f.tag == PB_TAG(1, PB_BYTES))
				read_record(&s, &f, found);
			else
				found->scalars += f.value;
		}
		pb_stream_leave(&s);
	}
	found->status = s.status;
	window_release(&w);
}

static void walk_memory(struct mem *mem, const void *data, size_t len, struct found *found)
{
	struct input in;

	assert_int_equal(input_from_memory(&in, mem, "sample", data, len, NULL), OW_OK);
	walk(&in, found);
	input_close(&in);
}

static void expect_sample(const struct found *found, size_t count)
{
	assert_int_equal(found->status, OW_OK);
	assert_int_equal(found->records, count);
	assert_int_equal(found->bytes, 9 * count);
	assert_int_equal(found->scalars, 9 + 10 + 11 + 12);
}

static void test_memory_and_file(void **state)
{
	struct found found;
	struct input in;
	struct mem mem;
	struct buf out;
	int fd = temp_file_open(NULL);

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	put_sample(&out, 200000, 5 << 20);
	assert_false(out.failed);
	walk_memory(&mem, out.ptr, out.len, &found);
	expect_sample(&found, 200000);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, out.ptr, out.len), (ssize_t)out.len);
	buf_release(&out);
	assert_int_equal(input_adopt_fd(&in, &mem, "file", fd, NULL), OW_OK);
	atomic_store(&mem.peak, 0);
	walk(&in, &found);
	expect_sample(&found, 200000);
	assert_true(mem.peak < 2 << 20); /* the window alone */
	for (uint64_t n = 1; n < 3; n++) {
		mem_fail_after(n, true);
		walk(&in, &found);
		mem_fail_after(0, false);
		assert_int_equal(found.status, n == 1 ? OW_E_NO_MEMORY : OW_OK);
	}
	input_close(&in);
	assert_int_equal(mem.used, 0);
}

/* The whole records before the cut are found; the damage is told with its offset. */
static void test_truncation(void **state)
{
	struct found found, whole;
	struct mem mem;
	struct buf out;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	put_sample(&out, 20, 30);
	walk_memory(&mem, out.ptr, out.len, &whole);
	for (size_t len = 0; len < out.len; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		size_t records = len < 3 ? 0 : (len - 3) / 15;

		memcpy(copy, out.ptr, len);
		walk_memory(&mem, copy, len, &found);
		assert_int_equal(found.records, MIN(records, 20));
		assert_true(found.status == OW_OK || found.status == OW_E_CORRUPT);
		if (found.status == OW_E_CORRUPT)
			assert_true(found.err.offset <= len);
		if (len > 1 && len <= 3 + 20 * 15)
			assert_int_equal(found.status, OW_E_CORRUPT);
		free(copy);
	}
	buf_release(&out);
}

/* Flips every bit: a status, never a crash or a hang. */
static void test_flips(void **state)
{
	struct found found;
	struct mem mem;
	struct buf out;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	put_sample(&out, 5, 30);
	for (size_t bit = 0; bit < out.len * 8; bit++) {
		out.ptr[bit / 8] = (char)(out.ptr[bit / 8] ^ 1 << bit % 8);
		walk_memory(&mem, out.ptr, out.len, &found);
		assert_true(found.status == OW_OK || found.status == OW_E_CORRUPT);
		out.ptr[bit / 8] = (char)(out.ptr[bit / 8] ^ 1 << bit % 8);
	}
	buf_release(&out);
}

static void expect_damage(const char *data, size_t len, uint64_t offset, const char *text)
{
	struct found found;
	struct mem mem;

	mem_init(&mem, 0);
	walk_memory(&mem, data, len, &found);
	assert_int_equal(found.status, OW_E_CORRUPT);
	assert_int_equal(found.err.offset, offset);
	assert_non_null(strstr(found.err.text, text));
	assert_non_null(strstr(found.err.text, "sample"));
}

static void test_damage(void **state)
{
	(void)state;
	expect_damage("\x10\x01\x00", 3, 2, "field number");
	expect_damage("\x10\x01\x0f\x00", 4, 2, "wire type");
	expect_damage("\x10\x01\x0c\x00", 4, 2, "group");
	expect_damage("\x0a\x03\x0a\x01\x08", 5, 4, "ends inside"); /* in a record */
	expect_damage("\x0a\x04\x0a\x02\x08\x80", 6, 4, "ends inside");
	expect_damage("\x0a\x05\x0a\x09", 4, 0, "truncated: field 1 has 5 bytes");
	expect_damage("\x0a\x03\x0a\x09\x08\x10\x01", 7, 2, "truncated: field 1 has 9 bytes");
	expect_damage("\x1b\x08\x01", 3, 0, "ends inside");
	expect_damage("\x1b\x24", 2, 1, "group");
	expect_damage("\x1b\x12\x7f\x1c", 4, 1, "ends inside");
	expect_damage("\x0d\x01\x02", 3, 0, "ends inside");
	expect_damage("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, 0, "varint");
}

static void test_depth(void **state)
{
	struct pb_stream_field f;
	struct pb_stream s;
	struct ow_error err;
	struct window w;
	struct input in;
	struct mem mem;
	struct buf out;
	size_t marks[PB_STREAM_DEPTH + 1];

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	for (size_t i = 0; i < ARRAY_COUNT(marks); i++)
		marks[i] = pb_begin(&out, 1);
	for (size_t i = ARRAY_COUNT(marks); i--;)
		pb_end(&out, marks[i]);
	assert_int_equal(input_from_memory(&in, &mem, "deep", out.ptr, out.len, NULL), OW_OK);
	window_init(&w, &in, &err);
	pb_stream_init(&s, &w, 0, in.size);
	for (size_t i = 0; i < PB_STREAM_DEPTH; i++) {
		assert_true(pb_stream_next(&s, &f));
		assert_true(pb_stream_enter(&s, &f));
	}
	assert_true(pb_stream_next(&s, &f));
	assert_false(pb_stream_enter(&s, &f));
	assert_int_equal(s.status, OW_E_LIMIT);
	assert_false(pb_stream_next(&s, &f));
	for (size_t i = 0; i < PB_STREAM_DEPTH; i++)
		pb_stream_leave(&s);
	assert_false(pb_stream_next(&s, &f));
	window_release(&w);
	input_close(&in);
	buf_release(&out);
	assert_int_equal(mem.used, 0);
}

/* ---- pb_copy_small: small fields are copied, large ones are left out or entered, and limits hold ---- */

/* message { 1: "name", 2: 7, 3: 300 × 'w', 5: { 1: "key", 2: { 8: 300 × 'w', 6: 4 } }, 40: "far", 41: fixed } */
static void put_copy_sample(struct buf *out)
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

/* Copies the first `len` bytes of the sample (all when it is shorter) and returns how the stream ended. */
static ow_status copy(const struct pb_copy *what, size_t len, struct buf *to)
{
	struct pb_stream stream;
	struct window window;
	struct input in;
	struct buf bytes;

	buf_init(&bytes, to->mem);
	put_copy_sample(&bytes);
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
		cmocka_unit_test(test_memory_and_file),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_flips),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_depth),
		cmocka_unit_test_setup_teardown(large_fields_are_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(large_fields_on_the_path_are_entered, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_copy_ends_at_its_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damage_ends_the_copy, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
