/* Threads that live for a moment, many at once, each with a first recorded call: 4,000 reads. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int fd;

static void *once(void *arg)
{
	char text[4];

	return pread(fd, text, sizeof(text), 0) == 4 ? NULL : arg;
}

int main(void)
{
	pthread_t threads[40];
	int failed = 0;

	fd = open("/etc/passwd", O_RDONLY);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 40; i++)
			failed += pthread_create(&threads[i], NULL, once, threads) != 0;
		for (int i = 0; i < 40; i++) {
			void *result;

			pthread_join(threads[i], &result);
			failed += result != NULL;
		}
	}
	printf("failed: %d\n", failed);
	return 0;
}
