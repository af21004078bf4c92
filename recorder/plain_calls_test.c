/*
 * plain_calls_test.c: unit test of plain_calls.c: functions of the C library that are a system call are recognised by their code, others are not,
 * and a failed call sets errno.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plain_calls.c" /* NOLINT(bugprone-suspicious-include) */

#include <unistd.h>

#if defined(__x86_64__)

static void *find(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* The C library may be one with other code: then nothing is recognised, and wrappers call its functions. */
static void recognises_reads(void **state)
{
	struct plain_call call = { 0 };

	(void)state;
	plain_call_find(&call, find("read"), SYS_read);
	if (!call.entry)
		skip();
	assert_true(is_plain_call(&call));
	assert_memory_equal(call.end - 2, "\x0f\x05", 2);
	call.entry_code ^= 0xff;
	assert_false(is_plain_call(&call));
	call.entry_code ^= 0xff;
	call.end_code ^= (uint64_t)1 << 40;
	assert_false(is_plain_call(&call));
}

static ssize_t own_read(int fd, void *to, size_t size)
{
	return syscall(SYS_read, fd, to, size);
}

static void refuses_others(void **state)
{
	struct plain_call call = { 0 };

	(void)state;
	plain_call_find(&call, find("read"), SYS_write);
	assert_null(call.entry);
	plain_call_find(&call, find("fread"), SYS_read);
	assert_null(call.entry);
	plain_call_find(&call, (const void *)own_read, SYS_read);
	assert_null(call.entry);
	plain_call_find(&call, NULL, SYS_read);
	assert_null(call.entry);
	assert_false(is_plain_call(&call));
}

static void makes_calls(void **state)
{
	(void)state;
	assert_int_equal(plain_call_make(SYS_getppid, 0, 0, 0, 0, 0, 0), getppid());
	errno = 0;
	assert_int_equal(plain_call_failed(plain_call_make(SYS_close, -1, 0, 0, 0, 0, 0)), -1);
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recognises_reads),
		cmocka_unit_test(refuses_others),
		cmocka_unit_test(makes_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif
