/* journal_rows_test.c: recordings whose records are sound but say what no recorder says. */
#include "support/scratch.h"
#include "support/tf_files.h"
#include "wire/container/crc32c.h"
#include "wire/own/journal.h"

/* One slice of a thread; its record says another number. */
static void record(struct mem *mem, const char *path, uint32_t thread)
{
	struct ow_error err = { 0 };
	struct journal j;

	assert_int_equal(journal_open(&j, mem, path, "test", &err), OW_OK);
	journal_slice(&j, journal_name(&j, STR("work")), 1000, 2000);
	for (uint64_t i = 0; i < j.used; i++) {
		struct journal_record *r = &j.slots[i];

		if (r->kind != JOURNAL_THREAD)
			continue;
		r->thread = thread;
		r->check = crc32c(r, offsetof(struct journal_record, check));
	}
	assert_int_equal(journal_close(&j, &err), OW_OK);
}

static struct buf content(struct mem *mem, const char *path)
{
	char bytes[4096];
	FILE *file = fopen(path, "rb");
	struct buf out;
	size_t n;

	assert_non_null(file);
	buf_init(&out, mem);
	while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
		buf_add(&out, bytes, n);
	fclose(file);
	return out;
}

/* A track each would be gigabytes for one record. */
static void threads_that_nobody_counted(void **state)
{
	static const struct {
		uint32_t thread, tracks;
	} cases[] = { { 1, 1 }, { 3, 3 }, { UINT32_MAX, 1 }, { (1 << 24) - 1, 1 } };
	char folder[64], path[96];

	(void)state;
	assert_true(scratch_make(folder, sizeof(folder), "journal"));
	snprintf(path, sizeof(path), "%s/a.opw", folder);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct tf_files t;
		struct buf bytes;

		tf_open(&t);
		record(&t.mem, path, cases[i].thread);
		bytes = content(&t.mem, path);
		assert_int_equal(tf_load_bytes(&t, "opw", &bytes), OW_OK);
		assert_int_equal(t.m->event.count - 1, 1);
		assert_int_equal(t.m->track.count - 1, cases[i].tracks);
		tf_close(&t);
	}
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_nobody_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
