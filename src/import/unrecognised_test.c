/*
 * unrecognised_test.c: a file that nobody can read gets a message that says what it is, or what may have
 * happened to it, and what to open instead.
 */
#include "import/unrecognised.h"

#include <stdlib.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *explained(const char *name, struct str head, struct ow_error *err)
{
	*err = (struct ow_error){ 0 };
	unrecognised_explain(name, head, err);
	assert_int_not_equal(err->status, OW_OK);
	assert_true(str_starts(str_from(err->text), str_from(name)));
	return err->text;
}

static void parts_of_checkpoints(void **state)
{
	struct ow_error err;

	(void)state;
	assert_non_null(strstr(explained("d/m.ckpt-7.data-00000-of-00002", STR("abcd"), &err),
			       "open d/m.ckpt-7.index"));
	assert_null(strstr(explained("m.data-1-of", STR("abcd"), &err), ".index"));
	assert_null(strstr(explained("m.data-1-of-2.txt", STR("abcd"), &err), ".index"));
	assert_non_null(strstr(explained("m.index", STR("\0\0\x06\x08\x01\x1a\x02\x08\x01"), &err),
			       "is truncated"));
	assert_non_null(
		strstr(explained("checkpoint", STR("model_checkpoint_path: \"m-7\"\n"), &err),
		       "list of checkpoints"));
	assert_null(strstr(explained("m.index", STR("\0\0"), &err), "is truncated"));
}

static void beside_its_index(void **state)
{
	char dir[] = "/tmp/unrecognised-XXXXXX", path[64], name[64], index[64];
	struct ow_error err = { .status = OW_E_NOT_FOUND, .text = "as it was" };
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/m.ckpt", dir);
	snprintf(index, sizeof(index), "%s/m.ckpt.index", dir);
	snprintf(path, sizeof(path), "%s/m.ckpt.data-00000-of-00001", dir);
	unrecognised_missing(name, &err);
	assert_string_equal(err.text, "as it was");
	assert_false(unrecognised_is_part(path));
	file = fopen(index, "w");
	assert_non_null(file);
	fclose(file);
	unrecognised_missing(name, &err);
	assert_int_equal(err.status, OW_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "m.ckpt.index"));
	assert_true(unrecognised_is_part(path));
	assert_false(unrecognised_is_part(name));
	remove(index);
	rmdir(dir);
}

static void other_models(void **state)
{
	struct ow_error err;

	(void)state;
	assert_non_null(
		strstr(explained("m.tflite", STR("\x1c\0\0\0TFL3\0\0"), &err), "TensorFlow Lite"));
	assert_non_null(strstr(explained("m.h5", STR("\x89HDF\r\n\x1a\n"), &err), "HDF5"));
	assert_non_null(
		strstr(explained("x", STR("version https://git-lfs.github.com/spec/v1\n"), &err),
		       "git lfs pull"));
	assert_non_null(strstr(explained("x", STR("TFL3"), &err), "unknown format"));
}

/* A binary file, and what git, FTP and editors make of it. */
static void converted(void **state)
{
	char bytes[4096], out[3 * sizeof(bytes)];
	size_t len = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7 + i / 256);
	assert_false(unrecognised_converted(str_make(bytes, sizeof(bytes))));
	for (size_t i = 0; i < sizeof(bytes); i++) { /* each \n becomes \r\n */
		if (bytes[i] == '\n' && (!i || bytes[i - 1] != '\r'))
			out[len++] = '\r';
		out[len++] = bytes[i];
	}
	assert_true(unrecognised_converted(str_make(out, len)));
	len = 0;
	for (size_t i = 0; i < sizeof(bytes); i++) { /* what is not ASCII becomes U+FFFD */
		if (bytes[i] >= 0) {
			out[len++] = bytes[i];
			continue;
		}
		len += utf8_encode(0xfffd, out + len);
	}
	assert_true(unrecognised_converted(str_make(out, len)));
	assert_false(unrecognised_converted(
		STR("a text\r\nwith lines\r\nas Windows\r\nhas\r\nthem\r\n")));
	assert_false(unrecognised_converted(STR("")));
}

/* Lines that ended in \r\n and do not any more. */
static void returns_gone(void **state)
{
	char bytes[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 9 == 0 ? '\n' : i % 9 == 1 ? 5 : 'a';
	assert_true(unrecognised_converted(str_make(bytes, sizeof(bytes))));
	bytes[5000] = '\r';
	assert_false(unrecognised_converted(str_make(bytes, sizeof(bytes))));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_checkpoints), cmocka_unit_test(beside_its_index),
		cmocka_unit_test(other_models),		cmocka_unit_test(converted),
		cmocka_unit_test(returns_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
