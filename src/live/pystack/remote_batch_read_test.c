/* remote_batch_read_test.c: pieces of memory that are read by one call, of this process itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "live/pystack/remote_batch_read.h"
#include "live/proc/proc.h"

#include <unistd.h>

static const uint64_t words[1024] = { [0] = 7, [8] = 8, [600] = 9 };

static uint64_t address(const void *at)
{
	return (uintptr_t)at;
}

/* What is read once has no second copy; pieces that are close are one. */
static void once_and_twice(void **state)
{
	struct remote remote = { .pid = getpid() };
	const unsigned char *bytes;
	unsigned char own[8];
	struct remote_batch g;
	struct mem mem;
	uint32_t piece;

	(void)state;
	mem_init(&mem, 0);
	assert_true(remote_batch_init(&g, &mem));
	for (int round = 0; round < 2; round++) {
		remote_batch_begin(&g);
		remote_batch_want(&g, address(&words[600]), 8);
		remote_batch_once(&g);
		remote_batch_want(&g, address(&words[8]),
				  8); /* not joined with what is read once */
		remote_batch_want(&g, address(&words[0]), 8);
		remote_batch_read(&g, &remote);
		assert_int_equal(g.count, 2);
		bytes = remote_batch_get(&g, &remote, address(&words[600]), 8, own, &piece);
		assert_int_equal(remote_word(bytes, 0), 9);
		assert_int_equal(piece, 1);
		assert_null(remote_batch_again(&g, bytes));
		bytes = remote_batch_get(&g, &remote, address(&words[0]), 8, own, &piece);
		assert_int_equal(remote_word(bytes, 0), 7);
		assert_int_equal(piece, 2);
		assert_int_equal(remote_word(remote_batch_again(&g, bytes), 0), 7);
		bytes = remote_batch_get(&g, &remote, address(&words[8]), 8, own, &piece);
		assert_int_equal(remote_word(remote_batch_again(&g, bytes), 0), 8);
	}
	assert_int_equal(remote.reads, 2);
	bytes = remote_batch_get(&g, &remote, address(&words[100]), 8, own, &piece);
	assert_ptr_equal(bytes, own); /* not wanted: read now */
	assert_int_equal(piece, 0);
	assert_null(remote_batch_again(&g, bytes));
	remote_batch_release(&g, &mem);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* All pieces before one that cannot be read are there. */
static void a_piece_is_missing(void **state)
{
	struct remote remote = { .pid = getpid() };
	unsigned char own[8];
	struct remote_batch g;
	struct mem mem;
	uint32_t piece;

	(void)state;
	mem_init(&mem, 0);
	assert_true(remote_batch_init(&g, &mem));
	for (int where = 0; where < 3; where++) {
		remote_batch_begin(&g);
		remote_batch_want(&g, where == 0 ? 8 : address(&words[600]), 8);
		remote_batch_once(&g);
		remote_batch_want(&g, where == 1 ? 8 : address(&words[8]), 8);
		remote_batch_want(&g, where == 2 ? 8 : address(&words[300]), 8);
		remote_batch_read(&g, &remote);
		assert_int_equal(g.count, where);
		assert_non_null(
			remote_batch_get(&g, &remote, address(&words[300]), 8, own, &piece));
		assert_int_equal(piece, 0);
		assert_null(remote_batch_get(&g, &remote, 8, 8, own, &piece));
	}
	remote_batch_release(&g, &mem);
}

/* Beside a thread that runs, and back. */
static void beside_ourselves(void **state)
{
	struct cpu_colocate b = { 0 };
	struct proc_stat stat;
	cpu_set_t before, after;

	(void)state;
	assert_true(proc_stat_read(getpid(), getpid(), &stat));
	assert_int_equal(stat.state, 'R');
	assert_false(cpu_colocate_enter(&b, getpid(), INT32_MAX)); /* there is no such thread */
	assert_false(b.away);
	if (sched_getaffinity(0, sizeof(before), &before) != 0)
		skip();
	if (!cpu_colocate_enter(&b, getpid(), getpid()))
		skip(); /* not allowed here */
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_int_equal(CPU_COUNT(&after), 1);
	assert_false(cpu_colocate_enter(&b, getpid(), getpid())); /* we are there */
	cpu_colocate_leave(&b);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	cpu_colocate_leave(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once_and_twice),
		cmocka_unit_test(a_piece_is_missing),
		cmocka_unit_test(beside_ourselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
