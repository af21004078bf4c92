/* Executes itself under small limits: descriptors, address space, file size, processes, stack, locked memory, one at a time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
	const char *name;
	int which;
	rlim_t most;
} limits[] = {
	{ "descriptors", RLIMIT_NOFILE, 8 },	   { "address space", RLIMIT_AS, 64 << 20 },
	{ "file size", RLIMIT_FSIZE, 4096 },	   { "stack", RLIMIT_STACK, 128 << 10 },
	{ "data", RLIMIT_DATA, 16 << 20 },	   { "locked", RLIMIT_MEMLOCK, 0 },
	{ "little data", RLIMIT_DATA, 512 << 10 }, { "little address space", RLIMIT_AS, 12 << 20 },
	{ "processes", RLIMIT_NPROC, 1 },	   { "processor", RLIMIT_CPU, 20 },
};

static void *nothing(void *arg)
{
	return arg;
}

/* How many blocks of memory there are below the limit, up to some. */
static int blocks(void)
{
	int count = 0;

	while (count < 8 && malloc(1 << 20))
		count++;
	return count;
}

static int work(void)
{
	int fds[8], count = blocks() * 8;
	char text[16];
	pthread_t thread;

	for (int i = 0; i < 5; i++) {
		fds[i] = open("/etc/passwd", O_RDONLY);
		if (fds[i] < 0)
			break;
		for (int k = 0; k < 100; k++)
			(void)!pread(fds[i], text, sizeof(text), 0);
		count++;
	}
	if (pthread_create(&thread, NULL, nothing, NULL) == 0)
		pthread_join(thread, NULL);
	return count;
}

int main(int count, char **args)
{
	if (count > 1)
		return work();
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		struct rlimit limit = { limits[i].most, limits[i].most };
		int status;
		pid_t child = fork();

		if (child == 0) {
			setrlimit(limits[i].which, &limit);
			execl("/proc/self/exe", args[0], "work", (char *)NULL);
			_exit(99);
		}
		waitpid(child, &status, 0);
		printf("%s: %d\n", limits[i].name, status);
	}
	return 0;
}
