/*
 * heaps.c: finds the heaps of a model, and how much of each was in use at its peak and at the end, in one pass over the changes (heaps.h).
 * Called by the memory views. The use before the first change is often unknown. If the source has totals, the first one determines it;
 * otherwise the least value is taken for which the use never falls below zero. The first part makes changes from profiles of TensorFlow 1:
 * allocations and releases of ops (table alloc), and what allocators reported when an op ended (memory.in_use), which is a heap of its
 * own, because it includes memory that no op allocated. The second part says when steps ran: markers of a source divide its time into
 * steps; if no source has markers, and for memory that belongs to no source (TensorFlow's), the spans of the steps count.
 */
#include "analyze/memory/heaps.h"

#include "base/vec.h"

struct change {
	int64_t ts, size, total;
	uint32_t op_step;
};

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->op_step != y->op_step)
		return x->op_step < y->op_step ? -1 : 1;
	return (x->size < y->size) -
	       (x->size > y->size); /* at the same time, allocations come before releases */
}

static size_t gather(const struct model *m, struct change *to)
{
	size_t count = 0;

	for (uint32_t i = 1; i < m->alloc.count; i++)
		if (m->alloc.size[i])
			to[count++] = (struct change){ m->alloc.ts_ns[i], m->alloc.size[i], 0,
						       m->alloc.op_step[i] };
	for (uint32_t i = 1; m->memory.in_use && i < m->memory.count; i++)
		if (m->memory.in_use[i] > 0)
			to[count++] = (struct change){ m->memory.ts_ns[i], 0, m->memory.in_use[i],
						       m->memory.op_step[i] };
	return count;
}

struct columns {
	int64_t *ts, *size, *total;
	uint8_t *kind;
	op_id *op;
	str_id *device, *allocator;
	step_id *step;
};

static bool make_columns(struct arena *arena, struct columns *c, size_t count)
{
	c->ts = ARENA_ARRAY(arena, int64_t, count);
	c->size = ARENA_ARRAY(arena, int64_t, count);
	c->total = ARENA_ARRAY(arena, int64_t, count);
	c->kind = ARENA_ARRAY(arena, uint8_t, count);
	c->op = ARENA_ARRAY(arena, op_id, count);
	c->device = ARENA_ARRAY(arena, str_id, count);
	c->step = ARENA_ARRAY(arena, step_id, count);
	c->allocator = ARENA_ARRAY(arena, str_id, count);
	return c->ts && c->size && c->total && c->kind && c->op && c->device && c->step &&
	       c->allocator;
}

/* Fills the list of changes. Rows begin at 1, as in tables. */
static void fill(const struct model *m, const struct change *from, size_t count, struct columns *c)
{
	for (size_t i = 1; i <= count; i++, from++) {
		op_id op = m->op_step.op[from->op_step];

		c->ts[i] = from->ts;
		c->size[i] = from->size;
		c->total[i] = from->total;
		c->kind[i] = from->total ? HEAP_TOTAL : from->size < 0 ? HEAP_FREE : HEAP_ALLOC;
		c->op[i] = op;
		c->device[i] = m->op.device[op.v];
		c->step[i] = m->op_step.step[from->op_step];
		c->allocator[i] = (str_id){ from->total ? HEAP_ALL_OF_DEVICE : 0 };
	}
}

/* Makes the list of changes from a profile of TensorFlow 1. */
static ow_status heaps_from_allocs(struct heaps *h, struct heap_list *list)
{
	const struct model *m = h->m;
	size_t most = (size_t)m->alloc.count + (m->memory.in_use ? m->memory.count : 0), count;
	struct change *changes;
	struct columns c;

	*list = (struct heap_list){ 0 };
	if (m->alloc.count <= 1 && !m->memory.in_use)
		return OW_OK;
	changes = mem_alloc(m->mem, most * sizeof(*changes));
	if (!changes)
		return error_no_memory(h->err);
	count = gather(m, changes);
	if (count)
		qsort(changes, count, sizeof(*changes), by_time);
	if (!make_columns(&h->arena, &c, count + 1)) {
		mem_free(m->mem, changes, most * sizeof(*changes));
		return error_no_memory(h->err);
	}
	fill(m, changes, count, &c);
	mem_free(m->mem, changes, most * sizeof(*changes));
	*list = (struct heap_list){ .first = 1,
				    .count = (uint32_t)count + 1,
				    .ts_ns = c.ts,
				    .size = c.size,
				    .kind = c.kind,
				    .op = c.op,
				    .device_name = c.device,
				    .allocator = c.allocator,
				    .step = c.step,
				    .allocated = c.total };
	return OW_OK;
}

static int by_source(const void *a, const void *b)
{
	const struct heap_span *x = a, *y = b;

	if (x->source.v != y->source.v)
		return x->source.v < y->source.v ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static void add_windows(struct heaps *h)
{
	const struct window_table *w = &h->m->window;

	for (uint32_t i = 1; i < w->count; i++)
		h->spans[h->span_count++] = (struct heap_span){ w->source[i], w->step[i],
								w->start_ns[i], w->end_ns[i] };
}

static void add_steps(struct heaps *h)
{
	const struct step_table *t = &h->m->step;

	for (uint32_t i = 1; i < t->count; i++)
		if (t->start_ns[i] != TIME_UNKNOWN && t->end_ns[i] != TIME_UNKNOWN)
			h->spans[h->span_count++] = (struct heap_span){ .step = { i },
									.start_ns = t->start_ns[i],
									.end_ns = t->end_ns[i] };
}

static ow_status heaps_find_spans(struct heaps *h)
{
	const struct model *m = h->m;

	h->spans =
		ARENA_ARRAY(&h->arena, struct heap_span, (size_t)m->window.count + m->step.count);
	if (!h->spans)
		return error_no_memory(h->err);
	add_windows(h);
	add_steps(h);
	if (h->span_count)
		qsort(h->spans, h->span_count, sizeof(*h->spans), by_source);
	return OW_OK;
}

/* Returns the index of the first span whose source is not below `source`. */
static uint32_t first_of(const struct heaps *h, uint32_t source)
{
	uint32_t low = 0, high = h->span_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (h->spans[middle].source.v < source)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct heap_span *heap_spans(const struct heaps *h, const struct heap *heap, uint32_t *count)
{
	uint32_t source = h->m->window.count > 1 ? heap->source.v : 0;
	uint32_t first = first_of(h, source);

	*count = first_of(h, source + 1) - first;
	return h->spans + first;
}

step_id heap_step(const struct heaps *h, const struct heap *heap, uint32_t row)
{
	const struct heap_list *l = &h->lists[heap->list];
	uint32_t count, low = 0;
	const struct heap_span *spans = heap_spans(h, heap, &count);
	int64_t ts = l->ts_ns[row];

	if (l->step && l->step[row].v)
		return l->step[row];
	for (uint32_t high = count; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		if (spans[middle].start_ns <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	if (ts == TIME_UNKNOWN || !low || ts > spans[low - 1].end_ns)
		return (step_id){ 0 };
	return spans[low - 1].step;
}

void heap_columns(struct table *out)
{
	table_add_column(out, "device", "device", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "allocator", "allocator", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "rank", "rank", TYPE_INT, UNIT_NONE);
}

void heap_set_known(struct table *out, uint32_t row, uint32_t column, int64_t value, bool known)
{
	if (known)
		table_set_int(out, row, column, value);
	else
		table_set_unknown(out, row, column);
}

uint32_t heap_row(const struct heaps *h, const struct heap *heap, struct table *out)
{
	const struct model *m = h->m;
	uint32_t row = table_add_row(out, 0);
	int32_t rank = heap->source.v ? m->source.rank[heap->source.v] : -1;
	struct str allocator = heap_allocator_name(m, heap);

	table_set_model_text(out, row, HEAP_COLUMN_DEVICE, model_str(m, heap->device));
	if (allocator.len)
		table_set_model_text(out, row, HEAP_COLUMN_ALLOCATOR, allocator);
	else
		table_set_unknown(out, row, HEAP_COLUMN_ALLOCATOR);
	heap_set_known(out, row, HEAP_COLUMN_RANK, rank, rank >= 0);
	return row;
}

static void list_of_table(const struct model *m, struct heap_list *l)
{
	const struct heap_table *t = &m->heap;

	*l = (struct heap_list){ .first = 1,
				 .count = t->count,
				 .ts_ns = t->ts_ns,
				 .size = t->size,
				 .kind = t->kind,
				 .op = t->op,
				 .device = t->device,
				 .allocator = t->allocator,
				 .source = t->source,
				 .address = t->address,
				 .step = t->step,
				 .stack = t->stack,
				 .allocated = t->allocated,
				 .reserved = t->reserved,
				 .available = t->available,
				 .peak = t->peak,
				 .fragmentation = t->fragmentation,
				 .purpose = t->purpose };
}

struct key {
	uint32_t list;
	str_id device, allocator;
	source_id source;
};

static struct key key_of(const struct heaps *h, uint32_t list, uint32_t row)
{
	const struct heap_list *l = &h->lists[list];

	return (struct key){ list, heap_device_name(h->m, l, row), COLUMN_GET(l->allocator, row),
			     COLUMN_GET(l->source, row) };
}

static bool is_of(const struct heap *heap, const struct key *key)
{
	return heap->list == key->list && heap->device.v == key->device.v &&
	       heap->allocator.v == key->allocator.v && heap->source.v == key->source.v;
}

/* Finds or adds a heap; 0 if memory runs out. */
static uint32_t find_heap(struct heaps *h, const struct key *key)
{
	uint64_t hash = map_hash_u64((uint64_t)key->device.v << 32 | key->allocator.v,
				     (uint64_t)key->source.v << 1 | key->list);

	for (struct map_iter it = map_find(&h->map, hash); it.value; it = map_next(&h->map, it))
		if (is_of(&h->items[it.value], key))
			return it.value;
	if (!vec_reserve(h->m->mem, h->items, h->cap, (size_t)h->count + 1))
		return 0;
	h->items[h->count] = (struct heap){ .list = key->list,
					    .device = key->device,
					    .allocator = key->allocator,
					    .source = key->source,
					    .first_ns = TIME_UNKNOWN,
					    .last_ns = TIME_UNKNOWN,
					    .most = INT64_MIN,
					    .fragmentation = -1 };
	if (!map_add(&h->map, hash, h->count))
		return 0;
	return h->count++;
}

static void count_row(struct heap *heap, const struct heap_list *l, uint32_t row)
{
	heap->allocations += l->kind[row] == HEAP_ALLOC || l->kind[row] == HEAP_EXISTING;
	heap->releases += l->kind[row] == HEAP_FREE;
	heap->failures += l->kind[row] == HEAP_OUT_OF_MEMORY;
	if (l->ts_ns[row] != TIME_UNKNOWN) {
		if (heap->first_ns == TIME_UNKNOWN)
			heap->first_ns = l->ts_ns[row];
		heap->last_ns = l->ts_ns[row];
	}
	if (l->peak && l->peak[row] > heap->lifetime_peak)
		heap->lifetime_peak = l->peak[row];
	if (l->available && l->available[row])
		heap->available = l->available[row];
	if (l->fragmentation && (l->fragmentation[row] > 0 || l->kind[row] == HEAP_TOTAL))
		heap->fragmentation = l->fragmentation[row];
}

/* Uses the first total in the source to determine how much memory was in use at the start;
 * earlier sums count from there. */
static void anchor(struct heap *heap, int64_t total)
{
	int64_t start = wrap_sub(total, heap->sum);

	heap->anchored = true;
	heap->start.in_use = start;
	heap->sum = total;
	heap->before = wrap_add(heap->before, start);
	if (heap->most != INT64_MIN)
		heap->most = wrap_add(heap->most, start);
}

static void anchor_reserved(struct heap *heap, int64_t total)
{
	int64_t start = wrap_sub(total, heap->reserved_sum);

	heap->reserved_anchored = true;
	heap->start.reserved = start;
	heap->reserved_sum = total;
	heap->reserved_most = wrap_add(heap->reserved_most, start);
	heap->reserved_at_most = wrap_add(heap->reserved_at_most, start);
}

static void follow_reserved(struct heap *heap, const struct heap_list *l, uint32_t row)
{
	if (heap_changes_reserved(l->kind[row])) {
		heap->reserved_sum = wrap_add(heap->reserved_sum, l->size[row]);
		heap->has_reserved = true;
	}
	if (l->reserved && l->reserved[row]) {
		heap->has_reserved = true;
		if (!heap->reserved_anchored)
			anchor_reserved(heap, l->reserved[row]);
		heap->reserved_sum = l->reserved[row];
	}
	heap->reserved_low = MIN(heap->reserved_low, heap->reserved_sum);
	heap->reserved_most = MAX(heap->reserved_most, heap->reserved_sum);
}

static void follow(const struct heaps *h, struct heap *heap, const struct heap_list *l,
		   uint32_t row)
{
	bool reported = l->allocated && l->allocated[row];

	count_row(heap, l, row);
	follow_reserved(heap, l, row);
	if (heap_changes_use(l->kind[row]))
		heap->sum = wrap_add(heap->sum, l->size[row]);
	else if (!reported)
		return;
	if (reported && !heap->anchored)
		anchor(heap, l->allocated[row]);
	else if (reported)
		heap->sum = l->allocated[row];
	heap->low = MIN(heap->low, heap->sum);
	if (l->ts_ns[row] == TIME_UNKNOWN)
		heap->before = heap->sum;
	/* of several equal peaks the last one counts */
	if (heap->sum >= heap->most && heap_in_time(h, l->ts_ns[row])) {
		heap->most = heap->sum;
		heap->most_row = row;
		heap->reserved_at_most = heap->reserved_sum;
	}
}

static void finish_heap(struct heap *heap)
{
	if (!heap->anchored) {
		heap->start.in_use = heap->low < 0 ? wrap_sub(0, heap->low) : 0;
		heap->sum = wrap_add(heap->sum, heap->start.in_use);
		heap->before = wrap_add(heap->before, heap->start.in_use);
		if (heap->most != INT64_MIN)
			heap->most = wrap_add(heap->most, heap->start.in_use);
	}
	if (!heap->reserved_anchored) {
		heap->start.reserved = heap->reserved_low < 0 ? wrap_sub(0, heap->reserved_low) : 0;
		heap->reserved_sum = wrap_add(heap->reserved_sum, heap->start.reserved);
		heap->reserved_most = wrap_add(heap->reserved_most, heap->start.reserved);
		heap->reserved_at_most = wrap_add(heap->reserved_at_most, heap->start.reserved);
	}
	heap->peak = heap->most == INT64_MIN ? heap->start.in_use : heap->most;
	heap->peak_row = heap->most_row;
	heap->end = (struct heap_state){ heap->sum, heap->reserved_sum };
	heap->reserved_peak = heap->reserved_most;
	heap->reserved_at_peak = heap->reserved_at_most;
}

static ow_status read_list(struct heaps *h, uint32_t list)
{
	struct heap_list *l = &h->lists[list];
	struct key last = { .list = UINT32_MAX };
	uint32_t heap = 0;

	if (l->count <= l->first)
		return OW_OK;
	l->heap = arena_push_aligned(&h->arena, (size_t)l->count * sizeof(*l->heap),
				     _Alignof(uint32_t));
	if (!l->heap)
		return error_no_memory(h->err);
	for (uint32_t row = l->first; row < l->count; row++) {
		struct key key = key_of(h, list, row);

		if (key.device.v != last.device.v || key.allocator.v != last.allocator.v ||
		    key.source.v != last.source.v || key.list != last.list) {
			bool wanted = filter_source(&h->filter, h->m, key.source);

			heap = wanted ? find_heap(h, &key) : 0;
			if (wanted && !heap)
				return error_no_memory(h->err);
			last = key;
		}
		l->heap[row] = heap;
		if (heap)
			follow(h, &h->items[heap], l, row);
	}
	return OW_OK;
}

static int by_peak(const void *a, const void *b, void *arg)
{
	const struct heaps *h = arg;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	if (h->items[i].peak != h->items[k].peak)
		return h->items[i].peak > h->items[k].peak ? -1 : 1;
	return i < k ? -1 : 1;
}

static ow_status order_heaps(struct heaps *h)
{
	h->order = ARENA_ARRAY(&h->arena, uint32_t, h->count);
	if (!h->order)
		return error_no_memory(h->err);
	for (uint32_t i = 1; i < h->count; i++)
		h->order[i - 1] = i;
	if (h->count > 2)
		qsort_r(h->order, h->count - 1, sizeof(*h->order), by_peak, h);
	return OW_OK;
}

static ow_status find_all(struct heaps *h)
{
	void *items = NULL;

	if (!mem_grow(h->m->mem, &items, &h->cap, 16, sizeof(*h->items)))
		return error_no_memory(h->err);
	h->items = items;
	h->items[0] = (struct heap){ 0 };
	h->count = 1;
	for (uint32_t i = 0; i < HEAP_LISTS; i++)
		OW_TRY(read_list(h, i));
	for (uint32_t i = 1; i < h->count; i++)
		finish_heap(&h->items[i]);
	OW_TRY(heaps_find_spans(h));
	return order_heaps(h);
}

/* Returns the time from which times are counted: the first event or change (a memory snapshot has no
 * events). TIME_UNKNOWN if nothing has a time. */
static int64_t find_origin(const struct heaps *h)
{
	int64_t start = model_trace_start(h->m);

	for (uint32_t i = 0; i < HEAP_LISTS; i++)
		for (uint32_t row = h->lists[i].first; row < h->lists[i].count; row++) {
			int64_t ts = h->lists[i].ts_ns[row];

			if (ts != TIME_UNKNOWN && (start == TIME_UNKNOWN || ts < start))
				start = ts;
		}
	return start;
}

/* Restricts the time to a step: from its first to its last marker, or the span of its events. */
static void choose_step(struct heaps *h, step_id step)
{
	const struct model *m = h->m;
	int64_t start = m->step.start_ns[step.v], end = m->step.end_ns[step.v];
	bool marked = false;

	for (uint32_t i = 1; i < m->window.count; i++) {
		if (m->window.step[i].v != step.v)
			continue;
		start = marked ? MIN(start, m->window.start_ns[i]) : m->window.start_ns[i];
		end = marked ? MAX(end, m->window.end_ns[i]) : m->window.end_ns[i];
		marked = true;
	}
	if (start != TIME_UNKNOWN)
		h->filter.from_ns = MAX(h->filter.from_ns, start);
	if (end != TIME_UNKNOWN)
		h->filter.to_ns = MIN(h->filter.to_ns, end);
}

ow_status heaps_find(struct heaps *h, struct model *m, const struct view_options *options,
		     struct ow_error *err)
{
	int64_t start;

	*h = (struct heaps){ .m = m, .err = err };
	arena_init(&h->arena, m->mem);
	map_init(&h->map, m->mem);
	list_of_table(h->m, &h->lists[0]);
	OW_TRY(heaps_from_allocs(h, &h->lists[1]));
	start = find_origin(h);
	h->origin_ns = start == TIME_UNKNOWN ? 0 : start;
	OW_TRY(view_filter_from(m, options, start, &h->filter, err));
	if (h->filter.step)
		choose_step(h, (step_id){ h->filter.step });
	return find_all(h);
}

void heaps_release(struct heaps *h)
{
	mem_free(h->m->mem, h->items, h->cap * sizeof(*h->items));
	map_release(&h->map);
	arena_release(&h->arena);
}
