/* pack_test.c: what is packed unpacks to the same: in one piece, in many, empty, and out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "opwatch_config.h"
#include "wire/container/pack.h"
#include "wire/container/unpack.h"

static void fill(struct buf *to, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		buf_add_char(to, (char)(seed >> 16 & 7 ? 'a' + (char)(i % 7) : (char)(seed >> 20)));
	}
}

static void check_unpacks(struct mem *mem, const struct buf *packed, const struct buf *want)
{
	struct unpack_result result;
	struct ow_error err = { 0 };
	struct buf got;
	struct input in;

	assert_int_equal(input_from_memory(&in, mem, "x", packed->ptr, packed->len, &err), OW_OK);
	assert_int_equal(unpack_input(&in, &result, &err), OW_OK);
	assert_false(result.truncated);
	assert_int_equal(in.size, want->len);
	buf_init(&got, mem);
	assert_true(buf_reserve(&got, want->len + 1));
	assert_int_equal(input_read_at(&in, 0, got.ptr, want->len, &err), OW_OK);
	if (want->len)
		assert_memory_equal(got.ptr, want->ptr, want->len);
	buf_release(&got);
	input_close(&in);
}

static void gzip_pieces(void **state)
{
	static const size_t sizes[] = { 0, 1, 100, 65536, 300000 };
	struct gzip_packer packers[2];
	struct ow_error err = { 0 };
	struct buf all, packed;
	uint32_t crc = 0;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&all, &mem);
	buf_init(&packed, &mem);
	gzip_packer_init(&packers[0], &mem);
	gzip_packer_init(&packers[1], &mem);
	gzip_head(&packed);
	for (unsigned i = 0; i < 12; i++) {
		size_t from = all.len;
		struct str piece;

		fill(&all, sizes[i % ARRAY_COUNT(sizes)], i);
		piece = str_make(all.ptr + from, all.len - from);
		assert_int_equal(gzip_pack(&packers[i % 2], piece, &packed, &err), OW_OK);
		crc = i % 3 ? gzip_crc(crc, piece)
			    : gzip_crc_join(crc, gzip_crc(0, piece), piece.len);
	}
	gzip_tail(&packed, crc, all.len);
	check_unpacks(&mem, &packed, &all);
	gzip_packer_release(&packers[0]);
	gzip_packer_release(&packers[1]);
	buf_release(&all);
	buf_release(&packed);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void gzip_without_memory(void **state)
{
	struct gzip_packer packer;
	struct ow_error err = { 0 };
	struct buf packed;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (uint64_t n = 1; n < 10; n++) {
		gzip_packer_init(&packer, &mem);
		buf_init(&packed, &mem);
		mem_fail_after(n, true);
		if (gzip_pack(&packer, STR("some text"), &packed, &err) != OW_OK)
			assert_int_equal(err.status, OW_E_NO_MEMORY);
		mem_fail_after(0, false);
		gzip_packer_release(&packer);
		buf_release(&packed);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

#if OPWATCH_HAVE_ZSTD
static void zstd_pieces(void **state)
{
	struct zstd_packer packer = { 0 };
	struct ow_error err = { 0 };
	struct buf all, packed;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&all, &mem);
	buf_init(&packed, &mem);
	for (unsigned i = 0; i < 10; i++) {
		size_t from = all.len;

		fill(&all, i * 50000, i);
		assert_int_equal(zstd_pack(&packer, str_make(all.ptr + from, all.len - from), false,
					   &packed, &err),
				 OW_OK);
	}
	assert_int_equal(zstd_pack(&packer, STR(""), true, &packed, &err), OW_OK);
	zstd_packer_release(&packer);
	check_unpacks(&mem, &packed, &all);
	buf_release(&all);
	buf_release(&packed);
}
#endif

static void kinds(void **state)
{
	enum pack_kind kind;

	(void)state;
	assert_int_equal(pack_kind_of("all.json", &kind, NULL), OW_OK);
	assert_int_equal(kind, PACK_NONE);
	assert_int_equal(pack_kind_of("a.json.gz", &kind, NULL), OW_OK);
	assert_int_equal(kind, PACK_GZIP);
	assert_int_equal(pack_kind_of("gz", &kind, NULL), OW_OK);
	assert_int_equal(kind, PACK_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gzip_pieces),
		cmocka_unit_test(gzip_without_memory),
#if OPWATCH_HAVE_ZSTD
		cmocka_unit_test(zstd_pieces),
#endif
		cmocka_unit_test(kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
