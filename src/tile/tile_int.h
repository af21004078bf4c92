/*
 * tile_int.h: rows as rows.c makes them and tile.c reads them. Offsets are nanoseconds since tiles.start_ns, unsigned,
 * so that the whole range of times fits.
 */
#ifndef TILE_TILE_INT_H
#define TILE_TILE_INT_H

#include "tile/tile.h"

#include <pthread.h>
#include <stdatomic.h>

/* One bucket of a dense tile. Items are numbered within their row. */
struct tile_bucket {
	uint32_t x;
	uint32_t first; /* the first item that begins in the bucket or later */
	uint32_t count; /* number of items that begin in the bucket */
	uint32_t main;	/* the item that covers most of the bucket; for values, the largest one */
	union {
		uint64_t busy;
		struct {
			uint32_t min, last; /* item numbers */
		};
	};
};

/* A dense tile; its buckets are in row_store.buckets. */
struct tile_kept {
	uint32_t level;
	uint32_t bucket_count;
	uint64_t index;
	size_t bucket_first;
};

struct row_store {
	struct tile_row info;
	uint32_t *items; /* rows of the kind's table, sorted by time; a part of tiles.items */
	/* For TILE_SERIES: the values themselves; `items` is NULL, and an item's number is its index here. */
	int64_t *series_ts;
	double *series_value;
	char *series_name;
	/* Dense tiles in order of (level, index); written once, by the thread that claimed the row; read when `built` is set. */
	atomic_bool built;
	bool claimed; /* a thread builds them now; under tiles.lock */
	struct tile_kept *kept;
	size_t kept_count, kept_cap;
	struct tile_bucket *buckets;
	size_t bucket_count, bucket_cap;
};

struct tiles {
	struct model *m;
	struct mem *mem;
	int64_t start_ns, end_ns;
	bool any; /* some row has an item */
	struct row_store *rows;
	size_t row_count, row_cap;
	uint32_t *items; /* items of all rows that are not series, row by row */
	size_t item_count;
	pthread_mutex_t lock;
	pthread_cond_t row_done; /* a thread ended to build a row */
};

static inline bool row_has_values(const struct row_store *row)
{
	return row->info.kind >= TILE_COUNTER;
}

/* The end of an item, without overflow; unknown and negative durations count as 0. */
static inline int64_t tile_end_ns(int64_t ts_ns, int64_t dur_ns)
{
	int64_t end;

	if (dur_ns <= 0)
		return ts_ns;
	return __builtin_add_overflow(ts_ns, dur_ns, &end) ? INT64_MAX : end;
}

static inline int64_t item_start_ns(const struct tiles *t, const struct row_store *row, uint32_t i)
{
	switch (row->info.kind) {
	case TILE_EVENTS:
		return t->m->event.ts_ns[row->items[i]];
	case TILE_SAMPLES:
		return t->m->sample.ts_ns[row->items[i]];
	case TILE_COUNTER:
		return t->m->counter.ts_ns[row->items[i]];
	default:
		return row->series_ts[i];
	}
}

static inline int64_t item_end_ns(const struct tiles *t, const struct row_store *row, uint32_t i)
{
	switch (row->info.kind) {
	case TILE_EVENTS:
		return tile_end_ns(t->m->event.ts_ns[row->items[i]],
				   t->m->event.dur_ns[row->items[i]]);
	case TILE_SAMPLES:
		return i + 1 < row->info.items ? t->m->sample.ts_ns[row->items[i + 1]]
					       : t->m->sample.ts_ns[row->items[i]];
	default:
		return item_start_ns(t, row, i);
	}
}

static inline double item_value(const struct tiles *t, const struct row_store *row, uint32_t i)
{
	return row->info.kind == TILE_COUNTER ? t->m->counter.value[row->items[i]]
					      : row->series_value[i];
}

static inline uint64_t tile_offset(const struct tiles *t, int64_t ns)
{
	return (uint64_t)ns - (uint64_t)t->start_ns;
}

#endif
