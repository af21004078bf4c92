/* busy.c: see busy.h. Spans are sorted by group and start, then swept once. */
#include "analyze/busy.h"

struct span {
	int64_t begin, end;
	uint32_t group;
};

int64_t busy_span(int64_t begin, int64_t end)
{
	uint64_t len;

	if (end <= begin)
		return 0;
	len = (uint64_t)end - (uint64_t)begin;
	return len > INT64_MAX ? INT64_MAX : (int64_t)len;
}

static int64_t saturating_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

static int by_group_and_begin(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Fills spans with what has a duration, and counts all. */
static size_t collect(const struct model *m, const uint32_t *group, struct span *spans,
		      struct busy *out)
{
	size_t count = 0;

	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t g = group[m->event.track[i].v];
		int64_t begin = m->event.ts_ns[i], dur = m->event.dur_ns[i];

		if (g == UINT32_MAX)
			continue;
		out[g].events++;
		if (dur == TIME_UNKNOWN || dur <= 0)
			continue;
		spans[count++] = (struct span){ begin, saturating_add(begin, dur), g };
	}
	return count;
}

static void sort_spans(struct span *spans, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (by_group_and_begin(&spans[i - 1], &spans[i]) > 0) {
			qsort(spans, count, sizeof(*spans), by_group_and_begin);
			return;
		}
}

static void sweep(const struct span *spans, size_t count, struct busy *out)
{
	for (size_t i = 0; i < count;) {
		uint32_t group = spans[i].group;
		int64_t begin = spans[i].begin, end = spans[i].end;

		for (i++; i < count && spans[i].group == group && spans[i].begin <= end; i++)
			end = MAX(end, spans[i].end);
		out[group].busy_ns = saturating_add(out[group].busy_ns, busy_span(begin, end));
	}
}

ow_status busy_measure(const struct model *m, const uint32_t *group, uint32_t count,
		       struct busy *out, struct error *err)
{
	size_t bytes = (size_t)m->event.count * sizeof(struct span);
	struct span *spans;
	size_t found;

	if (!count || m->event.count <= 1)
		return OW_OK;
	spans = mem_alloc(m->mem, bytes);
	if (!spans)
		return error_no_memory(err);
	found = collect(m, group, spans, out);
	sort_spans(spans, found);
	sweep(spans, found, out);
	mem_free(m->mem, spans, bytes);
	return OW_OK;
}
