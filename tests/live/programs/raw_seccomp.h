/* raw_seccomp.h: a filter of system calls that ends the process for every call but those given, installed by a raw
 * instruction, which no library that was loaded into the program can see. For the programs of this folder. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static long raw(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
#else
	return syscall(number, a, b, c);
#endif
}

static int allow_only(const int *calls, int count, unsigned flags)
{
	struct sock_filter rules[128] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { .filter = rules };
	int at = 1;

	for (int i = 0; i < count; i++) {
		rules[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							   (unsigned)calls[i], 0, 1);
		rules[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	rules[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program.len = (unsigned short)at;
	raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);
	return (int)raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, (long)&program);
}
