/*
 * attach.c: loads the recorder into a running process and starts it (attach.h), by two calls that one of its threads
 * makes (remote_call.h).
 *
 * Loading a library allocates memory and takes the loader's locks, so the thread must not be stopped where it may hold
 * one of them. It is taken only in the program's own code, or in a system call that waits for none of these locks.
 * Otherwise it runs on at once, and another moment or thread is tried. Threads that wait come first: the job misses
 * nothing while they are stopped.
 */
#include "live/attach/attach.h"

#include "base/clock.h"
#include "live/attach/remote_call.h"
#include "live/proc/proc.h"
#include "wire/elf/elf_symbols.h"
#include "wire/own/ring.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS (10000 * 1000000LL)
#define LINKING_NS (200 * 1000000LL)
#define STACK_NEEDED ((uint64_t)96 << 10)
#define THREADS_MAX 64

struct attaching {
	struct mem *mem;
	pid_t pid;
	const char *library, *step_marker;
	char start_text[sizeof(((struct sockaddr_un *)0)->sun_path) + RING_MARKER_MAX +
			2]; /* arguments of the remote call */
	uint64_t dlopen_address;
	/* address of C library code that restores a thread; see remote_call.c */
	uint64_t sigreturn;
	/* the recorder library is loaded in the process, and its addresses are known */
	bool loaded;
	uint64_t start_address, status_address;
	bool asleep;	 /* the last examined thread cannot be stopped */
	struct buf maps; /* text of /proc/PID/maps */
	struct ow_error *err;
};

/* Checks that no other process traces the process, because a process can have only one tracer. */
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
			 "%s%s%s, and a process can have only one tracer: end that one first, or "
			 "use 'opwatch stacks %d', which needs no tracing",
			 (int)a->pid, tracer, stat.name[0] ? " (" : "", stat.name,
			 stat.name[0] ? ")" : "", (int)a->pid);
}

/* Refuses a process that runs no code now, or never will. */
static ow_status check_state(const struct attaching *a)
{
	struct proc_stat stat;
	char path[64], exe[2];

	if (!proc_stat_read(a->pid, 0, &stat))
		return OW_OK; /* other checks report the reason */
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)a->pid);
	if (stat.state == 'Z' && stat.threads > 1)
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "cannot attach to process %d: its main thread has ended while "
				 "other threads still run",
				 (int)a->pid);
	if (stat.state == 'Z' || stat.state == 'X')
		return error_set(
			a->err, OW_E_NOT_FOUND,
			"process %d has ended (a zombie: its parent has not waited for it yet)",
			(int)a->pid);
	OW_TRY(check_tracer(a, a->pid));
	if (stat.state == 'T')
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "process %d is stopped: resume it first (kill -CONT %d)",
				 (int)a->pid, (int)a->pid);
	if (readlink(path, exe, sizeof(exe)) < 0 && errno == ENOENT)
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "process %d is a kernel thread: there is no program to attach to",
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
		return error_set(a->err, OW_E_USAGE, "process %d is opwatch itself", (int)a->pid);
	OW_TRY(proc_check_first(a->pid, a->err));
	OW_TRY(check_state(a));
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)a->pid);
	their_len = readlink(path, theirs, sizeof(theirs));
	our_len = readlink("/proc/self/ns/mnt", ours, sizeof(ours));
	if (their_len <= 0)
		return error_set(a->err, OW_E_PERMISSION,
				 "not allowed to inspect process %d: it belongs to another user, "
				 "or the system forbids it",
				 (int)a->pid);
	if (their_len != our_len || memcmp(theirs, ours, (size_t)our_len) != 0)
		return error_set(
			a->err, OW_E_UNSUPPORTED,
			"process %d runs in a container: run opwatch inside that container",
			(int)a->pid);
	return OW_OK;
}

static unsigned long filters_of(pid_t pid)
{
	char text[4096];

	return proc_read(pid, "status", text, sizeof(text)) > 0 ? ring_filters(text) : 0;
}

/* Refuses a process with a system call filter that may kill it for the recorder's calls. */
static ow_status check_sandbox(const struct attaching *a)
{
	if (filters_of(a->pid) <= filters_of(getpid()))
		return OW_OK;
	return error_set(a->err, OW_E_UNSUPPORTED,
			 "process %d is in a sandbox (seccomp) that could kill it for the "
			 "recorder's system calls, so opwatch does not attach; use 'opwatch stacks "
			 "%d', which loads nothing into it",
			 (int)a->pid, (int)a->pid);
}

static bool is_32_bit(pid_t pid)
{
	unsigned char head[EI_NIDENT] = { 0 };

	return proc_read(pid, "exe", (char *)head, sizeof(head)) > EI_CLASS &&
	       memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == ELFCLASS32;
}

/* Finds the first mapping of an existing file with that name. */
static bool find_object(const struct attaching *a, struct str file_name, struct proc_map *map)
{
	struct str rest = buf_str(&a->maps);

	while (proc_next_file_map(&rest, map))
		if (!map->deleted &&
		    str_eq(str_skip(map->path, str_rfind_char(map->path, '/') + 1), file_name))
			return true;
	return false;
}

static bool find_address(const struct attaching *a, uint64_t address, struct proc_map *map)
{
	struct str rest = buf_str(&a->maps);

	while (proc_next_map(&rest, map))
		if (address >= map->start && address < map->end)
			return true;
	return false;
}

/* Searches the code of the C library in the process, before any thread is stopped. */
static bool find_sigreturn(struct attaching *a, struct str libc)
{
	struct str rest = buf_str(&a->maps);
	struct proc_map map;
	struct buf code;

	buf_init(&code, a->mem);
	a->sigreturn = 0;
	while (!a->sigreturn && proc_next_map(&rest, &map)) {
		size_t len = (size_t)(map.end - map.start), at;
		struct iovec here, there = { (void *)(uintptr_t)map.start, len };

		if (!map.executable || !str_eq(map.path, libc))
			continue;
		buf_clear(&code);
		if (!buf_reserve(&code, len))
			break;
		here = (struct iovec){ code.ptr, len };
		if (process_vm_readv(a->pid, &here, 1, &there, 1, 0) != (ssize_t)len)
			break;
		at = remote_call_find_sigreturn(code.ptr, len);
		if (at != SIZE_MAX)
			a->sigreturn = map.start + at;
	}
	buf_release(&code);
	return a->sigreturn != 0;
}

/* Determines whether the recorder is loaded, and the addresses of its start function and status. */
static ow_status find_recorder(struct attaching *a)
{
	struct proc_map map;

	if (!elf_symbols_export(a->mem, a->library, "opwatch_recorder_start", &a->start_address) ||
	    !elf_symbols_export(a->mem, a->library, "opwatch_recorder_status", &a->status_address))
		return error_set(a->err, OW_E_UNSUPPORTED, "%s: not an opwatch recorder library",
				 a->library);
	a->loaded = find_object(a, STR("libopwatch-recorder.so"), &map) &&
		    str_eq(map.path, str_from(a->library));
	if (a->loaded) {
		a->start_address += map.start;
		a->status_address += map.start;
	}
	return OW_OK;
}

static ow_status find_addresses(struct attaching *a)
{
	char libc[PATH_MAX];
	uint64_t offset = 0;
	struct proc_map map;

	if (is_32_bit(a->pid))
		return error_set(
			a->err, OW_E_UNSUPPORTED,
			"process %d is a 32-bit program: opwatch attaches only to 64-bit programs",
			(int)a->pid);
	if (!find_object(a, STR("libc.so.6"), &map) || map.path.len >= sizeof(libc))
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "cannot attach to process %d: it does not use the GNU C library "
				 "(it is linked statically, or uses another one)",
				 (int)a->pid);
	snprintf(libc, sizeof(libc), "%.*s", STR_ARG(map.path));
	if (!elf_symbols_export(a->mem, libc, "dlopen", &offset) &&
	    !elf_symbols_export(a->mem, libc, "__libc_dlopen_mode", &offset))
		return error_set(a->err, OW_E_UNSUPPORTED, "%s: has no function dlopen", libc);
	a->dlopen_address = map.start + offset;
	if (!find_sigreturn(a, map.path))
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "cannot attach to process %d: %s has no code that returns from a "
				 "signal handler, and opwatch needs that to resume the thread",
				 (int)a->pid, libc);
	return find_recorder(a);
}

/* Returns how long the thread has waited for a processor so far; 0 if unknown. */
static int64_t waited_for_processor(pid_t pid, pid_t tid)
{
	char what[48], text[128], *end;

	snprintf(what, sizeof(what), "task/%d/schedstat", (int)tid);
	if (proc_read(pid, what, text, sizeof(text)) <= 0)
		return 0;
	(void)strtoull(text, &end, 10);
	return (int64_t)strtoull(end, NULL, 10);
}

/* Returns whether the thread waits in a harmless system call, as far as /proc shows without
 * stopping it. */
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
		return false; /* the thread is running */
	(void)strtoull(end, &end, 16);
	second = strtoull(end, &end, 16);
	return remote_call_is_harmless(call, second);
}

static bool is_good_moment(const struct attaching *a, const struct traced_thread *r)
{
	struct proc_map map;

	if (!find_address(a, r->stack, &map))
		return false;
	if (!str_eq(map.path, STR("[stack]")) && r->stack - map.start < STACK_NEEDED)
		return false; /* only the stack of the first thread grows by itself */
	if (traced_thread_in_call(r))
		return remote_call_is_harmless(r->call, r->call_argument);
	return find_address(a, r->instruction, &map) && !str_has(map.path, STR("/libc.so")) &&
	       !str_has(map.path, STR("/ld-linux")) && !str_has(map.path, STR("malloc")) &&
	       !str_has(map.path, STR("/libpthread")) && !str_has(map.path, STR("/libdl")) &&
	       !str_starts(map.path, STR("["));
}

/* The first call loads the library, the second one starts it. Between them the thread runs on: where the library is
 * stands in the list of mappings, which takes too long to read while a thread is stopped. */
static ow_status make_call(const struct attaching *a, struct traced_thread *r)
{
	if (!a->loaded)
		return remote_call(r, a->sigreturn, a->dlopen_address, a->library,
				   2 /* the argument 2 is RTLD_NOW */, a->err);
	return remote_call(r, a->sigreturn, a->start_address, a->start_text,
			   RING_VERSION | (a->step_marker ? RING_WITH_MARKER : 0), a->err);
}

/* Explains the return value of the start function. */
static ow_status check_started(const struct attaching *a)
{
	static const char *const reasons[] = {
		/* NOLINTNEXTLINE(bugprone-suspicious-missing-comma) */
		[1] = "a recorder of another version or installation is already loaded: restart "
		      "the program",
		[2] = "the path of the socket is too long",
		[3] = "it is out of memory",
		[4] = "its limits do not allow the recorder's memory (see ulimit -f, -n, -v)",
		[5] = "it is already being recorded",
		[6] = "it cannot connect to opwatch's socket: is it in a sandbox?",
		[7] = "its limit of open files (ulimit -n) is below 128",
		[8] = "its code enters the strict sandbox (seccomp) with its own system call "
		      "instruction; the recorder's calls would then kill it",
		[9] = "it is in a sandbox, or its code enters one with its own system call "
		      "instruction",
	};
	int code = -1;
	struct iovec here = { &code, sizeof(code) },
		     there = { (void *)(uintptr_t)a->status_address, sizeof(code) };

	if (process_vm_readv(a->pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof(code))
		return error_set(a->err, OW_E_NOT_FOUND,
				 "process %d ended while opwatch was attaching", (int)a->pid);
	if (!code)
		return OW_OK;
	return error_set(a->err, OW_E_UNSUPPORTED, "process %d: %s", (int)a->pid,
			 code > 0 && (size_t)code < ARRAY_COUNT(reasons)
				 ? reasons[code]
				 : "the recorder did not start");
}

/* Whether a thread waits for a disk, or for a child that shares its memory (vfork). It would stop only after that, and the tracer
 * would wait as long. */
static bool is_asleep(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat_read(pid, tid, &stat) && stat.state == 'D';
}

/* Returns whether a thread, or with tid 0 the process, has ended or is about to, so that the
 * kernel refuses tracing. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	return !proc_stat_read(pid, tid, &stat) || stat.exits || stat.state == 'Z' ||
	       stat.state == 'X';
}

/* OW_E_LIMIT: not now, not here. While the thread makes the call it waits for a processor like any other:
 * that is counted, but not as a stop. */
static ow_status try_thread(struct attaching *a, pid_t tid, struct attach_report *report)
{
	int64_t begin, own, waited, stopped;
	struct traced_thread r;
	ow_status status;

	a->asleep = is_asleep(a->pid, tid);
	if (a->asleep)
		return OW_E_LIMIT;
	OW_TRY(check_tracer(a, tid));
	own = waited_for_processor(getpid(), gettid());
	status = traced_thread_stop(&r, a->pid, tid, a->err);
	if (status != OW_OK)
		return has_ended(a->pid, tid) ? OW_E_LIMIT : status;
	begin = steady_ns();
	own = waited_for_processor(getpid(), gettid()) - own; /* the thread was already stopped */
	waited = waited_for_processor(a->pid, tid);
	status = is_good_moment(a, &r) ? make_call(a, &r) : OW_E_LIMIT;
	waited = waited_for_processor(a->pid, tid) - waited;
	traced_thread_resume(&r);
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

/* Tries the waiting threads, or the running ones. */
static ow_status try_waiting_or_running(struct attaching *a, const pid_t *threads, size_t count,
					bool waiting, struct attach_report *report)
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
			ow_status status =
				try_waiting_or_running(a, threads, count, waiting, report);

			if (status != OW_E_LIMIT)
				return status;
		}
		usleep(3000);
	} while (steady_ns() < end);
	if (a->asleep)
		return error_set(a->err, OW_E_LIMIT,
				 "process %d cannot be stopped while it waits for a disk or for a "
				 "child that it has just started (state D); try again",
				 (int)a->pid);
	return error_set(a->err, OW_E_LIMIT,
			 "process %d: no thread reached a point where a library can be loaded "
			 "safely; try again",
			 (int)a->pid);
}

struct outcome {
	ow_status status;
	struct attach_report report;
	struct ow_error err;
};
_Static_assert(sizeof(struct outcome) <= PIPE_BUF, "must fit one write to a pipe");

static void try_boosted(void *arg, void *result)
{
	struct attaching *a = arg;
	struct outcome *outcome = result;
	struct sched_boost boost;

	*outcome = (struct outcome){ 0 };
	a->err = &outcome->err;
	sched_boost_begin(&boost);
	outcome->status = try_threads(a, &outcome->report);
	sched_boost_end(&boost);
}

/* Attaches with raised priority: a stopped thread waits for this one, so other threads should
 * not delay it. */
static ow_status try_with_boost(struct attaching *a, struct attach_report *report)
{
	struct ow_error *err = a->err;
	struct outcome outcome;
	struct sched_boost boost;
	bool first, done;

	sched_boost_begin(&boost); /* tests whether the boost is allowed */
	first = boost.first;
	sched_boost_end(&boost);
	done = !first && sched_boost_apart(try_boosted, a, &outcome, sizeof(outcome));
	/* a process that may trace only its children needs the right for another process */
	if (!done || outcome.status == OW_E_PERMISSION)
		try_boosted(a, &outcome);
	a->err = err;
	if (err && outcome.status != OW_OK)
		*err = outcome.err;
	if (outcome.report.stopped_ns > report->stopped_ns)
		*report = outcome.report;
	return outcome.status;
}

/* Reads the maps. A program that was just started is still being loaded, so this waits for its
 * libraries. */
static ow_status read_maps(struct attaching *a)
{
	int64_t begin = steady_ns();
	struct proc_map map;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)a->pid);
	for (;;) {
		buf_clear(&a->maps);
		if (!proc_read_file(&a->maps, path))
			return a->maps.failed
				       ? error_no_memory(a->err)
				       : error_errno(a->err, errno, "process %d", (int)a->pid);
		if (!a->maps.len)
			return error_set(a->err, OW_E_NOT_FOUND, "process %d has ended",
					 (int)a->pid);
		if (find_object(a, STR("libc.so.6"), &map) || steady_ns() - begin > LINKING_NS)
			return OW_OK;
		usleep(1000);
	}
}

static ow_status load_recorder(struct attaching *a, struct attach_report *report)
{
	OW_TRY(try_with_boost(a, report));
	OW_TRY(read_maps(a));
	OW_TRY(find_recorder(a));
	if (!a->loaded)
		return error_set(a->err, OW_E_UNSUPPORTED,
				 "process %d could not load %s: can it read that file?",
				 (int)a->pid, a->library);
	return OW_OK;
}

static ow_status join_process(struct attaching *a, struct attach_report *report)
{
	ow_status status;

	OW_TRY(check_process(a));
	OW_TRY(check_sandbox(a));
	buf_init(&a->maps, a->mem);
	status = read_maps(a);
	if (status == OW_OK)
		status = find_addresses(a);
	if (status == OW_OK && !a->loaded)
		status = load_recorder(a, report);
	if (status == OW_OK)
		status = try_with_boost(a, report);
	buf_release(&a->maps);
	return status == OW_OK ? check_started(a) : status;
}

/* Returns whether the process is ending; a missing part is then not the reason for the failure. */
static bool is_over(pid_t pid)
{
	struct proc_stat stat;

	return !proc_stat_read(pid, 0, &stat) || (has_ended(pid, 0) && stat.threads <= 1);
}

/* What differs between a program and the next one that the process executes: where the kernel has put its parts. */
struct program_places {
	char auxv[512];
	ssize_t len;
};

static void read_places(pid_t pid, struct program_places *to)
{
	to->len = proc_read(pid, "auxv", to->auxv, sizeof(to->auxv));
}

static bool has_executed(pid_t pid, const struct program_places *before)
{
	struct program_places now;

	read_places(pid, &now);
	return before->len > 0 && now.len >= 0 &&
	       (now.len != before->len || memcmp(now.auxv, before->auxv, (size_t)now.len) != 0);
}

ow_status attach_process(struct mem *mem, pid_t pid, const char *library, const char *socket_path,
			 const char *step_marker, struct attach_report *report,
			 struct ow_error *err)
{
	struct attaching a = {
		.mem = mem, .pid = pid, .library = library, .step_marker = step_marker, .err = err
	};
	struct program_places places;
	ow_status status;

	read_places(pid, &places);
	snprintf(a.start_text, sizeof(a.start_text), "%s%s%s", socket_path, step_marker ? "\n" : "",
		 step_marker ? step_marker : "");
	*report = (struct attach_report){ 0 };
	status = join_process(&a, report);
	if (status == OW_OK || status == OW_E_NO_MEMORY)
		return status;
	if (!is_over(pid))
		return has_executed(pid, &places)
			       ? error_set(err, OW_E_UNSUPPORTED,
					   "process %d executed another program while opwatch was "
					   "attaching: try again",
					   (int)pid)
			       : status;
	return status == OW_E_NOT_FOUND
		       ? status
		       : error_set(err, OW_E_NOT_FOUND, "process %d has ended", (int)pid);
}
