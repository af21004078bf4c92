/* base_test.c: strings, memory accounting, arenas, maps and inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/input.h"
#include "base/map.h"
#include "base/str.h"

#include <fcntl.h>
#include <unistd.h>

static void strings_compare_bytewise(void **state)
{
	(void)state;
	assert_true(str_cmp(STR("a"), STR("b")) < 0);
	assert_true(str_cmp(STR("a"), STR("ab")) < 0);
	assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
	assert_int_equal(str_cmp(STR(""), STR("")), 0);
	assert_true(str_starts(STR("abc"), STR("ab")));
	assert_true(str_ends(STR("abc"), STR("bc")));
	assert_false(str_ends(STR("c"), STR("bc")));
	assert_int_equal(str_find(STR("hello"), STR("lo")), 3);
	assert_int_equal(str_find(STR("hello"), STR("x")), STR_NONE);
	assert_int_equal(str_rfind_char(STR("a/b/c"), '/'), 3);
}

static void strings_split(void **state)
{
	struct str rest = STR("a,,b"), piece;
	int pieces = 0;

	(void)state;
	while (str_split(&rest, ',', &piece))
		pieces++;
	assert_int_equal(pieces, 3);
	rest = STR("");
	assert_true(str_split(&rest, ',', &piece));
	assert_false(str_split(&rest, ',', &piece));
}

static void strings_to_integers(void **state)
{
	static const struct {
		const char *text;
		bool good;
		int64_t value;
	} cases[] = {
		{ "0", true, 0 },
		{ "-1", true, -1 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775808", false, 0 },
		{ "-9223372036854775809", false, 0 },
		{ "", false, 0 },
		{ "-", false, 0 },
		{ "+1", false, 0 },
		{ "1 ", false, 0 },
		{ "00012", true, 12 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		int64_t value = 0;

		assert_int_equal(str_to_i64(str_from(cases[i].text), &value), cases[i].good);
		if (cases[i].good)
			assert_int_equal(value, cases[i].value);
	}
}

static void utf8_is_checked(void **state)
{
	uint32_t c;

	(void)state;
	assert_true(utf8_valid(STR("plain ascii text, long enough for a stride")));
	assert_true(utf8_valid(STR("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80")));
	assert_false(utf8_valid(STR("\xc0\x80")));	   /* overlong */
	assert_false(utf8_valid(STR("\xed\xa0\x80")));	   /* surrogate */
	assert_false(utf8_valid(STR("\xf4\x90\x80\x80"))); /* beyond U+10FFFF */
	assert_int_equal(utf8_valid_prefix(STR("ab\xff")), 2);
	assert_int_equal(utf8_decode(STR("\xe2\x82\xac"), &c), 3);
	assert_int_equal(c, 0x20ac);
	assert_int_equal(utf8_decode(STR("\xe2\x82"), &c), 1);
	assert_int_equal(c, 0xfffd);
	assert_int_equal(utf8_width(STR("a\xe2\x82\xac\xe4\xb8\xad")), 4);
	assert_int_equal(utf8_width(STR("abcdefgh\x7fijklmno\tp")), 16);
	assert_int_equal(utf8_plain_prefix(STR("")), 0);
	assert_int_equal(utf8_plain_prefix(STR(" ~abcdefghijkl\x7fm")), 14);
	assert_int_equal(utf8_plain_prefix(STR("abcdefgh\x1fijklmno")), 8);
	assert_int_equal(utf8_plain_prefix(STR("abc\xff\x01ghijklm")), 3);
	assert_int_equal(utf8_fit(STR("a\xe4\xb8\xad"), 2).len, 1);
	/* every code point comes back; what is none becomes the replacement character */
	for (uint32_t code = 0; code < 0x110100; code += code < 0x900 ? 1 : 251) {
		bool valid = code < 0xd800 || (code > 0xdfff && code <= 0x10ffff);
		char bytes[4];
		size_t n = utf8_encode(code, bytes);

		assert_int_equal(utf8_decode(str_make(bytes, n), &c), n);
		assert_int_equal(c, valid ? code : 0xfffd);
	}
}

/* Address and memory sanitizers are to see every block. */
static bool large_blocks_are_malloced(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
	return true;
#endif
#endif
	return false;
}

/* Counted page by page: statm is off by what each processor has not reported yet. */
static long resident_bytes(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	long kb = -1;
	char line[200];

	assert_non_null(f);
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "Rss: %ld kB", &kb) != 1)
			kb = -1;
	fclose(f);
	assert_true(kb >= 0);
	return kb * 1024;
}

static void trimmed_blocks_keep_what_is_used(void **state)
{
	const size_t size = (size_t)16 << 20, used = ((size_t)3 << 20) / 2 + 5;
	struct mem mem;
	long before, after;
	char *p;

	(void)state;
	mem_init(&mem, 0);
	p = mem_alloc(&mem, size);
	assert_non_null(p);
	memset(p, 'x', size);
	p = mem_realloc(&mem, p, size, used);
	assert_non_null(p);
	before = resident_bytes();
	mem_trim(p, used);
	after = resident_bytes();
	for (size_t i = 0; i < used; i++)
		assert_int_equal(p[i], 'x');
	p = mem_realloc(&mem, p, used, size); /* it can grow again */
	assert_non_null(p);
	memset(p + used, 'y', size - used);
	assert_int_equal(p[used - 1], 'x');
	mem_free(&mem, p, size);
	assert_int_equal(mem.kept_bytes, 0);
	assert_int_equal(atomic_load(&mem.used), 0);
	if (!large_blocks_are_malloced())
		assert_true(before - after >= 256 << 10);
}

/* Pages of freed blocks go to one that is about to be written; what is around stays. */
static void kept_pages_serve_other_blocks(void **state)
{
	enum { MB = 1 << 20, SIZE = 11 * MB, FIRST = 5 * MB / 2 + 3, LAST = 10 * MB - 9 };
	unsigned char *alive, *from, *to;
	struct mem mem;
	bool kept; /* not under every sanitizer */

	(void)state;
	mem_init(&mem, 0);
	alive = mem_alloc(&mem, 1); /* or nothing is kept */
	to = mem_zalloc(&mem, SIZE);
	from = mem_alloc(&mem, 4 * MB);
	assert_true(alive && to && from);
	memset(to, 'a', FIRST);
	memset(from, 'x', 4 * MB);
	mem_free(&mem, from, 4 * MB);
	kept = mem.kept_bytes > 0;
	from = mem_alloc(&mem, 2 * MB);
	assert_non_null(from);
	memset(from, 'y', 2 * MB); /* one of the pages */
	mem_use_kept(&mem, to, SIZE, FIRST, LAST);
	mem_use_kept(&mem, to, SIZE, FIRST, LAST); /* none are left */
	if (kept)
		assert_int_equal(to[4 * MB], 'x'); /* the other one */
	assert_int_equal(mem.kept_bytes, 0);
	for (size_t i = 0; i < FIRST; i++)
		assert_int_equal(to[i], 'a');
	for (size_t i = LAST; i < SIZE; i++)
		assert_int_equal(to[i], 0);
	memset(to + FIRST, 'b', LAST - FIRST);
	to = mem_realloc_zero(&mem, to, SIZE, 2 * SIZE);
	assert_non_null(to);
	assert_int_equal(to[FIRST - 1], 'a');
	for (size_t i = FIRST; i < LAST; i++)
		assert_int_equal(to[i], 'b');
	for (size_t i = LAST; i < 2 * SIZE; i++)
		assert_int_equal(to[i], 0);
	for (size_t i = 0; i < 2 * MB; i++)
		assert_int_equal(from[i], 'y');
	mem_free(&mem, from, 2 * MB);
	mem_free(&mem, to, 2 * SIZE);
	mem_free(&mem, alive, 1);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void memory_limit_holds(void **state)
{
	struct mem mem;
	size_t cap = 0;
	void *array = NULL, *p;

	(void)state;
	mem_init(&mem, 1000);
	p = mem_alloc(&mem, 600);
	assert_non_null(p);
	assert_null(mem_alloc(&mem, 600));
	p = mem_realloc(&mem, p, 600, 900);
	assert_non_null(p);
	assert_int_equal(atomic_load(&mem.used), 900);
	mem_free(&mem, p, 900);
	assert_int_equal(atomic_load(&mem.used), 0);
	assert_true(mem_grow(&mem, &array, &cap, 100, 8));
	assert_false(mem_grow(&mem, &array, &cap, 200, 8));
	assert_int_equal(cap, 100);
	assert_true(
		mem_grow(&mem, &array, &cap, 120, 8)); /* exact size when half more does not fit */
	mem_free(&mem, array, cap * 8);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* Blocks change between the allocator and mappings of our own as they grow and shrink. */
static void large_blocks_keep_their_content(void **state)
{
	static const size_t sizes[] = { 100,	 3 << 20, 5 << 20, 64 << 20, 63 << 20,
					1 << 20, 1000,	  2 << 20, 1 };
	size_t size = 100;
	struct mem mem;
	char *p;

	(void)state;
	mem_init(&mem, 0);
	p = mem_zalloc(&mem, size);
	assert_non_null(p);
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		size_t kept = MIN(size, sizes[i]);

		memset(p, (int)i + 1, size);
		p = mem_realloc(&mem, p, size, sizes[i]);
		assert_non_null(p);
		assert_int_equal(p[0], (int)i + 1);
		assert_int_equal(p[kept - 1], (int)i + 1);
		size = sizes[i];
		assert_int_equal(atomic_load(&mem.used), size);
	}
	mem_free(&mem, p, size);
	p = mem_zalloc(&mem, 4 << 20);
	assert_non_null(p);
	for (size_t i = 0; i < 4 << 20; i += 999)
		assert_int_equal(p[i], 0);
	mem_free(&mem, p, 4 << 20);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* Freed large blocks are used again: whole, in parts, and cleared where that is asked for. */
static void use_large_blocks(bool small_pages)
{
	enum { MB = 1 << 20, BLOCKS = 40 };
	unsigned char *blocks[BLOCKS];
	struct mem mem;

	mem_init(&mem, 0);
	atomic_store(&mem.small_pages, small_pages);
	for (size_t round = 1; round < 5; round++) {
		size_t size = round * 3 * MB;

		for (size_t i = 0; i < BLOCKS; i++) {
			blocks[i] = i % 2 ? mem_zalloc(&mem, size) : mem_alloc(&mem, size);
			assert_non_null(blocks[i]);
			if (i % 2)
				assert_true(!blocks[i][0] && !blocks[i][size / 2] &&
					    !blocks[i][size - 1]);
			memset(blocks[i], (int)i + 1, size);
		}
		for (size_t i = 0; i < BLOCKS; i++) {
			assert_int_equal(blocks[i][0], i + 1);
			assert_int_equal(blocks[i][size - 1], i + 1);
			blocks[i] = mem_realloc(&mem, blocks[i], size, size + i * MB / 4);
			assert_non_null(blocks[i]);
			assert_int_equal(blocks[i][size - 1], i + 1);
		}
		for (size_t i = 0; i < BLOCKS; i++)
			if (i || round == 4)
				mem_free(&mem, blocks[i], size + i * MB / 4);
		if (round < 4) {
			assert_int_equal(atomic_load(&mem.used), size);
			assert_true(mem.kept_bytes <= 96 * MB);
			mem_free(&mem, mem_realloc(&mem, blocks[0], size, 1), 1);
		}
		assert_int_equal(mem.kept_bytes, 0); /* nothing is in use */
	}
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void large_blocks_again(void **state)
{
	(void)state;
	use_large_blocks(false);
	use_large_blocks(true);
}

/* Rows of many columns are written together: they must not meet in one set of a cache. */
static void large_blocks_begin_at_lines_of_their_own(void **state)
{
	enum { BLOCKS = 64, LINE = 64, PAGE = 4096, SIZE = 1 << 20 };
	bool taken[PAGE / LINE] = { false };
	char *blocks[BLOCKS];
	struct mem mem;

	(void)state;
	if (large_blocks_are_malloced())
		skip();
	mem_init(&mem, 0);
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t line;

		blocks[i] = mem_alloc(&mem, SIZE);
		assert_non_null(blocks[i]);
		line = (uintptr_t)blocks[i] % PAGE / LINE;
		assert_int_equal((uintptr_t)blocks[i] % LINE, 0);
		assert_false(taken[line]);
		taken[line] = true;
		blocks[i] = mem_realloc(&mem, blocks[i], SIZE, 4 * SIZE);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % PAGE / LINE, line);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		mem_free(&mem, blocks[i], 4 * SIZE);
}

/* Growing with zeros: from nothing, from a small block, in a mapped one, and over what was cut off. */
static void blocks_grow_with_zeros(void **state)
{
	enum { KB = 1 << 10, MB = 1 << 20 };
	static const size_t sizes[] = { 10,	100,	500 * KB, 1 * MB,   1 * MB + 1,
					3 * MB, 2 * MB, 5 * MB,	  600 * KB, 7 * MB };
	unsigned char *block = NULL, *alive;
	size_t have = 0;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	/* something dirty to take from */
	block = mem_alloc(&mem, 8 * MB);
	assert_non_null(block);
	memset(block, 0xee, 8 * MB);
	alive = mem_alloc(&mem, 1); /* or nothing is kept */
	mem_free(&mem, block, 8 * MB);
	block = NULL;
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		block = mem_realloc_zero(&mem, block, have, sizes[i]);
		assert_non_null(block);
		for (size_t k = 0; k < sizes[i]; k++)
			if (block[k] != (k < have ? 0xaa : 0))
				fail_msg("byte %zu of %zu, %zu before", k, sizes[i], have);
		memset(block, 0xaa, sizes[i]);
		have = sizes[i];
	}
	mem_free(&mem, block, have);
	mem_free(&mem, alive, 1);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void injected_failures(void **state)
{
	struct mem mem;
	void *p;

	(void)state;
	mem_init(&mem, 0);
	mem_fail_after(2, false);
	p = mem_alloc(&mem, 1);
	assert_non_null(p);
	assert_null(mem_alloc(&mem, 1));
	mem_free(&mem, p, 1);
	p = mem_alloc(&mem, 1);
	assert_non_null(p);
	mem_free(&mem, p, 1);
	mem_fail_after(0, false);
}

static void arenas_grow_and_align(void **state)
{
	struct arena arena;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	for (size_t i = 1; i < 3000; i++) {
		char *p = arena_push(&arena, i);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 16, 0);
		assert_int_equal(p[i - 1], 0);
		memset(p, 0xab, i);
	}
	assert_non_null(arena_push(&arena, (size_t)5 << 20));
	assert_null(arena_push_array(&arena, SIZE_MAX / 2, 4));
	assert_string_equal(arena_cstr(&arena, STR("x")), "x");
	assert_string_equal(arena_printf(&arena, "%d-%s", 7, "y"), "7-y");
	arena_release(&arena);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void arrays_grow_in_an_arena(void **state)
{
	size_t count = 0, cap = 0;
	uint32_t *items = NULL;
	struct arena arena;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	for (; count < 1000; count++) {
		items = arena_grow(&arena, items, count, &cap, sizeof(*items));
		assert_non_null(items);
		items[count] = (uint32_t)count;
	}
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(items[i], i);
	cap = count = SIZE_MAX / 4;
	assert_null(arena_grow(&arena, items, count, &cap, sizeof(*items)));
	assert_int_equal(cap, SIZE_MAX / 4);
	arena_release(&arena);
	assert_int_equal(mem.used, 0);
}

static void maps_find_what_was_added(void **state)
{
	struct map map;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	map_init(&map, &mem);
	for (uint32_t i = 1; i <= 10000; i++)
		assert_true(map_add(&map, map_hash_u64(i, 0), i));
	for (uint32_t i = 1; i <= 10000; i++) {
		struct map_iter it = map_find(&map, map_hash_u64(i, 0));

		while (it.value && it.value != i)
			it = map_next(&map, it);
		assert_int_equal(it.value, i);
	}
	assert_int_equal(map_find(&map, map_hash_u64(123456789, 0)).value, 0);
	map_release(&map);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void buffers_remember_failure(void **state)
{
	struct buf buf;
	struct mem mem;

	(void)state;
	mem_init(&mem, 64);
	buf_init(&buf, &mem);
	buf_printf(&buf, "%s", "hello");
	assert_string_equal(buf_cstr(&buf), "hello");
	buf_add_repeat(&buf, 'x', 1000);
	assert_true(buf.failed);
	assert_null(buf_cstr(&buf));
	buf_release(&buf);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static int make_file(char *path, const void *data, size_t len)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	return fd;
}

/* A file larger than what is read at once, so that it stays on disk. */
static void windows_slide(void **state)
{
	size_t size = (size_t)3 << 20;
	unsigned char *data = malloc(size);
	char path[] = "/tmp/opwatch-test-XXXXXX";
	struct ow_error err = { 0 };
	struct window window;
	struct input in;
	struct mem mem;
	int fd;

	(void)state;
	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 9));
	fd = make_file(path, data, size);
	mem_init(&mem, 0);
	assert_int_equal(input_open(&in, &mem, path, &err), OW_OK);
	window_init(&window, &in, &err);
	for (size_t at = 0; at + 70000 < size; at += 61234)
		assert_memory_equal(window_at(&window, at, 70000), data + at, 70000);
	assert_memory_equal(window_at(&window, 5, 2 << 20), data + 5, 2 << 20);
	assert_null(window_at(&window, size - 5, 6));
	assert_int_equal(window.status, OW_E_CORRUPT);
	assert_non_null(strstr(err.text, "truncated"));

	/* The file shrinks while it is open: an error, not a signal. */
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_null(window_at(&window, size - 500, 400));
	assert_int_equal(window.status, OW_E_IO);
	assert_int_equal(input_check_unchanged(&in, &err), OW_E_IO);
	window_release(&window);
	input_close(&in);
	assert_int_equal(atomic_load(&mem.used), 0);
	close(fd);
	unlink(path);
	free(data);
}

static int temp_with(const char *text)
{
	char path[] = "/tmp/opwatch-test-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void expect_bytes(const struct input *in, uint64_t offset, const char *want)
{
	char got[64] = "";
	struct ow_error err = { 0 };

	assert_int_equal(input_read_at(in, offset, got, strlen(want), &err), OW_OK);
	assert_string_equal(got, want);
}

/* Parts of a shared file stay apart, and it lasts as long as the last of them. */
static void parked_inputs_share_a_file(void **state)
{
	static const char *const texts[] = { "first", "second", "third" };
	struct input in[3], borrowed;
	struct input_pool *pool = NULL;
	struct ow_error err = { 0 };
	struct window window;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(input_adopt_fd(&in[i], &mem, texts[i], temp_with(texts[i]), &err),
				 OW_OK);
		assert_int_equal(input_share_fd(&in[i], &pool, &err), OW_OK);
	}
	assert_int_equal(in[1].fd, in[0].fd);
	input_pool_release(pool);
	for (int i = 0; i < 3; i++)
		expect_bytes(&in[i], 0, texts[i]);
	expect_bytes(&in[1], 2, "cond");
	assert_int_equal(input_borrow(&borrowed, &in[2], &err), OW_OK);
	input_close(&in[0]);
	input_close(&in[1]);
	expect_bytes(&borrowed, 1, "hird");
	input_close(&borrowed);
	window_init(&window, &in[2], &err);
	assert_memory_equal(window_at(&window, 0, 5), "third", 5);
	assert_null(window_at(&window, 0, 6)); /* nothing of others */
	window_release(&window);
	input_close(&in[2]);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* A parked file that is not the same any more is not read. */
static void parked_files_are_opened_again(void **state)
{
	char path[] = "/tmp/opwatch-test-XXXXXX";
	int fd = mkstemp(path);
	struct input_pool *pool = NULL;
	struct ow_error err = { 0 };
	struct input in;
	struct mem mem;
	char byte;

	(void)state;
	mem_init(&mem, 0);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 3 << 20), 0); /* small ones are read at once */
	assert_int_equal(pwrite(fd, "here", 4, 2 << 20), 4);
	assert_int_equal(input_open(&in, &mem, path, &err), OW_OK);
	assert_int_equal(input_share_fd(&in, &pool, &err), OW_OK);
	assert_null(pool);
	assert_int_equal(in.fd, -1);
	expect_bytes(&in, 2 << 20, "here");
	assert_int_equal(input_check_unchanged(&in, &err), OW_OK);
	assert_int_equal(pwrite(fd, "x", 1, 3 << 20), 1);
	assert_int_equal(input_read_at(&in, 0, &byte, 1, &err), OW_E_IO);
	assert_int_equal(input_check_unchanged(&in, &err), OW_E_IO);
	unlink(path);
	assert_int_equal(input_read_at(&in, 0, &byte, 1, &err), OW_E_IO);
	input_close(&in);
	close(fd);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void inputs_say_what_is_wrong(void **state)
{
	struct ow_error err = { 0 };
	struct input in;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(input_open(&in, &mem, "/nonexistent/x", &err), OW_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "/nonexistent/x"));
	assert_int_equal(input_open(&in, &mem, "/tmp", &err), OW_E_USAGE);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void errors_gather_context(void **state)
{
	struct ow_error err = { 0 };

	(void)state;
	error_at(&err, OW_E_CORRUPT, 42, "bad length");
	error_wrap(&err, OW_E_CORRUPT, "loading %s", "x.pb");
	assert_string_equal(err.text, "loading x.pb: bad length (at byte 42)");
	assert_int_equal(err.offset, 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_blocks_keep_their_content),
		cmocka_unit_test(strings_compare_bytewise),
		cmocka_unit_test(strings_split),
		cmocka_unit_test(strings_to_integers),
		cmocka_unit_test(utf8_is_checked),
		cmocka_unit_test(trimmed_blocks_keep_what_is_used),
		cmocka_unit_test(kept_pages_serve_other_blocks),
		cmocka_unit_test(memory_limit_holds),
		cmocka_unit_test(large_blocks_again),
		cmocka_unit_test(large_blocks_begin_at_lines_of_their_own),
		cmocka_unit_test(blocks_grow_with_zeros),
		cmocka_unit_test(injected_failures),
		cmocka_unit_test(arenas_grow_and_align),
		cmocka_unit_test(arrays_grow_in_an_arena),
		cmocka_unit_test(maps_find_what_was_added),
		cmocka_unit_test(buffers_remember_failure),
		cmocka_unit_test(windows_slide),
		cmocka_unit_test(parked_inputs_share_a_file),
		cmocka_unit_test(parked_files_are_opened_again),
		cmocka_unit_test(inputs_say_what_is_wrong),
		cmocka_unit_test(errors_gather_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
