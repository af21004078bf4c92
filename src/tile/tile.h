/*
 * tile.h: what a timeline draws, at any zoom, in bounded time. The events of a model are arranged in rows that never
 * overlap (track, nesting depth, lane), and each row is read in tiles: TILE_BUCKETS buckets of 2^level nanoseconds.
 * A bucket says how many items begin in it, for how long the row was busy and which item covers most of it.
 *
 *	tiles_new(model, mem, &tiles, err);			rows and lanes
 *	tile_read(tiles, row, level, index, cells, &n, err);	at most TILE_BUCKETS cells, whatever the data
 *
 * Tiles with fewer than TILE_DENSE items are computed from the items when they are asked for; denser ones are computed
 * once per row and kept (about 1.5 bytes per item when items are spread evenly). Any number of threads may read.
 * Used by the server of the page and by reports. Knows no HTTP and draws nothing.
 */
#ifndef TILE_TILE_H
#define TILE_TILE_H

#include "model/model.h"

#define TILE_BITS 9
#define TILE_BUCKETS (1u << TILE_BITS)
#define TILE_DENSE 4096u /* a tile with this many items is stored instead of computed on demand */
#define TILE_LEVELS 55u	 /* level 54 has two tiles for all 64 bits of time */

enum tile_kind {
	TILE_EVENTS, /* items are rows of the table event */
	/* items are rows of the table sample; each lasts until the next one of its thread */
	TILE_SAMPLES,
	TILE_COUNTER, /* items are rows of the table counter: values at points in time */
	TILE_SERIES   /* values that the caller added with tiles_add_series */
};

/* A line of the timeline. Rows of one track are neighbours: by depth, then by lane. */
struct tile_row {
	enum tile_kind kind;
	track_id track;		  /* nil for a series */
	uint32_t depth;		  /* nesting depth on the track */
	uint32_t lane;		  /* items that overlap at one depth lie in different lanes */
	uint32_t items;		  /* number of items */
	struct str name;	  /* name of a counter or series; empty otherwise */
	int64_t start_ns, end_ns; /* begin of the first item and end of the last item */
	uint64_t busy_ns;	  /* sum of the items' durations; 0 for values */
};

/* Consecutive buckets [x, x + width) with the same content. */
struct tile_cell {
	uint16_t x, width;
	/* item: row in the kind's table of the item that covers most of the cell; the lowest of equal ones */
	uint32_t item;
	uint32_t count; /* number of items that begin in the cell */
	/* covered part of the cell, 0…255 = all; at least 1 when there is any item */
	uint8_t busy;
	/* For values only: the smallest, the largest and the last one in the cell. */
	double min, max, last;
};

struct tiles;

/* Arranges the rows. The model must be frozen and outlive the tiles. */
ow_status tiles_new(struct model *m, struct mem *mem, struct tiles **out, struct ow_error *err);
void tiles_free(struct tiles *t);

/* Adds a row of values, sorted by time; the name and both arrays are copied. Must be called before other threads
 * read. */
ow_status tiles_add_series(struct tiles *t, struct str name, const int64_t *ts_ns,
			   const double *values, uint32_t count, struct ow_error *err);

uint32_t tiles_row_count(const struct tiles *t);
const struct tile_row *tiles_row(const struct tiles *t, uint32_t row);
/* The time at which tile 0 of every level begins, and the end of the last item. Both are equal when there are no
 * items. */
int64_t tiles_start(const struct tiles *t);
int64_t tiles_end(const struct tiles *t);
/* The lowest level at which tile 0 covers everything. */
uint32_t tiles_top_level(const struct tiles *t);

/* Computes the dense tiles of a row; without this call, the first read of one computes them. */
ow_status tiles_build_row(struct tiles *t, uint32_t row, struct ow_error *err);
/* Builds the row of a tile that is going to be read, if that tile is dense and no other thread builds the row now. A caller that
 * prepares its tiles in reverse order shares the work with a thread that builds all rows in order. */
ow_status tile_prepare(struct tiles *t, uint32_t row, uint32_t level, uint64_t index,
		       struct ow_error *err);
/* Tile number `index` of a level of a row: cells in order, at most TILE_BUCKETS. */
ow_status tile_read(struct tiles *t, uint32_t row, uint32_t level, uint64_t index,
		    struct tile_cell cells[TILE_BUCKETS], uint32_t *count, struct ow_error *err);
/* The item of a row at a time, or the nearest one in `direction` (-1 before, 1 after, 0 exactly there): its row in
 * the kind's table, or 0 when there is none. For clicks and for the keys next and previous. */
uint32_t tile_item_at(const struct tiles *t, uint32_t row, int64_t ts_ns, int direction);
/* The row that contains an event, or UINT32_MAX. */
uint32_t tiles_row_of_event(const struct tiles *t, event_id event);

#endif
