/*
 * capture_kineto_test.c: traces on demand, with a client of our own that speaks as PyTorch's does: it announces itself,
 * asks, and writes what it is told to; or ends before, or says nonsense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/str.h"
#include "live/capture/kineto.h"
#include "opwatch/live.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[64], name[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/opwatch-kineto-XXXXXX");
	snprintf(name, sizeof(name), "opwatch-test-%d", (int)getpid());
	setenv("OPWATCH_SOCKET", "/nonexistent", 1); /* a daemon that happens to run is not asked */
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const left[] = { "socket.lock", "rings/lock" };
	char path[600];

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(left); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, left[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/rings", folder);
	rmdir(path);
	return rmdir(folder);
}

/* ---- the client; runs in processes of its own ---- */

struct wire {
	uint64_t size;
	char type[32];
	char body[2048];
};

static socklen_t abstract(struct sockaddr_un *address, const char *text)
{
	size_t len = strlen(text);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path + 1, text, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 2);
}

static int client_socket(void)
{
	struct timeval patience = { .tv_sec = 60 };
	struct sockaddr_un address;
	char own[64];
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	socklen_t len;

	snprintf(own, sizeof(own), "dynoconfigclient-%d", (int)getpid());
	len = abstract(&address, own);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0)
		_exit(10);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* The server may not be there yet. */
static void say(int fd, struct wire *m, const char *type, size_t len)
{
	struct sockaddr_un address;
	socklen_t address_len = abstract(&address, name);

	m->size = len;
	snprintf(m->type, sizeof(m->type), "%s", type);
	for (int i = 0; i < 6000; i++) {
		if (sendto(fd, m, 40 + len, 0, (struct sockaddr *)&address, address_len) > 0)
			return;
		usleep(10000);
	}
	_exit(11);
}

static void hear(int fd, struct wire *m, const char *type)
{
	memset(m, 0, sizeof(*m));
	if (recv(fd, m, sizeof(*m) - 1, 0) < 40 || strcmp(m->type, type) != 0)
		_exit(12);
}

static void announce(int fd)
{
	struct wire m = { 0 };
	const int32_t pair[] = { 0, getpid() };

	memcpy(m.body, pair, sizeof(pair));
	m.body[8] = 42; /* the job */
	say(fd, &m, "ctxt", 16);
	hear(fd, &m, "ctxt");
}

/* Asks until there is something to do; its text is then in m->body. */
static void ask(int fd, struct wire *m)
{
	const int32_t words[] = { 3, 2, 42, 0, getpid(), getppid() };

	do {
		memcpy(m->body, words, sizeof(words));
		say(fd, m, "req", sizeof(words));
		hear(fd, m, "req");
		if (!m->size)
			usleep(10000);
	} while (!m->size);
}

/* As Kineto does: the pid goes between the name and its end, and the trace comes in pieces. */
static void write_trace(const char *config)
{
	const char *at = strstr(config, "ACTIVITIES_LOG_FILE=");
	struct str rest = str_from(at ? at + strlen("ACTIVITIES_LOG_FILE=") : NULL), path;
	char file[600];
	int fd;

	if (!str_split(&rest, '\n', &path) || !strstr(config, "ACTIVITIES_DURATION_MSECS=20\n"))
		_exit(13);
	snprintf(file, sizeof(file), "%.*s_%d.json", (int)path.len - 5, path.ptr, (int)getpid());
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, "{\"traceEvents\": [", 17) != 17)
		_exit(14);
	usleep(30000);
	if (write(fd, "]}\n", 3) != 3)
		_exit(15);
	close(fd);
}

enum way { WRITES, DIES, NONSENSE };

static pid_t start(enum way way)
{
	pid_t child = fork();
	struct wire m;
	int fd;

	assert_true(child >= 0);
	if (child)
		return child;
	fd = client_socket();
	if (way == NONSENSE) {
		memset(&m, 0xff, sizeof(m));
		say(fd, &m, "req", 10);
		say(fd, &m, "ctxt", 3);
		say(fd, &m, "what", 0);
	}
	announce(fd);
	ask(fd, &m);
	if (way == DIES)
		_exit(0);
	write_trace(m.body);
	pause();
	_exit(0);
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* ---- this side ---- */

struct heard {
	size_t lines;
	char text[4][800];
};

static void on_line(void *arg, const char *text, size_t len)
{
	struct heard *heard = arg;

	assert_true(heard->lines < 4);
	snprintf(heard->text[heard->lines++], 800, "%.*s", (int)len, text);
}

static ow_status capture(const int64_t *pids, size_t count, int64_t wait_ns, struct heard *heard,
			 struct ow_error *err)
{
	struct ow_capture_options options;

	*heard = (struct heard){ 0 };
	ow_capture_options_init(&options);
	options.dir = folder;
	options.for_ns = 20000000;
	options.wait_ns = wait_ns;
	options.socket = name;
	return ow_capture_kineto(&options, pids, count, on_line, heard, err);
}

#define PATIENCE ((int64_t)120 * 1000000000)

static void check_trace(const char *line, pid_t pid)
{
	char path[600];
	struct stat st;

	snprintf(path, sizeof(path), "%s/kineto_%d_%d.json", folder, (int)pid, (int)pid);
	assert_non_null(strstr(line, path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 20);
	assert_int_equal(unlink(path), 0);
}

static void jobs_write(void **state)
{
	struct ow_error err = { 0 };
	struct heard heard;
	int64_t pids[2];

	(void)state;
	pids[0] = start(WRITES);
	pids[1] = start(NONSENSE);
	assert_int_equal(capture(pids, 2, PATIENCE, &heard, &err), OW_OK);
	assert_int_equal(heard.lines, 2);
	for (int i = 0; i < 2; i++) {
		char word[32];

		snprintf(word, sizeof(word), "process %d", (int)pids[i]);
		check_trace(strstr(heard.text[0], word) ? heard.text[0] : heard.text[1],
			    (pid_t)pids[i]);
		end((pid_t)pids[i]);
	}
}

static void a_job_ends(void **state)
{
	struct ow_error err = { 0 };
	struct heard heard;
	pid_t child = start(DIES);
	int64_t pid = child;

	(void)state;
	/* It must not stay as a zombie, which still has its number. */
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(capture(&pid, 1, PATIENCE, &heard, &err), OW_E_NOT_FOUND);
	signal(SIGCHLD, SIG_DFL);
	assert_int_equal(heard.lines, 1);
	assert_non_null(strstr(heard.text[0], "ended before it had written"));
}

static void nobody_asks(void **state)
{
	struct ow_error err = { 0 };
	struct heard heard;

	(void)state;
	assert_int_equal(capture(NULL, 0, 1000000, &heard, &err), OW_E_NOT_FOUND);
	assert_non_null(strstr(err.text, "KINETO_USE_DAEMON=1"));
	assert_int_equal(heard.lines, 0);
}

static void the_socket_is_taken(void **state)
{
	struct ow_error err = { 0 };
	struct heard heard;
	struct kineto other;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(kineto_open(&other, &mem, name, &err), OW_OK);
	assert_int_equal(capture(NULL, 0, 1000000, &heard, &err), OW_E_LIMIT);
	assert_non_null(strstr(err.text, "is in use by another program"));
	kineto_close(&other);
}

/* ---- through the daemon ---- */

static volatile sig_atomic_t asked_to_end;

static void on_term(int number)
{
	(void)number;
	asked_to_end = 1;
}

static bool is_wanted(void *arg)
{
	(void)arg;
	return !asked_to_end;
}

static pid_t start_daemon(void)
{
	struct ow_daemon_options options;
	char socket_path[600], rings[600];
	pid_t child;

	snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
	snprintf(rings, sizeof(rings), "%s/rings", folder);
	setenv("OPWATCH_SOCKET", socket_path, 1);
	child = fork();
	assert_true(child >= 0);
	if (child) {
		for (int i = 0; i < 6000 && access(socket_path, F_OK) != 0; i++)
			usleep(10000);
		return child;
	}
	signal(SIGTERM, on_term);
	ow_daemon_options_init(&options);
	options.socket = socket_path;
	options.dir = rings;
	options.kineto_socket = name;
	options.keep_going = is_wanted;
	_exit(ow_daemon(&options, NULL) == OW_OK ? 0 : 1);
}

static void the_daemon_asks_for_it(void **state)
{
	pid_t daemon = start_daemon(), writes = start(WRITES), dies = start(DIES);
	int64_t pids[2] = { writes, dies };
	struct ow_error err = { 0 };
	struct heard heard;
	int status;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(capture(pids, 2, PATIENCE, &heard, &err), OW_OK);
	signal(SIGCHLD, SIG_DFL);
	assert_int_equal(heard.lines, 2);
	check_trace(strstr(heard.text[0], "bytes") ? heard.text[0] : heard.text[1], writes);
	assert_non_null(strstr(strstr(heard.text[0], "bytes") ? heard.text[1] : heard.text[0],
			       "ended before it had written"));
	kill(writes, SIGKILL);
	kill(daemon, SIGTERM);
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	assert_int_equal(status, 0);
	setenv("OPWATCH_SOCKET", "/nonexistent", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_write),
		cmocka_unit_test(a_job_ends),
		cmocka_unit_test(nobody_asks),
		cmocka_unit_test(the_socket_is_taken),
		cmocka_unit_test(the_daemon_asks_for_it),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
