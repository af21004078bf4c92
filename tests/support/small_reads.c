/*
 * small_reads.c: reads a file as fast as possible, every second read longer than the others, and prints its own
 * measurement of the time. For tests/live/sampled_calls_test.py: argument 1 is the number of reads, argument 2 the
 * length of the longer ones; with a third argument each read is measured.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static long now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

int main(int count, char **words)
{
	long calls = atol(words[1]), bytes = 0, begin, cpu, within = 0;
	size_t more = (size_t)atol(words[2]);
	int fd = open("/proc/self/exe", O_RDONLY);
	char *to = malloc(1 << 20);

	begin = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_THREAD_CPUTIME_ID);
	for (long i = 0; i < calls; i++) {
		long start = count > 3 ? now(CLOCK_MONOTONIC) : 0;

		bytes += pread(fd, to, i % 2 ? more : 64, 0);
		within += count > 3 ? now(CLOCK_MONOTONIC) - start : 0;
	}
	printf("{\"bytes\": %ld, \"wall_ns\": %ld, \"cpu_ns\": %ld, \"within_ns\": %ld}\n", bytes,
	       now(CLOCK_MONOTONIC) - begin, now(CLOCK_THREAD_CPUTIME_ID) - cpu, within);
	return 0;
}
