/*
 * watch.c: a thread of the recorder in the process. It sees libraries come and arms the hooks for them, hands over
 * rings that could not be handed over at once, finds a collector that was started anew, and takes everything out
 * when the collector says so. It never runs while a hook does something that it could disturb: hooks do not wait.
 *
 * Also here: the two ways in, the constructor (preloaded) and opwatch_recorder_start (attached).
 */
#include "recorder.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EARLY_MS 20u
#define LATER_MS 100u
#define EARLY_ROUNDS 100u /* since the last library came: others follow */
#define RECONNECT_NS 1000000000u
#define STACK_BYTES ((size_t)512 << 10)
#define REST_ROUNDS                                                                                \
	4000u /* a fifth of a second at least: it may wait for a lock of the loader that the caller has */
#define NO_WATCHER                                                                                 \
	"the recorder got no thread of its own: what is called from libraries that are loaded "    \
	"from then on is not seen"

static int count_loads(struct dl_phdr_info *info, size_t size, void *arg)
{
	unsigned long long *loads = arg;

	(void)size;
	*loads = info->dlpi_adds;
	return 1;
}

static void arm(void)
{
	uint32_t slots;

	patches_find_real();
	slots = patches_apply();
	atomic_store(&recorder_process->patched, slots);
	if (slots)
		hook_tell(RING_HOOK_FILES, RING_HOOK_ARMED, NULL);
	torch_arm();
}

static _Atomic uint32_t in_loader;

static struct {
	_Atomic uint32_t there; /* or on its way */
	_Atomic uint32_t tid;	/* 0: on its way */
	_Atomic uint32_t leave;
	_Atomic uint32_t bell; /* changes when it is to look up */
} watcher;

/* Not for long: the thread that forks may hold a lock that the watcher waits for. */
void watcher_pause(void)
{
	struct timespec t = { 0, 50000 };

	for (int i = 0; i < 100 && atomic_load(&in_loader); i++)
		nanosleep(&t, NULL);
}

/* Objects are listed before they are ready. Whoever asks the loader for something waits until it has finished with
 * what it is loading; what comes after that has changed the count again. */
static void wait_for_loader(void)
{
	void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);

	if (program)
		dlclose(program);
}

static void disarm(void)
{
	struct ring_process *process = recorder_process;

	torch_remove();
#ifdef RECORDER_CUDA
	cuda_remove();
#endif
	patches_undo();
	atomic_store(&process->patched, 0);
	if (atomic_load(&process->hooks[RING_HOOK_FILES].state) != RING_HOOK_UNKNOWN)
		hook_tell(RING_HOOK_FILES, RING_HOOK_REMOVED, NULL);
	process_stop();
	atomic_store(&process->state, RING_STOPPED);
}

/* Until somebody rings, and not longer than that. */
static void nap(unsigned ms, uint32_t heard)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	syscall(SYS_futex, &watcher.bell, FUTEX_WAIT_PRIVATE, heard, &t, NULL, 0);
}

static void ring_bell(void)
{
	atomic_fetch_add(&watcher.bell, 1);
	syscall(SYS_futex, &watcher.bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Whoever is the collector now gets everything. */
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

static void *watch(void *arg)
{
	unsigned long long loads = 0, seen = 0;
	uint64_t last = now_ns();
	struct ring_process *process = recorder_process;

	(void)arg;
	recorder_busy = 1;
	prctl(PR_SET_NAME, "opwatch");
	atomic_store(&watcher.tid, (uint32_t)syscall(SYS_gettid));
	for (uint32_t round = 0;; round++) {
		uint32_t heard = atomic_load(&watcher.bell);

		if (atomic_load(&process->state) != RING_RUN) {
			disarm();
			break;
		}
		if (atomic_load(&watcher.leave))
			break;
		atomic_store(&in_loader, 1);
		dl_iterate_phdr(count_loads, &loads);
		if (loads != seen) {
			patches_notice();
			wait_for_loader();
			arm();
			round = 0;
		}
		seen = loads;
		atomic_store(&in_loader, 0);
		clock_adjust();
		keep_contact(&last);
		nap(round < EARLY_ROUNDS ? EARLY_MS : LATER_MS, heard);
	}
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

bool watcher_rest(void)
{
	struct timespec moment = { 0, 50000 };
	bool there = atomic_load(&watcher.there);

	if (!there)
		return false;
	atomic_store(&watcher.leave, 1);
	ring_bell();
	for (uint32_t i = 0; i < REST_ROUNDS && !is_gone(atomic_load(&watcher.tid)); i++)
		nanosleep(&moment, NULL);
	return true;
}

void watcher_start(void)
{
	pthread_attr_t attributes;
	sigset_t all, old;
	pthread_t thread;

	if (pthread_attr_init(&attributes) != 0)
		return;
	atomic_store(&watcher.leave, 0);
	atomic_store(&watcher.tid, 0);
	atomic_store(&watcher.there, 1);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, &attributes, watch, NULL) != 0) {
		atomic_store(&watcher.there, 0);
		hook_tell(RING_HOOK_FILES, RING_HOOK_UNKNOWN, NO_WATCHER);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
}

/* Called in a thread of the process by whoever attached. */
EXPORT int opwatch_recorder_start(const char *socket_path, unsigned version);

/* A recorder from elsewhere that was preloaded: that of another installation. Two would record all twice. */
static bool is_second(void)
{
	void *there = dlsym(RTLD_DEFAULT, "opwatch_recorder_start");
	Dl_info first, own;

	return there && dladdr(there, &first) && dladdr(&watcher, &own) &&
	       first.dli_fbase != own.dli_fbase;
}

EXPORT int opwatch_recorder_start(const char *socket_path, unsigned version)
{
	uint32_t busy = recorder_busy;
	int status;

	if (is_second())
		return 1;
	recorder_busy = 1;
	status = recorder_start(socket_path, version);
	if (status == 0 && !process_is_connected()) {
		atomic_store(&recorder_process->state,
			     RING_STOP); /* the watcher takes all out again */
		status = 6;
	}
	recorder_busy = busy;
	return status;
}

__attribute__((constructor)) static void preloaded(void)
{
	const char *socket_path = getenv(RING_ENV_SOCKET), *version = getenv(RING_ENV_VERSION);

	if (!socket_path || sandbox_is_new() || is_second())
		return;
	recorder_busy = 1;
	if (recorder_start(socket_path,
			   version ? (uint32_t)strtoul(version, NULL, 10) : RING_VERSION) == 0) {
		patches_notice(); /* all that is loaded at the start is complete by now */
		arm();
	}
	recorder_busy = 0;
}
