/* The same as syscall_landlock.c by a raw instruction. */
#define RESTRICT raw
#define UNPRIVILEGED 1
#include "syscall_landlock.c"
