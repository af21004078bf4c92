/* Restricts itself (landlock) so that it may write to no file, by RESTRICT, and works on: files, threads, a child, another
 * program. Others include this. */
#define _GNU_SOURCE
#include "raw_seccomp.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#ifndef RESTRICT
#define RESTRICT syscall
#define UNPRIVILEGED 1
#endif

static void report(const char *who)
{
	int in = open("/etc/passwd", O_RDONLY), out = open("/dev/null", O_WRONLY);
	char text[4];

	printf("%s: read %d, write %d\n", who, in >= 0 && read(in, text, 4) == 4,
	       out >= 0 ? 0 : errno);
	fflush(stdout);
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
}

static void *in_thread(void *arg)
{
	report("thread");
	return arg;
}

static int threads(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");
	int count = -1;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "Threads:", 8) == 0)
			count = atoi(line + 8);
	if (f)
		fclose(f);
	return count;
}

int main(void)
{
	uint64_t rules = 1u << 1; /* writing to files is up to the domain, which allows none */
	pthread_t thread;
	long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	int status = -1;

	if (fd < 0) {
		printf("no landlock\n");
		return 0;
	}
	if (!dlopen("libm.so.6", RTLD_NOW))
		return 5;
	usleep(100000);
	report("before");
	if (UNPRIVILEGED)
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (RESTRICT(SYS_landlock_restrict_self, fd, 0, 0) != 0)
		return 2;
	report("after");
	usleep(300000);
	if (!UNPRIVILEGED) /* one that is left is outside of the domain */
		printf("threads: %d\n", threads());
	fflush(stdout);
	if (pthread_create(&thread, NULL, in_thread, NULL) != 0)
		return 3;
	pthread_join(thread, NULL);
	if (fork() == 0) {
		report("child");
		execl("/bin/sh", "sh", "-c", "read line < /etc/passwd; echo executed", NULL);
		_exit(9);
	}
	wait(&status);
	printf("status: %d\n", status);
	return 0;
}
