/* lineedit.c: see lineedit.h. */
#include "cli/lineedit.h"

#include "cli/output.h"
#include "opwatch_config.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#if OPWATCH_HAVE_LIBEDIT
#include <histedit.h>
#endif

#define HISTORY_LINES 1000
#define LINE_BYTES ((size_t)1 << 20) /* what is longer is no command */

struct line_reader {
	const char *prompt;
	complete_fn complete;
	void *arg;
	bool interactive;
	char *line; /* LINE_BYTES, for plain lines */
	char *history_path;
#if OPWATCH_HAVE_LIBEDIT
	EditLine *edit;
	History *history;
	mbstate_t decode;
#endif
};

void completion_add(struct completions *out, const char *word, struct str prefix)
{
	if (!str_starts(str_from(word), prefix))
		return;
	if (out->count == out->cap) {
		size_t cap = out->cap ? out->cap * 2 : 32;
		const char **items = ARENA_ARRAY(out->arena, const char *, cap);

		if (!items)
			return;
		if (out->count)
			memcpy(items, out->items, out->count * sizeof(*items));
		out->items = items;
		out->cap = cap;
	}
	out->items[out->count++] = word;
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
			fprintf(stderr, "a line of more than %zu bytes: these are no commands\n",
				LINE_BYTES);
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
static char *find_history(void)
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

/* Creates the file readable by its owner only: lines may name private paths. */
static void save_history(struct line_reader *reader)
{
	HistEvent event;
	int fd;

	if (!reader->history_path)
		return;
	fd = open(reader->history_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	close(fd);
	history(reader->history, &event, H_SAVE, reader->history_path);
}

static char *prompt_of(EditLine *edit)
{
	struct line_reader *reader = NULL;
	void *data = NULL;

	el_get(edit, EL_CLIENTDATA, &data);
	reader = data;
	return (char *)(uintptr_t)reader->prompt;
}

/* Waits for a key. SIGINT is blocked all through the editing and let in only here: it cannot slip in
 * between looking and waiting. */
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
			return true; /* read will tell what is wrong */
	}
	return false;
}

/* libedit restarts an interrupted read; ours does not, so that Ctrl-C gives a fresh prompt. */
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

static void list_completions(const struct completions *found)
{
	fputc('\n', stdout);
	for (size_t i = 0; i < found->count; i++)
		printf("%s%s", i ? "  " : "", found->items[i]);
	fputc('\n', stdout);
	fflush(stdout);
}

static unsigned char insert_completion(EditLine *edit, const struct completions *found,
				       size_t typed)
{
	size_t len = common_prefix(found);
	char text[512];

	if (len == typed && found->count > 1) {
		list_completions(found);
		return CC_REDISPLAY;
	}
	snprintf(text, sizeof(text), "%.*s%s", (int)(len - typed), found->items[0] + typed,
		 found->count == 1 ? " " : "");
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

static void open_editor(struct line_reader *reader)
{
	HistEvent event;

	setlocale(LC_CTYPE, "");
	reader->edit = el_init("opwatch", stdin, stdout, stderr);
	reader->history = history_init();
	if (!reader->edit || !reader->history)
		return;
	reader->history_path = find_history();
	history(reader->history, &event, H_SETSIZE, HISTORY_LINES);
	history(reader->history, &event, H_SETUNIQUE, 1);
	if (reader->history_path)
		history(reader->history, &event, H_LOAD, reader->history_path);
	el_set(reader->edit, EL_CLIENTDATA, reader);
	el_set(reader->edit, EL_PROMPT, prompt_of);
	el_set(reader->edit, EL_EDITOR, "emacs");
	el_set(reader->edit, EL_HIST, history, reader->history);
	el_set(reader->edit, EL_GETCFN, read_char);
	el_set(reader->edit, EL_ADDFN, "complete", "complete the word", on_tab);
	el_set(reader->edit, EL_BIND, "^I", "complete", NULL);
	el_set(reader->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	el_source(reader->edit, NULL); /* ~/.editrc */
}

static enum line_result read_edited(struct line_reader *reader, struct str *line)
{
	HistEvent event;
	int len = 0;
	const char *text;

	/* libedit shows the prompt first and sets up the terminal afterwards: a Ctrl-D that comes in
	 * between would be lost. */
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
	if (str_trim(*line).len) {
		history(reader->history, &event, H_ENTER, text);
		save_history(reader);
	}
	return LINE_READ;
}

static void close_editor(struct line_reader *reader)
{
	if (reader->history)
		history_end(reader->history);
	if (reader->edit)
		el_end(reader->edit);
	free(reader->history_path);
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
	if (reader->edit && reader->history)
		return read_edited(reader, line);
#endif
	return read_plain(reader, line);
}
