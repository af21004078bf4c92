/* Restricts itself by a raw instruction (landlock) so that it may write nowhere, and counts threads: what another one may
 * do is not written anywhere, so that after a while no other may be there. */
#define _GNU_SOURCE
#include "raw_seccomp.h"
#include "raw_rights.h"

#include <dlfcn.h>
#include <stdint.h>

int main(void)
{
	struct {
		uint64_t files;
	} rules = { .files = 1u << 1 };
	long fd;

	if (!dlopen("libm.so.6", RTLD_NOW))
		return 5;
	usleep(150000);
	fd = raw(SYS_landlock_create_ruleset, (long)&rules, sizeof(rules), 0);
	raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);
	printf("restrict: %d\n", fd < 0 ? -1 : (int)raw(SYS_landlock_restrict_self, fd, 0, 0));
	usleep(400000);
	printf("threads that differ: %d\n", threads_that_differ());
	return 0;
}
