/*
 * rows.c: arranges events, samples and counters of a model in the rows of tile.h. Two events of one track and depth
 * that overlap get different lanes, so that neither hides the other: each event takes the first lane that is free when
 * it begins. It makes one pass to choose lanes and one to place the items; it needs 8 bytes per event while it runs, 4
 * afterwards.
 */
#include "tile/tile_int.h"

#include "base/str.h"
#include "base/vec.h"

/* The time at which each lane becomes free, as a tournament tree: node 1 has the smallest time, leaves are lanes. */
struct lanes {
	int64_t *least;	     /* 2 × cap nodes */
	uint32_t *rows;	     /* row number of each lane, in order of creation */
	uint32_t count, cap; /* cap is a power of two */
};

static bool lanes_grow(struct lanes *l, struct mem *mem)
{
	uint32_t cap = l->cap ? l->cap * 2 : 1;
	int64_t *least = mem_alloc(mem, 2 * (size_t)cap * sizeof(*least));
	uint32_t *rows = mem_realloc(mem, l->rows, l->cap * sizeof(*rows), cap * sizeof(*rows));

	if (rows)
		l->rows = rows;
	if (!least || !rows) {
		mem_free(mem, least, 2 * (size_t)cap * sizeof(*least));
		if (rows) /* the arrays keep the size that cap says */
			l->rows = l->cap ? mem_realloc(mem, rows, cap * sizeof(*rows),
						       l->cap * sizeof(*rows))
					 : (mem_free(mem, rows, cap * sizeof(*rows)), NULL);
		return false;
	}
	for (uint32_t i = 0; i < cap; i++)
		least[cap + i] = i < l->count ? l->least[l->cap + i] : INT64_MIN;
	for (uint32_t i = cap - 1; i > 0; i--)
		least[i] = MIN(least[2 * i], least[2 * i + 1]);
	mem_free(mem, l->least, 2 * (size_t)l->cap * sizeof(*least));
	l->least = least;
	l->cap = cap;
	return true;
}

/* Takes the first lane that is free at `start`, until `end`. A new lane gets the number l->count; false if memory
 * runs out. */
static bool lanes_take(struct lanes *l, struct mem *mem, int64_t start, int64_t end, uint32_t *lane)
{
	uint32_t node = 1;

	if (!l->cap || l->least[1] > start)
		if (!lanes_grow(l, mem))
			return false;
	while (node < l->cap)
		node = l->least[2 * node] <= start ? 2 * node : 2 * node + 1;
	*lane = node - l->cap;
	l->least[node] = end;
	for (node /= 2; node > 0; node /= 2)
		l->least[node] = MIN(l->least[2 * node], l->least[2 * node + 1]);
	return true;
}

static void lanes_release(struct lanes *l, struct mem *mem)
{
	mem_free(mem, l->least, 2 * (size_t)l->cap * sizeof(*l->least));
	mem_free(mem, l->rows, l->cap * sizeof(*l->rows));
}

struct arranging {
	struct tiles *t;
	struct ow_error *err;
	struct lanes *depths; /* lanes of the current track, one entry for each depth */
	size_t depth_cap;
	uint32_t *row_of; /* for each event: its row, in order of creation */
	uint32_t *order;  /* events of the current track, if they are not sorted by time */
	size_t order_cap;
};

static uint32_t add_row(struct tiles *t, enum tile_kind kind, uint32_t track, uint32_t depth,
			uint32_t lane)
{
	if (t->row_count >= UINT32_MAX - 1 ||
	    !vec_reserve(t->mem, t->rows, t->row_cap, t->row_count + 1))
		return UINT32_MAX;
	t->rows[t->row_count] = (struct row_store){
		.info = { .kind = kind, .track = { track }, .depth = depth, .lane = lane },
	};
	return (uint32_t)t->row_count++;
}

static bool starts_before(const struct model *m, uint32_t a, uint32_t b)
{
	if (m->event.ts_ns[a] != m->event.ts_ns[b])
		return m->event.ts_ns[a] < m->event.ts_ns[b];
	if (m->event.dur_ns[a] != m->event.dur_ns[b])
		return m->event.dur_ns[a] > m->event.dur_ns[b];
	return a < b;
}

static int compare_events(const void *a, const void *b, void *arg)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return starts_before(arg, x, y) ? -1 : x != y;
}

static ow_status place_event(struct arranging *a, uint32_t track, uint32_t event)
{
	struct tiles *t = a->t;
	const struct model *m = t->m;
	bool nested = COLUMN_GET(m->track.flags, track) & TRACK_NESTED;
	uint32_t depth = nested ? COLUMN_GET(m->event.depth, event) : 0, lane;
	int64_t start = m->event.ts_ns[event];
	struct lanes *l;

	if (depth >= a->depth_cap) {
		if (!vec_reserve_zero(t->mem, a->depths, a->depth_cap, depth + 1))
			return error_no_memory(a->err);
	}
	l = &a->depths[depth];
	if (!lanes_take(l, t->mem, start, tile_end_ns(start, m->event.dur_ns[event]), &lane))
		return error_no_memory(a->err);
	if (lane == l->count) {
		l->rows[lane] = add_row(t, TILE_EVENTS, track, depth, lane);
		if (l->rows[lane] == UINT32_MAX)
			return error_no_memory(a->err);
		l->count++;
	}
	a->row_of[event] = l->rows[lane];
	t->rows[l->rows[lane]].info.items++;
	return OW_OK;
}

/* Assigns lanes to the events of one track, events[0…count), and sorts them by time. */
static ow_status place_track(struct arranging *a, uint32_t track, uint32_t *events, uint32_t count)
{
	const struct model *m = a->t->m;
	bool sorted = true;

	for (uint32_t i = 1; i < count && sorted; i++)
		sorted = starts_before(m, events[i - 1], events[i]);
	if (!sorted)
		qsort_r(events, count, sizeof(*events), compare_events, (void *)m);
	for (uint32_t i = 0; i < count; i++)
		OW_TRY(place_event(a, track, events[i]));
	for (size_t d = 0; d < a->depth_cap; d++) {
		lanes_release(&a->depths[d], a->t->mem);
		a->depths[d] = (struct lanes){ 0 };
	}
	return OW_OK;
}

/* Chooses the row of every event. t->items temporarily holds the events by track, sorted by time. */
static ow_status place_events(struct arranging *a)
{
	struct tiles *t = a->t;
	const struct model *m = t->m;
	uint32_t *first = mem_zalloc(t->mem, ((size_t)m->track.count + 1) * sizeof(*first));
	ow_status status = OW_OK;

	if (!first)
		return error_no_memory(a->err);
	for (uint32_t e = 1; e < m->event.count; e++)
		if (m->event.ts_ns[e] != TIME_UNKNOWN)
			first[m->event.track[e].v + 1]++;
	for (uint32_t i = 0; i < m->track.count; i++)
		first[i + 1] += first[i];
	for (uint32_t e = 1; e < m->event.count; e++)
		if (m->event.ts_ns[e] != TIME_UNKNOWN)
			t->items[first[m->event.track[e].v]++] = e;
	/* first[i] is now the end of track i. */
	for (uint32_t i = 0, begin = 0; i < m->track.count && status == OW_OK; i++) {
		status = place_track(a, i, t->items + begin, first[i] - begin);
		begin = first[i];
	}
	mem_free(t->mem, first, ((size_t)m->track.count + 1) * sizeof(*first));
	return status;
}

/* Makes one row per track for samples of the default metric. *total is the number of samples that have a row. */
static ow_status find_sample_rows(struct arranging *a, uint32_t *row_of, uint32_t *total)
{
	struct tiles *t = a->t;
	const struct model *m = t->m;
	uint32_t track = UINT32_MAX, row = UINT32_MAX;

	for (uint32_t s = 1; s < m->sample.count; s++) {
		row_of[s] = UINT32_MAX;
		if (m->sample.ts_ns[s] == TIME_UNKNOWN ||
		    !m->metric.is_default[m->sample.metric[s].v])
			continue;
		if (m->sample.track[s].v != track || row == UINT32_MAX) {
			track = m->sample.track[s].v;
			row = add_row(t, TILE_SAMPLES, track, 0, 0);
			if (row == UINT32_MAX)
				return error_no_memory(a->err);
		}
		row_of[s] = row;
		t->rows[row].info.items++;
		++*total;
	}
	return OW_OK;
}

static bool same_counter(const struct model *m, uint32_t a, uint32_t b)
{
	return m->counter.track[a].v == m->counter.track[b].v &&
	       m->counter.name[a].v == m->counter.name[b].v &&
	       m->counter.series[a].v == m->counter.series[b].v &&
	       COLUMN_GET(m->counter.instance, a).v == COLUMN_GET(m->counter.instance, b).v;
}

/* Makes one row for each counter and series. */
static ow_status find_counter_rows(struct arranging *a, uint32_t *row_of)
{
	struct tiles *t = a->t;
	const struct model *m = t->m;
	struct map map; /* key → a row of the table counter with the same series */
	ow_status status = OW_OK;

	map_init(&map, t->mem);
	for (uint32_t c = 1; c < m->counter.count && status == OW_OK; c++) {
		uint64_t hash =
			map_hash_u64((uint64_t)m->counter.track[c].v << 32 | m->counter.name[c].v,
				     (uint64_t)m->counter.series[c].v << 32 |
					     COLUMN_GET(m->counter.instance, c).v);
		struct map_iter it = map_find(&map, hash);

		while (it.value && !same_counter(m, it.value, c))
			it = map_next(&map, it);
		if (it.value) {
			row_of[c] = row_of[it.value];
		} else {
			row_of[c] = add_row(t, TILE_COUNTER, m->counter.track[c].v, 0, 0);
			if (row_of[c] == UINT32_MAX || !map_add(&map, hash, c)) {
				status = error_no_memory(a->err);
				break;
			}
			t->rows[row_of[c]].info.name =
				model_str(m, m->counter.series[c].v ? m->counter.series[c]
								    : m->counter.name[c]);
		}
		t->rows[row_of[c]].info.items++;
	}
	map_release(&map);
	return status;
}

static int compare_i64(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Orders tracks as trace viewers do: by the source's own order first, then by rank, input, process, thread. */
static int compare_tracks(const struct model *m, uint32_t a, uint32_t b)
{
	uint32_t sa = m->track.source[a].v, sb = m->track.source[b].v;
	int order = compare_i64(m->source.rank[sa], m->source.rank[sb]);

	order = order ? order : compare_i64(sa, sb);
	order = order ? order
		      : compare_i64(COLUMN_GET(m->track.process_sort_index, a),
				    COLUMN_GET(m->track.process_sort_index, b));
	order = order ? order : compare_i64(m->track.pid[a], m->track.pid[b]);
	order = order ? order
		      : compare_i64(COLUMN_GET(m->track.sort_index, a),
				    COLUMN_GET(m->track.sort_index, b));
	order = order ? order
		      : str_cmp(model_str(m, m->track.name[a]), model_str(m, m->track.name[b]));
	order = order ? order : compare_i64(m->track.tid[a], m->track.tid[b]);
	return order ? order : compare_i64(a, b);
}

static int compare_rows(const void *x, const void *y, void *arg)
{
	const struct tiles *t = arg;
	const struct tile_row *a = &t->rows[*(const uint32_t *)x].info;
	const struct tile_row *b = &t->rows[*(const uint32_t *)y].info;
	int order = a->track.v == b->track.v ? 0 : compare_tracks(t->m, a->track.v, b->track.v);

	order = order ? order : compare_i64(a->kind, b->kind);
	order = order ? order : compare_i64(a->depth, b->depth);
	order = order ? order : compare_i64(a->lane, b->lane);
	return order ? order : compare_i64(*(const uint32_t *)x, *(const uint32_t *)y);
}

/* Sorts the rows; new_of[i] becomes the new index of the row that was number i. */
static ow_status order_rows(struct tiles *t, uint32_t *new_of, struct ow_error *err)
{
	size_t bytes = t->row_count * sizeof(uint32_t);
	uint32_t *order = mem_alloc(t->mem, bytes ? bytes : 1);
	struct row_store *rows = mem_alloc(t->mem, t->row_cap * sizeof(*rows));

	if (!order || (t->row_cap && !rows)) {
		mem_free(t->mem, order, bytes ? bytes : 1);
		mem_free(t->mem, rows, t->row_cap * sizeof(*rows));
		return error_no_memory(err);
	}
	for (uint32_t i = 0; i < t->row_count; i++)
		order[i] = i;
	qsort_r(order, t->row_count, sizeof(*order), compare_rows, t);
	for (uint32_t i = 0; i < t->row_count; i++) {
		rows[i] = t->rows[order[i]];
		new_of[order[i]] = i;
	}
	mem_free(t->mem, order, bytes ? bytes : 1);
	mem_free(t->mem, t->rows, t->row_cap * sizeof(*rows));
	t->rows = rows;
	return OW_OK;
}

static int compare_counters(const void *a, const void *b, void *arg)
{
	const struct model *m = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = compare_i64(m->counter.ts_ns[x], m->counter.ts_ns[y]);

	return order ? order : compare_i64(x, y);
}

/* Computes start, end and sum of every row, and of all rows together. */
static void measure_rows(struct tiles *t)
{
	for (size_t i = 0; i < t->row_count; i++) {
		struct row_store *row = &t->rows[i];

		if (!row->info.items)
			continue;
		row->info.start_ns = item_start_ns(t, row, 0);
		row->info.end_ns = item_end_ns(t, row, row->info.items - 1);
		for (uint32_t k = 0; k < row->info.items && !row_has_values(row); k++)
			row->info.busy_ns += (uint64_t)item_end_ns(t, row, k) -
					     (uint64_t)item_start_ns(t, row, k);
		t->start_ns = t->any ? MIN(t->start_ns, row->info.start_ns) : row->info.start_ns;
		t->end_ns = t->any ? MAX(t->end_ns, row->info.end_ns) : row->info.end_ns;
		t->any = true;
	}
}

/* Moves the items of a table to their rows; row_of and new_of as above. */
static void place_items(struct tiles *t, const uint32_t *source, uint32_t first, uint32_t end,
			const uint32_t *row_of, const uint32_t *new_of, uint32_t *fill)
{
	for (uint32_t i = first; i < end; i++) {
		uint32_t item = source ? source[i] : i;

		if (row_of[item] != UINT32_MAX)
			t->rows[new_of[row_of[item]]].items[fill[new_of[row_of[item]]]++] = item;
	}
}

struct maps {
	uint32_t *event, *sample, *counter; /* row of every item, in order of creation */
	uint32_t *new_of, *fill;	    /* one entry for each row */
	uint32_t *by_track;		    /* events by track, sorted by time */
	size_t rows;
};

static ow_status place_all(struct tiles *t, struct maps *maps, struct ow_error *err)
{
	const struct model *m = t->m;
	size_t bytes = t->row_count * sizeof(uint32_t), at = 0, total = 0;

	maps->rows = t->row_count;
	maps->new_of = mem_zalloc(t->mem, bytes + 1);
	maps->fill = mem_zalloc(t->mem, bytes + 1);
	if (!maps->new_of || !maps->fill)
		return error_no_memory(err);
	OW_TRY(order_rows(t, maps->new_of, err));
	for (size_t i = 0; i < t->row_count; i++)
		total += t->rows[i].info.items;
	maps->by_track = t->items;
	t->items = mem_alloc(t->mem, (total ? total : 1) * sizeof(*t->items));
	if (!t->items)
		return error_no_memory(err);
	for (size_t i = 0; i < t->row_count; i++) {
		t->rows[i].items = t->items + at;
		at += t->rows[i].info.items;
	}
	place_items(t, maps->by_track, 0, (uint32_t)t->item_count, maps->event, maps->new_of,
		    maps->fill);
	place_items(t, NULL, 1, m->sample.count, maps->sample, maps->new_of, maps->fill);
	place_items(t, NULL, 1, m->counter.count, maps->counter, maps->new_of, maps->fill);
	for (size_t i = 0; i < t->row_count; i++)
		if (t->rows[i].info.kind == TILE_COUNTER)
			qsort_r(t->rows[i].items, t->rows[i].info.items, sizeof(uint32_t),
				compare_counters, (void *)m);
	t->item_count = total;
	measure_rows(t);
	return OW_OK;
}

static ow_status arrange(struct tiles *t, struct maps *maps, struct ow_error *err)
{
	const struct model *m = t->m;
	struct arranging a = { .t = t, .err = err, .row_of = maps->event };
	uint32_t samples = 0;
	ow_status status = place_events(&a);

	for (size_t d = 0; d < a.depth_cap; d++)
		lanes_release(&a.depths[d], t->mem);
	mem_free(t->mem, a.depths, a.depth_cap * sizeof(*a.depths));
	OW_TRY(status);
	if (m->sample.count)
		OW_TRY(find_sample_rows(&a, maps->sample, &samples));
	if (m->counter.count)
		OW_TRY(find_counter_rows(&a, maps->counter));
	return place_all(t, maps, err);
}

static void *per_row_of(const struct tiles *t, uint32_t rows)
{
	return mem_zalloc(t->mem, ((size_t)rows + 1) * sizeof(uint32_t));
}

static ow_status make_rows(struct tiles *t, struct ow_error *err)
{
	const struct model *m = t->m;
	struct maps maps = { .event = per_row_of(t, m->event.count),
			     .sample = per_row_of(t, m->sample.count),
			     .counter = per_row_of(t, m->counter.count) };
	size_t placed = 0, events;
	ow_status status;

	for (uint32_t e = 1; e < m->event.count; e++)
		placed += m->event.ts_ns[e] != TIME_UNKNOWN;
	events = placed ? placed : 1;
	t->item_count = placed;
	t->items = mem_alloc(t->mem, events * sizeof(*t->items));
	status = maps.event && maps.sample && maps.counter && t->items ? arrange(t, &maps, err)
								       : error_no_memory(err);
	if (!maps.by_track) { /* the function failed before the items had an array of their own */
		mem_free(t->mem, t->items, events * sizeof(*t->items));
		t->items = NULL;
		t->item_count = 0;
	} else {
		mem_free(t->mem, maps.by_track, events * sizeof(*t->items));
	}
	mem_free(t->mem, maps.event, ((size_t)m->event.count + 1) * sizeof(uint32_t));
	mem_free(t->mem, maps.sample, ((size_t)m->sample.count + 1) * sizeof(uint32_t));
	mem_free(t->mem, maps.counter, ((size_t)m->counter.count + 1) * sizeof(uint32_t));
	mem_free(t->mem, maps.new_of, maps.rows * sizeof(uint32_t) + 1);
	mem_free(t->mem, maps.fill, maps.rows * sizeof(uint32_t) + 1);
	return status;
}

ow_status tiles_new(struct model *m, struct mem *mem, struct tiles **out, struct ow_error *err)
{
	struct tiles *t;
	ow_status status;

	*out = NULL;
	OW_TRY(model_require_rows(m,
				  TABLE_BIT(event) | TABLE_BIT(track) | TABLE_BIT(sample) |
					  TABLE_BIT(counter) | TABLE_BIT(metric) |
					  TABLE_BIT(source),
				  err));
	OW_TRY(model_require_nesting(m, err));
	t = mem_zalloc(mem, sizeof(*t));
	if (!t)
		return error_no_memory(err);
	t->m = m;
	t->mem = mem;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->row_done, NULL);
	status = make_rows(t, err);
	if (status != OW_OK) {
		tiles_free(t);
		return status;
	}
	*out = t;
	return OW_OK;
}

ow_status tiles_add_series(struct tiles *t, struct str name, const int64_t *ts_ns,
			   const double *values, uint32_t count, struct ow_error *err)
{
	size_t bytes = count ? count * sizeof(int64_t) : 1;
	struct row_store *row;
	uint32_t number;

	number = add_row(t, TILE_SERIES, 0, 0, 0);
	if (number == UINT32_MAX)
		return error_no_memory(err);
	row = &t->rows[number];
	row->series_ts = mem_alloc(t->mem, bytes);
	row->series_value = mem_alloc(t->mem, bytes);
	row->series_name = mem_alloc(t->mem, name.len + 1);
	if (!row->series_ts || !row->series_value || !row->series_name) {
		mem_free(t->mem, row->series_name, name.len + 1);
		mem_free(t->mem, row->series_ts, bytes);
		mem_free(t->mem, row->series_value, bytes);
		t->row_count--;
		return error_no_memory(err);
	}
	memcpy(row->series_ts, ts_ns, count * sizeof(*ts_ns));
	memcpy(row->series_value, values, count * sizeof(*values));
	if (name.len)
		memcpy(row->series_name, name.ptr, name.len);
	row->info.name = (struct str){ row->series_name, name.len };
	row->info.items = count;
	if (count) {
		row->info.start_ns = ts_ns[0];
		row->info.end_ns = ts_ns[count - 1];
		t->start_ns = t->any ? MIN(t->start_ns, ts_ns[0]) : ts_ns[0];
		t->end_ns = t->any ? MAX(t->end_ns, ts_ns[count - 1]) : ts_ns[count - 1];
		t->any = true;
	}
	return OW_OK;
}

void tiles_free(struct tiles *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->row_count; i++) {
		struct row_store *row = &t->rows[i];
		size_t bytes = row->info.items ? row->info.items * sizeof(int64_t) : 1;

		if (row->info.kind == TILE_SERIES) {
			mem_free(t->mem, row->series_ts, bytes);
			mem_free(t->mem, row->series_value, bytes);
			mem_free(t->mem, row->series_name, row->info.name.len + 1);
		}
		mem_free(t->mem, row->kept, row->kept_cap * sizeof(*row->kept));
		mem_free(t->mem, row->buckets, row->bucket_cap * sizeof(*row->buckets));
	}
	mem_free(t->mem, t->rows, t->row_cap * sizeof(*t->rows));
	mem_free(t->mem, t->items, (t->item_count ? t->item_count : 1) * sizeof(*t->items));
	pthread_cond_destroy(&t->row_done);
	pthread_mutex_destroy(&t->lock);
	mem_free(t->mem, t, sizeof(*t));
}
