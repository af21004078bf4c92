/*
 * remote_call.c: makes a stopped thread of another process call a function (remote_call.h), in such a way that the
 * thread comes to no harm when this process is killed at any moment.
 *
 * The thread's registers are written to its own stack as a signal frame, below what it uses, and the function returns
 * into the C library's rt_sigreturn: the kernel then restores all registers, vectors and the signal mask from the frame,
 * with or without us. Every change that this process makes is one system call, and between any two of them the thread
 * can go on alone. While we live, we stop it at that rt_sigreturn and put the registers back ourselves, because only
 * then a system call that was interrupted goes on exactly where it was: alone it starts over.
 *
 * x86-64 is what was run. The code for arm64 compiles; it was never run.
 */
#include "live/attach/remote_call.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RED_ZONE 1024 /* memory below the stack pointer that the thread may use, with a margin */
/* largest number of stops at system calls and signals; one remote call makes a few hundred */
#define WAITS_MAX 100000
#define SLICE_NS 100000 /* shortest time slice of the scheduler */

typedef struct user_regs_struct registers;

#if defined(__aarch64__)
#define STATE_KIND NT_PRFPREG
#define STACK(r) ((r)->sp)
#define INSTRUCTION(r) ((r)->pc)
/* Machine code: mov x8, #139; svc #0. */
static const unsigned char sigreturn_code[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };
#else
#define STATE_KIND NT_X86_XSTATE
#define STACK(r) ((r)->rsp)
#define INSTRUCTION(r) ((r)->rip)
/* Machine code: mov $15, %rax; syscall. */
static const unsigned char sigreturn_code[] = {
	0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05
};
#endif

_Static_assert(sizeof(registers) <= sizeof(((struct traced_thread *)0)->registers), "room");

static bool get_registers(const struct traced_thread *r, registers *to)
{
	struct iovec part = { to, sizeof(*to) };

	return ptrace(PTRACE_GETREGSET, r->tid, NT_PRSTATUS, &part) == 0;
}

static bool set_registers(const struct traced_thread *r, const registers *from)
{
	struct iovec part = { (void *)from, sizeof(*from) };

	return ptrace(PTRACE_SETREGSET, r->tid, NT_PRSTATUS, &part) == 0;
}

static ow_status explain_refusal(pid_t pid, int failure, struct ow_error *err)
{
	if (failure == ESRCH)
		return error_set(err, OW_E_NOT_FOUND, "process %d has ended", (int)pid);
	if (failure == EPERM)
		return error_set(
			err, OW_E_PERMISSION,
			"not allowed to trace process %d: another program traces it, or the system "
			"forbids it (/proc/sys/kernel/yama/ptrace_scope, or a sandbox)",
			(int)pid);
	return error_errno(err, failure, "process %d", (int)pid);
}

/*
 * The kernel does not report the end of a process's first thread while others run, nor that another thread took its place and its
 * number by executing a program: waiting for it would never end. So a timer interrupts the waiting thread now and then.
 */
#define WAKE_NS 250000000
#define WAKE_SIGNAL (SIGRTMIN + 7)

static void wake(int number)
{
	(void)number;
}

static void waker_begin(struct traced_thread *r)
{
	struct sigaction action = { .sa_handler = wake }; /* without SA_RESTART */
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WAKE_SIGNAL };
	struct itimerspec every = { { 0, WAKE_NS }, { 0, WAKE_NS } };

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (sigaction(WAKE_SIGNAL, &action, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &r->waker) != 0)
		return;
	r->has_waker = true;
	timer_settime(r->waker, 0, &every, NULL);
}

static void waker_end(struct traced_thread *r)
{
	if (r->has_waker)
		timer_delete(r->waker);
	r->has_waker = false;
}

/* Whether the thread with this number has ended, or is another one by now. */
static bool is_lost(const struct traced_thread *r)
{
	char path[64], text[1024];
	const char *state, *tracer;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)r->pid, (int)r->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	state = strstr(text, "\nState:\t");
	tracer = strstr(text, "\nTracerPid:\t");
	if (!state || !tracer || state[8] == 'Z' || state[8] == 'X')
		return true;
	return strtol(tracer + 12, NULL, 10) != syscall(SYS_gettid);
}

/* Waits for the thread to stop; false if it is gone. */
static bool wait_stop(struct traced_thread *r, int *status)
{
	pid_t got;

	do
		got = waitpid(r->tid, status, __WALL);
	while (got < 0 && errno == EINTR && !is_lost(r));
	r->gone = got != r->tid || !WIFSTOPPED(*status);
	if (r->gone)
		waker_end(r);
	return !r->gone;
}

static void note_call(struct traced_thread *r, const registers *now)
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

/* Keeps a pending signal for later. */
static void keep_signal(struct traced_thread *r, int status)
{
	int number = WSTOPSIG(status);

	if (status >> 16 == PTRACE_EVENT_STOP || number == SIGTRAP)
		return;
	if (r->kept_count < TRACED_SIGNALS)
		r->kept[r->kept_count++] = number;
}

static bool save_registers(struct traced_thread *r)
{
	struct iovec state = { r->state, sizeof(r->state) };
	registers now = { 0 };

	if (!get_registers(r, &now) || ptrace(PTRACE_GETREGSET, r->tid, STATE_KIND, &state) != 0 ||
	    ptrace(PTRACE_GETSIGMASK, r->tid, sizeof(r->mask), &r->mask) != 0)
		return false;
	memcpy(r->registers, &now, sizeof(now));
	r->registers_len = sizeof(now);
	r->state_len = state.iov_len;
	r->stack = STACK(&now);
	r->instruction = INSTRUCTION(&now);
	note_call(r, &now);
	return true;
}

ow_status traced_thread_stop(struct traced_thread *r, pid_t pid, pid_t tid, struct ow_error *err)
{
	int status;

	memset(r, 0, sizeof(*r));
	r->pid = pid;
	r->tid = tid;
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) != 0)
		return explain_refusal(pid, errno, err);
	waker_begin(r);
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0) {
		waker_end(r);
		return error_set(err, OW_E_NOT_FOUND, "process %d has ended", (int)pid);
	}
	if (!wait_stop(r, &status))
		return error_set(err, OW_E_NOT_FOUND, "process %d has ended", (int)pid);
	keep_signal(r, status);
	if (save_registers(r))
		return OW_OK;
	traced_thread_resume(r);
	return error_set(err, OW_E_UNSUPPORTED,
			 "cannot read the registers of process %d; is it a 32-bit program?",
			 (int)pid);
}

void traced_thread_resume(struct traced_thread *r)
{
	waker_end(r);
	if (r->gone)
		return;
	ptrace(PTRACE_DETACH, r->tid, 0, 0);
	for (size_t i = 0; i < r->kept_count; i++)
		syscall(SYS_tgkill, r->pid, r->tid, r->kept[i]);
	r->gone = true;
}

bool traced_thread_in_call(const struct traced_thread *r)
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
	/* condition variables and semaphores wait with these operations; locks inside the C
	 * library do not */
	return call == SYS_futex && (argument & 127) == FUTEX_WAIT_BITSET;
}

static bool write_memory(const struct traced_thread *r, uint64_t address, const void *bytes,
			 size_t len)
{
	struct iovec here = { (void *)bytes, len }, there = { (void *)(uintptr_t)address, len };

	return process_vm_writev(r->pid, &here, 1, &there, 1, 0) == (ssize_t)len;
}

size_t remote_call_find_sigreturn(const void *code, size_t len)
{
	const char *found = memmem(code, len, sigreturn_code, sizeof(sigreturn_code));

	return found ? (size_t)(found - (const char *)code) : SIZE_MAX;
}

/* The kernel rejects this value as flags of an alternative stack and leaves the thread's stack
 * settings unchanged. */
#define SAME_STACK INT32_MAX

struct frame_stack {
	uint64_t pointer;
	int32_t flags;
	uint64_t size;
};

#if defined(__aarch64__)

/* Layout of struct rt_sigframe in the kernel's arch/arm64/kernel/signal.c, with one record of floating
 * point state. */
struct frame {
	char info[128];
	uint64_t flags, link;
	struct frame_stack stack;
	uint64_t mask;
	char unused[120];
	struct {
		uint64_t fault_address, registers[31], sp, pc, pstate;
		struct {
			uint32_t magic, size, fpsr, fpcr;
			char vectors[512];
			uint64_t end;
			char rest[4096 - 536];
		} reserved __attribute__((aligned(16)));
	} machine __attribute__((aligned(16)));
};
#define FPSIMD_MAGIC_ 0x46508001u

/* Writes the frame. If the thread will repeat a system call, its registers show the call as not begun. */
static bool write_frame(struct traced_thread *r, uint64_t top)
{
	struct frame frame = { .stack.flags = SAME_STACK, .mask = r->mask };
	const struct user_fpsimd_struct *vectors = (const void *)r->state;
	registers old;

	memcpy(&old, r->registers, sizeof(old));
	memcpy(frame.machine.registers, old.regs, sizeof(frame.machine.registers));
	frame.machine.sp = old.sp;
	frame.machine.pc = old.pc;
	frame.machine.pstate = old.pstate;
	frame.machine.reserved.magic = FPSIMD_MAGIC_;
	frame.machine.reserved.size = 528;
	frame.machine.reserved.fpsr = vectors->fpsr;
	frame.machine.reserved.fpcr = vectors->fpcr;
	memcpy(frame.machine.reserved.vectors, vectors->vregs, 512);
	r->frame = (top - sizeof(frame)) & ~(uint64_t)15;
	return write_memory(r, r->frame, &frame, sizeof(frame));
}

static void set_call(const struct traced_thread *r, registers *now, uint64_t function,
		     uint64_t first, uint64_t second)
{
	now->regs[0] = first;
	now->regs[1] = second;
	now->regs[30] = r->sigreturn;
	now->sp = r->frame;
	now->pc = function;
}

/* Returns whether the thread is about to restore itself from the frame. */
static bool is_at_sigreturn(const struct traced_thread *r, const registers *now)
{
	return now->regs[8] == SYS_rt_sigreturn && now->sp == r->frame;
}

/* Lets the kernel restore the thread from the frame, which contains its whole state. */
static bool put_back(struct traced_thread *r, bool at_sigreturn)
{
	struct iovec state = { r->state, r->state_len };
	registers old;

	if (at_sigreturn)
		return true;
	memcpy(&old, r->registers, sizeof(old));
	return ptrace(PTRACE_SETREGSET, r->tid, STATE_KIND, &state) == 0 && set_registers(r, &old);
}

#else

/* Layout of struct rt_sigframe in the kernel's arch/x86/include/asm/sigframe.h, up to the part
 * that rt_sigreturn reads. */
struct frame {
	uint64_t sigreturn; /* address to which the called function returns */
	uint64_t flags, link;
	struct frame_stack stack;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, cr2, vectors, reserved[8];
	uint64_t mask;
};
#define FRAME_FLAGS 7u /* UC_FP_XSTATE, UC_SIGCONTEXT_SS and UC_STRICT_RESTORE_SS */

/* Bytes at offset 464 of the saved vector registers, which make the kernel restore all of them. */
struct vectors_note {
	uint32_t magic, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};
#define VECTORS_NOTE_AT 464
#define VECTORS_MAGIC 0x46505853u
#define VECTORS_END_MAGIC 0x46505845u

/* Internal results of an interrupted system call, for which the kernel repeats the call. */
enum { RESTART_SYS = -512, RESTART_NOINTR = -513, RESTART_NOHAND = -514, RESTART_BLOCK = -516 };

static bool is_repeated(const registers *old)
{
	int64_t result = (int64_t)old->rax;

	return (int64_t)old->orig_rax >= 0 && (result == RESTART_SYS || result == RESTART_NOINTR ||
					       result == RESTART_NOHAND || result == RESTART_BLOCK);
}

static bool write_vectors(const struct traced_thread *r, uint64_t at)
{
	struct vectors_note note = { .magic = VECTORS_MAGIC,
				     .extended_size = (uint32_t)r->state_len + 4,
				     .size = (uint32_t)r->state_len };

	memcpy(&note.features, r->state + VECTORS_NOTE_AT, sizeof(note.features));
	return write_memory(r, at, r->state, r->state_len) &&
	       write_memory(r, at + VECTORS_NOTE_AT, &note, sizeof(note)) &&
	       write_memory(r, at + r->state_len, &(uint32_t){ VECTORS_END_MAGIC }, 4);
}

static bool write_frame(struct traced_thread *r, uint64_t top)
{
	uint64_t vectors = (top - r->state_len - 64) & ~(uint64_t)63;
	registers o;
	struct frame frame;
	bool repeated;

	memcpy(&o, r->registers, sizeof(o));
	repeated = is_repeated(&o);
	frame = (struct frame){
		.sigreturn = r->sigreturn,
		.flags = FRAME_FLAGS,
		.stack.flags = SAME_STACK,
		.r8 = o.r8,
		.r9 = o.r9,
		.r10 = o.r10,
		.r11 = o.r11,
		.r12 = o.r12,
		.r13 = o.r13,
		.r14 = o.r14,
		.r15 = o.r15,
		.di = o.rdi,
		.si = o.rsi,
		.bp = o.rbp,
		.bx = o.rbx,
		.dx = o.rdx,
		.ax = repeated ? o.orig_rax : o.rax,
		.cx = o.rcx,
		.sp = o.rsp,
		.ip = repeated ? o.rip - 2 : o.rip,
		.eflags = o.eflags,
		.cs = (uint16_t)o.cs,
		.ss = (uint16_t)o.ss,
		.vectors = vectors,
		.mask = r->mask,
	};
	/* as after a call instruction, the return address lies 8 bytes below a multiple of 16 */
	r->frame = ((vectors - sizeof(frame) - 16) & ~(uint64_t)15) - 8;
	return write_vectors(r, vectors) && write_memory(r, r->frame, &frame, sizeof(frame));
}

static void set_call(const struct traced_thread *r, registers *now, uint64_t function,
		     uint64_t first, uint64_t second)
{
	now->rdi = first;
	now->rsi = second;
	now->rax = 0;
	now->orig_rax = (__typeof__(now->orig_rax))-1;
	now->rsp = r->frame;
	now->rip = function;
	/* clears the direction flag, as the calling convention requires */
	now->eflags &= ~(__typeof__(now->eflags))0x400;
}

/* Returns whether the thread is about to restore itself from the frame. */
static bool is_at_sigreturn(const struct traced_thread *r, const registers *now)
{
	return now->orig_rax == SYS_rt_sigreturn && now->rsp == r->frame + 8;
}

/* At the entry of rt_sigreturn the system call to run can still be chosen: the interrupted one, which the kernel
 * continues, or none. The last call is the one that counts; before it the frame does all this. */
static bool put_back(struct traced_thread *r, bool at_sigreturn)
{
	struct iovec state = { r->state, r->state_len };
	registers old;

	memcpy(&old, r->registers, sizeof(old));
	/* A sleep starts over, as with the signal frame: our calls may have changed the state that the kernel keeps
	 * for it (restart_syscall), and then the sleep would end with EINTR, which no signal of the program
	 * explains. */
	if (at_sigreturn && is_repeated(&old))
		old.rax = (__typeof__(old.rax))-ENOSYS;
	else if (
		at_sigreturn) /* a finished system call, whose result the thread had not seen yet, must not be repeated */
		old.orig_rax = (__typeof__(old.orig_rax))-1;
	return ptrace(PTRACE_SETREGSET, r->tid, STATE_KIND, &state) == 0 && set_registers(r, &old);
}

#endif

/* Blocks all signals until the thread is restored, except those of its own faults. */
static bool set_mask(const struct traced_thread *r, bool block)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS };
	uint64_t mask = block ? ~(uint64_t)0 : r->mask;

	for (size_t i = 0; block && i < ARRAY_COUNT(faults); i++)
		mask &= ~((uint64_t)1 << (faults[i] - 1)) | r->mask;
	return ptrace(PTRACE_SETSIGMASK, r->tid, sizeof(mask), &mask) == 0;
}

/* Runs the thread until the function has returned; false if it faulted or is gone. */
static bool run_until_return(struct traced_thread *r)
{
	registers now;
	int status;

	for (int i = 0; i < WAITS_MAX; i++) {
		if (ptrace(PTRACE_SYSCALL, r->tid, 0, 0) != 0 || !wait_stop(r, &status))
			return false;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			if (get_registers(r, &now) && is_at_sigreturn(r, &now))
				return true;
			continue;
		}
		if (status >> 16 != PTRACE_EVENT_STOP &&
		    (WSTOPSIG(status) == SIGSEGV || WSTOPSIG(status) == SIGBUS))
			return false;
		keep_signal(r, status);
	}
	return false;
}

ow_status remote_call(struct traced_thread *r, uint64_t sigreturn, uint64_t function,
		      const char *text, uint64_t second, struct ow_error *err)
{
	size_t len = strlen(text) + 1;
	uint64_t place = (r->stack - RED_ZONE - len) & ~(uint64_t)63;
	registers now;
	bool called;

	r->sigreturn = sigreturn;
	memcpy(&now, r->registers, sizeof(now));
	if (!write_memory(r, place, text, len) || !write_frame(r, place))
		return error_set(err, OW_E_PERMISSION, "cannot write to the memory of process %d",
				 (int)r->pid);
	set_call(r, &now, function, place, second);
	/* from here on the thread makes the call even if this program dies */
	if (!set_registers(r, &now))
		return error_set(err, OW_E_PERMISSION, "cannot set the registers of process %d",
				 (int)r->pid);
	(void)set_mask(r, true);
	called = run_until_return(r);
	if (r->gone)
		return error_set(err, OW_E_NOT_FOUND,
				 "process %d ended while opwatch was attaching", (int)r->pid);
	if (!set_mask(r, false) || !put_back(r, called))
		return error_set(err, OW_E_INTERNAL, "cannot restore the registers of process %d",
				 (int)r->pid);
	if (!called)
		return error_set(err, OW_E_UNSUPPORTED, "process %d failed to load the recorder",
				 (int)r->pid);
	return OW_OK;
}

/*
 * While a thread of the job is stopped, this thread should get a processor at once. With CAP_SYS_NICE it asks
 * for real-time scheduling (SCHED_RR). Without it, two things help on a busy machine: the shortest time slices
 * (from Linux 6.12 on, a program that needs little time gets it sooner), and a session of its own, which the
 * kernel serves as one among others (autogroups). A better nice value would not help: it only makes the other
 * program wait.
 */

/* The kernel's struct sched_attr, which not every C library declares. */
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

void sched_boost_begin(struct sched_boost *boost)
{
	struct sched_param old, first = { .sched_priority = 1 };

	*boost = (struct sched_boost){ .policy = sched_getscheduler(0) };
	if (boost->policy != SCHED_OTHER || sched_getparam(0, &old) != 0)
		return;
	boost->priority = old.sched_priority;
	boost->first = sched_setscheduler(0, SCHED_RR, &first) == 0;
	if (!boost->first)
		boost->short_slices = set_slice(SLICE_NS);
}

void sched_boost_end(struct sched_boost *boost)
{
	struct sched_param old = { .sched_priority = boost->priority };

	if (boost->first)
		(void)!sched_setscheduler(0, boost->policy, &old);
	if (boost->short_slices)
		set_slice(0); /* restores the default time slice */
	boost->first = boost->short_slices = false;
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

bool sched_boost_apart(void (*work)(void *arg, void *result), void *arg, void *result, size_t size)
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
