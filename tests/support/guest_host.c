/* guest_host.c: a program that does what a recorder inside it must tolerate: it enters a sandbox that ends the process
 * at any other system call, drops rights step by step, makes calls that only a single-threaded program may make, and
 * closes unknown descriptors. tests/cli/record_guest_test.py runs it with and without the recorder; it prints "ok" and
 * returns 0 when all works as usual, 77 when the system does not allow the test. Calls on files follow, so that there
 * is something to record.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAN_NOT 77

static void work(int rounds)
{
	char text[4096];

	for (int i = 0; i < rounds; i++) {
		int fd = open("/etc/passwd", O_RDONLY);

		if (fd < 0 || read(fd, text, sizeof(text)) <= 0)
			_exit(3);
		close(fd);
	}
}

static void say_ok(void)
{
	if (write(1, "ok\n", 3) != 3)
		_exit(4);
}

/* Installs a filter that ends the process at every call but those that work() and say_ok() need. */
static int shut_in(unsigned flags)
{
	static const int allowed[] = { SYS_read,
				       SYS_write,
				       SYS_openat,
				       SYS_close,
				       SYS_exit,
				       SYS_exit_group,
				       SYS_execve,
				       SYS_brk,
				       SYS_mmap,
				       SYS_munmap,
				       SYS_mprotect,
				       SYS_pread64,
				       SYS_futex,
				       SYS_newfstatat,
				       SYS_fstat,
				       SYS_faccessat,
				       SYS_rseq,
				       SYS_prlimit64,
				       SYS_getrandom,
				       SYS_set_tid_address,
				       SYS_set_robust_list,
#ifdef __x86_64__
				       SYS_access,
				       SYS_arch_prctl,
				       SYS_open,
				       SYS_stat
#endif
	};
	struct sock_filter code[2 * sizeof(allowed) / sizeof(*allowed) + 2];
	struct sock_fprog program = { .filter = code };
	unsigned short at = 0;

	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++) {
		code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							  (unsigned)allowed[i], 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program.len = at;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return CAN_NOT;
	if (flags == ~0u)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : CAN_NOT;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0 ? 0 : CAN_NOT;
}

/* Enters the sandbox with seccomp(2), for all threads. */
static int sandbox(void)
{
	int status = shut_in(SECCOMP_FILTER_FLAG_TSYNC);

	work(1000);
	return status;
}

/* Enters the sandbox with the older prctl(2), in a process that has recorded before. */
static int sandbox_later(void)
{
	int status;

	work(100);
	usleep(100000);
	status = shut_in(~0u);
	work(1000);
	return status;
}

static int wait_for(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		return 5;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Enters the sandbox and works until the input ends. */
static int sandbox_wait(void)
{
	char byte;
	int status = shut_in(0);

	if (!status && write(1, "ready\n", 6) != 6)
		return 4;
	while (!status && read(0, &byte, 1) > 0)
		;
	return status;
}

/* Enters the sandbox in a child that has done nothing before. */
static int sandbox_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		int status = shut_in(0);

		work(100);
		_exit(status);
	}
	work(100);
	return wait_for(child);
}

/* Executes a program in the sandbox. */
static int sandbox_exec(void)
{
	pid_t child = fork();

	if (child == 0) {
		int status = shut_in(0);

		if (status)
			_exit(status);
		execl("/proc/self/exe", "guest_host", "work", NULL);
		_exit(6);
	}
	return wait_for(child);
}

/* Enters the strict mode: only reading, writing and exiting are allowed; not even reading the clock. */
static int strict(void)
{
	work(10);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		return CAN_NOT;
	for (int i = 0; i < 100; i++)
		if (read(0, &i, 0) != 0)
			break;
	say_ok();
	syscall(SYS_exit, 0);
	return 0;
}

/* Drops root's capabilities, keeps the right to change the group, and changes it: capabilities are per thread, the
 * group must change for all threads, and the C library ends a program in which only some threads can. */
static int drop(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct rights[2] = { { 0 } };

	work(10);
	if (geteuid() != 0 || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 ||
	    setresuid(65534, 65534, 65534) != 0)
		return CAN_NOT;
	rights[0].permitted = rights[0].effective = 1u << CAP_SETGID;
	if (syscall(SYS_capset, &head, rights) != 0 || setresgid(65534, 65534, 65534) != 0)
		return 7;
	work(1000);
	return 0;
}

/* Creates a user namespace, which only a single-threaded process may do. */
static int new_users(void)
{
	work(10);
	if (unshare(CLONE_NEWUSER) != 0)
		return errno == EINVAL ? 8 : CAN_NOT;
	work(1000);
	return 0;
}

static int close_all(void)
{
	work(10);
	for (int fd = 3; fd < 4096; fd++)
		close(fd);
	while (poll(&(struct pollfd){ .fd = 0, .events = POLLIN }, 1, 10) == 0)
		work(10); /* works until the input ends */
	return 0;
}

/* Starts a child with vfork, which shares the memory until it executes another program. */
static int vfork_drop(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	volatile int status = 0;

	for (volatile int i = 0; i < 50 && !status; i++) {
		pid_t child = vfork();

		if (child == 0) {
			prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
			if (syscall(SYS_capset, &head, none) != 0)
				_exit(9);
			execl("/proc/self/exe", "guest_host", "work", NULL);
			_exit(6);
		}
		work(10);
		status = wait_for(child);
	}
	return status;
}

static void *work_much(void *arg)
{
	work(8000);
	return arg;
}

/* Runs threads that each fill their ring. */
static int threads(void)
{
	pthread_t list[40];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if (pthread_create(&list[i], &small, work_much, NULL) != 0)
			return CAN_NOT;
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		pthread_join(list[i], NULL);
	return 0;
}

static int only_work(void)
{
	work(100);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} ways[] = {
		{ "sandbox", sandbox },
		{ "sandbox-later", sandbox_later },
		{ "sandbox-child", sandbox_child },
		{ "sandbox-exec", sandbox_exec },
		{ "sandbox-wait", sandbox_wait },
		{ "strict", strict },
		{ "drop", drop },
		{ "new-users", new_users },
		{ "close-all", close_all },
		{ "vfork-drop", vfork_drop },
		{ "work", only_work },
		{ "threads", threads },
	};

	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(*ways); i++) {
		int status;

		if (strcmp(argv[1], ways[i].name) != 0)
			continue;
		status = ways[i].run();
		if (!status && strcmp(argv[1], "work") != 0)
			say_ok();
		_exit(status);
	}
	return 2;
}
