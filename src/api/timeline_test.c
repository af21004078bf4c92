/*
 * timeline_test.c: ow_timeline_write when memory gives out, when nobody reads, and from several threads
 * on one mapped file. What it writes is compared by tests/integration/timeline_class_test.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "api/api_int.h"
#include "support/open_good.h"

#include <pthread.h>
#include <unistd.h>

static const char *seed(const char *name)
{
	static char path[4][512];
	static unsigned next;
	const char *src = getenv("OPWATCH_SRC");
	char *to = path[next++ % ARRAY_COUNT(path)];

	snprintf(to, sizeof(path[0]), "%s/tests/fuzz/seeds/%s", src ? src : ".", name);
	return to;
}

static bool count_bytes(void *arg, const void *bytes, size_t len)
{
	(void)bytes;
	*(uint64_t *)arg += len;
	return true;
}

static bool take_one(void *arg, const void *bytes, size_t len)
{
	(void)bytes;
	(void)len;
	return ++*(unsigned *)arg < 1;
}

static void every_allocation_may_fail(void **state)
{
	static const char *const names[] = { "runmeta/run_meta", "trace/async.json",
					     "trace/kineto.json", "opw/run.opw" };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		ow_profile *p = open_good(seed(names[i]));
		struct ow_timeline_options options;
		unsigned failed = 0;
		size_t used;

		assert_int_equal(model_require_rows(p->m, TABLES_ALL, NULL),
				 OW_OK); /* made once and kept */
		used = atomic_load(&p->mem.used);
		ow_timeline_options_init(&options);
		options.show_memory = true;
		options.gzip = true;
		for (uint64_t n = 1; n < 200; n++) {
			struct ow_error err = { 0 };
			uint64_t bytes = 0;
			ow_status status;

			mem_fail_after(n, false);
			status = ow_timeline_write(p, &options, count_bytes, &bytes, &err);
			mem_fail_after(0, false);
			failed += status != OW_OK;
			assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
			assert_int_equal(atomic_load(&p->mem.used), used);
		}
		assert_true(failed > 2 && failed < 199);
		ow_profile_free(p);
	}
}

static void a_closed_output_ends_it(void **state)
{
	ow_profile *p = open_good(seed("trace/kineto.json"));
	struct ow_error err = { 0 };
	unsigned calls = 0;

	(void)state;
	assert_int_equal(ow_timeline_write(p, NULL, take_one, &calls, &err), OW_E_INTERRUPTED);
	assert_int_equal(calls, 1);
	ow_profile_free(p);
}

static void a_missing_step_is_told(void **state)
{
	ow_profile *p = open_good(seed("runmeta/run_meta"));
	struct ow_timeline_options options;
	struct ow_error err = { 0 };
	uint64_t bytes = 0;

	(void)state;
	ow_timeline_options_init(&options);
	options.step = 77;
	assert_int_equal(ow_timeline_write(p, &options, count_bytes, &bytes, &err), OW_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "77"));
	ow_profile_free(p);
}

/* ---- threads ---- */

static void *use(void *arg)
{
	static const char *const names[] = { "op", "tracks", "steps", "scope" };
	ow_profile *p = arg;

	for (unsigned i = 0; i < 12; i++) {
		struct ow_error err = { 0 };
		uint64_t bytes = 0;
		ow_result *result;

		if (ow_view(p, names[i % ARRAY_COUNT(names)], NULL, &result, &err) == OW_OK) {
			(void)!ow_result_write(result, "json", NULL, count_bytes, &bytes, &err);
			ow_result_free(result);
		}
		assert_int_equal(ow_timeline_write(p, NULL, count_bytes, &bytes, &err), OW_OK);
		assert_int_equal(ow_profile_verify(p, NULL, &err), OW_OK);
		assert_int_equal(model_find_op(p->m, STR("op_3")).v != 0, true);
	}
	return NULL;
}

static void threads_share_a_mapped_file(void **state)
{
	char trace[] = "/tmp/timeline-test-XXXXXX", saved[64];
	struct ow_error err = { 0 };
	pthread_t ids[4];
	ow_profile *p;
	FILE *f = fdopen(mkstemp(trace), "w");

	(void)state;
	assert_non_null(f);
	fprintf(f, "[");
	for (int i = 0; i < 25000; i++)
		fprintf(f,
			"%s{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":2,\"name\":\"op_%"
			"d\"}",
			i ? ",\n" : "", i % 3, i, i % 9);
	fprintf(f, "]");
	fclose(f);
	snprintf(saved, sizeof(saved), "%s.opw", trace);
	p = open_good(trace);
	assert_int_equal(ow_profile_save(p, saved, NULL, &err), OW_OK);
	ow_profile_free(p);
	p = open_good(saved);
	assert_non_null(p->m->backing->map.ptr);
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
		assert_int_equal(pthread_create(&ids[i], NULL, use, p), 0);
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
		pthread_join(ids[i], NULL);
	ow_profile_free(p);
	unlink(trace);
	unlink(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(a_closed_output_ends_it),
		cmocka_unit_test(a_missing_step_is_told),
		cmocka_unit_test(threads_share_a_mapped_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
