/*
 * opw_lazy_args_test.c: arguments of events that an importer tells (sink/own/opw_save.c) are in a saved file: those of all events
 * of a kind once, those of an event with it; saving again, cutting and redacting work on them, and so does a machine
 * without memory. That every file keeps its arguments is checked by opw_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "api/api_int.h"
#include "relation/args.h"
#include "support/open_good.h"
#include "support/xspace_writer.h"

#include <unistd.h>

#define EVENTS 300

struct files {
	char folder[64], xspace[96], saved[96], again[96];
};

static void write_xspace(const char *path)
{
	struct mem mem;
	struct xw w;
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	mem_init(&mem, 0);
	xw_init(&w, &mem);
	xw_begin_plane(&w, 1, "/device:TPU:0");
	xw_begin_line(&w, 7, "XLA Ops", 1000);
	for (int i = 0; i < EVENTS; i++) {
		xw_begin_event(&w, i % 3 ? "%dot = f32[8] dot(a, b)|dot" : "plain", i * 2000, 1000);
		if (i % 2)
			xw_number(&w, "run_id", i);
		xw_end_event(&w);
	}
	xw_entry_text(&w, "%dot = f32[8] dot(a, b)|dot", "hlo_category", "convolution");
	xw_entry_number(&w, "%dot = f32[8] dot(a, b)|dot", "flops", 128);
	xw_end_line(&w);
	xw_end_plane(&w);
	assert_int_equal(fwrite(w.out.ptr, 1, w.out.len, f), w.out.len);
	assert_int_equal(fclose(f), 0);
	xw_release(&w);
}

static int make_files(void **state)
{
	struct files *f = calloc(1, sizeof(*f));

	*state = f;
	snprintf(f->folder, sizeof(f->folder), "/tmp/opw-told-XXXXXX");
	if (!mkdtemp(f->folder))
		return -1;
	snprintf(f->xspace, sizeof(f->xspace), "%s/a.xplane.pb", f->folder);
	snprintf(f->saved, sizeof(f->saved), "%s/a.opw", f->folder);
	snprintf(f->again, sizeof(f->again), "%s/b.opw", f->folder);
	write_xspace(f->xspace);
	return 0;
}

static int remove_files(void **state)
{
	struct files *f = *state;
	int status;

	unlink(f->xspace);
	unlink(f->saved);
	unlink(f->again);
	status = rmdir(f->folder);
	free(f);
	return status;
}

static void convert(const char *from, const char *to)
{
	struct ow_error err = { 0 };
	ow_profile *p = open_good(from);

	if (ow_profile_save(p, to, NULL, &err) != OW_OK)
		fail_msg("%s: %s", to, err.text);
	ow_profile_free(p);
}

/* The events are on one track and in order. */
static void check_texts(const struct model *m)
{
	struct ow_error err = { 0 };
	struct arena arena;

	arena_init(&arena, m->mem);
	assert_int_equal(m->event.count, EVENTS + 1);
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t row = i + 1;
		struct str text;
		char own[32] = "", expected[160] = "";

		if (i % 2)
			snprintf(own, sizeof(own), "\"run_id\": %u", i);
		if (i % 3)
			snprintf(expected, sizeof(expected),
				 "{%s%s\"hlo_category\": \"convolution\", \"flops\": 128, "
				 "\"long_name\": \"%%dot = f32[8] dot(a, b)\"}",
				 own, *own ? ", " : "");
		else if (*own)
			snprintf(expected, sizeof(expected), "{%s}", own);
		assert_int_equal(args_read(m, &row, 1, &text, &arena, &err), OW_OK);
		assert_int_equal(text.len, strlen(expected));
		if (text.len)
			assert_memory_equal(text.ptr, expected, text.len);
	}
	arena_release(&arena);
}

static void of_a_kind_once(void **state)
{
	const struct files *f = *state;
	const char *saved[] = { f->saved, f->again };

	convert(f->xspace, f->saved);
	convert(f->saved, f->again);
	for (size_t k = 0; k < ARRAY_COUNT(saved); k++) {
		ow_profile *p = open_good(saved[k]);
		const struct model *m = p->m;

		check_texts(m);
		assert_true(m->event.shared_offset[2] > 0);
		for (uint32_t i = 1; i < m->event.count; i++) {
			assert_int_equal(m->event.shared_size[i] != 0, (i - 1) % 3 != 0);
			assert_int_equal(m->event.args_size[i] != 0, (i - 1) % 2 != 0);
			if ((i - 1) % 3)
				assert_int_equal(m->event.shared_offset[i],
						 m->event.shared_offset[2]);
		}
		ow_profile_free(p);
	}
}

static void redacted_ones_are_gone(void **state)
{
	const struct files *f = *state;
	const char *saved = f->saved;
	struct ow_open_options options;
	struct ow_error err = { 0 };
	struct ow_error error = { 0 };
	struct arena arena;
	ow_profile *p;

	convert(f->xspace, f->saved);
	ow_open_options_init(&options);
	options.redact = true;
	assert_int_equal(ow_profile_open(&saved, 1, &options, &p, &err), OW_OK);
	arena_init(&arena, p->m->mem);
	for (uint32_t row = 1; row < p->m->event.count; row++) {
		struct str text;

		assert_int_equal(args_read(p->m, &row, 1, &text, &arena, &error), OW_OK);
		assert_int_equal(text.len, 0);
	}
	arena_release(&arena);
	ow_profile_free(p);
}

static void every_allocation_may_fail(void **state)
{
	const struct files *f = *state;
	ow_status status = OW_E_NO_MEMORY;
	unsigned failed = 0;

	for (uint64_t n = 1; n < 1000 && status != OW_OK; n++) {
		struct ow_error err = { 0 };
		ow_profile *p = open_good(f->xspace);

		mem_fail_after(n, false);
		status = ow_profile_save(p, f->saved, NULL, &err);
		mem_fail_after(0, false);
		ow_profile_free(p);
		failed += status != OW_OK;
		if (status != OW_OK)
			assert_int_equal(status, OW_E_NO_MEMORY);
	}
	assert_int_equal(status, OW_OK);
	assert_true(failed > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(of_a_kind_once, make_files, remove_files),
		cmocka_unit_test_setup_teardown(redacted_ones_are_gone, make_files, remove_files),
		cmocka_unit_test_setup_teardown(every_allocation_may_fail, make_files,
						remove_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
