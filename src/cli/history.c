/* history.c: see history.h. */
#include "opwatch_config.h"

#if OPWATCH_HAVE_LIBEDIT

#include "base/base.h"
#include "cli/history.h"

#include <fcntl.h>
#include <histedit.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HISTORY_LINES 1000
#define HISTORY_BYTES (256 << 10) /* from which on the file is cut to so many lines */

static void make_directories(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
}

/* $XDG_STATE_HOME/opwatch/history, or ~/.local/state/…; directories are made as needed, but no home for
 * those who have none (daemons, build machines). */
static char *find_file(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path;

	if ((!state || !*state) && (!home || !*home || access(home, F_OK) < 0))
		return NULL;
	if (asprintf(&path, "%s%s/opwatch/history", state && *state ? state : home,
		     state && *state ? "" : "/.local/state") < 0)
		return NULL;
	make_directories(path);
	return path;
}

/* Readable by its owner only: lines may name private paths. Locked until it is closed. */
static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd >= 0 && flock(fd, LOCK_EX) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The lines of before, and of other shells, stay in the file; the oldest of a long file go. */
static void cut_file(struct line_history *h)
{
	int fd = open_file(h->path);
	struct stat st;
	HistEvent event;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size > HISTORY_BYTES)
		history(h->lines, &event, H_SAVE, h->path);
	close(fd);
}

bool history_open(struct line_history *h)
{
	HistEvent event;

	*h = (struct line_history){ .lines = history_init() };
	if (!h->lines)
		return false;
	h->path = find_file();
	history(h->lines, &event, H_SETSIZE, HISTORY_LINES);
	history(h->lines, &event, H_SETUNIQUE, 1);
	if (!h->path)
		return true;
	history(h->lines, &event, H_LOAD, h->path);
	cut_file(h);
	return true;
}

/* One line of a file of libedit: what is not plain becomes \\ooo. The first line says what the file is. */
static char *encode(const char *line, bool first)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		return NULL;
	fputs(first ? "_HiStOrY_V2_\n" : "", to);
	for (; *line; line++) {
		unsigned char c = (unsigned char)*line;

		fprintf(to, c > ' ' && c < 0x7f && c != '\\' ? "%c" : "\\%03o", c);
	}
	fputc('\n', to);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

static void append(const char *path, const char *line)
{
	int fd = open_file(path);
	struct stat st;
	char *text;

	if (fd < 0)
		return;
	text = fstat(fd, &st) == 0 ? encode(line, st.st_size == 0) : NULL;
	if (text)
		(void)!write(fd, text, strlen(text)); /* a full disk does not end a shell */
	free(text);
	close(fd);
}

void history_add(struct line_history *h, const char *line)
{
	HistEvent event;

	if (history(h->lines, &event, H_FIRST) >= 0 && strcmp(event.str, line) == 0)
		return;
	history(h->lines, &event, H_ENTER, line);
	if (h->path)
		append(h->path, line);
}

void history_close(struct line_history *h)
{
	if (h->lines)
		history_end(h->lines);
	free(h->path);
}

#endif
