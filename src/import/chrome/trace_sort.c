/*
 * trace_sort.c: a stable merge sort that uses existing sorted runs. Events of one track are mostly sorted already, in a
 * few runs that were written one after the other.
 */
#include "import/chrome/trace_sort.h"

#define SHORT_RUN 24

static void insertion_sort(struct trace_ref *refs, size_t sorted, size_t count)
{
	for (size_t i = sorted; i < count; i++) {
		struct trace_ref ref = refs[i];
		size_t j = i;

		for (; j && refs[j - 1].ts > ref.ts; j--)
			refs[j] = refs[j - 1];
		refs[j] = ref;
	}
}

/* Returns the length of the ascending run at the start, extended to at least SHORT_RUN. */
static size_t find_run(struct trace_ref *refs, size_t count)
{
	size_t len = 1;

	while (len < count && refs[len].ts >= refs[len - 1].ts)
		len++;
	if (len < SHORT_RUN && len < count) {
		insertion_sort(refs, len, MIN(count, (size_t)SHORT_RUN));
		len = MIN(count, (size_t)SHORT_RUN);
	}
	return len;
}

/* Merges refs[0, middle) and refs[middle, count) in place; scratch has room for the first part. */
static void merge(struct trace_ref *refs, size_t middle, size_t count, struct trace_ref *scratch)
{
	size_t a = 0, b = middle, to = 0;

	/* items that are not after the second run's first item stay in place */
	while (a < middle && refs[a].ts <= refs[b].ts)
		a++;
	to = a;
	memcpy(scratch + a, refs + a, (middle - a) * sizeof(*refs));
	while (a < middle && b < count)
		refs[to++] = refs[b].ts < scratch[a].ts ? refs[b++] : scratch[a++];
	memcpy(refs + to, scratch + a, (middle - a) * sizeof(*refs));
}

/* Sorts by merging runs: a run waits on a stack until those above it are not much shorter, so
 * that merges are even. */
void trace_sort(struct trace_ref *refs, size_t count, struct trace_ref *scratch)
{
	size_t starts[96], depth = 0, at = 0;

	while (at < count) {
		size_t len = find_run(refs + at, count - at);

		starts[depth++] = at;
		at += len;
		while (depth > 1 &&
		       (starts[depth - 1] - starts[depth - 2] <= 2 * (at - starts[depth - 1]) ||
			depth == ARRAY_COUNT(starts))) {
			size_t first = starts[depth - 2];

			merge(refs + first, starts[depth - 1] - first, at - first, scratch);
			depth--;
		}
	}
	for (; depth > 1; depth--) {
		size_t first = starts[depth - 2];

		merge(refs + first, starts[depth - 1] - first, count - first, scratch);
	}
}
