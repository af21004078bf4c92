/* The first recorded call of a child is in the handler of a signal, on a stack that has little more than what the kernel asks
 * for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 65536u

static int fd;
static volatile sig_atomic_t reads;

static void on_signal(int number)
{
	char byte;

	(void)number;
	reads += read(fd, &byte, 1) == 1;
}

int main(void)
{
	size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 2048;
	char *low = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = low + 16384, .ss_size = size };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	char byte;

	fd = open("/etc/passwd", O_RDONLY);
	if (low == MAP_FAILED || mprotect(low, 16384, PROT_NONE) != 0 ||
	    sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0 ||
	    read(fd, &byte, 1) != 1)
		return 2;
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			raise(SIGUSR1);
			raise(SIGUSR1);
			_exit(reads);
		}
		waitpid(child, &status, 0);
		printf("child: %d\n", status);
		fflush(stdout);
	}
	return 0;
}
