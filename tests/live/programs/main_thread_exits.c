/* The first thread ends by pthread_exit while another works on; the process ends with the other, status 0. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void at_exit(void)
{
	puts("exit handlers ran");
	fflush(stdout);
}

static void *work(void *arg)
{
	char byte;
	FILE *file = fopen("/etc/hostname", "r");

	(void)arg;
	for (int i = 0; i < 5; i++)
		usleep(20000);
	if (file) {
		(void)!fread(&byte, 1, 1, file);
		fclose(file);
	}
	puts("the other thread has ended");
	return NULL;
}

int main(void)
{
	pthread_t thread;

	atexit(at_exit);
	pthread_create(&thread, NULL, work, NULL);
	pthread_detach(thread);
	pthread_exit(NULL);
}
