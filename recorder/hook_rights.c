/*
 * hook_rights.c: wrappers of calls by which a program changes its privileges, which the recorder must not disturb. Some need
 * a program of one thread, others apply to the calling thread alone, and the C library ends a program whose threads differ.
 * So the watcher thread ends before the call and is started again afterwards, by the calling thread, with its privileges.
 * A sandbox (seccomp) may kill a program for any system call that it does not make itself: from then on nothing is
 * recorded, and the collector learns why.
 *
 * Calls that do not go through the C library are not seen: the watcher looks for their effect and ends (watcher.c).
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
	"it entered a sandbox (seccomp) that could kill it for the recorder's system calls: "      \
	"recording stopped at that point"

/* Returns whether this is a child that shares memory with its parent until it executes a program; it must
 * not change anything. A child of vfork is known (hook_start.c). */
static bool is_borrowed(void)
{
	return *recorder_generation && (uint32_t)getpid() != recorder_process->pid;
}

static void prepare_sandbox(bool no_clock)
{
	if (*recorder_generation) {
		hook_report(RING_HOOK_FILES, RING_HOOK_UNKNOWN, SANDBOXED);
		atomic_store(&recorder_process->state, RING_STOP);
		watcher_stop();
	}
	watcher_ban();
	/* a child that has recorded nothing so far, or a watcher that did not stop */
	process_retire();
	if (no_clock)
		patches_undo();
}

/* Stops the watcher before a change of rights. Returns whether there was one, so that it is
 * restarted afterwards. */
static bool begin_rights_change(enum effect effect, bool no_clock)
{
	int error = errno;
	bool rested = false;

	if (effect == NO_EFFECT || !recorder_process ||
	    (effect == ON_THREAD && !watcher_is_there()) || !enter())
		return false;
	if (is_borrowed()) {
		leave();
		return false;
	}
	if (effect == ON_ALL)
		prepare_sandbox(no_clock);
	else if (*recorder_generation)
		rested = watcher_stop();
	leave();
	errno = error;
	return rested;
}

static void finish_rights_change(bool rested)
{
	int error = errno;

	if (!rested || !enter())
		return;
	watcher_start();
	leave();
	errno = error;
}

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
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_setfsuid:
	case SYS_setfsgid:
	case SYS_setgroups:
	case SYS_landlock_restrict_self:
		return ON_THREAD;
	default:
		return NO_EFFECT;
	}
}

static int my_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	bool rested =
		begin_rights_change(effect_of_prctl(option, (long)a), takes_clock(option, (long)a));
	int result = REAL(prctl)(option, a, b, c, d);

	if (option == PR_SET_NAME && result == 0)
		thread_set_name((const char *)a);
	finish_rights_change(rested);
	return result;
}

static long my_syscall(long number, long a, long b, long c, long d, long e, long f);

static __attribute__((noinline)) long changing_call(long number, long a, long b, long c, long d,
						    long e, long f)
{
	bool no_clock = (number == SYS_prctl && takes_clock(a, b)) ||
			(number == SYS_seccomp && a == SECCOMP_SET_MODE_STRICT);
	bool rested = begin_rights_change(effect_of_call(number, a, b), no_clock);
	long result = REAL(syscall)(number, a, b, c, d, e, f);

	finish_rights_change(rested);
	return result;
}

/* In all other cases nothing stays on the stack, because the call may return twice. */
static long my_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (LIKELY(effect_of_call(number, a, b) == NO_EFFECT))
		return REAL(syscall)(number, a, b, c, d, e, f);
	return changing_call(number, a, b, c, d, e, f);
}

static int my_capset(void *head, const void *rights)
{
	bool rested = begin_rights_change(ON_THREAD, false);
	int result = REAL(capset)(head, rights);

	finish_rights_change(rested);
	return result;
}

static int my_unshare(int flags)
{
	bool rested = begin_rights_change(effect_of_unshare(flags), false);
	int result = REAL(unshare)(flags);

	finish_rights_change(rested);
	return result;
}

static int my_setns(int fd, int type)
{
	bool rested = begin_rights_change(ON_THREAD, false);
	int result = REAL(setns)(fd, type);

	finish_rights_change(rested);
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

void *rights_wrapper(void *real)
{
	for (size_t i = 0; real && i < PATCHES; i++)
		if (rights_patches[i].real == real)
			return rights_patches[i].wrapper;
	return real;
}

/* Makes only system calls that the loader has made before, because a filter may forbid others. */
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
