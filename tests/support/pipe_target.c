/*
 * pipe_target.c: a program whose threads do little but read and write pipes, for tests that attach to it: a call that
 * is repeated or lost after an interruption is detected at once. Numbers go through a pipe of each thread and from one
 * thread to the other and back. It runs until its standard input ends, and then prints "ok", or what was wrong.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int there[2], back[2];

/* Whether a number comes out of the pipe unchanged. */
static int pass(int to, int from, unsigned number)
{
	unsigned got = 0;

	if (write(to, &number, sizeof(number)) != sizeof(number) ||
	    read(from, &got, sizeof(got)) != sizeof(got))
		return 0;
	if (got != number)
		fprintf(stderr, "wrong: %u instead of %u\n", got, number);
	return got == number;
}

static void *answer(void *arg)
{
	unsigned number;

	while (read(there[0], &number, sizeof(number)) == sizeof(number))
		if (write(back[1], &number, sizeof(number)) != sizeof(number))
			exit(3);
	return arg;
}

int main(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned number = 0;
	pthread_t thread;
	int own[2];

	if (pipe(there) != 0 || pipe(back) != 0 || pipe(own) != 0 ||
	    pthread_create(&thread, NULL, answer, NULL) != 0)
		return 2;
	puts("ready");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0) {
		for (int i = 0; i < 1000; i++)
			if (!pass(own[1], own[0], ++number))
				return 1;
		if (!pass(there[1], back[0], number))
			return 1;
	}
	close(there[1]);
	pthread_join(thread, NULL);
	puts("ok");
	return 0;
}
