/*
 * attach_target.c: a program that detects interference, for tests that attach to it and kill the attaching process.
 * Threads compute with vectors, sleep, poll and wait on a condition, each in a way whose result is known. It runs until
 * its standard input has a line or ends, and then prints "ok", or what was wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_bool over;
static atomic_int wrong;
static atomic_int signals;

static void complain(const char *what, long value)
{
	fprintf(stderr, "wrong: %s (%ld)\n", what, value);
	atomic_fetch_add(&wrong, 1);
}

static double sum_of_roots(void)
{
	double sum = 0;

	for (int i = 1; i < 200000; i++)
		sum += sqrt((double)i) * 1.0000001;
	return sum;
}

static void *compute(void *arg)
{
	double first = sum_of_roots();

	(void)arg;
	while (!atomic_load(&over))
		if (sum_of_roots() != first)
			complain("a sum differs", 0);
	return NULL;
}

static void *sleep_often(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		struct timespec wait = { 0, 50 * 1000000 }, begin, end;
		long ms;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		if (nanosleep(&wait, NULL) != 0)
			complain("nanosleep failed", errno);
		clock_gettime(CLOCK_MONOTONIC, &end);
		ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
		if (ms < 49)
			complain("a sleep was too short, ms", ms);
	}
	return NULL;
}

static void *poll_often(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		int n = poll(NULL, 0, 30);

		if (n != 0)
			complain("poll returned early", errno);
	}
	return NULL;
}

static void *wait_often(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

	(void)arg;
	pthread_mutex_lock(&lock);
	while (!atomic_load(&over)) {
		struct timespec until;
		int status;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 40 * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		status = pthread_cond_timedwait(&never, &lock, &until);
		if (status != ETIMEDOUT && status != 0)
			complain("a timed wait failed", status);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

int main(void)
{
	static void *(*const work[])(void *) = { compute, sleep_often, poll_often, wait_often };
	pthread_t threads[sizeof(work) / sizeof(work[0])];
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigset_t blocked, now;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	/* Other threads must not handle the signal while this one is stopped: it would end their calls. */
	sigaddset(&blocked, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++)
		pthread_create(&threads[i], NULL, work[i], NULL);
	sigdelset(&blocked, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	puts("ready");
	fflush(stdout);
	while (poll(&input, 1, 20) <= 0) {
		pthread_sigmask(SIG_BLOCK, NULL, &now);
		for (int i = 1; i < SIGRTMIN; i++)
			if (sigismember(&now, i) != (i == SIGUSR2))
				complain("the signal mask changed", i);
	}
	atomic_store(&over, true);
	for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++)
		pthread_join(threads[i], NULL);
	printf("%s, %d signals\n", atomic_load(&wrong) ? "wrong" : "ok", atomic_load(&signals));
	return atomic_load(&wrong) ? 1 : 0;
}
