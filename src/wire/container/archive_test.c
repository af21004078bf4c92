/*
 * archive_test.c: members of zip and tar files written here by hand; every cut, changed byte and failing
 * allocation ends in a status, and what is complete comes out right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "wire/container/archive.h"

#include <zlib.h>

static struct mem mem;

/* ---- writing ---- */

static void put(struct buf *out, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		buf_add_char(out, (char)(i < 8 ? value >> 8 * i : 0));
}

struct zip_writer {
	struct buf out, directory;
	int count;
};

static void zip_add(struct zip_writer *z, const char *name, const char *text, bool packed,
		    bool later)
{
	size_t len = strlen(text), packed_len = len, at = z->out.len;
	unsigned char content[4096];
	uint32_t crc = (uint32_t)crc32(0, (const unsigned char *)text, (uInt)len);
	struct buf *const to[] = { &z->out, &z->directory };

	memcpy(content, text, len);
	if (packed) {
		z_stream s = { .next_in = (unsigned char *)(uintptr_t)text,
			       .avail_in = (uInt)len,
			       .next_out = content,
			       .avail_out = sizeof(content) };

		assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
		assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
		packed_len = s.total_out;
		deflateEnd(&s);
	}
	for (int central = 0; central < 2; central++) {
		bool zero = later && !central; /* sizes stand behind the content */

		put(to[central], central ? 0x02014b50 : 0x04034b50, 4);
		put(to[central], 20, central ? 4 : 2);
		put(to[central], later ? 8 : 0, 2);
		put(to[central], packed ? 8 : 0, 2);
		put(to[central], 0, 4);
		put(to[central], zero ? 0 : crc, 4);
		put(to[central], zero ? 0 : packed_len, 4);
		put(to[central], zero ? 0 : len, 4);
		put(to[central], strlen(name), 2);
		put(to[central], 0, central ? 12 : 2);
		if (central)
			put(to[central], at, 4);
		buf_puts(to[central], name);
	}
	buf_add(&z->out, content, packed_len);
	if (later) {
		put(&z->out, 0x08074b50, 4);
		put(&z->out, crc, 4);
		put(&z->out, packed_len, 4);
		put(&z->out, len, 4);
	}
	z->count++;
}

static void zip_end(struct zip_writer *z)
{
	size_t at = z->out.len;

	buf_add_str(&z->out, buf_str(&z->directory));
	put(&z->out, 0x06054b50, 4);
	put(&z->out, 0, 4);
	put(&z->out, (uint64_t)z->count, 2);
	put(&z->out, (uint64_t)z->count, 2);
	put(&z->out, z->directory.len, 4);
	put(&z->out, at, 4);
	put(&z->out, 3, 2);
	buf_puts(&z->out, "end");
	buf_release(&z->directory);
}

static void tar_add(struct buf *out, const char *name, const char *prefix, char type,
		    const char *text)
{
	unsigned char h[512] = { 0 };
	unsigned sum = 0;
	size_t len = strlen(text);

	memcpy(h, name, MIN(strlen(name), (size_t)100));
	snprintf((char *)h + 124, 12, "%011o", (unsigned)len);
	h[156] = (unsigned char)type;
	memcpy(h + 257, "ustar", 6);
	memcpy(h + 345, prefix, strlen(prefix));
	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < sizeof(h); i++)
		sum += h[i];
	snprintf((char *)h + 148, 8, "%06o", sum);
	buf_add(out, h, sizeof(h));
	buf_puts(out, text);
	buf_add_repeat(out, '\0', (512 - len % 512) % 512);
}

/* ---- reading ---- */

/* "name=text;" of each member, or what failed. */
static ow_status unpack_all(const void *data, size_t len, struct buf *out)
{
	void *copy = malloc(len ? len : 1);
	struct ow_error err = { 0 };
	struct archive a = { 0 };
	struct input in;
	ow_status status;

	memcpy(copy, data, len);
	status = input_from_memory(&in, &mem, "a", copy, len, &err);
	if (status == OW_OK && !archive_kind(&in))
		status = OW_E_FORMAT;
	else if (status == OW_OK)
		status = archive_open(&a, &in, &err);
	for (size_t i = 0; status == OW_OK && i < a.count; i++) {
		struct unpack_result result;
		struct input member;
		char text[4096];

		status = archive_take(&a, &in, i, &result, &member, &err);
		if (status != OW_OK) {
			buf_printf(out, "%s: %s;", a.members[i].name, ow_status_name(status));
			status = status == OW_E_NO_MEMORY ? status : OW_OK;
			continue;
		}
		assert_true(member.size < sizeof(text));
		assert_int_equal(input_read_at(&member, 0, text, (size_t)member.size, &err), OW_OK);
		buf_printf(out, "%s=%.*s%s;", a.members[i].name, (int)member.size, text,
			   result.truncated ? " (damaged)" : "");
		input_close(&member);
	}
	archive_close(&a);
	input_close(&in);
	free(copy);
	return status;
}

static void unpacks_to(const struct buf *data, const char *want)
{
	struct buf out;

	buf_init(&out, &mem);
	assert_int_equal(unpack_all(data->ptr, data->len, &out), OW_OK);
	assert_string_equal(buf_cstr(&out), want);
	buf_release(&out);
}

static void make_zip(struct zip_writer *z)
{
	mem_init(&mem, 0);
	*z = (struct zip_writer){ 0 };
	buf_init(&z->out, &mem);
	buf_init(&z->directory, &mem);
	zip_add(z, "stored.json", "[1,2,3]", false, false);
	zip_add(z, "dir/", "", false, false);
	zip_add(z, "empty", "", false, false);
	zip_add(z, "packed.json", "[{},{},{},{},{},{},{},{},{},{},{},{}]", true, false);
	zip_add(z, "dir/later", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true, true);
}

static void test_zip(void **state)
{
	struct zip_writer z;

	(void)state;
	make_zip(&z);
	/* without the directory at its end */
	unpacks_to(&z.out, "stored.json=[1,2,3];packed.json=[{},{},{},{},{},{},{},{},{},{},{},{}];"
			   "dir/later=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;");
	zip_end(&z);
	unpacks_to(&z.out, "stored.json=[1,2,3];packed.json=[{},{},{},{},{},{},{},{},{},{},{},{}];"
			   "dir/later=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;");
	z.out.ptr[35] = 'X'; /* in the name */
	z.out.ptr[43] = 'X'; /* in the content */
	unpacks_to(
		&z.out,
		"stored.json=[1X2,3] (damaged);packed.json=[{},{},{},{},{},{},{},{},{},{},{},{}];"
		"dir/later=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;");
	buf_release(&z.out);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void make_tar(struct buf *out)
{
	mem_init(&mem, 0);
	buf_init(out, &mem);
	tar_add(out, "a.json", "", '0', "[1]");
	tar_add(out, "dir", "", '5', "");
	tar_add(out, "b.json", "some/prefix", '\0', "[2]");
	tar_add(out, "././@LongLink", "", 'L', "a/very/long/name.json");
	tar_add(out, "cut", "", '0', "[3]");
	tar_add(out, "./PaxHeaders", "", 'x', "12 mtime=77\n18 path=pax/name!\n");
	tar_add(out, "short", "", '0', "[4]");
	buf_add_repeat(out, '\0', 1024);
}

static void test_tar(void **state)
{
	struct buf out;

	(void)state;
	make_tar(&out);
	unpacks_to(&out,
		   "a.json=[1];some/prefix/b.json=[2];a/very/long/name.json=[3];pax/name!=[4];");
	out.len -= 1024 + 511; /* no end, and the last content cut */
	unpacks_to(&out, "a.json=[1];some/prefix/b.json=[2];a/very/long/name.json=[3];pax/name!=[ "
			 "(damaged);");
	buf_release(&out);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void cut_and_change(struct buf *data)
{
	for (size_t len = 0; len < data->len; len++) {
		struct buf out;

		buf_init(&out, &mem);
		(void)unpack_all(data->ptr, len, &out);
		buf_release(&out);
	}
	for (size_t i = 0; i < data->len * 8; i += 3) {
		struct buf out;

		buf_init(&out, &mem);
		data->ptr[i / 8] ^= (char)(1 << i % 8);
		(void)unpack_all(data->ptr, data->len, &out);
		data->ptr[i / 8] ^= (char)(1 << i % 8);
		buf_release(&out);
	}
}

static void fail_each_allocation(struct buf *data)
{
	ow_status status = OW_E_NO_MEMORY;

	for (uint64_t n = 1; status != OW_OK; n++) {
		size_t before = atomic_load(&mem.used);
		struct buf out;

		buf_init(&out, &mem);
		mem_fail_after(n, false);
		status = unpack_all(data->ptr, data->len, &out);
		mem_fail_after(0, false);
		if (out.failed)
			status = OW_E_NO_MEMORY;
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		buf_release(&out);
		assert_int_equal(atomic_load(&mem.used), before);
		assert_true(n < 1000);
	}
}

static void test_damage(void **state)
{
	struct zip_writer z;
	struct buf tar;

	(void)state;
	make_zip(&z);
	zip_end(&z);
	cut_and_change(&z.out);
	fail_each_allocation(&z.out);
	buf_release(&z.out);
	make_tar(&tar);
	cut_and_change(&tar);
	fail_each_allocation(&tar);
	buf_release(&tar);
	assert_int_equal(atomic_load(&mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zip),
		cmocka_unit_test(test_tar),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
