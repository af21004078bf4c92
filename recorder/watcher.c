/*
 * watcher.c: the recorder's own thread in the process. It notices loaded libraries and arms the hooks for them, makes rings
 * ahead for threads, connects to a restarted collector, and removes all hooks when the collector asks for that. Hooks
 * never wait for it.
 *
 * Under `opwatch record`, a program that starts no thread and loads no library while it runs has no watcher, so that it
 * stays a program of one thread. Under the daemon, which may be started again, each has one. The watcher ends when the program changes its privileges in a way that does not reach it, and makes no more
 * calls once it finds itself under a filter (docs/decisions/recorder.md).
 *
 * Also here: the two entry points, the constructor (LD_PRELOAD) and opwatch_recorder_start (attach).
 */
#include "recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_MS 2u
#define FIRST_ROUNDS 20u
#define EARLY_MS 20u
#define LATER_MS 100u
/* number of short rounds after a library was loaded, because others follow */
#define EARLY_ROUNDS 100u
#define RECONNECT_NS 1000000000u
#define STACK_BYTES ((size_t)512 << 10)
/* at least a fifth of a second: the watcher may wait for a lock of the loader that the caller
 * holds */
#define STOP_ROUNDS 4000u
#define NO_WATCHER                                                                                 \
	"the recorder could not start its own thread: calls from libraries that are loaded "       \
	"later are not recorded"

#define FILTERED                                                                                   \
	"the program added a filter of system calls (seccomp): the recorder makes no more calls "  \
	"of its own, and calls of later threads and libraries may be missing"
#define SPARES_EARLY 2u /* number of rings for threads that record for the first time */
#define SPARES 8u

static int count_loads(struct dl_phdr_info *info, size_t size, void *arg)
{
	unsigned long long *loads = arg;

	(void)size;
	*loads = info->dlpi_adds;
	return 1;
}

static void arm_hooks(void)
{
	struct ring_process *process = recorder_process;
	uint32_t slots;

	if (!process) /* no collector is connected now */
		return;
	patches_find_real();
	marker_find();
	slots = patches_apply();
	atomic_store(&process->patched, slots);
	if (slots)
		hook_report(RING_HOOK_FILES, RING_HOOK_ARMED, NULL);
	torch_arm();
}

static _Atomic uint32_t in_loader;

/* A descriptor that stays open. Opening one again in each round would take, for a moment, the lowest number, which the program may
 * count on. */
struct kept {
	int fd;
	uint64_t inode;
};

static struct {
	_Atomic uint32_t there; /* the watcher runs or is starting */
	_Atomic uint32_t tid;	/* thread id; 0: it is starting */
	_Atomic uint32_t leave;
	_Atomic uint32_t bell;	 /* changes when the watcher should check */
	_Atomic uint32_t wanted; /* also used in children */
	_Atomic uint32_t banned;
	_Atomic uint32_t ready; /* the watcher has opened all files that it needs */
	_Atomic uint32_t threads_come;
	struct kept status; /* its own file in /proc, not read yet: see is_filtered */
	struct kept first;  /* file of the first thread */
	struct kept never;  /* a file to which nothing is ever written */
	unsigned long filters;
} watcher = { .status = { .fd = -1 }, .first = { .fd = -1 }, .never = { .fd = -1 } };

static sigset_t watcher_mask; /* signal mask of the thread that started it */

/* Pauses the watcher, but not for long: the forking thread may hold a lock that the watcher
 * waits for. */
void watcher_pause(void)
{
	struct timespec t = { 0, 50000 };

	for (int i = 0; i < 100 && atomic_load(&in_loader); i++)
		nanosleep(&t, NULL);
}

/* The loader lists libraries before they are ready. A call into the loader waits until it has finished loading; libraries that
 * come later change the count again. */
static void wait_for_loader(void)
{
	void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);

	if (program)
		dlclose(program);
}

/* Removes the hooks of the shared memory that the watcher was started for, because another collector may
 * be about to start over. */
static void disarm_hooks(struct ring_process *process)
{
	torch_remove();
#ifdef RECORDER_CUDA
	cuda_remove();
#endif
	patches_undo();
	atomic_store(&process->patched, 0);
	if (atomic_load(&process->hooks[RING_HOOK_FILES].state) != RING_HOOK_UNKNOWN)
		hook_report(RING_HOOK_FILES, RING_HOOK_REMOVED, NULL);
	process_stop();
	atomic_store(&process->state, RING_STOPPED);
}

/* Waits until the bell changes, or for that long. */
static void wait_for_bell(unsigned ms, uint32_t heard)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	syscall(SYS_futex, &watcher.bell, FUTEX_WAIT_PRIVATE, heard, &t, NULL, 0);
}

void watcher_wake(void)
{
	atomic_fetch_add(&watcher.bell, 1);
	syscall(SYS_futex, &watcher.bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* State and user ids of the first thread and of the calling thread in /proc. */
struct standing {
	char state;
	unsigned long threads;
	unsigned long filters;
	unsigned long hash; /* hash of the lines on users, groups, capabilities and sandboxes */
};

static bool read_standing(int fd, struct standing *s)
{
	static const char *const lines[] = {
		"Uid:",	   "Gid:",    "Groups:",     "CapInh:",	 "CapPrm:",	    "CapEff:",
		"CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:"
	};
	char text[4096], *line = text;
	ssize_t len = syscall(SYS_read, fd, text, sizeof(text) - 1);

	if (len <= 0)
		return false;
	text[len] = '\0';
	*s = (struct standing){ .hash = 5381, .filters = ring_filters(text) };
	while (line) {
		char *next = strchr(line, '\n');

		if (next)
			*next++ = '\0';
		if (strncmp(line, "State:", 6) == 0)
			s->state = line[6 + strspn(line + 6, " \t")];
		else if (strncmp(line, "Threads:", 8) == 0)
			s->threads = strtoul(line + 8, NULL, 10);
		for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
			if (strncmp(line, lines[i], strlen(lines[i])) == 0)
				for (const char *c = line; *c; c++)
					s->hash = s->hash * 33 + (unsigned char)*c;
		line = next;
	}
	return true;
}

static void keep(struct kept *k, int fd)
{
	k->fd = descriptor_move_high(fd);
	k->inode = descriptor_inode(k->fd);
	descriptor_is_ours(k->fd, true);
}

static void let_go(struct kept *k)
{
	descriptor_is_ours(k->fd, false);
	if (descriptor_is(k->fd, k->inode))
		close(k->fd);
	k->fd = -1;
}

/* Goes to the first byte of a /proc file, whose text is made when it is read. Opens it again if the program has closed it. */
static bool rewind_file(struct kept *k, const char *path)
{
	if (descriptor_is(k->fd, k->inode))
		return lseek(k->fd, 0, SEEK_SET) == 0;
	let_go(k);
	keep(k, open(path, O_RDONLY | O_CLOEXEC));
	return k->fd >= 0;
}

#define OWN_STATUS "/proc/thread-self/status"
#define FIRST_STATUS "/proc/self/status"

void watcher_forget(void)
{
	let_go(&watcher.status);
	let_go(&watcher.first);
	let_go(&watcher.never);
}

/* Whether a filter forbids system calls; the first call after each sleep. A filter that another thread has put on all
 * threads may end the process for anything but a few calls, and reading an open file is one of the few that nearly all
 * filters allow. The file was opened and rewound before the sleep.
 */
static bool is_filtered(void)
{
	struct standing own;

	if (watcher.status.fd < 0 || !read_standing(watcher.status.fd, &own))
		return false;
	if (own.filters <= watcher.filters)
		return false;
	atomic_store(&watcher.banned, 1);
	hook_report(RING_HOOK_FILES, RING_HOOK_UNKNOWN, FILTERED);
	/* With other threads in the program, ending one must be allowed. Otherwise the last allowed call is one that does
	 * not return: the thread has no rights that the program lacks. */
	if (own.threads > 2)
		syscall(SYS_exit, 0);
	return true;
}

static void sleep_for_ever(void)
{
	uint64_t value;

	for (;;)
		(void)!syscall(SYS_read, watcher.never.fd, &value, sizeof(value));
}

/* Returns whether the first thread and this one are in the same namespaces. */
static bool is_in_same_namespaces(void)
{
	static const char *const names[] = { "cgroup", "ipc", "mnt", "net", "user", "uts" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char path[64], first[64], own[64];
		ssize_t a, b;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		a = readlink(path, first, sizeof(first));
		snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", names[i]);
		b = readlink(path, own, sizeof(own));
		if (a > 0 && b > 0 && (a != b || memcmp(first, own, (size_t)a) != 0))
			return false;
	}
	return true;
}

/* A program whose first thread has called pthread_exit ends with its last thread, which must not be this one. And a
 * thread that changes its rights by a system call that is not seen (hook_rights.c) must not leave one behind that
 * still has them. */
static bool is_time_to_go(void)
{
	struct standing first, own;

	if (!rewind_file(&watcher.first, FIRST_STATUS) || !read_standing(watcher.first.fd, &first))
		return false;
	if (first.state == 'Z')
		return first.threads <= 2;
	if (!rewind_file(&watcher.status, OWN_STATUS) || !read_standing(watcher.status.fd, &own))
		return false;
	if (first.filters > own.filters) {
		atomic_store(&watcher.banned, 1);
		hook_report(RING_HOOK_FILES, RING_HOOK_UNKNOWN, FILTERED);
		return true;
	}
	return own.hash != first.hash || !is_in_same_namespaces();
}

/* Keeps contact; a new collector receives everything again. */
static void keep_contact(uint64_t *last)
{
	uint64_t now = now_ns();

	if (process_is_cut_off())
		process_renew();
	threads_send();
	if (now - *last < RECONNECT_NS)
		return;
	*last = now;
	if (!process_is_connected() && process_reconnect())
		threads_send_again();
}

/* Unblocks signals: if this is the last thread, the C library runs the program's exit handlers in it, as
 * in any thread. */
static void let_signals_in(void)
{
	pthread_sigmask(SIG_SETMASK, &watcher_mask, NULL);
	recorder_busy = 0;
}

/* Patches libraries that were loaded since the last time. Returns whether there were any. */
static bool look_at_loads(unsigned long long *seen, bool again)
{
	unsigned long long loads = *seen;
	bool more;

	atomic_store(&in_loader, 1);
	dl_iterate_phdr(count_loads, &loads);
	more = loads != *seen;
	if (more || again) {
		patches_notice();
		wait_for_loader();
		if (again)
			patches_visit_again();
		arm_hooks();
	}
	*seen = loads;
	atomic_store(&in_loader, 0);
	return more;
}

static void begin_watching(void)
{
	struct standing own;

	recorder_busy = BUSY_OURS;
	prctl(PR_SET_NAME, "opwatch");
	atomic_store(&watcher.tid, (uint32_t)syscall(SYS_gettid));
	keep(&watcher.never, eventfd(0, EFD_CLOEXEC));
	rewind_file(&watcher.first, FIRST_STATUS);
	watcher.filters =
		rewind_file(&watcher.status, OWN_STATUS) && read_standing(watcher.status.fd, &own)
			? own.filters
			: 0;
	atomic_store(&watcher.ready, 1);
}

/* Returns the time to wait: shorter after libraries were loaded or rings were taken. */
static unsigned time_to_wait_ms(uint32_t round)
{
	if (round < FIRST_ROUNDS)
		return FIRST_MS;
	return round < EARLY_ROUNDS || threads_free() < SPARES / 2 ? EARLY_MS : LATER_MS;
}

/* Runs the rounds of the watcher, which may end in any of them. Returns true under a filter. */
static bool watch(struct ring_process *process)
{
	unsigned long long seen = 0;
	uint64_t last = now_ns();

	for (uint32_t round = 0;; round++) {
		uint32_t heard = atomic_load(&watcher.bell);

		if (atomic_load(&process->state) != RING_RUN) {
			disarm_hooks(process);
			return false;
		}
		if (atomic_load(&watcher.leave))
			return false;
		if ((round >= EARLY_ROUNDS || round % 4 == 0) && is_time_to_go()) {
			let_signals_in();
			return false;
		}
		/* a thread that was binding a slot while it was patched has overwritten it by
		 * now */
		if (look_at_loads(&seen, round == 2))
			round = 0;
		python_arm();
		clock_adjust();
		keep_contact(&last);
		threads_provide(atomic_load(&watcher.threads_come) ? SPARES : SPARES_EARLY);
		descriptors_look(false);
		rewind_file(&watcher.status, OWN_STATUS);
		wait_for_bell(time_to_wait_ms(round), heard);
		if (is_filtered())
			return true;
	}
}

static void *watcher_main(void *process)
{
	begin_watching();
	if (process && watch(process))
		sleep_for_ever();
	watcher_forget();
	atomic_store(&watcher.there, 0);
	return NULL;
}

bool watcher_is_there(void)
{
	return atomic_load(&watcher.there);
}

static bool is_gone(uint32_t tid)
{
	return tid && syscall(SYS_tgkill, getpid(), tid, 0) != 0;
}

bool watcher_stop(void)
{
	struct timespec moment = { 0, 50000 };
	bool there = atomic_load(&watcher.there);

	if (!there)
		return false;
	atomic_store(&watcher.leave, 1);
	watcher_wake();
	for (uint32_t i = 0; i < STOP_ROUNDS && !is_gone(atomic_load(&watcher.tid)); i++)
		nanosleep(&moment, NULL);
	return true;
}

/* Waits until the watcher is ready, because it takes low descriptor numbers until then; but not for long,
 * as it may wait for a lock of the caller. */
static void wait_until_ready(void)
{
	struct timespec moment = { 0, 20000 };

	for (int i = 0; i < 50 && !atomic_load(&watcher.ready); i++)
		nanosleep(&moment, NULL);
}

/* Makes spare rings, because threads may start faster than the watcher runs. */
void watcher_expect_threads(void)
{
	struct timespec moment = { 0, 20000 };
	int error = errno;

	if (LIKELY(atomic_load(&watcher.threads_come)))
		return;
	atomic_store(&watcher.threads_come, 1);
	if (atomic_load(&watcher.there) && !atomic_load(&watcher.banned) && !recorder_busy &&
	    !process_is_filtered()) {
		watcher_wake();
		for (int i = 0; i < 100 && threads_free() < SPARES; i++)
			nanosleep(&moment, NULL);
	}
	errno = error;
}

void watcher_start(void)
{
	pthread_attr_t attributes;
	sigset_t all, old;
	pthread_t thread;

	if (pthread_attr_init(&attributes) != 0)
		return;
	atomic_store(&watcher.wanted, 1);
	atomic_store(&watcher.leave, 0);
	atomic_store(&watcher.tid, 0);
	atomic_store(&watcher.ready, 0);
	atomic_store(&watcher.there, 1);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	watcher_mask = old;
	if (pthread_create(&thread, &attributes, watcher_main, recorder_process) != 0) {
		atomic_store(&watcher.there, 0);
		hook_report(RING_HOOK_FILES, RING_HOOK_UNKNOWN, NO_WATCHER);
	} else {
		wait_until_ready();
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
}

bool watcher_is_wanted(void)
{
	return atomic_load(&watcher.wanted) && !atomic_load(&watcher.banned);
}

void watcher_ban(void)
{
	atomic_store(&watcher.banned, 1);
}

/* Starts the watcher; in a child that has recorded nothing yet, the first record comes first. */
void watcher_ensure(void)
{
	uint32_t none = 0;
	int error = errno;

	if (LIKELY(atomic_load(&watcher.there) || atomic_load(&watcher.banned)) ||
	    !*recorder_generation || !process_is_wanted() || recorder_busy)
		return;
	if (!atomic_compare_exchange_strong(&watcher.there, &none, 1))
		return;
	recorder_busy = BUSY_OURS;
	if (process_is_filtered()) {
		atomic_store(&watcher.banned, 1);
		atomic_store(&watcher.there, 0);
		hook_report(RING_HOOK_FILES, RING_HOOK_UNKNOWN, FILTERED);
	} else {
		watcher_start();
	}
	recorder_busy = 0;
	errno = error;
}

/* Called in a thread of the process by opwatch attach, which reads the result from opwatch_recorder_status. */
EXPORT int opwatch_recorder_start(const char *socket_path, unsigned version);
/* Separate from the exported name, because another recorder in the process may define that variable. */
static volatile int start_status = -1;
EXPORT extern volatile int opwatch_recorder_status __attribute__((alias("start_status")));

/* Returns whether another installation's recorder was preloaded; two would record everything twice. */
static bool is_second(void)
{
	void *there = dlsym(RTLD_DEFAULT, "opwatch_recorder_start");
	Dl_info first, own;

	return there && dladdr(there, &first) && dladdr(&watcher, &own) &&
	       first.dli_fbase != own.dli_fbase;
}

/* Starts the recorder. The path may be followed by a step marker; a recorder in use keeps its
 * marker. */
static int start_at(const char *text, unsigned version)
{
	static char path[256];
	const char *marker = version & RING_WITH_MARKER ? strchr(text, '\n') : NULL;

	if (!marker)
		return recorder_start(text, version & ~RING_WITH_MARKER);
	if ((size_t)(marker - text) >= sizeof(path))
		return 2;
	memcpy(path, text, (size_t)(marker - text));
	path[marker - text] = '\0';
	if (!watcher_is_there())
		marker_set(marker + 1);
	return recorder_start(path, version & ~RING_WITH_MARKER);
}

static int start_attached(const char *socket_path, unsigned version)
{
	int status = start_at(socket_path, version);

	if (status == 0 && atomic_load(&watcher.banned)) { /* the process could not be left again */
		process_stop();
		status = 9;
	}
	atomic_store(&watcher.threads_come, 1); /* the threads already exist */
	if (status == 0)
		watcher_start();
	if (status == 0 && !process_is_connected()) {
		atomic_store(&recorder_process->state,
			     RING_STOP); /* the watcher removes all hooks again */
		status = 6;
	}
	return status;
}

/* Called by a thread that may have been interrupted anywhere, even in this function, if an attach was killed here. A
 * half-finished start must not begin again. */
EXPORT int opwatch_recorder_start(const char *socket_path, unsigned version)
{
	static _Atomic uint32_t
		starting; /* in this process: a child may inherit that of its parent */
	uint32_t pid = (uint32_t)getpid();
	uintptr_t busy = recorder_busy;
	int error = errno;

	if (is_second())
		return start_status = 1;
	if (atomic_exchange(&starting, pid) == pid)
		return start_status = 5;
	start_status = -1;
	recorder_busy = BUSY_OURS;
	start_status = start_attached(socket_path, version);
	recorder_busy = busy;
	atomic_store(&starting, 0);
	errno = error;
	return start_status;
}

/* Names the first thread; other threads are given names, or have this one. */
static void name_first_thread(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	thread_set_name(name);
}

__attribute__((constructor)) static void preloaded(void)
{
	const char *socket_path = getenv(RING_ENV_SOCKET), *version = getenv(RING_ENV_VERSION);
	const char *once = getenv(RING_ENV_ONCE);

	if (!socket_path || sandbox_is_new() || is_second())
		return;
	recorder_busy = BUSY_OURS;
	marker_set(getenv(RING_ENV_MARKER));
	name_first_thread();
	if (recorder_start(socket_path,
			   version ? (uint32_t)strtoul(version, NULL, 10) : RING_VERSION) == 0) {
		/* on other machines the start of threads is not seen */
		atomic_store(&watcher.threads_come, !WATCHER_ON_DEMAND);
		/* Done here and not in the first hook, which may have a small stack. */
		threads_provide(SPARES_EARLY);
		patches_notice(); /* all libraries of the start are complete by now */
		marker_patch_program();
		arm_hooks();
		if ((!WATCHER_ON_DEMAND || !once || strcmp(once, "1") != 0 || python_is_needed()) &&
		    !atomic_load(&watcher.banned))
			watcher_start();
	}
	recorder_busy = 0;
}
