/*
 * cancelled_thread_writes.c: a thread that has been cancelled makes a call that is not a cancellation point, its first
 * one: it goes on until it reaches a cancellation point of its own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int ready, cancelled, written;
static FILE *file;

static void *run(void *arg)
{
	atomic_store(&ready, 1);
	while (!atomic_load(&cancelled))
		;
	fwrite("x", 1, 1, file); /* into the buffer of the file */
	atomic_store(&written, 1);
	pthread_testcancel();
	return arg;
}

int main(void)
{
	pthread_t thread;
	void *result;

	file = tmpfile();
	fwrite("x", 1, 1, file);
	pthread_create(&thread, NULL, run, NULL);
	while (!atomic_load(&ready))
		;
	pthread_cancel(thread);
	atomic_store(&cancelled, 1);
	pthread_join(thread, &result);
	printf("written %d, cancelled %d\n", atomic_load(&written), result == PTHREAD_CANCELED);
	return 0;
}
