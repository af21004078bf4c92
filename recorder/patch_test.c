/*
 * patch_test.c: unit test of patch.c: calls that a loaded library (cmocka's own) makes go to the wrapper while it is
 * patched, and no longer when that is undone; this program's own calls are left alone. Names are found among many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "patch.c" /* NOLINT(bugprone-suspicious-include) */

static unsigned calls;

static int my_fflush(FILE *file);
static int my_unused(void);

void file_calls_found(void)
{
}

struct patch file_patches[] = {
	{ "fflush", (void *)my_fflush, NULL },
	{ "opwatch_no_such_function", (void *)my_unused, NULL },
	{ NULL, NULL, NULL },
};
struct patch start_patches[] = { { NULL, NULL, NULL } };
struct patch marker_patches[] = { { NULL, NULL, NULL } };
struct patch rights_patches[] = { { "prctl", (void *)my_unused, NULL }, { NULL, NULL, NULL } };

static int my_fflush(FILE *file)
{
	calls++;
	return ((int (*)(FILE *))file_patches[0].real)(file);
}

static int my_unused(void)
{
	return -1;
}

/* cmocka flushes its output after each message. */
static unsigned calls_of_cmocka(void)
{
	unsigned before = calls;

	print_message("%s", "");
	return calls - before;
}

static void calls_are_wrapped_until_undone(void **state)
{
	uint32_t slots;

	(void)state;
	assert_true(patches_begin());
	assert_true(patches_find_real());
	assert_non_null(file_patches[0].real);
	assert_null(file_patches[1].real);
	assert_int_equal(calls_of_cmocka(), 0);
	patches_notice();
	slots = patches_apply();
	assert_true(slots >= 1);
	assert_true(calls_of_cmocka() >= 1);
	calls = 0;
	fflush(stdout); /* this program is the recorder here: its own calls stay */
	assert_int_equal(calls, 0);
	assert_int_equal(patches_apply(), slots); /* once is enough */
	patches_undo();
	assert_int_equal(calls_of_cmocka(), 0);
	patches_notice();
	assert_int_equal(patches_apply(), slots);
	assert_true(calls_of_cmocka() >= 1);
	patches_undo();
}

static void names_are_found(void **state)
{
	static struct patching w;

	(void)state;
	patches_find_real();
	FOR_PATCHES(p)
	list_patch(&w, p);
	assert_ptr_equal(patch_of(&w, "fflush"), &file_patches[0]);
	assert_ptr_equal(patch_of(&w, "prctl"), &rights_patches[0]);
	assert_null(patch_of(&w, "opwatch_no_such_function")); /* the program has none */
	assert_null(patch_of(&w, "fflus"));
	assert_null(patch_of(&w, "fflush2"));
	assert_null(patch_of(&w, "_ZN5torch3addEv"));
	assert_null(patch_of(&w, ""));
}

static void some_objects_are_left_alone(void **state)
{
	(void)state;
	assert_true(is_left_alone("/lib/x86_64-linux-gnu/libc.so.6"));
	assert_true(is_left_alone("/lib64/ld-linux-x86-64.so.2"));
	assert_true(is_left_alone("linux-vdso.so.1"));
	assert_false(is_left_alone("/usr/lib/libcmocka.so.0"));
	assert_false(is_left_alone(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_wrapped_until_undone),
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(some_objects_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
