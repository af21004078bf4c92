/* remote_call.c: see remote_call.h. x86-64 is what was run; arm64 was written after its manual, and neither compiled nor run. */
#include "live/remote_call.h"

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define RED_ZONE 1024 /* what the thread may use below its stack pointer, and more */
#define WAITS_MAX 1000

#if defined(__aarch64__)
typedef struct user_regs_struct registers;
#define STATE_KIND NT_PRFPREG
#define STACK(r) ((r)->sp)
#define INSTRUCTION(r) ((r)->pc)
#define RESULT(r) ((r)->regs[0])
#else
typedef struct user_regs_struct registers;
#define STATE_KIND NT_X86_XSTATE
#define STACK(r) ((r)->rsp)
#define INSTRUCTION(r) ((r)->rip)
#define RESULT(r) ((r)->rax)
#endif

_Static_assert(sizeof(registers) <= sizeof(((struct remote *)0)->registers), "room");

static bool get_registers(const struct remote *r, registers *to)
{
	struct iovec part = { to, sizeof(*to) };

	return ptrace(PTRACE_GETREGSET, r->tid, NT_PRSTATUS, &part) == 0;
}

static bool set_registers(const struct remote *r, const registers *from)
{
	struct iovec part = { (void *)from, sizeof(*from) };

	return ptrace(PTRACE_SETREGSET, r->tid, NT_PRSTATUS, &part) == 0;
}

/* ---- stopping ---- */

static ow_status refused(pid_t pid, int failure, struct error *err)
{
	if (failure == ESRCH)
		return error_set(err, OW_E_NOT_FOUND, "process %d has ended", (int)pid);
	if (failure == EPERM)
		return error_set(err, OW_E_PERMISSION,
				 "process %d may not be traced: another program traces it, or the "
				 "system does "
				 "not allow it (/proc/sys/kernel/yama/ptrace_scope, or a sandbox)",
				 (int)pid);
	return error_errno(err, failure, "process %d", (int)pid);
}

/* Waits for the thread to stop; false when it is gone. */
static bool wait_stop(struct remote *r, int *status)
{
	pid_t got;

	do
		got = waitpid(r->tid, status, __WALL);
	while (got < 0 && errno == EINTR);
	r->gone = got != r->tid || !WIFSTOPPED(*status);
	return !r->gone;
}

static void note_call(struct remote *r, const registers *now)
{
#if defined(__aarch64__)
	int number = -1;
	struct iovec part = { &number, sizeof(number) };

	r->call = ptrace(PTRACE_GETREGSET, r->tid, NT_ARM_SYSTEM_CALL, &part) == 0 ? number : -1;
	r->call_argument = now->regs[1];
#else
	r->call = (int64_t)now->orig_rax;
	r->call_argument = now->rsi;
#endif
}

/* A signal that was on its way is kept for later. */
static void keep_signal(struct remote *r, int status)
{
	int number = WSTOPSIG(status);

	if (status >> 16 == PTRACE_EVENT_STOP || number == SIGTRAP)
		return;
	if (r->kept_count < REMOTE_SIGNALS)
		r->kept[r->kept_count++] = number;
}

static bool save(struct remote *r)
{
	struct iovec state = { r->state, sizeof(r->state) };
	registers now = { 0 };

	if (!get_registers(r, &now) || ptrace(PTRACE_GETREGSET, r->tid, STATE_KIND, &state) != 0)
		return false;
	memcpy(r->registers, &now, sizeof(now));
	r->registers_len = sizeof(now);
	r->state_len = state.iov_len;
	r->stack = STACK(&now);
	r->instruction = INSTRUCTION(&now);
	note_call(r, &now);
	return true;
}

ow_status remote_stop(struct remote *r, pid_t pid, pid_t tid, struct error *err)
{
	int status;

	memset(r, 0, sizeof(*r));
	r->pid = pid;
	r->tid = tid;
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0)
		return refused(pid, errno, err);
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0 || !wait_stop(r, &status))
		return error_set(err, OW_E_NOT_FOUND, "process %d has ended", (int)pid);
	keep_signal(r, status);
	if (save(r))
		return OW_OK;
	remote_resume(r);
	return error_set(err, OW_E_UNSUPPORTED,
			 "process %d: its registers cannot be read; is it a 32-bit program?",
			 (int)pid);
}

void remote_resume(struct remote *r)
{
	if (r->gone)
		return;
	ptrace(PTRACE_DETACH, r->tid, 0, 0);
	for (size_t i = 0; i < r->kept_count; i++)
		syscall(SYS_tgkill, r->pid, r->tid, r->kept[i]);
	r->gone = true;
}

/* ---- where it is ---- */

bool remote_in_call(const struct remote *r)
{
	return r->call >= 0;
}

bool remote_call_is_harmless(int64_t call, uint64_t argument)
{
	static const long calls[] = {
		SYS_read,
		SYS_write,
		SYS_readv,
		SYS_nanosleep,
		SYS_clock_nanosleep,
		SYS_epoll_pwait,
		SYS_pselect6,
		SYS_ppoll,
		SYS_recvfrom,
		SYS_recvmsg,
		SYS_sendto,
		SYS_sendmsg,
		SYS_accept,
		SYS_accept4,
		SYS_wait4,
		SYS_waitid,
		SYS_rt_sigtimedwait,
		SYS_rt_sigsuspend,
		SYS_pread64,
#if defined(__x86_64__)
		SYS_poll,
		SYS_select,
		SYS_epoll_wait,
		SYS_pause,
#endif
	};

	for (size_t i = 0; i < ARRAY_COUNT(calls); i++)
		if (call == calls[i])
			return true;
	/* Condition variables and semaphores wait so; locks of the C library's own do not. */
	return call == SYS_futex && (argument & 127) == FUTEX_WAIT_BITSET;
}

/* ---- calling ---- */

static bool write_memory(const struct remote *r, uint64_t address, const void *bytes, size_t len)
{
	struct iovec here = { (void *)bytes, len }, there = { (void *)(uintptr_t)address, len };

	return process_vm_writev(r->pid, &here, 1, &there, 1, 0) == (ssize_t)len;
}

/* The text, and below it the return address 0. */
static bool prepare(const struct remote *r, registers *now, uint64_t function, const char *text,
		    uint64_t second)
{
	size_t len = strlen(text) + 1;
	uint64_t place = (r->stack - RED_ZONE - len) & ~(uint64_t)63, top = place - 64;

	if (!write_memory(r, place, text, len))
		return false;
	memcpy(now, r->registers, sizeof(*now));
#if defined(__aarch64__)
	now->regs[0] = place;
	now->regs[1] = second;
	now->regs[30] = 0;
	now->sp = top;
	now->pc = function;
	{
		int none = -1;
		struct iovec part = { &none, sizeof(none) };

		ptrace(PTRACE_SETREGSET, r->tid, NT_ARM_SYSTEM_CALL, &part);
	}
#else
	top -= 8;
	if (!write_memory(r, top, &(uint64_t){ 0 }, 8))
		return false;
	now->rdi = place;
	now->rsi = second;
	now->rax = 0;
	now->orig_rax = (__typeof__(now->orig_rax))-1;
	now->rsp = top;
	now->rip = function;
	now->eflags &= ~(__typeof__(now->eflags))0x400; /* strings go upwards */
#endif
	return true;
}

static bool restore(const struct remote *r)
{
	struct iovec state = { (void *)r->state, r->state_len };
	registers old;

	memcpy(&old, r->registers, sizeof(old));
#if defined(__aarch64__)
	{
		int number = (int)r->call;
		struct iovec part = { &number, sizeof(number) };

		ptrace(PTRACE_SETREGSET, r->tid, NT_ARM_SYSTEM_CALL, &part);
	}
#endif
	return ptrace(PTRACE_SETREGSET, r->tid, STATE_KIND, &state) == 0 && set_registers(r, &old);
}

/* Until it has returned to nowhere. */
static bool run(struct remote *r, registers *now)
{
	int status;

	for (int i = 0; i < WAITS_MAX; i++) {
		if (ptrace(PTRACE_CONT, r->tid, 0, 0) != 0 || !wait_stop(r, &status))
			return false;
		if (WSTOPSIG(status) == SIGSEGV && status >> 16 != PTRACE_EVENT_STOP)
			return get_registers(r, now);
		keep_signal(r, status);
	}
	return false;
}

ow_status remote_call(struct remote *r, uint64_t function, const char *text,
		      const uint64_t arguments[2], uint64_t *result, struct error *err)
{
	registers now;
	bool called;

	if (!prepare(r, &now, function, text, arguments[1]) || !set_registers(r, &now))
		return error_set(err, OW_E_PERMISSION, "process %d: its memory cannot be written",
				 (int)r->pid);
	called = run(r, &now);
	if (r->gone)
		return error_set(err, OW_E_NOT_FOUND, "process %d ended meanwhile", (int)r->pid);
	if (!restore(r))
		return error_set(err, OW_E_INTERNAL, "process %d: its registers cannot be restored",
				 (int)r->pid);
	if (!called || INSTRUCTION(&now) != 0)
		return error_set(err, OW_E_UNSUPPORTED,
				 "process %d: loading the recorder failed there", (int)r->pid);
	*result = RESULT(&now);
	return OW_OK;
}
