/*
 * merge_test.c: whole merges of small files. The result must not depend on threads, parts or samples, and
 * every allocation may fail. What the output must say is checked by tests/property/merge_test.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "merge/merge_int.h"

#include <unistd.h>

#define FILES 3

struct setting {
	char dir[64];
	char names[FILES][128];
	struct merge_path paths[FILES];
};

static void put_text(const char *path, const char *text, size_t len)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

/* Texts that look like events, pids that come late, everything that is renumbered. */
static void add_events(struct buf *text, unsigned file, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned pid = i < count / 2 ? i % 3 : i % 7 + file * 2;

		buf_printf(text,
			   "%s{\"ph\":\"X\",\"name\":\"n%u\",\"pid\":%u,\"ts\":%u.5,\"dur\":2,",
			   i ? ",\n" : "", i % 5, pid, 1000 + i);
		buf_printf(
			text,
			"\"args\":{\"t\":\"},{\\\"ph\\\":\\\"X\\\",\\\"pid\\\":%u}\",\"n\":[%u]}}",
			i, i);
		if (i % 10 == 0)
			buf_printf(text,
				   ",{\"ph\":\"s\",\"id\":%u,\"cat\":\"c\",\"pid\":1,\"ts\":%u}", i,
				   i);
		if (i % 25 == 0)
			buf_printf(text,
				   ",{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,"
				   "\"args\":{\"name\":\"p\"}}",
				   pid);
		if (i % 40 == 0)
			buf_printf(text,
				   ",{\"ph\":\"B\",\"name\":\"o\",\"pid\":\"P%u\",\"ts\":%u,}",
				   i % 3, i);
		if (i % 40 == 20)
			buf_printf(text,
				   ",{\"ph\":\"B\",\"name\":\"o\",\"pid\":5,\"ts\":%u},"
				   "{\"ph\":\"E\",\"pid\":5,\"ts\":%u}",
				   i, i + 9);
		if (i % 50 == 0)
			buf_printf(text,
				   ",{\"ph\":\"X\",\"name\":\"ProfilerStep#%u\",\"ts\":%u,"
				   "\"dur\":50,\"pid\":1,\"sf\":1}",
				   i / 50, 1000 + i);
	}
}

static int set_up(void **state)
{
	struct setting *s = calloc(1, sizeof(*s));
	struct mem mem;

	assert_non_null(s);
	mem_init(&mem, 0);
	snprintf(s->dir, sizeof(s->dir), "/tmp/opwatch-merge-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	for (unsigned i = 0; i < FILES; i++) {
		struct buf text;

		buf_init(&text, &mem);
		buf_printf(&text,
			   "{\"a\":%u,\"same\":[1,2],\"stackFrames\":{\"1\":{\"name\":\"f\"}},"
			   "\"traceEvents\":[",
			   i);
		add_events(&text, i, 200);
		buf_puts(&text,
			 i == 2 ? ",{\"ph\":\"X\",\"na"
				: "],\"env\":{\"HOME\":1},\"samples\":[{\"ts\":5,\"sf\":1}],"
				  "\"distributedInfo\":{\"rank\":4}}\n[{\"ph\":\"i\",\"ts\":1}]");
		snprintf(s->names[i], sizeof(s->names[i]), "%s/f%u.json", s->dir, i);
		put_text(s->names[i], text.ptr, text.len);
		s->paths[i] = (struct merge_path){ s->names[i], false };
		buf_release(&text);
	}
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct setting *s = *state;

	for (unsigned i = 0; i < FILES; i++)
		unlink(s->names[i]);
	rmdir(s->dir);
	free(s);
	return 0;
}

/* ---- into memory ---- */

static ow_status take(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	struct buf *out = arg;

	buf_add(out, bytes, len);
	return out->failed ? error_no_memory(err) : OW_OK;
}

static ow_status restart(void *arg, struct ow_error *err)
{
	(void)err;
	buf_clear(arg);
	return OW_OK;
}

static ow_status merge(const struct setting *s, struct mem *mem,
		       const struct merge_options *options, enum pack_kind pack, struct buf *out,
		       struct merge_counts *counts)
{
	struct merge_out to = { take, restart, out, pack };
	struct ow_error err = { 0 };
	ow_status status = merge_files(mem, s->paths, FILES, options, &to, counts, &err);

	assert_int_equal(status, err.status);
	return status;
}

static void same_for_all_threads(void **state)
{
	static const size_t parts[] = { 200, 777, 5000, 0 }, samples[] = { 1, 3000 };
	struct merge_options options;
	struct merge_counts counts;
	struct buf first, out;
	struct mem mem;

	mem_init(&mem, 0);
	merge_options_init(&options);
	buf_init(&first, &mem);
	for (size_t k = 0; k < ARRAY_COUNT(samples); k++) {
		buf_clear(&first);
		options.sample_bytes = samples[k];
		options.threads = 1;
		options.part_bytes = 0;
		assert_int_equal(merge(*state, &mem, &options, PACK_NONE, &first, &counts), OW_OK);
		assert_int_equal(counts.truncated_files, 1);
		assert_true(counts.repaired > 10);
		assert_true(json_strict(str_trim(buf_str(&first))));
		for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
			for (unsigned threads = 1; threads <= 5; threads += 2) {
				options.part_bytes = parts[i];
				options.threads = threads;
				buf_init(&out, &mem);
				assert_int_equal(
					merge(*state, &mem, &options, PACK_NONE, &out, &counts),
					OW_OK);
				assert_int_equal(out.len, first.len);
				assert_memory_equal(out.ptr, first.ptr, out.len);
				buf_release(&out);
			}
	}
	buf_release(&first);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void aligned_and_filtered(void **state)
{
	static const char *const names[] = { "n1", "o" };
	struct merge_counts counts, all;
	struct merge_options options;
	struct buf out;
	struct mem mem;

	mem_init(&mem, 0);
	for (int align = ALIGN_KEEP; align <= ALIGN_SEQUENCE; align++)
		for (int filter = 0; filter < 4; filter++) {
			merge_options_init(&options);
			options.align = (enum merge_align)align;
			options.threads = 3;
			options.part_bytes = 900;
			if (filter & 1)
				options.names = (struct ow_list){ names, 2 };
			if (filter & 2) {
				options.first_step = 1;
				options.last_step = 2;
				options.from_ns = 0;
			}
			buf_init(&out, &mem);
			assert_int_equal(merge(*state, &mem, &options, PACK_NONE, &out, &counts),
					 OW_OK);
			assert_true(json_strict(str_trim(buf_str(&out))));
			assert_int_equal(counts.events_in, counts.events_out + counts.filtered);
			if (!filter)
				all = counts;
			assert_int_equal(counts.events_in, all.events_in);
			assert_true(!filter || counts.filtered > 100);
			buf_release(&out);
		}
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void every_allocation_fails(void **state)
{
	struct merge_options options;
	struct merge_counts counts;
	struct mem mem, quiet;

	mem_init(&mem, 0);
	mem_init(&quiet, 0);
	for (int kind = 0; kind < 3; kind++)
		for (uint64_t n = 1;; n++) {
			struct buf out;
			ow_status status;

			merge_options_init(&options);
			options.threads = 1; /* so that the n-th is always the same */
			options.part_bytes = 8000;
			if (kind == 1) {
				options.align = ALIGN_SEQUENCE;
				options.first_step = options.last_step = 1;
			}
			buf_init(&out, &quiet);
			assert_true(buf_reserve(&out, 1 << 20));
			mem_fail_after(n, true);
			status = merge(*state, &mem, &options, kind == 2 ? PACK_GZIP : PACK_NONE,
				       &out, &counts);
			mem_fail_after(0, false);
			buf_release(&out);
			assert_int_equal(atomic_load(&mem.used), 0);
			if (status == OW_OK)
				break;
			assert_int_equal(status, OW_E_NO_MEMORY);
			assert_true(n < 5000);
		}
}

static bool not_for_long(void *arg, uint64_t done, uint64_t total)
{
	int *left = arg;

	(void)done, (void)total;
	return --*left > 0;
}

static void cancelled_at_any_time(void **state)
{
	struct merge_options options;
	struct merge_counts counts;
	struct mem mem;

	mem_init(&mem, 0);
	for (int calls = 1; calls < 200; calls += 3) {
		int left = calls;
		struct buf out;
		ow_status status;

		merge_options_init(&options);
		options.threads = 3;
		options.part_bytes = 500;
		options.progress = not_for_long;
		options.progress_arg = &left;
		buf_init(&out, &mem);
		status = merge(*state, &mem, &options, PACK_NONE, &out, &counts);
		assert_true(status == OW_E_INTERRUPTED || (status == OW_OK && left > 0));
		buf_release(&out);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(same_for_all_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(aligned_and_filtered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_allocation_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cancelled_at_any_time, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
