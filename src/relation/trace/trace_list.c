/*
 * trace_list.c: decides, source by source, which rows trace_events has and where each comes from: the model, or
 * elements read from the file again. relation_trace_events.c calls it once per run. It holds references, not values:
 * columns are filled by the relation, arguments by trace_args.c, and the order of a listed file by trace_sorted.c.
 */
#include "relation/trace/trace_list.h"

/* Events, flows and counters of each source, in the order of their tables. */
struct by_source {
	/* start[kind][source]: index at which the rows of the source begin; the next entry is the end */
	uint64_t *start[3];
	uint32_t *rows[3];
	uint64_t count[3];
	/* for each source that is listed in file order: number of its events, which are not in `start` */
	uint64_t *events;
	bool *listed; /* for each source: whether it is listed in file order */
	uint32_t sources;
};

static bool is_listed(const struct model *m, uint32_t source)
{
	const struct trace_listing *l = model_listing(m, source);

	return l && l->plain && source < m->input_cap && m->inputs[source];
}

/* Consecutive rows of one table that are on one track. */
struct stretch {
	const struct model *m;
	enum trace_ref_kind kind;
	const track_id *tracks;
	uint32_t rows;		     /* number of rows of the table */
	uint32_t first, end, source; /* end is 1 before the first stretch */
	bool listed;
};

static struct stretch stretches(const struct model *m, enum trace_ref_kind kind)
{
	switch (kind) {
	case REF_EVENT:
		return (struct stretch){ m, kind, m->event.track, m->event.count, .end = 1 };
	case REF_FLOW:
		return (struct stretch){ m, kind, m->flow.track, m->flow.count, .end = 1 };
	default:
		return (struct stretch){ m, kind, m->counter.track, m->counter.count, .end = 1 };
	}
}

static bool next_stretch(struct stretch *s)
{
	uint32_t track;

	if (s->end >= s->rows)
		return false;
	s->first = s->end;
	track = s->tracks[s->first].v;
	while (s->end < s->rows && s->tracks[s->end].v == track)
		s->end++;
	s->source = s->m->track.source[track].v;
	s->listed = is_listed(s->m, s->source);
	return true;
}

/* Whether a row of the model's table is also a row of trace_events. */
static inline bool has_row(const struct stretch *s, uint32_t row)
{
	if (!s->source || !s->listed)
		return s->source;
	if (s->kind == REF_EVENT)
		return !trace_is_made(s->m, row);
	return s->kind == REF_FLOW && !COLUMN_GET(s->m->flow.event, row).v;
}

/* Counts the rows of each source in start[source + 1]. */
static void count_rows(const struct model *m, enum trace_ref_kind kind, uint64_t *start)
{
	for (struct stretch s = stretches(m, kind); next_stretch(&s);)
		for (uint32_t i = s.first; i < s.end; i++)
			start[s.source + 1] += has_row(&s, i);
}

/* Lists the rows of each source; called after count_rows. */
static ow_status list_rows(const struct trace_list *list, struct by_source *b,
			   enum trace_ref_kind kind, struct ow_error *err)
{
	uint64_t *start = b->start[kind];

	for (uint32_t s = 0; s <= b->sources; s++)
		start[s + 1] += start[s];
	b->count[kind] = start[b->sources + 1];
	b->rows[kind] = mem_alloc(list->mem, MAX(b->count[kind], 1) * sizeof(uint32_t));
	if (!b->rows[kind])
		return error_no_memory(err);
	for (struct stretch s = stretches(list->m, kind); next_stretch(&s);) {
		if (kind == REF_EVENT && b->listed[s.source])
			continue;
		for (uint32_t i = s.first; i < s.end; i++)
			if (has_row(&s, i))
				b->rows[kind][start[s.source]++] = i;
	}
	return OW_OK;
}

static void release_by_source(const struct trace_list *list, struct by_source *b)
{
	for (int kind = 0; kind < 3; kind++) {
		mem_free(list->mem, b->start[kind], (b->sources + 2) * sizeof(uint64_t));
		mem_free(list->mem, b->rows[kind], MAX(b->count[kind], 1) * sizeof(uint32_t));
	}
	mem_free(list->mem, b->events, b->sources * sizeof(*b->events));
	mem_free(list->mem, b->listed, b->sources * sizeof(*b->listed));
}

/* The rows of a source. After list_rows, start[s] is the index at which the rows of source s end. */
static uint32_t *rows_of(const struct by_source *b, enum trace_ref_kind kind, uint32_t source,
			 uint64_t *count)
{
	uint64_t begin = source ? b->start[kind][source - 1] : 0;

	*count = b->start[kind][source] - begin;
	return b->rows[kind] + begin;
}

/* Whether the counts of the listing agree with the tables: flows, and elements that must be read. */
static bool fits(const struct trace_listing *l, uint64_t events, uint64_t flows)
{
	uint64_t counted = 0, counters = 0, to_read = 0;

	for (size_t i = 0; i < l->count; i++) {
		counted += (l->elements[i] & LISTING_FLOW) != 0;
		counters += (l->elements[i] & LISTING_COUNTER) != 0;
		to_read += !(l->elements[i] & LISTING_ALL);
	}
	return events == l->events && flows == counted && counters == l->counter_count &&
	       to_read <= 1000 + events / 8;
}

static void choose_listed_sources(const struct model *m, struct by_source *b)
{
	uint64_t *counts = b->start[REF_EVENT];

	for (uint32_t source = 1; source < b->sources; source++) {
		uint64_t flows;

		rows_of(b, REF_FLOW, source, &flows);
		b->listed[source] = is_listed(m, source) && m->event.args_offset &&
				    fits(model_listing(m, source), counts[source + 1], flows);
		if (!b->listed[source])
			continue;
		b->events[source] = counts[source + 1];
		counts[source + 1] = 0;
	}
}

static ow_status collect(const struct trace_list *list, struct by_source *b, struct ow_error *err)
{
	const struct model *m = list->m;

	b->events = mem_zalloc(list->mem, b->sources * sizeof(*b->events));
	b->listed = mem_zalloc(list->mem, b->sources * sizeof(*b->listed));
	if (!b->events || !b->listed)
		return error_no_memory(err);
	for (int kind = 0; kind < 3; kind++) {
		b->start[kind] = mem_zalloc(list->mem, (b->sources + 2) * sizeof(uint64_t));
		if (!b->start[kind])
			return error_no_memory(err);
		count_rows(m, (enum trace_ref_kind)kind, b->start[kind]);
	}
	OW_TRY(list_rows(list, b, REF_FLOW, err));
	OW_TRY(list_rows(list, b, REF_COUNTER, err));
	choose_listed_sources(m, b);
	return list_rows(list, b, REF_EVENT, err);
}

static struct trace_span *add_span(struct trace_list *list, uint32_t source, uint64_t count)
{
	struct trace_span *span = &list->spans[list->span_count++];

	*span = (struct trace_span){ .first = list->rows, .count = count, .source = source };
	list->rows += count;
	return span;
}

static bool is_trace_format(const struct model *m, uint32_t source)
{
	return str_eq(model_str(m, m->source.format[source]), STR("trace"));
}

static enum trace_labels labels_of(const struct trace_listing *l, uint64_t others, uint64_t events)
{
	if (!l->labelled || others > events / 16)
		return LABELS_NONE;
	return others ? LABELS_MOST : LABELS_ALL;
}

static bool add_refs(struct trace_list *list, uint64_t count, uint32_t **refs)
{
	void *all = list->refs;

	if (!mem_grow(list->mem, &all, &list->ref_cap, (size_t)count, sizeof(*list->refs)))
		return false;
	*refs = list->refs = all;
	return true;
}

static ow_status list_source(struct trace_list *list, const struct by_source *b, uint32_t source,
			     uint32_t *refs, bool *done, struct ow_error *err)
{
	const struct trace_listing *l = model_listing(list->m, source);
	uint64_t others = 0, flow_count;
	const uint32_t *flows = rows_of(b, REF_FLOW, source, &flow_count);
	struct trace_span *span;

	OW_TRY(trace_list_order(list, source, flows, refs, &others, done, err));
	if (!*done)
		return OW_OK;
	OW_TRY(trace_rows_read(&list->elements, list->m->inputs[source], l->elements, l->count,
			       err));
	span = add_span(list, source, b->events[source] + l->count);
	span->refs = refs;
	span->is_trace = span->listed = true;
	span->base_ns = l->base_ns;
	span->counters = l->counters;
	span->labels = labels_of(l, others, b->events[source]);
	return OW_OK;
}

static ow_status scan_source(struct trace_list *list, uint32_t source, struct ow_error *err)
{
	uint64_t first = list->elements.count;
	struct trace_span *span;

	OW_TRY(trace_rows_scan(&list->elements, list->m->inputs[source], err));
	span = add_span(list, source, list->elements.count - first);
	span->first_element = first;
	span->is_trace = span->listed = true;
	return OW_OK;
}

/* Lists the rows that the model holds, for a source whose file order is unknown. */
static void list_rows_of_source(struct trace_list *list, const struct by_source *b, uint32_t source,
				uint32_t *refs)
{
	struct trace_span *span = add_span(list, source, 0);

	span->refs = refs;
	span->is_trace = is_trace_format(list->m, source);
	for (int kind = 0; kind < 3; kind++) {
		uint64_t count;
		const uint32_t *rows = rows_of(b, (enum trace_ref_kind)kind, source, &count);

		for (uint64_t i = 0; i < count; i++)
			refs[span->count++] = trace_make_ref((enum trace_ref_kind)kind, rows[i]);
	}
	list->rows += span->count;
}

static bool is_open_trace(const struct model *m, uint32_t source)
{
	return source < m->input_cap && m->inputs[source] && !m->backing &&
	       is_trace_format(m, source);
}

static uint64_t most_refs(const struct trace_list *list, const struct by_source *b)
{
	uint64_t count = b->count[0] + b->count[1] + b->count[2];

	for (uint32_t i = 0; i < b->sources; i++)
		if (b->listed[i])
			count += b->events[i] + model_listing(list->m, i)->count;
	return count;
}

static ow_status make_spans(struct trace_list *list, const struct by_source *b, bool scan,
			    struct ow_error *err)
{
	uint32_t *refs;

	if (list->m->event.count >= TRACE_EVENTS_MAX || b->count[1] >= TRACE_OTHERS_MAX ||
	    b->count[2] >= TRACE_OTHERS_MAX)
		return error_set(err, OW_E_LIMIT, "too many events for trace_events");
	if (!add_refs(list, MAX(most_refs(list, b), 1), &refs))
		return error_no_memory(err);
	for (uint32_t source = 1; source < b->sources; source++) {
		bool done = false;

		if (!scan && b->listed[source])
			OW_TRY(list_source(list, b, source, refs, &done, err));
		if (!done && (b->listed[source] || is_open_trace(list->m, source)))
			OW_TRY(scan_source(list, source, err));
		else if (!done)
			list_rows_of_source(list, b, source, refs);
		if (list->spans[list->span_count - 1].refs)
			refs += list->spans[list->span_count - 1].count;
	}
	return OW_OK;
}

ow_status trace_list_init(struct trace_list *list, struct mem *mem, const struct model *m,
			  bool scan, struct ow_error *err)
{
	struct by_source b = { .sources = m->source.count };
	void *spans = NULL;
	size_t cap = 0;
	uint32_t code;
	ow_status status;

	*list = (struct trace_list){ .mem = mem, .m = m };
	if (!trace_rows_init(&list->elements, mem, m) ||
	    !mem_grow(mem, &spans, &cap, m->source.count, sizeof(*list->spans)))
		return error_no_memory(err);
	list->spans = spans;
	list->span_cap = (uint32_t)cap;
	if (!trace_list_find_labels(list))
		return error_no_memory(err);
	/* Adds all letters now, so that no text has to be added while rows are read. */
	for (int letter = ' ' + 1; letter < 0x7f; letter++)
		if (!trace_rows_letter(&list->elements, (uint8_t)letter, &code))
			return error_no_memory(err);
	status = collect(list, &b, err);
	if (status == OW_OK)
		status = make_spans(list, &b, scan, err);
	release_by_source(list, &b);
	return status;
}

void trace_list_release(struct trace_list *list)
{
	for (uint32_t i = 0; i < list->span_count; i++) {
		const struct trace_span *span = &list->spans[i];

		mem_free(list->mem, span->arg_name, span->count * sizeof(uint32_t));
		mem_free(list->mem, span->arg_op, span->count * sizeof(uint32_t));
	}
	mem_free(list->mem, list->spans, list->span_cap * sizeof(*list->spans));
	mem_free(list->mem, list->refs, list->ref_cap * sizeof(*list->refs));
	mem_free(list->mem, list->labels, list->m->op.count * sizeof(*list->labels));
	trace_rows_release(&list->elements);
	for (size_t i = 0; i < ARRAY_COUNT(list->args); i++)
		trace_texts_release(&list->args[i]);
}

const struct trace_span *trace_list_span(const struct trace_list *list, uint64_t row)
{
	uint32_t low = 0, high = list->span_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (list->spans[middle].first <= row)
			low = middle;
		else
			high = middle;
	}
	while (list->spans[low].first + list->spans[low].count <= row)
		low++;
	return &list->spans[low];
}
