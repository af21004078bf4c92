/* Gives up all capabilities by a raw instruction after a library was loaded, and looks whether a thread kept them. */
#define _GNU_SOURCE
#include "raw_seccomp.h"
#include "raw_rights.h"

#include <dlfcn.h>
#include <linux/capability.h>

int main(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (!dlopen("libm.so.6", RTLD_NOW))
		return 5;
	usleep(150000);
	printf("capset: %ld\n", raw(SYS_capset, (long)&head, (long)none, 0));
	usleep(400000);
	printf("threads that differ: %d\n", threads_that_differ());
	return 0;
}
