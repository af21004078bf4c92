/*
 * hook_start.c: wrappers of calls that start something: a thread or a library (the watcher is needed from then on), a child
 * that borrows the memory (vfork), a name for a thread. Functions that change privileges are also found by dlsym, as
 * Python's ctypes does it, and are replaced there by the wrappers of hook_rights.c. patch.c puts them in place.
 *
 * dlopen and dlsym look at the address that they return to, so that their wrappers must not be on the stack; vfork returns
 * twice to the same stack. These three are written in assembly, for x86-64 only: elsewhere the watcher is
 * started with the program.
 */
#include "recorder.h"

#include <errno.h>
#include <pthread.h>

enum patch_index {
	P_pthread_setname_np,
#if WATCHER_ON_DEMAND
	P_pthread_create,
	P_dlopen,
	P_dlsym,
	P_vfork,
#endif
	PATCHES
};

#define REAL(name) ((__typeof__(&my_##name))start_patches[P_##name].real)

static int my_pthread_setname_np(pthread_t thread, const char *name)
{
	int status = REAL(pthread_setname_np)(thread, name);

	if (status == 0 && pthread_equal(thread, pthread_self()))
		thread_set_name(name);
	return status;
}

#if WATCHER_ON_DEMAND

static int my_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			     void *(*start)(void *), void *arg)
{
	watcher_ensure();
	watcher_expect_threads();
	return REAL(pthread_create)(thread, attributes, start, arg);
}

/* The assembler code below calls these functions. */
__attribute__((used)) void *start_dlopen(void);
__attribute__((used)) void *start_dlsym(void);
__attribute__((used)) void *start_dlsym_in(void *handle, const char *name);
__attribute__((used)) uintptr_t start_vfork(void);
__attribute__((used)) long start_vfork_done(long result, uintptr_t busy);
void *my_dlopen(const char *path, int flags);
void *my_dlsym(void *handle, const char *name);
int my_vfork(void);

void *start_dlopen(void)
{
	watcher_ensure();
	return start_patches[P_dlopen].real;
}

void *start_dlsym(void)
{
	return start_patches[P_dlsym].real;
}

void *start_dlsym_in(void *handle, const char *name)
{
	return rights_wrapper(REAL(dlsym)(handle, name));
}

uintptr_t start_vfork(void)
{
	uintptr_t busy = recorder_busy;

	if (recorder_thread)
		thread_counts_none(recorder_thread);
	recorder_busy = BUSY_CHILD;
	return busy;
}

long start_vfork_done(long result, uintptr_t busy)
{
	recorder_busy = busy;
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* dlsym: RTLD_DEFAULT (0) and RTLD_NEXT (-1) depend on the caller. vfork: the return address is in a register while the
 * child uses the stack, as in the C library. */
__asm__(".text\n"
	".p2align 4\n"
	".type my_dlopen, @function\n"
	"my_dlopen:\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	sub $8, %rsp\n"
	"	call start_dlopen\n"
	"	add $8, %rsp\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	jmp *%rax\n"
	".size my_dlopen, .-my_dlopen\n"
	".p2align 4\n"
	".type my_dlsym, @function\n"
	"my_dlsym:\n"
	"	endbr64\n"
	"	lea 1(%rdi), %rax\n"
	"	cmp $1, %rax\n"
	"	ja 1f\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	sub $8, %rsp\n"
	"	call start_dlsym\n"
	"	add $8, %rsp\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	jmp *%rax\n"
	"1:	jmp start_dlsym_in\n"
	".size my_dlsym, .-my_dlsym\n"
	".p2align 4\n"
	".type my_vfork, @function\n"
	"my_vfork:\n"
	"	endbr64\n"
	"	sub $8, %rsp\n"
	"	call start_vfork\n"
	"	add $8, %rsp\n"
	"	mov %rax, %rsi\n"
	"	pop %rdi\n"
	"	mov $58, %eax\n" /* vfork */
	"	syscall\n"
	"	push %rdi\n"
	"	test %rax, %rax\n"
	"	je 1f\n"
	"	mov %rax, %rdi\n"
	"	sub $8, %rsp\n"
	"	call start_vfork_done\n"
	"	add $8, %rsp\n"
	"1:	ret\n"
	".size my_vfork, .-my_vfork\n");

#endif

struct patch start_patches[] = {
	[P_pthread_setname_np] = { "pthread_setname_np", (void *)my_pthread_setname_np, NULL },
#if WATCHER_ON_DEMAND
	[P_pthread_create] = { "pthread_create", (void *)my_pthread_create, NULL },
	[P_dlopen] = { "dlopen", (void *)my_dlopen, NULL },
	[P_dlsym] = { "dlsym", (void *)my_dlsym, NULL },
	[P_vfork] = { "vfork", (void *)my_vfork, NULL },
#endif
	[PATCHES] = { NULL, NULL, NULL },
};
