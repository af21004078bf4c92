/*
 * screen.c: the whole terminal for `opwatch top`: raw keys, the alternate screen, frames, and the terminal restored however
 * the program ends. It draws lines; what they say is in jobtext.c.
 */
#include "cli/terminal/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l\033[H\033[2J"
#define LEAVE "\033[0m\033[?25h\033[?1049l"

/* Terminal state that must be restored; signal handlers read it. */
static struct {
	volatile sig_atomic_t open, ended, resized, continued;
	struct termios before, raw;
} the;

static void put_bytes(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static void restore_terminal(void)
{
	if (!the.open)
		return;
	the.open = 0;
	put_bytes(LEAVE, sizeof(LEAVE) - 1);
	tcsetattr(STDIN_FILENO, TCSANOW, &the.before);
}

static void on_end(int number)
{
	the.ended = number;
}

static void on_resize(int number)
{
	(void)number;
	the.resized = 1;
}

/* Handles Ctrl-Z: restores the terminal for the shell, and takes it back later. */
static void on_stop(int number)
{
	int error = errno;

	(void)number;
	put_bytes(LEAVE, sizeof(LEAVE) - 1);
	tcsetattr(STDIN_FILENO, TCSANOW, &the.before);
	raise(SIGSTOP);
	tcsetattr(STDIN_FILENO, TCSANOW, &the.raw);
	put_bytes(ENTER, sizeof(ENTER) - 1);
	the.resized = 1;
	errno = error;
}

static void catch_signals(bool catch)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = catch ? on_end : SIG_DFL };

	for (size_t i = 0; i < ARRAY_COUNT(ends); i++)
		sigaction(ends[i], &action, NULL);
	action.sa_handler = catch ? on_resize : SIG_DFL;
	sigaction(SIGWINCH, &action, NULL);
	action.sa_handler = catch ? on_stop : SIG_DFL;
	sigaction(SIGTSTP, &action, NULL);
}

bool screen_ended(void)
{
	return the.ended != 0;
}

static void measure(struct screen *s)
{
	struct winsize size;

	s->width = 80;
	s->height = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
		s->width = size.ws_col;
		s->height = size.ws_row;
	}
	the.resized = 0;
}

bool screen_open(struct screen *s, struct mem *mem, bool colour)
{
	static bool registered;

	*s = (struct screen){ .colour = colour };
	buf_init(&s->frame, mem);
	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &s->before) != 0)
		return false;
	the.before = the.raw = s->before;
	the.raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	the.raw.c_cc[VMIN] = 0;
	the.raw.c_cc[VTIME] = 0;
	the.ended = 0;
	if (!registered && atexit(restore_terminal) != 0)
		return false;
	registered = true;
	catch_signals(true);
	the.open = 1;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &the.raw) != 0) {
		the.open = 0;
		catch_signals(false);
		return false;
	}
	put_bytes(ENTER, sizeof(ENTER) - 1);
	measure(s);
	return true;
}

void screen_close(struct screen *s)
{
	restore_terminal();
	catch_signals(false);
	buf_release(&s->frame);
}

static int read_byte(int timeout_ms)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char c;
	int ready = poll(&in, 1, timeout_ms);

	if (ready <= 0)
		return KEY_NONE;
	return read(STDIN_FILENO, &c, 1) == 1 ? (int)c : KEY_EOF;
}

/* Reads the bytes that immediately follow an escape. */
static int read_sequence(void)
{
	static const struct {
		const char *text;
		int key;
	} known[] = { { "[A", KEY_UP },	  { "[B", KEY_DOWN },	  { "OA", KEY_UP },
		      { "OB", KEY_DOWN }, { "[5~", KEY_PAGE_UP }, { "[6~", KEY_PAGE_DOWN },
		      { "[H", KEY_HOME }, { "[F", KEY_END },	  { "[1~", KEY_HOME },
		      { "[4~", KEY_END }, { "OH", KEY_HOME },	  { "OF", KEY_END } };
	char text[8] = "";
	size_t len = 0;

	while (len < sizeof(text) - 1) {
		int c = read_byte(len ? 20 : 50);

		if (c == KEY_NONE || c == KEY_EOF)
			break;
		text[len++] = (char)c;
		if (len > 1 && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '~'))
			break;
	}
	text[len] = '\0';
	for (size_t i = 0; i < ARRAY_COUNT(known); i++)
		if (strcmp(text, known[i].text) == 0)
			return known[i].key;
	return len ? KEY_NONE : 27;
}

int screen_key(struct screen *s, int timeout_ms)
{
	int c;

	if (!the.resized && !the.ended) {
		c = read_byte(timeout_ms);
		if (c == 27)
			return read_sequence();
		if (c != KEY_NONE)
			return c;
	}
	if (!the.resized)
		return KEY_NONE;
	measure(s);
	return KEY_RESIZE;
}

const char *screen_style(bool colour, unsigned style)
{
	static const struct {
		unsigned style;
		const char *text;
	} known[] = { { 0, "\033[0m" },	  { 1, "\033[1m" },   { 2, "\033[2m" },
		      { 7, "\033[7m" },	  { 31, "\033[31m" }, { 32, "\033[32m" },
		      { 33, "\033[33m" }, { 34, "\033[34m" }, { 35, "\033[35m" },
		      { 36, "\033[36m" }, { 90, "\033[90m" }, { 94, "\033[94m" } };

	for (size_t i = 0; colour && i < ARRAY_COUNT(known); i++)
		if (known[i].style == style)
			return known[i].text;
	return "";
}

static size_t sequence_length(struct str text)
{
	size_t len = 2;

	if (text.len < 2 || text.ptr[0] != '\033' || text.ptr[1] != '[')
		return 0;
	while (len < text.len && !(text.ptr[len] >= '@' && text.ptr[len] <= '~'))
		len++;
	return MIN(len + 1, text.len);
}

struct str screen_fit(struct str text, size_t columns, size_t *used)
{
	struct str rest = text;

	*used = 0;
	while (rest.len) {
		size_t len = sequence_length(rest), escape;
		struct str plain, fits;

		if (len) {
			rest = str_skip(rest, len);
			continue;
		}
		escape = str_find_char(rest, '\033');
		if (escape == 0)
			break;
		plain = escape == STR_NONE ? rest : str_first(rest, escape);
		fits = utf8_fit(plain, columns - *used);
		*used += utf8_width(fits);
		rest = str_skip(rest, fits.len);
		if (fits.len < plain.len)
			break;
	}
	return str_first(text, text.len - rest.len);
}

void screen_begin(struct screen *s)
{
	buf_clear(&s->frame);
	buf_puts(&s->frame, "\033[?25l\033[H");
	s->row = 0;
}

uint32_t screen_left(const struct screen *s)
{
	return s->row < s->height ? s->height - s->row : 0;
}

void screen_line(struct screen *s, struct str text)
{
	size_t used;

	if (!screen_left(s))
		return;
	/* no line feed follows the last row, because the screen would scroll */
	if (s->row++)
		buf_puts(&s->frame, "\r\n");
	buf_add_str(&s->frame, screen_fit(text, s->width, &used));
	if (s->colour)
		buf_puts(&s->frame, "\033[0m");
	if (used < s->width)
		buf_puts(&s->frame, "\033[K");
}

void screen_end(struct screen *s)
{
	if (screen_left(s))
		buf_puts(&s->frame, "\r\n\033[J");
	if (!s->frame.failed)
		put_bytes(s->frame.ptr, s->frame.len);
}
