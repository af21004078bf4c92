/* unpack_test.c: gzip and zstd inputs, whole, joined, nested, cut, damaged and too large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>
#include <zlib.h>

#include "base/temp_file.h"
#include "wire/container/spool.h"
#include "wire/container/unpack.h"
#include "opwatch_config.h"
#if OPWATCH_HAVE_ZSTD
#include <zstd.h>
#endif

typedef void pack_fn(struct buf *out, const void *data, size_t len);

static void pack_gzip(struct buf *out, const void *data, size_t len)
{
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_true(buf_reserve(out, deflateBound(&z, len) + 64));
	z.next_in = (unsigned char *)data;
	z.avail_in = (uInt)len;
	z.next_out = (unsigned char *)out->ptr + out->len;
	z.avail_out = (uInt)(out->cap - out->len);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out->len += z.total_out;
	deflateEnd(&z);
}

#if OPWATCH_HAVE_ZSTD
static void pack_zstd(struct buf *out, const void *data, size_t len)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t made;

	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
	assert_true(buf_reserve(out, ZSTD_compressBound(len)));
	made = ZSTD_compress2(c, out->ptr + out->len, out->cap - out->len, data, len);
	assert_false(ZSTD_isError(made));
	out->len += made;
	ZSTD_freeCCtx(c);
}
#endif

static pack_fn *const packers[] = {
	pack_gzip,
#if OPWATCH_HAVE_ZSTD
	pack_zstd,
#endif
};

/* Compressible, but not all the same. */
static void put_sample(struct buf *out, size_t len)
{
	uint32_t x = 1;

	assert_true(buf_reserve(out, len));
	while (len--) {
		x = x * 1664525 + 1013904223;
		out->ptr[out->len++] = "node op name device"[(x >> 24) % 19];
	}
}

static struct mem mem;
static struct buf plain, packed;

static int set_up(void **state)
{
	(void)state;
	mem_init(&mem, 0);
	buf_init(&plain, &mem);
	buf_init(&packed, &mem);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	buf_release(&plain);
	buf_release(&packed);
	return mem.used ? 1 : 0;
}

static ow_status unpack_bytes(struct input *in, const void *data, size_t len,
			      const struct unpack_options *options, struct unpack_result *result,
			      struct ow_error *err)
{
	ow_status status = input_from_memory(in, &mem, "sample", data, len, err);

	if (status != OW_OK)
		return status;
	status = options ? unpack_input_with(in, options, result, err)
			 : unpack_input(in, result, err);
	if (status != OW_OK)
		input_close(in);
	return status;
}

static void expect_content(const struct input *in, const void *want, size_t len)
{
	char *got = malloc(len ? len : 1);

	assert_int_equal(in->size, len);
	assert_int_equal(input_read_at(in, 0, got, len, NULL), OW_OK);
	assert_memory_equal(got, want, len);
	free(got);
}

static void test_plain(void **state)
{
	static const char *const samples[] = {
		"", "n", "node {", "\x1f\x8b", "\x1f\x8b\x08\xe0xxxx", "\x28\xb5\x2f"
	};
	struct unpack_result result = { 0 };
	struct input in = { .fd = -1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(samples); i++) {
		size_t len = strlen(samples[i]);

		assert_null(unpack_container(str_from(samples[i])));
		assert_int_equal(unpack_bytes(&in, samples[i], len, NULL, &result, NULL), OW_OK);
		assert_null(result.container);
		assert_int_equal(result.unpacked_size, len);
		expect_content(&in, samples[i], len);
		input_close(&in);
	}
}

static void test_whole(void **state)
{
	static const size_t sizes[] = { 0, 1, 1000, 100000, 3 << 20 };
	struct unpack_result result = { 0 };
	struct input in = { .fd = -1 };

	(void)state;
	for (size_t p = 0; p < ARRAY_COUNT(packers); p++)
		for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
			/* in memory, and through a file */
			struct unpack_options options = { .memory_max = 0 };

			buf_clear(&plain);
			buf_clear(&packed);
			put_sample(&plain, sizes[i]);
			packers[p](&packed, plain.ptr, plain.len);
			for (int file = 0; file < 2; file++) {
				options.memory_max = file ? 500 : 0;
				assert_int_equal(unpack_bytes(&in, packed.ptr, packed.len, &options,
							      &result, NULL),
						 OW_OK);
				assert_string_equal(result.container, p ? "zstd" : "gzip");
				assert_int_equal(result.levels, 1);
				assert_int_equal(result.compressed_size, packed.len);
				assert_int_equal(result.unpacked_size, sizes[i]);
				assert_false(result.truncated);
				assert_true(!file || sizes[i] < 1 << 20 || in.fd >= 0);
				assert_string_equal(in.name, "sample");
				expect_content(&in, plain.ptr, plain.len);
				input_close(&in);
			}
		}
}

/* Compressed data in a file on disk, larger than a window. */
static void test_from_file(void **state)
{
	struct unpack_result result = { 0 };
	struct input in = { .fd = -1 };

	(void)state;
	for (size_t p = 0; p < ARRAY_COUNT(packers); p++) {
		int fd = temp_file_open(NULL);

		buf_clear(&plain);
		buf_clear(&packed);
		put_sample(&plain, 6 << 20);
		packers[p](&packed, plain.ptr, plain.len);
		assert_true(packed.len > 2 << 20);
		assert_int_equal(write(fd, packed.ptr, packed.len), (ssize_t)packed.len);
		for (int file = 0; file < 2; file++) {
			struct unpack_options options = { .memory_max = file ? 1 << 20 : 0 };

			assert_int_equal(input_adopt_fd(&in, &mem, "file", dup(fd), NULL), OW_OK);
			assert_int_equal(unpack_input_with(&in, &options, &result, NULL), OW_OK);
			expect_content(&in, plain.ptr, plain.len);
			input_close(&in);
		}
		close(fd);
	}
}

static void test_members_and_padding(void **state)
{
	struct unpack_result result = { 0 };
	struct input in = { .fd = -1 };

	(void)state;
	for (size_t p = 0; p < ARRAY_COUNT(packers); p++) {
		size_t whole;

		buf_clear(&plain);
		buf_clear(&packed);
		put_sample(&plain, 50000);
		packers[p](&packed, plain.ptr, 20000);
		packers[p](&packed, plain.ptr, 0);
		packers[p](&packed, plain.ptr + 20000, 30000);
		whole = packed.len;
		for (size_t padding = 0; padding <= 1024; padding += 512) {
			buf_add_repeat(&packed, 0, padding);
			assert_int_equal(
				unpack_bytes(&in, packed.ptr, packed.len, NULL, &result, NULL),
				OW_OK);
			assert_false(result.truncated);
			expect_content(&in, plain.ptr, plain.len);
			input_close(&in);
		}
		packed.len = whole;
		buf_puts(&packed, "rubbish behind");
		assert_int_equal(unpack_bytes(&in, packed.ptr, packed.len, NULL, &result, NULL),
				 OW_OK);
		assert_true(result.truncated);
		assert_int_equal(result.damage_offset, whole);
		expect_content(&in, plain.ptr, plain.len);
		input_close(&in);
	}
}

static void test_nested(void **state)
{
	struct unpack_result result = { 0 };
	struct buf twice, thrice;
	struct ow_error err;
	struct input in = { .fd = -1 };

	(void)state;
	buf_init(&twice, &mem);
	buf_init(&thrice, &mem);
	put_sample(&plain, 5000);
	packers[ARRAY_COUNT(packers) - 1](&packed, plain.ptr, plain.len);
	pack_gzip(&twice, packed.ptr, packed.len);
	pack_gzip(&thrice, twice.ptr, twice.len);
	assert_int_equal(unpack_bytes(&in, twice.ptr, twice.len, NULL, &result, NULL), OW_OK);
	assert_int_equal(result.levels, 2);
	assert_int_equal(result.compressed_size, twice.len);
	expect_content(&in, plain.ptr, plain.len);
	input_close(&in);
	assert_int_equal(unpack_bytes(&in, thrice.ptr, thrice.len, NULL, &result, &err),
			 OW_E_LIMIT);
	assert_non_null(strstr(err.text, "sample"));
	buf_release(&twice);
	buf_release(&thrice);
}

/* Every truncation gives a prefix of the content, and says so; nothing at all is an error. */
static void test_truncation(void **state)
{
	struct unpack_result result = { 0 };
	struct ow_error err;
	struct input in = { .fd = -1 };

	(void)state;
	for (size_t p = 0; p < ARRAY_COUNT(packers); p++) {
		buf_clear(&plain);
		buf_clear(&packed);
		put_sample(&plain, 3000);
		packers[p](&packed, plain.ptr, plain.len);
		for (size_t len = 4; len < packed.len; len++) {
			char *copy = malloc(len);
			ow_status status;

			memcpy(copy, packed.ptr, len);
			status = unpack_bytes(&in, copy, len, NULL, &result, &err);
			assert_true(result.truncated);
			assert_true(result.message[0]);
			if (status == OW_OK) {
				assert_true(in.size > 0 && in.size <= plain.len);
				expect_content(&in, plain.ptr, (size_t)in.size);
				input_close(&in);
			} else {
				assert_int_equal(status, OW_E_CORRUPT);
			}
			free(copy);
		}
	}
}

/* Flipped bits end in a status; most are noticed by the checksum at least. */
static void test_flips(void **state)
{
	struct unpack_result result = { 0 };
	struct input in = { .fd = -1 };
	size_t noticed;

	(void)state;
	for (size_t p = 0; p < ARRAY_COUNT(packers); p++) {
		buf_clear(&plain);
		buf_clear(&packed);
		put_sample(&plain, 400);
		packers[p](&packed, plain.ptr, plain.len);
		noticed = 0;
		for (size_t bit = 0; bit < packed.len * 8; bit++) {
			struct unpack_options options = { .max_unpacked = 1 << 20 };
			ow_status status;

			packed.ptr[bit / 8] = (char)(packed.ptr[bit / 8] ^ 1 << bit % 8);
			status = unpack_bytes(&in, packed.ptr, packed.len, &options, &result, NULL);
			noticed += status != OW_OK || result.truncated || !result.container;
			if (status == OW_OK)
				input_close(&in);
			packed.ptr[bit / 8] = (char)(packed.ptr[bit / 8] ^ 1 << bit % 8);
		}
		assert_true(noticed > packed.len * 7);
	}
}

/* A bomb: a cap, a memory limit and a full disk are respected; the input stays what it was. */
static void test_bombs(void **state)
{
	struct rlimit old, low;
	struct unpack_result result = { 0 };
	struct ow_error err;
	struct input in = { .fd = -1 };

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	low = old;
	low.rlim_cur = 8 << 20; /* stands for a disk that is full */
	buf_add_repeat(&plain, 'x', 40 << 20);
	for (size_t p = 0; p < ARRAY_COUNT(packers); p++) {
		struct unpack_options cap = { .max_unpacked = 1000 };
		struct unpack_options small = { .memory_max = 1 << 20 };

		buf_clear(&packed);
		packers[p](&packed, plain.ptr, plain.len);
		assert_int_equal(unpack_bytes(&in, packed.ptr, packed.len, &cap, &result, &err),
				 OW_E_LIMIT);
		assert_non_null(strstr(err.text, "1000"));

		mem.limit = mem.used + (10 << 20); /* less than the content: through a file */
		assert_int_equal(unpack_bytes(&in, packed.ptr, packed.len, NULL, &result, &err),
				 OW_OK);
		assert_true(in.fd >= 0);
		assert_int_equal(in.size, plain.len);
		input_close(&in);
		mem.limit = mem.used + 1000;
		assert_int_equal(unpack_bytes(&in, packed.ptr, packed.len, NULL, &result, &err),
				 OW_E_NO_MEMORY);
		mem.limit = 0;

		assert_int_equal(input_from_memory(&in, &mem, "bomb", packed.ptr, packed.len, NULL),
				 OW_OK);
		setrlimit(RLIMIT_FSIZE, &low);
		assert_int_equal(unpack_input_with(&in, &small, &result, &err), OW_E_IO);
		setrlimit(RLIMIT_FSIZE, &old);
		assert_non_null(strstr(err.text, "TMPDIR"));
		expect_content(&in, packed.ptr, packed.len);
		input_close(&in);
	}
}

static void test_without_memory(void **state)
{
	struct unpack_result result = { 0 };
	struct ow_error err;
	struct input in = { .fd = -1 };
	size_t used;

	(void)state;
	put_sample(&plain, 300000);
	for (size_t p = 0; p < ARRAY_COUNT(packers); p++)
		for (int file = 0; file < 2; file++) {
			struct unpack_options options = { .memory_max = file ? 1000 : 0 };
			bool failed = true;

			buf_clear(&packed);
			packers[p](&packed, plain.ptr, plain.len);
			used = mem.used;
			for (uint64_t n = 1; failed; n++) {
				ow_status status;

				mem_fail_after(n, true);
				status = unpack_bytes(&in, packed.ptr, packed.len, &options,
						      &result, &err);
				mem_fail_after(0, false);
				failed = status != OW_OK;
				assert_true(!failed || status == OW_E_NO_MEMORY);
				if (!failed) {
					expect_content(&in, plain.ptr, plain.len);
					input_close(&in);
				}
				assert_int_equal(mem.used, used);
				assert_true(n < 100);
			}
		}
}

#if OPWATCH_HAVE_ZSTD
static void test_zstd_skippable(void **state)
{
	struct unpack_result result = { 0 };
	struct input in = { .fd = -1 };

	(void)state;
	put_sample(&plain, 1000);
	buf_add(&packed, "\x50\x2a\x4d\x18\x04\x00\x00\x00wxyz", 12);
	pack_zstd(&packed, plain.ptr, plain.len);
	assert_int_equal(unpack_bytes(&in, packed.ptr, packed.len, NULL, &result, NULL), OW_OK);
	expect_content(&in, plain.ptr, plain.len);
	input_close(&in);
}
#endif

static void test_spool_patch(void **state)
{
	struct spool s;
	struct input in = { .fd = -1 };

	(void)state;
	spool_init(&s, &mem, "test", 4);
	buf_puts(&s.buf, "abcdef");
	assert_int_equal(spool_flush(&s, NULL), OW_OK);
	buf_puts(&s.buf, "ghi");
	assert_int_equal(spool_size(&s), 9);
	assert_int_equal(spool_patch(&s, 1, "XY", 2, NULL), OW_OK);
	assert_int_equal(spool_to_input(&s, "spooled", &in, NULL), OW_OK);
	spool_release(&s);
	expect_content(&in, "aXYdefghi", 9);
	input_close(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define UNPACK_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		UNPACK_TEST(test_plain),
		UNPACK_TEST(test_whole),
		UNPACK_TEST(test_from_file),
		UNPACK_TEST(test_members_and_padding),
		UNPACK_TEST(test_nested),
		UNPACK_TEST(test_truncation),
		UNPACK_TEST(test_flips),
		UNPACK_TEST(test_bombs),
		UNPACK_TEST(test_without_memory),
		UNPACK_TEST(test_spool_patch),
#if OPWATCH_HAVE_ZSTD
		UNPACK_TEST(test_zstd_skippable),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
