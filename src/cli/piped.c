/* piped.c: see piped.h. */
#include "cli/piped.h"

#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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
		complain("opwatch %s: recordings are not for a terminal: -o x.opw, or -o - and a "
			 "pipe\n",
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
	if (n == 0 || errno == EPIPE) /* nobody reads on */
		return EXIT_GOOD;
	complain("opwatch: standard output: %s\n", strerror(errno));
	return EXIT_FAILED;
}

int piped_end(struct piped *piped, int code)
{
	int fd;

	if (!piped->file.path)
		return code;
	signals_release(); /* another signal ends the copying */
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
