/* launch.c: see launch.h. */
#include "live/launch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "live/environment.h"
#include "live/outlive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_PATIENCE_NS (500 * 1000000LL)
#define SETTLE_NS (200 * 1000000LL) /* for those that are just about to end */
#define SEARCH_NS (500 * 1000000LL)

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

struct running {
	struct launch *launch;
	struct collector *c;
	pid_t pid;
	int signals; /* a descriptor */
	sigset_t old_mask;
	bool ended;
	bool cancelled; /* a signal came when there was nobody to pass it on to */
};

/* In the child; only what may be called there. */
static void become_job(const struct running *r, char *const *env, int report)
{
	int failure;

	signal(SIGPIPE, SIG_DFL); /* which the program ignores for itself */
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
	execvpe(r->launch->argv[0], (char *const *)r->launch->argv, env);
	failure = errno;
	if (write(report, &failure, sizeof(failure)) < 0)
		_Exit(126);
	_Exit(127);
}

static ow_status start(struct running *r, char *const *env, struct error *err)
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
	/* Ends without a word when the job's program has taken over. */
	do
		n = read(report[0], &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	close(report[0]);
	r->launch->started = n <= 0;
	if (r->launch->started)
		return OW_OK;
	waitpid(r->pid, NULL, 0);
	r->launch->exit_code = failure == ENOENT ? 127 : 126; /* as shells do */
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

/* What a terminal sends goes to the job by itself, since it is in the same group. */
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

static ow_status block_signals(struct running *r, struct error *err)
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

static void turn(struct running *r)
{
	if (!collector_turn(r->c, r->signals))
		usleep(10000); /* without memory nothing is read; the job goes on */
	take_signals(r);
}

/* ---- what runs on ---- */

/* Short of memory there is nobody, as far as is known. */
static size_t find_left(const struct running *r, struct pid_list *list)
{
	pid_list_release(list);
	(void)!outlive_find(r->c, list);
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
		turn(r);
		if (collector_live(r->c) || steady_ns() - searched < search_ns)
			continue;
		left = find_left(r, list);
		searched = steady_ns();
	}
	return left ? find_left(r, list) : 0;
}

/* Neither is lost without a word: who goes on, and that no more of it is recorded. */
static void note_left(const struct running *r, const struct pid_list *list)
{
	char who[512], text[640];
	int len;

	outlive_say(list, "ran", "ran", who, sizeof(who));
	len = snprintf(text, sizeof(text),
		       "when the program had ended and the recording with it, %s", who);
	recording_add_text(r->c->recording, 0, LIVE_NOTE, 0, str_make(text, (size_t)len));
}

static void tell_left(const struct running *r, const struct pid_list *list, const char *what)
{
	char who[512], text[640];
	int len;

	if (!r->c->message)
		return;
	outlive_say(list, "runs", "run", who, sizeof(who));
	len = snprintf(text, sizeof(text), "the program has ended; %s; %s", who, what);
	r->c->message(r->c->message_arg, text, MIN((size_t)len, sizeof(text) - 1));
}

static void outlast(struct running *r)
{
	struct pid_list list = { .mem = r->c->mem };
	size_t left = wait_for_left(r, SETTLE_NS, 0, &list);

	if (left && r->launch->wait_children) {
		tell_left(r, &list, "recording goes on until they end, or a signal comes");
		left = wait_for_left(r, INT64_MAX, SEARCH_NS, &list);
	} else if (left) {
		tell_left(r, &list, "what they do from now on is not recorded");
	}
	if (left)
		note_left(r, &list);
	r->launch->left = (uint32_t)left;
	pid_list_release(&list);
}

static ow_status run(struct running *r, char *const *env, struct error *err)
{
	OW_TRY(start(r, env, err));
	if (r->launch->begun)
		r->launch->begun(r->launch->begun_arg);
	while (!r->ended)
		turn(r);
	collector_drain(r->c);
	outlast(r);
	collector_drain(r->c);
	if (collector_live(r->c))
		collector_stop(r->c, STOP_PATIENCE_NS);
	return OW_OK;
}

ow_status launch_job(struct launch *launch, struct collector *c, struct error *err)
{
	struct running r = { .launch = launch, .c = c, .signals = -1 };
	struct arena arena;
	char *const *env;
	ow_status status;

	launch->exit_code = -1;
	arena_init(&arena, c->mem);
	env = environment_make(&arena, launch->recorder, c->socket_path, launch->ring_records);
	status = env ? block_signals(&r, err) : error_no_memory(err);
	if (status == OW_OK) {
		status = run(&r, env, err);
		close(r.signals);
		sigprocmask(SIG_SETMASK, &r.old_mask, NULL);
	}
	arena_release(&arena);
	return status;
}
