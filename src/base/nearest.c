/*
 * nearest.c: edit distance between a mistyped word and the known ones, for "did you mean" in messages. The CLI, the
 * shell, export and SQL sessions call it for options, commands, views, tables and columns. Words of 64 bytes and
 * more are not compared, and bytes are compared, not characters: case counts.
 */
#include "base/nearest.h"

size_t nearest_edits(struct str a, const char *b)
{
	size_t row[64], len = strlen(b);

	if (len >= ARRAY_COUNT(row) || a.len >= ARRAY_COUNT(row))
		return SIZE_MAX;
	for (size_t k = 0; k <= len; k++)
		row[k] = k;
	for (size_t i = 1; i <= a.len; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t k = 1; k <= len; k++) {
			size_t above = row[k], best = corner + (a.ptr[i - 1] != b[k - 1]);

			best = MIN(best, above + 1);
			row[k] = MIN(best, row[k - 1] + 1);
			corner = above;
		}
	}
	return row[len];
}

size_t nearest_limit(struct str word)
{
	return MIN((word.len + 2) / 3 + 1, (size_t)4);
}

void nearest_try(struct str word, const char *candidate, const char **best, size_t *least)
{
	size_t edits = nearest_edits(word, candidate);

	/* Any letter is one edit away from another, so a candidate that shares no letter with
	 * the word is not suggested. */
	if (edits < *least && edits < word.len) {
		*best = candidate;
		*least = edits;
	}
}
