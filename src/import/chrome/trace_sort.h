/* trace_sort.h: sorts rows by time, for the files of the trace importer and of the interpretation. */
#ifndef IMPORT_TRACE_SORT_H
#define IMPORT_TRACE_SORT_H

#include "base/base.h"

/* A row to be sorted. */
struct trace_ref {
	int64_t ts;
	uint32_t row;
	uint16_t worker;
	uint16_t kind;
};

/* Sorts by time, stable. `scratch` has room for count items. */
void trace_sort(struct trace_ref *refs, size_t count, struct trace_ref *scratch);

static inline bool trace_is_sorted(const struct trace_ref *refs, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (refs[i].ts < refs[i - 1].ts)
			return false;
	return true;
}

#endif
