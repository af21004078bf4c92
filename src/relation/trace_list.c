/* trace_list.c: see trace_list.h. */
#include "relation/trace_list.h"

#define EVENTS_MAX (UINT32_C(1) << 31)
#define OTHERS_MAX (UINT32_C(1) << 29)

static uint32_t make_ref(enum trace_ref_kind kind, uint64_t row)
{
	return kind == REF_EVENT ? (uint32_t)row
				 : EVENTS_MAX | (uint32_t)(kind - REF_FLOW) << 29 | (uint32_t)row;
}

/* ---- rows by source ---- */

/* Events, flows and counters of each source, in the order of their tables. */
struct by_source {
	uint64_t *start[3]; /* [kind][source]; where the next source begins */
	uint32_t *rows[3];
	uint64_t count[3];
	uint32_t sources;
};

static uint32_t source_of(const struct model *m, enum trace_ref_kind kind, uint32_t row)
{
	track_id track = kind == REF_EVENT  ? m->event.track[row]
			 : kind == REF_FLOW ? m->flow.track[row]
					    : m->counter.track[row];

	return m->track.source[track.v].v;
}

/* Letters of events that were made of other elements, which are listed by themselves. */
static bool is_made(uint8_t ph)
{
	return ph && strchr("ETbneSpFstfCM", ph);
}

static bool has_row(const struct model *m, enum trace_ref_kind kind, uint32_t row, uint32_t source,
		    bool listed)
{
	if (!source || !listed)
		return source;
	if (kind == REF_EVENT)
		return !is_made(COLUMN_GET(m->event.ph, row));
	return kind == REF_FLOW && !COLUMN_GET(m->flow.event, row).v;
}

static uint32_t table_count(const struct model *m, enum trace_ref_kind kind)
{
	return kind == REF_EVENT  ? m->event.count
	       : kind == REF_FLOW ? m->flow.count
				  : m->counter.count;
}

static bool is_listed(const struct model *m, uint32_t source)
{
	const struct trace_listing *l = model_listing(m, source);

	return l && l->plain && source < m->input_cap && m->inputs[source];
}

static ow_status collect(const struct trace_list *list, struct by_source *b, struct error *err)
{
	const struct model *m = list->m;

	b->sources = m->source.count;
	for (int kind = 0; kind < 3; kind++) {
		uint32_t rows = table_count(m, (enum trace_ref_kind)kind);
		uint64_t *start = mem_zalloc(list->mem, (b->sources + 2) * sizeof(*start));

		b->start[kind] = start;
		if (!start)
			return error_no_memory(err);
		for (uint32_t pass = 0; pass < 2; pass++) {
			uint32_t last_track = UINT32_MAX, source = 0;
			bool listed = false;

			for (uint32_t i = 1; i < rows; i++) {
				uint32_t track = kind == REF_EVENT  ? m->event.track[i].v
						 : kind == REF_FLOW ? m->flow.track[i].v
								    : m->counter.track[i].v;

				if (track != last_track) {
					last_track = track;
					source = source_of(m, (enum trace_ref_kind)kind, i);
					listed = is_listed(m, source);
				}
				if (!has_row(m, (enum trace_ref_kind)kind, i, source, listed))
					continue;
				if (pass)
					b->rows[kind][start[source]++] = i;
				else
					start[source + 1]++;
			}
			if (pass)
				break;
			for (uint32_t s = 0; s <= b->sources; s++)
				start[s + 1] += start[s];
			b->count[kind] = start[b->sources + 1];
			b->rows[kind] =
				mem_alloc(list->mem, MAX(b->count[kind], 1) * sizeof(uint32_t));
			if (!b->rows[kind])
				return error_no_memory(err);
		}
	}
	return OW_OK;
}

static void release_by_source(const struct trace_list *list, struct by_source *b)
{
	for (int kind = 0; kind < 3; kind++) {
		mem_free(list->mem, b->start[kind], (b->sources + 2) * sizeof(uint64_t));
		mem_free(list->mem, b->rows[kind], MAX(b->count[kind], 1) * sizeof(uint32_t));
	}
}

/* After collecting, start[s] is where the rows of s end. */
static uint32_t *rows_of(const struct by_source *b, enum trace_ref_kind kind, uint32_t source,
			 uint64_t *count)
{
	uint64_t begin = source ? b->start[kind][source - 1] : 0;

	*count = b->start[kind][source] - begin;
	return b->rows[kind] + begin;
}

/* ---- the order of the file ---- */

#define PER_BUCKET 8
#define LARGE_BUCKET 64

static int by_place(const void *a, const void *b, void *arg)
{
	const uint64_t *place = arg;
	uint64_t x = place[*(const uint32_t *)a], y = place[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

static void sort_bucket(uint32_t *rows, size_t count, const uint64_t *place)
{
	uint64_t keys[LARGE_BUCKET];

	if (count > LARGE_BUCKET) {
		qsort_r(rows, count, sizeof(*rows), by_place, (void *)(uintptr_t)place);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t row = rows[i];
		uint64_t key = place[row];
		size_t j = i;

		/* cppcheck-suppress uninitvar ; those below i have been set */
		for (; j && keys[j - 1] > key; j--) {
			keys[j] = keys[j - 1];
			rows[j] = rows[j - 1];
		}
		keys[j] = key;
		rows[j] = row;
	}
}

/* Places are spread over the file evenly enough: rows go into buckets of few, which are then sorted. */
static bool sort_rows(struct mem *mem, const uint32_t *rows, uint64_t count, const uint64_t *place,
		      uint32_t *sorted)
{
	uint64_t low = UINT64_MAX, high = 0, buckets, *start;
	unsigned shift = 0;

	for (uint64_t i = 0; i < count; i++) {
		low = MIN(low, place[rows[i]]);
		high = MAX(high, place[rows[i]]);
	}
	while (count && (high - low) >> shift > count / PER_BUCKET)
		shift++;
	buckets = count ? ((high - low) >> shift) + 1 : 0;
	start = mem_zalloc(mem, (buckets + 1) * sizeof(*start));
	if (!start)
		return false;
	for (uint64_t i = 0; i < count; i++)
		start[((place[rows[i]] - low) >> shift) + 1]++;
	for (uint64_t i = 0; i < buckets; i++)
		start[i + 1] += start[i];
	for (uint64_t i = 0; i < count; i++)
		sorted[start[(place[rows[i]] - low) >> shift]++] = rows[i];
	for (uint64_t i = 0, first = 0; i < buckets; first = start[i++])
		sort_bucket(sorted + first, start[i] - first, place);
	mem_free(mem, start, (buckets + 1) * sizeof(*start));
	return true;
}

/* Elements that became no event go between those that did. Events are at the end of refs, and move up. */
static void merge_elements(const struct model *m, const struct trace_listing *l,
			   const uint32_t *flows, uint64_t element, uint32_t *refs, uint64_t events)
{
	uint64_t at = l->count, flow = 0, counter = 0, to = 0;

	for (size_t i = 0; i < l->count; i++) {
		uint64_t place = listing_place(l->elements[i]);

		for (; at < l->count + events && m->event.args_offset[refs[at]] < place; at++)
			refs[to++] = refs[at];
		if (!(l->elements[i] & LISTING_ALL))
			refs[to++] = make_ref(REF_ELEMENT, element++);
		else if (l->elements[i] & LISTING_FLOW)
			refs[to++] = make_ref(REF_FLOW, flows[flow]);
		else
			refs[to++] = make_ref(REF_LISTED, counter);
		flow += (l->elements[i] & LISTING_FLOW) != 0;
		counter += (l->elements[i] & LISTING_COUNTER) != 0;
	}
}

/* ---- spans ---- */

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

/* Flows that the tables have, and elements that must be read, as the listing counts them. */
static bool fits(const struct trace_list *list, const struct trace_listing *l, uint64_t events,
		 uint64_t flows)
{
	uint64_t counted = 0, counters = 0, to_read = 0;

	for (size_t i = 0; i < l->count; i++) {
		counted += (l->elements[i] & LISTING_FLOW) != 0;
		counters += (l->elements[i] & LISTING_COUNTER) != 0;
		to_read += !(l->elements[i] & LISTING_ALL);
	}
	return events == l->events && flows == counted && counters == l->counter_count &&
	       to_read <= 1000 + events / 8 && list->elements.count + to_read < OTHERS_MAX;
}

static enum trace_labels labels_of(const struct trace_list *list, const struct trace_listing *l,
				   const uint32_t *events, uint64_t count)
{
	uint64_t others = 0;

	for (uint64_t i = 0; i < count && l->labelled; i++)
		others += !trace_list_is_label(list, events[i]);
	if (!l->labelled || others > count / 16)
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

static ow_status list_source(struct trace_list *list, struct by_source *b, uint32_t source,
			     uint32_t *refs, bool *done, struct error *err)
{
	const struct trace_listing *l = model_listing(list->m, source);
	const struct model *m = list->m;
	uint64_t events, flows, element = list->elements.count;
	const uint32_t *event_rows = rows_of(b, REF_EVENT, source, &events);
	const uint32_t *flow_rows = rows_of(b, REF_FLOW, source, &flows);
	struct trace_span *span;

	*done = is_listed(m, source) && m->event.args_offset && fits(list, l, events, flows);
	if (!*done)
		return OW_OK;
	if (!sort_rows(list->mem, event_rows, events, m->event.args_offset, refs + l->count))
		return error_no_memory(err);
	OW_TRY(trace_rows_read(&list->elements, m->inputs[source], l->elements, l->count, err));
	merge_elements(m, l, flow_rows, element, refs, events);
	span = add_span(list, source, events + l->count);
	span->refs = refs;
	span->is_trace = span->listed = true;
	span->base_ns = l->base_ns;
	span->counters = l->counters;
	span->labels = labels_of(list, l, event_rows, events);
	return OW_OK;
}

static ow_status scan_source(struct trace_list *list, uint32_t source, struct error *err)
{
	uint64_t first = list->elements.count;
	struct trace_span *span;

	OW_TRY(trace_rows_scan(&list->elements, list->m->inputs[source], err));
	span = add_span(list, source, list->elements.count - first);
	span->first_element = first;
	span->is_trace = span->listed = true;
	return OW_OK;
}

/* What the model holds, and nothing is known of a file. */
static void tell_source(struct trace_list *list, const struct by_source *b, uint32_t source,
			uint32_t *refs)
{
	struct trace_span *span = add_span(list, source, 0);

	span->refs = refs;
	span->is_trace = is_trace_format(list->m, source);
	for (int kind = 0; kind < 3; kind++) {
		uint64_t count;
		const uint32_t *rows = rows_of(b, (enum trace_ref_kind)kind, source, &count);

		for (uint64_t i = 0; i < count; i++)
			refs[span->count++] = make_ref((enum trace_ref_kind)kind, rows[i]);
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

	for (size_t i = 0; i < list->m->listing_cap; i++)
		count += list->m->listings[i].count;
	return count;
}

static ow_status make_spans(struct trace_list *list, struct by_source *b, bool scan,
			    struct error *err)
{
	uint32_t *refs;

	if (b->count[0] >= EVENTS_MAX || b->count[1] >= OTHERS_MAX || b->count[2] >= OTHERS_MAX)
		return error_set(err, OW_E_LIMIT, "too many events for trace_events");
	if (!add_refs(list, MAX(most_refs(list, b), 1), &refs))
		return error_no_memory(err);
	for (uint32_t source = 1; source < b->sources; source++) {
		bool done = false;

		if (!scan)
			OW_TRY(list_source(list, b, source, refs, &done, err));
		if (!done && is_open_trace(list->m, source))
			OW_TRY(scan_source(list, source, err));
		else if (!done)
			tell_source(list, b, source, refs);
		if (list->spans[list->span_count - 1].refs)
			refs += list->spans[list->span_count - 1].count;
	}
	return OW_OK;
}

ow_status trace_list_init(struct trace_list *list, struct mem *mem, const struct model *m,
			  bool scan, struct error *err)
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
	list->is_path = mem_zalloc(mem, m->op.count);
	if (!list->is_path)
		return error_no_memory(err);
	for (uint32_t op = 1; op < m->op.count; op++)
		list->is_path[op] = str_starts(model_str(m, m->op.name[op]), STR("Iterator/"));
	/* All letters, so that no text is added when rows are read. */
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
	mem_free(list->mem, list->is_path, list->m->op.count);
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
