/*
 * banned.h: turns unsafe functions of libc into compile errors. Included by base/base.h, and so by every file of the
 * project.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#define BANNED(func, instead) banned_##func##_use_##instead

#undef strcpy
#define strcpy(a, b) BANNED(strcpy, memcpy_or_buf)
#undef strcat
#define strcat(a, b) BANNED(strcat, buf)
#undef strncpy
#define strncpy(a, b, c) BANNED(strncpy, memcpy_or_buf)
#undef strtok
#define strtok(a, b) BANNED(strtok, str_split)
#undef sprintf
#define sprintf(...) BANNED(sprintf, snprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf, vsnprintf)
#undef gmtime
#define gmtime(a) BANNED(gmtime, gmtime_r)
#undef localtime
#define localtime(a) BANNED(localtime, localtime_r)
#undef atoi
#define atoi(a) BANNED(atoi, str_to_i64)
#undef atol
#define atol(a) BANNED(atol, str_to_i64)

#endif
