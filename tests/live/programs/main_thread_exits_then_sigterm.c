/* The first thread has ended, another waits for ever: SIGTERM must end the process as it does without opwatch. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *arg)
{
	(void)arg;
	usleep(100000);
	puts("sending SIGTERM");
	fflush(stdout);
	kill(getpid(), SIGTERM);
	for (;;)
		pause();
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
	pthread_exit(NULL);
}
