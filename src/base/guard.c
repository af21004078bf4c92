/*
 * guard.c: the SIGBUS handler behind guard.h, and the list of mapped files it knows. The importer of our own format
 * opens mappings; readers of the model, tables and SQL enter the guard around their reads. A signal handler gets no
 * argument from us, so the mappings are in a fixed array: process-wide state that a context cannot hold. The handler
 * uses only atomics and mmap, which is a plain system call here. Faults outside our mappings go to the handler that
 * was installed before.
 */
#include "base/guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct slot {
	/* address range of a mapping; `end` is at a page boundary; begin 0: the slot is free */
	atomic_uintptr_t begin, end;
	atomic_bool lost;
} slots[MAPPINGS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned inside;		  /* number of calls of guard_enter minus guard_leave */
static struct sigaction previous; /* handler that was installed before ours */

/* True while this thread is in the handler. It stops an endless loop of two handlers that pass a fault to
 * each other. */
static __thread volatile sig_atomic_t handling __attribute__((tls_model("initial-exec")));

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Maps zero pages from the page of `address` to the end of the mapping, because the file has no bytes
 * there either. */
static bool fill_with_zeros(uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)(page_size() - 1);

	for (size_t i = 0; i < MAPPINGS_MAX; i++) {
		uintptr_t begin = atomic_load(&slots[i].begin), end = atomic_load(&slots[i].end);

		if (!begin || address < begin || address >= end)
			continue;
		atomic_store(&slots[i].lost, true);
		return syscall(SYS_mmap, page, end - page, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
			       0) == (long)page;
	}
	return false;
}

/* Passes on a fault outside our mappings as if our handler did not exist. The fault repeats when the
 * instruction runs again. */
static void hand_on(int number, siginfo_t *info, void *context)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	/* the signal was sent by kill or raise and is not a fault */
	bool sent = info->si_code <= 0;

	if (sent && previous.sa_handler == SIG_IGN)
		return;
	if (handling || previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
		sigaction(number, &plain, NULL);
		if (sent)
			raise(number);
		return;
	}
	handling = 1;
	if (previous.sa_flags & SA_SIGINFO)
		previous.sa_sigaction(number, info, context);
	else
		previous.sa_handler(number);
	handling = 0;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	int code = errno;

	if (info->si_code <= 0 || !fill_with_zeros((uintptr_t)info->si_addr))
		hand_on(number, info, context);
	errno = code;
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_fault;
}

void guard_enter(struct guard *guard)
{
	struct sigaction ours = { .sa_sigaction = on_fault,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	struct sigaction now;
	sigset_t bus;

	handling = 0; /* touches the variable so that the handler finds it without allocating */
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	sigemptyset(&ours.sa_mask);
	pthread_mutex_lock(&lock);
	if (inside++ == 0 && sigaction(SIGBUS, NULL, &now) == 0 && !is_ours(&now)) {
		previous = now; /* must be known before the first fault can occur */
		sigaction(SIGBUS, &ours, NULL);
	}
	pthread_mutex_unlock(&lock);
	/* A blocked fault would end the process even if it has a handler. */
	pthread_sigmask(SIG_UNBLOCK, &bus, &guard->mask);
}

void guard_leave(struct guard *guard)
{
	struct sigaction now;

	pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
	pthread_mutex_lock(&lock);
	OW_ASSERT(inside > 0);
	/* Other code may have installed a handler on top of ours; in that case that handler
	 * stays. */
	if (--inside == 0 && sigaction(SIGBUS, NULL, &now) == 0 && is_ours(&now))
		sigaction(SIGBUS, &previous, NULL);
	pthread_mutex_unlock(&lock);
}

bool mapping_open(struct mapping *map, int fd, size_t len)
{
	size_t page = page_size(), whole = (len + page - 1) & ~(page - 1);
	void *ptr;

	*map = (struct mapping){ .slot = -1 };
	if (!len || whole < len)
		return false;
	ptr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (ptr == MAP_FAILED)
		return false;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAPPINGS_MAX && map->slot < 0; i++) {
		if (atomic_load(&slots[i].begin))
			continue;
		map->slot = i;
		atomic_store(&slots[i].lost, false);
		atomic_store(&slots[i].end, (uintptr_t)ptr + whole);
		atomic_store(&slots[i].begin, (uintptr_t)ptr);
	}
	pthread_mutex_unlock(&lock);
	if (map->slot < 0) {
		munmap(ptr, len);
		return false;
	}
	map->ptr = ptr;
	map->len = len;
	return true;
}

void mapping_close(struct mapping *map)
{
	if (!map->ptr)
		return;
	pthread_mutex_lock(&lock);
	atomic_store(&slots[map->slot].begin, 0);
	pthread_mutex_unlock(&lock);
	munmap(map->ptr, map->len);
	*map = (struct mapping){ .slot = -1 };
}

bool mapping_lost(const struct mapping *map)
{
	return map->ptr && atomic_load(&slots[map->slot].lost);
}
