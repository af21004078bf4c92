/*
 * view_memory_time.c: the view `memory_time`, for charts: the time is divided into equal parts, and each part has the maximum use of each heap
 * and the memory held at its end. The part with the peak also says what was in use then. The parts are the same for all heaps, so charts
 * of several heaps line up.
 */
#include "analyze/memory/heaps.h"

#define PARTS 240
#define HEAPS_MAX 64 /* largest number of heaps that are shown, those with the largest peaks */
#define NAMED 5	     /* number of users of memory that are named at the peak */

enum { COLUMN_TS = HEAP_COLUMNS, COLUMN_IN_USE, COLUMN_RESERVED, COLUMN_PEAK, COLUMN_ALIVE };

struct part {
	int64_t most, end,
		/* largest amount in use in this part, and the amounts in use and held at its end */
		reserved;
	bool changed;
};

struct chart {
	struct heaps h;
	struct part *parts; /* PARTS items for each shown heap */
	struct heap_state *state;
	uint32_t *shown; /* for each heap: its place + 1; 0 = not shown */
	uint32_t count;
	int64_t from_ns, width_ns;
};

static void add_columns(struct table *out)
{
	heap_columns(out);
	table_add_column(out, "ts_ns", "time", TYPE_INT, UNIT_NS);
	table_add_column(out, "in_use_bytes", "in use", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "reserved_bytes", "held", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "peak", "peak", TYPE_BOOL, UNIT_NONE);
	table_add_column(out, "alive", "in use at the peak", TYPE_TEXT, UNIT_NONE);
}

static bool find_width(struct chart *c)
{
	const struct heaps *h = &c->h;
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (uint32_t i = 1; i < h->count; i++) {
		if (h->items[i].first_ns == TIME_UNKNOWN)
			continue;
		first = MIN(first, MAX(h->items[i].first_ns, h->filter.from_ns));
		last = MAX(last, MIN(h->items[i].last_ns, h->filter.to_ns));
	}
	if (first > last) { /* no change has a time, so there is one part */
		first = last = 0;
		if (h->count <= 1)
			return false;
	}
	c->from_ns = first;
	c->width_ns = (int64_t)(((uint64_t)last - (uint64_t)first) / PARTS) + 1;
	return true;
}

static size_t part_of(const struct chart *c, int64_t ts)
{
	if (ts == TIME_UNKNOWN || ts <= c->from_ns)
		return 0;
	return MIN((size_t)(((uint64_t)ts - (uint64_t)c->from_ns) / (uint64_t)c->width_ns),
		   (size_t)PARTS - 1);
}

static void follow(struct chart *c, const struct heap_list *l, uint32_t row)
{
	uint32_t place = c->shown[l->heap[row]] - 1;
	struct heap_state *state = &c->state[place];
	struct part *part = &c->parts[place * (size_t)PARTS + part_of(c, l->ts_ns[row])];

	if (!part->changed) {
		/* memory in use at the begin of the part counts, except memory from before the
		 * recording */
		part->most = l->ts_ns[row] == TIME_UNKNOWN ? 0 : state->in_use;
		part->changed = true;
	}
	heap_apply(l, row, state);
	part->most = l->ts_ns[row] == TIME_UNKNOWN ? state->in_use : MAX(part->most, state->in_use);
	part->end = state->in_use;
	part->reserved = state->reserved;
}

static ow_status measure(struct chart *c)
{
	struct heaps *h = &c->h;

	c->count = MIN(h->count - 1, (uint32_t)HEAPS_MAX);
	c->parts = ARENA_ARRAY(&h->arena, struct part, (size_t)c->count * PARTS);
	c->state = ARENA_ARRAY(&h->arena, struct heap_state, c->count);
	c->shown = ARENA_ARRAY(&h->arena, uint32_t, h->count);
	if (!c->parts || !c->state || !c->shown)
		return error_no_memory(h->err);
	for (uint32_t i = 0; i < c->count; i++) {
		c->shown[h->order[i]] = i + 1;
		c->state[i] = h->items[h->order[i]].start;
	}
	for (uint32_t list = 0; list < HEAP_LISTS; list++) {
		const struct heap_list *l = &h->lists[list];

		for (uint32_t row = l->first; l->heap && row < l->count; row++)
			if (l->heap[row] && c->shown[l->heap[row]])
				follow(c, l, row);
	}
	return OW_OK;
}

/* Writes names with their bytes, by the most informative grouping: "train.py:10:forward (12345),
 * …". */
static void name_alive(const struct heap_alive *alive, struct buf *text)
{
	static const enum heap_grouping best[] = { GROUP_LINE, GROUP_OP, GROUP_PURPOSE };

	for (size_t b = 0; b < ARRAY_COUNT(best) && !text->len; b++) {
		uint32_t named = 0;

		for (uint32_t i = 0; i < alive->count && named < NAMED; i++) {
			const struct heap_group *g = &alive->groups[i];

			if (g->by == best[b])
				buf_printf(text, "%s%.*s (%lld)", named++ ? ", " : "",
					   STR_ARG(str_first(g->name, 200)), (long long)g->bytes);
		}
	}
}

static ow_status add_part(const struct chart *c, uint32_t heap, size_t p, const struct part *part,
			  const struct heap_alive *alive, struct table *out)
{
	const struct heaps *h = &c->h;
	const struct heap *of = &h->items[heap];
	bool peak = of->peak_row && part_of(c, h->lists[of->list].ts_ns[of->peak_row]) == p;
	uint32_t row = heap_row(h, of, out);
	struct buf text;

	table_set_int(out, row, COLUMN_TS,
		      wrap_add(wrap_sub(c->from_ns, h->origin_ns),
			       (int64_t)((uint64_t)p * (uint64_t)c->width_ns)));
	table_set_int(out, row, COLUMN_IN_USE, part->most);
	heap_set_known(out, row, COLUMN_RESERVED, part->reserved, of->has_reserved);
	table_set_int(out, row, COLUMN_PEAK, peak);
	if (!peak) {
		table_set_unknown(out, row, COLUMN_ALIVE);
		return OW_OK;
	}
	buf_init(&text, h->m->mem);
	name_alive(alive, &text);
	table_set_text(out, row, COLUMN_ALIVE, buf_str(&text));
	peak = !text.failed;
	buf_release(&text);
	return peak ? OW_OK : error_no_memory(h->err);
}

/* Adds the rows of a heap. A part without a change repeats the state at the end of the part
 * before. */
static ow_status list_heap(const struct chart *c, uint32_t place, const struct heap_alive *alive,
			   struct table *out)
{
	uint32_t heap = c->h.order[place];
	const struct heap *of = &c->h.items[heap];
	const struct part *parts = &c->parts[place * (size_t)PARTS];
	struct part before = { .end = of->start.in_use, .reserved = of->start.reserved };
	size_t last = part_of(c, of->last_ns);

	for (size_t p = 0; p <= last; p++) {
		struct part part = parts[p];

		if (!part.changed)
			part = (struct part){ before.end, before.end, before.reserved, false };
		OW_TRY(add_part(c, heap, p, &part, alive, out));
		before = part;
	}
	return OW_OK;
}

static ow_status run_chart(struct chart *c, struct table *out)
{
	struct heap_alive *alive = NULL;

	if (!find_width(c))
		return OW_OK;
	OW_TRY(measure(c));
	OW_TRY(heaps_alive(&c->h, NULL, &alive));
	for (uint32_t i = 0; i < c->count; i++)
		OW_TRY(list_heap(c, i, &alive[c->h.order[i]], out));
	return OW_OK;
}

static ow_status run_memory_time_view(struct model *m, const struct view_options *options,
				      struct table *out, struct ow_error *err)
{
	struct chart c = { 0 };
	ow_status status = heaps_find(&c.h, m, options, err);

	add_columns(out);
	if (status == OW_OK)
		status = run_chart(&c, out);
	heaps_release(&c.h);
	OW_TRY(status);
	if (options->limit)
		table_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_memory_time = {
	.name = "memory_time",
	.summary = "memory over time, cut into equal parts",
	.uses = VIEW_USES_PART,
	.run = run_memory_time_view,
};
