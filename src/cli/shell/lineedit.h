/*
 * lineedit.h: reading lines from a person (prompt, editing, history, completion through libedit) or
 * from a file or pipe (plain lines, no prompt). History lives in the user's state directory.
 */
#ifndef CLI_LINEEDIT_H
#define CLI_LINEEDIT_H

#include "base/arena.h"
#include "base/str.h"

/* Candidates for the word that ends at the cursor; `before` is the line up to the cursor. */
struct completions {
	struct arena *arena;
	const char **items;
	size_t count, cap;
	size_t word;  /* offset in `before` of the word that they replace */
	bool goes_on; /* no blank follows a single candidate, because more of a list may follow */
};
/* Adds a word if it begins with the prefix; NULL is ignored. */
void completion_add(struct completions *out, const char *word, struct str prefix);
void completions_sort(struct completions *out);

typedef void (*complete_fn)(void *arg, struct str before, struct completions *out);

struct line_reader;

/* Opens a reader, which is interactive if standard input is a terminal. NULL if memory runs out. */
struct line_reader *line_open(const char *prompt, complete_fn complete, void *arg);
/* Sets the prompt from the next line on; the text must outlive its use. */
void line_prompt(struct line_reader *reader, const char *prompt);
void line_close(struct line_reader *reader);

enum line_result { LINE_READ, LINE_END, LINE_INTERRUPTED };

/* Reads the next line without its newline, valid until the next call. */
enum line_result line_read(struct line_reader *reader, struct str *line);

#endif
