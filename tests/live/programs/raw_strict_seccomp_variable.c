/* The same as strict_seccomp.c by a raw instruction whose number and arguments are variables. */
static volatile long numbers[] = { 157 /* prctl */, 22 /* PR_SET_SECCOMP */, 1 /* strict */ };
#define ENTER() raw_variable(numbers[0], numbers[1], numbers[2])
static long raw_variable(long number, long a, long b);
#include "strict_seccomp.c"

static __attribute__((noinline, noclone)) long raw_variable(long number, long a, long b)
{
	return raw(number, a, b, 0);
}
