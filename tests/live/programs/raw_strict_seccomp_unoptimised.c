/* The same as strict_seccomp.c by a raw instruction in code that is not optimised: the number goes over the stack. */
#pragma GCC optimize("O0")
#define ENTER() raw(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0)
#include "strict_seccomp.c"
