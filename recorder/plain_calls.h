/*
 * plain_calls.h: system calls that wrappers make in place of the C library. A wrapper that calls the C library's function
 * returns once more than the program without it, and processors predict returns after a system call badly: that alone
 * costs 2 % of a small read. Where the C library's function is nothing but a system call, the wrapper therefore makes that
 * call itself: in programs with one thread, which cannot be cancelled inside, and only while the code of the C library's
 * function is the expected one. Other libraries redirect these functions by changing that code, so it is compared before
 * each call. x86-64 only.
 */
#ifndef RECORDER_PLAIN_CALLS_H
#define RECORDER_PLAIN_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

struct plain_call {
	const char *entry,
		*end; /* the function, and the end of its instruction `syscall`; NULL: unknown */
	uint64_t entry_code, end_code; /* eight bytes each: from the entry on, and up to the end */
};

/* Examines a function of the C library that makes the system call `number`. Not in hooks. */
void plain_call_find(struct plain_call *call, const void *function, long number);
/* Sets errno and returns -1. */
int plain_call_failed(long result);

#if defined(__x86_64__)

extern char __libc_single_threaded __attribute__((weak));

static inline uint64_t plain_code_at(const char *at)
{
	uint64_t code;

	memcpy(&code, at, sizeof(code));
	return code;
}

static inline bool is_plain_call(const struct plain_call *call)
{
	int threads; /* older versions of the C library decide by this field of the thread's control block */

	__asm__("movl %%fs:0x18, %0" : "=r"(threads));
	return call->entry && !threads && __libc_single_threaded &&
	       plain_code_at(call->entry) == call->entry_code &&
	       plain_code_at(call->end - sizeof(uint64_t)) == call->end_code;
}

/* Returns a negative error number when the call failed. */
static inline long plain_call_make(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

#endif

#endif
