/*
 * attach.c: see attach.h. Loading a library allocates memory and takes the loader's locks, so the thread must not be
 * stopped where it may hold one of them: it is taken only in the program's own code, or in a system call in which
 * nobody waits for a lock of that kind. Otherwise it goes on at once, and another moment or thread is tried. Threads that
 * wait come first: the job misses nothing while they are stopped.
 *
 * The call is made on the thread's own stack, below what it uses, and returns to address 0, which stops it again.
 */
#include "live/attach.h"

#include "base/clock.h"
#include "live/hurry.h"
#include "live/proc.h"
#include "live/processes.h"
#include "live/remote_call.h"
#include "live/symbols.h"
#include "wire/ring.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS (10000 * 1000000LL)
#define LINKING_NS (200 * 1000000LL)
#define STACK_NEEDED ((uint64_t)96 << 10)
#define THREADS_MAX 64

struct attaching {
	pid_t pid;
	const char *library, *socket_path;
	uint64_t dlopen_address, start_offset;
	bool loaded;	 /* the library is there already, and start_offset is an address */
	bool asleep;	 /* the thread that was looked at last cannot be stopped */
	struct buf maps; /* of the process, as text */
	struct error *err;
};

/* ---- may it be done at all ---- */

/* There can be one only, who would be told of what we do. */
static ow_status check_tracer(const struct attaching *a, pid_t tid)
{
	int64_t tracer = proc_status_number(tid, "TracerPid:");
	struct proc_stat stat;

	if (tracer <= 0)
		return OW_OK;
	if (!proc_stat_read((pid_t)tracer, 0, &stat))
		stat.name[0] = '\0';
	return error_set(a->err, OW_E_PERMISSION,
			 "process %d is traced by process %" PRId64
			 "%s%s%s, and the system lets only one do "
			 "that: end that first; 'opwatch stacks %d' looks at it from outside",
			 (int)a->pid, tracer, stat.name[0] ? " (" : "", stat.name,
			 stat.name[0] ? ")" : "", (int)a->pid);
}

/* What runs no code of its own now, or never. */
static ow_status check_state(const struct attaching *a)
{
	struct proc_stat stat;
	char path[64], exe[2];

	if (!proc_stat_read(a->pid, 0, &stat))
		return OW_OK; /* others say why */
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)a->pid);
	if (stat.state == 'Z' && stat.threads > 1)
		return error_set(
			a->err, OW_E_UNSUPPORTED,
			"process %d: its first thread has ended while others go on: such a "
			"process cannot be joined",
			(int)a->pid);
	if (stat.state == 'Z' || stat.state == 'X')
		return error_set(a->err, OW_E_NOT_FOUND,
				 "process %d has ended; its parent has not asked for its end yet",
				 (int)a->pid);
	OW_TRY(check_tracer(a, a->pid));
	if (stat.state == 'T')
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "process %d is stopped: let it go on first (kill -CONT %d)",
				 (int)a->pid, (int)a->pid);
	if (readlink(path, exe, sizeof(exe)) < 0 && errno == ENOENT)
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "process %d is a part of the kernel: it runs no program",
				 (int)a->pid);
	return OW_OK;
}

static ow_status check_process(const struct attaching *a)
{
	char path[64], theirs[128], ours[128];
	ssize_t their_len, our_len;

	if (a->pid <= 0 || kill(a->pid, 0) != 0) {
		if (a->pid > 0 && errno == EPERM)
			return error_set(
				a->err, OW_E_PERMISSION,
				"process %d belongs to another user: only that user or root can "
				"attach to it",
				(int)a->pid);
		return error_set(a->err, OW_E_NOT_FOUND, "there is no process %d", (int)a->pid);
	}
	if (a->pid == getpid())
		return error_set(a->err, OW_E_USAGE, "process %d is this one", (int)a->pid);
	OW_TRY(proc_check_first(a->pid, a->err));
	OW_TRY(check_state(a));
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)a->pid);
	their_len = readlink(path, theirs, sizeof(theirs));
	our_len = readlink("/proc/self/ns/mnt", ours, sizeof(ours));
	if (their_len <= 0)
		return error_set(a->err, OW_E_PERMISSION,
				 "process %d may not be looked at: it belongs to another user, or "
				 "the system "
				 "does not allow it",
				 (int)a->pid);
	if (their_len != our_len || memcmp(theirs, ours, (size_t)our_len) != 0)
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "process %d lives in a container: run opwatch inside of it",
				 (int)a->pid);
	return OW_OK;
}

static unsigned long filters_of(pid_t pid)
{
	char text[4096];

	return proc_read(pid, "status", text, sizeof(text)) > 0 ? ring_filters(text) : 0;
}

/* What such a process does not do itself may be its end. */
static ow_status check_sandbox(const struct attaching *a)
{
	if (filters_of(a->pid) <= filters_of(getpid()))
		return OW_OK;
	return error_set(
		a->err, OW_E_UNSUPPORTED,
		"process %d has put itself into a sandbox (seccomp), which might end it for "
		"what a recorder does: it is left alone; 'opwatch stacks %d' looks at it from "
		"outside",
		(int)a->pid, (int)a->pid);
}

/* ---- where things are ---- */

static bool is_32_bit(pid_t pid)
{
	unsigned char head[EI_NIDENT] = { 0 };

	return proc_read(pid, "exe", (char *)head, sizeof(head)) > EI_CLASS &&
	       memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == ELFCLASS32;
}

static ow_status find_addresses(struct attaching *a)
{
	char libc[PATH_MAX];
	uint64_t base, offset = 0;

	if (is_32_bit(a->pid))
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "process %d is a 32-bit program: only 64-bit ones can be joined",
				 (int)a->pid);
	if (!maps_find_object(a->maps.ptr, "libc.so.6", &base, libc, sizeof(libc)))
		return error_set(
			a->err, OW_E_UNSUPPORTED,
			"process %d does not use the GNU C library: it is linked statically, or "
			"uses another one",
			(int)a->pid);
	if (!symbol_offset(libc, "dlopen", &offset) &&
	    !symbol_offset(libc, "__libc_dlopen_mode", &offset))
		return error_set(a->err, OW_E_UNSUPPORTED, "%s: has no dlopen", libc);
	a->dlopen_address = base + offset;
	if (!symbol_offset(a->library, "opwatch_recorder_start", &a->start_offset))
		return error_set(a->err, OW_E_UNSUPPORTED, "%s: is no recorder of opwatch",
				 a->library);
	/* The same file: one that was replaced meanwhile is told as deleted. */
	a->loaded = maps_find_object(a->maps.ptr, "libopwatch-recorder.so", &base, libc,
				     sizeof(libc)) &&
		    strcmp(libc, a->library) == 0;
	if (a->loaded)
		a->start_offset += base;
	return OW_OK;
}

/* ---- is this a good moment ---- */

/* Its signals must be such that stopping it by a fault changes nothing. */
static bool takes_faults(pid_t pid, pid_t tid)
{
	char what[48], text[4096];
	const char *blocked, *ignored;
	uint64_t fault = (uint64_t)1 << (SIGSEGV - 1);

	snprintf(what, sizeof(what), "task/%d/status", (int)tid);
	if (proc_read(pid, what, text, sizeof(text)) <= 0)
		return false;
	blocked = strstr(text, "\nSigBlk:");
	ignored = strstr(text, "\nSigIgn:");
	return blocked && ignored && !(strtoull(blocked + 8, NULL, 16) & fault) &&
	       !(strtoull(ignored + 8, NULL, 16) & fault);
}

/* How long it could have run so far and did not get a processor; 0 when the system does not tell. */
static int64_t waited_for_processor(pid_t pid, pid_t tid)
{
	char what[48], text[128], *end;

	snprintf(what, sizeof(what), "task/%d/schedstat", (int)tid);
	if (proc_read(pid, what, text, sizeof(text)) <= 0)
		return 0;
	(void)strtoull(text, &end, 10);
	return (int64_t)strtoull(end, NULL, 10);
}

/* Whether the thread waits where it can be taken, as far as the system tells without stopping it. */
static bool is_waiting(pid_t pid, pid_t tid)
{
	char what[48], text[256], *end;
	uint64_t second;
	int64_t call;

	snprintf(what, sizeof(what), "task/%d/syscall", (int)tid);
	if (proc_read(pid, what, text, sizeof(text)) <= 0)
		return false;
	call = strtoll(text, &end, 10);
	if (end == text || call < 0)
		return false; /* it runs */
	(void)strtoull(end, &end, 16);
	second = strtoull(end, &end, 16);
	return remote_call_is_harmless(call, second);
}

static bool is_good_moment(const struct attaching *a, const struct remote *r)
{
	uint64_t stack_low, low;
	char object[PATH_MAX];

	if (!maps_find_address(a->maps.ptr, r->stack, &stack_low, object, sizeof(object)))
		return false;
	if (strcmp(object, "[stack]") != 0 && r->stack - stack_low < STACK_NEEDED)
		return false; /* only the first thread's grows by itself */
	if (remote_in_call(r))
		return remote_call_is_harmless(r->call, r->call_argument);
	if (!maps_find_address(a->maps.ptr, r->instruction, &low, object, sizeof(object)))
		return false;
	return !strstr(object, "/libc.so") && !strstr(object, "/ld-linux") &&
	       !strstr(object, "malloc") && !strstr(object, "/libpthread") &&
	       !strstr(object, "/libdl") && object[0] != '[';
}

/* ---- the calls ---- */

static bool read_word(pid_t pid, uint64_t address, uint64_t *word)
{
	struct iovec here = { word, sizeof(*word) },
		     there = { (void *)(uintptr_t)address, sizeof(*word) };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(*word);
}

static ow_status load_library(struct attaching *a, struct remote *r)
{
	uint64_t arguments[2] = { 0, 2 /* RTLD_NOW */ }, handle = 0, base = 0;

	if (a->loaded) /* since somebody attached before */
		return OW_OK;
	OW_TRY(remote_call(r, a->dlopen_address, a->library, arguments, &handle, a->err));
	if (!handle)
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "process %d could not load %s: can it read that file?",
				 (int)a->pid, a->library);
	/* The handle is the loader's struct link_map, which begins with where the object is. Reading all mappings
	 * again would take milliseconds in which the thread stands still. */
	if (!read_word(a->pid, handle, &base))
		return error_set(a->err, OW_E_INTERNAL, "%s: was loaded, and is not there",
				 a->library);
	a->start_offset += base;
	a->loaded = true;
	return OW_OK;
}

static ow_status start_recorder(const struct attaching *a, struct remote *r)
{
	static const char *const reasons[] = {
		[1] = "another recorder is there, or an older one: start the program anew",
		[2] = "the path of the socket is too long",
		[3] = "it has no memory",
		[4] = "it may not make the memory that is needed (ulimit -f, -n, -v)",
		[5] = "it is being recorded already",
		[6] = "it cannot reach the socket of this program: is it in a sandbox?",
	};
	uint64_t arguments[2] = { 0, RING_VERSION }, result = 0;
	uint32_t code;

	OW_TRY(remote_call(r, a->start_offset, a->socket_path, arguments, &result, a->err));
	code = (uint32_t)result;
	if (!code)
		return OW_OK;
	return error_set(a->err, OW_E_UNSUPPORTED, "process %d: %s", (int)a->pid,
			 code < ARRAY_COUNT(reasons) ? reasons[code]
						     : "the recorder did not start");
}

/* Whether a thread waits for a disk, or for a child that shares its memory (vfork): it does not stop before that is
 * over, and whoever asks it to waits as long. */
static bool is_asleep(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat_read(pid, tid, &stat) && stat.state == 'D';
}

/* A thread, or with 0 the process, has ended or is about to: the system refuses to let it be traced. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	return !proc_stat_read(pid, tid, &stat) || stat.exits || stat.state == 'Z' ||
	       stat.state == 'X';
}

/* OW_E_LIMIT: not now, not here. A thread that has been told to do something waits for a processor as it does without us:
 * that is counted, but not as a stop. */
static ow_status try_thread(struct attaching *a, pid_t tid, struct attach_report *report)
{
	int64_t begin, own, waited, stopped;
	struct remote r;
	ow_status status;

	a->asleep = is_asleep(a->pid, tid);
	if (a->asleep || !takes_faults(a->pid, tid))
		return OW_E_LIMIT;
	OW_TRY(check_tracer(a, tid));
	own = waited_for_processor(getpid(), gettid());
	status = remote_stop(&r, a->pid, tid, a->err);
	if (status != OW_OK)
		return has_ended(a->pid, tid) ? OW_E_LIMIT : status;
	begin = steady_ns();
	own = waited_for_processor(getpid(), gettid()) - own; /* it stood still already */
	waited = waited_for_processor(a->pid, tid);
	status = is_good_moment(a, &r) ? load_library(a, &r) : OW_E_LIMIT;
	if (status == OW_OK)
		status = start_recorder(a, &r);
	waited = waited_for_processor(a->pid, tid) - waited;
	remote_resume(&r);
	stopped = steady_ns() - begin - waited + own;
	if (stopped > report->stopped_ns)
		*report = (struct attach_report){ stopped, waited };
	return status;
}

static size_t list_threads(pid_t pid, pid_t *threads, size_t most)
{
	char path[64];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && count < most && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			threads[count++] = (pid_t)strtol(entry->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	return count;
}

/* Those that wait, or those that do not. */
static ow_status try_some(struct attaching *a, const pid_t *threads, size_t count, bool waiting,
			  struct attach_report *report)
{
	for (size_t i = 0; i < count; i++) {
		ow_status status = is_waiting(a->pid, threads[i]) == waiting
					   ? try_thread(a, threads[i], report)
					   : OW_E_LIMIT;

		if (status != OW_E_LIMIT)
			return status;
	}
	return OW_E_LIMIT;
}

static ow_status try_threads(struct attaching *a, struct attach_report *report)
{
	int64_t end = steady_ns() + PATIENCE_NS;
	pid_t threads[THREADS_MAX];

	do {
		size_t count = list_threads(a->pid, threads, THREADS_MAX);

		if (!count || has_ended(a->pid, 0))
			return error_set(a->err, OW_E_NOT_FOUND, "process %d has ended",
					 (int)a->pid);
		for (int waiting = 1; waiting >= 0; waiting--) {
			ow_status status = try_some(a, threads, count, waiting, report);

			if (status != OW_E_LIMIT)
				return status;
		}
		usleep(3000);
	} while (steady_ns() < end);
	if (a->asleep)
		return error_set(
			a->err, OW_E_LIMIT,
			"process %d waits for a disk, or for a child that it has just made, "
			"and cannot be stopped meanwhile (state D); try again",
			(int)a->pid);
	return error_set(
		a->err, OW_E_LIMIT,
		"process %d: no thread came by a place where a library can be loaded safely; try "
		"again",
		(int)a->pid);
}

struct outcome {
	ow_status status;
	struct attach_report report;
	struct error err;
};
_Static_assert(sizeof(struct outcome) <= PIPE_BUF, "hurry_apart hands it back");

static void try_now(void *arg, void *result)
{
	struct attaching *a = arg;
	struct outcome *outcome = result;
	struct hurry hurry;

	*outcome = (struct outcome){ 0 };
	a->err = &outcome->err;
	hurry_begin(&hurry);
	outcome->status = try_threads(a, &outcome->report);
	hurry_end(&hurry);
}

/* A thread that stands still waits for this one, which others should not keep from running. */
static ow_status try_in_a_hurry(struct attaching *a, struct attach_report *report)
{
	struct error *err = a->err;
	struct outcome outcome;
	struct hurry hurry;
	bool first, done;

	hurry_begin(&hurry); /* whether we may: then there is no better place */
	first = hurry.first;
	hurry_end(&hurry);
	done = !first && hurry_apart(try_now, a, &outcome, sizeof(outcome));
	/* Who may trace only what it has started may not when it is another process. */
	if (!done || outcome.status == OW_E_PERMISSION)
		try_now(a, &outcome);
	a->err = err;
	if (err && outcome.status != OW_OK)
		*err = outcome.err;
	*report = outcome.report;
	return outcome.status;
}

/* A program that has just been started is loaded and linked first: it gets the library in a moment. */
static ow_status read_maps(struct attaching *a)
{
	int64_t begin = steady_ns();
	char path[PATH_MAX];
	uint64_t base;

	for (;;) {
		OW_TRY(maps_read(a->pid, &a->maps, a->err));
		if (maps_find_object(a->maps.ptr, "libc.so.6", &base, path, sizeof(path)) ||
		    steady_ns() - begin > LINKING_NS)
			return OW_OK;
		usleep(1000);
	}
}

static ow_status join(struct attaching *a, struct mem *mem, struct attach_report *report)
{
	ow_status status;

	OW_TRY(check_process(a));
	OW_TRY(check_sandbox(a));
	buf_init(&a->maps, mem);
	status = read_maps(a);
	if (status == OW_OK)
		status = find_addresses(a);
	if (status == OW_OK)
		status = try_in_a_hurry(a, report);
	buf_release(&a->maps);
	return status;
}

/* What a process lacks that has just ended is not what keeps it from being joined. */
static bool is_over(pid_t pid)
{
	struct proc_stat stat;

	return !proc_stat_read(pid, 0, &stat) || (has_ended(pid, 0) && stat.threads <= 1);
}

ow_status attach_process(struct mem *mem, pid_t pid, const char *library, const char *socket_path,
			 struct attach_report *report, struct error *err)
{
	struct attaching a = {
		.pid = pid, .library = library, .socket_path = socket_path, .err = err
	};
	ow_status status;

	*report = (struct attach_report){ 0 };
	status = join(&a, mem, report);
	if (status == OW_OK || status == OW_E_NO_MEMORY || status == OW_E_NOT_FOUND ||
	    !is_over(pid))
		return status;
	return error_set(err, OW_E_NOT_FOUND, "process %d has ended", (int)pid);
}
