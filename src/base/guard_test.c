/* guard_test.c: files that shrink while they are mapped, and whose handlers stay whose. */
#include "base/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 64

static int temp_file(size_t len)
{
	char path[] = "/tmp/guard-test-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	for (size_t i = 0; i < len; i += 4096) {
		char page[4096];

		memset(page, 'x', sizeof(page));
		assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	}
	return fd;
}

static unsigned sum(const struct mapping *map)
{
	const volatile unsigned char *at = map->ptr;
	unsigned total = 0;

	for (size_t i = 0; i < map->len; i += 512)
		total += at[i];
	return total;
}

static void reads_zeros_where_the_file_ended(void **state)
{
	int fd = temp_file(PAGES * 4096);
	struct sigaction before, after;
	struct mapping map;
	struct guard guard;

	(void)state;
	sigaction(SIGBUS, NULL, &before);
	assert_true(mapping_open(&map, fd, PAGES * 4096));
	guard_enter(&guard);
	assert_int_equal(sum(&map), PAGES * 8 * 'x');
	assert_false(mapping_lost(&map));
	assert_int_equal(ftruncate(fd, 10 * 4096), 0);
	assert_int_equal(sum(&map), 10 * 8 * 'x');
	assert_true(mapping_lost(&map));
	guard_leave(&guard);
	sigaction(SIGBUS, NULL, &after);
	assert_ptr_equal(before.sa_sigaction, after.sa_sigaction);
	mapping_close(&map);
	close(fd);
}

static void nests(void **state)
{
	int fd = temp_file(PAGES * 4096);
	struct guard outer, inner;
	struct mapping map;

	(void)state;
	assert_true(mapping_open(&map, fd, PAGES * 4096));
	guard_enter(&outer);
	guard_enter(&inner);
	guard_leave(&inner);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(sum(&map), 0);
	guard_leave(&outer);
	assert_true(mapping_lost(&map));
	mapping_close(&map);
	close(fd);
}

static sig_atomic_t theirs;
static sigjmp_buf way_out;

static void their_handler(int number)
{
	(void)number;
	theirs++;
	siglongjmp(way_out, 1);
}

/* A fault in a mapping that is not ours reaches the host's handler, which stays installed. */
static void hands_on_what_is_not_ours(void **state)
{
	struct sigaction host = { .sa_handler = their_handler, .sa_flags = SA_NODEFER }, old, after;
	int fd = temp_file(4096);
	struct guard guard;
	volatile unsigned char *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	sigaction(SIGBUS, &host, &old);
	guard_enter(&guard);
	assert_int_equal(ftruncate(fd, 0), 0);
	if (!sigsetjmp(way_out, 1))
		(void)at[0];
	assert_int_equal(theirs, 1);
	guard_leave(&guard);
	sigaction(SIGBUS, NULL, &after);
	assert_ptr_equal(after.sa_handler, their_handler);
	sigaction(SIGBUS, &old, NULL);
	munmap((void *)(uintptr_t)at, 4096);
	close(fd);
}

/* With no handler the process ends by SIGBUS, as it would without us. */
static void keeps_the_default(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		struct sigaction plain = { .sa_handler = SIG_DFL };
		int fd = temp_file(4096);
		volatile unsigned char *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
		struct guard guard;

		sigaction(SIGBUS, &plain, NULL);
		guard_enter(&guard);
		if (ftruncate(fd, 0) == 0)
			(void)at[0];
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

struct reader {
	struct mapping map;
	atomic_bool cut; /* the file has been truncated: one more look, then stop */
};

static void *read_all(void *arg)
{
	struct reader *reader = arg;
	struct guard guard;
	bool last;

	do {
		last = atomic_load(&reader->cut);
		guard_enter(&guard);
		(void)sum(&reader->map);
		guard_leave(&guard);
	} while (!last);
	return NULL;
}

static void serves_many_threads(void **state)
{
	int fd = temp_file(PAGES * 4096);
	struct sigaction before, after;
	struct reader reader = { 0 };
	pthread_t ids[4];

	(void)state;
	sigaction(SIGBUS, NULL, &before);
	assert_true(mapping_open(&reader.map, fd, PAGES * 4096));
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
		assert_int_equal(pthread_create(&ids[i], NULL, read_all, &reader), 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	atomic_store(&reader.cut, true);
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
		pthread_join(ids[i], NULL);
	assert_true(mapping_lost(&reader.map));
	sigaction(SIGBUS, NULL, &after);
	assert_ptr_equal(before.sa_sigaction, after.sa_sigaction);
	mapping_close(&reader.map);
	close(fd);
}

static void refuses_too_many(void **state)
{
	static struct mapping maps[MAPPINGS_MAX + 1];
	int fd = temp_file(4096);

	(void)state;
	for (int i = 0; i < MAPPINGS_MAX; i++)
		assert_true(mapping_open(&maps[i], fd, 4096));
	assert_false(mapping_open(&maps[MAPPINGS_MAX], fd, 4096));
	assert_false(mapping_open(&maps[MAPPINGS_MAX], fd, 0));
	for (int i = 0; i < MAPPINGS_MAX; i++)
		mapping_close(&maps[i]);
	assert_true(mapping_open(&maps[0], fd, 4096));
	mapping_close(&maps[0]);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_zeros_where_the_file_ended),
		cmocka_unit_test(nests),
		cmocka_unit_test(hands_on_what_is_not_ours),
		cmocka_unit_test(keeps_the_default),
		cmocka_unit_test(serves_many_threads),
		cmocka_unit_test(refuses_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
