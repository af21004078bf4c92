/*
 * shell_words.h: the words of a line in the shell, and what options are called there. What they do is in shell.c, how
 * they are completed in shell_complete.c.
 */
#ifndef CLI_SHELL_WORDS_H
#define CLI_SHELL_WORDS_H

#include "cli/cli.h"
#include "cli/options.h"

/* The next word between blanks, as the original cuts them; false at the end. */
bool shell_next_word(struct str *rest, struct str *word);
/* The same under our own name, where what is in quotes may have blanks: 'aten::copy_ (fp16)'. Nothing else is
 * special: regular expressions are full of backslashes. False also without memory. */
bool shell_next_quoted(struct arena *arena, struct str *rest, struct str *word);

/* Options that are none of tfprof's 21, under our own name. */
struct shell_option {
	const char *spelling; /* "-n" */
	const char *longer;   /* "--limit", or the same */
	const char *help;
};
enum { SHELL_LIMIT, SHELL_TO, SHELL_OUT, SHELL_JSON, SHELL_CSV, SHELL_OPTIONS };
extern const struct shell_option shell_options[SHELL_OPTIONS];
bool shell_option_is(struct str word, size_t option);

/* One of the 21: -max_depth, under our own name also --max-depth; NULL when it is none. */
const struct option *shell_option_named(struct str word, bool tfprof);

#endif
