/* Leaves its network by a raw instruction after a library was loaded, and looks whether a thread stayed in it. */
#define _GNU_SOURCE
#include "raw_seccomp.h"
#include "raw_rights.h"

#include <dlfcn.h>
#include <sched.h>

int main(void)
{
	if (!dlopen("libm.so.6", RTLD_NOW))
		return 5;
	usleep(150000);
	printf("unshare: %ld\n", raw(SYS_unshare, CLONE_NEWNET, 0, 0));
	usleep(400000);
	printf("threads that differ: %d\n", threads_that_differ());
	return 0;
}
