/* output.c: see output.h. */
#include "cli/output.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

void interrupts_catch(bool catch)
{
	struct sigaction action = { .sa_handler = catch ? on_interrupt : SIG_DFL };

	sigaction(SIGINT, &action, NULL); /* no SA_RESTART: reading a line must return */
}

void terminal_measure(struct terminal *terminal)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	int64_t width;

	terminal->width = 80;
	terminal->height = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) {
		terminal->width = size.ws_col;
		terminal->height = size.ws_row ? size.ws_row : 24;
	} else if (columns && str_to_i64(str_from(columns), &width) && width > 0 && width < 10000) {
		terminal->width = (uint32_t)width;
	}
}

void terminal_look(struct terminal *terminal)
{
	const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");

	*terminal = (struct terminal){ .out = isatty(STDOUT_FILENO),
				       .err = isatty(STDERR_FILENO),
				       .in = isatty(STDIN_FILENO) };
	terminal_measure(terminal);
	terminal->colour =
		terminal->out && !(no_colour && *no_colour) && !(kind && strcmp(kind, "dumb") == 0);
}

void complain(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

void output_start(struct output_stream *out, bool paging, uint32_t height)
{
	out->fd = STDOUT_FILENO;
	out->closed = false;
	out->paging = paging;
	out->pager = 0;
	out->failure = 0;
	out->height = height;
	out->lines = 0;
	out->len = 0;
	fflush(stdout);
}

/* $PAGER, or less; standard output goes through it from here on. */
static void start_pager(struct output_stream *out)
{
	const char *pager = getenv("OPWATCH_PAGER"), *kind = getenv("TERM");
	int ends[2];
	pid_t child;

	out->paging = false;
	/* Pagers only complain of terminals that cannot move their cursor. */
	if ((!pager || !*pager) && (!kind || !*kind || strcmp(kind, "dumb") == 0))
		return;
	if (!pager || !*pager)
		pager = getenv("PAGER");
	if (!pager || !*pager)
		pager = "less";
	if (strcmp(pager, "cat") == 0 || pipe(ends) < 0)
		return;
	child = fork();
	if (child < 0) {
		close(ends[0]);
		close(ends[1]);
		return;
	}
	if (child == 0) {
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
		close(ends[1]);
		signal(SIGINT, SIG_DFL);
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		setenv("LESS", "FRX", 0);
		execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
		_exit(127);
	}
	close(ends[0]);
	out->fd = ends[1];
	out->pager = child;
}

static bool flush(struct output_stream *out)
{
	size_t done = 0;

	if (out->paging && out->lines + 1 > out->height)
		start_pager(out);
	while (done < out->len && !out->closed) {
		ssize_t n = write(out->fd, out->buffer + done, out->len - done);

		if (n < 0 && errno == EINTR && !interrupted)
			continue;
		if (n < 0 && !interrupted)
			out->failure = errno; /* told at the end, however much comes before that */
		if (n < 0 || interrupted)
			out->closed = true;
		else
			done += (size_t)n;
	}
	out->len = 0;
	return !out->closed;
}

static size_t count_lines(const char *text, size_t len)
{
	size_t lines = 0;

	for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + len - at))); at++)
		lines++;
	return lines;
}

bool output_write(void *arg, const void *bytes, size_t len)
{
	struct output_stream *out = arg;
	const char *from = bytes;

	if (out->paging)
		out->lines += count_lines(bytes, len);
	while (len && !out->closed) {
		size_t part = MIN(len, sizeof(out->buffer) - out->len);

		memcpy(out->buffer + out->len, from, part);
		out->len += part;
		from += part;
		len -= part;
		if (out->len == sizeof(out->buffer))
			flush(out);
	}
	return !out->closed;
}

bool output_end(struct output_stream *out)
{
	flush(out);
	if (out->pager) {
		close(out->fd);
		while (waitpid(out->pager, NULL, 0) < 0 && errno == EINTR)
			;
		out->pager = 0;
		out->fd = STDOUT_FILENO;
		out->failure = 0;
	}
	errno = out->failure;
	return out->failure == 0 || out->failure == EPIPE;
}

static const char *output_name = "standard output";

void output_is(const char *name)
{
	output_name = name;
}

ow_status output_failure(struct ow_error *err)
{
	err->status = OW_E_IO;
	snprintf(err->text, sizeof(err->text), "%s: %s", output_name, strerror(errno));
	return OW_E_IO;
}

ow_status output_complain(void)
{
	complain("opwatch: %s: %s\n", output_name, strerror(errno));
	return OW_E_IO;
}

FILE *page_open(struct page *page)
{
	*page = (struct page){ 0 };
	page->file = open_memstream(&page->text, &page->len);
	return page->file ? page->file : stdout;
}

bool page_close(struct page *page, bool paging, uint32_t height)
{
	static struct output_stream out;

	if (!page->file)
		return true;
	fclose(page->file);
	output_start(&out, paging, height);
	output_write(&out, page->text, page->len);
	free(page->text);
	return output_end(&out);
}
