/* Under a filter that allows what threads of the C library need, twenty threads open, read and close files. */
#define _GNU_SOURCE
#include "raw_seccomp.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

static void *work(void *arg)
{
	char text[16];

	for (int i = 0; i < 2000; i++) {
		int fd = open("/etc/passwd", O_RDONLY);

		if (fd < 0 || read(fd, text, sizeof(text)) != (ssize_t)sizeof(text))
			return arg;
		close(fd);
	}
	return NULL;
}

int main(void)
{
	static const int calls[] = {
		SYS_read,	  SYS_write,   SYS_exit,	   SYS_exit_group,
		SYS_openat,	  SYS_close,   SYS_mmap,	   SYS_munmap,
		SYS_mprotect,	  SYS_madvise, SYS_futex,	   SYS_clone,
		SYS_clone3,	  SYS_rseq,    SYS_rt_sigprocmask, SYS_set_robust_list,
		SYS_rt_sigaction, SYS_brk,     SYS_newfstatat,	   SYS_rt_sigreturn,
		SYS_getrandom,
	};
	pthread_t threads[20];
	long failed = 0;

	if (allow_only(calls, sizeof(calls) / sizeof(*calls), 0) != 0)
		return 2;
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 20; i++)
			failed += pthread_create(&threads[i], NULL, work, threads);
		for (int i = 0; i < 20; i++) {
			void *result;

			pthread_join(threads[i], &result);
			failed += result != NULL;
		}
	}
	printf("failed: %ld\n", failed);
	return 0;
}
