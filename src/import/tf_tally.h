/*
 * tf_tally.h: counts or sums per string, for the facts about a source: nodes per op type, time per
 * node. Small; used by the TensorFlow importers.
 */
#ifndef IMPORT_TF_TALLY_H
#define IMPORT_TF_TALLY_H

#include "model/builder.h"

struct tf_tally_item {
	str_id text;
	int64_t value;
};

struct tf_tally {
	struct builder *b;
	struct map map;
	struct tf_tally_item *items; /* [0] is unused */
	size_t count, cap;
	size_t last; /* the item used last */
};

void tf_tally_init(struct tf_tally *t, struct builder *b);
void tf_tally_release(struct tf_tally *t);

/* A failure to get memory is the builder's. */
void tf_tally_slow(struct tf_tally *t, str_id text, int64_t value);
static inline void tf_tally_add(struct tf_tally *t, str_id text, int64_t value)
{
	struct tf_tally_item *last = t->last ? &t->items[t->last] : NULL;

	if (last && last->text.v == text.v)
		last->value = wrap_add(last->value, value);
	else
		tf_tally_slow(t, text, value);
}

/* Number of distinct texts. */
static inline size_t tf_tally_count(const struct tf_tally *t)
{
	return t->count ? t->count - 1 : 0;
}

/* Largest values first, equal ones by name. After this no more may be added. */
void tf_tally_sort(struct tf_tally *t);
/* As facts: a list of [text, value] pairs of the first `limit`, or an object of all. Sorted first. */
void tf_tally_list(struct tf_tally *t, fact_id parent, const char *key, size_t limit);
void tf_tally_object(struct tf_tally *t, fact_id parent, const char *key, size_t limit);

/* The `want` largest values of an array, largest first, equal ones by name. */
struct tf_top {
	struct tf_tally_item items[8];
	size_t count, want;
};

void tf_top_add(struct tf_top *top, const struct model *m, str_id text, int64_t value);
void tf_top_list(const struct tf_top *top, struct builder *b, fact_id parent, const char *key);

#endif
