/* The same as strict_seccomp.c by a raw instruction in a function that takes the number. */
static long raw_call(long number, long a, long b, long c);
#define ENTER() raw_call(SYS_seccomp, 0, 0, 0)
#include "strict_seccomp.c"

static __attribute__((noinline, noclone)) long raw_call(long number, long a, long b, long c)
{
	return raw(number, a, b, c);
}
