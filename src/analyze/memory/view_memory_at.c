/*
 * view_memory_at.c: the view `memory_at`: memory in use at a time, summed by operation, scope, line of code and purpose, and how much it
 * differs from an earlier time. The times are the end and the start of the time range or step; without one they are the end of the
 * recording and its beginning, so that the view shows what was not released. All changes up to a time, that time included,
 * count. alive.c finds what was in use.
 */
#include "analyze/memory/heaps.h"

enum {
	COLUMN_BY = HEAP_COLUMNS,
	COLUMN_NAME,
	COLUMN_BYTES,
	COLUMN_PERCENT,
	COLUMN_BLOCKS,
	COLUMN_START,
	COLUMN_CHANGE
};

/* The state of all heaps at one time. */
struct moment {
	struct heap_alive *alive; /* for each heap: groups of the memory in use */
	int64_t *in_use;
};

/* One group at the start and at the end of the range. */
struct pair {
	const struct heap_group *start, *end; /* state at both times; one of them may be NULL */
};

static void add_columns(struct table *out)
{
	heap_columns(out);
	table_add_column(out, "grouped_by", "by", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "bytes", "in use", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "percent", "share", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "blocks", "blocks", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "start_bytes", "at start", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "change_bytes", "change", TYPE_INT, UNIT_BYTES);
}

static ow_status memory_at_time(struct heaps *h, int64_t ts, struct moment *out)
{
	uint32_t *rows = ARENA_ARRAY(&h->arena, uint32_t, h->count);
	struct heap_state *state = ARENA_ARRAY(&h->arena, struct heap_state, h->count);

	out->in_use = ARENA_ARRAY(&h->arena, int64_t, h->count);
	if (!rows || !state || !out->in_use)
		return error_no_memory(h->err);
	for (uint32_t i = 1; i < h->count; i++)
		state[i] = h->items[i].start;
	for (uint32_t list = 0; list < HEAP_LISTS; list++) {
		const struct heap_list *l = &h->lists[list];

		for (uint32_t row = l->first; l->heap && row < l->count; row++) {
			uint32_t heap = l->heap[row];

			if (!heap || (l->ts_ns[row] != TIME_UNKNOWN && l->ts_ns[row] > ts))
				continue;
			heap_apply(l, row, &state[heap]);
			rows[heap] = row;
		}
	}
	for (uint32_t i = 1; i < h->count; i++)
		out->in_use[i] = state[i].in_use;
	return heaps_alive(h, rows, &out->alive);
}

static int64_t bytes_of(const struct heap_group *group)
{
	return group ? group->bytes : 0;
}

static int64_t change_of(const struct pair *pair)
{
	return wrap_sub(bytes_of(pair->end), bytes_of(pair->start));
}

static const struct heap_group *either(const struct pair *pair)
{
	return pair->end ? pair->end : pair->start;
}

static uint64_t size_of(int64_t change)
{
	return change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
}

static int by_name(const void *a, const void *b)
{
	const struct heap_group *x = *(const struct heap_group *const *)a;
	const struct heap_group *y = *(const struct heap_group *const *)b;

	if (x->by != y->by)
		return x->by < y->by ? -1 : 1;
	return str_cmp(x->name, y->name);
}

/* Orders groups by size, the largest first; with a start time, by the size of the change. */
static int by_weight(const void *a, const void *b, void *compared)
{
	const struct pair *x = a, *y = b;
	uint64_t xs = size_of(change_of(x)), ys = size_of(change_of(y));

	if (either(x)->by != either(y)->by)
		return either(x)->by < either(y)->by ? -1 : 1;
	if (*(const bool *)compared && xs != ys)
		return xs > ys ? -1 : 1;
	if (bytes_of(x->end) != bytes_of(y->end))
		return bytes_of(x->end) > bytes_of(y->end) ? -1 : 1;
	if (xs != ys)
		return xs > ys ? -1 : 1;
	return str_cmp(either(x)->name, either(y)->name);
}

/* Returns the groups ordered by name; NULL if memory runs out. */
static const struct heap_group **ordered(struct heaps *h, const struct heap_alive *alive)
{
	const struct heap_group **out =
		ARENA_ARRAY(&h->arena, const struct heap_group *, (size_t)alive->count + 1);

	for (uint32_t i = 0; out && i < alive->count; i++)
		out[i] = &alive->groups[i];
	if (out && alive->count)
		qsort(out, alive->count, sizeof(const struct heap_group *), by_name);
	return out;
}

static ow_status pair_up(struct heaps *h, const struct heap_alive *start,
			 const struct heap_alive *end, struct pair **pairs, uint32_t *count)
{
	const struct heap_group **first = ordered(h, start), **last = ordered(h, end);
	uint32_t i = 0, k = 0;

	*count = 0;
	*pairs = ARENA_ARRAY(&h->arena, struct pair, (size_t)start->count + end->count + 1);
	if (!first || !last || !*pairs)
		return error_no_memory(h->err);
	while (i < start->count || k < end->count) {
		int order = i == start->count ? 1
			    : k == end->count ? -1
					      : by_name(&first[i], &last[k]);

		(*pairs)[(*count)++] =
			(struct pair){ order <= 0 ? first[i] : NULL, order >= 0 ? last[k] : NULL };
		i += order <= 0;
		k += order >= 0;
	}
	return OW_OK;
}

static void add_row(const struct heaps *h, uint32_t heap, int64_t in_use, const struct pair *pair,
		    struct table *out)
{
	uint32_t row = heap_row(h, &h->items[heap], out);
	uint64_t blocks = pair->end ? pair->end->count : 0;

	table_set_model_text(out, row, COLUMN_BY, str_from(heap_grouping_name(either(pair)->by)));
	table_set_text(out, row, COLUMN_NAME, either(pair)->name);
	table_set_int(out, row, COLUMN_BYTES, bytes_of(pair->end));
	if (in_use > 0)
		table_set_real(out, row, COLUMN_PERCENT,
			       100.0 * (double)bytes_of(pair->end) / (double)in_use);
	else
		table_set_unknown(out, row, COLUMN_PERCENT);
	heap_set_known(out, row, COLUMN_BLOCKS, (int64_t)blocks, blocks > 0 || !pair->end);
	table_set_int(out, row, COLUMN_START, bytes_of(pair->start));
	table_set_int(out, row, COLUMN_CHANGE, change_of(pair));
}

/* Adds a row for the memory that the groups of one kind do not explain. */
static void add_unknown(const struct heaps *h, uint32_t heap, const struct moment *start,
			const struct moment *end, enum heap_grouping by, const int64_t known[2],
			struct table *out)
{
	struct heap_group groups[2] = {
		{ by, STR("(unknown)"), wrap_sub(start->in_use[heap], known[0]), 0 },
		{ by, STR("(unknown)"), wrap_sub(end->in_use[heap], known[1]), 0 },
	};

	if (groups[0].bytes || groups[1].bytes)
		add_row(h, heap, end->in_use[heap], &(struct pair){ &groups[0], &groups[1] }, out);
}

static ow_status add_heap(struct heaps *h, uint32_t heap, const struct moment *start,
			  const struct moment *end, uint32_t limit, struct table *out)
{
	bool compared = h->filter.from_ns != INT64_MIN;
	uint32_t count;
	struct pair *pairs;

	OW_TRY(pair_up(h, &start->alive[heap], &end->alive[heap], &pairs, &count));
	if (count)
		qsort_r(pairs, count, sizeof(*pairs), by_weight, &compared);
	for (uint32_t i = 0; i < count;) {
		enum heap_grouping by = either(&pairs[i])->by;
		int64_t known[2] = { 0, 0 };

		for (uint32_t n = 0; i < count && either(&pairs[i])->by == by; i++, n++) {
			known[0] = wrap_add(known[0], bytes_of(pairs[i].start));
			known[1] = wrap_add(known[1], bytes_of(pairs[i].end));
			if (!limit || n < limit)
				add_row(h, heap, end->in_use[heap], &pairs[i], out);
		}
		add_unknown(h, heap, start, end, by, known, out);
	}
	return OW_OK;
}

static ow_status run_memory_at_view(struct model *m, const struct view_options *options,
				    struct table *out, struct ow_error *err)
{
	struct moment start = { 0 }, end = { 0 };
	struct heaps h;
	ow_status status = heaps_find(&h, m, options, err);

	add_columns(out);
	if (status == OW_OK)
		status = memory_at_time(&h, h.filter.from_ns, &start);
	if (status == OW_OK)
		status = memory_at_time(&h, h.filter.to_ns, &end);
	for (uint32_t i = 0; status == OW_OK && i + 1 < h.count; i++)
		status = add_heap(&h, h.order[i], &start, &end, options->limit, out);
	heaps_release(&h);
	OW_TRY(status);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_memory_at = {
	.name = "memory_at",
	.summary = "memory in use at a time, and the difference to an earlier time",
	.uses = VIEW_USES_PART,
	.run = run_memory_at_view,
};
