/* hurry.c: see hurry.h. */
#include "live/hurry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLICE_NS 100000 /* the shortest there is */

/* The kernel's struct sched_attr, of which not every C library knows. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static bool set_slice(uint64_t ns)
{
	struct attributes a = { 0 };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) != 0 || a.policy != SCHED_OTHER)
		return false;
	a.size = sizeof(a);
	a.runtime = ns;
	return syscall(SYS_sched_setattr, 0, &a, 0) == 0;
}

void hurry_begin(struct hurry *hurry)
{
	struct sched_param old, first = { .sched_priority = 1 };

	*hurry = (struct hurry){ .policy = sched_getscheduler(0) };
	if (hurry->policy != SCHED_OTHER || sched_getparam(0, &old) != 0)
		return;
	hurry->priority = old.sched_priority;
	hurry->first = sched_setscheduler(0, SCHED_RR, &first) == 0;
	if (!hurry->first)
		hurry->short_slices = set_slice(SLICE_NS);
}

void hurry_end(struct hurry *hurry)
{
	struct sched_param old = { .sched_priority = hurry->priority };

	if (hurry->first)
		(void)!sched_setscheduler(0, hurry->policy, &old);
	if (hurry->short_slices)
		set_slice(0); /* the usual ones */
	hurry->first = hurry->short_slices = false;
}

static bool read_all(int fd, char *to, size_t size)
{
	while (size) {
		ssize_t n = read(fd, to, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		size -= (size_t)n;
	}
	return true;
}

bool hurry_apart(void (*work)(void *arg, void *result), void *arg, void *result, size_t size)
{
	int ends[2];
	pid_t pid;
	bool good;

	if (size > PIPE_BUF || pipe2(ends, O_CLOEXEC) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		setsid();
		work(arg, result);
		_Exit(write(ends[1], result, size) == (ssize_t)size ? 0 : 1);
	}
	close(ends[1]);
	good = pid > 0 && read_all(ends[0], result, size);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return good;
}
