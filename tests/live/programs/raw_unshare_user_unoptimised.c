/* The same as raw_unshare_user.c in code that is not optimised. */
#pragma GCC optimize("O0")
#include "raw_unshare_user.c"
