/*
 * values.h: what people write behind an option: sizes, times, lists. Pure functions of the text; what is wrong
 * is told by those who know the option.
 */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "base/arena.h"
#include "base/str.h"

#include <opwatch/opwatch.h>

/* "500", "500M", "8GB": powers of 1024. */
bool value_size(struct str text, uint64_t *size);
/* "100:250", "1.5s:2s": a begin, an end or both; milliseconds without a unit. What is missing stays as it is. */
bool value_time_range(struct str text, int64_t *from_ns, int64_t *to_ns);
/* "10s", "500ms", "2m": more than nothing; seconds without a unit. */
bool value_duration(struct str text, int64_t *ns);
/* "20%", "0.2": more than nothing, and no more than a hundred times. */
bool value_part(struct str text, double *part);
/* One more word in a list, and words between commas. False without memory. */
bool value_word(struct arena *arena, struct ow_list *list, const char *word);
bool value_words(struct arena *arena, struct ow_list *list, const char *words);

#endif
