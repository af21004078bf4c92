/*
 * stack_facts.h: sums by name, which importers of sampled stacks collect for `opwatch info`: how often names occur, and the few with
 * the largest sums. Names are strings of the model; release the sums before the model is frozen.
 */
#ifndef IMPORT_STACK_FACTS_H
#define IMPORT_STACK_FACTS_H

#include "model/builder.h"

struct name_sum {
	str_id name;
	int64_t sum;
};

struct name_sums {
	struct mem *mem;
	struct name_sum *items;
	size_t count, cap;
	struct map map; /* maps a string to its item + 1 */
};

void name_sums_init(struct name_sums *s, struct mem *mem);
void name_sums_release(struct name_sums *s);
/* Adds to the sum of a name; false if memory runs out. */
bool name_sums_add(struct name_sums *s, str_id name, int64_t value);

/* Adds a list of [name, sum], the largest first, ties by name. */
void fact_top(struct builder *b, fact_id parent, const char *key, struct name_sums *sums,
	      size_t count);
/* Adds an object of name: sum, in the order of first use. */
void fact_sums(struct builder *b, fact_id parent, const char *key, const struct name_sums *sums);

#endif
