/*
 * hook_rights.c: calls by which a program changes what it may do, and which the recorder must not spoil. Some are for
 * programs of one thread only, others count for the calling thread alone, and the C library ends a program whose threads
 * differ: for as long as such a call takes the watcher is not there, and the one that follows has the same rights as the
 * thread that called. A program that shuts itself into a sandbox may be ended for any call that it does not make
 * itself: from then on nothing is recorded, and the collector is told why.
 *
 * Not seen are such calls of programs that make them by themselves instead of through the C library.
 */
#include "recorder.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <fcntl.h>

enum patch_index { P_prctl, P_syscall, P_capset, P_unshare, P_setns, PATCHES };

#define REAL(name) ((__typeof__(&my_##name))rights_patches[P_##name].real)

enum effect { NO_EFFECT, ON_THREAD, ON_ALL };

#define SANDBOXED                                                                                  \
	"it has put itself into a sandbox (seccomp), which may end it for what it does not do "    \
	"itself: nothing is recorded from then on"

/* ---- before and after ---- */

/* A child that shares the memory with its parent until it executes something must leave everything alone. */
static bool is_borrowed(void)
{
	return *recorder_generation && (uint32_t)getpid() != recorder_process->pid;
}

static void prepare_sandbox(bool no_clock)
{
	if (*recorder_generation) {
		hook_tell(RING_HOOK_FILES, RING_HOOK_UNKNOWN, SANDBOXED);
		atomic_store(&recorder_process->state, RING_STOP);
		watcher_rest();
	}
	process_retire(); /* a child that has recorded nothing so far, or a watcher that did not come */
	if (no_clock)
		patches_undo();
}

/* Whether there was a watcher, which is to be back afterwards. */
static bool begin(enum effect effect, bool no_clock)
{
	int error = errno;
	bool rested = false;

	if (effect == NO_EFFECT || !recorder_process || is_borrowed() || !enter())
		return false;
	if (effect == ON_ALL)
		prepare_sandbox(no_clock);
	else if (*recorder_generation)
		rested = watcher_rest();
	leave();
	errno = error;
	return rested;
}

static void finish(bool rested)
{
	int error = errno;

	if (!rested || !enter())
		return;
	watcher_start();
	leave();
	errno = error;
}

/* ---- which calls ---- */

static enum effect effect_of_prctl(long option, long argument)
{
	switch (option) {
	case PR_SET_SECCOMP:
		return ON_ALL;
	case PR_SET_TSC:
		return argument == PR_TSC_SIGSEGV ? ON_ALL : NO_EFFECT;
	case PR_SET_KEEPCAPS:
	case PR_SET_SECUREBITS:
	case PR_CAPBSET_DROP:
	case PR_CAP_AMBIENT:
		return ON_THREAD;
	default:
		return NO_EFFECT;
	}
}

static bool takes_clock(long option, long argument)
{
	return option == PR_SET_TSC ||
	       (option == PR_SET_SECCOMP && argument == SECCOMP_MODE_STRICT);
}

static enum effect effect_of_unshare(long flags)
{
	return flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_VM | CLONE_SIGHAND) ? ON_THREAD
										 : NO_EFFECT;
}

static enum effect effect_of_call(long number, long a, long b)
{
	switch (number) {
	case SYS_prctl:
		return effect_of_prctl(a, b);
	case SYS_seccomp:
		return a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER ? ON_ALL
										    : NO_EFFECT;
	case SYS_unshare:
		return effect_of_unshare(a);
	case SYS_capset:
	case SYS_setns:
		return ON_THREAD;
	default:
		return NO_EFFECT;
	}
}

/* ---- the wrappers ---- */

static int my_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	bool rested = begin(effect_of_prctl(option, (long)a), takes_clock(option, (long)a));
	int result = REAL(prctl)(option, a, b, c, d);

	finish(rested);
	return result;
}

static long my_syscall(long number, long a, long b, long c, long d, long e, long f);

static __attribute__((noinline)) long changing_call(long number, long a, long b, long c, long d,
						    long e, long f)
{
	bool no_clock = (number == SYS_prctl && takes_clock(a, b)) ||
			(number == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT);
	bool rested = begin(effect_of_call(number, a, b), no_clock);
	long result = REAL(syscall)(number, a, b, c, d, e, f);

	finish(rested);
	return result;
}

/* Nothing stays on the stack in all other cases: a call may come back twice. */
static long my_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (LIKELY(effect_of_call(number, a, b) == NO_EFFECT))
		return REAL(syscall)(number, a, b, c, d, e, f);
	return changing_call(number, a, b, c, d, e, f);
}

static int my_capset(void *head, const void *rights)
{
	bool rested = begin(ON_THREAD, false);
	int result = REAL(capset)(head, rights);

	finish(rested);
	return result;
}

static int my_unshare(int flags)
{
	bool rested = begin(effect_of_unshare(flags), false);
	int result = REAL(unshare)(flags);

	finish(rested);
	return result;
}

static int my_setns(int fd, int type)
{
	bool rested = begin(ON_THREAD, false);
	int result = REAL(setns)(fd, type);

	finish(rested);
	return result;
}

struct patch rights_patches[] = {
	[P_prctl] = { "prctl", (void *)my_prctl, NULL },
	[P_syscall] = { "syscall", (void *)my_syscall, NULL },
	[P_capset] = { "capset", (void *)my_capset, NULL },
	[P_unshare] = { "unshare", (void *)my_unshare, NULL },
	[P_setns] = { "setns", (void *)my_setns, NULL },
	[PATCHES] = { NULL, NULL, NULL },
};

/* ---- at the start ---- */

/* Only calls that the loader has made before are made here. */
bool sandbox_is_new(void)
{
	const char *before = getenv(RING_ENV_FILTERS);
	char text[4096];
	int fd = before ? open("/proc/self/status", O_RDONLY | O_CLOEXEC) : -1;
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	return before && ring_filters(text) > strtoul(before, NULL, 10);
}
