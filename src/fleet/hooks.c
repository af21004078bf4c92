/*
 * hooks.c: sends a message to an address (libcurl), or to a program that it starts. Called by the threads of outbox.c. A
 * program that does not end in time is killed with everything that it started in its process group.
 */
#include "fleet/hooks.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define POLL_NS 20000000

static bool goes_on(void *arg)
{
	const struct web_hook *h = arg;

	return !h->stop || !*h->stop;
}

ow_status web_hook_open(struct web_hook *h, struct mem *mem, const char *address, const char *token,
			struct ow_error *err)
{
	struct http_options options = { .connect_ms = 10000,
					.silence_ms = 30000,
					.keep_going = goes_on,
					.keep_going_arg = h,
					.json = true };
	struct str text = str_from(address), host;
	struct address parsed;
	size_t scheme = str_find(text, STR("://")), path;

	*h = (struct web_hook){ .mem = mem };
	arena_init(&h->arena, mem);
	if (!str_starts(text, STR("http://")) && !str_starts(text, STR("https://")))
		return error_set(err, OW_E_USAGE,
				 "'%s' is not an address: http://HOST:PORT/PATH or https://…",
				 address);
	path = str_find_char(str_skip(text, scheme + 3), '/');
	host = path == STR_NONE ? text : str_first(text, scheme + 3 + path);
	OW_TRY(address_parse(&parsed, &h->arena, host, err));
	if (str_find_char(str_skip(host, scheme + 3), ':') == STR_NONE)
		parsed.port = parsed.tls ? 443 : 80;
	h->target =
		path == STR_NONE ? "/" : arena_printf(&h->arena, "%s", address + scheme + 3 + path);
	if (!h->target)
		return error_no_memory(err);
	return http_new(&h->http, mem, &parsed, token, &options, err);
}

void web_hook_close(struct web_hook *h)
{
	if (h->http)
		http_free(h->http);
	if (h->mem)
		arena_release(&h->arena);
	*h = (struct web_hook){ 0 };
}

enum outbox_result web_hook_send(void *hook, uint32_t kind, struct str text,
				 const volatile bool *stop, char why[512])
{
	struct web_hook *h = hook;
	struct buf ignored;
	struct http_request request = {
		.target = h->target, .body = text, .answer = &ignored, .answer_limit = 1 << 20
	};
	struct http_answer answer;
	struct ow_error err = { 0 };
	ow_status status;

	(void)kind;
	buf_init(&ignored, h->mem);
	h->stop = stop;
	status = http_post(h->http, &request, &answer, &err);
	buf_release(&ignored);
	if (status != OW_OK) {
		snprintf(why, 512, "%.500s", err.text);
		return OUTBOX_LATER;
	}
	if (answer.outcome != HTTP_ANSWERED) {
		snprintf(why, 512, "%.500s", answer.text);
		return answer.outcome == HTTP_TOO_LONG ? OUTBOX_SENT : OUTBOX_LATER;
	}
	if (answer.status >= 200 && answer.status < 300)
		return OUTBOX_SENT;
	snprintf(why, 512, "HTTP status %ld: %.300s", answer.status, answer.text);
	return answer.status == 408 || answer.status == 429 || answer.status >= 500
		       ? OUTBOX_LATER
		       : OUTBOX_REFUSED;
}

ow_status command_hook_check(const char *program, struct ow_error *err)
{
	const char *path = getenv("PATH");
	struct str rest = str_from(path ? path : "/usr/bin:/bin"), folder;
	char full[PATH_MAX];

	if (strchr(program, '/')) {
		if (access(program, X_OK) == 0)
			return OW_OK;
		return error_errno(err, errno, "%s", program);
	}
	while (rest.len && str_split(&rest, ':', &folder)) {
		snprintf(full, sizeof(full), "%.*s/%s", STR_ARG(folder), program);
		if (access(full, X_OK) == 0)
			return OW_OK;
	}
	return error_set(err, OW_E_NOT_FOUND,
			 "%s: no program of that name; give a program without arguments, which "
			 "gets JSON on its standard input",
			 program);
}

/* Starts the program with its own process group, default signals, and the message as standard input. */
static int start(const char *program, int in, pid_t *pid)
{
	char *argv[] = { (char *)program, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int failed;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	failed = posix_spawnp(pid, program, &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return failed;
}

static bool wait_for(pid_t pid, int64_t until_ns, const volatile bool *stop, int *status)
{
	for (;;) {
		pid_t got = waitpid(pid, status, WNOHANG);

		if (got == pid || (got < 0 && errno != EINTR))
			return got == pid;
		if (steady_ns() >= until_ns || *stop) {
			kill(-pid, SIGKILL);
			waitpid(pid, status, 0);
			return false;
		}
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	}
}

/* Writes the whole message to a file before the program starts: the program need not read it, and opwatch never
 * waits for it. */
static int open_message(struct str text)
{
	int fd = memfd_create("message", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (write(fd, text.ptr, text.len) != (ssize_t)text.len || lseek(fd, 0, SEEK_SET) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

enum outbox_result command_hook_send(void *hook, uint32_t kind, struct str text,
				     const volatile bool *stop, char why[512])
{
	const struct command_hook *h = hook;
	int fd = open_message(text), status = 0, failed;
	pid_t pid = -1;

	(void)kind;
	failed = fd < 0 ? errno : start(h->program, fd, &pid);
	if (fd >= 0)
		close(fd);
	if (failed || pid <= 0) {
		snprintf(why, 512, "cannot be started: %s", strerror(failed));
		return OUTBOX_REFUSED;
	}
	if (!wait_for(pid, steady_ns() + h->limit_ns, stop, &status)) {
		snprintf(why, 512, "it was ended after %.0f s", (double)h->limit_ns / 1e9);
		return OUTBOX_REFUSED;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return OUTBOX_SENT;
	if (WIFEXITED(status))
		snprintf(why, 512, "it ended with status %d", WEXITSTATUS(status));
	else
		snprintf(why, 512, "signal %d ended it", WTERMSIG(status));
	return OUTBOX_REFUSED;
}
