/*
 * regex.h: regular expressions with RE2's syntax and meaning, always matching the whole text, in time
 * linear in the text. A list of patterns is compiled into one automaton: it matches when any of them
 * does. Written for the views, which ask half a million names; see docs/decisions/regex.md.
 *
 * Patterns that RE2 refuses (lookaround, backreferences, possessive quantifiers, …) are invalid here,
 * too. As in tfprof an invalid pattern is reported and then never matches. A list has one owner at a
 * time: matching fills its cache.
 */
#ifndef BASE_REGEX_H
#define BASE_REGEX_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

struct regex;

struct regex_list {
	struct mem *mem;
	bool everything;     /* the list matches all texts, so no text is examined */
	struct regex *regex; /* compiled patterns; NULL without a valid pattern */
	/* status of the first failure of regex_match: no memory, or OW_E_LIMIT */
	ow_status status;
};

/* Receives each invalid pattern with the reason in RE2's words. */
typedef void (*regex_invalid_fn)(void *arg, struct str pattern, const char *why);

/* Compiles the patterns. Fails only if memory runs out. */
ow_status regex_list_init(struct regex_list *list, struct mem *mem, const char *const *patterns,
			  size_t count, regex_invalid_fn invalid, void *arg, struct ow_error *err);
/* Like regex_list_init, but a list that is just ".*" matches everything, also texts with line feeds or with invalid
 * UTF-8, which the expression itself does not match. */
ow_status regex_list_init_all(struct regex_list *list, struct mem *mem, const char *const *patterns,
			      size_t count, regex_invalid_fn invalid, void *arg,
			      struct ow_error *err);
void regex_list_release(struct regex_list *list);

/* Matches a text; called by regex_match. */
bool regex_run(struct regex_list *list, struct str text);

/* Returns whether one of the patterns matches the whole text; false after a failure, see
 * `status`. */
static inline bool regex_match(struct regex_list *list, struct str text)
{
	if (list->everything)
		return true;
	return list->regex && regex_run(list, text);
}

/* Copies the first failure of regex_match, if there was one, to err. */
ow_status regex_list_status(const struct regex_list *list, struct ow_error *err);

#endif
