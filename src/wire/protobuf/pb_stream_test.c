/* pb_stream_test.c: the streaming reader over memory and over a file, whole and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "base/temp_file.h"
#include "wire/pb_stream.h"
#include "wire/pb_write.h"

/* What a walk over the sample found. */
struct found {
	uint64_t records, bytes, scalars;
	ow_status status;
	struct error err;
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
	struct error err;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_and_file), cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_flips),		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
