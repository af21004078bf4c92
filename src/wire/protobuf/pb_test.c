/* pb_test.c: the wire reader against bytes written by hand and by pb_write.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/protobuf/pb.h"
#include "wire/protobuf/pb_write.h"

#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

/* Runs over all fields; the number of them, and the problem. */
static size_t walk(const uint8_t *ptr, size_t len, enum pb_problem *problem, size_t *where)
{
	struct pb r = pb_over(ptr, len);
	struct pb_field f;
	size_t count = 0;

	while (pb_next(&r, &f))
		count++;
	assert_false(pb_next(&r, &f)); /* sticky */
	*problem = r.problem;
	*where = (size_t)(r.at - ptr);
	return count;
}

static void expect_problem(enum pb_problem want, size_t fields, size_t at, const uint8_t *ptr,
			   size_t len)
{
	/* an exact heap copy, so that reading beyond the end is seen by sanitizers and valgrind */
	uint8_t *copy = malloc(len ? len : 1);
	enum pb_problem problem;
	size_t where;

	assert_non_null(copy);
	memcpy(copy, ptr, len);
	assert_int_equal(walk(copy, len, &problem, &where), fields);
	assert_int_equal(problem, want);
	if (want)
		assert_int_equal(where, at);
	free(copy);
}

static void test_fields(void **state)
{
	static const uint8_t data[] = {
		0x08, 0x96, 0x01,				      /* 1: 150 */
		0x12, 0x03, 'a',  'b',	'c',			      /* 2: "abc" */
		0x1d, 0x00, 0x00, 0x80, 0x3f,			      /* 3: 1.0f */
		0x21, 0,    0,	  0,	0,    0,    0,	  0,	0x40, /* 4: 2.0 */
		0xfa, 0x01, 0x00,				      /* 31: "" */
		0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
	}; /* 1: -1 */
	struct pb r = pb_over(data, sizeof(data));
	struct pb_field f;

	(void)state;
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.tag, PB_TAG(1, PB_VARINT));
	assert_int_equal(f.value, 150);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.tag, PB_TAG(2, PB_BYTES));
	assert_true(str_eq(pb_str(&f), STR("abc")));
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.tag, PB_TAG(3, PB_FIXED32));
	assert_true(pb_float(f.value) == 1.0f);
	assert_true(pb_next(&r, &f));
	assert_int_equal(f.tag, PB_TAG(4, PB_FIXED64));
	assert_true(pb_double(f.value) == 2.0);
	assert_true(pb_next(&r, &f));
	assert_int_equal(pb_number(&f), 31);
	assert_int_equal(pb_str(&f).len, 0);
	assert_true(pb_next(&r, &f));
	assert_int_equal((int64_t)f.value, -1);
	assert_false(pb_next(&r, &f));
	assert_int_equal(r.problem, PB_OK);
	assert_int_equal(pb_error(&r, data, 0, NULL), OW_OK);
}

static void test_problems(void **state)
{
	(void)state;
	expect_problem(PB_OK, 0, 0, (const uint8_t *)"", 0);
	expect_problem(PB_TRUNCATED, 0, 0, BYTES(0x80));
	expect_problem(PB_TRUNCATED, 0, 0, BYTES(0x08));
	expect_problem(PB_TRUNCATED, 1, 2, BYTES(0x08, 1, 0x08, 0x80));
	expect_problem(PB_TRUNCATED, 1, 2, BYTES(0x08, 1, 0x12, 2, 'x'));
	expect_problem(PB_TRUNCATED, 0, 0, BYTES(0x0d, 1, 2, 3));
	expect_problem(PB_TRUNCATED, 0, 0, BYTES(0x09, 1, 2, 3, 4, 5, 6, 7));
	expect_problem(PB_TRUNCATED, 0, 0,
		       BYTES(0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1));
	expect_problem(PB_LONG_VARINT, 0, 0,
		       BYTES(8, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1));
	expect_problem(PB_LONG_VARINT, 0, 0,
		       BYTES(136, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1));
	expect_problem(PB_BAD_WIRE_TYPE, 0, 0, BYTES(0x0e, 1));
	expect_problem(PB_BAD_WIRE_TYPE, 1, 2, BYTES(8, 1, 0x0f, 1));
	expect_problem(PB_BAD_NUMBER, 0, 0, BYTES(0x00, 1));
	expect_problem(PB_BAD_NUMBER, 0, 0, BYTES(0x02, 0));
	expect_problem(PB_BAD_NUMBER, 0, 0, BYTES(0x05, 0, 0, 0, 0));
	expect_problem(PB_BAD_NUMBER, 0, 0, BYTES(0x80, 0x80, 0x80, 0x80, 0x10, 1));
	expect_problem(PB_STRAY_GROUP, 0, 0, BYTES(0x0c));
	expect_problem(PB_STRAY_GROUP, 0, 0, BYTES(0x0b, 0x14));
	expect_problem(PB_TRUNCATED, 0, 0, BYTES(0x0b));
	expect_problem(PB_TRUNCATED, 0, 0, BYTES(0x0b, 0x08, 1));
	expect_problem(PB_BAD_WIRE_TYPE, 0, 0, BYTES(0x0b, 0x0f, 1, 0x0c));
	expect_problem(PB_BAD_NUMBER, 0, 0, BYTES(0x0b, 0x00, 1, 0x0c));
}

static void test_groups(void **state)
{
	uint8_t deep[4 * PB_DEPTH_MAX];
	size_t len = 0;

	(void)state;
	/* group 1 { 1: 5, 2: "x", 3: fixed32, group 2 {} } then 1: 7, then group 1 {} */
	expect_problem(PB_OK, 1, 0,
		       BYTES(0x0b, 8, 5, 0x12, 1, 'x', 0x1d, 0, 0, 0, 0, 0x13, 0x14, 0x0c, 8, 7,
			     0x0b, 0x0c));
	/* and every kind of field right behind a group */
	expect_problem(PB_OK, 1, 0, BYTES(0x0b, 0x0c, 0x12, 1, 'x'));
	expect_problem(PB_OK, 1, 0, BYTES(0x0b, 0x0c, 0x0d, 1, 2, 3, 4));
	expect_problem(PB_OK, 1, 0, BYTES(0x0b, 0x0c, 0x09, 1, 2, 3, 4, 5, 6, 7, 8));
	for (size_t i = 0; i < PB_DEPTH_MAX; i++)
		deep[len++] = 0x0b;
	for (size_t i = 0; i < PB_DEPTH_MAX; i++)
		deep[len++] = 0x0c;
	expect_problem(PB_OK, 0, 0, deep, len);
	memset(deep, 0x0b, sizeof(deep));
	expect_problem(PB_DEEP_GROUP, 0, 0, deep, sizeof(deep));
}

/* All lengths of varint, at all distances from the end of the memory. */
static void test_varints(void **state)
{
	struct mem mem;
	struct buf out;

	(void)state;
	mem_init(&mem, 0);
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t want = (uint64_t)1 << bit | (bit ? bit : 0);

		for (unsigned tail = 0; tail < 12; tail++) {
			struct pb_field f;
			struct pb r;

			buf_init(&out, &mem);
			pb_put_varint(&out, 3, want);
			assert_int_equal(out.len, 1 + pb_varint_size(want));
			for (unsigned i = 0; i < tail / 2; i++)
				pb_put_varint(&out, 1, 0);
			r = pb_over(out.ptr, out.len);
			assert_true(pb_next(&r, &f));
			assert_true(f.value == want);
			for (unsigned i = 0; i < tail / 2; i++)
				assert_true(pb_next(&r, &f));
			assert_false(pb_next(&r, &f));
			assert_int_equal(r.problem, PB_OK);
			buf_release(&out);
		}
	}
	/* longer than needed is allowed, up to ten bytes; what exceeds 64 bits is dropped */
	expect_problem(PB_OK, 1, 0,
		       BYTES(8, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0));
	expect_problem(PB_OK, 1, 0, BYTES(8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x7f));
}

/* A message with varints of every length and bytes, and every beginning of it: asking for a tag in its turn gives the
 * field that the general way gives, and where that finds a problem it is left alone. */
static void test_take(void **state)
{
	struct mem mem;
	struct buf out;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	for (uint32_t bits = 0; bits < 64; bits++) {
		pb_put_varint(&out, 1 + bits % 3, (uint64_t)1 << bits);
		pb_put_bytes(&out, 4, "abcdefgh", bits % 9);
	}
	for (size_t len = 0; len <= out.len; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		struct pb next = pb_over(copy, len), take = next;
		struct pb_field want, got;

		assert_non_null(copy);
		memcpy(copy, out.ptr, len);
		while (pb_next(&next, &want)) {
			assert_false(pb_take(&take, PB_TAG(5, PB_VARINT), &got));
			assert_true(pb_take(&take, want.tag, &got));
			assert_int_equal(got.tag, want.tag);
			assert_int_equal(got.value, want.value);
			assert_ptr_equal(got.ptr, want.ptr);
			assert_ptr_equal(take.at, next.at);
		}
		for (uint32_t number = 1; number <= 4; number++)
			assert_false(pb_take(
				&take, PB_TAG(number, number < 4 ? PB_VARINT : PB_BYTES), &got));
		assert_ptr_equal(take.at, next.at);
		free(copy);
	}
	buf_release(&out);
}

static void test_values(void **state)
{
	static const uint8_t data[] = { 0x22, 0x04, 0x03, 0x8e, 0x02, 0x05, /* 4: [3, 270, 5] */
					0x20, 0x86, 0x01,		    /* 4: 134 */
					0x22, 0x00,			    /* 4: [] */
					0x2a, 0x08, 1,	  0,	0,    0,
					2,    0,    0,	  0,	   /* 5: fixed32 */
					0x2d, 3,    0,	  0,	0, /* 5: fixed32 */
					0x22, 0x01, 0x80 };	   /* 4: truncated inside */
	static const uint64_t want[] = { 3, 270, 5, 134, 1, 2, 3 };
	struct pb r = pb_over(data, sizeof(data));
	struct pb_values values = { 0 };
	struct pb_field f;
	uint64_t value;
	size_t count = 0;

	(void)state;
	while (pb_next(&r, &f)) {
		enum pb_wire elem = pb_number(&f) == 4 ? PB_VARINT : PB_FIXED32;

		for (values = pb_values(&f, elem); pb_value(&values, &value);)
			assert_int_equal(value, want[count++]);
		assert_false(pb_value(&values, &value));
	}
	assert_int_equal(count, ARRAY_COUNT(want));
	assert_int_equal(values.problem, PB_TRUNCATED);
	r = pb_over(data, 6);
	assert_true(pb_next(&r, &f));
	values = pb_values(&f, PB_FIXED64); /* four bytes are half a value */
	assert_false(pb_value(&values, &value));
	assert_int_equal(values.problem, PB_TRUNCATED);
	f.tag = PB_TAG(4, PB_FIXED64);
	values = pb_values(&f, PB_VARINT); /* neither packed nor of that type */
	assert_false(pb_value(&values, &value));
	assert_int_equal(values.problem, PB_OK);
}

static void put_nested(struct buf *out, size_t payload)
{
	size_t a, b, c;

	a = pb_begin(out, 1);
	b = pb_begin(out, 2);
	c = pb_begin(out, 300);
	buf_add_repeat(out, 0, 0);
	for (size_t i = 0; i < payload; i++)
		pb_add_varint(out, 1);
	pb_end(out, c);
	pb_put_int(out, 7, -2);
	pb_end(out, b);
	pb_put_str(out, 8, STR("after"));
	pb_end(out, a);
	pb_put_double(out, 9, 0.5);
	pb_put_float(out, 10, 0.25f);
}

static void check_nested(const struct buf *out, size_t payload)
{
	struct pb r = pb_over(out->ptr, out->len), a, b;
	struct pb_field f;

	assert_true(pb_next(&r, &f));
	assert_int_equal(f.tag, PB_TAG(1, PB_BYTES));
	a = pb_message(&f);
	assert_true(pb_next(&a, &f));
	assert_int_equal(f.tag, PB_TAG(2, PB_BYTES));
	b = pb_message(&f);
	assert_true(pb_next(&b, &f));
	assert_int_equal(f.tag, PB_TAG(300, PB_BYTES));
	assert_int_equal(f.value, payload);
	assert_true(pb_next(&b, &f));
	assert_int_equal((int64_t)f.value, -2);
	assert_false(pb_next(&b, &f));
	assert_true(pb_next(&a, &f));
	assert_true(str_eq(pb_str(&f), STR("after")));
	assert_false(pb_next(&a, &f));
	assert_true(pb_next(&r, &f));
	assert_true(pb_double(f.value) == 0.5);
	assert_true(pb_next(&r, &f));
	assert_true(pb_float(f.value) == 0.25f);
	assert_false(pb_next(&r, &f));
	assert_int_equal(r.problem, PB_OK);
}

static void test_write(void **state)
{
	static const size_t payloads[] = {
		0, 1, 100, 121, 122, 127, 128, 16000, 16383, 16384, 70000
	};
	struct mem mem;
	struct buf out;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	for (size_t i = 0; i < ARRAY_COUNT(payloads); i++) {
		buf_clear(&out);
		put_nested(&out, payloads[i]);
		assert_false(out.failed);
		check_nested(&out, payloads[i]);
	}
	buf_release(&out);
	assert_int_equal(mem.used, 0);
}

static void test_write_without_memory(void **state)
{
	struct mem mem;
	struct buf out;
	uint64_t n = 0;
	bool failed;

	(void)state;
	mem_init(&mem, 0);
	do {
		buf_init(&out, &mem);
		mem_fail_after(++n, true);
		put_nested(&out, 1000);
		mem_fail_after(0, false);
		failed = out.failed;
		buf_release(&out);
	} while (failed);
	assert_true(n > 3);
	assert_int_equal(mem.used, 0);
}

/* Any truncation ends in PB_TRUNCATED or, at a border between fields, well. */
static void test_truncation(void **state)
{
	struct mem mem;
	struct buf out;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&out, &mem);
	put_nested(&out, 200);
	buf_add(&out, "\x0b\x08\x01\x0c", 4);
	for (size_t len = 0; len <= out.len; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		enum pb_problem problem;
		size_t where;

		assert_non_null(copy);
		memcpy(copy, out.ptr, len);
		walk(copy, len, &problem, &where);
		assert_true(problem == PB_TRUNCATED || problem == PB_OK);
		assert_true(problem == PB_TRUNCATED || where == len);
		free(copy);
	}
	buf_release(&out);
}

static void test_error(void **state)
{
	static const uint8_t data[] = { 8, 1, 0x0f };
	struct pb r = pb_over(data, sizeof(data));
	struct pb_field f;
	struct ow_error err;

	(void)state;
	while (pb_next(&r, &f))
		;
	assert_int_equal(pb_error(&r, data, 1000, &err), OW_E_CORRUPT);
	assert_int_equal(err.offset, 1002);
	assert_non_null(strstr(err.text, "wire type"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),	   cmocka_unit_test(test_problems),
		cmocka_unit_test(test_groups),	   cmocka_unit_test(test_varints),
		cmocka_unit_test(test_values),	   cmocka_unit_test(test_write),
		cmocka_unit_test(test_truncation), cmocka_unit_test(test_write_without_memory),
		cmocka_unit_test(test_error),	   cmocka_unit_test(test_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
