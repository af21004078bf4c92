/* The same as strict_seccomp.c through the C library's syscall(). */
#define ENTER() syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL)
#include "strict_seccomp.c"
