/* The same as raw_setresuid.c through the C library's syscall(). */
#define DROP syscall
#include "raw_setresuid.c"
