/*
 * output.c: standard output of the program: a buffer, a pager for long text on a terminal, quiet about closed pipes; the
 * size and colours of the terminal; messages and progress lines on standard error. Everything that the commands print
 * goes through here or through stdio. It does not format tables: the library does.
 */
#include "cli/terminal/output.h"

#include "base/human.h"

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

	sigaction(SIGINT, &action, NULL); /* without SA_RESTART, so that reading a line returns */
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

/* Whether a character would drive the terminal instead of being shown: control characters of ASCII and, in two bytes, of Unicode,
 * and those that turn the direction of text. *len is how many bytes it has. */
static bool drives_terminal(const unsigned char *at, size_t *len)
{
	uint32_t code = 0;
	size_t used;

	*len = 1;
	if (*at == 0xd8 || *at == 0xe2) {
		used = utf8_decode(str_from((const char *)at), &code);
		if (utf8_turns_text(code)) {
			*len = used;
			return true;
		}
	}
	if (*at < 0x20)
		return *at && *at != '\n' && *at != '\t';
	if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) {
		*len = 2;
		return true;
	}
	return *at == 0x7f;
}

/* Prints a message; names in messages come from files, so control characters become U+FFFD. */
static void print_plain(const char *format, va_list args)
{
	unsigned char *at;
	char *text = NULL;
	size_t len;

	if (vasprintf(&text, format, args) < 0)
		return;
	for (at = (unsigned char *)text; *at; at += len) {
		if (drives_terminal(at, &len))
			fputs("\xef\xbf\xbd", stderr);
		else
			fputc(*at, stderr);
	}
	free(text);
}

void complain(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	print_plain(format, args);
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

/* Starts $PAGER or less; standard output goes through it from here on. */
static void start_pager(struct output_stream *out)
{
	const char *pager = getenv("OPWATCH_PAGER"), *kind = getenv("TERM");
	int ends[2];
	pid_t child;

	out->paging = false;
	/* pagers do not work on terminals that cannot move their cursor */
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
			out->failure = errno; /* output_end reports the failure */
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

#define CLEAR "\r\033[K"

static double seconds_since(const struct timespec *then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) / 1e9;
}

void progress_begin(struct progress_line *line, bool terminal)
{
	*line = (struct progress_line){ .terminal = terminal };
	clock_gettime(CLOCK_MONOTONIC, &line->start);
}

bool progress_due(struct progress_line *line)
{
	if (!line->terminal || seconds_since(&line->start) < 0.5 ||
	    seconds_since(&line->last) < 0.1)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &line->last);
	return true;
}

double progress_seconds(const struct progress_line *line)
{
	return seconds_since(&line->start);
}

void progress_show(struct progress_line *line, const char *format, ...)
{
	va_list args;

	line->shown = true;
	fputs(CLEAR, stderr);
	va_start(args, format);
	print_plain(format, args);
	va_end(args);
	fflush(stderr);
}

void progress_clear(struct progress_line *line)
{
	if (line->shown)
		fputs(CLEAR, stderr);
	line->shown = false;
}
