/*
 * lineedit.c: lines from a person, through libedit: prompt, editing, Tab completion, and a history in the user's state
 * directory that several shells share; or plain lines from a file or a pipe, without a prompt. Both shells (shell.c,
 * sqlshell.c) read through it. It does not know what the lines mean.
 */
#include "cli/shell/lineedit.h"

#include "cli/terminal/output.h"
#include "opwatch_config.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#if OPWATCH_HAVE_LIBEDIT
#include <fcntl.h>
#include <histedit.h>
#include <sys/file.h>
#include <sys/stat.h>
#endif

#define LINE_BYTES ((size_t)1 << 20) /* longest line that is accepted */

#if OPWATCH_HAVE_LIBEDIT
struct line_history {
	struct history *lines;
	char *path; /* path of the history; NULL if there is no place to keep it */
};
#endif

struct line_reader {
	const char *prompt;
	complete_fn complete;
	void *arg;
	bool interactive;
	char *line; /* buffer of LINE_BYTES, for input without a terminal */
#if OPWATCH_HAVE_LIBEDIT
	EditLine *edit;
	struct line_history history;
	mbstate_t decode;
#endif
};

void completion_add(struct completions *out, const char *word, struct str prefix)
{
	const char **items;

	if (!word || !str_starts(str_from(word), prefix))
		return;
	items = arena_grow(out->arena, out->items, out->count, &out->cap, sizeof(*items));
	if (!items)
		return;
	out->items = items;
	out->items[out->count++] = word;
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void completions_sort(struct completions *out)
{
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), compare_words);
}

static enum line_result read_plain(struct line_reader *reader, struct str *line)
{
	size_t len = 0;
	int c;

	if (reader->interactive) {
		fputs(reader->prompt, stdout);
		fflush(stdout);
	}
	if (!reader->line && !(reader->line = malloc(LINE_BYTES)))
		return LINE_END;
	while ((c = getc(stdin)) != EOF && c != '\n') {
		if (len == LINE_BYTES) {
			fprintf(stderr, "a line has more than %zu bytes; stopping\n", LINE_BYTES);
			return LINE_END;
		}
		reader->line[len++] = (char)c;
	}
	if (c == EOF && interrupted) {
		clearerr(stdin);
		return LINE_INTERRUPTED;
	}
	if (c == EOF && !len)
		return LINE_END;
	*line = str_make(reader->line, len);
	return LINE_READ;
}

#if OPWATCH_HAVE_LIBEDIT

#define HISTORY_LINES 1000
#define HISTORY_BYTES (256 << 10) /* a larger history file is cut to HISTORY_LINES */

static void make_directories(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
}

/* Finds $XDG_STATE_HOME/opwatch/history, or ~/.local/state/…; creates directories as needed, but
 * no home directory for users without one (daemons, build machines). */
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

/* Opens the history, readable only by its owner, because lines may name private paths. It is
 * locked until it is closed. */
static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd >= 0 && flock(fd, LOCK_EX) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Cuts the history: lines of earlier and of other shells stay; the oldest lines of a long file
 * are dropped. */
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

static bool history_open(struct line_history *h)
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

/* Encodes one line in the format of libedit: bytes that are not plain ASCII become \\ooo. The first line
 * names the format. */
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
		(void)!write(fd, text, strlen(text)); /* a full disk must not end the shell */
	free(text);
	close(fd);
}

static void history_add(struct line_history *h, const char *line)
{
	HistEvent event;

	if (history(h->lines, &event, H_FIRST) >= 0 && strcmp(event.str, line) == 0)
		return;
	history(h->lines, &event, H_ENTER, line);
	if (h->path)
		append(h->path, line);
}

static void history_close(struct line_history *h)
{
	if (h->lines)
		history_end(h->lines);
	free(h->path);
}

static char *prompt_of(EditLine *edit)
{
	struct line_reader *reader = NULL;
	void *data = NULL;

	el_get(edit, EL_CLIENTDATA, &data);
	reader = data;
	return (char *)(uintptr_t)reader->prompt;
}

/* Waits for a key. SIGINT is blocked during editing and allowed only here, so that it cannot
 * arrive between the check and the wait. */
static bool wait_for_key(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	sigset_t open_mask;

	pthread_sigmask(SIG_BLOCK, NULL, &open_mask);
	sigdelset(&open_mask, SIGINT);
	while (!interrupted) {
		int ready = ppoll(&in, 1, NULL, &open_mask);

		if (ready > 0)
			return !interrupted;
		if (ready < 0 && errno != EINTR)
			return true; /* the following read reports the error */
	}
	return false;
}

/* Reads a character. libedit restarts an interrupted read; this function does not, so that
 * Ctrl-C gives a new prompt. */
static int read_char(EditLine *edit, wchar_t *to)
{
	struct line_reader *reader = NULL;
	void *data = NULL;

	el_get(edit, EL_CLIENTDATA, &data);
	reader = data;
	for (;;) {
		char byte;
		size_t used;
		ssize_t n;

		if (!wait_for_key()) {
			errno = EINTR;
			return -1;
		}
		n = read(STDIN_FILENO, &byte, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		used = mbrtowc(to, &byte, 1, &reader->decode);
		if (used == (size_t)-2)
			continue;
		if (used == (size_t)-1) {
			memset(&reader->decode, 0, sizeof(reader->decode));
			*to = L'?';
		}
		return 1;
	}
}

static size_t common_prefix(const struct completions *found)
{
	size_t len = strlen(found->items[0]);

	for (size_t i = 1; i < found->count; i++)
		for (size_t k = 0; k < len; k++)
			if (found->items[i][k] != found->items[0][k])
				len = k;
	return len;
}

/* Lists completions in as many columns as the terminal has room for. */
static void list_completions(const struct completions *found)
{
	struct terminal terminal;
	size_t width = 1, columns, rows;

	terminal_measure(&terminal);
	for (size_t i = 0; i < found->count; i++)
		width = MAX(width, strlen(found->items[i]) + 2);
	columns = MAX(terminal.width / width, 1u);
	rows = (found->count + columns - 1) / columns;
	fputc('\n', stdout);
	for (size_t row = 0; row < rows; row++) {
		for (size_t i = row; i < found->count; i += rows)
			printf("%-*s", i + rows < found->count ? (int)width : 0, found->items[i]);
		fputc('\n', stdout);
	}
	fflush(stdout);
}

static unsigned char insert_completion(EditLine *edit, const struct completions *found,
				       size_t typed)
{
	size_t len = common_prefix(found);
	const char *only = found->items[0];
	bool whole = found->count == 1 && !found->goes_on && *only && only[strlen(only) - 1] != '/';
	char text[512];

	if (len == typed && found->count > 1) {
		list_completions(found);
		return CC_REDISPLAY;
	}
	snprintf(text, sizeof(text), "%.*s%s", (int)(len - typed), only + typed, whole ? " " : "");
	return el_insertstr(edit, text) < 0 ? CC_ERROR : CC_REFRESH;
}

static unsigned char on_tab(EditLine *edit, int key)
{
	const LineInfo *info = el_line(edit);
	struct str before = str_make(info->buffer, (size_t)(info->cursor - info->buffer));
	struct line_reader *reader = NULL;
	struct completions found = { 0 };
	unsigned char result = CC_ERROR;
	struct arena arena;
	void *data = NULL;
	struct mem mem;

	(void)key;
	el_get(edit, EL_CLIENTDATA, &data);
	reader = data;
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	found.arena = &arena;
	reader->complete(reader->arg, before, &found);
	if (found.count)
		result = insert_completion(edit, &found, before.len - found.word);
	arena_release(&arena);
	return result;
}

/* While a line is edited the terminal is in another mode, which what ends the program must not leave behind. Shells may
 * be inside one another. */
static struct {
	int open;
	struct termios before;
} the;

static const int ends[] = { SIGTERM, SIGHUP, SIGQUIT };

static void on_end(int number)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &the.before);
	signal(number, SIG_DFL);
	raise(number);
}

static void change_ends(void (*from)(int), void (*to)(int))
{
	struct sigaction action = { .sa_handler = to }, old;

	for (size_t i = 0; i < ARRAY_COUNT(ends); i++)
		if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler == from)
			sigaction(ends[i], &action, NULL);
}

static void guard_terminal(void)
{
	if (the.open++ == 0 && tcgetattr(STDIN_FILENO, &the.before) == 0)
		change_ends(SIG_DFL, on_end);
}

static void release_terminal(void)
{
	if (--the.open == 0)
		change_ends(on_end, SIG_DFL);
}

static void open_editor(struct line_reader *reader)
{
	setlocale(LC_CTYPE, "");
	/* terminals handle UTF-8 even if no locale is set, as in containers */
	if (strcmp(nl_langinfo(CODESET), "ANSI_X3.4-1968") == 0)
		setlocale(LC_CTYPE, "C.UTF-8");
	guard_terminal();
	reader->edit = el_init("opwatch", stdin, stdout, stderr);
	if (!history_open(&reader->history) || !reader->edit)
		return;
	el_set(reader->edit, EL_CLIENTDATA, reader);
	el_set(reader->edit, EL_PROMPT, prompt_of);
	el_set(reader->edit, EL_EDITOR, "emacs");
	el_set(reader->edit, EL_HIST, history, reader->history.lines);
	el_set(reader->edit, EL_GETCFN, read_char);
	el_set(reader->edit, EL_ADDFN, "complete", "complete the word", on_tab);
	el_set(reader->edit, EL_BIND, "^I", "complete", NULL);
	el_set(reader->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	el_source(reader->edit, NULL); /* reads ~/.editrc */
}

static enum line_result read_edited(struct line_reader *reader, struct str *line)
{
	int len = 0;
	const char *text;

	/* libedit shows the prompt before it sets up the terminal: a Ctrl-D in between would be
	 * lost */
	el_set(reader->edit, EL_PREP_TERM, 1);
	text = el_gets(reader->edit, &len);

	if (!text || len <= 0) {
		if (interrupted) {
			fputs("^C\n", stdout);
			fflush(stdout);
			el_reset(reader->edit);
			return LINE_INTERRUPTED;
		}
		fputc('\n', stdout);
		return LINE_END;
	}
	if (text[len - 1] == '\n')
		len--;
	*line = str_make(text, (size_t)len);
	if (str_trim(*line).len)
		history_add(&reader->history, text);
	return LINE_READ;
}

static void close_editor(struct line_reader *reader)
{
	history_close(&reader->history);
	if (reader->edit)
		el_end(reader->edit);
	if (reader->interactive)
		release_terminal();
}

#endif

struct line_reader *line_open(const char *prompt, complete_fn complete, void *arg)
{
	struct line_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->prompt = prompt;
	reader->complete = complete;
	reader->arg = arg;
	reader->interactive = isatty(STDIN_FILENO);
#if OPWATCH_HAVE_LIBEDIT
	if (reader->interactive)
		open_editor(reader);
#endif
	return reader;
}

void line_prompt(struct line_reader *reader, const char *prompt)
{
	reader->prompt = prompt;
}

void line_close(struct line_reader *reader)
{
	if (!reader)
		return;
#if OPWATCH_HAVE_LIBEDIT
	close_editor(reader);
#endif
	free(reader->line);
	free(reader);
}

enum line_result line_read(struct line_reader *reader, struct str *line)
{
	interrupted = 0;
	fflush(stdout);
#if OPWATCH_HAVE_LIBEDIT
	if (reader->edit && reader->history.lines)
		return read_edited(reader, line);
#endif
	return read_plain(reader, line);
}
