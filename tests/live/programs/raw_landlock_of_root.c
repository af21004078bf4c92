/* The same as syscall_landlock.c by a raw instruction, without no_new_privs: root need not set it, and nothing shows in /proc. */
#define RESTRICT raw
#define UNPRIVILEGED (geteuid() != 0)
#include "syscall_landlock.c"
