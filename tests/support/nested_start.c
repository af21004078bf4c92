/*
 * nested_start.c: starts the recorder, as `opwatch attach` does, and starts it again from a signal handler at some
 * moment meanwhile: this happens when an attach is killed and the next one interrupts the same thread. Arguments: the
 * library and its protocol version. Prints "ok" unless it crashes.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOWHERE "/nonexistent/socket"
#define ROUNDS 150

static int (*start)(const char *socket_path, unsigned version);
static unsigned version;

static void on_signal(int number)
{
	(void)number;
	start(NOWHERE, version);
}

int main(int count, char **words)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	void *library = count == 3 ? dlopen(words[1], RTLD_NOW) : NULL;
	timer_t timer;

	*(void **)&start = library ? dlsym(library, "opwatch_recorder_start") : NULL;
	if (!start || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		return 2;
	version = (unsigned)strtoul(words[2], NULL, 10);
	signal(SIGALRM, on_signal);
	for (long i = 0; i < ROUNDS; i++) {
		struct itimerspec when = { .it_value.tv_nsec = 1000 + i * 7919 % 900000 };

		timer_settime(timer, 0, &when, NULL);
		start(NOWHERE, version);
		usleep(2000);
	}
	puts("ok");
	return 0;
}
