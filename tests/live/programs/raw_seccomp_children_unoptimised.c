/* The same as raw_seccomp_children.c in code that is not optimised. */
#pragma GCC optimize("O0")
#include "raw_seccomp_children.c"
