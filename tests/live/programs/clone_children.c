/* Makes children by clone(), with and without its memory, which end with the status that their function returns. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(16)));

static int child(void *number)
{
	return *(int *)number + (int)write(1, "c\n", 2);
}

int main(void)
{
	int number = 4;

	printf("not flushed ");
	for (int i = 0; i < 20; i++) {
		int flags = i % 2 ? SIGCHLD : SIGCHLD | CLONE_VM | CLONE_VFORK, status = 0;
		int pid = clone(child, stack + sizeof(stack), flags, &number);

		if (waitpid(pid, &status, 0) != pid || status != 6 << 8)
			return 1;
	}
	return 5;
}
