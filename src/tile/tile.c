/*
 * tile.c: reads the tiles of a row (tile.h). A tile with few items is computed from them; a dense one is merged from
 * the two tiles of the level below, once, and kept. Merging is exact: the item that covers most of a bucket is the one
 * that covers most of either half, or the one that crosses the middle, and each item's coverage is computed from its
 * own times, never from rounded ones.
 */
#include "tile/tile_int.h"

#include "base/vec.h"

/* Items of a row that lie in a range of time: those that begin in it, and the one that extends into it. */
struct range {
	uint32_t first, end;
};

struct buckets {
	struct tile_bucket *list;
	uint32_t count;
};

uint32_t tiles_row_count(const struct tiles *t)
{
	return (uint32_t)t->row_count;
}

const struct tile_row *tiles_row(const struct tiles *t, uint32_t row)
{
	return &t->rows[row].info;
}

int64_t tiles_start(const struct tiles *t)
{
	return t->start_ns;
}

int64_t tiles_end(const struct tiles *t)
{
	return t->end_ns;
}

uint32_t tiles_top_level(const struct tiles *t)
{
	uint64_t last = tile_offset(t, t->end_ns);
	uint32_t level = 0;

	while (level < TILE_LEVELS - 1 && last >> (level + TILE_BITS))
		level++;
	return level;
}

static uint64_t start_of(const struct tiles *t, const struct row_store *row, uint32_t i)
{
	return tile_offset(t, item_start_ns(t, row, i));
}

static uint64_t end_of(const struct tiles *t, const struct row_store *row, uint32_t i)
{
	return tile_offset(t, item_end_ns(t, row, i));
}

/* The first item of [first, end) that begins at `offset` or later. */
static uint32_t first_from(const struct tiles *t, const struct row_store *row, uint32_t first,
			   uint32_t end, uint64_t offset)
{
	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (start_of(t, row, middle) < offset)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* The items of r that lie in the tile; r contains at least those. */
static struct range items_in(const struct tiles *t, const struct row_store *row, struct range r,
			     uint32_t level, uint64_t index)
{
	uint32_t shift = level + TILE_BITS;
	uint64_t begin = index << shift;
	struct range in;

	in.first = first_from(t, row, r.first, r.end, begin);
	/* The end of the very last tile may exceed 64 bits. */
	in.end = (index + 1) << shift > begin
			 ? first_from(t, row, in.first, r.end, (index + 1) << shift)
			 : r.end;
	if (in.first > r.first && end_of(t, row, in.first - 1) > begin)
		in.first--;
	return in;
}

/* The coverage of an item in bucket `number` of a level, in ns. */
static uint64_t coverage(const struct tiles *t, const struct row_store *row, uint32_t item,
			 uint32_t level, uint64_t number)
{
	uint64_t begin = number << level, last = begin + (((uint64_t)1 << level) - 1);
	uint64_t start = start_of(t, row, item), end = end_of(t, row, item);

	if (end <= begin || start > last)
		return 0;
	return MIN(end - 1, last) - MAX(start, begin) + 1;
}

/* There is room for all buckets of a tile. More of them come only when the times are out of order, as after a mapped file was
 * cut: then the last one takes the rest, and the reader of the model finds out at the end that bytes were lost (base/guard.h). */
static struct tile_bucket *bucket_at(struct buckets *out, uint32_t x, uint32_t first, uint32_t item)
{
	if (!out->count || (out->list[out->count - 1].x != x && out->count < TILE_BUCKETS))
		out->list[out->count++] =
			(struct tile_bucket){ .x = x, .first = first, .main = item };
	return &out->list[out->count - 1];
}

static void scan_slices(const struct tiles *t, const struct row_store *row, struct range r,
			uint32_t level, uint64_t index, struct buckets *out)
{
	uint64_t first_bucket = index << TILE_BITS, best = 0;
	uint64_t last_bucket = first_bucket + (TILE_BUCKETS - 1);

	for (uint32_t i = r.first; i < r.end; i++) {
		uint64_t start = start_of(t, row, i), end = end_of(t, row, i);
		uint64_t from = MAX(start >> level, first_bucket);
		uint64_t to = end > start ? MIN((end - 1) >> level, last_bucket) : from;

		for (uint64_t number = from; number <= to; number++) {
			uint64_t covered = coverage(t, row, i, level, number);
			bool begins = number == start >> level;
			uint32_t before = out->count;
			struct tile_bucket *b = bucket_at(out, (uint32_t)(number - first_bucket),
							  begins ? i : i + 1, i);

			if (out->count > before || covered > best) {
				b->main = i;
				best = covered;
			}
			b->busy += covered;
			b->count += begins;
		}
	}
}

static void scan_values(const struct tiles *t, const struct row_store *row, struct range r,
			uint32_t level, uint64_t index, struct buckets *out)
{
	for (uint32_t i = r.first; i < r.end; i++) {
		uint64_t x = (start_of(t, row, i) >> level) - (index << TILE_BITS);
		struct tile_bucket *b = bucket_at(out, (uint32_t)x, i, i);
		double value = item_value(t, row, i);

		if (!b->count)
			b->min = i;
		if (value > item_value(t, row, b->main))
			b->main = i;
		if (value < item_value(t, row, b->min))
			b->min = i;
		b->last = i;
		b->count++;
	}
}

static void scan_tile(const struct tiles *t, const struct row_store *row, struct range r,
		      uint32_t level, uint64_t index, struct buckets *out)
{
	out->count = 0;
	if (row_has_values(row))
		scan_values(t, row, r, level, index, out);
	else
		scan_slices(t, row, r, level, index, out);
}

/* Merges the halves a and b of bucket `number` of `level`, in this order; a becomes the whole. */
static void merge_slices(const struct tiles *t, const struct row_store *row, uint32_t level,
			 uint64_t number, struct tile_bucket *a, const struct tile_bucket *b)
{
	/* Only the last item that began before b can extend into both halves. */
	uint32_t candidates[3] = { a->main, b->first ? b->first - 1 : b->main, b->main };
	uint64_t best = coverage(t, row, a->main, level, number);

	for (int i = 1; i < 3; i++) {
		uint64_t covered = coverage(t, row, candidates[i], level, number);

		if (covered > best || (covered == best && covered && candidates[i] < a->main)) {
			a->main = candidates[i];
			best = covered;
		}
	}
	a->busy += b->busy;
}

static void merge_values(const struct tiles *t, const struct row_store *row, struct tile_bucket *a,
			 const struct tile_bucket *b)
{
	if (item_value(t, row, b->main) > item_value(t, row, a->main))
		a->main = b->main;
	if (item_value(t, row, b->min) < item_value(t, row, a->min))
		a->min = b->min;
	a->last = b->last;
}

/* Adds the buckets of one child to those of tile `index` of `level`; half is 0 or 1. */
static void merge_child(const struct tiles *t, const struct row_store *row, uint32_t level,
			uint64_t index, uint32_t half, const struct buckets *child,
			struct buckets *out)
{
	for (uint32_t i = 0; i < child->count; i++) {
		const struct tile_bucket *b = &child->list[i];
		uint32_t x = (b->x >> 1) + half * (TILE_BUCKETS / 2);
		struct tile_bucket *a = out->count ? &out->list[out->count - 1] : NULL;

		if (out->count < TILE_BUCKETS && (!a || a->x != x)) {
			out->list[out->count] = *b;
			out->list[out->count++].x = x;
			continue;
		}
		if (row_has_values(row))
			merge_values(t, row, a, b);
		else
			merge_slices(t, row, level, (index << TILE_BITS) + x, a, b);
		a->count += b->count;
	}
}

struct building {
	struct tiles *t;
	struct row_store *row;
	struct tile_bucket *scratch; /* three tiles for each level */
	struct ow_error *err;
};

static struct buckets scratch_of(const struct building *b, uint32_t level, uint32_t which)
{
	return (struct buckets){ b->scratch + ((size_t)level * 3 + which) * TILE_BUCKETS, 0 };
}

static ow_status store_tile(struct building *b, uint32_t level, uint64_t index,
			    const struct buckets *tile)
{
	struct row_store *row = b->row;
	struct mem *mem = b->t->mem;

	if (!vec_reserve(mem, row->kept, row->kept_cap, row->kept_count + 1) ||
	    !vec_reserve(mem, row->buckets, row->bucket_cap, row->bucket_count + tile->count))
		return error_no_memory(b->err);
	row->kept[row->kept_count++] = (struct tile_kept){ .level = level,
							   .index = index,
							   .bucket_first = row->bucket_count,
							   .bucket_count = tile->count };
	memcpy(row->buckets + row->bucket_count, tile->list, tile->count * sizeof(*tile->list));
	row->bucket_count += tile->count;
	return OW_OK;
}

/* Computes a tile into *out and stores it, and those below it, if they are dense. The recursion is at most
 * TILE_LEVELS deep. */
static ow_status build_tile(struct building *b, struct range r, uint32_t level, uint64_t index,
			    struct buckets *out)
{
	struct range in = items_in(b->t, b->row, r, level, index);

	if (in.end - in.first < TILE_DENSE) {
		scan_tile(b->t, b->row, in, level, index, out);
		return OW_OK;
	}
	if (!level) {
		scan_tile(b->t, b->row, in, level, index, out);
		return store_tile(b, level, index, out);
	}
	out->count = 0;
	for (uint32_t half = 0; half < 2; half++) {
		struct buckets child = scratch_of(b, level - 1, half);

		OW_TRY(build_tile(b, in, level - 1, index * 2 + half, &child));
		merge_child(b->t, b->row, level, index, half, &child, out);
	}
	return store_tile(b, level, index, out);
}

static int compare_kept(const void *x, const void *y)
{
	const struct tile_kept *a = x, *b = y;

	if (a->level != b->level)
		return a->level < b->level ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

static ow_status build_claimed(struct tiles *t, struct row_store *row, struct ow_error *err)
{
	size_t bytes = (size_t)TILE_LEVELS * 3 * TILE_BUCKETS * sizeof(struct tile_bucket);
	struct building b = { .t = t, .row = row, .scratch = mem_alloc(t->mem, bytes), .err = err };
	struct range all = { 0, row->info.items };
	uint32_t top = tiles_top_level(t);
	ow_status status = b.scratch ? OW_OK : error_no_memory(err);

	row->kept_count = row->bucket_count = 0;
	for (uint64_t index = 0;
	     status == OW_OK && index <= tile_offset(t, t->end_ns) >> (top + TILE_BITS); index++) {
		struct buckets out = scratch_of(&b, top, 2);

		status = build_tile(&b, all, top, index, &out);
	}
	mem_free(t->mem, b.scratch, bytes);
	if (status == OW_OK && row->kept_count)
		qsort(row->kept, row->kept_count, sizeof(*row->kept), compare_kept);
	return status;
}

/* Claims the row for the thread that calls: the caller builds it then. A row that another thread builds is waited for if `wait`. */
static bool claim_row(struct tiles *t, struct row_store *row, bool wait)
{
	bool claimed;

	pthread_mutex_lock(&t->lock);
	while (wait && row->claimed)
		pthread_cond_wait(&t->row_done, &t->lock);
	claimed = !row->claimed && !atomic_load_explicit(&row->built, memory_order_relaxed);
	row->claimed |= claimed;
	pthread_mutex_unlock(&t->lock);
	return claimed;
}

static ow_status build_row(struct tiles *t, struct row_store *row, bool wait, struct ow_error *err)
{
	ow_status status;

	if (atomic_load_explicit(&row->built, memory_order_acquire) || !claim_row(t, row, wait))
		return OW_OK;
	status = build_claimed(t, row, err);
	pthread_mutex_lock(&t->lock);
	if (status == OW_OK)
		atomic_store_explicit(&row->built, true, memory_order_release);
	row->claimed = false;
	pthread_cond_broadcast(&t->row_done);
	pthread_mutex_unlock(&t->lock);
	return status;
}

ow_status tiles_build_row(struct tiles *t, uint32_t number, struct ow_error *err)
{
	return build_row(t, &t->rows[number], true, err);
}

/* Rounded, but never 0 for something and never all for less than all. */
static uint8_t busy_part(uint64_t busy, uint32_t level)
{
	uint64_t width = (uint64_t)1 << level;

	if (busy >= width)
		return 255;
	return (uint8_t)MAX(1, MIN(254, (int)((double)busy * 255 / (double)width + 0.5)));
}

static uint32_t make_cells(const struct tiles *t, const struct row_store *row, uint32_t level,
			   const struct buckets *from, struct tile_cell *cells)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < from->count; i++) {
		const struct tile_bucket *b = &from->list[i];
		struct tile_cell cell = { .x = (uint16_t)b->x,
					  .width = 1,
					  .item = row->info.kind == TILE_SERIES
							  ? b->main
							  : row->items[b->main],
					  .count = b->count };
		struct tile_cell *last = n ? &cells[n - 1] : NULL;

		if (row_has_values(row)) {
			cell.min = item_value(t, row, b->min);
			cell.max = item_value(t, row, b->main);
			cell.last = item_value(t, row, b->last);
			cell.busy = 1;
		} else {
			cell.busy = busy_part(b->busy, level);
			/* The same item continues through whole buckets. */
			if (last && cell.busy == 255 && last->busy == 255 && !cell.count &&
			    last->item == cell.item && last->x + last->width == cell.x) {
				last->width++;
				continue;
			}
		}
		cells[n++] = cell;
	}
	return n;
}

/* Whether a tile is one of those that are kept; *in becomes its items. */
static bool is_kept(const struct tiles *t, const struct row_store *row, uint32_t level,
		    uint64_t index, struct range *in)
{
	*in = items_in(t, row, (struct range){ 0, row->info.items }, level, index);
	return in->end - in->first >= TILE_DENSE && level <= tiles_top_level(t);
}

static bool is_empty(const struct tiles *t, const struct row_store *row, uint32_t level,
		     uint64_t index)
{
	return !row->info.items || index > tile_offset(t, t->end_ns) >> (level + TILE_BITS);
}

ow_status tile_prepare(struct tiles *t, uint32_t number, uint32_t level, uint64_t index,
		       struct ow_error *err)
{
	struct row_store *row = &t->rows[number];
	struct range in;

	if (level >= TILE_LEVELS || is_empty(t, row, level, index) ||
	    atomic_load_explicit(&row->built, memory_order_acquire) ||
	    !is_kept(t, row, level, index, &in))
		return OW_OK;
	return build_row(t, row, false, err);
}

ow_status tile_read(struct tiles *t, uint32_t number, uint32_t level, uint64_t index,
		    struct tile_cell cells[TILE_BUCKETS], uint32_t *count, struct ow_error *err)
{
	struct row_store *row = &t->rows[number];
	struct tile_bucket list[TILE_BUCKETS];
	struct buckets found = { list, 0 };
	struct tile_kept key = { .level = level, .index = index }, *kept;
	struct range in;

	*count = 0;
	if (level >= TILE_LEVELS)
		return error_set(err, OW_E_USAGE, "tile level %u is above the highest, %u", level,
				 TILE_LEVELS - 1);
	if (is_empty(t, row, level, index))
		return OW_OK;
	if (!is_kept(t, row, level, index, &in)) {
		scan_tile(t, row, in, level, index, &found);
	} else {
		OW_TRY(tiles_build_row(t, number, err));
		kept = bsearch(&key, row->kept, row->kept_count, sizeof(key), compare_kept);
		if (!kept)
			return OW_OK; /* times have changed since: the file was cut, see bucket_at */
		found = (struct buckets){ row->buckets + kept->bucket_first, kept->bucket_count };
	}
	*count = make_cells(t, row, level, &found, cells);
	return OW_OK;
}

uint32_t tile_item_at(const struct tiles *t, uint32_t number, int64_t ts_ns, int direction)
{
	const struct row_store *row = &t->rows[number];
	uint32_t after = 0, end = row->info.items;

	while (after < end) { /* finds the first item that begins later than ts_ns */
		uint32_t middle = after + (end - after) / 2;

		if (item_start_ns(t, row, middle) <= ts_ns)
			after = middle + 1;
		else
			end = middle;
	}
	if (direction > 0)
		return after < row->info.items ? row->items[after] : 0;
	if (direction < 0) {
		while (after > 0 && item_start_ns(t, row, after - 1) >= ts_ns)
			after--;
		return after ? row->items[after - 1] : 0;
	}
	if (!after)
		return 0;
	return item_end_ns(t, row, after - 1) > ts_ns || item_start_ns(t, row, after - 1) == ts_ns
		       ? row->items[after - 1]
		       : 0;
}

uint32_t tiles_row_of_event(const struct tiles *t, event_id event)
{
	for (uint32_t i = 0; i < t->row_count; i++) {
		const struct row_store *row = &t->rows[i];
		uint32_t at;

		if (row->info.kind != TILE_EVENTS ||
		    row->info.track.v != t->m->event.track[event.v].v)
			continue;
		at = first_from(t, row, 0, row->info.items,
				tile_offset(t, t->m->event.ts_ns[event.v]));
		for (; at < row->info.items &&
		       item_start_ns(t, row, at) == t->m->event.ts_ns[event.v];
		     at++)
			if (row->items[at] == event.v)
				return i;
	}
	return UINT32_MAX;
}
