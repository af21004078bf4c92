/*
 * display.h: from a hierarchy with totals to the tree that is shown: start, trim, show, hide, depth,
 * minimums, sorting. The scope, graph and code views end here; the op view has its own list.
 */
#ifndef ANALYZE_DISPLAY_H
#define ANALYZE_DISPLAY_H

#include "analyze/account.h"

/* Fills a->tree's nodes. */
ow_status display_hierarchy(struct hierarchy *h);

/* Whether rows of values reach the minimums. */
bool display_reaches(const struct account *a, const int64_t *own, const int64_t *total);
/* Whether show and hide let a name pass. */
bool display_named(struct account *a, struct str name);

/* What rows are sorted by; rows that tie keep their order. */
struct sort_key {
	struct str name;
	int64_t value;
	uint32_t row, position;
};
/* Sorts by a->order and sets positions; keys come in the order that ties keep. */
void display_sort(const struct account *a, struct sort_key *keys, size_t count);

#endif
