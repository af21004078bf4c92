/*
 * input_stream_test.c: inputs that are no regular files. A child process writes into a pipe, which is
 * opened as /dev/fd/N the way a shell's <(...) is.
 */
#include "base/input.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ENDLESS SIZE_MAX

struct writer {
	pid_t pid;
	int fd;
	char path[32];
};

static char byte_at(size_t i)
{
	return (char)(i % 251);
}

/* The child ends when it has written `len` bytes, or when nobody reads on. */
static void write_bytes(int fd, size_t len)
{
	char piece[4096];

	for (size_t at = 0; at < len;) {
		size_t n = MIN(len - at, sizeof(piece));
		ssize_t done;

		for (size_t i = 0; i < n; i++)
			piece[i] = byte_at(at + i);
		done = write(fd, piece, n);
		if (done < 0)
			_exit(1);
		at += (size_t)done;
	}
	_exit(0);
}

static void start(struct writer *w, size_t len)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	w->pid = fork();
	assert_true(w->pid >= 0);
	if (!w->pid) {
		signal(SIGPIPE, SIG_DFL);
		close(ends[0]);
		write_bytes(ends[1], len);
	}
	close(ends[1]);
	w->fd = ends[0];
	snprintf(w->path, sizeof(w->path), "/dev/fd/%d", w->fd);
}

static void stop(struct writer *w)
{
	int status;

	close(w->fd);
	assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
}

static void check_content(const struct input *in, size_t len)
{
	char piece[1000];
	struct ow_error err = { 0 };

	assert_int_equal(in->size, len);
	for (size_t at = 0; at < len;) {
		size_t n = MIN(len - at, sizeof(piece));

		assert_int_equal(input_read_at(in, at, piece, n, &err), OW_OK);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(piece[i], byte_at(at + i));
		at += n;
	}
}

static void read_back(size_t len, size_t limit, bool in_memory)
{
	struct ow_error err = { 0 };
	struct writer w;
	struct input in;
	struct mem mem;

	mem_init(&mem, limit);
	start(&w, len);
	assert_int_equal(input_open(&in, &mem, w.path, &err), OW_OK);
	assert_int_equal(in.data != NULL, in_memory);
	check_content(&in, len);
	input_close(&in);
	stop(&w);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void test_content(void **state)
{
	(void)state;
	read_back(0, 0, true);
	read_back(1, 0, true);
	read_back(5 << 20, 0, true);
	/* with little memory it goes to a file, at an odd length and at a multiple of the pieces */
	read_back((5 << 20) + 12345, 8 << 20, false);
	read_back(6 << 20, 8 << 20, false);
}

static ow_status refuse(const char *name, struct str head, struct ow_error *err)
{
	assert_true(head.len >= 1 << 20);
	assert_int_equal(head.ptr[300], byte_at(300));
	return error_set(err, OW_E_FORMAT, "%s: not wanted", name);
}

static void test_judge(void **state)
{
	const struct input_options options = { .judge = refuse };
	struct ow_error err = { 0 };
	struct writer w;
	struct input in;
	struct mem mem;

	(void)state;
	mem_init(&mem, 8 << 20);
	start(&w, ENDLESS);
	assert_int_equal(input_open_with(&in, &mem, w.path, &options, &err), OW_E_FORMAT);
	assert_non_null(strstr(err.text, ": not wanted"));
	stop(&w);
	assert_int_equal(atomic_load(&mem.used), 0);
	/* what fits in memory is not shown: it is recognised as a whole later */
	start(&w, 100);
	assert_int_equal(input_open_with(&in, &mem, w.path, &options, &err), OW_OK);
	input_close(&in);
	stop(&w);
}

static bool cancel_later(void *arg, uint64_t done, uint64_t total)
{
	uint64_t *seen = arg;

	(void)total;
	*seen = done;
	return done < 3 << 20;
}

static void test_cancel(void **state)
{
	uint64_t seen = 0;
	const struct progress progress = { cancel_later, &seen };
	const struct input_options options = { .progress = &progress };
	struct ow_error err = { 0 };
	struct writer w;
	struct input in;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	start(&w, ENDLESS);
	assert_int_equal(input_open_with(&in, &mem, w.path, &options, &err), OW_E_INTERRUPTED);
	assert_in_range(seen, 3 << 20, 4 << 20);
	stop(&w);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void test_devices(void **state)
{
	static const char *const paths[] = { "/dev/zero", "/dev/full", "/dev/urandom" };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
		struct ow_error err = { 0 };
		struct input in;
		struct mem mem;

		if (access(paths[i], R_OK) != 0)
			continue;
		mem_init(&mem, 0);
		assert_int_equal(input_open(&in, &mem, paths[i], &err), OW_E_FORMAT);
		assert_non_null(strstr(err.text, "is a device, not a profile"));
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

static void test_memory(void **state)
{
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	for (unsigned n = 1; status != OW_OK; n++) {
		struct ow_error err = { 0 };
		struct writer w;
		struct input in;
		struct mem mem;

		mem_init(&mem, 0);
		start(&w, 3 << 20);
		mem_fail_after(n, true);
		status = input_open(&in, &mem, w.path, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		if (status == OW_OK)
			input_close(&in);
		stop(&w);
		assert_int_equal(atomic_load(&mem.used), 0);
		assert_true(n < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_content), cmocka_unit_test(test_judge),
		cmocka_unit_test(test_cancel),	cmocka_unit_test(test_devices),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
