/*
 * launch_test.c: unit test of the processes that outlive a job in launch.c: found by the collector's socket in their environment; not found
 * with another socket or when ended; failing allocations; long lists are cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "live/record/launch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs until its input ends, which is when this process ends, or closes it. */
static pid_t start_with(const char *entry, int *input)
{
	char *env[] = { (char *)"A=1", (char *)entry, NULL };
	char *words[] = { (char *)"cat", NULL };
	int ends[2];
	char path[64];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[0], 0);
		close(ends[0]);
		close(ends[1]);
		execve("/bin/cat", words, env);
		_exit(1);
	}
	close(ends[0]);
	*input = ends[1];
	/* Its environment is its own when it has become that program. */
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	for (char name[16] = ""; strcmp(name, "cat\n") != 0; usleep(1000))
		proc_read_text(path, name, sizeof(name));
	return pid;
}

static void end(pid_t pid, int input)
{
	close(input);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void make(struct collector *c, struct mem *mem)
{
	mem_init(mem, 0);
	collector_init(c, mem, NULL);
	snprintf(c->socket_path, sizeof(c->socket_path), "/tmp/opwatch-%d/s", (int)getpid());
}

static void found_by_its_environment(void **state)
{
	struct pid_list list;
	struct collector c;
	struct mem mem;
	char entry[256];
	int input, other_input;
	pid_t pid, other;

	(void)state;
	make(&c, &mem);
	list = (struct pid_list){ .mem = &mem };
	assert_true(surviving_children_find(&c, &list));
	assert_int_equal(list.count, 0);
	snprintf(entry, sizeof(entry), "%s=%s", RING_ENV_SOCKET, c.socket_path);
	pid = start_with(entry, &input);
	snprintf(entry, sizeof(entry), "%s=%sx", RING_ENV_SOCKET, c.socket_path);
	other = start_with(entry, &other_input);
	assert_true(surviving_children_find(&c, &list));
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0], pid);
	pid_list_release(&list);
	kill(pid, SIGKILL);
	/* It is not there any more, although nobody has waited for it. */
	for (siginfo_t info; waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0;)
		;
	assert_true(surviving_children_find(&c, &list));
	assert_int_equal(list.count, 0);
	end(pid, input);
	end(other, other_input);
	pid_list_release(&list);
}

static void without_memory(void **state)
{
	struct collector c;
	struct mem mem;
	char entry[256];
	int input;
	pid_t pid;
	bool good = false;

	(void)state;
	make(&c, &mem);
	snprintf(entry, sizeof(entry), "%s=%s", RING_ENV_SOCKET, c.socket_path);
	pid = start_with(entry, &input);
	for (uint64_t after = 1; !good; after++) {
		struct pid_list list = { .mem = &mem };

		mem_fail_after(after, true);
		good = surviving_children_find(&c, &list);
		mem_fail_after(0, false);
		assert_true(!good || list.count == 1);
		pid_list_release(&list);
	}
	assert_int_equal(atomic_load(&mem.used), 0);
	end(pid, input);
}

static void what_is_said(void **state)
{
	struct pid_list list;
	struct mem mem;
	char text[512];

	(void)state;
	mem_init(&mem, 0);
	list = (struct pid_list){ .mem = &mem };
	assert_true(pid_list_add(&list, INT32_MAX)); /* there is none of that number */
	surviving_children_describe(&list, "runs", "run", text, sizeof(text));
	assert_string_equal(text, "1 process of the job still runs: 2147483647");
	while (list.count < 10)
		assert_true(pid_list_add(&list, INT32_MAX - (pid_t)list.count));
	surviving_children_describe(&list, "runs", "run", text, sizeof(text));
	assert_true(strncmp(text, "10 processes of the job still run: 2147483647, ", 47) == 0);
	assert_non_null(strstr(text, "2147483640 and 2 more"));
	for (size_t size = 1; size < sizeof(text); size++) { /* however small the room is */
		memset(text, 'x', sizeof(text));
		surviving_children_describe(&list, "runs", "run", text, size);
		assert_true(strlen(text) < size);
	}
	pid_list_release(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_its_environment),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(what_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
