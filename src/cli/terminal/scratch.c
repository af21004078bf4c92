/*
 * scratch.c: files that must not stay behind: what a signal removes, temporary files for the time of a command, and
 * recordings that go to standard output through one. Commands that write recordings or cut jobs call it. Files that a
 * command writes in one go are the library's business, which renames them when they are whole.
 */
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t caught;
static char guarded_part[4128], guarded_file[4096], guarded_folder[4096];

static void on_signal(int number)
{
	caught = number;
	interrupted = 1;
}

void signals_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal }, old;

	for (size_t i = 0; i < ARRAY_COUNT(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

bool signals_caught(void)
{
	return caught != 0;
}

/* Handles a signal; calls only async-signal-safe functions. */
static void on_end(int number)
{
	unlink(guarded_part);
	if (guarded_folder[0]) {
		unlink(guarded_file);
		rmdir(guarded_folder);
	}
	signal(number, SIG_DFL);
	raise(number);
}

void signals_pass_on(void)
{
	if (caught)
		on_end(caught);
}

static void guard(void (*from)(int), void (*to)(int))
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = to }, old;

	for (size_t i = 0; i < ARRAY_COUNT(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == from)
			sigaction(signals[i], &action, NULL);
}

void signals_release(void)
{
	guard(on_signal, SIG_DFL);
}

void signals_guard_cut(const char *file, const char *folder)
{
	struct atomic_path path;

	guarded_part[0] = '\0';
	if (atomic_path_find(&path, file, NULL) == OW_OK && !path.direct)
		snprintf(guarded_part, sizeof(guarded_part), "%s", path.temp);
	snprintf(guarded_file, sizeof(guarded_file), "%s", file);
	snprintf(guarded_folder, sizeof(guarded_folder), "%s", folder ? folder : "");
	guard(SIG_DFL, on_end);
}

void signals_guard_end(void)
{
	guard(on_end, SIG_DFL);
	guarded_part[0] = guarded_file[0] = guarded_folder[0] = '\0';
}

bool scratch_make(struct scratch *scratch, struct arena *arena, const char *name)
{
	const char *base = getenv("TMPDIR");
	char *folder = arena_printf(arena, "%s/opwatch-XXXXXX", base && *base ? base : "/tmp");
	char *path;

	*scratch = (struct scratch){ 0 };
	if (!folder || !mkdtemp(folder)) {
		complain("opwatch: %s: %s\n", folder ? folder : "out of memory", strerror(errno));
		return false;
	}
	path = arena_printf(arena, "%s/%s", folder, name);
	if (!path) {
		rmdir(folder);
		complain("opwatch: out of memory\n");
		return false;
	}
	*scratch = (struct scratch){ folder, path };
	signals_guard_cut(path, folder);
	return true;
}

void scratch_drop(struct scratch *scratch)
{
	if (!scratch->path)
		return;
	unlink(scratch->path);
	rmdir(scratch->folder);
	signals_guard_end();
	*scratch = (struct scratch){ 0 };
}

#define COPY_BYTES ((size_t)64 << 10)

bool is_standard_output(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

int piped_begin(struct piped *piped, const struct args *args, const char **path)
{
	*piped = (struct piped){ 0 };
	if (!is_standard_output(*path))
		return EXIT_GOOD;
	if (args->terminal.out) {
		complain("opwatch %s: a recording cannot be written to a terminal; use -o x.opw, "
			 "or -o - and a pipe\n",
			 args->command);
		return EXIT_USAGE;
	}
	if (!scratch_make(&piped->file, args->arena, "x.opw"))
		return EXIT_FAILED;
	*path = piped->file.path;
	return EXIT_GOOD;
}

static bool write_all(const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

static int copy(int fd)
{
	static char bytes[COPY_BYTES];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		if (!write_all(bytes, (size_t)n))
			break;
	if (n == 0 || errno == EPIPE) /* the reader has closed the pipe */
		return EXIT_GOOD;
	complain("opwatch: standard output: %s\n", strerror(errno));
	return EXIT_FAILED;
}

int piped_end(struct piped *piped, int code)
{
	int fd;

	if (!piped->file.path)
		return code;
	signals_release(); /* a further signal ends the copying */
	signals_guard_cut(piped->file.path, piped->file.folder);
	fd = code == EXIT_GOOD ? open(piped->file.path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		code = copy(fd);
		close(fd);
	} else if (code == EXIT_GOOD) {
		complain("opwatch: %s: %s\n", piped->file.path, strerror(errno));
		code = EXIT_FAILED;
	}
	scratch_drop(&piped->file);
	return code;
}

const char *piped_name(const struct piped *piped, const char *path)
{
	return piped->file.path ? "standard output" : path;
}
