/*
 * tfrecord_test.c: records are read back; each truncation and each changed byte costs the record it
 * hits and no other, and is counted.
 */
#include "wire/tensorflow/tfrecord.h"

#include "../../tests/support/table_writer.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <unistd.h>

static struct mem mem;

static void add_record(struct buf *out, struct str data)
{
	size_t start = out->len;

	tw_u64(out, data.len);
	tw_u32(out, tw_masked_crc(tw_crc(0, out->ptr + start, 8)));
	buf_add_str(out, data);
	tw_u32(out, tw_masked_crc(tw_crc(0, data.ptr, data.len)));
}

#define RECORDS 5
static const char *const texts[RECORDS] = { "first", "", "the third record is longer", "4",
					    "fifth" };

static void write_all(struct buf *out, size_t *starts)
{
	buf_init(out, &mem);
	for (int i = 0; i < RECORDS; i++) {
		starts[i] = out->len;
		add_record(out, str_from(texts[i]));
	}
	starts[RECORDS] = out->len;
}

/* Bit i of the result: text i was read. A record that equals none of them fails the test. */
static unsigned read_all(struct str file, struct tfrecord_report *report, ow_status *status)
{
	struct ow_error err = { 0 };
	struct input in;
	struct tfrecord r;
	unsigned seen = 0;

	assert_int_equal(input_from_memory(&in, &mem, "events", file.ptr, file.len, &err), OW_OK);
	tfrecord_init(&r, &in, &err);
	while (tfrecord_next(&r)) {
		int i = 0;

		while (i < RECORDS &&
		       !str_eq(str_make(tfrecord_data(&r), r.data_len), str_from(texts[i])))
			i++;
		assert_in_range(i, 0, RECORDS - 1);
		seen |= 1u << i;
	}
	*report = r.report;
	*status = r.status;
	tfrecord_release(&r);
	input_close(&in);
	return seen;
}

static void reads_records(void **state)
{
	struct tfrecord_report report;
	size_t starts[RECORDS + 1];
	struct buf file;
	ow_status status;

	(void)state;
	write_all(&file, starts);
	assert_int_equal(read_all(buf_str(&file), &report, &status), 0x1f);
	assert_int_equal(status, OW_OK);
	assert_int_equal(report.records, RECORDS);
	assert_int_equal(report.bad, 0);
	assert_int_equal(report.skipped_bytes, 0);
	assert_true(report.first_bad_offset == OW_NO_OFFSET);
	assert_false(report.truncated);
	assert_int_equal(read_all(STR(""), &report, &status), 0);
	assert_false(report.truncated);
	buf_release(&file);
}

static void truncation_costs_the_last_record(void **state)
{
	struct tfrecord_report report;
	size_t starts[RECORDS + 1];
	struct buf file;
	ow_status status;
	unsigned whole = 0;

	(void)state;
	write_all(&file, starts);
	for (size_t len = 0; len < file.len; len++) {
		while (starts[whole + 1] <= len)
			whole++;
		assert_int_equal(read_all(str_make(file.ptr, len), &report, &status),
				 (1u << whole) - 1);
		assert_int_equal(report.records, whole);
		assert_int_equal(report.truncated, len != starts[whole]);
		assert_int_equal(report.skipped_bytes, len - starts[whole]);
		assert_int_equal(report.bad, 0);
	}
	buf_release(&file);
}

static void a_changed_byte_costs_one_record(void **state)
{
	struct tfrecord_report report;
	size_t starts[RECORDS + 1];
	struct buf file;
	ow_status status;
	unsigned hit = 0;

	(void)state;
	write_all(&file, starts);
	for (size_t i = 0; i < file.len; i++) {
		char old = file.ptr[i];

		while (starts[hit + 1] <= i)
			hit++;
		for (int change = 1; change < 256; change++) {
			file.ptr[i] = (char)(old ^ change);
			assert_int_equal(read_all(buf_str(&file), &report, &status),
					 0x1f & ~(1u << hit));
			assert_int_equal(report.bad, 1);
			assert_int_equal(report.first_bad_offset, starts[hit]);
			assert_int_equal(report.skipped_bytes, starts[hit + 1] - starts[hit]);
			assert_false(report.truncated);
		}
		file.ptr[i] = old;
	}
	buf_release(&file);
}

/* Bytes lost from, or put into, the middle cost the records there. */
static void lost_and_added_bytes(void **state)
{
	struct tfrecord_report report;
	size_t starts[RECORDS + 1];
	struct buf file, changed;
	ow_status status;

	(void)state;
	write_all(&file, starts);
	buf_init(&changed, &mem);
	for (size_t from = 0; from < starts[3]; from++) {
		buf_clear(&changed);
		buf_add(&changed, file.ptr, from);
		buf_add(&changed, file.ptr + from + 9, file.len - from - 9);
		assert_int_equal(read_all(buf_str(&changed), &report, &status) & 0x10, 0x10);
		assert_in_range(report.bad, 1, 2);
		buf_clear(&changed);
		buf_add(&changed, file.ptr, from);
		buf_add_repeat(&changed, 'x', 30);
		buf_add(&changed, file.ptr + from, file.len - from);
		assert_int_equal(read_all(buf_str(&changed), &report, &status) & 0x18, 0x18);
		assert_int_equal(report.bad, 1);
	}
	buf_release(&changed);
	buf_release(&file);
}

/* Records and gaps larger than the window, from a file on disk. */
static void large_records(void **state)
{
	size_t size = (size_t)3 << 20;
	char path[] = "/tmp/opwatch-tfrecord-XXXXXX";
	int fd = mkstemp(path);
	struct tfrecord r;
	struct input in;
	struct ow_error err = { 0 };
	struct buf file;

	(void)state;
	assert_true(fd >= 0);
	buf_init(&file, &mem);
	buf_add_repeat(&file, 'g', (size_t)2 << 20);
	add_record(&file, STR("behind two megabytes of nothing"));
	tw_u64(&file, size);
	tw_u32(&file, tw_masked_crc(tw_crc(0, file.ptr + file.len - 8, 8)));
	buf_add_repeat(&file, 'r', size);
	tw_u32(&file, tw_masked_crc(tw_crc(0, file.ptr + file.len - size, size)));
	assert_int_equal(write(fd, file.ptr, file.len), file.len);
	close(fd);
	assert_int_equal(input_open(&in, &mem, path, &err), OW_OK);
	tfrecord_init(&r, &in, &err);
	assert_true(tfrecord_next(&r));
	assert_int_equal(r.data_offset, ((size_t)2 << 20) + 12);
	assert_true(tfrecord_next(&r));
	assert_int_equal(r.data_len, size);
	assert_int_equal(tfrecord_data(&r)[size - 1], 'r');
	assert_false(tfrecord_next(&r));
	assert_int_equal(r.status, OW_OK);
	assert_int_equal(r.report.bad, 1);
	assert_int_equal(r.report.skipped_bytes, (size_t)2 << 20);
	tfrecord_release(&r);
	/* without memory for the window: a status */
	tfrecord_init(&r, &in, &err);
	mem_fail_after(1, true);
	assert_false(tfrecord_next(&r));
	mem_fail_after(0, false);
	assert_int_equal(r.status, OW_E_NO_MEMORY);
	tfrecord_release(&r);
	/* cut while it is open: an error, not a crash */
	tfrecord_init(&r, &in, &err);
	assert_int_equal(truncate(path, 1 << 20), 0);
	assert_false(tfrecord_next(&r));
	assert_int_equal(r.status, OW_E_IO);
	tfrecord_release(&r);
	input_close(&in);
	buf_release(&file);
	unlink(path);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* A header with the largest length, right CRC and all. */
static void hostile_lengths(void **state)
{
	struct tfrecord_report report;
	struct buf file;
	ow_status status;

	(void)state;
	buf_init(&file, &mem);
	for (int bits = 3; bits < 64; bits++) {
		buf_clear(&file);
		tw_u64(&file, UINT64_MAX >> (63 - bits));
		tw_u32(&file, tw_masked_crc(tw_crc(0, file.ptr, 8)));
		add_record(&file, STR("4"));
		assert_int_equal(read_all(buf_str(&file), &report, &status), 8);
		assert_int_equal(report.bad, 1);
	}
	buf_release(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_records),
		cmocka_unit_test(truncation_costs_the_last_record),
		cmocka_unit_test(a_changed_byte_costs_one_record),
		cmocka_unit_test(lost_and_added_bytes),
		cmocka_unit_test(large_records),
		cmocka_unit_test(hostile_lengths),
	};

	mem_init(&mem, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
