/* shell_words.c: see shell_words.h. */
#include "cli/shell_words.h"

const struct shell_option shell_options[SHELL_OPTIONS] = {
	{ "-n", "--limit", "at most so many rows" },
	{ "-t", "--to", "another output: json, csv, flamegraph, ..." },
	{ "-o", "--out", "the file to write" },
	{ "--json", "--json", "the same as --to json" },
	{ "--csv", "--csv", "the same as --to csv" },
};

bool shell_next_word(struct str *rest, struct str *word)
{
	while (rest->len && rest->ptr[0] == ' ')
		*rest = str_skip(*rest, 1);
	if (!rest->len)
		return false;
	*word = str_first(*rest, MIN(str_find_char(*rest, ' '), rest->len));
	*rest = str_skip(*rest, word->len);
	return true;
}

/* Where a quote begins in the word at the front: first, or behind the first '='. STR_NONE when there is no second. */
static size_t quote_at(struct str rest)
{
	struct str word = str_first(rest, MIN(str_find_char(rest, ' '), rest.len));
	size_t at = 0;

	if (word.ptr[0] == '-')
		at = str_find_char(word, '=') + 1; /* STR_NONE + 1 is 0, where there is no quote */
	if (at >= word.len || (word.ptr[at] != '\'' && word.ptr[at] != '"') ||
	    str_find_char(str_skip(rest, at + 1), word.ptr[at]) == STR_NONE)
		return STR_NONE;
	return at;
}

bool shell_next_quoted(struct arena *arena, struct str *rest, struct str *word)
{
	struct str inside, before;
	const char *text;
	size_t at;

	while (rest->len && rest->ptr[0] == ' ')
		*rest = str_skip(*rest, 1);
	if (!rest->len)
		return false;
	at = quote_at(*rest);
	if (at == STR_NONE)
		return shell_next_word(rest, word);
	before = str_first(*rest, at);
	inside = str_skip(*rest, at + 1);
	inside = str_first(inside, str_find_char(inside, rest->ptr[at]));
	*rest = str_skip(*rest, at + inside.len + 2);
	text = arena_printf(arena, "%.*s%.*s", STR_ARG(before), STR_ARG(inside));
	*word = str_from(text ? text : "");
	return text != NULL;
}

const struct option *shell_option_named(struct str word, bool tfprof)
{
	char name[64];
	size_t dashes = !tfprof && str_starts(word, STR("--")) ? 2 : 1;

	if (word.len < 2 || word.ptr[0] != '-' || word.len >= sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", STR_ARG(str_skip(word, dashes)));
	for (char *c = name; !tfprof && *c; c++)
		*c = *c == '-' ? '_' : *c;
	return option_find(str_from(name));
}

bool shell_option_is(struct str word, size_t option)
{
	return str_eq(word, str_from(shell_options[option].spelling)) ||
	       str_eq(word, str_from(shell_options[option].longer));
}
