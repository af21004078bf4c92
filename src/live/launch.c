/* launch.c: see launch.h. */
#include "live/launch.h"

#include "base/arena.h"
#include "live/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_PATIENCE_NS (500 * 1000000LL)

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

struct running {
	struct launch *launch;
	struct collector *c;
	pid_t pid;
	int signals; /* a descriptor */
	sigset_t old_mask;
	bool ended;
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
static void pass_on(const struct running *r, const struct signalfd_siginfo *info)
{
	if (info->ssi_code != SI_KERNEL)
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

static ow_status run(struct running *r, char *const *env, struct error *err)
{
	OW_TRY(start(r, env, err));
	if (r->launch->begun)
		r->launch->begun(r->launch->begun_arg);
	while (!r->ended) {
		if (!collector_turn(r->c, r->signals))
			usleep(10000); /* without memory nothing is read; the job goes on */
		take_signals(r);
	}
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
