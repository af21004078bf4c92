/*
 * sstable_test.c: tables and snappy blocks written by an independent writer are read back equal; every
 * truncation, every changed byte and every failing allocation ends in a status.
 */
#include "wire/tensorflow/sstable.h"

#include "../../tests/support/table_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct mem mem;

/* "k00042" and a value whose length and content depend on the number. */
static struct str make_key(char *to, int i)
{
	return str_make(to, (size_t)snprintf(to, 32, "layer%d/k%05d", i % 3, i));
}

static struct str make_value(char *to, int i)
{
	size_t len = (size_t)(i * 7 % 61);

	memset(to, 'a' + i % 5, len);
	return str_make(to, len);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void write_table(struct table_writer *w, int count, size_t block_bytes, bool snappy)
{
	char(*keys)[32] = calloc((size_t)count + 1, 32), value[64];

	for (int i = 0; i < count; i++)
		make_key(keys[i], i);
	qsort(keys, (size_t)count, 32, compare_text);
	table_writer_init(w, &mem, block_bytes, snappy);
	for (int i = 0; i < count; i++)
		table_writer_add(w, str_from(keys[i]), make_value(value, i));
	table_writer_finish(w);
	free(keys);
}

static ow_status open_bytes(struct sstable *table, struct input *in, struct str file,
			    struct ow_error *err)
{
	OW_TRY(input_from_memory(in, &mem, "table", file.ptr, file.len, err));
	return sstable_open(table, &mem, in, err);
}

/* Reads everything there is; counts pairs and, going on behind damage, failures. */
static ow_status walk(struct str file, int *pairs, int *failures)
{
	struct ow_error err = { 0 };
	struct sstable table;
	struct sstable_iter it;
	struct input in = { .mem = &mem, .fd = -1 };
	ow_status status = open_bytes(&table, &in, file, &err), first = status;

	*pairs = *failures = 0;
	if (status != OW_OK) {
		input_close(&in);
		return status;
	}
	sstable_iter_init(&it, &table);
	for (status = sstable_first(&it, &err);; status = sstable_next(&it, &err)) {
		if (status == OW_OK && !it.valid)
			break;
		if (status == OW_OK) {
			(*pairs)++;
			continue;
		}
		(*failures)++;
		first = status;
		if (status != OW_E_CORRUPT)
			break;
	}
	sstable_iter_release(&it);
	sstable_close(&table);
	input_close(&in);
	return first;
}

static void check_equal(int count, size_t block_bytes, bool snappy)
{
	char(*keys)[32] = calloc((size_t)count + 1, 32), value[64];
	struct table_writer w;
	struct sstable table;
	struct sstable_iter it;
	struct input in;
	struct ow_error err = { 0 };
	int i = 0;

	write_table(&w, count, block_bytes, snappy);
	for (i = 0; i < count; i++)
		make_key(keys[i], i);
	qsort(keys, (size_t)count, 32, compare_text);
	assert_int_equal(open_bytes(&table, &in, buf_str(&w.out), &err), OW_OK);
	sstable_iter_init(&it, &table);
	assert_int_equal(sstable_first(&it, &err), OW_OK);
	for (i = 0; it.valid; i++) {
		assert_true(i < count);
		assert_true(str_eq(it.key, str_from(keys[i])));
		assert_true(str_eq(it.value, make_value(value, i)));
		assert_int_equal(sstable_next(&it, &err), OW_OK);
	}
	assert_int_equal(i, count);
	/* looked up backwards, and between the keys */
	while (i--) {
		char between[40];

		assert_int_equal(sstable_find(&it, str_from(keys[i]), &err), OW_OK);
		assert_true(it.valid && str_eq(it.value, make_value(value, i)));
		snprintf(between, sizeof(between), "%s!", keys[i]);
		assert_int_equal(sstable_find(&it, str_from(between), &err), OW_OK);
		assert_false(it.valid);
		assert_int_equal(sstable_seek(&it, str_from(between), &err), OW_OK);
		assert_int_equal(it.valid, i + 1 < count);
		if (it.valid)
			assert_true(str_eq(it.key, str_from(keys[i + 1])));
	}
	assert_int_equal(sstable_seek(&it, STR(""), &err), OW_OK);
	assert_int_equal(it.valid, count > 0);
	sstable_iter_release(&it);
	sstable_close(&table);
	input_close(&in);
	table_writer_release(&w);
	free(keys);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void reads_what_was_written(void **state)
{
	static const int counts[] = { 0, 1, 2, 15, 16, 17, 33, 500 };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
		check_equal(counts[i], 1, false);
		check_equal(counts[i], 300, false);
		check_equal(counts[i], 300, true);
		check_equal(counts[i], 1 << 18, true);
	}
}

static void every_truncation_is_told(void **state)
{
	struct table_writer w;
	int pairs, failures;

	(void)state;
	write_table(&w, 40, 200, false);
	assert_int_equal(walk(buf_str(&w.out), &pairs, &failures), OW_OK);
	assert_int_equal(pairs, 40);
	for (size_t len = 0; len < w.out.len; len++)
		assert_int_equal(walk(str_make(w.out.ptr, len), &pairs, &failures), OW_E_CORRUPT);
	table_writer_release(&w);
}

/* A CRC finds every changed byte of a block; in the footer only the metaindex handle and the padding
 * have no effect. */
static void every_changed_byte_is_survived(void **state)
{
	struct table_writer w;
	int pairs, failures;

	(void)state;
	for (int snappy = 0; snappy < 2; snappy++) {
		write_table(&w, 40, 200, snappy);
		for (size_t i = 0; i < w.out.len; i++) {
			unsigned char *byte = (unsigned char *)w.out.ptr + i, old = *byte;
			size_t meta = w.block_count - 2;
			bool matters = i < w.blocks[meta].from ||
				       (i >= w.blocks[meta + 1].from && i < w.out.len - 48);

			for (int change = 1; change < 256; change += 50) {
				*byte = (unsigned char)(old ^ change);
				if (walk(buf_str(&w.out), &pairs, &failures) == OW_OK)
					assert_false(matters);
			}
			*byte = old;
		}
		table_writer_release(&w);
	}
}

/* The same with the CRC made right again, so that the decoders behind it see the damage. */
static void hostile_blocks_are_survived(void **state)
{
	(void)state;
	for (int snappy = 0; snappy < 2; snappy++) {
		struct table_writer w;
		int pairs, failures;

		write_table(&w, 12, 1 << 18, snappy);
		for (size_t block = 0; block < w.block_count; block++) {
			for (size_t i = w.blocks[block].from; i < w.blocks[block].to; i++) {
				char old = w.out.ptr[i];

				for (int change = 1; change < 256; change++) {
					w.out.ptr[i] = (char)(old ^ change);
					table_writer_reseal(&w, block);
					walk(buf_str(&w.out), &pairs, &failures);
				}
				w.out.ptr[i] = old;
			}
			table_writer_reseal(&w, block);
		}
		assert_int_equal(walk(buf_str(&w.out), &pairs, &failures), OW_OK);
		table_writer_release(&w);
	}
}

static void messages(void **state)
{
	struct table_writer w;
	struct ow_error err = { 0 };
	struct sstable table;
	struct input in;

	(void)state;
	write_table(&w, 3, 100, false);
	assert_int_equal(open_bytes(&table, &in, str_make(w.out.ptr, 47), &err), OW_E_CORRUPT);
	assert_string_equal(err.text, "file is too short to be an sstable");
	input_close(&in);
	assert_int_equal(open_bytes(&table, &in, str_make(w.out.ptr, w.out.len - 1), &err),
			 OW_E_CORRUPT);
	assert_string_equal(err.text, "not an sstable (bad magic number)");
	input_close(&in);
	assert_int_equal(open_bytes(&table, &in, str_make(w.out.ptr + 1, w.out.len - 1), &err),
			 OW_E_CORRUPT);
	assert_string_equal(err.text, "block checksum mismatch");
	input_close(&in);
	assert_int_equal(open_bytes(&table, &in, str_make(w.out.ptr + w.out.len - 48, 48), &err),
			 OW_E_CORRUPT);
	assert_string_equal(err.text, "truncated block read");
	input_close(&in);
	memset(w.out.ptr + w.out.len - 48, 0xff, 40);
	assert_int_equal(open_bytes(&table, &in, buf_str(&w.out), &err), OW_E_CORRUPT);
	assert_string_equal(err.text, "bad block handle");
	input_close(&in);
	table_writer_release(&w);
}

/* What is left of a table with one bad block is still read. */
static void goes_on_behind_damage(void **state)
{
	struct table_writer w;
	int pairs, failures;

	(void)state;
	write_table(&w, 100, 200, false);
	w.out.ptr[10] ^= 1;
	assert_int_equal(walk(buf_str(&w.out), &pairs, &failures), OW_E_CORRUPT);
	assert_int_equal(failures, 1);
	assert_in_range(pairs, 80, 99);
	table_writer_release(&w);
}

static void failing_allocations(void **state)
{
	struct table_writer w;
	int pairs, failures;
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	write_table(&w, 60, 300, true);
	for (uint64_t n = 1; status != OW_OK; n++) {
		size_t before = atomic_load(&mem.used);

		assert_in_range(n, 1, 1000);
		mem_fail_after(n, true);
		status = walk(buf_str(&w.out), &pairs, &failures);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		assert_int_equal(atomic_load(&mem.used), before);
	}
	assert_int_equal(pairs, 60);
	table_writer_release(&w);
}

static void snappy_unpacks(void **state)
{
	char text[5000], back[5000];
	uint32_t seed = 7;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++) {
		seed = seed * 1664525u + 1013904223u;
		text[i] = i % 700 < 300 ? (char)(seed >> 24) : (char)('a' + i % 7);
	}
	for (size_t n = 0; n <= sizeof(text); n += n < 70 ? 1 : 411) {
		struct buf packed;

		buf_init(&packed, &mem);
		tw_snappy(&packed, str_make(text, n));
		assert_true(snappy_block_length(buf_str(&packed), &len));
		assert_int_equal(len, n);
		assert_true(snappy_block_unpack(buf_str(&packed), back, n));
		assert_memory_equal(back, text, n);
		for (size_t cut = 0; cut < packed.len; cut++)
			assert_false(snappy_block_unpack(str_make(packed.ptr, cut), back, n) && n);
		buf_release(&packed);
	}
	/* 2^32-1 bytes are not in 5; a copy from before the start; a literal longer than the input */
	assert_false(snappy_block_length(STR("\xff\xff\xff\xff\x0f"), &len));
	assert_false(snappy_block_length(STR("\xff\xff\xff\xff\xff\x0f"), &len));
	assert_false(snappy_block_unpack(STR("\x05\x05\x01"), back, 5));
	assert_false(snappy_block_unpack(STR("\x05\x00x\x05\x02"), back, 5));
	assert_false(snappy_block_unpack(STR("\x05\x00x\x05\x00"), back, 5));
	assert_false(snappy_block_unpack(STR("\x05\x10xxx"), back, 5));
	assert_true(snappy_block_unpack(STR("\x05\x00x\x01\x01"), back, 5));
	assert_memory_equal(back, "xxxxx", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snappy_unpacks),
		cmocka_unit_test(reads_what_was_written),
		cmocka_unit_test(messages),
		cmocka_unit_test(every_truncation_is_told),
		cmocka_unit_test(every_changed_byte_is_survived),
		cmocka_unit_test(hostile_blocks_are_survived),
		cmocka_unit_test(goes_on_behind_damage),
		cmocka_unit_test(failing_allocations),
	};

	mem_init(&mem, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
