/* process_table_test.c: what a process uses is seen in two readings; other processes of the same number are not mixed up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/clock.h"
#include "live/proc/process_table.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start_child(void (*work)(void))
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child)
		return child;
	work();
	_exit(0);
}

static void burn(void)
{
	for (;;)
		;
}

static void read_zeros(void)
{
	static char block[65536];
	int fd = open("/dev/zero", O_RDONLY);

	for (;;)
		if (read(fd, block, sizeof(block)) < 0)
			_exit(1);
}

static void wait_for_signal(void)
{
	pause();
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void rates_are_known_from_the_second_reading_on(void **state)
{
	pid_t pids[] = { start_child(wait_for_signal), start_child(burn), start_child(read_zeros) };
	struct process_table t;
	struct mem mem;
	const struct process_row *row;

	(void)state;
	mem_init(&mem, 0);
	process_table_init(&t, &mem);
	assert_true(process_table_turn(&t, pids, ARRAY_COUNT(pids)));
	assert_int_equal(t.count, 3);
	assert_true(process_table_find(&t, pids[1])->cpu < 0);
	usleep(300000);
	assert_true(process_table_turn(&t, pids, ARRAY_COUNT(pids)));
	row = process_table_find(&t, pids[1]);
	assert_non_null(row);
	assert_true(row->cpu + row->wait > 0.5 && row->cpu < 1.2); /* the machine may be busy */
	assert_true(row->memory > 4096);
	assert_int_equal(row->parent, getpid());
	assert_true(row->user[0] != '\0' && row->arguments[0] != '\0');
	assert_int_equal(row->readings, 1);
	row = process_table_find(&t, pids[0]);
	assert_true(row->cpu >= 0 && row->cpu < 0.1);
	row = process_table_find(&t, pids[2]);
	assert_true(row->read_rate > 1e6 && row->write_rate == 0);
	for (size_t i = 0; i < ARRAY_COUNT(pids); i++)
		end_child(pids[i]);
	assert_true(process_table_turn(&t, pids, ARRAY_COUNT(pids)));
	assert_int_equal(t.count, 0);
	process_table_release(&t);
	assert_int_equal(mem.used, 0);
}

static void the_whole_host(void **state)
{
	pid_t child = start_child(wait_for_signal);
	struct process_table t;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	process_table_init(&t, &mem);
	assert_true(process_table_turn(&t, NULL, 0));
	assert_non_null(process_table_find(&t, getpid()));
	assert_non_null(process_table_find(&t, child));
	for (size_t i = 1; i < t.count; i++)
		assert_true(t.rows[i - 1].pid < t.rows[i].pid);
	end_child(child);
	usleep(30000);
	assert_true(process_table_turn(&t, NULL, 0));
	assert_null(process_table_find(&t, child));
	assert_true(t.host.values[HOST_MEMORY_TOTAL] > 0 && t.host_readings == 1);
	process_table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_known_from_the_second_reading_on),
		cmocka_unit_test(the_whole_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
