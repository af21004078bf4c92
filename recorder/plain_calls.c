/*
 * plain_calls.c: recognises functions of the C library that are nothing but a system call; see plain_calls.h.
 */
#include "plain_calls.h"

#include <dlfcn.h>
#include <errno.h>

int plain_call_failed(long result)
{
	errno = (int)-result;
	return -1;
}

#if defined(__x86_64__)

#define LOOK 56 /* the instruction is within so many bytes */

static bool is_of_the_c_library(const void *function)
{
	Dl_info one, other;
	const void *known = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");

	return function && known && dladdr(function, &one) && dladdr(known, &other) &&
	       one.dli_fbase == other.dli_fbase;
}

/* Whether the bytes before `syscall` put the number into the register: xor %eax,%eax or mov $number,%eax. */
static bool sets_number(const unsigned char *syscall, long number)
{
	uint32_t value = (uint32_t)number;

	if (number == 0 && syscall[-2] == 0x31 && syscall[-1] == 0xc0)
		return true;
	return syscall[-5] == 0xb8 && memcmp(syscall - 4, &value, sizeof(value)) == 0;
}

/* Whether the function begins with the question whether there are other threads, in one of the two ways of the C library:
 * cmpb $0,__libc_single_threaded or mov %fs:0x18,%eax. Code that was redirected begins with a jump. */
static bool asks_for_threads(const unsigned char *code)
{
	static const unsigned char mark[] = { 0xf3, 0x0f, 0x1e, 0xfa }, /* endbr64 */
		flag[] = { 0x80, 0x3d }, field[] = { 0x64, 0x8b, 0x04, 0x25, 0x18, 0, 0, 0 };

	if (memcmp(code, mark, sizeof(mark)) == 0)
		code += sizeof(mark);
	return memcmp(code, flag, sizeof(flag)) == 0 || memcmp(code, field, sizeof(field)) == 0;
}

void plain_call_find(struct plain_call *call, const void *function, long number)
{
	const unsigned char *code = function;

	if (call->entry || !&__libc_single_threaded || !is_of_the_c_library(function) ||
	    !asks_for_threads(code))
		return;
	for (int i = 8; i < LOOK; i++)
		if (code[i] == 0x0f && code[i + 1] == 0x05) {
			if (!sets_number(code + i, number))
				return;
			call->end = (const char *)code + i + 2;
			call->entry_code = plain_code_at((const char *)code);
			call->end_code = plain_code_at(call->end - sizeof(uint64_t));
			__atomic_store_n(&call->entry, (const char *)code, __ATOMIC_RELEASE);
			return;
		}
}

#else

void plain_call_find(struct plain_call *call, const void *function, long number)
{
	(void)function;
	(void)number;
	call->entry = NULL;
}

#endif
