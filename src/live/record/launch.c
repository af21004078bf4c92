/*
 * launch.c: starts a job under the recorder and records it until it ends: finds the recorder's library, makes the
 * job's environment, passes signals on, and reports or waits for processes that outlive the job's first one.
 * Called by src/api for `opwatch record`.
 */
#include "live/record/launch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "live/proc/proc.h"
#include "live/record/collector_int.h"
#include "opwatch_config.h"
#include "wire/elf/elf_symbols.h"
#include "wire/own/ring.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libopwatch-recorder.so"
#define VARIABLES 13
#define NAMED 8u
#define STOP_PATIENCE_NS (500 * 1000000LL)
#define SETTLE_NS (200 * 1000000LL) /* time for processes that are just about to end */
#define SEARCH_NS (500 * 1000000LL)

/*
 * Finds the library: at OPWATCH_RECORDER, beside this program or library, or in the private directory of an
 * installation.
 */

static bool is_beside(const char *file, const char *where, char *path, size_t size)
{
	char real[PATH_MAX], found[PATH_MAX + 64];
	char *slash;
	int len;

	if (!realpath(file, real))
		return false;
	slash = strrchr(real, '/');
	if (!slash)
		return false;
	len = snprintf(found, sizeof(found), "%.*s/%s" LIBRARY, (int)(slash - real), real, where);
	if (len <= 0 || (size_t)len >= sizeof(found) || access(found, R_OK) != 0 ||
	    !realpath(found, real))
		return false;
	len = snprintf(path, size, "%s", real);
	return len > 0 && (size_t)len < size;
}

ow_status recorder_find(char *path, size_t size, struct ow_error *err)
{
	static const char *const places[] = { "", "../lib/opwatch/",
					      "../" OPWATCH_LIBDIR "/opwatch/", "opwatch/" };
	const char *given = getenv("OPWATCH_RECORDER");
	const char *files[2] = { NULL, "/proc/self/exe" };
	Dl_info self;

	if (given && *given) {
		char real[PATH_MAX];

		if (!realpath(given, real) || strlen(real) >= size)
			return error_errno(err, errno, "OPWATCH_RECORDER: %s", given);
		snprintf(path, size, "%s", real);
		return OW_OK;
	}
	if (dladdr((void *)(uintptr_t)is_beside, &self) && self.dli_fname &&
	    strchr(self.dli_fname, '/'))
		files[0] = self.dli_fname;
	for (size_t f = 0; f < ARRAY_COUNT(files); f++)
		for (size_t i = 0; files[f] && i < ARRAY_COUNT(places); i++)
			if (is_beside(files[f], places[i], path, size))
				return OW_OK;
	return error_set(err, OW_E_UNSUPPORTED,
			 LIBRARY " was not found beside this program nor in lib/opwatch; set "
				 "OPWATCH_RECORDER to its path");
}

struct variable {
	const char *name, *value;
};

/* The recorder is appended to lists such as LD_PRELOAD, so the user's entries come first. */

/* Appends our value to the variable's present value. */
static const char *append_to_list(struct arena *arena, const char *name, const char *value)
{
	const char *there = getenv(name);

	if (!there || !*there)
		return value;
	if (strstr(there, value)) /* the job records itself already */
		return there;
	return arena_printf(arena, "%s:%s", there, value);
}

static bool is_named(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

static char **merge_environment(struct arena *arena, const struct variable *variables, size_t count)
{
	size_t there = 0, at = 0;
	char **env;

	while (environ[there])
		there++;
	env = ARENA_ARRAY(arena, char *, there + count + 1);
	if (!env)
		return NULL;
	for (size_t i = 0; i < there; i++) {
		bool replaced = false;

		for (size_t k = 0; k < count; k++)
			replaced |= is_named(environ[i], variables[k].name);
		if (!replaced)
			env[at++] = environ[i];
	}
	for (size_t k = 0; k < count; k++) {
		env[at] =
			(char *)arena_printf(arena, "%s=%s", variables[k].name, variables[k].value);
		if (!env[at++])
			return NULL;
	}
	return env;
}

/* Sets the NCCL plugin. Only one is possible, so the user's own takes precedence. A recorder built without
 * it has none. */
static void add_plugin(struct mem *mem, struct variable *list, size_t *count, const char *name,
		       const char *recorder, const char *symbol)
{
	const char *there = getenv(name);
	uint64_t offset;

	if ((!there || !*there) && elf_symbols_export(mem, recorder, symbol, &offset))
		list[(*count)++] = (struct variable){ name, recorder };
}

static unsigned long own_filters(void)
{
	char text[4096];

	return proc_read(getpid(), "status", text, sizeof(text)) > 0 ? ring_filters(text) : 0;
}

ow_status step_marker_check(const char *name, struct ow_error *err)
{
	if (!name)
		return OW_OK;
	if (!*name || strlen(name) >= RING_MARKER_MAX)
		return error_set(err, OW_E_USAGE,
				 "a step marker is the name of a function, of 1 to %u bytes",
				 RING_MARKER_MAX - 1);
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < ' ')
			return error_set(err, OW_E_USAGE,
					 "a step marker is the name of a function, in one line");
	return OW_OK;
}

char *const *environment_make(struct arena *arena, const char *recorder, const char *socket_path,
			      uint32_t ring_records, const char *step_marker, bool once)
{
	struct variable list[VARIABLES];
	size_t count = 0;

	list[count++] =
		(struct variable){ "LD_PRELOAD", append_to_list(arena, "LD_PRELOAD", recorder) };
	list[count++] = (struct variable){ "OPENCL_LAYERS",
					   append_to_list(arena, "OPENCL_LAYERS", recorder) };
	add_plugin(arena->mem, list, &count, "NCCL_PROFILER_PLUGIN", recorder, "ncclProfiler_v5");
	add_plugin(arena->mem, list, &count, "CUDA_INJECTION64_PATH", recorder,
		   "InitializeInjection");
	list[count++] = (struct variable){ RING_ENV_SOCKET, socket_path };
	list[count++] =
		(struct variable){ RING_ENV_VERSION, arena_printf(arena, "%u", RING_VERSION) };
	list[count++] =
		(struct variable){ RING_ENV_FILTERS, arena_printf(arena, "%lu", own_filters()) };
	list[count++] = (struct variable){ RING_ENV_ONCE, once ? "1" : "0" };
	if (ring_records)
		list[count++] = (struct variable){ RING_ENV_RECORDS,
						   arena_printf(arena, "%u", ring_records) };
	if (step_marker)
		list[count++] = (struct variable){ RING_ENV_MARKER, step_marker };
	for (size_t i = 0; i < count; i++)
		if (!list[i].value)
			return NULL;
	return merge_environment(arena, list, count);
}

/*
 * Daemons and background workers of the job. Connected processes are known. Others, which have not recorded
 * anything yet, are found by the collector's socket in the environment that they were started with. A process
 * that has overwritten its environment, or belongs to another user, and never connected is not found. Nothing is
 * done to these processes.
 */

static bool is_running(pid_t pid)
{
	struct proc_stat stat;

	if (!proc_stat_read(pid, 0, &stat))
		return false;
	/* the first thread may have ended while others continue */
	return stat.threads > 1 || (stat.state != 'Z' && stat.state != 'X' && !stat.exits);
}

/* Returns whether the process was started with that environment entry, which ends with NUL. */
static bool was_given(struct buf *room, pid_t pid, struct str entry)
{
	char path[64];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	buf_clear(room);
	if (!proc_read_file(room, path) || room->len < entry.len)
		return false;
	at = memmem(room->ptr, room->len, entry.ptr, entry.len);
	return at && (at == room->ptr || at[-1] == '\0');
}

static bool add_connected(const struct collector *c, struct pid_list *list)
{
	for (size_t i = 0; i < c->count; i++) {
		pid_t pid = (pid_t)c->processes[i]->pid;

		if (c->processes[i]->fd >= 0 && !pid_list_has(list, pid) && is_running(pid) &&
		    !pid_list_add(list, pid))
			return false;
	}
	return true;
}

static bool add_started(DIR *proc, struct str entry, struct pid_list *list)
{
	const struct dirent *each;
	struct buf room;
	bool good = true;

	buf_init(&room, list->mem);
	while (good && (each = readdir(proc)) != NULL) {
		int64_t pid;

		if (!str_to_i64(str_from(each->d_name), &pid) || pid < 1 || pid > INT32_MAX ||
		    pid == getpid() || pid_list_has(list, (pid_t)pid))
			continue;
		if (was_given(&room, (pid_t)pid, entry) && is_running((pid_t)pid))
			good = pid_list_add(list, (pid_t)pid);
		good &= !room.failed;
	}
	buf_release(&room);
	return good;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

bool surviving_children_find(const struct collector *c, struct pid_list *list)
{
	char entry[sizeof(RING_ENV_SOCKET) + sizeof(c->socket_path) + 2];
	int len = snprintf(entry, sizeof(entry), "%s=%s", RING_ENV_SOCKET, c->socket_path);
	DIR *proc;
	bool good = add_connected(c, list);

	proc = good && c->socket_path[0] ? opendir("/proc") : NULL;
	if (proc) {
		good = add_started(proc, str_make(entry, (size_t)len + 1), list);
		closedir(proc);
	}
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_number);
	return good;
}

/* Copies the name of a process in printable form, because processes choose their names and it is
 * shown on a terminal. */
static void name_of(pid_t pid, char name[PROC_NAME])
{
	struct proc_stat stat = { .name = "" };

	(void)proc_stat_read(pid, 0, &stat); /* the process may have ended by now */
	memcpy(name, stat.name, PROC_NAME);
	for (char *at = name; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

void surviving_children_describe(const struct pid_list *list, const char *one, const char *many,
				 char *to, size_t size)
{
	size_t at = (size_t)snprintf(to, size, "%zu process%s of the job still %s: ", list->count,
				     list->count == 1 ? "" : "es", list->count == 1 ? one : many);

	for (size_t i = 0; i < MIN(list->count, (size_t)NAMED) && at < size; i++) {
		char name[PROC_NAME];

		name_of(list->items[i], name);
		at += (size_t)snprintf(to + at, size - at, "%s%d%s%s%s", i ? ", " : "",
				       (int)list->items[i], name[0] ? " (" : "", name,
				       name[0] ? ")" : "");
	}
	if (list->count > NAMED && at < size)
		snprintf(to + at, size - at, " and %zu more", list->count - NAMED);
}

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

struct running {
	struct launch *launch;
	struct collector *c;
	pid_t pid;
	int signals; /* descriptor of the signals */
	sigset_t old_mask;
	bool ended;
	bool cancelled; /* a signal came after the job's first process had ended */
};

/* Runs in the child; calls only functions that are allowed there. */
static void become_job(const struct running *r, char *const *env, int report)
{
	int failure;

	signal(SIGPIPE, SIG_DFL); /* opwatch ignores this signal, but the program must not */
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	execvpe(r->launch->argv[0], (char *const *)r->launch->argv, env);
	failure = errno;
	if (write(report, &failure, sizeof(failure)) < 0)
		_Exit(126);
	_Exit(127);
}

static ow_status start_job(struct running *r, char *const *env, struct ow_error *err)
{
	int report[2], failure = 0;
	ssize_t n;

	if (pipe2(report, O_CLOEXEC) != 0)
		return error_errno(err, errno, "pipe");
	r->pid = fork();
	if (r->pid == 0)
		become_job(r, env, report[1]);
	close(report[1]);
	if (r->pid < 0) {
		close(report[0]);
		return error_errno(err, errno, "fork");
	}
	/* the pipe closes without data when the program has taken over */
	do
		n = read(report[0], &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	close(report[0]);
	r->launch->started = n <= 0;
	if (r->launch->started)
		return OW_OK;
	waitpid(r->pid, NULL, 0);
	r->launch->exit_code = failure == ENOENT ? 127 : 126; /* exit codes as in shells */
	return error_errno(err, failure, "%s", r->launch->argv[0]);
}

bool launch_is_there(const char *program)
{
	const char *path = getenv("PATH");
	struct str rest = str_from(path ? path : ""), folder;

	if (strchr(program, '/') || !path)
		return !strchr(program, '/') || access(program, F_OK) == 0;
	while (str_split(&rest, ':', &folder)) {
		char name[PATH_MAX];
		int len = snprintf(name, sizeof(name), "%.*s%s%s", STR_ARG(folder),
				   folder.len ? "/" : "", program);

		if (len >= (int)sizeof(name) || access(name, F_OK) == 0)
			return true;
	}
	return false;
}

/* Passes a signal on to the job, except those of the terminal, which reach the job directly. */
static void pass_on(struct running *r, const struct signalfd_siginfo *info)
{
	if (r->ended)
		r->cancelled |= info->ssi_signo == SIGINT || info->ssi_signo == SIGTERM ||
				info->ssi_signo == SIGHUP || info->ssi_signo == SIGQUIT;
	else if (info->ssi_code != SI_KERNEL)
		kill(r->pid, (int)info->ssi_signo);
}

static void look_at_job(struct running *r)
{
	int status;

	if (r->ended || waitpid(r->pid, &status, WNOHANG) != r->pid)
		return;
	r->ended = true;
	r->launch->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	r->launch->exit_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void take_signals(struct running *r)
{
	struct signalfd_siginfo info;

	while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			pass_on(r, &info);
	look_at_job(r);
}

static ow_status block_signals(struct running *r, struct ow_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < ARRAY_COUNT(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	if (sigprocmask(SIG_BLOCK, &set, &r->old_mask) != 0)
		return error_errno(err, errno, "signals");
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signals >= 0)
		return OW_OK;
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	return error_errno(err, errno, "signals");
}

static void run_turn(struct running *r)
{
	if (!collector_turn(r->c, r->signals))
		usleep(10000); /* without memory nothing is read; the job continues */
	take_signals(r);
}

/* Finds the remaining processes; none if memory runs out. */
static size_t find_left(const struct running *r, struct pid_list *list)
{
	pid_list_release(list);
	(void)!surviving_children_find(r->c, list);
	return list->count;
}

/* Until nothing is left, the time is over, or a signal comes. All processes are looked through only when none is
 * connected, and now and then. */
static size_t wait_for_left(struct running *r, int64_t patience_ns, int64_t search_ns,
			    struct pid_list *list)
{
	int64_t begin = steady_ns(), searched = begin;
	size_t left = find_left(r, list);

	while (left && !r->cancelled && steady_ns() - begin < patience_ns) {
		run_turn(r);
		if (collector_live(r->c) || steady_ns() - searched < search_ns)
			continue;
		left = find_left(r, list);
		searched = steady_ns();
	}
	return left ? find_left(r, list) : 0;
}

/* Reports processes that continue, and that they are no longer recorded. */
static void note_left(const struct running *r, const struct pid_list *list)
{
	char who[512], text[640];
	int len;

	surviving_children_describe(list, "ran", "ran", who, sizeof(who));
	len = snprintf(text, sizeof(text), "when the program and with it the recording ended, %s",
		       who);
	recording_add_text(r->c->recording, 0, LIVE_NOTE, 0, str_make(text, (size_t)len));
}

static void report_left(const struct running *r, const struct pid_list *list, const char *what)
{
	char who[512], text[640];
	int len;

	if (!r->c->message)
		return;
	surviving_children_describe(list, "runs", "run", who, sizeof(who));
	len = snprintf(text, sizeof(text), "the program has ended; %s; %s", who, what);
	r->c->message(r->c->message_arg, text, MIN((size_t)len, sizeof(text) - 1));
}

static void wait_for_children(struct running *r)
{
	struct pid_list list = { .mem = r->c->mem };
	size_t left = wait_for_left(r, SETTLE_NS, 0, &list);

	if (left && r->launch->wait_children) {
		report_left(r, &list, "recording continues until they end or a signal arrives");
		left = wait_for_left(r, INT64_MAX, SEARCH_NS, &list);
	} else if (left) {
		report_left(r, &list, "they are not recorded from now on");
	}
	if (left)
		note_left(r, &list);
	r->launch->left = (uint32_t)left;
	pid_list_release(&list);
}

static ow_status run_job(struct running *r, char *const *env, struct ow_error *err)
{
	OW_TRY(start_job(r, env, err));
	if (r->launch->begun)
		r->launch->begun(r->launch->begun_arg);
	while (!r->ended)
		run_turn(r);
	collector_drain(r->c);
	wait_for_children(r);
	collector_drain(r->c);
	if (collector_live(r->c))
		collector_stop(r->c, STOP_PATIENCE_NS);
	return OW_OK;
}

ow_status launch_job(struct launch *launch, struct collector *c, struct ow_error *err)
{
	struct running r = { .launch = launch, .c = c, .signals = -1 };
	struct arena arena;
	char *const *env;
	ow_status status;

	launch->exit_code = -1;
	arena_init(&arena, c->mem);
	env = environment_make(&arena, launch->recorder, c->socket_path, launch->ring_records,
			       launch->step_marker, true);
	status = env ? block_signals(&r, err) : error_no_memory(err);
	if (status == OW_OK) {
		status = run_job(&r, env, err);
		close(r.signals);
		sigprocmask(SIG_SETMASK, &r.old_mask, NULL);
	}
	arena_release(&arena);
	return status;
}
