/*
 * nearest.h: the known word that is closest to a mistyped one; for suggestions in messages.
 *
 *	size_t least = nearest_limit(word);
 *	const char *best = NULL;
 *
 *	for (…)
 *		nearest_try(word, candidate, &best, &least);
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include "base/str.h"

/* Returns how many single edits turn one word into the other; SIZE_MAX for long words. */
size_t nearest_edits(struct str a, const char *b);
/* Returns the number of edits from which on a candidate counts as a different word. */
size_t nearest_limit(struct str word);
/* Stores `candidate` in *best if it is nearer to the word than *least. */
void nearest_try(struct str word, const char *candidate, const char **best, size_t *least);

#endif
